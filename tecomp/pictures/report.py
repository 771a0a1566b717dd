"""Reports as pictures: when each resource works, the load of cores, the roofline, memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading, legend, sampled
from tecomp.drawing.svg import Svg
from tecomp.drawing.ticks import ticks
from tecomp.ir.language.text import counted
from tecomp.model.report import Report
from tecomp.model.roofline import roofline_of
from tecomp.model.timeline import Activity, Event
from tecomp.pictures.roofline import panel

_Named = tuple[str, tuple[Activity, ...], tuple[Event, ...]]
"""A core or the chip: its name, what it does, and when."""
_WIDE = 820.0
_ROW = 20.0
_MOST_BARS, _MOST_NAMES, _MOST_CORES = 220, 24, 128


def drawn(report: Report) -> Svg:
    """The picture of a report: all of it, below each other."""
    canvas = Canvas()
    y = _with_timeline(canvas, report) + 40
    for part in (_cores, _roofline, _memories):
        y = part(canvas, report, y) + 40
    return canvas.finished(f"what {report.kernel} costs on {report.target}")


def drawn_timeline(report: Report) -> Svg:
    """When each resource works."""
    canvas = Canvas()
    _with_timeline(canvas, report)
    return canvas.finished(f"the timeline of {report.kernel} on {report.target}")


def drawn_roofline(report: Report) -> Svg:
    """How fast the kernel is, beside what compute and each memory allow."""
    canvas = Canvas()
    _roofline(canvas, report, _head(canvas, report) + 34)
    return canvas.finished(f"the roofline of {report.kernel} on {report.target}")


def _with_timeline(canvas: Canvas, report: Report) -> float:
    """The head and the timeline, which say how long all of it takes; where they end."""
    lanes = report.timelines()
    end = max((event.end for _, _, found in lanes for event in found), default=0.0)
    order = f"{_cycles(end)} in the order of the timeline" if end else ""
    return _timeline(canvas, lanes, end, _head(canvas, report, order) + 34)


def _head(canvas: Canvas, report: Report, order: str = "") -> float:
    cycles = f"at least {_cycles(report.cycles)} cycles"
    if report.seconds is not None:
        cycles += f", {report.seconds:.3g} s"
    cores = f"{len(report.cores)} of {counted(report.available, 'core')}"
    parts = (f"{cycles}, bound by {report.bound_by}", order, cores)
    return head(canvas, f"{report.kernel} on {report.target}", "; ".join(filter(None, parts)))


def _cycles(count: float) -> str:
    """Whole cycles, but where there are few.

    >>> _cycles(61595.5), _cycles(0.03125)
    ('61,596', '0.0312')
    """
    return f"{count:,.0f}" if count >= 100 or count == round(count) else f"{count:.3g}"


def _timeline(canvas: Canvas, lanes: Sequence[_Named], end: float, y: float) -> float:
    """Bars of what works when; where they end."""
    shown = _lanes(lanes)
    heading(canvas, MARGIN, y, "Timeline", "each resource of some cores; a colour for each buffer")
    if not end:
        canvas.text(MARGIN, y + 22, "nothing takes time", style="soft")
        return y + 22
    names = list(dict.fromkeys(each.name for k in shown for each in lanes[k][1]))
    colours = {name: colour(n % 8, n // 8) for n, name in enumerate(names)}
    resources = {each.resource for k in shown for each in lanes[k][1]}
    left = MARGIN + max(text_width(name, 10, "mono") for name in resources) + 14
    scale = (_WIDE - left) / end
    top = y + 14
    for k in shown:
        name, activities, found = lanes[k]
        canvas.text(MARGIN, top + 14, name, size=11, style="bold")
        top += _ROW
        for resource in dict.fromkeys(each.resource for each in activities):
            canvas.text(left - 8, top + 13, resource, size=10, style="mono soft", anchor="end")
            for activity, start, stop in _bars(activities, found, resource):
                title = f"{activity.name}: {resource}, cycles {start:,.0f} to {stop:,.0f}"
                canvas.box(left + start * scale, top + 2, max((stop - start) * scale, 0.6), 14,
                           colours[activity.name], title, activity.name)
            canvas.line([(left, top + _ROW), (_WIDE, top + _ROW)], style="faint", width=0.5)
            top += _ROW
    ticks(canvas, left, _WIDE, top, end, "cycles")
    words = "Bars with no name are named where a mouse rests."
    if len(shown) < len(lanes):
        words += f" Left out: {len(lanes) - len(shown)} of {counted(len(lanes), 'lane')}."
    entries = [(colours[name], name) for name in names[:_MOST_NAMES]]
    return legend(canvas, top + 34, entries, [words])


def _lanes(lanes: Sequence[_Named]) -> list[int]:
    """Those that are shown: the chip, the first core, the next one, and the one that ends last."""
    chip = [len(lanes) - 1] if lanes and lanes[-1][0] == "chip" else []
    cores = range(len(lanes) - len(chip))
    if len(cores) <= 3:
        return [*cores, *chip]
    last = max(cores, key=lambda k: max((event.end for event in lanes[k][2]), default=0.0))
    return [*sorted({0, 1, last}), *chip]


def _bars(
    activities: Sequence[Activity], found: Sequence[Event], resource: str
) -> Iterator[tuple[Activity, float, float]]:
    """What a resource does, slices of one activity that follow each other taken together."""
    events = [event for event in found if activities[event.activity].resource == resource]
    bars: list[tuple[Activity, float, float]] = []
    for k, group in groupby(events, key=lambda event: event.activity):
        for event in group:
            if bars and bars[-1][0] is activities[k] and event.start - bars[-1][2] < 1e-6:
                bars[-1] = activities[k], bars[-1][1], event.end
            else:
                bars.append((activities[k], event.start, event.end))
    longest = sorted(bars, key=lambda bar: bar[1] - bar[2])[:_MOST_BARS]
    yield from sorted((bar for bar in longest if bar[2] > bar[1]), key=lambda bar: bar[1])


def _cores(canvas: Canvas, report: Report, y: float) -> float:
    """A bar for each core: for how long its busiest resource works; where they end."""
    heading(canvas, MARGIN, y, "Cores",
            f"cycles of the busiest resource of each; imbalance {report.imbalance:.2f}")
    most = max((core.busy for core in report.cores), default=0.0)
    if not most:
        canvas.text(MARGIN, y + 22, "no core has anything to do", style="soft")
        return y + 22
    chosen = sampled(len(report.cores), _MOST_CORES)
    wide = max(min((_WIDE - MARGIN) / len(chosen), 40.0), 5.0)
    base = y + 14 + 90
    for place, k in enumerate(chosen):
        x = MARGIN + place * wide
        if k is None:
            continue
        core = report.cores[k]
        name = ", ".join(f"{each} {cycles:,.0f}" for each, cycles in core.cycles.items())
        high = 88 * core.busy / most
        title = f"core {core.core}: {core.operations:,} operations; cycles: {name}"
        canvas.box(x, base - high, wide - 1, high, colour(0, 1), title)
        bar = 88 * core.computing / most
        canvas.box(x, base - bar, max(wide / 3, 1), bar, colour(1, 1),
                   f"core {core.core}: computes for {core.computing:,.0f} cycles")
    canvas.line([(MARGIN, base), (MARGIN + len(chosen) * wide, base)])
    words = [f"The highest bar is {_cycles(most)} cycles."]
    if len(chosen) < len(report.cores):
        left = len(report.cores) - _MOST_CORES
        words.append(f"Left out: {left} of {counted(len(report.cores), 'core')}.")
    fills = [
        (colour(0, 1), "busiest resource, with the latency before"), (colour(1, 1), "computing"),
    ]
    return legend(canvas, base + 12, fills, words)


def _roofline(canvas: Canvas, report: Report, y: float) -> float:
    """The roofline, where it ends."""
    return panel(canvas, roofline_of(report), y)


def _memories(canvas: Canvas, report: Report, y: float) -> float:
    """How full memories are; where they end."""
    heading(canvas, MARGIN, y, "Memories", "the most bytes in use at one time; padding is hatched")
    top = y + 14
    wide = 420.0
    left = MARGIN + max((text_width(m.memory, 11, "mono") for m in report.memories), default=0) + 12
    for memory in report.memories:
        whole = memory.usable_bytes or max(memory.peak_bytes, memory.padding_bytes, 1)
        canvas.text(MARGIN, top + 13, memory.memory, size=11, style="mono")
        canvas.box(left, top, wide, 16, "plain", f"{memory.memory}: {whole:,} B")
        used = wide * min(memory.peak_bytes / whole, 1)
        words = f"{memory.peak_bytes:,} B"
        if memory.usable_bytes is not None:
            words += f" of {memory.usable_bytes:,} B ({memory.peak_bytes / whole:.1%})"
        canvas.box(left, top, max(used, 1), 16, colour(0, 1), words)
        if memory.padding_bytes:
            pad = wide * min(memory.padding_bytes / whole, 1)
            canvas.box(left, top + 10, max(pad, 1), 6, "pad",
                       f"{memory.padding_bytes:,} B of padding")
            words += f", {memory.padding_bytes:,} B of padding"
        canvas.text(left + wide + 10, top + 12, words, style="soft")
        top += 24
    if not report.memories:
        canvas.text(MARGIN, top + 8, "no memory is in use that the target describes", style="soft")
        top += 12
    return top
