"""When each resource does what: nothing begins before what it takes data from has ended.

A statement inside of loops works while others in the same loops do: what one iteration has computed
is stored while the next is computed. So each activity is cut into slices, as iterations are; a
slice waits for the slices of the same iterations of what it takes data from, and for the one
before it. Where two statements share no loop, the second one waits for all of the first.

A core waits for what it does itself, and for what the chip does for all cores: memory that they
share, links to it. What other cores do it waits for where their data are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

SLICES = 8


@dataclass(frozen=True, slots=True)
class Activity:
    """What one statement does on one core, by the resource that it takes.

    Attributes:
        name: of the buffer that it writes, or of what it reads for a condition.
        resource: `compute`, a link, or a memory with a direction.
        cycles: that it takes of the resource.
        statement: number of the statement, in program order.
        step: of a statement: 0 reads, 1 computes, 2 writes.
        after: statements that it takes data from, each with the iterations of the loops
            that both are in.
        everywhere: those of them whose data may come from other cores.
    """

    name: str
    resource: str
    cycles: float
    statement: int
    step: int
    after: tuple[tuple[int, int], ...] = ()
    everywhere: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A slice of an activity: which activity, by its number, which slice, and when, in cycles."""

    activity: int
    slice: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Lane:
    """What one core does, or the chip for all of them, from `start` on."""

    activities: tuple[Activity, ...]
    start: float = 0.0


_Node = tuple[int, int, int]
"""A lane, an activity of it, and a slice."""


@dataclass(slots=True)
class _Group:
    """Slices that others wait for: how many have not ended, when the last did, and who waits."""

    left: int = 0
    end: float = 0.0
    waiting: list[_Node] = field(default_factory=list)


def timeline(activities: Sequence[Activity]) -> tuple[Event, ...]:
    """The slices of all activities of a core, in the order in which they begin.

    >>> load = Activity("A.lx", "link", 8.0, 0, 0)
    >>> add = Activity("B", "compute", 16.0, 1, 1, ((0, 8),))
    >>> [(event.activity, event.start) for event in timeline([load, add])][:4]
    [(0, 0.0), (0, 1.0), (1, 1.0), (0, 2.0)]
    """
    return timelines([Lane(tuple(activities))])[0]


def timelines(cores: Sequence[Lane], chip: Lane = Lane(())) -> list[tuple[Event, ...]]:
    """The slices of each core, and at last those of the chip, in the order in which they begin."""
    lanes = [*cores, chip]
    order = _Order(lanes)
    found: list[list[Event]] = [[] for _ in lanes]
    free: dict[tuple[int, str], float] = {}
    heap = [(order.ready[node], node) for node in order.nodes() if not order.pending[node]]
    heapify(heap)
    while heap:
        start, node = heappop(heap)
        lane, k, piece = node
        activity = lanes[lane].activities[k]
        begin = max(order.ready[node], free.get((lane, activity.resource), 0.0))
        if begin > start:
            heappush(heap, (begin, node))
            continue
        end = begin + activity.cycles / SLICES
        found[lane].append(Event(k, piece, begin, end))
        free[lane, activity.resource] = end
        for each in order.ended(node, end):
            heappush(heap, (order.ready[each], each))
    return [tuple(events) for events in found]


class _Order:
    """What each slice waits for.

    Attributes:
        pending: of each slice, how many groups have not ended.
        ready: of each slice, when the last of what it waits for ended.
    """

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._groups: dict[tuple[int | None, int, int, int], _Group] = {}
        self._steps: dict[tuple[int | None, int], set[int]] = {}
        self.pending: dict[_Node, int] = {}
        self.ready: dict[_Node, float] = {}
        for node in self.nodes():
            for key in self._keys(node):
                self._groups.setdefault(key, _Group()).left += 1
                self._steps.setdefault(key[:2], set()).add(key[2])
        for node in self.nodes():
            self.ready[node] = lanes[node[0]].start
            self.pending[node] = int(node[2] > 0)
            for group in self._waits(node):
                self.pending[node] += 1
                group.waiting.append(node)

    def nodes(self) -> Iterator[_Node]:
        """All slices."""
        for lane, each in enumerate(self._lanes):
            for k in range(len(each.activities)):
                for piece in range(SLICES):
                    yield lane, k, piece

    def ended(self, node: _Node, end: float) -> Iterator[_Node]:
        """Note that a slice has ended; the slices that wait for nothing more."""
        lane, k, piece = node
        if piece + 1 < SLICES:
            yield from self._released((lane, k, piece + 1), end)
        for key in self._keys(node):
            group = self._groups[key]
            group.left -= 1
            group.end = max(group.end, end)
            if not group.left:
                for each in group.waiting:
                    yield from self._released(each, group.end)

    def _released(self, node: _Node, end: float) -> Iterator[_Node]:
        self.pending[node] -= 1
        self.ready[node] = max(self.ready[node], end)
        if not self.pending[node]:
            yield node

    def _keys(self, node: _Node) -> Iterator[tuple[int | None, int, int, int]]:
        """The groups that a slice is in: that of its lane, and that of all lanes."""
        lane, k, piece = node
        activity = self._lanes[lane].activities[k]
        yield lane, activity.statement, activity.step, piece
        yield None, activity.statement, activity.step, piece

    def _waits(self, node: _Node) -> Iterator[_Group]:
        """The groups that have to end before a slice begins."""
        lane, k, piece = node
        activity = self._lanes[lane].activities[k]
        chip = len(self._lanes) - 1
        for statement, last in (
            (activity.statement, piece),
            *((each, last_slice(piece, count)) for each, count in activity.after
              if each < activity.statement),
        ):
            # The chip works for all cores.
            is_everywhere = lane == chip or statement in activity.everywhere
            for scope in ((None,) if is_everywhere else (lane, chip)):
                for step in sorted(self._steps.get((scope, statement), ())):
                    # What all cores share is read before it is moved to one of them.
                    is_moved = scope == chip != lane and step <= activity.step
                    if statement != activity.statement or step < activity.step or is_moved:
                        yield self._groups[scope, statement, step, last]


def last_slice(piece: int, iterations: int) -> int:
    """The last slice of a statement with iterations that slice `piece` of another has as well.

    >>> last_slice(2, 1), last_slice(2, 8), last_slice(2, 2)
    (7, 2, 3)
    """
    done = -(-(piece + 1) * iterations // SLICES)
    return -(-done * SLICES // iterations) - 1
