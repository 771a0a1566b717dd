"""Reverse-mode gradients of tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.compute.access_relations import accesses
from tecomp.compute.define import compute
from tecomp.compute.expression_analysis import post_order as operations_in_order
from tecomp.compute.extern import ExternOp
from tecomp.compute.intrinsics import ExpressionAlgebra
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.preimages import Preimage, preimage
from tecomp.compute.reduce import Reduce, min, prod, sum
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import check_kind, check_list, shape_text
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    Const,
    Expr,
    Not,
    Select,
    Var,
    cast,
    const,
    if_then_else,
    logical_and,
    select,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, children, contains, post_order, substitute
from tecomp.operations.elementwise import ELEMENTWISE, elementwise_in

Guards = tuple[tuple[Expr, bool], ...]
"""Conditions of `if_then_else` around a value, and the branch that contains the value."""

_OPERATORS = {
    BinOp.ADD: "add", BinOp.SUB: "subtract", BinOp.MUL: "multiply", BinOp.DIV: "divide",
    BinOp.MIN: "minimum", BinOp.MAX: "maximum", BinOp.FLOORDIV: "floor_divide",
    BinOp.MOD: "remainder",
}
_ROWS: dict[Any, Any] = {row.call: row for row in ELEMENTWISE if row.call} | {
    op: elementwise_in("array")[name] for op, name in _OPERATORS.items()
}


def cotangents(
    value: Expr, cotangent: Expr, tensors: Collection[Tensor], where: str
) -> list[tuple[TensorLoad, Guards, Expr]]:
    """Return the reads of tensors with their cotangents.

    Args:
        value: Expression.
        cotangent: Cotangent of the expression.
        tensors: Tensors to differentiate by.
        where: Beginning of error messages.

    Returns:
        Reads, the conditions under which they are evaluated, and the products of the cotangent with
        the partial derivatives.

    Raises:
        DefinitionError: If a function has no derivative.
    """
    order = [*post_order(value)]
    active: set[int] = set()
    for node in order:
        if isinstance(node, TensorLoad):
            is_active = node.tensor in tensors  # indices have no derivatives
        else:
            is_active = any(id(child) in active for child in children(node))
        if is_active:
            active.add(id(node))
    collected: dict[int, dict[Guards, Expr]] = {id(value): {(): cotangent}}
    found: list[tuple[TensorLoad, Guards, Expr]] = []
    for node in reversed(order):
        for guards, g in collected.pop(id(node), {}).items():
            if isinstance(node, TensorLoad):
                _add_read(found, node, guards, g)
                continue
            for operand, conditions, part in _operands(node, guards, g, active, where):
                if id(operand) in active and operand.dtype.is_float:
                    known = collected.setdefault(id(operand), {})
                    other = known.get(conditions)
                    known[conditions] = part if other is None else other + part
    return found


def _add_read(
    found: list[tuple[TensorLoad, Guards, Expr]], read: TensorLoad, guards: Guards, g: Expr
) -> None:
    """Add a read, or its cotangent to that of an equal read."""
    for k, (other, conditions, known) in enumerate(found):
        if other.tensor == read.tensor and conditions == guards and all(
            map(structural_equal, other.indices, read.indices)
        ):
            found[k] = other, guards, known + g
            return
    found.append((read, guards, g))


def _operands(
    node: Any, guards: Guards, g: Expr, active: set[int], where: str
) -> list[tuple[Expr, Guards, Expr]]:
    """Return the operands of a node, with the conditions around them and their cotangents."""
    if isinstance(node, Cast):
        return [(node.value, guards, cast(node.value.dtype, g))] if node.dtype.is_float else []
    if isinstance(node, Select):
        none = const(0, g.dtype)
        return [(node.a, guards, select(node.condition, g, none)),
                (node.b, guards, select(node.condition, none, g))]
    if isinstance(node, Call) and node.name == "if_then_else":
        condition, a, b = node.args
        return [(a, (*guards, (condition, True)), g), (b, (*guards, (condition, False)), g)]
    row, operands = None, tuple[Expr, ...]()
    if isinstance(node, Binary):
        row, operands = _ROWS.get(node.op), (node.a, node.b)
    elif isinstance(node, Call):
        row, operands = _ROWS.get(node.name), node.args
    if row is None or row.derivative is None:
        raise DefinitionError(
            "{where}: {value} has no derivative; differentiate by other tensors",
            kind="not-differentiable", where=where, value=node,
        )
    parts = row.derivative(ExpressionAlgebra(), g, node, *operands)
    parts = parts if isinstance(parts, tuple) else (parts,)
    return [(operand, guards, part) for operand, part in zip(operands, parts, strict=True)]


def gradient(
    output: Tensor, inputs: Sequence[Tensor], head: Tensor | None = None
) -> list[Tensor]:
    """Return the gradients of a tensor with respect to its inputs.

    Args:
        output: Tensor to differentiate.
        inputs: Tensors to differentiate by: placeholders or other stages.
        head: Adjoint of the output, of shape `(*prefix, *output.shape)`. Default: the identity, so
            that the results are Jacobians.

    Returns:
        For each input a tensor of shape `(*prefix, *input.shape)`; the prefix is `output.shape` by
        default. An input that the output does not depend on gives zeros.

    Notes:
        A maximum of equal values has the derivative of the first, an absolute value of 0 the
        derivative 1. Rounding has the derivative 0.

    Raises:
        TypeMismatchError: If an argument is not a tensor of floating-point dtype.
        DefinitionError: If `head` does not have the shape of the output, or an operation between
            the inputs and the output has no derivative, such as a scan.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> k = te.reduce_axis((0, 3), name="k")
    >>> B = te.compute((6,), lambda i: te.sum(A[i + k] * A[i + k], axis=k), name="B")
    >>> (dA,) = te.gradient(B, [A], head=te.placeholder((6,), name="dB"))
    >>> dA.shape
    (8,)
    """
    where = "te.gradient"
    check_kind(output, Tensor, f"{where}: output", "pass a tensor", TypeMismatchError)
    check_list(inputs, Tensor, f"{where}: inputs", "pass a list of tensors", TypeMismatchError)
    for tensor in (output, *inputs, *([] if head is None else [head])):
        check_kind(tensor, Tensor, f"{where}: head", "pass a tensor", TypeMismatchError)
        if not tensor.dtype.is_float:
            raise TypeMismatchError(
                "{where}: {tensor} has dtype {dtype}; derivatives need a floating-point dtype",
                kind="dtype", where=where, tensor=tensor.name, dtype=tensor.dtype,
            )
    seed = _identity(output) if head is None else head
    rank = len(seed.shape) - len(output.shape)
    if rank < 0 or shape_text(seed.shape[rank:]) != shape_text(output.shape):
        raise DefinitionError(
            "{where}: head has shape {shape}; its last axes must be those of the output, of shape "
            "{expected}",
            kind="shapes", where=where, shape=shape_text(seed.shape),
            expected=shape_text(output.shape),
        )
    return _Adjoints(tuple(seed.shape[:rank]), output, inputs).collect(seed)


def _identity(output: Tensor) -> Tensor:
    rank = len(output.shape)

    def element(*index: Expr) -> Expr:
        pairs = zip(index[:rank], index[rank:], strict=True)
        one, none = const(1, output.dtype), const(0, output.dtype)
        conditions = [p.equal(i) for p, i in pairs]
        return select(logical_and(*conditions), one, none) if conditions else one

    identity: Tensor = compute(
        (*output.shape, *output.shape), element, name=f"{output.name}_head")
    return identity


@dataclass(frozen=True)
class _Part:
    """Contribution of a read to the adjoint of a tensor.

    Attributes:
        read: Read.
        axes: Axes of the operation that reads.
        conditions: Conditions under which an iteration reads.
        cotangent: Function that returns the cotangent of the read, from the indices of the head.
    """

    read: TensorLoad
    axes: tuple[IterVar, ...]
    conditions: tuple[Expr, ...]
    cotangent: Callable[[Sequence[Var]], Expr]


class _Adjoints:
    def __init__(
        self, prefix: tuple[Any, ...], output: Tensor, inputs: Sequence[Tensor]
    ) -> None:
        self.prefix, self.output, self.inputs = prefix, output, inputs
        self.order = operations_in_order([output.op])
        self.active = set(inputs)
        for op in self.order:
            if any(tensor in self.active for tensor in op.input_tensors):
                self.active |= set(op.outputs)
        self.parts: dict[Tensor, list[_Part]] = {}

    def collect(self, seed: Tensor) -> list[Tensor]:
        """Return the adjoints of the inputs."""
        adjoints: dict[Tensor, Tensor] = {}
        for op in reversed(self.order):
            for tensor in op.outputs:
                if tensor not in self.active:
                    continue
                adjoint = self._adjoint(tensor, seed if tensor == self.output else None)
                if adjoint is None:
                    continue
                adjoints[tensor] = adjoint
                if any(x in self.active for x in op.input_tensors):
                    self._differentiate(tensor, adjoint)
        return [adjoints.get(x) or self._zeros(x) for x in self.inputs]

    def _zeros(self, x: Tensor) -> Tensor:
        zeros: Tensor = compute(
            (*self.prefix, *x.shape), lambda *_: const(0, x.dtype), name=f"{x.name}_gradient")
        return zeros

    def _differentiate(self, tensor: Tensor, adjoint: Tensor) -> None:
        """Add the contributions of all reads of an operation."""
        op = tensor.op
        where = f"te.gradient: {tensor.name}"
        is_other = not isinstance(op, ComputeOp) or isinstance(op, ScanOp | ExternOp)
        if is_other or len(op.outputs) > 1:
            raise DefinitionError(
                "{where} is not the only result of te.compute, and has no derivative; "
                "differentiate by other tensors",
                kind="not-differentiable", where=where,
            )
        assert isinstance(op, ComputeOp)
        (body,) = op.body
        value, conditions = body, []
        factor: Callable[[Expr], Expr] = lambda g: g  # noqa: E731
        if isinstance(body, Reduce):
            (value,) = body.source
            conditions = [body.condition] if not isinstance(body.condition, Const) else []
            factor = _factor_of_terms(tensor, body, where)
        axes = (*op.axis, *op.reduce_axis)
        prefix = [Var(f"p{k}") for k in range(len(self.prefix))]
        g = factor(adjoint(*prefix, *op.axis))
        active = [x for x in op.input_tensors if x in self.active]
        for read, guards, part in cotangents(value, g, active, where):
            known = _conditions_of(guards)

            def cotangent(index: Sequence[Var], part: Expr = part) -> Expr:
                return substitute(part, dict(zip(prefix, index, strict=True)))

            self.parts.setdefault(read.tensor, []).append(
                _Part(read, axes, (*conditions, *known), cotangent))

    def _adjoint(self, tensor: Tensor, seed: Tensor | None) -> Tensor | None:
        """Return the sum of the contributions to the adjoint of a tensor; None without any."""
        parts = self.parts.pop(tensor, [])
        if not parts:
            return seed
        name, shape = f"{tensor.name}_gradient", (*self.prefix, *tensor.shape)
        rank = len(self.prefix)
        reduced: list[_Part] = []
        local: list[_Part] = []
        variables = [Var(f"a{k}") for k in range(len(tensor.shape))]
        for part in parts:
            found = preimage(part.read.indices, part.axes, variables, tensor.shape)
            (reduced if found.axes else local).append(part)

        def value(part: _Part, *index: Var) -> Expr:
            found = preimage(part.read.indices, part.axes, index[rank:], tensor.shape)
            return _term(part, found, index[:rank], index[rank:])

        if len(parts) == 1 and seed is None:
            (part,) = parts
            single: Tensor = compute(
                shape, lambda *index: value(part, *index), name=name)
            return single
        stages = [] if seed is None else [seed]
        for part in reduced:
            stages.append(compute(
                shape, lambda *index, part=part: value(part, *index), name=f"{name}_part"))

        def total(*index: Var) -> Expr:
            terms = [stage(*index) for stage in stages]
            terms += [value(part, *index) for part in local]
            result: Expr = terms[0]
            for term in terms[1:]:
                result = result + term
            return result

        adjoint: Tensor = compute(shape, total, name=name)
        return adjoint


def _at_element(value: Expr, read: TensorLoad, element: Sequence[Var]) -> Expr:
    """Replace reads with the indices of a read by reads of the element."""

    def rule(node: TensorLoad) -> Expr | None:
        if len(node.indices) != len(element) or not all(
            map(structural_equal, node.indices, read.indices)
        ):
            return None
        result: Expr = node.tensor(*element)
        return result

    return bottom_up(value, rule, kind=TensorLoad)


def _term(
    part: _Part, found: Preimage, prefix: Sequence[Var], element: Sequence[Var]
) -> Expr:
    """Return the sum of cotangents over the iterations that read an element."""
    value = substitute(_at_element(part.cotangent(prefix), part.read, element), found.values)
    conditions = [*found.conditions, *(substitute(c, found.values) for c in part.conditions)]
    if found.compared:  # read tensors at iterations of the operation only
        inside = if_then_else(logical_and(*found.compared), value, const(0, value.dtype))
        value = if_then_else(
            logical_and(*conditions), inside, const(0, value.dtype)) if conditions else inside
        conditions = []
    if found.axes:
        where = logical_and(*conditions) if conditions else None
        result: Expr = sum(value, axis=list(found.axes), where=where)
        return result
    if not conditions:
        return value
    return if_then_else(logical_and(*conditions), value, const(0, value.dtype))


def _conditions_of(guards: Guards) -> list[Expr]:
    return [condition if is_true else Not(condition) for condition, is_true in guards]


def _factor_of_terms(tensor: Tensor, body: Reduce, where: str) -> Callable[[Expr], Expr]:
    """Return the function from the cotangent of a reduction to the cotangent of a term."""
    reducer = accesses(tensor).reducer
    if any(contains(TensorLoad, value) for value in body.init) or reducer not in (
        "sum", "prod", "max", "min"
    ):
        raise DefinitionError(
            "{where} is a reduction without a derivative; reduce with te.sum, te.prod, te.max or "
            "te.min, from a constant",
            kind="not-differentiable", where=where,
        )
    if reducer == "sum":
        return lambda g: g
    (term,) = body.source
    if reducer == "prod":
        return _factor_of_product(tensor, body, term)
    return _factor_of_selection(tensor, body, term)


def _over_terms(
    tensor: Tensor, body: Reduce, reducer: Any, value: Callable[[Expr, dict[Var, Expr]], Expr],
    term: Expr, name: str,
) -> Tensor:
    """Define another reduction over the terms of a reduction."""

    def element(*index: Var) -> Expr:
        known: dict[Var, Expr] = dict(zip(tensor.op.axis, index, strict=True))
        axes = [make_axis(k.name, k.low, k.extent, IterKind.REDUCE) for k in body.axis]
        known.update(zip(body.axis, axes, strict=True))
        where = None if isinstance(body.condition, Const) else substitute(body.condition, known)
        result: Expr = reducer(
            value(substitute(term, known), known), axis=axes, where=where)
        return result

    found: Tensor = compute(tensor.shape, element, name=f"{tensor.name}_{name}")
    return found


def _factor_of_product(tensor: Tensor, body: Reduce, term: Expr) -> Callable[[Expr], Expr]:
    """Return the product of the other terms, which is exact if terms are 0."""
    axes, one, none = tensor.op.axis, const(1, term.dtype), const(0, term.dtype)
    zeros = _over_terms(
        tensor, body, sum,
        lambda x, _: select(x.equal(0), const(1, "int32"), const(0, "int32")), term, "zeros")
    nonzero = _over_terms(
        tensor, body, prod, lambda x, _: select(x.equal(0), one, x), term, "nonzero")

    def factor(g: Expr) -> Expr:
        count, others = zeros(*axes), nonzero(*axes)
        is_zero = term.equal(0)
        divisor = select(is_zero, one, term)
        expected = select(is_zero, const(1, "int32"), const(0, "int32"))
        return select(count.equal(expected), g * (others / divisor), none)

    return factor


def _factor_of_selection(tensor: Tensor, body: Reduce, term: Expr) -> Callable[[Expr], Expr]:
    """Return 1 for the first term that equals the maximum or minimum, and 0 for others."""
    axes, none = tensor.op.axis, const(0, term.dtype)

    def number(known: dict[Var, Expr]) -> Expr:
        place: Expr = const(0, "int64")
        for k in body.axis:
            place = place * k.extent + (cast("int64", known.get(k, k)) - k.low)
        return place

    def candidate(x: Expr, known: dict[Var, Expr]) -> Expr:
        chosen = tensor(*[known[axis] for axis in axes])
        return select(x.equal(chosen), number(known), const((1 << 63) - 1, "int64"))

    first = _over_terms(tensor, body, min, candidate, term, "first")
    return lambda g: select(first(*axes).equal(number({})), g, none)
