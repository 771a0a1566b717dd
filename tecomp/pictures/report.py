"""Reports as pictures: when each resource works, the load of cores, the roofline, memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil, floor, log10

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import STRONG, colour
from tecomp.drawing.panels import head, heading, legend, sampled
from tecomp.drawing.svg import Svg
from tecomp.drawing.ticks import ticks
from tecomp.ir.language.text import counted
from tecomp.model.report import Report
from tecomp.model.timeline import Activity, Event

_WIDE = 820.0
_ROW = 20.0
_MOST_BARS, _MOST_NAMES, _MOST_CORES = 220, 24, 128


def drawn(report: Report) -> Svg:
    """The picture of a report: all of it, below each other."""
    canvas = Canvas()
    y = _head(canvas, report) + 34
    for part in (_timeline, _cores, _roofline, _memories):
        y = part(canvas, report, y) + 40
    return canvas.finished(f"what {report.kernel} costs on {report.target}")


def drawn_timeline(report: Report) -> Svg:
    """When each resource works."""
    canvas = Canvas()
    _timeline(canvas, report, _head(canvas, report) + 34)
    return canvas.finished(f"the timeline of {report.kernel} on {report.target}")


def drawn_roofline(report: Report) -> Svg:
    """How fast the kernel is, beside what compute and each memory allow."""
    canvas = Canvas()
    _roofline(canvas, report, _head(canvas, report) + 34)
    return canvas.finished(f"the roofline of {report.kernel} on {report.target}")


def _head(canvas: Canvas, report: Report) -> float:
    cycles = f"{report.cycles:,.0f} cycles"
    if report.seconds is not None:
        cycles += f", {report.seconds:.3g} s"
    return head(
        canvas, f"{report.kernel} on {report.target}",
        f"{cycles}, bound by {report.bound_by}; {len(report.cores)} of "
        f"{counted(report.available, 'core')}",
    )


def _timeline(canvas: Canvas, report: Report, y: float) -> float:
    """Bars of what works when; where they end."""
    lanes = report.timelines()
    shown = _lanes(lanes)
    end = max((event.end for _, _, found in lanes for event in found), default=0.0)
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


def _lanes(lanes: Sequence[tuple[str, tuple[Activity, ...], tuple[Event, ...]]]) -> list[int]:
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
    words = [f"The highest bar is {most:,.0f} cycles."]
    if len(chosen) < len(report.cores):
        left = len(report.cores) - _MOST_CORES
        words.append(f"Left out: {left} of {counted(len(report.cores), 'core')}.")
    fills = [
        (colour(0, 1), "busiest resource, with the latency before"), (colour(1, 1), "computing"),
    ]
    return legend(canvas, base + 12, fills, words)


def _rates(report: Report) -> dict[str, tuple[int, float]]:
    """For each memory and link, bytes that it moves, and how many it can move in a cycle."""
    moved = {f"{each.memory} {each.direction}": each.bytes for each in report.traffic}
    moved |= {each.link: each.bytes for each in report.links}
    found: dict[str, tuple[int, float]] = {}
    for name in report.shares:
        cycles = sum(core.cycles.get(name, 0.0) for core in report.cores)
        cores = report.available if cycles else 1
        cycles = cycles or report.chip.get(name, 0.0)
        if moved.get(name) and cycles:
            found[name] = moved[name], moved[name] / cycles * cores
    return found


def _roofline(canvas: Canvas, report: Report, y: float) -> float:
    """Operations in a cycle over operations for a byte, on logarithmic axes; where it ends."""
    heading(canvas, MARGIN, y, "Roofline", "operations in a cycle, by operations for a byte moved")
    operations = sum(core.operations for core in report.cores)
    computing = sum(core.computing for core in report.cores)
    rates = _rates(report)
    if not operations or not computing or not report.cycles:
        canvas.text(MARGIN, y + 22, "nothing is computed", style="soft")
        return y + 22
    peak, speed = operations / computing * report.available, operations / report.cycles
    share = speed / peak
    remark = f"{report.kernel} does {speed:,.4g} operations in a cycle, {share:.1%} of the peak."
    if not rates:
        unknown = f"{remark} No memory or link that it uses has a known rate."
        canvas.text(MARGIN, y + 22, unknown, style="soft")
        return y + 22
    points = {name: (operations / moved, rate) for name, (moved, rate) in rates.items()}
    plot = _Plot(
        (MARGIN + 60, y + 16, 560, 260),
        [x for x, _ in points.values()] + [peak / rate for _, rate in points.values()],
        [speed, peak],
    )
    plot.axes(canvas)
    for n, (name, (intensity, rate)) in enumerate(points.items()):
        ridge = peak / rate
        title = f"{name}: at most {rate:,.4g} bytes in a cycle"
        plot.line(canvas, [(plot.low, plot.low * rate), (ridge, peak)], colour(n, 2), title)
        plot.dot(canvas, intensity, speed, colour(n, 2),
                 f"{report.kernel} and {name}: {intensity:.4g} operations for a byte, "
                 f"{speed:,.4g} in a cycle, of {min(peak, intensity * rate):,.4g}")
    plot.line(canvas, [(plot.low, peak), (plot.high, peak)], STRONG,
              f"compute: at most {peak:,.4g} operations in a cycle")
    entries = [(STRONG, f"compute: {peak:,.4g} operations in a cycle on all cores")]
    entries += [(colour(n, 2), f"{name}: {rate:,.4g} B in a cycle")
                for n, (name, (_, rate)) in enumerate(points.items())]
    return legend(canvas, y + 16 + 260 + 40, entries, [
        remark, "Rates count bytes that are used. A dot below its line has room.",
    ])


class _Plot:
    """Logarithmic axes in a frame, wide enough for all that is to be shown."""

    def __init__(
        self, frame: tuple[float, float, float, float], xs: Sequence[float], ys: Sequence[float]
    ) -> None:
        self._x, self._y, self._wide, self._high = frame
        self.low = 10.0 ** (floor(log10(min(xs))) - 1)
        self.high = 10.0 ** (ceil(log10(max(xs))) + 1)
        self.bottom = 10.0 ** (floor(log10(min(ys))) - 1)
        self.top = 10.0 ** ceil(log10(max(ys)) + 0.1)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is in the picture."""
        across = (log10(x) - log10(self.low)) / (log10(self.high) - log10(self.low))
        up = (log10(y) - log10(self.bottom)) / (log10(self.top) - log10(self.bottom))
        return self._x + across * self._wide, self._y + (1 - up) * self._high

    def axes(self, canvas: Canvas) -> None:
        """The frame, and powers of ten along it."""
        canvas.frame(self._x, self._y, self._wide, self._high)
        for power in _powers(self.low, self.high, 8):
            x, _ = self.at(10.0**power, self.bottom)
            canvas.text(x, self._y + self._high + 14, f"1e{power}", size=9, style="mono soft",
                        anchor="middle")
        for power in _powers(self.bottom, self.top, 8):
            _, y = self.at(self.low, 10.0**power)
            canvas.text(self._x - 6, y + 3, f"1e{power}", size=9, style="mono soft", anchor="end")

    def line(
        self, canvas: Canvas, points: Sequence[tuple[float, float]], fill: str, title: str
    ) -> None:
        """A straight line, cut where it leaves the frame below."""
        (x0, y0), (x1, y1) = points
        if y0 < self.bottom and y1 > y0:
            x0, y0 = x0 * self.bottom / y0, self.bottom
        canvas.line([self.at(x0, y0), self.at(x1, y1)], fill, title=title, width=2)

    def dot(self, canvas: Canvas, x: float, y: float, fill: str, title: str) -> None:
        """A point."""
        across, up = self.at(x, y)
        canvas.dot(across, up, 5, fill, title)


def _powers(low: float, high: float, most: int) -> range:
    first, last = round(log10(low)), round(log10(high))
    return range(first, last + 1, max(1, ceil((last - first) / most)))


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
