"""Decompose operations into primitives with shape-polymorphic kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tecomp.array.graph.centered_reductions import expand_centered
from tecomp.array.graph.node import Buffer, Node, materialized_node, type_of
from tecomp.array.graph.pending import PendingGraph, Step
from tecomp.array.graph.views import apply_view_chain, is_view
from tecomp.array.kernels.anchor_kernels import ContractionCore
from tecomp.operations.reductions import COMBINERS, REDUCTIONS
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.creation import ExtractTriangle
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp, WhereOp
from tecomp.ptensor.operations.linear_algebra import (
    Diagonal,
    MatMul,
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
    InsertSlice,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    TileOp,
)
from tecomp.ptensor.operations.reduction import Cumulative, Diff, FindIndex, ReduceOp
from tecomp.ptensor.types import (
    COMPLEX,
    PTensorType,
    Shape,
    axis_of,
    broadcast_shapes,
    numpy_dtype,
)


def decompose(work: PendingGraph) -> PendingGraph:
    """Decompose operations into fewer kinds of operations, with the same results in order.

    The decomposition may add leaves with constants.
    """
    builder = _Decomposer(list(work.leaves))
    positions: list[int] = []
    for op, operands in work.steps:
        positions.append(builder.add(op, *[positions[p] if p >= 0 else p for p in operands]))
    # A result that is a leaf or a view of a leaf is copied to its own memory.
    outputs = tuple([
        builder.plain(CastOp(builder.type(position).dtype), position) if builder.is_given(position)
        else position
        for position in [positions[p] for p in work.outputs]
    ])
    return PendingGraph(builder.leaves, builder.nodes, tuple(builder.steps), outputs)


class _Decomposer:
    """Builder of a sequence of operations."""

    def __init__(self, leaves: list[Node]) -> None:
        self.leaves = leaves
        self.nodes: list[Node] = []
        self.steps: list[Step] = []
        self.known: dict[Step, int] = {}

    def type(self, operand: int) -> PTensorType:
        """Return the type of an operand."""
        return (self.nodes[operand] if operand >= 0 else self.leaves[-1 - operand]).type

    def add(self, op: PTensorOp, *operands: int) -> int:
        """Add an operation, decomposed if a rule applies, and return the position of its result."""
        rule = _RULES.get(type(op))
        if rule is not None:
            found: int | None = rule(self, op, *operands)
            if found is not None:
                return found
        return self.plain(op, *operands)

    def plain(self, op: PTensorOp, *operands: int) -> int:
        """Add an operation without decomposition; equal operations are added once."""
        if (op, operands) in self.known:
            return self.known[op, operands]
        self.nodes.append(Node(type_of(op, *map(self.type, operands)), None, (), None, 0, 0))
        self.steps.append((op, operands))
        self.known[op, operands] = len(self.steps) - 1
        return len(self.steps) - 1

    def is_given(self, operand: int) -> bool:
        """Return whether an operand is a leaf or a view of a leaf, not a copy."""
        chain: list[PTensorOp] = []
        while operand >= 0 and is_view(self.steps[operand][0]):
            op, (operand,) = self.steps[operand]
            chain.append(op)
        if operand >= 0:
            return False
        # A reshape that is not a view copies; if it is the last operation, the result is a copy.
        data = self.leaves[-1 - operand].data
        last = chain[:1]
        before = apply_view_chain(chain[:0:-1], data)
        return before is None or apply_view_chain(last, before) is not None

    def cast(self, operand: int, dtype: str) -> int:
        """Cast an operand to a dtype if necessary."""
        return operand if self.type(operand).dtype == dtype else self.plain(CastOp(dtype), operand)

    def spread(self, operand: int, new: Sequence[int], shape: Shape) -> int:
        """Insert new axes in an operand and broadcast it to a shape."""
        if new:
            operand = self.plain(ExpandDims(tuple(new)), operand)
        if self.type(operand).shape != shape:
            operand = self.plain(BroadcastOp(shape), operand)
        return operand

    def part(self, operand: int, axis: int, first: int, count: int) -> int:
        """Return a range of elements along an axis."""
        shape = self.type(operand).shape
        key = tuple([(first, 1, count) if k == axis else (0, 1, n) for k, n in enumerate(shape)])
        return self.plain(ExtractSlice(key), operand)

    def constant(self, data: Buffer, template: PTensorType) -> int:
        """Add a constant leaf and return its position."""
        self.leaves.append(materialized_node(data, template.like(data.shape, data.dtype.name)))
        return -len(self.leaves)

    def product(self, pair: Sequence[int], axis: tuple[int, ...]) -> int | None:
        """Multiply two operands of one shape and sum the products along axes."""
        return self.plain(ContractionCore(axis), *pair)


def _matmul(b: _Decomposer, op: MatMul, x: int, y: int) -> int | None:
    result = type_of(op, b.type(x), b.type(y))
    if result.dtype in COMPLEX:
        return None
    x, y = b.cast(x, result.dtype), b.cast(y, result.dtype)
    x_shape, y_shape = b.type(x).shape, b.type(y).shape
    outer = broadcast_shapes([x_shape[:-2], y_shape[:-2]], op.name)
    rows, columns = x_shape[-2:-1], y_shape[-1:] if len(y_shape) > 1 else ()
    shape = (*outer, *rows, x_shape[-1], *columns)
    pair = b.spread(x, [len(x_shape)] if columns else [], shape), b.spread(
        y, [len(y_shape) - 2] if rows and columns else [0] if rows else [], shape)
    return b.product(pair, (len(outer) + len(rows),))


def _vecdot(b: _Decomposer, op: VecDot, x: int, y: int) -> int | None:
    result = type_of(op, b.type(x), b.type(y))
    if result.dtype in COMPLEX:
        return None
    pair = [b.cast(operand, result.dtype) for operand in (x, y)]
    shape = broadcast_shapes([b.type(operand).shape for operand in pair], op.name)
    return b.product([b.spread(operand, [], shape) for operand in pair], (len(shape) + op.axis,))


def _tensordot(b: _Decomposer, op: TensorDot, x: int, y: int) -> int | None:
    result = type_of(op, b.type(x), b.type(y))
    if result.dtype in COMPLEX:
        return None
    first, second = (list(axes) for axes in op.places(b.type(x), b.type(y)))
    x, y = b.cast(x, result.dtype), b.cast(y, result.dtype)
    free = [k for k in range(b.type(x).rank) if k not in first]
    other = [k for k in range(b.type(y).rank) if k not in second]
    x, y = _permute(b, x, [*free, *first]), _permute(b, y, [*second, *other])
    shape = (*b.type(x).shape, *b.type(y).shape[len(second) :])
    rank = len(shape)
    reduced_axes = tuple(range(len(free), len(free) + len(first)))
    pair = b.spread(x, range(b.type(x).rank, rank), shape), b.spread(y, range(len(free)), shape)
    return b.product(pair, reduced_axes)


def _permute(b: _Decomposer, operand: int, order: list[int]) -> int:
    return operand if order == sorted(order) else b.plain(PermuteDims(tuple(order)), operand)


def _outer(b: _Decomposer, op: Outer, x: int, y: int) -> int:
    return b.plain(FUNCTIONS["multiply"], b.spread(x, [1], (b.type(x).size, 1)), y)


def _trace(b: _Decomposer, op: TraceOp, x: int) -> int:
    return b.plain(ReduceOp("sum", (b.type(x).rank - 2,), dtype=op.dtype),
                   b.plain(Diagonal(op.offset), x))


def _centered(b: _Decomposer, op: ReduceOp, x: int) -> int | None:
    """Expand a reduction of terms, such as the variance around the mean."""
    ptype = b.type(x)
    if op.row.term is None or ptype.dtype in COMPLEX:
        return None
    if op.row.center and REDUCTIONS[op.row.center].needs_elements and not ptype.size:
        return None
    result: int = expand_centered(
        op, ptype, x, b.plain, lambda data: b.constant(data, ptype),
        lambda wide, axes: _center(b, op.row.center, wide, axes))
    return result


def _center(b: _Decomposer, kind: str, x: int, axes: tuple[int, ...]) -> int:
    """Return the centers with kept axes, reshaped from those without these axes if available."""
    for axis in (axes, *([None] if len(axes) == b.type(x).rank else [])):
        known = b.known.get((ReduceOp(kind, axis), (x,)))
        if known is not None and axes:
            return b.plain(ExpandDims(axes), known)
    return b.plain(ReduceOp(kind, axes, keepdims=True), x)


def _diff(b: _Decomposer, op: Diff, x: int) -> int | None:
    axis = axis_of(op.axis, b.type(x).rank, op.name)
    count = b.type(x).shape[axis] - 1
    if count < 0:
        return None
    return b.plain(FUNCTIONS["subtract"], b.part(x, axis, 1, count), b.part(x, axis, 0, count))


def _find(b: _Decomposer, op: FindIndex, x: int) -> int | None:
    ptype = b.type(x)
    if op.axis is not None or ptype.rank < 1 + op.keepdims:
        return None
    result = b.plain(Reshape((ptype.size,)), x) if ptype.rank > 1 else x
    result = b.plain(replace(op, axis=0, keepdims=False), result)
    return b.plain(Reshape((1,) * ptype.rank), result) if op.keepdims else result


def _decompose_cumulative(b: _Decomposer, op: Cumulative, x: int) -> int | None:
    if not op.include_initial:
        return None
    result = b.plain(replace(op, include_initial=False), x)
    ptype = b.type(result)
    axis = axis_of(op.axis, ptype.rank, op.where)
    shape = tuple([1 if k == axis else n for k, n in enumerate(ptype.shape)])
    number = np.array(COMBINERS[op.kind].identity, numpy_dtype(ptype.dtype))
    first = b.constant(np.broadcast_to(number, shape), ptype)
    return b.plain(Combine("concat", axis), first, result)


def _combine(b: _Decomposer, op: Combine, *operands: int) -> int:
    result = type_of(op, *map(b.type, operands))
    axis = axis_of(op.axis, result.rank, op.where)
    converted = [b.cast(operand, result.dtype) for operand in operands]
    if op.kind == "stack":
        converted = [b.plain(ExpandDims((axis,)), operand) for operand in converted]
    return b.plain(Combine("concat", axis), *converted)


def _roll(b: _Decomposer, op: Roll, x: int) -> int:
    for shift, axis in zip(op.shift, op.axis, strict=True):
        axis = axis_of(axis, b.type(x).rank, op.name)
        extent = b.type(x).shape[axis]
        offset = shift % extent if extent else 0
        if offset:
            ends = b.part(x, axis, extent - offset, offset), b.part(x, axis, 0, extent - offset)
            x = b.plain(Combine("concat", axis), *ends)
    return x


def _repeat(b: _Decomposer, op: Repeat, x: int) -> int:
    shape = type_of(op, b.type(x)).shape
    axis = axis_of(op.axis, len(shape), op.name)
    x_shape = b.type(x).shape
    repeated = b.spread(x, [axis + 1], (*x_shape[: axis + 1], op.repeats, *x_shape[axis + 1 :]))
    return b.plain(Reshape(shape), repeated)


def _tile(b: _Decomposer, op: TileOp, x: int) -> int:
    ptype = b.type(x)
    rank = max(ptype.rank, len(op.repetitions))
    counts = (1,) * (rank - len(op.repetitions)) + op.repetitions
    extents = (1,) * (rank - ptype.rank) + ptype.shape
    if rank > ptype.rank:
        x = b.plain(ExpandDims(tuple(range(rank - ptype.rank))), x)
    shape = tuple([n for pair in zip(counts, extents, strict=True) for n in pair])
    return b.plain(Reshape(type_of(op, ptype).shape), b.spread(x, range(0, 2 * rank, 2), shape))


def _triangle(b: _Decomposer, op: ExtractTriangle, x: int) -> int:
    """Select elements by comparing row and column numbers; other elements are 0."""
    ptype = b.type(x)
    rows, columns = (np.arange(n) for n in ptype.shape[-2:])
    pair = [b.constant(np.broadcast_to(k, ptype.shape), ptype) for k in (
        rows[:, None] + op.k, columns)]
    kind = "greater_equal" if op.kind == "lower" else "less_equal"
    zero = b.constant(np.zeros((), numpy_dtype(ptype.dtype)), ptype)
    return b.plain(WhereOp(), b.plain(FUNCTIONS[kind], *pair), x, zero)


def _insert(b: _Decomposer, op: InsertSlice, target: int, part: int) -> int:
    return b.plain(op, target, b.cast(part, b.type(target).dtype))


_RULES: Mapping[Any, Callable[..., int | None]] = {
    Combine: _combine, Cumulative: _decompose_cumulative, Diff: _diff, FindIndex: _find,
    ExtractTriangle: _triangle, InsertSlice: _insert, MatMul: _matmul, Outer: _outer,
    ReduceOp: _centered, Repeat: _repeat, Roll: _roll, TensorDot: _tensordot, TileOp: _tile,
    TraceOp: _trace, VecDot: _vecdot,
}
