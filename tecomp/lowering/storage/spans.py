"""Places in a memory for what is needed for some time: beside each other where times meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from tecomp.ir.algebra.extents import round_up


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes that are needed from one step to another.

    Attributes:
        bytes: how many.
        step: what their place is a multiple of.
        first: the first step that needs them.
        last: the last one; before the first where none does.
    """

    bytes: int
    step: int
    first: int
    last: int


def places_of(spans: Sequence[Span]) -> list[int]:
    """The first byte of each span, the best of what a few orders give.

    No two share a byte that are needed at one step.

    >>> places_of([Span(8, 4, 0, 1), Span(6, 4, 1, 2), Span(8, 4, 2, 3)])
    [0, 8, 0]
    """
    orders: list[Callable[[int], tuple[int, ...]]] = [
        lambda k: (k,),
        lambda k: (-spans[k].bytes, k),
        lambda k: (spans[k].first - spans[k].last, -spans[k].bytes, k),
        lambda k: (spans[k].last, -spans[k].bytes, k),
    ]
    beside, least = _beside(spans), most_at_once(spans)
    best: tuple[int, list[int]] | None = None
    for order in orders:
        places = _first_fit(spans, beside, sorted(range(len(spans)), key=order))
        end = max((p + s.bytes for p, s in zip(places, spans, strict=True)), default=0)
        if best is None or end < best[0]:
            best = end, places
        if end == least:
            break
    return [] if best is None else best[1]


def most_at_once(spans: Sequence[Span]) -> int:
    """The most bytes that are needed at one step: no places take fewer.

    >>> most_at_once([Span(8, 4, 0, 1), Span(6, 4, 1, 2), Span(8, 4, 2, 3)])
    14
    """
    changes: dict[int, int] = {}
    for span in spans:
        if span.first <= span.last:
            changes[span.first] = changes.get(span.first, 0) + span.bytes
            changes[span.last + 1] = changes.get(span.last + 1, 0) - span.bytes
    most = now = 0
    for step in sorted(changes):
        now += changes[step]
        most = max(most, now)
    return most


def _beside(spans: Sequence[Span]) -> list[list[int]]:
    """For each span those that are needed at a step at which it is."""
    found: list[list[int]] = [[] for _ in spans]
    live: list[tuple[int, int]] = []
    for k in sorted(range(len(spans)), key=lambda k: spans[k].first):
        if spans[k].first > spans[k].last:
            continue
        while live and live[0][0] < spans[k].first:
            heappop(live)
        for _, other in live:
            found[k].append(other)
            found[other].append(k)
        heappush(live, (spans[k].last, k))
    return found


def _first_fit(
    spans: Sequence[Span], beside: Sequence[Sequence[int]], order: Sequence[int]
) -> list[int]:
    """Each span at the least place at which it overlaps with none that is needed with it."""
    places: dict[int, int] = {}
    for k in order:
        taken = sorted((places[o], places[o] + spans[o].bytes) for o in beside[k] if o in places)
        place = 0
        for start, end in taken:
            if place + spans[k].bytes <= start:
                break
            place = max(place, round_up(end, spans[k].step))
        places[k] = place
    return [places[k] for k in range(len(spans))]
