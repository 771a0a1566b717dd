"""Per-axis access relations of operations, and evaluation of subregions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from typing import Any, NamedTuple, TypeAlias

from tecomp.array.graph.node import type_of
from tecomp.array.graph.pending import Step
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
    return _reads(op, operands, result)


def _repeat_accesses(shape: Shape, result: Shape) -> tuple[AxisAccess | None, ...]:
    more = len(result) - len(shape)
    return tuple([
        AxisAccess(axis + more) if n == result[axis + more] else None for axis, n
        in enumerate(shape)
    ])


def _access_along_axes(
    op: PTensorOp, xs: Sequence[PTensorType], axes: Sequence[int]
) -> AccessPattern:
    """Return accesses to all elements along some axes and to the same index along the others."""
    at = {axis % xs[0].rank for axis in axes}
    own = tuple([None if k in at else AxisAccess(k) for k in range(xs[0].rank)])
    return AccessPattern((own,) * len(xs), tuple(at))


def _renumber_axes(shape: Shape, axes: Mapping[int, int]) -> AccessPattern:
    """Return accesses to an operand whose axes are renumbered in, or missing from, the result."""
    return AccessPattern((tuple([
        AxisAccess(axes[axis]) if axis in axes else None for axis in range(len(shape))
    ]),))


@singledispatch
def _reads(op: PTensorOp, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return AccessPattern(tuple([(None,) * x.rank for x in xs]), tuple(range(result.rank)))


@_reads.register
def _(op: ExtractSlice, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return AccessPattern(
        (tuple([AxisAccess(k, step, first) for k, (first, step, _) in enumerate(op.slice)]),))


@_reads.register
def _(op: InsertSlice, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    steps = [step for _, step, _ in op.slice]
    part = tuple([
        AxisAccess(k, 1, -first) if step == 1 else None for k, (first, step, _)
        in enumerate(op.slice)
    ])
    own = tuple([AxisAccess(k) for k in range(result.rank)])
    return AccessPattern((own, part), tuple([k for k, step in enumerate(steps) if step != 1]))


@_reads.register
def _(op: BroadcastOp, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return AccessPattern((_repeat_accesses(xs[0].shape, result.shape),))


@_reads.register
def _(op: ExpandDims, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    kept = [axis for axis in range(result.rank) if axis not in op.axis]
    return _renumber_axes(xs[0].shape, dict(enumerate(kept)))


@_reads.register
def _(op: Squeeze, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    kept = [axis for axis in range(xs[0].rank) if axis not in op.axis]
    return _renumber_axes(xs[0].shape, {axis: k for k, axis in enumerate(kept)})


@_reads.register
def _(op: PermuteDims, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return _renumber_axes(xs[0].shape, {axis: k for k, axis in enumerate(op.axis)})


@_reads.register
def _(op: MatrixTranspose, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    outer = range(result.rank - 2)
    return _renumber_axes(xs[0].shape, {
        **{k: k for k in outer}, result.rank - 2: result.rank - 1, result.rank - 1: result.rank - 2
    })


@_reads.register
def _(op: Flip, xs: Sequence[PTensorType], result: PTensorType) -> AccessPattern:
    return AccessPattern((tuple([
        AxisAccess(k, -1, n - 1) if k in op.axis else AxisAccess(k) for k, n
        in enumerate(result.shape)
    ]),))


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
    own = tuple([AxisAccess(k + (k >= axis)) for k in range(xs[0].rank)])
    return AccessPattern((own,) * len(xs), (axis,))


@singledispatch
def restrict_to_region(op: PTensorOp, box: Box, given: Sequence[Box]) -> PTensorOp:
    """Return the operation that computes a box of the result from boxes of the operands.

    Args:
        op: Operation.
        box: Box of the result.
        given: Boxes of the operands that contain all elements that `box` needs.
    """
    return op


@restrict_to_region.register
def _(op: ExtractSlice, box: Box, given: Sequence[Box]) -> PTensorOp:
    return ExtractSlice(tuple([
        (first + step * low - start, step, end - low)
        for (first, step, _), (low, end), (start, _) in zip(op.slice, box, given[0], strict=True)
    ]))


@restrict_to_region.register
def _(op: InsertSlice, box: Box, given: Sequence[Box]) -> PTensorOp:
    return InsertSlice(tuple([
        (max(first - low, 0) if step == 1 else first, step, end - start)
        for (first, step, _), (low, _), (start, end) in zip(op.slice, box, given[1], strict=True)
    ]))


@restrict_to_region.register
def _(op: BroadcastOp, box: Box, given: Sequence[Box]) -> PTensorOp:
    return BroadcastOp(tuple([end - low for low, end in box]))


@restrict_to_region.register
def _(op: Reshape, box: Box, given: Sequence[Box]) -> PTensorOp:
    return replace(op, shape=tuple([end - low for low, end in box])) if given[0] == box else op


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
        behind = full_box(shape)[axis + 1 :]
        found += [(*box[:axis], span, *behind) for span in ((0, low), (end, n))]
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
        for op, places in self.steps:
            found.append(type_of(op, *[self.type(place, found) for place in places]))
        return found

    def type(self, place: int, types: Sequence[PTensorType]) -> PTensorType:
        """Return the type of an operand, given the types of all results."""
        return types[place] if place >= 0 else self.leaves[-1 - place]

    def reads(self, types: Sequence[PTensorType]) -> list[AccessPattern]:
        """Return the accesses of all operations."""
        return [
            access_pattern(op, [self.type(place, types) for place in places], types[k])
            for k, (op, places) in enumerate(self.steps)
        ]


def ready_regions(graph: OpGraph, given: Sequence[Box | None]) -> list[Box | None]:
    """Return for each result the box that depends only on given boxes of the leaves, or None.

    Args:
        graph: Operations.
        given: Box of each leaf, or None.
    """
    types = graph.types()
    found: list[Box | None] = []
    for (_, places), own, type in zip(graph.steps, graph.reads(types), types, strict=True):
        spans: list[Span] | None = list(full_box(type.shape))
        for place, along in zip(places, own.operands, strict=True):
            box = found[place] if place >= 0 else given[-1 - place]
            extents = graph.type(place, types).shape
            spans = _narrow_box(spans, along, box, extents, type.shape)
        if spans is not None and any(spans[k] != (0, type.shape[k]) for k in own.unsplit_axes):
            spans = None
        is_left = spans is not None and all(low < end for low, end in spans)
        found.append(tuple(spans) if spans is not None and is_left else None)
    return found


def _narrow_box(
    spans: list[Span] | None, along: Sequence[AxisAccess | None], box: Box | None, extents: Shape,
    shape: Shape,
) -> list[Span] | None:
    """Narrow the box of a result to the elements that need only a box of an operand."""
    if spans is None or box is None:
        return None
    spans = list(spans)
    for at, span, n in zip(along, box, extents, strict=True):
        if at is None:
            if span != (0, n):
                return None
            continue
        low, end = _result_span(at, span, n, shape[at.axis])
        spans[at.axis] = max(spans[at.axis][0], low), min(spans[at.axis][1], end)
    return spans


def _result_span(at: AxisAccess, span: Span, n: int, extent: int) -> Span:
    """Return the indices along an axis of the result that read only a span of an operand.

    An index that reads nothing, because the operand ends before it, is included.
    """
    (low, end), step = span, abs(at.step)
    if at.step < 0:
        first = (at.first - end) // step + 1 if end < n else 0
        return first, (at.first - low) // step + 1 if low > 0 else extent
    first = -((at.first - low) // step) if low > 0 else 0
    return first, -((at.first - end) // step) if end < n else extent


def _operand_box(along: Sequence[AxisAccess | None], box: Box, shape: Shape) -> Box:
    """Return the box of an operand that a box of the result reads."""
    found = []
    for at, n in zip(along, shape, strict=True):
        if at is None:
            found.append((0, n))
            continue
        low, last = (at.first + at.step * i for i in (box[at.axis][0], box[at.axis][1] - 1))
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
        return sum([type.size for type in self.types])


def restrict_to_regions(graph: OpGraph, wanted: Mapping[int, Box]) -> RegionGraph:
    """Return the operations that compute boxes of some results.

    Args:
        graph: Operations.
        wanted: Nonempty box of each required result, by position.
    """
    return _RegionBuilder(graph, wanted).built()


class _RegionBuilder:
    """Builder of the operations that compute boxes."""

    def __init__(self, graph: OpGraph, wanted: Mapping[int, Box]) -> None:
        self.graph, self.required_boxes = graph, wanted
        self.types = graph.types()
        self.reads = graph.reads(self.types)
        self.boxes = dict(wanted)
        for k in reversed(range(len(graph.steps))):
            if k in self.boxes:
                self._ask(k)
        self.number = {place: j for j, place in enumerate(k for k in self.boxes if k < 0)}
        self.steps: list[Step] = []
        self.operations: list[PTensorType] = []
        self.leaves = [
            self._shaped(graph.leaves[-1 - place], self.boxes[place]) for place in self.number
        ]
        self.places = {place: -1 - j for place, j in self.number.items()}

    def _ask(self, k: int) -> None:
        """Add the boxes of the operands that the box of a result reads."""
        box = list(self.boxes[k])
        for axis in self.reads[k].unsplit_axes:
            box[axis] = (0, self.types[k].shape[axis])
        self.boxes[k] = tuple(box)
        op, places = self.graph.steps[k]
        for place, need in zip(places, self._needs(k), strict=True):
            if isinstance(op, InsertSlice) and not size_of(need):
                continue  # the inserted part is outside the box
            before = self.boxes.get(place, need)
            self.boxes[place] = tuple([
                (min(a, b), max(c, d)) for (a, c), (b, d) in zip(before, need, strict=True)
            ])

    def _needs(self, k: int) -> list[Box]:
        return [
            _operand_box(along, self.boxes[k], self.graph.type(place, self.types).shape)
            for place, along in zip(self.graph.steps[k][1], self.reads[k].operands, strict=True)
        ]

    def built(self) -> RegionGraph:
        for k in range(len(self.graph.steps)):
            if k in self.boxes:
                self.places[k] = self._step(k)
        outputs = [(place, self._part(place, box)) for place, box in self.required_boxes.items()]
        graph = OpGraph(tuple(self.leaves), tuple(self.steps), tuple([own for _, own in outputs]))
        leaves = tuple([(-1 - place, index_of(self.boxes[place])) for place in self.number])
        boxes = tuple([(place, index_of(box)) for place, box in self.required_boxes.items()])
        return RegionGraph(graph, tuple(self.operations), leaves, boxes)

    def _step(self, k: int) -> int:
        op, places = self.graph.steps[k]
        needs = self._needs(k)
        if isinstance(op, InsertSlice) and not size_of(needs[1]):
            return self._part(places[0], needs[0])
        given = [self._part(place, need) for place, need in zip(places, needs, strict=True)]
        return self._add(restrict_to_region(op, self.boxes[k], needs), given)

    def _part(self, place: int, box: Box) -> int:
        """Return the position of a box of a computed value or leaf."""
        own = self.boxes[place]
        if own == box:
            return self.places[place]
        cut = tuple([
            (low - start, 1, end - low) for (low, end), (start, _) in zip(box, own, strict=True)
        ])
        return self._add(ExtractSlice(cut), [self.places[place]])

    def _add(self, op: PTensorOp, given: Sequence[int]) -> int:
        types = [self.operations[p] if p >= 0 else self.leaves[-1 - p] for p in given]
        type = type_of(op, *types)
        if isinstance(op, ExtractSlice) and type == types[0] and _keeps(op):
            return given[0]
        self.steps.append((op, tuple(given)))
        self.operations.append(type)
        return len(self.operations) - 1

    @staticmethod
    def _shaped(type: PTensorType, box: Box) -> PTensorType:
        return type.like(tuple([end - low for low, end in box]))


def _keeps(op: ExtractSlice) -> bool:
    """Return whether a slice of full length is the identity."""
    return all(first == 0 and (step == 1 or count < 2) for first, step, count in op.slice)
