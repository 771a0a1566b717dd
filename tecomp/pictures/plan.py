"""Plans of memory as pictures: time runs downwards, addresses to the right."""

from __future__ import annotations

from collections.abc import Callable

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading
from tecomp.drawing.svg import Svg
from tecomp.graph.memory import Plan

_WIDE = 420.0
_ROW, _BAR = 26.0, 22.0
_MOST_ROWS = 160


def drawn(plan: Plan) -> Svg:
    """The picture of a plan of memory."""
    canvas = Canvas()
    y = head(canvas, "memory between kernels", sizes_of(plan)) + 30
    rows = 1 + max((value.last for value in plan.values), default=-1)
    shown = min(rows, _MOST_ROWS)
    heading(canvas, MARGIN, y, "Kernels", "time runs downwards, addresses to the right")
    left = MARGIN + text_width(str(max(rows - 1, 0)), 10, "mono") + 16
    for k in range(shown):
        canvas.text(left - 10, y + 14 + k * _ROW + 15, str(k), size=10, style="mono soft",
                    anchor="end")
    end = draw_values(canvas, plan, left, lambda row: y + 14 + row * _ROW, _BAR, shown)
    if shown < rows:
        canvas.text(left, end + 14, f"⋮ {rows - shown} more kernels", style="soft")
    return canvas.finished("the memory between kernels")


def sizes_of(plan: Plan) -> str:
    """How much memory it is, in words."""
    if not plan.values:
        return "none"
    return f"{plan.bytes:,} bytes, of which {plan.lower_bound:,} are needed at one time"


def draw_values(
    canvas: Canvas, plan: Plan, left: float, top_of: Callable[[float], float], bar: float,
    rows: int,
) -> float:
    """Draw the values at their addresses while they are needed; where they end.

    Args:
        canvas: the picture.
        plan: the values.
        left: where address 0 is.
        top_of: where the row of a kernel begins.
        bar: how high a row is drawn.
        rows: how many kernels are shown.
    """
    if not plan.values:
        canvas.text(left, top_of(0) + 14, "none", style="soft")
        return top_of(0) + 20
    places = dict.fromkeys(value.offset for value in plan.values)
    hues = {place: k for k, place in enumerate(places)}
    scale = _WIDE / max(plan.bytes, 1)
    bottom = top_of(max(rows - 1, 0)) + bar
    canvas.box(left, top_of(0), _WIDE, bottom - top_of(0), "plain", "memory that is free")
    for value in plan.values:
        if value.first >= rows:
            continue
        x, y = left + value.offset * scale, top_of(value.first)
        high = top_of(min(value.last, rows - 1)) + bar - y
        wide, name = value.bytes * scale, value.tensor.name
        title = (f"{name}: {value.bytes:,} bytes from {value.offset:,} on, "
                 f"kernels {value.first} to {value.last}")
        hue = hues[value.offset]
        canvas.box(x, y, max(wide - 1, 1), max(high - 1, 1), colour(hue, hue // 8), title)
        if text_width(name, 10, "mono") < wide - 8:
            canvas.text(x + 4, y + 14, name, size=10, style="dark mono", title=title)
    return bottom
