"""Relayouts and index maps as pictures: what goes where, in runs of which length."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.copies.relayout import Relayout
from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import NEUTRAL, colour
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.errors import LayoutError
from tecomp.ir.language.text import shortened
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.descriptions.text import formula
from tecomp.pictures.layout import Scale, draw_memories, row_colours
from tecomp.pictures.layout_parts import Piece, parts_of
from tecomp.pictures.transfers import draw_runs
from tecomp.poly.maps.index_map import IndexMap


def drawn(relayout: Relayout) -> Svg:
    """The picture of a copy from one layout to another."""
    src, dst = relayout.src, relayout.dst
    canvas = Canvas()
    title = f"{src.dtype}{list(src.shape)}"
    y = head(canvas, f"relayout of {title}", f"from {shortened(formula(src), 140)}",
             f"to {shortened(formula(dst), 140)}") + 34
    if not src.num_elements:
        canvas.text(MARGIN, y, "nothing is copied", style="soft")
        return canvas.finished(f"relayout of {title}: nothing is copied")
    pieces: list[Piece] = []
    for words, layout in (("From", src), ("To", dst)):
        y, shown = _memory(canvas, words, layout, y)
        y += 40
        pieces += shown
    y = draw_runs(canvas, src.runs_to(dst), y) + 30
    legend(canvas, y, row_colours(src.shape, pieces), ["A row has one colour on both sides."])
    return canvas.finished(f"relayout of {title}")


def _memory(
    canvas: Canvas, words: str, layout: Layout, y: float
) -> tuple[float, Sequence[Piece]]:
    """The memory of one side; where it ends, and what is shown of it."""
    try:
        parts = parts_of(layout, by_rows=True)
    except LayoutError:
        heading(canvas, MARGIN, y, words, "no expression was found for what a place holds")
        return y + 10, ()
    scale = Scale(layout, parts)
    remark = f"physical {list(layout.physical_shape)} in {layout.memory}"
    end = draw_memories(canvas, layout, parts, scale, (MARGIN, y), (words, remark))
    return end, parts.pieces


def drawn_map(index_map: IndexMap) -> Svg:
    """The picture of an index map: which index each result takes."""
    canvas = Canvas()
    indices, results = index_map.initial_indices, index_map.final_indices
    names = [shortened(variable.name, 40) for variable in indices]
    texts = [shortened(str(expr), 90) for expr in results]
    y = head(canvas, "index map", shortened(index_map.formula, 160)) + 34
    wide = 24 + max([text_width(name, 12, "mono") for name in names], default=0)
    right = MARGIN + wide + 120
    heading(canvas, MARGIN, y, "Index")
    heading(canvas, right, y, "Place", "an axis of the memory for each border")
    for k, name in enumerate(names):
        canvas.box(MARGIN, y + 14 + k * 32, wide, 24, colour(k), f"index {name}")
        canvas.text(MARGIN + 12, y + 30 + k * 32, name, size=12, style="mono dark")
    ends = {axis + 1 for axis in index_map.axis_separators}
    top = y + 14
    for k, (expr, text) in enumerate(zip(results, texts, strict=True)):
        if k in ends:
            canvas.line([(right - 10, top), (right + 220, top)], is_dashed=True,
                        title="an axis of the memory ends here")
            top += 10
        used = free_variables(expr)
        fill = next((colour(n) for n, each in enumerate(indices) if each in used), NEUTRAL)
        canvas.box(right, top, 24 + text_width(text, 12, "mono"), 24, fill, f"place {k}: {text}")
        canvas.text(right + 12, top + 16, text, size=12, style="mono dark")
        for n, each in enumerate(indices):
            if each in used:
                canvas.line([(MARGIN + wide, y + 26 + n * 32), (right, top + 12)], colour(n, 3),
                            title=f"{names[n]} is in place {k}")
        top += 32
    return canvas.finished(f"the index map {index_map.formula}")
