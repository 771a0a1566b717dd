"""Pending operations for boxes of their results: which are ready, and what computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from tecomp.array.graph.node import type_of
from tecomp.array.graph.pending import Step
from tecomp.array.graph.reads import Along, Box, Reads, Span, reads, within
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.indexing import ExtractSlice, InsertSlice
from tecomp.ptensor.types import PTensorType, Shape

Index: TypeAlias = tuple[Any, ...]


def whole(shape: Shape) -> Box:
    """All elements."""
    return tuple([(0, n) for n in shape])


def size_of(box: Box) -> int:
    """How many elements there are in a box."""
    return prod([end - low for low, end in box])


def index_of(box: Box) -> Index:
    """A box as one indexes arrays, with dots, so that what has no axes stays an array."""
    return (*[slice(low, end) for low, end in box], ...)


def around(box: Box, shape: Shape) -> list[Box]:
    """The boxes before and behind one along each axis: all else of a shape, each element once."""
    found: list[Box] = []
    for axis, ((low, end), n) in enumerate(zip(box, shape, strict=True)):
        behind = whole(shape)[axis + 1 :]
        found += [(*box[:axis], span, *behind) for span in ((0, low), (end, n))]
    return found


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations without their elements.

    Attributes:
        leaves: the types of what is given.
        steps: the operations, as pending ones are.
        outputs: the places of the results that are wanted.
    """

    leaves: tuple[PTensorType, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def types(self) -> list[PTensorType]:
        """The types of all results."""
        found: list[PTensorType] = []
        for op, places in self.steps:
            found.append(type_of(op, *[self.type(place, found) for place in places]))
        return found

    def type(self, place: int, types: Sequence[PTensorType]) -> PTensorType:
        """The type of an operand, of those of all results."""
        return types[place] if place >= 0 else self.leaves[-1 - place]

    def reads(self, types: Sequence[PTensorType]) -> list[Reads]:
        """What all operations read."""
        return [
            reads(op, [self.type(place, types) for place in places], types[k])
            for k, (op, places) in enumerate(self.steps)
        ]


def ready(graph: Graph, given: Sequence[Box | None]) -> list[Box | None]:
    """Of each result the elements that need only such elements of the leaves; None if none do.

    Args:
        graph: the operations.
        given: of each leaf a box, or None.
    """
    types = graph.types()
    found: list[Box | None] = []
    for (_, places), own, type in zip(graph.steps, graph.reads(types), types, strict=True):
        spans: list[Span] | None = list(whole(type.shape))
        for place, along in zip(places, own.operands, strict=True):
            box = found[place] if place >= 0 else given[-1 - place]
            extents = graph.type(place, types).shape
            spans = _narrowed(spans, along, box, extents, type.shape)
        if spans is not None and any(spans[k] != (0, type.shape[k]) for k in own.whole):
            spans = None
        is_left = spans is not None and all(low < end for low, end in spans)
        found.append(tuple(spans) if spans is not None and is_left else None)
    return found


def _narrowed(
    spans: list[Span] | None, along: Sequence[Along | None], box: Box | None, extents: Shape,
    shape: Shape,
) -> list[Span] | None:
    """What is left of a result, if an operand is ready in a box."""
    if spans is None or box is None:
        return None
    spans = list(spans)
    for at, span, n in zip(along, box, extents, strict=True):
        if at is None:
            if span != (0, n):
                return None
            continue
        low, end = _reached(at, span, n, shape[at.axis])
        spans[at.axis] = max(spans[at.axis][0], low), min(spans[at.axis][1], end)
    return spans


def _reached(at: Along, span: Span, n: int, extent: int) -> Span:
    """The indices along an axis of the result that read none outside of a span of an operand.

    An index that reads none at all, since the operand ends before it, is one of them.
    """
    (low, end), step = span, abs(at.step)
    if at.step < 0:
        first = (at.first - end) // step + 1 if end < n else 0
        return first, (at.first - low) // step + 1 if low > 0 else extent
    first = -((at.first - low) // step) if low > 0 else 0
    return first, -((at.first - end) // step) if end < n else extent


def _needed(along: Sequence[Along | None], box: Box, shape: Shape) -> Box:
    """What a box of a result needs of an operand."""
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
class Boxed:
    """Operations that compute boxes of results.

    Attributes:
        graph: the operations.
        types: of their results.
        leaves: of each of its leaves the number of a leaf of the whole, and the box of it.
        boxes: of each of its outputs the place in the whole, and the box there.
    """

    graph: Graph
    types: tuple[PTensorType, ...]
    leaves: tuple[tuple[int, Index], ...]
    boxes: tuple[tuple[int, Index], ...]

    @property
    def size(self) -> int:
        """How many elements are computed."""
        return sum([type.size for type in self.types])


def boxed(graph: Graph, wanted: Mapping[int, Box]) -> Boxed:
    """The operations that compute a box of some results.

    Args:
        graph: operations.
        wanted: the places of the results, and the box of each, which has elements.
    """
    return _Builder(graph, wanted).built()


class _Builder:
    """Operations of a graph, of which each computes a box."""

    def __init__(self, graph: Graph, wanted: Mapping[int, Box]) -> None:
        self.graph, self.wanted = graph, wanted
        self.types = graph.types()
        self.reads = graph.reads(self.types)
        self.boxes = dict(wanted)
        for k in reversed(range(len(graph.steps))):
            if k in self.boxes:
                self._ask(k)
        self.number = {place: j for j, place in enumerate(k for k in self.boxes if k < 0)}
        self.steps: list[Step] = []
        self.made: list[PTensorType] = []
        self.leaves = [
            self._shaped(graph.leaves[-1 - place], self.boxes[place]) for place in self.number
        ]
        self.places = {place: -1 - j for place, j in self.number.items()}

    def _ask(self, k: int) -> None:
        """What the box of a result needs of the operands."""
        box = list(self.boxes[k])
        for axis in self.reads[k].whole:
            box[axis] = (0, self.types[k].shape[axis])
        self.boxes[k] = tuple(box)
        op, places = self.graph.steps[k]
        for place, need in zip(places, self._needs(k), strict=True):
            if isinstance(op, InsertSlice) and not size_of(need):
                continue  # what is inserted is not in the box
            before = self.boxes.get(place, need)
            self.boxes[place] = tuple([
                (min(a, b), max(c, d)) for (a, c), (b, d) in zip(before, need, strict=True)
            ])

    def _needs(self, k: int) -> list[Box]:
        return [
            _needed(along, self.boxes[k], self.graph.type(place, self.types).shape)
            for place, along in zip(self.graph.steps[k][1], self.reads[k].operands, strict=True)
        ]

    def built(self) -> Boxed:
        for k in range(len(self.graph.steps)):
            if k in self.boxes:
                self.places[k] = self._step(k)
        outputs = [(place, self._part(place, box)) for place, box in self.wanted.items()]
        graph = Graph(tuple(self.leaves), tuple(self.steps), tuple([own for _, own in outputs]))
        leaves = tuple([(-1 - place, index_of(self.boxes[place])) for place in self.number])
        boxes = tuple([(place, index_of(box)) for place, box in self.wanted.items()])
        return Boxed(graph, tuple(self.made), leaves, boxes)

    def _step(self, k: int) -> int:
        op, places = self.graph.steps[k]
        needs = self._needs(k)
        if isinstance(op, InsertSlice) and not size_of(needs[1]):
            return self._part(places[0], needs[0])
        given = [self._part(place, need) for place, need in zip(places, needs, strict=True)]
        return self._add(within(op, self.boxes[k], needs), given)

    def _part(self, place: int, box: Box) -> int:
        """A box of what is computed or given."""
        own = self.boxes[place]
        if own == box:
            return self.places[place]
        cut = tuple([
            (low - start, 1, end - low) for (low, end), (start, _) in zip(box, own, strict=True)
        ])
        return self._add(ExtractSlice(cut), [self.places[place]])

    def _add(self, op: Operation, given: Sequence[int]) -> int:
        types = [self.made[p] if p >= 0 else self.leaves[-1 - p] for p in given]
        type = type_of(op, *types)
        if isinstance(op, ExtractSlice) and type == types[0] and _keeps(op):
            return given[0]
        self.steps.append((op, tuple(given)))
        self.made.append(type)
        return len(self.made) - 1

    @staticmethod
    def _shaped(type: PTensorType, box: Box) -> PTensorType:
        return type.like(tuple([end - low for low, end in box]))


def _keeps(op: ExtractSlice) -> bool:
    """Whether a slice as long as its operand is all of it, in order."""
    return all(first == 0 and (step == 1 or count < 2) for first, step, count in op.slice)
