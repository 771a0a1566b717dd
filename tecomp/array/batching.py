"""Batches of calls of a function, with one rule per operation for operands with a new axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import update_wrapper
from math import prod
from operator import index
from typing import Any

from tecomp.array.array_object import Array, from_node
from tecomp.array.function_traces import (
    CustomCall,
    Step,
    TracedFunction,
    apply,
    arrays_of,
    check_function,
    expand,
    iota,
    leaves_of,
    part_along,
    permute,
    record_custom,
    replace_leaves,
    reshape,
    run_operation,
    run_step,
    trace_function,
    zeros,
)
from tecomp.array.graph.node import Node
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.creation import Create, CreateLike, ExtractTriangle
from tecomp.ptensor.operations.elementwise import (
    CastOp,
    ElementwiseBinaryOp,
    ElementwiseBinaryTest,
    ElementwisePower,
    ElementwiseUnaryOp,
    ElementwiseUnaryTest,
    WhereOp,
)
from tecomp.ptensor.operations.library_ops import FourierTransformOp, Matrices, Solve
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    MatrixTranspose,
    Outer,
    TensorDot,
    TraceOp,
    VecDot,
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
from tecomp.ptensor.operations.reduction import (
    CountNonzero,
    Cumulative,
    Diff,
    FindIndex,
    ReduceOp,
    TruthTest,
)
from tecomp.ptensor.operations.sorting import Argsort, Sort
from tecomp.ptensor.types import Shape, axes_of, axis_of

Rule = Callable[..., Array]

RULES: dict[type, Rule] = {}
"""Functions from an operation, the number of slices, whether each operand has the new axis, and the
operands to the result, which has the new axis."""


def rule_for(*kinds: type) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the rule of operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def run_batched(
    traced: TracedFunction, inputs: Sequence[Node], size: int
) -> tuple[dict[Node, Node], set[Node]]:
    """Apply the operations of a function to all slices of its inputs.

    Args:
        traced: Operations of the function.
        inputs: Inputs with a new first axis.
        size: Extent of this axis.

    Returns:
        Node for each node of the trace, and the nodes of the trace that have the new axis.
    """
    known = dict(zip(traced.inputs, inputs, strict=True))
    batched = {*traced.inputs}
    for step in traced.steps:
        nodes = [known.get(node, node) for node in step.operands]
        flags = [node in batched for node in step.operands]
        if not any(flags):
            found = run_step(step, nodes)
        else:
            found = _apply_batched(step, size, flags, nodes)
            batched.update(step.results.values())
        known.update({node: found[k] for k, node in step.results.items()})
    return known, batched


def _apply_batched(
    step: Step, size: int, flags: Sequence[bool], nodes: Sequence[Node]
) -> Sequence[Node]:
    if isinstance(step.call, CustomCall):
        pairs = zip(nodes, flags, strict=True)
        xs = [_with_axis(from_node(node), flag, size) for node, flag in pairs]
        call = step.call
        batched = CustomCall(
            lambda values, gs: _pull_slices(call, values, gs), call.count, call.saved)
        return record_custom(batched, [x._node for x in xs])
    if isinstance(step.op, Matrices):  # of stacks of matrices, with several results
        return run_operation(step.op, *nodes)
    rule = RULES.get(type(step.op))
    if rule is None:
        return _apply_to_slices(step, size, flags, nodes)
    arrays = [from_node(node) for node in nodes]
    return (rule(step.op, size, flags, *arrays)._node,)


def _pull_slices(
    call: CustomCall, values: Sequence[Array], gs: Sequence[Array]
) -> list[Array | None]:
    """Apply the derivative of a user to each slice."""
    is_none: list[bool] = []

    def back(saved: Sequence[Array], rest: Sequence[Array]) -> list[Array]:
        parts = call.pull_back(saved, rest)
        is_none[:] = [part is None for part in parts]
        return [part for part in parts if part is not None]

    found = iter(vmap(back)([*values], [*gs]))
    return [None if missing else next(found) for missing in is_none]


def _apply_to_slices(
    step: Step, size: int, flags: Sequence[bool], nodes: Sequence[Node]
) -> Sequence[Node]:
    """Apply an operation to each slice separately, and stack the results."""
    arrays = [from_node(node) for node in nodes]
    rows = []
    for k in range(size):
        operands = [
            _without_axis(part_along(x, 0, k, 1))._node if flag else x._node
            for x, flag in zip(arrays, flags, strict=True)
        ]
        rows.append(run_step(step, operands))
    if not rows:
        return [
            zeros(node.type.like((0, *node.type.shape)))._node
            for _, node in sorted(step.results.items())
        ]
    return [
        apply(Combine("stack", 0), *map(from_node, column))._node
        for column in zip(*rows, strict=True)
    ]


def _without_axis(x: Array) -> Array:
    return apply(Squeeze((0,)), x)


def _with_axis(x: Array, is_batched: bool, size: int) -> Array:
    """Return an operand with the new axis."""
    return x if is_batched else apply(BroadcastOp((size, *x.shape)), x)


def _align(flags: Sequence[bool], arrays: Sequence[Array], rank: int = 0) -> list[Array]:
    """Insert axes of size 1 after the new axis, so that operands of all ranks broadcast."""
    ranks = [x.ndim - flag for x, flag in zip(arrays, flags, strict=True)]
    most = max(*ranks, rank) if len(ranks) > 1 else max(ranks[0], rank)
    return [
        reshape(x, (x.shape[0], *(1,) * (most - n), *x.shape[1:])) if flag else x
        for x, flag, n in zip(arrays, flags, ranks, strict=True)
    ]


@rule_for(
    ElementwiseUnaryOp, ElementwiseUnaryTest, ElementwisePower, ElementwiseBinaryOp,
    ElementwiseBinaryTest, CastOp, WhereOp,
)
def _elementwise(op: Any, size: int, flags: Sequence[bool], *xs: Array) -> Array:
    return apply(op, *_align(flags, xs))


@rule_for(Create)
def _create(op: Create, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(BroadcastOp((size, *op.shape)), reshape(x, (size, *(1,) * len(op.shape))))


@rule_for(CreateLike)
def _create_like(op: CreateLike, size: int, flags: Sequence[bool], x: Array, value: Array) -> Array:
    shape = x.shape[flags[0] :]
    value = reshape(value, (size, *(1,) * len(shape))) if flags[1] else value
    return apply(CastOp(op.dtype or x._node.type.dtype), apply(
        BroadcastOp((size, *shape)), value))


# Operations with axes, which move by one.


@rule_for(ReduceOp, TruthTest, CountNonzero)
def _reduction(op: Any, size: int, flags: Sequence[bool], x: Array) -> Array:
    axes = axes_of(op.axis, x.ndim - 1, op.where)
    return apply(replace(op, axis=tuple([k + 1 for k in axes])), x)


@rule_for(FindIndex)
def _find_index(op: FindIndex, size: int, flags: Sequence[bool], x: Array) -> Array:
    if op.axis is not None:
        return apply(replace(op, axis=axis_of(op.axis, x.ndim - 1, op.where) + 1), x)
    found = apply(FindIndex(op.kind, 1), reshape(x, (size, prod(x.shape[1:]))))
    return reshape(found, (size, *(1,) * (x.ndim - 1))) if op.keepdims else found


@rule_for(Cumulative, Diff, Sort, Argsort, Repeat)
def _along_axis(op: Any, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(replace(op, axis=axis_of(op.axis, x.ndim - 1, op.where) + 1), x)


@rule_for(ExpandDims, Flip, Squeeze)
def _along_axes(op: Any, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(replace(op, axis=tuple([k + 1 for k in op.axis])), x)


@rule_for(Roll)
def _roll(op: Roll, size: int, flags: Sequence[bool], x: Array) -> Array:
    axes = [axis_of(k, x.ndim - 1, op.name) + 1 for k in op.axis]
    return apply(Roll(op.shift, tuple(axes)), x)


@rule_for(PermuteDims)
def _permute(op: PermuteDims, size: int, flags: Sequence[bool], x: Array) -> Array:
    return permute(x, (0, *[k + 1 for k in op.axis]))


@rule_for(MatrixTranspose, Diagonal, TraceOp, ExtractTriangle)
def _of_matrices(op: Any, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(op, x)


@rule_for(ExtractSlice)
def _extract(op: ExtractSlice, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(ExtractSlice(((0, 1, size), *op.slice)), x)


@rule_for(InsertSlice)
def _insert(op: InsertSlice, size: int, flags: Sequence[bool], *xs: Array) -> Array:
    operands = [_with_axis(x, flag, size) for x, flag in zip(xs, flags, strict=True)]
    return apply(InsertSlice(((0, 1, size), *op.slice)), *operands)


@rule_for(BroadcastOp)
def _broadcast(op: BroadcastOp, size: int, flags: Sequence[bool], x: Array) -> Array:
    (x,) = _align(flags, [x], len(op.shape))
    return apply(BroadcastOp((size, *op.shape)), x)


@rule_for(Reshape)
def _reshape(op: Reshape, size: int, flags: Sequence[bool], x: Array) -> Array:
    return apply(Reshape((size, *op.shape), op.copy), x)


@rule_for(TileOp)
def _tile(op: TileOp, size: int, flags: Sequence[bool], x: Array) -> Array:
    rank = max(x.ndim - 1, len(op.repetitions))
    (x,) = _align(flags, [x], rank)
    missing = rank + 1 - len(op.repetitions)
    return apply(TileOp((*(1,) * missing, *op.repetitions)), x)


@rule_for(Combine)
def _combine(op: Combine, size: int, flags: Sequence[bool], *xs: Array) -> Array:
    operands = [_with_axis(x, flag, size) for x, flag in zip(xs, flags, strict=True)]
    rank = operands[0].ndim - 1 + (op.kind == "stack")
    return apply(Combine(op.kind, axis_of(op.axis, rank, op.kind) + 1), *operands)


# Reads at indices.


@rule_for(Take)
def _take(op: Take, size: int, flags: Sequence[bool], x: Array, *indices: Array) -> Array:
    if not any(flags[1:]):
        return apply(Take(tuple([k + 1 for k in op.axis]), op.place + 1), x, *indices)
    indices = tuple(_align(flags[1:], indices))
    rank = max([i.ndim for i in indices]) - 1
    if flags[0]:
        numbers = _numbers(indices, size, rank)
        found = apply(Take((0, *[k + 1 for k in op.axis]), 0), x, numbers, *indices)
    else:
        found = apply(Take(op.axis, 0), x, *indices)
    return _place_indices(found, rank, op.place)


def _numbers(indices: Sequence[Array], size: int, rank: int) -> Array:
    """Return the numbers of the slices, to be broadcast against indices."""
    template = next(i for i in indices if i.ndim == rank + 1 and i.shape[0] == size)
    return iota(template, 0)


def _place_indices(x: Array, rank: int, place: int) -> Array:
    """Move index axes, which follow the new axis, behind other axes."""
    others = range(1 + rank, 1 + rank + place)
    return permute(x, (0, *others, *range(1, 1 + rank), *range(1 + rank + place, x.ndim)))


@rule_for(ScatterAdd)
def _scatter(op: ScatterAdd, size: int, flags: Sequence[bool], g: Array, *indices: Array) -> Array:
    shape = (size, *op.shape)
    axes = tuple([k + 1 for k in op.axis])
    if not any(flags[1:]):
        return apply(ScatterAdd(axes, op.place + 1, shape), g, *indices)
    indices = tuple(_align(flags[1:], indices))
    rank = max([i.ndim for i in indices]) - 1
    g = _with_axis(g, flags[0], size)
    order = (0, *range(1 + op.place, 1 + op.place + rank), *range(1, 1 + op.place),
             *range(1 + op.place + rank, g.ndim))
    numbers = _numbers(indices, size, rank)
    return apply(ScatterAdd((0, *axes), 0, shape), permute(g, order), numbers, *indices)


@rule_for(TakeAlongAxis)
def _take_along(op: TakeAlongAxis, size: int, flags: Sequence[bool], *xs: Array) -> Array:
    operands = [x if flag else expand(x, 0) for x, flag in zip(xs, flags, strict=True)]
    axis = axis_of(op.axis, operands[0].ndim - 1, op.name)
    return apply(TakeAlongAxis(axis + 1), *operands)


# Products.


@rule_for(MatMul)
def _matmul(op: MatMul, size: int, flags: Sequence[bool], a: Array, b: Array) -> Array:
    ranks = [x.ndim - flag for x, flag in zip((a, b), flags, strict=True)]
    first = expand(a, -2) if ranks[0] == 1 else a
    second = expand(b, -1) if ranks[1] == 1 else b
    found = apply(op, *_align(flags, [first, second]))
    dropped = [found.ndim - 2] * (ranks[0] == 1) + [found.ndim - 1] * (ranks[1] == 1)
    return apply(Squeeze(tuple(dropped)), found) if dropped else found


@rule_for(VecDot, Cross)
def _vectors(op: Any, size: int, flags: Sequence[bool], *xs: Array) -> Array:
    return apply(op, *_align(flags, xs))


@rule_for(Outer)
def _outer(op: Outer, size: int, flags: Sequence[bool], x: Array, y: Array) -> Array:
    return expand(x, -1) * expand(y, -2)


@rule_for(TensorDot)
def _tensordot(op: TensorDot, size: int, flags: Sequence[bool], x: Array, y: Array) -> Array:
    types = [z._node.type.like(z.shape[flag:]) for z, flag in zip((x, y), flags, strict=True)]
    first, second = op.places(*types)
    free, other = [
        [k for k in range(t.rank) if k not in bound]
        for t, bound in zip(types, (first, second), strict=True)
    ]
    rows, row_shape = _matrices(x, flags[0], free, first, False)
    columns, column_shape = _matrices(y, flags[1], other, second, True)
    return reshape(apply(MatMul(), rows, columns), (size, *row_shape, *column_shape))


def _matrices(
    x: Array, flag: bool, free: Sequence[int], bound: Sequence[int], is_second: bool
) -> tuple[Array, Shape]:
    """Return an operand of a contraction as matrices, and the extents of its free axes."""
    shape = x.shape[flag:]
    order = [*bound, *free] if is_second else [*free, *bound]
    new = [0] if flag else []
    x = permute(x, [*new, *[k + flag for k in order]])
    extents = tuple([shape[k] for k in free])
    pair = prod(extents), prod([shape[k] for k in bound])
    return reshape(x, (*x.shape[:flag], *(pair[::-1] if is_second else pair))), extents


@rule_for(FourierTransformOp)
def _fourier(op: FourierTransformOp, size: int, flags: Sequence[bool], x: Array) -> Array:
    axes = [axis_of(k, x.ndim - 1, op.where) + 1 for k in op.axes]
    return apply(replace(op, axes=tuple(axes)), x)


@rule_for(Solve)
def _solve(op: Solve, size: int, flags: Sequence[bool], a: Array, b: Array) -> Array:
    is_vector = b.ndim - flags[1] == 1
    if is_vector:
        b = expand(b, -1)
    found = apply(op, *_align(flags, [a, b]))
    return apply(Squeeze((found.ndim - 1,)), found) if is_vector else found


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that applies a function to all slices of its arguments along an axis.

    The operations of the function are applied once, to all slices together.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        in_axes: Axis of each argument, None for arguments that all calls share: a number for all
            arguments, or a tuple or list with an entry for each, which may have its structure.
        out_axes: Position of the new axis in each array of the result: a number, or the structure
            of the result; None for results that are equal for all slices.
        axis_size: Number of slices. Default: the size of the axes.

    Returns:
        Function of arguments that have an additional axis.

    Raises:
        ArrayTypeError: If `fun` is not a function, or reads the value of an element.
        ArrayValueError: If the axes differ in size.

    >>> import tecomp.array as xp
    >>> x, w = xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([10.0, 1.0])
    >>> xp.vmap(lambda row, w: xp.sum(row * w), in_axes=(0, None))(x, w)
    Array([12., 34.], dtype=float64)
    """
    where = "vmap"
    check_function(fun, where)

    def compute(*args: Any, **kwargs: Any) -> Any:
        prefix = list(in_axes) if isinstance(in_axes, tuple | list) else in_axes
        axes = [*_axes_of_leaves(prefix, list(args), where), *[0] * len(leaves_of(kwargs))]
        given = leaves_of([list(args), kwargs])
        mapped = [k for k, axis in enumerate(axes) if axis is not None]
        inputs = []
        for k in mapped:
            if not isinstance(given[k], Array):
                raise ArrayTypeError(
                    "{where}: mapped arguments must be arrays, got {type}; convert them with "
                    "xp.asarray(...), or pass None as their axis",
                    kind="not-an-array", where=where, type=type(given[k]).__name__,
                )
            inputs.append(_move(given[k], axis_of(axes[k], given[k].ndim, where), 0))
        size = _common_size(inputs, axis_size)

        def call(*slices: Array) -> Any:
            leaves = [*given]
            for k, part in zip(mapped, slices, strict=True):
                leaves[k] = part
            positional, named = replace_leaves([list(args), kwargs], leaves)
            return fun(*positional, **named)

        types = [x._node.type for x in inputs]
        traced = trace_function(
            call, [t.like(t.shape[1:]) for t in types], where)
        known, batched = run_batched(traced, [x._node for x in inputs], size)
        out = _axes_of_leaves(out_axes, traced.result, where)
        results = [
            _result(known, node, node in batched, axis, size)
            for node, axis in zip(traced.outputs, out, strict=True)
        ]
        return replace_leaves(traced.result, results)

    return update_wrapper(compute, fun, updated=())


