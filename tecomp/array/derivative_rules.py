"""Derivatives of recorded operations: the cotangents of operands, by one rule per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node
from tecomp.array.function_traces import (
    CustomCall,
    Step,
    TracedFunction,
    apply,
    arrays_of,
    cast,
    constant,
    expand,
    hold,
    iota,
    part_along,
    permute,
    reshape,
    total,
    trace_function,
    transpose,
    where,
    zeros,
)
from tecomp.array.graph.node import Node
from tecomp.array.indexing.setitem import IndexedAssignment
from tecomp.array.interop.exports import DeviceTransfer
from tecomp.errors import ArrayTypeError
from tecomp.operations.elementwise import ELEMENTWISE, elementwise_in
from tecomp.operations.formulas import Algebra
from tecomp.operations.reductions import REDUCTIONS, divisor_of
from tecomp.ptensor.operations.creation import Create, CreateLike, ExtractTriangle
from tecomp.ptensor.operations.elementwise import (
    FUNCTIONS,
    POWERS,
    CastOp,
    ElementwiseBinaryOp,
    ElementwisePower,
    ElementwiseUnaryOp,
    WhereOp,
)
from tecomp.ptensor.operations.linear_algebra import (
    Diagonal,
    MatrixTranspose,
    diagonal_length,
)
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    ScatterAdd,
    Squeeze,
    Take,
    TakeAlongAxis,
    TileOp,
)
from tecomp.ptensor.operations.reduction import Cumulative, Diff, FindIndex, ReduceOp
from tecomp.ptensor.operations.sorting import Argsort, Sort
from tecomp.ptensor.types import (
    COMPLEX,
    FLOATING,
    PTensorType,
    Shape,
    axes_of,
    axis_of,
)

Cotangents = Sequence[Array | None]
Rule = Callable[..., Any]

RULES: dict[type, Rule] = {}
"""Functions from an operation, the cotangent of its result, the result and the operands to the
cotangents of the operands, which `fit` sums and casts. For operations with several results, the
cotangents are a list, with None where there is none, and the results a mapping from their index."""


def rule_for(*kinds: type) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the rule of operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def by_equivalent(*kinds: type) -> Callable[[Rule], Rule]:
    """Return a decorator that registers an equivalent function, which is differentiated instead."""

    def register(function: Rule) -> Rule:
        def rule(op: Any, g: Array, y: Array, *xs: Array) -> Cotangents:
            return pull_back_through(lambda *inner: function(op, *inner), xs, g)

        rule_for(*kinds)(rule)
        return function

    return register


def pull_back_through(
    function: Callable[..., Array], xs: Sequence[Array], g: Array
) -> Cotangents:
    """Return the cotangents of the operands of a function of arrays with one result."""
    traced = trace_function(function, [x._node.type for x in xs], "grad", differentiates=True)
    known = traced.run([x._node for x in xs])
    return pull_back(traced, known, [g])


def pull_back(
    traced: TracedFunction, known: Mapping[Node, Node], cotangents: Cotangents
) -> Cotangents:
    """Return the cotangents of the inputs of a function.

    Args:
        traced: Operations of the function.
        known: Nodes of its values.
        cotangents: Cotangents of its outputs.

    Returns:
        Arrays of the types of the inputs; None for inputs on which no output depends.

    Raises:
        ArrayTypeError: If an operation on the path has no derivative.
    """
    active = {node for node in traced.inputs if node.type.dtype in FLOATING}
    for step in traced.steps:
        if not active.isdisjoint(step.operands):
            active |= {node for node in step.results.values() if node.type.dtype in FLOATING}
    found: dict[Node, Array] = {}

    def add(node: Node, part: Array | None) -> None:
        if part is not None and node in active:
            part = fit(part, node.type)
            found[node] = found[node] + part if node in found else part

    for node, part in zip(traced.outputs, cotangents, strict=True):
        add(node, part)
    for step in reversed(traced.steps):
        gs = {k: found.pop(node) for k, node in step.results.items() if node in found}
        if gs:
            parts = _operands(traced.where, step, gs, known)
            for node, part in zip(step.operands, parts, strict=True):
                add(node, part)
    return [found.get(node) for node in traced.inputs]


def _operands(
    where: str, step: Step, gs: Mapping[int, Array], known: Mapping[Node, Node]
) -> Cotangents:
    """Return the cotangents of the operands of a step."""
    xs = arrays_of(known, step.operands)
    if isinstance(step.call, CustomCall):
        call = step.call
        results = [gs[k] if k in gs else zeros(xs[k]._node.type) for k in range(call.count)]
        first = call.count + call.saved
        return [*[None] * first, *call.pull_back(xs[call.count : first], results)]
    rule = RULES.get(type(step.op))
    if rule is None:
        raise _no_derivative(where, step)
    try:
        if isinstance(step.op, tuple(MULTIPLE)):
            op: Any = step.op
            types = op.results(*[x._node.type for x in xs])
            ys = {k: from_node(known[node]) for k, node in step.results.items()}
            parts = rule(step.op, [gs.get(k) for k in range(len(types))], ys, *xs)
        else:
            (y,) = arrays_of(known, step.results.values())
            parts = rule(step.op, gs[0], y, *xs)
    except NotImplementedError:
        raise _no_derivative(where, step) from None
    return parts if isinstance(parts, tuple | list) else (parts,)


def _no_derivative(where: str, step: Step) -> ArrayTypeError:
    return ArrayTypeError(
        "{where}: {operation} has no derivative; apply stop_gradient to its operands, or define "
        "the derivative with custom_vjp",
        step.location, kind="not-differentiable", where=where, operation=step.op.where,
    )


def fit(part: Array, ptype: PTensorType) -> Array:
    """Sum a cotangent over the axes along which the operand was broadcast, and cast it."""
    if part.shape != ptype.shape:
        new = max(part.ndim - ptype.rank, 0)
        extents = ptype.shape[max(ptype.rank - part.ndim, 0) :]
        repeated = [
            k + new for k, n in enumerate(extents) if n == 1 and part.shape[k + new] != 1]
        if repeated:
            part = total(part, repeated, keepdims=True)
        if new:
            part = total(part, range(new))
        if part.shape != ptype.shape:  # a number represents equal cotangents
            part = apply(BroadcastOp(ptype.shape), part)
    if part._node.type.dtype == ptype.dtype:
        return part
    if part._node.type.dtype in COMPLEX and ptype.dtype not in COMPLEX:
        part = apply(FUNCTIONS["real"], part)
    return cast(part, ptype.dtype)


class ArrayAlgebra(Algebra):
    """Functions of arrays, for the formulas and derivatives of the tables of operations."""

    def is_double(self, x: Array) -> bool:
        """Return whether an array has dtype float64."""
        return x._node.type.dtype == "float64"

    def is_complex(self, x: Array) -> bool:
        """Return whether an array has a complex dtype."""
        return x._node.type.dtype in COMPLEX

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        """Select elements of `a` where the condition holds, and of `b` elsewhere."""
        a, b = [
            x if isinstance(x, Array) else constant(x, next(
                y for y in (a, b) if isinstance(y, Array))._node.type)
            for x in (a, b)
        ]
        return where(condition, a, b)

    def equal(self, a: Array, b: Array | float) -> Any:
        """Compare for equality."""
        return a == b

    def polynomial(self, x: Array, coefficients: Sequence[float]) -> Array:
        """Compute a polynomial by Horner's rule."""
        result = constant(coefficients[-1], x._node.type)
        for coefficient in reversed(coefficients[:-1]):
            result = result * x + coefficient
        return result

    def constant(self, value: float, x: Array) -> Array:
        """Return a number in the dtype of an array."""
        return constant(value, x._node.type)

    def wide(self, x: Array) -> Array:
        """Convert to float64."""
        return cast(x, "float64")

    def narrow(self, value: Array, x: Array) -> Array:
        """Convert a value of dtype float64 to the dtype of an array."""
        return cast(value, x._node.type.dtype)

    def maximum(self, a: Array, b: Array) -> Array:
        """Return the larger value; NaN propagates."""
        return apply(FUNCTIONS["maximum"], a, b)

    def minimum(self, a: Array, b: Array) -> Array:
        """Return the smaller value; NaN propagates."""
        return apply(FUNCTIONS["minimum"], a, b)

    def function(self, name: str, *operands: Array) -> Array:
        """Compute the intrinsic function of a row, or a function of arrays."""
        if name == "hypot" and self.is_complex(operands[0]):  # of a holomorphic derivative
            x, y = operands
            return apply(FUNCTIONS["sqrt"], x * x + y * y)
        return apply(FUNCTIONS[_NAMES.get(name, name)], *operands)

    def squared_magnitude(self, x: Array) -> Array:
        """Compute the square of a real number, or of the absolute value of a complex number."""
        if not self.is_complex(x):
            return apply(FUNCTIONS["square"], x)
        parts = [apply(FUNCTIONS["square"], apply(FUNCTIONS[name], x)) for name in ("real", "imag")]
        return parts[0] + parts[1]

    def finite(self, x: Array) -> Array:
        """Return a finite value, and 0 in place of infinities and NaN."""
        return where(apply(FUNCTIONS["isfinite"], x), x, constant(0, x._node.type))


