"""Draw cost reports and rooflines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10

from tecomp.cost_model.report import CostReport
from tecomp.cost_model.roofline import Roof, Roofline, RooflinePoint, roofline_of
from tecomp.cost_model.timeline import Activity, Event
from tecomp.drawing.canvas import (
    MARGIN,
    Canvas,
    colour,
    format_short,
    head,
    heading,
    in_bytes,
    legend,
    sample_indices,
    text_width,
    ticks,
    with_tail,
)
from tecomp.drawing.svg import Svg
from tecomp.ir.nodes.printer import format_count

_PLOT_WIDTH, _PLOT_HEIGHT = 560.0, 280.0
_LINE, _WORDS, _SIZE = 15.0, 330.0, 11.0
_COINCIDENT_ROOFS = 0.01
"""Difference of logarithmic rates below which two roofs count as coincident."""
_AXIS_MARGIN = 1.5
"""Factor by which the axes extend beyond the outermost points."""


def draw_roofline(roofline: Roofline) -> Svg:
    """Draw a roofline."""
    canvas = Canvas()
    kernels = list(dict.fromkeys(mark.kernel for mark in roofline.marks))
    title = f"{kernels[0]} on {roofline.target}" if len(kernels) == 1 else roofline.target
    panel(canvas, roofline, head(canvas, title) + 34)
    return canvas.finished(f"the roofline of {title}")


def panel(canvas: Canvas, roofline: Roofline, y: float) -> float:
    """Draw performance over arithmetic intensity on log axes; return the bottom y coordinate."""
    heading(canvas, MARGIN, y, "Roofline",
            f"operations per {roofline.unit}, by operations per byte moved")
    if not roofline.memories:
        return legend(canvas, y + 11, (), roofline.remarks)
    names = dict.fromkeys(roof.name for roof in roofline.memories)
    fills = {name: colour(n, 2) for n, name in enumerate(names)}
    labels = _labels(roofline)
    high = max(_PLOT_HEIGHT, _LINE * len(labels))
    plot = _plot(roofline, (MARGIN + 60, y + 16, _PLOT_WIDTH, high))
    plot.axes(canvas)
    # A line that other lines cover is drawn wider, so that all remain visible.
    covered = _count_covered([(log10(roof.rate), fills[roof.name]) for roof in roofline.memories])
    for roof, covers in zip(roofline.memories, covered, strict=True):
        _slope(canvas, plot, roof, fills[roof.name], 2 + 3 * covers, roofline)
    for roof in roofline.compute:
        plot.line(canvas, [(plot.low, roof.rate), (plot.high, roof.rate)], "",
                  f"{roof.title}: at most {roof.rate:,.4g} operations per {roofline.unit}",
                  is_dashed=roof.cores > 1)
    _write(canvas, plot, labels)
    points = [plot.canvas_point(mark.intensity, mark.speed) for mark in roofline.marks]
    covered = _count_covered([
        (round(x) * 1e4 + round(y), fills[mark.memory])
        for (x, y), mark in zip(points, roofline.marks, strict=True)
    ])
    for mark, covers in zip(roofline.marks, covered, strict=True):
        plot.dot(canvas, mark, fills[mark.memory], 5 + 2 * min(covers, 4), roofline.unit)
    entries = [(fills[roof.name], f"{roof.title}: {in_bytes(roof.rate)} per {roofline.unit}")
               for roof in roofline.memories]
    return legend(canvas, y + 16 + high + 34, entries, roofline.remarks)


def _count_covered(items: Sequence[tuple[float, str]]) -> list[int]:
    """Count, for each item, the other colours drawn later at the same position.

    >>> _count_covered([(1.0, "a"), (2.0, "a"), (1.0, "b"), (1.0, "b")])
    [1, 0, 0, 0]
    """
    return [
        len(
            {fill for other, fill in items[k + 1 :] if abs(other - value) < _COINCIDENT_ROOFS}
            - {current}
        )
        for k, (value, current) in enumerate(items)
    ]


@dataclass(frozen=True, slots=True)
class _Label:
    """A label beside the frame, and the point that it refers to."""

    words: str
    x: float
    y: float
    style: str
    title: str = ""


def _labels(roofline: Roofline) -> list[_Label]:
    """Return the labels beside the frame: compute roofs, and each kernel once."""
    found = [
        _Label(f"{roof.title}: {format_short(roof.rate)}", 0.0, roof.rate, "bold")
        for roof in roofline.compute
    ]
    for mark in roofline.marks:
        if mark.is_main:
            details = f": {mark.describe(format_short(mark.speed))}"
            text = with_tail(mark.kernel, details, _WORDS, _SIZE)
            found.append(_Label(text, mark.intensity, mark.speed, "", mark.kernel + details))
    return found


def _write(canvas: Canvas, plot: _Plot, labels: Sequence[_Label]) -> None:
    """Write the labels in a column on the right, ordered by their points, with leader lines."""
    points = [plot.canvas_point(label.x or plot.high, label.y) for label in labels]
    # At equal height the rightmost point comes first, so that leader lines do not cross.
    order = sorted(range(len(labels)), key=lambda k: (round(points[k][1]), -points[k][0]))
    for k, y in zip(
        order, _spread_positions([points[k][1] for k in order], plot.bottom_edge), strict=True
    ):
        label, left = labels[k], plot.right_edge + 24
        canvas.line([points[k], (left - 12, y), (left - 4, y)], style="faint", width=1)
        title = label.title if label.title != label.words else ""
        canvas.text(left, y + 4, label.words, size=_SIZE, style=label.style, title=title)


def _spread_positions(positions: Sequence[float], last: float) -> list[float]:
    """Move positions until they are a line apart and stay above `last`, keeping their order.

    >>> _spread_positions([10.0, 12.0, 100.0], 200.0), _spread_positions([190.0, 195.0], 200.0)
    ([10.0, 25.0, 100.0], [182.0, 197.0])
    """
    found: list[float] = []
    for position in positions:
        found.append(max(position, found[-1] + _LINE) if found else position)
    limit = last - 3
    for k in reversed(range(len(found))):
        found[k] = min(found[k], limit)
        limit = found[k] - _LINE
    return found


def _plot(roofline: Roofline, frame: tuple[float, float, float, float]) -> _Plot:
    """Build axes that contain all marks and the ridge points of all memories."""
    ys = [roof.rate for roof in roofline.compute] + [mark.speed for mark in roofline.marks]
    ys = ys or [max(roof.rate for roof in roofline.memories)]
    ridges = [_peak(roof, roofline, max(ys)) / roof.rate for roof in roofline.memories]
    return _Plot(frame, ridges + [mark.intensity for mark in roofline.marks], ys)


def _peak(roof: Roof, roofline: Roofline, highest: float) -> float:
    """Return the height of a memory roof: the compute roof of as many cores, if known."""
    return max((other.rate for other in roofline.compute if other.cores <= roof.cores),
               default=highest)


def _slope(
    canvas: Canvas, plot: _Plot, roof: Roof, fill: str, width: float, roofline: Roofline
) -> None:
    """Draw the roof of a memory, up to its ridge point."""
    title = f"{roof.title}: at most {roof.rate:,.4g} bytes per {roofline.unit}"
    end = min(_peak(roof, roofline, plot.top) / roof.rate, plot.high)
    plot.line(canvas, [(plot.low, plot.low * roof.rate), (end, end * roof.rate)], fill, title,
              is_dashed=roof.cores > 1, width=width)


class _Plot:
    """Logarithmic axes in a frame that contains all given values."""

    def __init__(
        self, frame: tuple[float, float, float, float], xs: Sequence[float], ys: Sequence[float]
    ) -> None:
        self._x, self._y, self._wide, self._high = frame
        self.low, self.high = _enclosing_powers_of_ten(xs)
        self.bottom, self.top = _enclosing_powers_of_ten(ys)
        self.right_edge, self.bottom_edge = self._x + self._wide, self._y + self._high

    def canvas_point(self, x: float, y: float) -> tuple[float, float]:
        """Return the canvas coordinates of a point."""
        x_share = (log10(x) - log10(self.low)) / (log10(self.high) - log10(self.low))
        y_share = (log10(y) - log10(self.bottom)) / (log10(self.top) - log10(self.bottom))
        return self._x + x_share * self._wide, self._y + (1 - y_share) * self._high

    def axes(self, canvas: Canvas) -> None:
        """Draw the frame and the powers of ten along it."""
        canvas.frame(self._x, self._y, self._wide, self._high)
        for power in _powers(self.low, self.high, 8):
            x, _ = self.canvas_point(10.0**power, self.bottom)
            canvas.text(
                x,
                self.bottom_edge + 14,
                format_short(10.0**power),
                size=9,
                style="mono soft",
                anchor="middle",
            )
        for power in _powers(self.bottom, self.top, 8):
            _, y = self.canvas_point(self.low, 10.0**power)
            canvas.text(self._x - 6, y + 3, format_short(10.0**power), size=9, style="mono soft",
                        anchor="end")

    def line(
        self, canvas: Canvas, points: Sequence[tuple[float, float]], fill: str, title: str,
        *, is_dashed: bool, width: float = 2.0,
    ) -> None:
        """Draw a straight line, clipped at the bottom of the frame."""
        (x0, y0), (x1, y1) = points
        if y0 < self.bottom and y1 > y0:
            x0, y0 = x0 * self.bottom / y0, self.bottom
        canvas.line(
            [self.canvas_point(x0, y0), self.canvas_point(x1, y1)],
            fill,
            title=title,
            width=width,
            is_dashed=is_dashed,
        )

    def dot(self, canvas: Canvas, mark: RooflinePoint, fill: str, radius: float, unit: str) -> None:
        """Draw a kernel: a filled dot if its time was measured, else a ring."""
        px, py = self.canvas_point(mark.intensity, mark.speed)
        bound = "" if mark.bound == float("inf") else f", of {mark.bound:,.4g}"
        canvas.dot(px, py, radius, fill,
                   f"{mark.kernel} and {mark.memory}: {mark.intensity:.4g} operations per byte, "
                   f"{mark.speed:,.4g} per {unit}{bound}")
        if not mark.is_measured:
            canvas.dot(px, py, 2.5, "paper")


def _enclosing_powers_of_ten(values: Sequence[float]) -> tuple[float, float]:
    """Return powers of ten that enclose all values with a margin.

    >>> _enclosing_powers_of_ten([2.0, 300.0]), _enclosing_powers_of_ten([1.0])
    ((1.0, 1000.0), (0.1, 10.0))
    """
    low, high = log10(min(values) / _AXIS_MARGIN), log10(max(values) * _AXIS_MARGIN)
    return 10.0 ** floor(low), 10.0 ** ceil(high)


def _powers(low: float, high: float, limit: int) -> range:
    first, last = round(log10(low)), round(log10(high))
    return range(first, last + 1, max(1, ceil((last - first) / limit)))


_Named = tuple[str, tuple[Activity, ...], tuple[Event, ...]]
"""A core or the chip: name, activities and events."""
_TIMELINE_WIDTH = 820.0
_ROW = 20.0
_MOST_BARS, _MOST_NAMES, _MOST_CORES = 220, 24, 128


def draw_report(report: CostReport) -> Svg:
    """Draw a complete report: timeline, cores, roofline and memories."""
    canvas = Canvas()
    y = _with_timeline(canvas, report) + 40
    for part in (_cores, _roofline, _memories):
        y = part(canvas, report, y) + 40
    return canvas.finished(f"what {report.kernel} costs on {report.target}")


def draw_timeline(report: CostReport) -> Svg:
    """Draw the timeline of each resource."""
    canvas = Canvas()
    _with_timeline(canvas, report)
    return canvas.finished(f"the timeline of {report.kernel} on {report.target}")


def draw_kernel_roofline(report: CostReport) -> Svg:
    """Draw the roofline of a kernel: its performance against the compute and memory bounds."""
    canvas = Canvas()
    _roofline(canvas, report, _head(canvas, report) + 34)
    return canvas.finished(f"the roofline of {report.kernel} on {report.target}")


def _with_timeline(canvas: Canvas, report: CostReport) -> float:
    """Draw the head with the total time and the timeline; return the bottom y coordinate."""
    lanes = report.timelines()
    end = max((event.end for _, _, found in lanes for event in found), default=0.0)
    order = f"{_cycles(end)} in the order of the timeline" if end else ""
    return _timeline(canvas, lanes, end, _head(canvas, report, order) + 34)


def _head(canvas: Canvas, report: CostReport, order: str = "") -> float:
    cycles = f"at least {_cycles(report.cycles)} cycles"
    if report.seconds is not None:
        cycles += f", {report.seconds:.3g} s"
    cores = f"{len(report.cores)} of {format_count(report.available, 'core')}"
    parts = (f"{cycles}, bound by {report.bound_by}", order, cores)
    return head(canvas, f"{report.kernel} on {report.target}", "; ".join(filter(None, parts)))


def _cycles(count: float) -> str:
    """Format a cycle count, rounded to an integer unless the count is small.

    >>> _cycles(61595.5), _cycles(0.03125)
    ('61,596', '0.0312')
    """
    return f"{count:,.0f}" if count >= 100 or count == round(count) else f"{count:.3g}"


def _timeline(canvas: Canvas, lanes: Sequence[_Named], end: float, y: float) -> float:
    """Draw bars of the activities of each resource; return the bottom y coordinate."""
    selected = _lanes(lanes)
    heading(canvas, MARGIN, y, "Timeline", "each resource of selected cores; one colour per buffer")
    if not end:
        canvas.text(MARGIN, y + 22, "no event has a duration", style="soft")
        return y + 22
    names = list(dict.fromkeys(entry.name for k in selected for entry in lanes[k][1]))
    colours = {name: colour(n % 8, n // 8) for n, name in enumerate(names)}
    resources = {entry.resource for k in selected for entry in lanes[k][1]}
    left = MARGIN + max(text_width(name, 10, "mono") for name in resources) + 14
    scale = (_TIMELINE_WIDTH - left) / end
    top = y + 14
    for k in selected:
        name, activities, found = lanes[k]
        canvas.text(MARGIN, top + 14, name, size=11, style="bold")
        top += _ROW
        for resource in dict.fromkeys(entry.resource for entry in activities):
            canvas.text(left - 8, top + 13, resource, size=10, style="mono soft", anchor="end")
            for activity, start, stop in _bars(activities, found, resource):
                title = f"{activity.name}: {resource}, cycles {start:,.0f} to {stop:,.0f}"
                canvas.box(left + start * scale, top + 2, max((stop - start) * scale, 0.6), 14,
                           colours[activity.name], title, activity.name)
            canvas.line([(left, top + _ROW), (_TIMELINE_WIDTH, top + _ROW)], style="faint",
                        width=0.5)
            top += _ROW
    ticks(canvas, left, _TIMELINE_WIDTH, top, end, "cycles")
    note = "Bars without a label show it on hover."
    if len(selected) < len(lanes):
        note += f" Omitted: {len(lanes) - len(selected)} of {format_count(len(lanes), 'lane')}."
    entries = [(colours[name], name) for name in names[:_MOST_NAMES]]
    return legend(canvas, top + 34, entries, [note])


def _lanes(lanes: Sequence[_Named]) -> list[int]:
    """Select the lanes to draw: the first two cores, the core that ends last, and the chip."""
    chip = [len(lanes) - 1] if lanes and lanes[-1][0] == "chip" else []
    cores = range(len(lanes) - len(chip))
    if len(cores) <= 3:
        return [*cores, *chip]
    last = max(cores, key=lambda k: max((event.end for event in lanes[k][2]), default=0.0))
    return [*sorted({0, 1, last}), *chip]


def _bars(
    activities: Sequence[Activity], found: Sequence[Event], resource: str
) -> Iterator[tuple[Activity, float, float]]:
    """Yield the longest bars of a resource, after merging adjacent slices of one activity."""
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


def _cores(canvas: Canvas, report: CostReport, y: float) -> float:
    """Draw a bar for the busiest resource of each core; return the bottom y coordinate."""
    heading(canvas, MARGIN, y, "Cores",
            f"cycles of the busiest resource of each; imbalance {report.imbalance:.2f}")
    peak = max((core.busy for core in report.cores), default=0.0)
    if not peak:
        canvas.text(MARGIN, y + 22, "no core executes operations", style="soft")
        return y + 22
    chosen = sample_indices(len(report.cores), _MOST_CORES)
    width = max(min((_TIMELINE_WIDTH - MARGIN) / len(chosen), 40.0), 5.0)
    base = y + 14 + 90
    for slot, k in enumerate(chosen):
        x = MARGIN + slot * width
        if k is None:
            continue
        core = report.cores[k]
        name = ", ".join(f"{resource} {cycles:,.0f}" for resource, cycles in core.cycles.items())
        high = 88 * core.busy / peak
        title = f"core {core.core}: {core.operations:,} operations; cycles: {name}"
        canvas.box(x, base - high, width - 1, high, colour(0, 1), title)
        bar = 88 * core.computing / peak
        canvas.box(x, base - bar, max(width / 3, 1), bar, colour(1, 1),
                   f"core {core.core}: computes for {core.computing:,.0f} cycles")
    canvas.line([(MARGIN, base), (MARGIN + len(chosen) * width, base)])
    notes = [f"The highest bar is {_cycles(peak)} cycles."]
    if len(chosen) < len(report.cores):
        hidden = len(report.cores) - _MOST_CORES
        notes.append(f"Omitted: {hidden} of {format_count(len(report.cores), 'core')}.")
    fills = [
        (colour(0, 1), "busiest resource, with the latency before"), (colour(1, 1), "computing"),
    ]
    return legend(canvas, base + 12, fills, notes)


def _roofline(canvas: Canvas, report: CostReport, y: float) -> float:
    """Draw the roofline; return the bottom y coordinate."""
    return panel(canvas, roofline_of(report), y)


def _memories(canvas: Canvas, report: CostReport, y: float) -> float:
    """Draw the occupancy of the memories; return the bottom y coordinate."""
    heading(canvas, MARGIN, y, "Memories", "the most bytes in use at one time; padding is hatched")
    top = y + 14
    width = 420.0
    left = MARGIN + max((text_width(m.memory, 11, "mono") for m in report.memories), default=0) + 12
    for memory in report.memories:
        capacity = memory.usable_bytes or max(memory.peak_bytes, memory.padding_bytes, 1)
        canvas.text(MARGIN, top + 13, memory.memory, size=11, style="mono")
        canvas.box(left, top, width, 16, "plain", f"{memory.memory}: {capacity:,} B")
        used = width * min(memory.peak_bytes / capacity, 1)
        label = f"{memory.peak_bytes:,} B"
        if memory.usable_bytes is not None:
            label += f" of {memory.usable_bytes:,} B ({memory.peak_bytes / capacity:.1%})"
        canvas.box(left, top, max(used, 1), 16, colour(0, 1), label)
        if memory.padding_bytes:
            pad = width * min(memory.padding_bytes / capacity, 1)
            canvas.box(left, top + 10, max(pad, 1), 6, "pad",
                       f"{memory.padding_bytes:,} B of padding")
            label += f", {memory.padding_bytes:,} B of padding"
        canvas.text(left + width + 10, top + 12, label, style="soft")
        top += 24
    if not report.memories:
        canvas.text(MARGIN, top + 8, "no described memory is in use", style="soft")
        top += 12
    return top
