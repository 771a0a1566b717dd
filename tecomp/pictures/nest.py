"""Rows of a loop nest: bars that say what runs how often, each under what it is inside of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.drawing.canvas import Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import NEUTRAL, colour
from tecomp.ir.language.expr import Const, Expr

STEP, ROW, BAR = 18.0, 22.0, 18.0
_WIDEST = 620.0

KINDS = {
    "loop": (colour(0), "a loop"),
    "vectorized": (colour(1, 1), "vectorized: all at once, in lanes"),
    "unrolled": (colour(4), "unrolled: written out"),
    "parallel": (colour(2, 1), "parallel: shared by threads"),
    "bound": (colour(3), "bound: one core each"),
    "tensorized": (colour(5), "tensorized: an operation of the machine"),
    "stage": (NEUTRAL, "a stage"),
    "memory": (NEUTRAL, "memory"),
    "condition": (colour(6), "a condition"),
    "statement": ("plain", "a statement"),
}
"""For each kind of row its fill, and what it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a nest.

    Attributes:
        depth: of nesting.
        kind: one of `KINDS`.
        words: what it is.
        remark: beside it.
        title: for a mouse over it.
    """

    depth: int
    kind: str
    words: str
    remark: str = ""
    title: str = ""


def extent_text(extent: Expr | int) -> str:
    """An extent as it is read: a number without its type.

    >>> from tecomp.ir.language.dtype import INT32
    >>> extent_text(Const(64, INT32)), extent_text(3)
    ('64', '3')
    """
    return str(extent.value if isinstance(extent, Const) else extent)


def draw_nest(canvas: Canvas, rows: Sequence[Row], x: float, y: float) -> tuple[float, float]:
    """Draw the rows below each other; where they end to the right and at the bottom."""
    right = x
    for number, row in enumerate(rows):
        left, top = x + min(row.depth, 24) * STEP, y + number * ROW
        style = "mono dark" if row.kind != "statement" else "mono"
        inner = min(text_width(row.words, 10, style), _WIDEST - 16)
        wide = inner + 16
        canvas.box(left, top, wide, BAR, KINDS[row.kind][0], row.title or row.words)
        canvas.text(left + 8, top + 13, row.words, size=10, style=style, width=inner,
                    title=row.title)
        end = left + wide
        if row.remark:
            end = canvas.text(end + 8, top + 13, row.remark, size=10, style="soft", width=420)
        right = max(right, end)
    _bars(canvas, rows, x, y)
    return right, y + len(rows) * ROW


def _bars(canvas: Canvas, rows: Sequence[Row], x: float, y: float) -> None:
    """A line down from each row along all that is inside of it."""
    for number, row in enumerate(rows):
        end = number
        while end + 1 < len(rows) and rows[end + 1].depth > row.depth:
            end += 1
        if end > number and row.depth < 24:
            left = x + row.depth * STEP + 5
            top = y + number * ROW + BAR
            canvas.line([(left, top), (left, y + end * ROW + BAR)], style="faint", width=1)


def kinds_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The legend of the kinds that occur."""
    used = {row.kind for row in rows}
    return [KINDS[kind] for kind in KINDS if kind in used]