_ROWS = elementwise_in("array")
_NAMES = {
    row.call: row.name_in("array") for row in ELEMENTWISE if row.call and row.is_in("array")
} | {"nearbyint": "round"}
_ALGEBRA = ArrayAlgebra()


@rule_for(ElementwiseUnaryOp, ElementwiseBinaryOp)
def _elementwise(op: Any, g: Array, y: Array, *xs: Array) -> Any:
    row = _ROWS[op.kind]
    dtype = op.computed_in([x._node.type.dtype for x in xs])
    operands = [cast(x, dtype) for x in xs]
    if row.derivative is not None:
        return row.derivative(_ALGEBRA, g, y, *operands)
    if row.formula is not None:
        formula = row.formula
        return pull_back_through(lambda *inner: formula(_ALGEBRA, *inner), operands, g)
    raise NotImplementedError(op.kind)


@rule_for(ElementwisePower)
def _power(op: ElementwisePower, g: Array, y: Array, x: Array) -> Array:
    exponent = POWERS[op.kind]
    return exponent * g * x ** (exponent - 1)


@rule_for(CastOp, DeviceTransfer)
def _cast(op: Any, g: Array, y: Array, x: Array) -> Array:
    return g.to_device(x.device) if isinstance(op, DeviceTransfer) else g


