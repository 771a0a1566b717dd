"""Per-axis access relations of operations, and evaluation of subregions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.node import type_of
from tecomp.array.graph.pending import Step
from tecomp.array.graph.views import view_of
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    PermuteDims,
    Reshape,
    Roll,
    Squeeze,
)
from tecomp.ptensor.operations.reduction import Cumulative, Diff
from tecomp.ptensor.types import PTensorType, Shape

Span: TypeAlias = tuple[int, int]
"""First index and end, excluded."""

Box: TypeAlias = tuple[Span, ...]
"""Index span along each axis."""


class AxisAccess(NamedTuple):
    """Affine access: operand index for index `i` along an axis of the result.

    Attributes:
        axis: Axis of the result.
        step: Factor in the operand index `first + step * i`.
        first: Offset in the operand index.
    """

    axis: int
    step: int = 1
    first: int = 0


class AccessPattern(NamedTuple):
    """Accesses of an operation to its operands.

    Attributes:
        operands: Access along each axis of each operand; None if any element of the result needs
            all indices along the axis.
        unsplit_axes: Axes of the result that can only be computed as a whole.
    """

    operands: tuple[tuple[AxisAccess | None, ...], ...]
    unsplit_axes: tuple[int, ...] = ()


def access_pattern(
    op: PTensorOp, operands: Sequence[PTensorType], result: PTensorType
) -> AccessPattern:
    """Return the accesses of an operation to its operands; whole operands if they are unknown."""
    if is_elementwise(op):
        return AccessPattern(tuple([_repeat_accesses(x.shape, result.shape) for x in operands]))
    if isinstance(op, _VIEWS):
        return AccessPattern((_view_accesses(op, operands[0].shape),))
    return _reads(op, operands, result)


_VIEWS = (BroadcastOp, ExpandDims, ExtractSlice, Flip, MatrixTranspose, PermuteDims, Squeeze)
"""Views in which each axis of the operand is at most one axis of the result."""
_ELEMENT = np.zeros(1, "int8")


def _view_accesses(op: PTensorOp, shape: Shape) -> tuple[AxisAccess | None, ...]:
    """Return the accesses of a view, from the view of memory with a stride along one axis only."""
    accesses: list[AxisAccess | None] = []
    for axis in range(len(shape)):
        strides = [int(k == axis) for k in range(len(shape))]
        data = as_strided(_ELEMENT, shape, strides, writeable=False)
        view = view_of(op, data)
        assert view is not None
        first = view.ctypes.data - data.ctypes.data
        found = [AxisAccess(k, step, first) for k, step in enumerate(view.strides) if step]
        # A new axis of size 1 has an arbitrary stride.
        accesses.append(max(found, key=lambda x: view.shape[x.axis] > 1, default=None))
    return tuple(accesses)


def _repeat_accesses(shape: Shape, result: Shape) -> tuple[AxisAccess | None, ...]:
    offset = len(result) - len(shape)
    return tuple([
        AxisAccess(axis + offset) if n == result[axis + offset] else None for axis, n
        in enumerate(shape)
    ])


def _access_along_axes(
    op: PTensorOp, xs: Sequence[PTensorType], axes: Sequence[int]
) -> AccessPattern:
    """Return accesses to all elements along some axes and to the same index along the others."""
    full_axes = {axis % xs[0].rank for axis in axes}
    accesses = tuple([None if k in full_axes else AxisAccess(k) for k in range(xs[0].rank)])
    return AccessPattern((accesses,) * len(xs), tuple(full_axes))


@singledispatch
def _reads(op: PTensorOp, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return AccessPattern(tuple([(None,) * x.rank for x in xs]), tuple(range(result.rank)))


@_reads.register
def _(op: InsertSlice, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    steps = [step for _, step, _ in op.slice]
    part = tuple([
        AxisAccess(k, 1, -first) if step == 1 else None for k, (first, step, _)
        in enumerate(op.slice)
    ])
    accesses = tuple([AxisAccess(k) for k in range(result.rank)])
    return AccessPattern((accesses, part), tuple([k for k, step in enumerate(steps) if step != 1]))


@_reads.register
def _(op: Reshape, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    if op.shape == xs[0].shape:
        return _access_along_axes(op, xs, ())
    return AccessPattern(((None,) * xs[0].rank,), tuple(range(result.rank)))


@_reads.register
def _(op: Roll, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return _access_along_axes(op, xs, op.axis)


@_reads.register
def _(op: Cumulative, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return _access_along_axes(op, xs, (op.axis,))


@_reads.register
def _(op: Diff, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return _access_along_axes(op, xs, (op.axis,))


@_reads.register
def _(op: Combine, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    if op.kind == "concat":
        return _access_along_axes(op, xs, (op.axis,))
    axis = op.axis % result.rank
    accesses = tuple([AxisAccess(k + (k >= axis)) for k in range(xs[0].rank)])
    return AccessPattern((accesses,) * len(xs), (axis,))


@singledispatch
def restrict_to_region(op: PTensorOp, box: Box, boxes: Sequence[Box]) -> PTensorOp:
    """Return the operation that computes a box of the result from boxes of the operands.

    Args:
        op: Operation.
        box: Box of the result.
        boxes: Boxes of the operands that contain all elements that `box` needs.
    """
    return op


@restrict_to_region.register
def _(op: ExtractSlice, box: Box, boxes: Sequence[Box]) -> PTensorOp:
    return ExtractSlice(tuple([
        (first + step * low - start, step, end - low)
        for (first, step, _), (low, end), (start, _) in zip(op.slice, box, boxes[0], strict=True)
    ]))


@restrict_to_region.register
def _(op: InsertSlice, box: Box, boxes: Sequence[Box]) -> PTensorOp:
    return InsertSlice(tuple([
        (max(first - low, 0) if step == 1 else first, step, end - start)
        for (first, step, _), (low, _), (start, end) in zip(op.slice, box, boxes[1], strict=True)
    ]))


@restrict_to_region.register
def _(op: BroadcastOp, box: Box, boxes: Sequence[Box]) -> PTensorOp:
    return BroadcastOp(tuple([end - low for low, end in box]))


@restrict_to_region.register
def _(op: Reshape, box: Box, boxes: Sequence[Box]) -> PTensorOp:
    return replace(op, shape=tuple([end - low for low, end in box])) if boxes[0] == box else op


Index: TypeAlias = tuple[Any, ...]


def full_box(shape: Shape) -> Box:
    """Return the box of all elements."""
    return tuple([(0, n) for n in shape])


def size_of(box: Box) -> int:
    """Return the number of elements of a box."""
    return prod([end - low for low, end in box])


def index_of(box: Box) -> Index:
    """Return a box as an index, with `...`, so that an array without axes stays an array."""
    return (*[slice(low, end) for low, end in box], ...)


def complement_boxes(box: Box, shape: Shape) -> list[Box]:
    """Return disjoint boxes that cover all elements outside a box."""
    found: list[Box] = []
    for axis, ((low, end), n) in enumerate(zip(box, shape, strict=True)):
        trailing = full_box(shape)[axis + 1 :]
        found += [(*box[:axis], span, *trailing) for span in ((0, low), (end, n))]
    return found


@dataclass(frozen=True, slots=True)
class OpGraph:
    """Operations without their elements.

    Attributes:
        leaves: Types of the inputs.
        steps: Operations, as in `Pending`.
        outputs: Positions of the required results.
    """

    leaves: tuple[PTensorType, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def types(self) -> list[PTensorType]:
        """Return the types of all results."""
        found: list[PTensorType] = []
        for op, positions in self.steps:
            found.append(type_of(op, *[self.type(position, found) for position in positions]))
        return found

    def type(self, position: int, types: Sequence[PTensorType]) -> PTensorType:
        """Return the type of an operand, given the types of all results."""
        return types[position] if position >= 0 else self.leaves[-1 - position]

    def reads(self, types: Sequence[PTensorType]) -> list[AccessPattern]:
        """Return the accesses of all operations."""
        return [
            access_pattern(op, [self.type(position, types) for position in positions], types[k])
            for k, (op, positions) in enumerate(self.steps)
        ]


def ready_regions(graph: OpGraph, leaf_boxes: Sequence[Box | None]) -> list[Box | None]:
    """Return for each result the box that depends only on given boxes of the leaves, or None.

    Args:
        graph: Operations.
        leaf_boxes: Box of each leaf, or None.
    """
    types = graph.types()
    found: list[Box | None] = []
    for (_, positions), pattern, ptype in zip(graph.steps, graph.reads(types), types, strict=True):
        spans: list[Span] | None = list(full_box(ptype.shape))
        for position, reads in zip(positions, pattern.operands, strict=True):
            box = found[position] if position >= 0 else leaf_boxes[-1 - position]
            extents = graph.type(position, types).shape
            spans = _narrow_box(spans, reads, box, extents, ptype.shape)
        if spans is not None and any(spans[k] != (0, ptype.shape[k]) for k in pattern.unsplit_axes):
            spans = None
        is_nonempty = spans is not None and all(low < end for low, end in spans)
        found.append(tuple(spans) if spans is not None and is_nonempty else None)
    return found


def _narrow_box(
    spans: list[Span] | None, reads: Sequence[AxisAccess | None], box: Box | None, extents: Shape,
    shape: Shape,
) -> list[Span] | None:
    """Narrow the box of a result to the elements that need only a box of an operand."""
    if spans is None or box is None:
        return None
    spans = list(spans)
    for read, span, n in zip(reads, box, extents, strict=True):
        if read is None:
            if span != (0, n):
                return None
            continue
        low, end = _result_span(read, span, n, shape[read.axis])
        spans[read.axis] = max(spans[read.axis][0], low), min(spans[read.axis][1], end)
    return spans


def _result_span(read: AxisAccess, span: Span, n: int, extent: int) -> Span:
    """Return the indices along an axis of the result that read only a span of an operand.

    An index that reads nothing, because the operand ends before it, is included.
    """
    (low, end), step = span, abs(read.step)
    if read.step < 0:
        first = (read.first - end) // step + 1 if end < n else 0
        return first, (read.first - low) // step + 1 if low > 0 else extent
    first = -((read.first - low) // step) if low > 0 else 0
    return first, -((read.first - end) // step) if end < n else extent


def _operand_box(reads: Sequence[AxisAccess | None], box: Box, shape: Shape) -> Box:
    """Return the box of an operand that a box of the result reads."""
    found = []
    for read, n in zip(reads, shape, strict=True):
        if read is None:
            found.append((0, n))
            continue
        low, last = (read.first + read.step * i for i in (box[read.axis][0], box[read.axis][1] - 1))
        first, end = min(low, last), max(low, last) + 1
        found.append((min(max(first, 0), n), max(min(end, n), 0)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RegionGraph:
    """Operations that compute boxes of results.

    Attributes:
        graph: Operations.
        types: Types of their results.
        leaves: For each leaf, the number of a leaf of the full graph and the box of it.
        boxes: For each output, the position in the full graph and the box of it.
    """

    graph: OpGraph
    types: tuple[PTensorType, ...]
    leaves: tuple[tuple[int, Index], ...]
    boxes: tuple[tuple[int, Index], ...]

    @property
    def size(self) -> int:
        """Number of computed elements."""
        return sum([ptype.size for ptype in self.types])


def restrict_to_regions(graph: OpGraph, required: Mapping[int, Box]) -> RegionGraph:
    """Return the operations that compute boxes of some results.

    Args:
        graph: Operations.
        required: Nonempty box of each required result, by position.
    """
    return _RegionBuilder(graph, required).built()


class _RegionBuilder:
    """Builder of the operations that compute boxes."""

    def __init__(self, graph: OpGraph, required: Mapping[int, Box]) -> None:
        self.graph, self.required_boxes = graph, required
        self.types = graph.types()
        self.reads = graph.reads(self.types)
        self.boxes = dict(required)
        for k in reversed(range(len(graph.steps))):
            if k in self.boxes:
                self._ask(k)
        self.number = {index: j for j, index in enumerate(k for k in self.boxes if k < 0)}
        self.steps: list[Step] = []
        self.operations: list[PTensorType] = []
        self.leaves = [
            self._shaped(graph.leaves[-1 - index], self.boxes[index]) for index in self.number
        ]
        self.places = {index: -1 - j for index, j in self.number.items()}

    def _ask(self, k: int) -> None:
        """Add the boxes of the operands that the box of a result reads."""
        box = list(self.boxes[k])
        for axis in self.reads[k].unsplit_axes:
            box[axis] = (0, self.types[k].shape[axis])
        self.boxes[k] = tuple(box)
        op, indices = self.graph.steps[k]
        for index, needed in zip(indices, self._needs(k), strict=True):
            if isinstance(op, InsertSlice) and not size_of(needed):
                continue  # the inserted part is outside the box
            before = self.boxes.get(index, needed)
            self.boxes[index] = tuple([
                (min(a, b), max(c, d)) for (a, c), (b, d) in zip(before, needed, strict=True)
            ])

    def _needs(self, k: int) -> list[Box]:
        return [
            _operand_box(reads, self.boxes[k], self.graph.type(index, self.types).shape)
            for index, reads in zip(self.graph.steps[k][1], self.reads[k].operands, strict=True)
        ]

    def built(self) -> RegionGraph:
        for k in range(len(self.graph.steps)):
            if k in self.boxes:
                self.places[k] = self._step(k)
        outputs = [(index, self._part(index, box)) for index, box in self.required_boxes.items()]
        graph = OpGraph(tuple(self.leaves), tuple(self.steps), tuple([part for _, part in outputs]))
        leaves = tuple([(-1 - index, index_of(self.boxes[index])) for index in self.number])
        boxes = tuple([(index, index_of(box)) for index, box in self.required_boxes.items()])
        return RegionGraph(graph, tuple(self.operations), leaves, boxes)

    def _step(self, k: int) -> int:
        op, indices = self.graph.steps[k]
        needs = self._needs(k)
        if isinstance(op, InsertSlice) and not size_of(needs[1]):
            return self._part(indices[0], needs[0])
        operands = [self._part(index, needed) for index, needed in zip(indices, needs, strict=True)]
        return self._add(restrict_to_region(op, self.boxes[k], needs), operands)

    def _part(self, index: int, box: Box) -> int:
        """Return the position of a box of a computed value or leaf."""
        stored = self.boxes[index]
        if stored == box:
            return self.places[index]
        cut = tuple([
            (low - start, 1, end - low) for (low, end), (start, _) in zip(box, stored, strict=True)
        ])
        return self._add(ExtractSlice(cut), [self.places[index]])

    def _add(self, op: PTensorOp, operands: Sequence[int]) -> int:
        types = [self.operations[p] if p >= 0 else self.leaves[-1 - p] for p in operands]
        ptype = type_of(op, *types)
        if isinstance(op, ExtractSlice) and ptype == types[0] and _keeps(op):
            return operands[0]
        self.steps.append((op, tuple(operands)))
        self.operations.append(ptype)
        return len(self.operations) - 1

    @staticmethod
    def _shaped(ptype: PTensorType, box: Box) -> PTensorType:
        return ptype.like(tuple([end - low for low, end in box]))


def _keeps(op: ExtractSlice) -> bool:
    """Return whether a slice of full length is the identity."""
    return all(first == 0 and (step == 1 or count < 2) for first, step, count in op.slice)
