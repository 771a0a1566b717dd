"""Rooflines as pictures: kernels below the roofs of computing and of each memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import with_tail
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.drawing.ticks import in_bytes, short
from tecomp.model.roofline import Mark, Roof, Roofline

_WIDE, _HIGH = 560.0, 280.0
_LINE, _WORDS, _SIZE = 15.0, 330.0, 11.0
_SAME = 0.01
"""Between the logarithms of rates whose lines lie on each other."""
_SPARE = 1.5
"""How much further than the outermost point the axes reach."""


def drawn(roofline: Roofline) -> Svg:
    """The picture of a roofline."""
    canvas = Canvas()
    kernels = list(dict.fromkeys(mark.kernel for mark in roofline.marks))
    title = f"{kernels[0]} on {roofline.target}" if len(kernels) == 1 else roofline.target
    panel(canvas, roofline, head(canvas, title) + 34)
    return canvas.finished(f"the roofline of {title}")


def panel(canvas: Canvas, roofline: Roofline, y: float) -> float:
    """Operations in a time over operations for a byte, on logarithmic axes; where it ends."""
    heading(canvas, MARGIN, y, "Roofline",
            f"operations in a {roofline.unit}, by operations for a byte moved")
    if not roofline.memories:
        return legend(canvas, y + 11, (), roofline.remarks)
    names = dict.fromkeys(roof.name for roof in roofline.memories)
    fills = {name: colour(n, 2) for n, name in enumerate(names)}
    labels = _labels(roofline)
    high = max(_HIGH, _LINE * len(labels))
    plot = _plot(roofline, (MARGIN + 60, y + 16, _WIDE, high))
    plot.axes(canvas)
    # What others lie on is drawn the wider, so that all are seen.
    below = _covered([(log10(roof.rate), fills[roof.name]) for roof in roofline.memories])
    for roof, covers in zip(roofline.memories, below, strict=True):
        _slope(canvas, plot, roof, fills[roof.name], 2 + 3 * covers, roofline)
    for roof in roofline.compute:
        plot.line(canvas, [(plot.low, roof.rate), (plot.high, roof.rate)], "",
                  f"{roof.title}: at most {roof.rate:,.4g} operations in a {roofline.unit}",
                  is_dashed=roof.cores > 1)
    _write(canvas, plot, labels)
    places = [plot.at(mark.intensity, mark.speed) for mark in roofline.marks]
    below = _covered([
        (round(x) * 1e4 + round(y), fills[mark.memory])
        for (x, y), mark in zip(places, roofline.marks, strict=True)
    ])
    for mark, covers in zip(roofline.marks, below, strict=True):
        plot.dot(canvas, mark, fills[mark.memory], 5 + 2 * min(covers, 4), roofline.unit)
    entries = [(fills[roof.name], f"{roof.title}: {in_bytes(roof.rate)} in a {roofline.unit}")
               for roof in roofline.memories]
    return legend(canvas, y + 16 + high + 34, entries, roofline.remarks)


def _covered(things: Sequence[tuple[float, str]]) -> list[int]:
    """How many later ones of other colours are in the same place, and drawn over each.

    >>> _covered([(1.0, "a"), (2.0, "a"), (1.0, "b"), (1.0, "b")])
    [1, 0, 0, 0]
    """
    return [
        len({fill for other, fill in things[k + 1 :] if abs(other - value) < _SAME} - {own})
        for k, (value, own) in enumerate(things)
    ]


@dataclass(frozen=True, slots=True)
class _Label:
    """Words beside the frame, and the point that they are about."""

    words: str
    x: float
    y: float
    style: str
    title: str = ""


def _labels(roofline: Roofline) -> list[_Label]:
    """What is named beside the frame: roofs of computing, and each kernel once."""
    found = [
        _Label(f"{roof.title}: {short(roof.rate)}", 0.0, roof.rate, "bold")
        for roof in roofline.compute
    ]
    for mark in roofline.marks:
        if mark.is_main:
            said = f": {mark.said(short(mark.speed))}"
            words = with_tail(mark.kernel, said, _WORDS, _SIZE)
            found.append(_Label(words, mark.intensity, mark.speed, "", mark.kernel + said))
    return found


def _write(canvas: Canvas, plot: _Plot, labels: Sequence[_Label]) -> None:
    """Words below each other on the right, in the order of their points, each with a line to it."""
    points = [plot.at(label.x or plot.high, label.y) for label in labels]
    # Of points on one height the rightmost first: so their lines do not cross.
    order = sorted(range(len(labels)), key=lambda k: (round(points[k][1]), -points[k][0]))
    for k, y in zip(order, _apart([points[k][1] for k in order], plot.bottom_edge), strict=True):
        label, left = labels[k], plot.right_edge + 24
        canvas.line([points[k], (left - 12, y), (left - 4, y)], style="faint", width=1)
        title = label.title if label.title != label.words else ""
        canvas.text(left, y + 4, label.words, size=_SIZE, style=label.style, title=title)


def _apart(places: Sequence[float], last: float) -> list[float]:
    """Places in order, moved until they are a line apart and end before the last.

    >>> _apart([10.0, 12.0, 100.0], 200.0), _apart([190.0, 195.0], 200.0)
    ([10.0, 25.0, 100.0], [182.0, 197.0])
    """
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + _LINE) if found else place)
    limit = last - 3
    for k in reversed(range(len(found))):
        found[k] = min(found[k], limit)
        limit = found[k] - _LINE
    return found


def _plot(roofline: Roofline, frame: tuple[float, float, float, float]) -> _Plot:
    """Axes that are wide enough for all marks, and for where each memory meets computing."""
    ys = [roof.rate for roof in roofline.compute] + [mark.speed for mark in roofline.marks]
    ys = ys or [max(roof.rate for roof in roofline.memories)]
    ridges = [_peak(roof, roofline, max(ys)) / roof.rate for roof in roofline.memories]
    return _Plot(frame, ridges + [mark.intensity for mark in roofline.marks], ys)


def _peak(roof: Roof, roofline: Roofline, highest: float) -> float:
    """How high a memory's roof goes: up to that of computing on as many cores, if it is known."""
    return max((each.rate for each in roofline.compute if each.cores <= roof.cores),
               default=highest)