@rule_for(WhereOp)
def _where(op: WhereOp, g: Array, y: Array, condition: Array, *_: Array) -> Cotangents:
    none = constant(0, g._node.type)
    return None, where(condition, g, none), where(condition, none, g)


@rule_for(Create, CreateLike)
def _create(op: Any, g: Array, y: Array, *xs: Array) -> Cotangents:
    return [*[None] * (len(xs) - 1), total(g, range(g.ndim))]


# Reductions.


def _keep_axes(op: Any, g: Array, shape: Shape) -> Array:
    """Return a cotangent, or a result, with the axes of a reduction of size 1."""
    axes = axes_of(op.axis, len(shape), op.where)
    return reshape(g, tuple([1 if k in axes else n for k, n in enumerate(shape)]))


@rule_for(ReduceOp)
def _reduction(op: ReduceOp, g: Array, y: Array, x: Array) -> Any:
    if op.kind == "sum":
        return apply(BroadcastOp(x.shape), _keep_axes(op, g, x.shape))
    if op.kind in ("max", "min"):
        return _of_extreme(op, g, x)
    formula = _product if op.kind == "prod" else _by_formula
    return pull_back_through(lambda inner: formula(op, inner), [x], g)


def _of_extreme(op: ReduceOp, g: Array, x: Array) -> Array:
    """Return the cotangent for the first of equal extremes, and 0 for other elements."""
    axes = axes_of(op.axis, x.ndim, op.kind)
    g = _keep_axes(op, g, x.shape)
    if not axes:
        return g
    order = [*[k for k in range(x.ndim) if k not in axes], *axes]
    rows = x.shape if len(axes) == 1 else (
        *[x.shape[k] for k in order[:-len(axes)]], prod([x.shape[k] for k in axes]))
    axis = axes[0] if len(axes) == 1 else len(rows) - 1
    if len(axes) > 1:
        x_rows = reshape(permute(x, order), rows)
        g = reshape(permute(g, order), (*rows[:-1], 1))
    else:
        x_rows = x
    first = apply(FindIndex(f"arg{op.kind}", axis, True), x_rows)
    result = where(iota(x_rows, axis) == first, g, constant(0, g._node.type))
    if len(axes) == 1:
        return result
    inverse = [order.index(k) for k in range(x.ndim)]
    return permute(reshape(result, tuple([x.shape[k] for k in order])), inverse)


