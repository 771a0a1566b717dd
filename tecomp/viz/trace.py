"""Draw traces: lanes of bars over time, and counters."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tecomp.drawing.canvas import (
    MARGIN,
    NEUTRAL,
    Canvas,
    colour,
    format_short,
    head,
    legend,
    sample_indices,
    text_width,
    ticks,
)
from tecomp.drawing.chrome_trace import ChromeTrace
from tecomp.drawing.svg import Svg, write_figure
from tecomp.ir.nodes.printer import format_count

_WIDTH, _ROW_HEIGHT, _COUNTER_HEIGHT = 820.0, 20.0, 40.0
_MAX_BARS, _MAX_NAMES, _MAX_LANES = 880, 24, 24
"""Maximum number of bars in total (divided evenly among lanes), of names and of lanes."""
_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"), (1e-3, "ns"))
_MAX_MERGED_GAP = 1e-6
"""Fraction of the total time: closer bars with the same name are merged."""


@dataclass(slots=True)
class _Bar:
    name: str
    start: float
    stop: float
    label: str


@dataclass(slots=True)
class _Lane:
    """The activities of one thread or resource."""

    process: str
    name: str
    bars: list[_Bar] = field(default_factory=list)


def draw_trace(trace: ChromeTrace) -> Svg:
    """Draw a trace."""
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    lanes = _lanes(events)
    end = max((bar.stop for lane in lanes for bar in lane.bars), default=0.0)
    canvas = Canvas()
    titles = list(dict.fromkeys(lane.process for lane in lanes))
    title = titles[0] if len(titles) == 1 else "timeline"
    size, unit = next((entry for entry in _UNITS if end >= entry[0]), _UNITS[-1])
    y = head(canvas, title, f"{end / size:.4g} {unit}; one colour per name") + 14
    if not end:
        canvas.text(MARGIN, y + 14, "no event has a duration", style="soft")
        return canvas.finished(title)
    left = MARGIN + 14 + max(text_width(lane.name, 10, "mono") for lane in lanes)
    y, notes, fills = _draw_lanes(canvas, lanes, left, end, y, is_titled=len(titles) > 1)
    y = _draw_counters(canvas, events, left, end, y)
    ticks(canvas, left, _WIDTH, y, end / size, unit)
    legend(canvas, y + 34, fills[:_MAX_NAMES], notes)
    return canvas.finished(f"the timeline of {title}")


def save_trace(trace: ChromeTrace, path: str | os.PathLike[str]) -> None:
    """Write the trace, its figure or a page with the figure, chosen by the path suffix."""
    picture = trace.picture()
    write_figure({".json": trace, ".svg": picture, ".html": picture.page()}, path)


def _lanes(events: Sequence[dict[str, Any]]) -> list[_Lane]:
    """Collect the lanes of a trace, in their order."""
    titles: dict[int, str] = {}
    found: dict[tuple[int, int], _Lane] = {}
    for event in events:
        process, name = event["pid"], event["name"]
        key = process, event.get("tid", 0)
        if name == "process_name":
            titles[process] = event["args"]["name"]
        elif name == "thread_name":
            found[key] = _Lane(titles[process], event["args"]["name"])
        elif event["ph"] == "X":
            lane = found.setdefault(key, _Lane(titles[process], ""))
            text = "; ".join(f"{label}: {value}" for label, value in event.get("args", {}).items())
            start = event["ts"]
            lane.bars.append(_Bar(name, start, start + event["dur"], text))
    return list(found.values())


def _draw_lanes(
    canvas: Canvas, lanes: Sequence[_Lane], left: float, end: float, y: float, *, is_titled: bool
) -> tuple[float, list[str], list[tuple[str, str]]]:
    """Draw the lanes; return the bottom y coordinate, notes and legend entries."""
    selected = _select_lanes(lanes)
    names = dict.fromkeys(bar.name for k in selected if k is not None for bar in lanes[k].bars)
    colours = {name: colour(n % 8, n // 8) for n, name in enumerate(names)}
    title, omitted_bars = "", 0
    for k in selected:
        if k is None:
            canvas.text(MARGIN, y + 14, "⋮", style="soft")
            y += _ROW_HEIGHT
            continue
        lane = lanes[k]
        if is_titled and lane.process != title:
            title = lane.process
            canvas.text(MARGIN, y + 14, title, size=11, style="bold")
            y += _ROW_HEIGHT
        canvas.text(left - 8, y + 13, lane.name, size=10, style="mono soft", anchor="end")
        bars = sorted(_merge_bars(lane.bars, end), key=lambda bar: bar.start - bar.stop)
        limit = _MAX_BARS // len(selected)
        omitted_bars += len(bars[limit:])
        for bar in sorted(bars[:limit], key=lambda bar: bar.start):
            _draw_bar(canvas, bar, left, end, y, colours[bar.name])
        canvas.line([(left, y + _ROW_HEIGHT), (_WIDTH, y + _ROW_HEIGHT)], style="faint", width=0.5)
        y += _ROW_HEIGHT
    notes = ["Bars without a label show it on hover."]
    if None in selected:
        notes.append(f"Omitted: {len(lanes) - len(selected) + 1} of {len(lanes)} lanes.")
    if omitted_bars:
        notes.append(f"Omitted: {format_count(omitted_bars, 'bar')}, the shortest of their lanes.")
    if len(names) > _MAX_NAMES:
        notes.append(f"Not in this list: {format_count(len(names) - _MAX_NAMES, 'name')}.")
    return y, notes, [(fill, name) for name, fill in colours.items()]


def _select_lanes(lanes: Sequence[_Lane]) -> list[int | None]:
    """Select the lanes to draw: if too many, the first processes and the last one."""
    if len(lanes) <= _MAX_LANES:
        return list(range(len(lanes)))
    groups = [list(group) for _, group in groupby(range(len(lanes)), lambda k: lanes[k].process)]
    *before, last = groups
    first: list[int | None] = []
    for group in before:
        if len(first) + len(group) + len(last) > _MAX_LANES:
            break
        first += group
    return [*first, None, *last] if first else sample_indices(len(lanes), _MAX_LANES)


def _draw_bar(
    canvas: Canvas, bar: _Bar, left: float, end: float, y: float, fill: str
) -> None:
    scale = (_WIDTH - left) / end
    label = f"{bar.name}: {bar.start:,.4g} to {bar.stop:,.4g} us"
    canvas.box(left + bar.start * scale, y + 2, max((bar.stop - bar.start) * scale, 0.6), 14,
               fill, f"{label}; {bar.label}" if bar.label else label, bar.name)


def _merge_bars(bars: Sequence[_Bar], end: float) -> list[_Bar]:
    """Sort bars by start and merge touching bars with the same name."""
    merged: list[_Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        last = merged[-1] if merged else None
        if last and last.name == bar.name and bar.start - last.stop < _MAX_MERGED_GAP * end:
            merged[-1] = _Bar(bar.name, last.start, max(bar.stop, last.stop), last.label)
        else:
            merged.append(bar)
    return merged


def _draw_counters(
    canvas: Canvas, events: Sequence[dict[str, Any]], left: float, end: float, y: float
) -> float:
    """Draw the counters over time; return the bottom y coordinate."""
    counters: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            (value,) = event["args"].values()
            counters[event["name"]].append((event["ts"], value))
    for name, steps in counters.items():
        peak = max(value for _, value in steps)
        if not peak:
            continue
        canvas.text(MARGIN, y + 16, f"{name}, at most {format_short(peak)}", size=11, style="bold")
        y += _ROW_HEIGHT + _COUNTER_HEIGHT
        for (start, value), (stop, _) in zip(steps, [*steps[1:], (end, 0)], strict=True):
            height = (_COUNTER_HEIGHT - 4) * value / peak
            x, width = left + start * (_WIDTH - left) / end, (stop - start) * (_WIDTH - left) / end
            if height and width > 0:
                canvas.box(x, y - height, width, height, NEUTRAL, f"{name}: {value:,}")
        canvas.line([(left, y), (_WIDTH, y)], style="faint", width=0.5)
    return y
