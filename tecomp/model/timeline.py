"""When each resource of a core does what: nothing begins before what it takes data from has ended.

A statement inside of loops works while others in the same loops do: what one iteration has computed
is stored while the next is computed. So each activity is cut into slices, as iterations are; a
slice waits for the slices of the same iterations of what it takes data from, and for the one
before it. Where two statements share no loop, the second one waits for all of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """

    name: str
    resource: str
    cycles: float
    statement: int
    step: int
    after: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A slice of an activity: which activity, by its number, which slice, and when, in cycles."""

    activity: int
    slice: int
    start: float
    end: float


def timeline(activities: Sequence[Activity]) -> tuple[Event, ...]:
    """The slices of all activities of a core, in the order in which they begin.

    >>> load = Activity("A.lx", "link", 8.0, 0, 0)
    >>> add = Activity("B", "compute", 16.0, 1, 1, ((0, 8),))
    >>> [(event.activity, event.start) for event in timeline([load, add])][:4]
    [(0, 0.0), (0, 1.0), (1, 1.0), (0, 2.0)]
    """
    waits = [_waits(activities, k) for k in range(len(activities))]
    ends: dict[tuple[int, int], float] = {}
    following = [0] * len(activities)
    free: dict[str, float] = {}
    found: list[Event] = []
    while len(found) < SLICES * len(activities):
        best: tuple[float, int] | None = None
        for k, activity in enumerate(activities):
            piece = following[k]
            if piece == SLICES:
                continue
            needed = [ends.get(each) for each in waits[k][piece]]
            if None in needed:
                continue
            start = max([free.get(activity.resource, 0.0), *(n for n in needed if n is not None)])
            if best is None or start < best[0]:
                best = start, k
        assert best is not None  # statements wait for earlier ones only
        start, k = best
        end = start + activities[k].cycles / SLICES
        found.append(Event(k, following[k], start, end))
        ends[k, following[k]] = free[activities[k].resource] = end
        following[k] += 1
    return tuple(found)


def _waits(activities: Sequence[Activity], k: int) -> list[list[tuple[int, int]]]:
    """For each slice of an activity, the slices that have to end before."""
    activity = activities[k]
    iterations: Mapping[int, int] = dict(activity.after)
    found: list[list[tuple[int, int]]] = []
    for piece in range(SLICES):
        needed = [(k, piece - 1)] if piece else []
        for other, before in enumerate(activities):
            if before.statement == activity.statement and before.step < activity.step:
                needed.append((other, piece))
            elif before.statement in iterations and before.statement < activity.statement:
                needed.append((other, last_slice(piece, iterations[before.statement])))
        found.append(needed)
    return found


def last_slice(piece: int, iterations: int) -> int:
    """The last slice of a statement with iterations that slice `piece` of another has as well.

    >>> last_slice(2, 1), last_slice(2, 8), last_slice(2, 2)
    (7, 2, 3)
    """
    done = -(-(piece + 1) * iterations // SLICES)
    return -(-done * SLICES // iterations) - 1