def _product(op: ReduceOp, x: Array) -> Array:
    """Compute a product in pairs, whose derivatives are exact if factors are 0."""
    x, axes = cast(x, op.dtype or x._node.type.dtype), axes_of(op.axis, x.ndim, op.kind)
    for axis in axes:
        while (count := x.shape[axis]) > 1:
            half = count // 2
            pairs = part_along(x, axis, 0, half) * part_along(x, axis, half, half)
            rest = [part_along(x, axis, 2 * half, 1)] if count % 2 else []
            x = apply(Combine("concat", axis), pairs, *rest) if rest else pairs
    if any([x.shape[axis] == 0 for axis in axes]):
        return constant(1, x._node.type)
    return x if op.keepdims else apply(Squeeze(axes), x)


def _by_formula(op: ReduceOp, x: Array) -> Array:
    """Compute a reduction by the formulas of its row."""
    row, axes = op.row, axes_of(op.axis, x.ndim, op.kind)
    center = None
    if row.center:
        center = apply(ReduceOp(row.center, axes, True), x)
        if REDUCTIONS[row.center].combiner != "sum":  # the result does not depend on a shift
            center = hold(center)
    terms = x if row.term is None else row.term(_ALGEBRA, x, center)
    result = apply(ReduceOp(row.combiner, axes, op.keepdims), terms)
    if row.finish is None:
        return result
    count = divisor_of(prod([x.shape[axis] for axis in axes]), op.correction)
    found: Array = row.finish(
        _ALGEBRA, result, lambda: count,
        lambda: center if op.keepdims or center is None else apply(Squeeze(axes), center))
    return found


@rule_for(Cumulative)
def _cumulative(op: Cumulative, g: Array, y: Array, x: Array) -> Any:
    if op.kind != "sum":
        return pull_back_through(lambda inner: _running_product(op, inner), [x], g)
    axis = axis_of(op.axis, x.ndim, op.where)
    g = part_along(g, axis, int(op.include_initial), x.shape[axis])
    backwards = apply(Cumulative("sum", axis), apply(Flip((axis,)), g))
    return apply(Flip((axis,)), backwards)


def _running_product(op: Cumulative, x: Array) -> Array:
    """Compute a cumulative product by doubling, whose derivatives are exact if factors are 0."""
    axis, shift = axis_of(op.axis, x.ndim, op.where), 1
    count = x.shape[axis]
    while shift < count:
        later = part_along(x, axis, shift, count - shift)
        products = later * part_along(x, axis, 0, count - shift)
        x = apply(Combine("concat", axis), part_along(x, axis, 0, shift), products)
        shift *= 2
    if not op.include_initial:
        return x
    one = constant(1, x._node.type)
    first = apply(BroadcastOp((*x.shape[:axis], 1, *x.shape[axis + 1 :])), one)
    return apply(Combine("concat", axis), first, x)


@by_equivalent(Diff)
def _diff(op: Diff, x: Array) -> Array:
    axis = axis_of(op.axis, x.ndim, op.name)
    count = max(x.shape[axis] - 1, 0)
    return part_along(x, axis, min(1, x.shape[axis]), count) - part_along(x, axis, 0, count)


# Views and copies.


@rule_for(ExtractSlice)
def _extract(op: ExtractSlice, g: Array, y: Array, x: Array) -> Array:
    return apply(InsertSlice(op.slice), zeros(x._node.type), g)


@rule_for(InsertSlice)
def _insert(op: InsertSlice, g: Array, y: Array, x: Array, part: Array) -> Cotangents:
    return apply(InsertSlice(op.slice), g, zeros(part._node.type)), apply(ExtractSlice(op.slice), g)


@rule_for(BroadcastOp)
def _broadcast(op: BroadcastOp, g: Array, y: Array, x: Array) -> Array:
    return g


@rule_for(Reshape, ExpandDims, Squeeze)
def _reshaped(op: Any, g: Array, y: Array, x: Array) -> Array:
    return reshape(g, x.shape)


@rule_for(Flip)
def _flip(op: Flip, g: Array, y: Array, x: Array) -> Array:
    return apply(op, g)


@rule_for(PermuteDims)
def _permute(op: PermuteDims, g: Array, y: Array, x: Array) -> Array:
    return permute(g, [op.axis.index(k) for k in range(len(op.axis))])


@rule_for(MatrixTranspose)
def _transpose(op: MatrixTranspose, g: Array, y: Array, x: Array) -> Array:
    return transpose(g)


