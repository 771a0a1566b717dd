"""Iteration domains as pictures: points of two axes, the order of the loops, and dependences."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import numpy as np

from tecomp.compute.axis import IterKind, IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.errors import ScheduleError
from tecomp.ir.language.text import counted, shortened
from tecomp.pictures.domain_points import (
    SIZE,
    Arrow,
    Domain,
    at_once,
    domain_of,
    numbered,
    scan_around,
    shared,
    steps,
    sums,
)
from tecomp.scheduling.schedule import Stage
from tecomp.scheduling.state import At, Inline, StageState, State

_STEP, _DOT = 34.0, 11.0
_MOST_COLOURS = 16
_MOST_ARROWS = 400

Point = tuple[int, ...]


def drawn(stage: Stage, axes: Sequence[IterVar]) -> Svg:
    """The picture of two axes of a stage.

    Args:
        stage: of a schedule.
        axes: those of its definition that go down and to the right; none for those that an
            element follows from others along, or the first.

    Raises:
        ScheduleError: the stage is a placeholder, or has no such axes.
    """
    state, own = stage._schedule.state, stage._state
    chosen = _axes(state, own, axes)
    canvas = Canvas()
    if not chosen:
        y = head(canvas, f"iteration domain of {own.name}", "one point: it has no axes") + 30
        canvas.dot(MARGIN + _DOT, y, _DOT, colour(0), "the only point")
        return canvas.finished(f"the iteration domain of {own.name}")
    domain = domain_of(state, own, chosen)
    names = ", ".join(shortened(axis.name, 40) for axis in chosen)
    loops = ", ".join(f"{leaf.name}" for leaf in own.leaves) or "none"
    y = head(canvas, f"iteration domain of {own.name}", _slice(own.compute, chosen, domain),
             f"loops, outermost first: {loops}") + 30
    heading(canvas, MARGIN, y, f"Points ({names})", "numbers: when each is computed")
    arrows, remark = _dependences(state, own, domain)
    fills, words = _colours(own, domain)
    bottom = _draw(canvas, own, domain, arrows, fills, y + 18)
    entries = [(colour(0, 1), words)] if words else []
    legend(canvas, bottom + 20, entries, [*_remarks(own, domain), remark])
    return canvas.finished(f"the iteration domain of {own.name} over {names}")


def _axes(state: State, stage: StageState, given: Sequence[IterVar]) -> tuple[IterVar, ...]:
    """The axes that are drawn.

    Raises:
        ScheduleError: they are not two of the stage.
    """
    op = stage.compute
    known = (*op.axis, *op.reduce_axis)
    if given:
        is_known = all(any(axis is each for each in known) for axis in given)
        if not is_known or len({*map(id, given)}) != len(given) or len(given) > 2:
            names = ", ".join(axis.name for axis in known) or "none"
            raise ScheduleError(
                f"s[{stage.name}].domain_picture: a slice is of one or two axes of the definition, "
                f"each once, got {', '.join(map(str, given))}; the axes are {names}",
                kind="no-such-loop",
            )
        return tuple(given)
    if op.reduce_axis and scan_around(state, stage) is None:
        return (*op.axis[-1:], op.reduce_axis[0]) if op.axis else op.reduce_axis[:2]
    return known[:2]


def _slice(op: ComputeOp, chosen: Sequence[IterVar], domain: Domain) -> str:
    """What is defined, and where the axes are that are not drawn."""
    text = shortened(" ".join(str(op).split()), 120)
    others = [axis for axis in (*op.axis, *op.reduce_axis) if axis not in chosen]
    fixed = ", ".join(f"{axis.name} = {int(domain.at[axis])}" for axis in others)
    return f"{text}, where {fixed}" if fixed else text


def _dependences(
    state: State, stage: StageState, domain: Domain
) -> tuple[Sequence[Arrow], str]:
    """Arrows from a point to those that need what it computed, and what is to be said of them."""
    reduces = any(axis.kind is IterKind.REDUCE for axis in domain.axes)
    if reduces:
        return sums(domain), "Arrows: each point adds to what the one before it left."
    found = steps(state, stage, domain)
    if found:
        words = "Arrows go from a step to those that read what it computed"
        if len(found) <= _MOST_ARROWS:
            return found, f"{words}."
        points = sorted({point for _, point in found})
        one = points[len(points) // 2]
        return [each for each in found if each[1] == one], f"{words}; those to one point are drawn."
    if stage.compute.reduce_axis:
        name = stage.compute.reduce_axis[0].name
        return (), f"Elements are sums over other axes: a slice along {name} shows its dependences."
    return (), "No point needs what another one computes."


def _colours(stage: StageState, domain: Domain) -> tuple[dict[Point, str], str]:
    """A colour for each point, and what points of one colour have in common.

    It is the iteration of as many outer loops as few colours can show.
    """
    best, used = np.zeros(domain.shape, np.int64), 0
    for count in range(1, len(stage.leaves) + 1):
        found = numbered([domain.leaves[leaf] for leaf in stage.leaves[:count]], domain.shape)
        different = len(np.unique(found[domain.is_inside]))
        if different > _MOST_COLOURS or 1 < different == domain.is_inside.sum():
            break
        best, used = found, count
    varied = [
        leaf.name for leaf in stage.leaves[:used]
        if domain.is_inside.any() and np.ptp(domain.leaves[leaf][domain.is_inside])
    ]
    fills = {
        tuple(point): colour(int(best[tuple(point)]), int(best[tuple(point)]) // 8)
        for point in np.argwhere(domain.is_inside).tolist()
    }
    words = f"one colour: one iteration of {', '.join(varied)}" if varied else ""
    return fills, shortened(words, 120)


def _draw(
    canvas: Canvas, stage: StageState, domain: Domain, arrows: Sequence[Arrow],
    fills: dict[Point, str], y: float,
) -> float:
    """Draw the points with their order and their arrows; where they end."""
    left, top = _names(canvas, domain, y)

    def middle(point: Point) -> tuple[float, float]:
        return left + point[-1] * _STEP + _DOT, top + sum(point[:-1]) * _STEP

    for points in domain.in_order():
        if len(points) > 1:
            canvas.line([middle(point) for point in points], style="faint", width=2,
                        title="the order of the loops")
    for source, point in arrows:
        _arrow(canvas, middle(source), middle(point),
               f"{_at(domain, source)} is needed for {_at(domain, point)}")
    for point, fill in fills.items():
        _point(canvas, stage, domain, point, middle(point), fill)
    if not fills:
        canvas.text(left, top + 4, "none", style="soft")
    return _ends(canvas, domain, left, top)


def _names(canvas: Canvas, domain: Domain, y: float) -> tuple[float, float]:
    """Write the values of the axes; where the points begin."""
    *down, across = domain.axes
    rows = [str(domain.firsts[0] + k) for k in range(domain.shape[0])] if down else []
    corner = f"{shortened(down[0].name, 20)} ↓" if down else ""
    widths = [text_width(name, 10, "mono") for name in (*rows, corner)]
    left, top = MARGIN + max(widths) + 18, y + 30
    canvas.text(left - 16, y + 14, corner, size=10, style="mono soft", anchor="end")
    label = f"{shortened(across.name, 20)} →"
    canvas.text(left - 8, y - 2, label, size=10, style="mono soft")
    for k in range(domain.shape[-1]):
        canvas.text(left + k * _STEP + _DOT, y + 14, str(domain.firsts[-1] + k), size=9,
                    style="mono soft", anchor="middle")
    for k, name in enumerate(rows):
        canvas.text(left - 16, top + k * _STEP + 5, name, size=10, style="mono soft", anchor="end")
    return left, top


def _ends(canvas: Canvas, domain: Domain, left: float, top: float) -> float:
    """Mark where there are more points than those shown; where the picture of them ends."""
    rows = domain.shape[0] if len(domain.shape) > 1 else 1
    if domain.extents[-1] > domain.shape[-1]:
        canvas.text(left + domain.shape[-1] * _STEP + 6, top + 4, "⋯", style="soft")
    bottom = top + max(rows - 1, 0) * _STEP + _DOT
    if len(domain.shape) == 1 or domain.extents[0] == rows:
        return bottom
    canvas.text(left + _DOT, bottom + 16, "⋮", style="soft", anchor="middle")
    return bottom + 18


def _point(
    canvas: Canvas, stage: StageState, domain: Domain, point: Point,
    middle: tuple[float, float], fill: str,
) -> None:
    x, y = middle
    loops = ", ".join(f"{leaf.name} {int(domain.leaves[leaf][point])}" for leaf in stage.leaves)
    title = f"{_at(domain, point)}: {shortened(loops, 120)}"
    canvas.dot(x, y, _DOT, fill, title)
    canvas.text(x, y + 3, str(int(domain.time[point])), size=9, style="mono dark", anchor="middle")


def _at(domain: Domain, point: Point) -> str:
    return ", ".join(
        f"{shortened(axis.name, 30)} = {first + k}"
        for axis, first, k in zip(domain.axes, domain.firsts, point, strict=True))


def _arrow(
    canvas: Canvas, start: tuple[float, float], end: tuple[float, float], title: str
) -> None:
    """An arrow from the border of one point to that of another."""
    across, down = end[0] - start[0], end[1] - start[1]
    length = hypot(across, down)
    x, y = across / length * (_DOT + 1), down / length * (_DOT + 1)
    canvas.arrow((start[0] + x, start[1] + y), (end[0] - x, end[1] - y), title)


def _remarks(stage: StageState, domain: Domain) -> list[str]:
    """What has to be said of the order, and what is left out."""
    found = []
    if lanes := [leaf.name for leaf in at_once(stage)]:
        found.append("Points with one number are computed at once, in lanes of "
                     f"{', '.join(lanes)}.")
    if apart := [leaf.name for leaf in shared(stage)]:
        found.append(f"Iterations of {', '.join(apart)} run beside each other, each with numbers "
                     "of its own.")
    match stage.attach:
        case At():
            where = f"{stage.attach.stage.name}, {stage.attach.axis.name}"
            found.append(f"It is computed at {where}, in parts; this is the order if it was "
                         "computed once.")
        case Inline():
            found.append("It is computed inline, in the order of what reads it.")
        case _:
            pass
    if any(not isinstance(axis.extent, int) for axis in domain.axes):
        found.append(f"Sizes that calls give are {SIZE} here.")
    if any(n > shown for n, shown in zip(domain.extents, domain.shape, strict=True)):
        whole = " by ".join(f"{n:,}" for n in domain.extents)
        shown = " by ".join(map(str, domain.shape))
        found.append(f"A corner of {shown} of the {whole} points is shown; numbers count its "
                     f"{counted(int(domain.is_inside.sum()), 'point')} alone.")
    return found
