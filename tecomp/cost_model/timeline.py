"""Schedule the activities of all resources subject to data dependences.

Statements in a common loop overlap: the result of one iteration is stored while the next iteration
is computed. Therefore each activity is split into slices, as groups of iterations. A slice waits
for the slices of the same iterations that it depends on, and for the previous slice of its
activity. A statement without a common loop waits for the end of the statements it depends on.

A core waits for its own activities and for those of shared resources, such as memory and links
shared by all cores. It waits for other cores only where it reads their data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

SLICES = 8
"""Number of slices of each activity."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Use of one resource by one step of a statement on one core.

    Attributes:
        name: Name of the buffer that the statement writes, or that it reads for a condition.
        resource: `compute`, a link, or a memory with a direction.
        cycles: Busy cycles of the resource.
        statement: Number of the statement, in program order.
        step: Step of the statement: 0 reads, 1 computes, 2 writes.
        dependences: Statements that this one depends on, each with the number of iterations of the
            common loops.
        everywhere: Statements among these whose data may come from other cores.
    """

    name: str
    resource: str
    cycles: float
    statement: int
    step: int
    dependences: tuple[tuple[int, int], ...] = ()
    everywhere: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Slice of an activity, with the positions of both, and start and end in cycles."""

    activity: int
    slice: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """Activities of one core, or of the shared resources, and the cycle at which they may start."""

    activities: tuple[Activity, ...]
    start: float = 0.0


_Node = tuple[int, int, int]
"""Lane, activity within the lane, and slice."""


@dataclass(slots=True)
class _Join:
    """Set of slices that others wait for: number left, end of the last one, and waiting slices."""

    remaining: int = 0
    end: float = 0.0
    waiting: list[_Node] = field(default_factory=list)


def timeline(activities: Sequence[Activity]) -> tuple[Event, ...]:
    """Return the slices of all activities of a core, in the order of their start.

    >>> load = Activity("A.lx", "link", 8.0, 0, 0)
    >>> add = Activity("B", "compute", 16.0, 1, 1, ((0, 8),))
    >>> [(event.activity, event.start) for event in timeline([load, add])][:4]
    [(0, 0.0), (0, 1.0), (1, 1.0), (0, 2.0)]
    """
    return timelines([TimelineLane(tuple(activities))])[0]


def timelines(cores: Sequence[TimelineLane], chip: TimelineLane = TimelineLane(())) -> list[
        tuple[Event, ...]]:
    """Return the slices of each core, then of the chip, in the order of their start."""
    lanes = [*cores, chip]
    order = _DependenceGraph(lanes)
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
        for next_node in order.finish_slice(node, end):
            heappush(heap, (order.ready[next_node], next_node))
    return [tuple(events) for events in found]


class _DependenceGraph:
    """Dependence graph of the slices.

    Attributes:
        pending: Number of unfinished dependences of each slice.
        ready: Time at which the last finished dependence of each slice ended.
    """

    def __init__(self, lanes: Sequence[TimelineLane]) -> None:
        self._lanes = lanes
        self._groups: dict[tuple[int | None, int, int, int], _Join] = {}
        self._steps: dict[tuple[int | None, int], set[int]] = {}
        self.pending: dict[_Node, int] = {}
        self.ready: dict[_Node, float] = {}
        for node in self.nodes():
            for key in self._keys(node):
                self._groups.setdefault(key, _Join()).remaining += 1
                self._steps.setdefault(key[:2], set()).add(key[2])
        for node in self.nodes():
            self.ready[node] = lanes[node[0]].start
            self.pending[node] = int(node[2] > 0)
            for group in self._waits(node):
                self.pending[node] += 1
                group.waiting.append(node)

    def nodes(self) -> Iterator[_Node]:
        """Yield all slices."""
        for lane, row in enumerate(self._lanes):
            for k in range(len(row.activities)):
                for piece in range(SLICES):
                    yield lane, k, piece

    def finish_slice(self, node: _Node, end: float) -> Iterator[_Node]:
        """Record the end of a slice and yield the slices that became ready."""
        lane, k, piece = node
        if piece + 1 < SLICES:
            yield from self._released((lane, k, piece + 1), end)
        for key in self._keys(node):
            group = self._groups[key]
            group.remaining -= 1
            group.end = max(group.end, end)
            if not group.remaining:
                for waiter in group.waiting:
                    yield from self._released(waiter, group.end)

    def _released(self, node: _Node, end: float) -> Iterator[_Node]:
        self.pending[node] -= 1
        self.ready[node] = max(self.ready[node], end)
        if not self.pending[node]:
            yield node

    def _keys(self, node: _Node) -> Iterator[tuple[int | None, int, int, int]]:
        """Yield the groups of a slice: the group of its lane, and the group over all lanes."""
        lane, k, piece = node
        activity = self._lanes[lane].activities[k]
        yield lane, activity.statement, activity.step, piece
        yield None, activity.statement, activity.step, piece

    def _waits(self, node: _Node) -> Iterator[_Join]:
        """Yield the groups that must end before a slice starts."""
        lane, k, piece = node
        activity = self._lanes[lane].activities[k]
        chip = len(self._lanes) - 1
        for statement, last in (
            (activity.statement, piece),
            *((writer, last_slice(piece, count)) for writer, count in activity.dependences
              if writer < activity.statement),
        ):
            # A shared resource serves all cores.
            is_everywhere = lane == chip or statement in activity.everywhere
            for scope in ((None,) if is_everywhere else (lane, chip)):
                for step in sorted(self._steps.get((scope, statement), ())):
                    # Shared buffers are read before their data move to a single core.
                    is_moved = scope == chip != lane and step <= activity.step
                    if statement != activity.statement or step < activity.step or is_moved:
                        yield self._groups[scope, statement, step, last]


def last_slice(piece: int, iterations: int) -> int:
    """Return the last slice of a statement that shares an iteration with slice `piece` of another.

    >>> last_slice(2, 1), last_slice(2, 8), last_slice(2, 2)
    (7, 2, 3)
    """
    done = -(-(piece + 1) * iterations // SLICES)
    return -(-done * SLICES // iterations) - 1