@rule_for(Roll)
def _roll(op: Roll, g: Array, y: Array, x: Array) -> Array:
    return apply(Roll(tuple([-k for k in op.shift]), op.axis), g)


@rule_for(Combine)
def _combine(op: Combine, g: Array, y: Array, *xs: Array) -> Cotangents:
    axis, first, parts = axis_of(op.axis, g.ndim, op.kind), 0, []
    for x in xs:
        count = x.shape[axis] if op.kind == "concat" else 1
        parts.append(reshape(part_along(g, axis, first, count), x.shape))
        first += count
    return parts


@rule_for(Repeat)
def _repeat(op: Repeat, g: Array, y: Array, x: Array) -> Array:
    axis = axis_of(op.axis, x.ndim, op.name)
    shape = (*x.shape[: axis + 1], op.repeats, *x.shape[axis + 1 :])
    return total(reshape(g, shape), (axis + 1,))


@rule_for(TileOp)
def _tile(op: TileOp, g: Array, y: Array, x: Array) -> Array:
    counts = (1,) * (g.ndim - len(op.repetitions)) + op.repetitions
    extents = (1,) * (g.ndim - x.ndim) + x.shape
    shape = tuple([n for pair in zip(counts, extents, strict=True) for n in pair])
    return reshape(total(reshape(g, shape), range(0, 2 * g.ndim, 2)), x.shape)


@rule_for(ExtractTriangle)
def _triangle(op: ExtractTriangle, g: Array, y: Array, x: Array) -> Array:
    return apply(op, g)


@rule_for(Diagonal)
def _diagonal(op: Diagonal, g: Array, y: Array, x: Array) -> Array:
    rows, columns = x.shape[-2:]
    count, first = diagonal_length(x.shape, op.offset), max(-op.offset, 0)
    column = zeros(g._node.type.like((*g.shape[:-1], rows)))
    spans = (*[(0, 1, n) for n in g.shape[:-1]], (first if count else 0, 1, count))
    column = expand(apply(InsertSlice(spans), column, g), -1)
    is_diagonal = constant(np.eye(rows, columns, op.offset), x._node.type, "bool")
    return where(is_diagonal, column, constant(0, g._node.type))


# Reads at indices.


@rule_for(Take)
def _take(op: Take, g: Array, y: Array, x: Array, *indices: Array) -> Cotangents:
    return apply(ScatterAdd(op.axis, op.place, x.shape), g, *indices), *[None] * len(indices)


@rule_for(ScatterAdd)
def _scatter(op: ScatterAdd, g: Array, y: Array, x: Array, *indices: Array) -> Cotangents:
    return apply(Take(op.axis, op.place), g, *indices), *[None] * len(indices)


@rule_for(TakeAlongAxis)
def _take_along(op: TakeAlongAxis, g: Array, y: Array, x: Array, indices: Array) -> Cotangents:
    axis = axis_of(op.axis, x.ndim, op.name)
    others = [iota(g, k) if k != axis else indices for k in range(x.ndim)]
    shape = (*g.shape[:axis], x.shape[axis], *g.shape[axis + 1 :])
    return apply(ScatterAdd(tuple(range(x.ndim)), 0, shape), g, *others), None


@rule_for(IndexedAssignment)
def _assign(
    op: IndexedAssignment, g: Array, y: Array, x: Array, value: Array, *indices: Array
) -> Cotangents:
    key = op.key(indices)
    # Of several values for one element, the last one counts.
    numbers = constant(np.arange(prod(g[key].shape)).reshape(g[key].shape), x._node.type, "int64")
    writer = constant(np.zeros(x.shape), x._node.type, "int64")
    (written,) = op.run(writer._node, numbers._node, *[index._node for index in indices])
    is_last = from_node(written)[key] == numbers
    (rest,) = op.run(g._node, constant(0, g._node.type)._node, *[i._node for i in indices])
    none = constant(0, g._node.type)
    return from_node(rest), where(is_last, g[key], none), *[None] * len(indices)


@rule_for(Sort)
def _sort(op: Sort, g: Array, y: Array, x: Array) -> Array:
    axis = axis_of(op.axis, x.ndim, op.name)
    order = apply(Argsort(axis, op.descending, True), x)
    return apply(TakeAlongAxis(axis), g, apply(Argsort(axis), order))


MULTIPLE: list[type] = []
"""Operations with several results."""
