"""Lines beside rows: from what makes a thing to what takes it, none on another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from tecomp.drawing.canvas import Canvas

_LANE = 13.0
_MOST = 40
"""Lanes; lines that find no room in these share the last."""

T = TypeVar("T", bound=Hashable)


def lanes_of(lives: Mapping[T, tuple[int, int]]) -> dict[T, int]:
    """The first lane for each thing in which no other has a row of its own.

    >>> lanes_of({"B": (0, 3), "A": (0, 1), "C": (1, 2)})
    {'A': 0, 'B': 1, 'C': 0}
    """
    ends: list[int] = []
    found: dict[T, int] = {}
    for thing, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
        lane = next((k for k, end in enumerate(ends) if end <= first), len(ends))
        ends[lane:lane + 1] = [last]
        found[thing] = lane
    return found


def connect(
    canvas: Canvas, right: float, flows: Mapping[T, tuple[int, Sequence[int]]],
    starts: Sequence[float], ends: Sequence[float], names: Mapping[T, str],
) -> float:
    """Draw a line for each thing; where the lines end to the right.

    Args:
        canvas: the picture.
        right: where rows end.
        flows: for each thing the row that makes it, and those that take it.
        starts: of each row, where lines leave.
        ends: of each row, where lines arrive.
        names: of things, for a mouse over a line.
    """
    taken = {thing: flow for thing, flow in flows.items() if flow[1]}
    lanes = lanes_of({thing: (row, max(rows)) for thing, (row, rows) in taken.items()})
    most = min(max(lanes.values(), default=-1) + 1, _MOST)
    for thing, lane in lanes.items():
        row, rows = taken[thing]
        x = right + 14 + _LANE * min(lane, _MOST - 1)
        start = starts[row]
        name = names[thing]
        canvas.line([(right, start), (x, start), (x, max(ends[k] for k in rows))], title=name)
        for k in rows:
            canvas.arrow((x, ends[k]), (right + 2, ends[k]), name)
    return right + 14 + _LANE * most