def _slope(
    canvas: Canvas, plot: _Plot, roof: Roof, fill: str, width: float, roofline: Roofline
) -> None:
    """The roof of a memory, up to where computing is one."""
    title = f"{roof.title}: at most {roof.rate:,.4g} bytes in a {roofline.unit}"
    end = min(_peak(roof, roofline, plot.top) / roof.rate, plot.high)
    plot.line(canvas, [(plot.low, plot.low * roof.rate), (end, end * roof.rate)], fill, title,
              is_dashed=roof.cores > 1, width=width)


class _Plot:
    """Logarithmic axes in a frame, wide enough for all that is to be shown."""

    def __init__(
        self, frame: tuple[float, float, float, float], xs: Sequence[float], ys: Sequence[float]
    ) -> None:
        self._x, self._y, self._wide, self._high = frame
        self.low, self.high = _around(xs)
        self.bottom, self.top = _around(ys)
        self.right_edge, self.bottom_edge = self._x + self._wide, self._y + self._high

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
            canvas.text(x, self.bottom_edge + 14, short(10.0**power), size=9, style="mono soft",
                        anchor="middle")
        for power in _powers(self.bottom, self.top, 8):
            _, y = self.at(self.low, 10.0**power)
            canvas.text(self._x - 6, y + 3, short(10.0**power), size=9, style="mono soft",
                        anchor="end")

    def line(
        self, canvas: Canvas, points: Sequence[tuple[float, float]], fill: str, title: str,
        *, is_dashed: bool, width: float = 2.0,
    ) -> None:
        """A straight line, cut where it leaves the frame below."""
        (x0, y0), (x1, y1) = points
        if y0 < self.bottom and y1 > y0:
            x0, y0 = x0 * self.bottom / y0, self.bottom
        canvas.line([self.at(x0, y0), self.at(x1, y1)], fill, title=title, width=width,
                    is_dashed=is_dashed)

    def dot(self, canvas: Canvas, mark: Mark, fill: str, radius: float, unit: str) -> None:
        """A kernel: full where its time was measured, else a ring."""
        across, up = self.at(mark.intensity, mark.speed)
        bound = "" if mark.bound == float("inf") else f", of {mark.bound:,.4g}"
        canvas.dot(across, up, radius, fill,
                   f"{mark.kernel} and {mark.memory}: {mark.intensity:.4g} operations for a byte, "
                   f"{mark.speed:,.4g} in a {unit}{bound}")
        if not mark.is_measured:
            canvas.dot(across, up, 2.5, "paper")


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten below and above all values, with some room.

    >>> _around([2.0, 300.0]), _around([1.0])
    ((1.0, 1000.0), (0.1, 10.0))
    """
    low, high = log10(min(values) / _SPARE), log10(max(values) * _SPARE)
    return 10.0 ** floor(low), 10.0 ** ceil(high)


def _powers(low: float, high: float, most: int) -> range:
    first, last = round(log10(low)), round(log10(high))
    return range(first, last + 1, max(1, ceil((last - first) / most)))