def _result(known: Any, node: Node, is_batched: bool, axis: int | None, size: int) -> Array:
    """Return a result of a batch of calls with the new axis at its position."""
    (array,) = arrays_of(known, [node])
    if axis is None:
        if is_batched:
            raise ArrayValueError(
                "vmap: a result differs between the slices, but its entry of out_axes is None; "
                "pass the position of the new axis",
            )
        return array
    if not is_batched:
        array = zeros(array._node.type.like((size, *array.shape))) + array
    return _move(array, 0, axis_of(axis, array.ndim, "vmap", "out_axes"))


def _move(x: Array, source: int, target: int) -> Array:
    order = [k for k in range(x.ndim) if k != source]
    order.insert(target, source)
    return x if source == target else permute(x, order)


def _common_size(inputs: Sequence[Array], axis_size: int | None) -> int:
    sizes = {*[x.shape[0] for x in inputs], *([] if axis_size is None else [index(axis_size)])}
    if len(sizes) != 1:
        raise ArrayValueError(
            "vmap: the mapped axes have sizes {sizes}; pass arguments of one size, or axis_size if "
            "no argument is mapped",
            kind="array-shapes", sizes=tuple(sorted(sizes)),
        )
    return sizes.pop()


def _axes_of_leaves(prefix: Any, tree: Any, where: str) -> list[int | None]:
    """Return the axis of each leaf of a tree, from a tree that ends above the leaves."""
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(leaves_of(tree))
    is_alike = isinstance(prefix, dict | list | tuple) and isinstance(tree, dict | list | tuple)
    keys = range(len(tree)) if isinstance(tree, list | tuple) else tree
    if not is_alike or len(prefix) != len(tree) or (
        isinstance(prefix, dict) is not isinstance(tree, dict)
    ):
        raise ArrayTypeError(
            "{where}: axes {axes!r} do not match the structure of the values; pass a number, None, "
            "or a structure with an entry for each value",
            where=where, axes=prefix,
        )
    return [axis for key in keys for axis in _axes_of_leaves(prefix[key], tree[key], where)]
