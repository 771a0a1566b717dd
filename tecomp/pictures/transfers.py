"""Copies as pictures: loops of a DMA engine, and in runs of which length elements lie."""

from __future__ import annotations

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading, many, sampled
from tecomp.drawing.svg import Svg
from tecomp.ir.language.text import counted
from tecomp.layout.transfers.dma import DmaNest
from tecomp.layout.transfers.runs import Runs
from tecomp.pictures.nest import Row, draw_nest

_MOST_LENGTHS = 12


def drawn_nest(nest: DmaNest) -> Svg:
    """The picture of loops that a DMA engine runs: how far each goes in both memories."""
    canvas = Canvas()
    start = f"from host {nest.host_offset:,} to device {nest.device_offset:,} on"
    y = head(canvas, "loops of a DMA engine", f"{counted(nest.size, 'element')}, {start}") + 24
    rows = [
        Row(depth, "loop", f"{count:,} times",
            f"{host:,} further on the host, {device:,} further on the device")
        for depth, (count, device, host) in enumerate(
            zip(nest.ranges, nest.device_strides, nest.host_strides, strict=True))
    ]
    draw_nest(canvas, [*rows, Row(len(rows), "statement", "copies an element")], MARGIN, y)
    return canvas.finished("loops of a DMA engine")


def drawn_runs(runs: Runs) -> Svg:
    """The picture of the runs of a copy."""
    canvas = Canvas()
    draw_runs(canvas, runs, head(canvas, "runs of a copy") + 24)
    return canvas.finished("the runs of a copy")


def draw_runs(canvas: Canvas, runs: Runs, y: float) -> float:
    """How many runs there are of each length; where they end."""
    heading(canvas, MARGIN, y, "Runs",
            f"{many(runs.count, 'sequence')} of elements that follow each other on both sides: "
            f"{runs.elements:,} of {many(runs.total, 'element')}")
    most = max((count for _, count in runs.lengths), default=1)
    top = y + 14
    for k in sampled(len(runs.lengths), _MOST_LENGTHS):
        if k is None:
            canvas.text(MARGIN, top + 12, "⋮", style="soft")
            top += 18
            continue
        length, count = runs.lengths[k]
        words = f"{many(count, 'run')} of {many(length, 'element')}"
        wide = max(420 * count / most, 1)
        canvas.box(MARGIN, top, wide, 14, colour(0, 1), words)
        canvas.text(MARGIN + wide + 8, top + 11, words, size=10, style="soft")
        top += 18
    return top
