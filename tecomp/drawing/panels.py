"""Shared figure parts: headings, legends, axes ticks, connectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import floor, log10
from typing import TypeVar

from tecomp.drawing.canvas import MARGIN, Canvas, text_width

_LANE = 13.0
_MAX_LANES = 40
"""Maximum number of lanes; connectors that do not fit share the last lane."""

T = TypeVar("T", bound=Hashable)


def lanes_of(lives: Mapping[T, tuple[int, int]]) -> dict[T, int]:
    """Assign each interval of rows to the first lane that is free at its start.

    >>> lanes_of({"B": (0, 3), "A": (0, 1), "C": (1, 2)})
    {'A': 0, 'B': 1, 'C': 0}
    """
    ends: list[int] = []
    found: dict[T, int] = {}
    for key, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
        lane = next((k for k, end in enumerate(ends) if end <= first), len(ends))
        ends[lane:lane + 1] = [last]
        found[key] = lane
    return found


def connect(
    canvas: Canvas, right: float, flows: Mapping[T, tuple[int, Sequence[int]]],
    starts: Sequence[float], ends: Sequence[float], names: Mapping[T, str],
) -> float:
    """Draw one connector per item and return the x coordinate of the right end of the connectors.

    Args:
        canvas: Canvas to draw on.
        right: Right edge of the rows.
        flows: Producer row and consumer rows of each item.
        starts: For each row, the y coordinate at which connectors leave.
        ends: For each row, the y coordinate at which connectors arrive.
        names: Tooltip text of each item.
    """
    consumed = {key: flow for key, flow in flows.items() if flow[1]}
    lanes = lanes_of({key: (row, max(rows)) for key, (row, rows) in consumed.items()})
    num_lanes = min(max(lanes.values(), default=-1) + 1, _MAX_LANES)
    for key, lane in lanes.items():
        row, rows = consumed[key]
        x = right + 14 + _LANE * min(lane, _MAX_LANES - 1)
        start = starts[row]
        name = names[key]
        canvas.line([(right, start), (x, start), (x, max(ends[k] for k in rows))], title=name)
        for k in rows:
            canvas.arrow((x, ends[k]), (right + 2, ends[k]), name)
    return right + 14 + _LANE * num_lanes


MAX_WIDTH = 1100.0
"""Width at which lines of text are truncated and legends are wrapped, in pixels."""


def head(canvas: Canvas, title: str, *lines: str) -> float:
    """Draw the title of a figure and the lines below it; return the bottom y coordinate."""
    canvas.text(MARGIN, 30, title, size=18, style="bold", width=MAX_WIDTH)
    y = 34.0
    for line in lines:
        if line:
            y += 18
            canvas.text(MARGIN, y, line, size=12, style="soft", width=MAX_WIDTH)
    return y


def heading(canvas: Canvas, x: float, y: float, title: str, remark: str = "") -> float:
    """Draw the heading of a panel with a remark beside it; return the right x coordinate."""
    right = canvas.text(x, y, title, size=13, style="bold")
    return canvas.text(right + 8, y, remark, style="soft") if remark else right


def legend(
    canvas: Canvas, y: float, entries: Iterable[tuple[str, str]], remarks: Sequence[str] = ()
) -> float:
    """Draw a legend, wrapped at `MAX_WIDTH`, with remarks below it; return the bottom y coordinate.

    Args:
        canvas: Canvas to draw on.
        y: Top edge.
        entries: Pairs of a fill, as for `Canvas.box`, and its meaning.
        remarks: Lines of text below the entries.
    """
    x = MARGIN
    row = 0
    for fill, label in entries:
        entry_width = 20 + text_width(label, 11) + 24
        if x > MARGIN and x + entry_width > MAX_WIDTH:
            x, row = MARGIN, row + 1
        canvas.box(x, y + row * 20, 12, 12, fill, label)
        canvas.text(x + 18, y + row * 20 + 10, label, style="soft", width=MAX_WIDTH)
        x += entry_width
    bottom = y + (row + 1) * 20 if x > MARGIN else y
    for number, remark in enumerate(remarks):
        canvas.text(MARGIN, bottom + number * 17 + 11, remark, style="soft", width=MAX_WIDTH)
    return bottom + len(remarks) * 17


def format_thousands(count: int, noun: str) -> str:
    """Return a count with its noun, with thousands separators.

    >>> format_thousands(1, "run"), format_thousands(262144, "run")
    ('1 run', '262,144 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def sample_indices(count: int, limit: int, last: int = 1) -> list[int | None]:
    """Return the indices below `count`; if above `limit`, the first ones, None and the last one.

    >>> sample_indices(4, 6), sample_indices(1000, 4)
    ([0, 1, 2, 3], [0, 1, 2, None, 999])
    """
    if count <= limit:
        return list(range(count))
    return [*range(limit - last), None, *range(count - last, count)]


def ticks(
    canvas: Canvas, left: float, right: float, y: float, end: float, unit: str
) -> None:
    """Draw tick marks from 0 to at most `end` below an axis.

    Args:
        canvas: Canvas to draw on.
        left: x coordinate of 0.
        right: x coordinate of `end`.
        y: y coordinate of the axis.
        end: Largest value, greater than 0.
        unit: Unit, written after the last number.
    """
    step = 10.0 ** floor(log10(end))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if end / (step * part) <= 6.5)
    for n in range(floor(end / step) + 1):
        x = left + n * step * (right - left) / end
        canvas.line([(x, y), (x, y + 4)])
        canvas.text(x, y + 16, format_short(n * step), size=9, style="mono soft", anchor="middle")
    canvas.text(right + 36, y + 16, unit, size=9, style="mono soft")


def format_short(value: float) -> str:
    """Format a number compactly, with an SI suffix.

    >>> format_short(0.0), format_short(2500.0), format_short(3e9), format_short(0.5)
    ('0', '2.5k', '3G', '0.5')
    """
    for size, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{suffix}" if value < 1e15 else f"{value:.1e}"
    return f"{value:.3g}"


def in_bytes(value: float) -> str:
    """Format a byte count with a decimal (SI) unit, as transfer rates use.

    >>> in_bytes(42.0), in_bytes(2.2e11)
    ('42 B', '220 GB')
    """
    text = format_short(value)
    return f"{text[:-1]} {text[-1]}B" if text[-1].isalpha() else f"{text} B"
