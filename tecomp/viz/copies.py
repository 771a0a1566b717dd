"""Draw relayouts, transfers and core grids."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tecomp.drawing.canvas import (
    MARGIN,
    NEUTRAL,
    Canvas,
    colour,
    format_thousands,
    head,
    heading,
    legend,
    sample_indices,
    text_width,
)
from tecomp.drawing.svg import Svg
from tecomp.driver.relayout import Relayout
from tecomp.errors import LayoutError
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.layout.core.layout import Layout, formula
from tecomp.layout.dma import DmaNest, Runs
from tecomp.layout.sharding.virtual_grid import GridMap
from tecomp.poly.maps.brute_force import unravel
from tecomp.poly.maps.index_map import IndexMap
from tecomp.viz.layout import Scale, draw_memories, row_colours
from tecomp.viz.layout_parts import DrawnRun, parts_of
from tecomp.viz.loop_nest import LoopRow, draw_nest

_MOST_DEVICES, _MOST_ROWS, _MOST_COLUMNS = 4, 12, 12
_HIGH = 22.0


def draw_core_grid(grid: GridMap) -> Svg:
    """Draw a virtual grid: the physical cores, each labelled with its virtual core."""
    canvas = Canvas()
    lines = [truncate(grid.index_map.formula, 140),
             f"{format_count(prod(grid.shape), 'virtual core')} on {list(grid.physical)}, "
             f"{format_count(grid.idle_count, 'core')} idle"]
    y = head(canvas, f"virtual grid {list(grid.shape)}", *lines) + 30
    *outer, rows, columns = (1, 1, *grid.physical)[-max(len(grid.physical), 2):]
    last = ",".join(str(n - 1) for n in grid.shape)
    width = max(30.0, text_width(last, 9, "mono") + 8)
    for number in sample_indices(prod(outer), _MOST_DEVICES):
        if number is None:
            canvas.text(MARGIN, y, "⋮", style="soft")
            y += 24
            continue
        heading(canvas, MARGIN, y, f"Device {number}" if outer else "Cores",
                "numbers are virtual cores")
        y = _device(canvas, grid, number * rows * columns, (rows, columns), width, y + 14) + 34
    legend(canvas, y - 20, [("pad", "is idle")] if grid.idle_count else [])
    return canvas.finished(f"the virtual grid {list(grid.shape)}")


def _device(
    canvas: Canvas, grid: GridMap, first: int, extents: tuple[int, int], width: float, y: float
) -> float:
    """Draw the cores of one device; return the bottom y coordinate."""
    rows = sample_indices(extents[0], _MOST_ROWS)
    for line, row in enumerate(rows):
        top = y + line * _HIGH
        for slot, column in enumerate(sample_indices(extents[1], _MOST_COLUMNS)):
            x = MARGIN + slot * width
            if row is None or column is None:
                canvas.text(x + 8, top + 14, "⋯" if row is not None else "⋮", style="soft")
                continue
            core = unravel(first + row * extents[1] + column, grid.physical)
            virtual = grid.virtual(core)
            label = "" if virtual is None else ",".join(map(str, virtual))
            fill = "pad" if virtual is None else colour(virtual[-2] if len(virtual) > 1 else 0, 1)
            canvas.box(x, top, width - 2, _HIGH - 2, fill, f"core {core}: {label or 'idle'}", label)
    return y + len(rows) * _HIGH


_MAX_LENGTHS = 12


def draw_dma_nest(nest: DmaNest) -> Svg:
    """Draw the loop nest of a DMA transfer, with the strides of each loop in both memories."""
    canvas = Canvas()
    start = f"from host {nest.host_offset:,} to device {nest.device_offset:,} on"
    y = head(canvas, "loops of a DMA engine", f"{format_count(nest.size, 'element')}, {start}") + 24
    rows = [
        LoopRow(
            depth,
            "loop",
            f"{count:,} times",
            f"{host:,} further on the host, {device:,} further on the device",
        )
        for depth, (count, device, host) in enumerate(
            zip(nest.ranges, nest.device_strides, nest.host_strides, strict=True)
        )
    ]
    draw_nest(canvas, [*rows, LoopRow(len(rows), "statement", "copies an element")], MARGIN, y)
    return canvas.finished("loops of a DMA engine")


def draw_copy_runs(runs: Runs) -> Svg:
    """Draw the contiguous runs of a copy."""
    canvas = Canvas()
    draw_runs(canvas, runs, head(canvas, "runs of a copy") + 24)
    return canvas.finished("the runs of a copy")


def draw_runs(canvas: Canvas, runs: Runs, y: float) -> float:
    """Draw a histogram of run lengths; return the bottom y coordinate."""
    heading(canvas, MARGIN, y, "Runs",
            f"{format_thousands(runs.count, 'sequence')} of elements that follow each other on "
            "both sides: "
            f"{runs.elements:,} of {format_thousands(runs.total, 'element')}")
    max_count = max((count for _, count in runs.lengths), default=1)
    top = y + 14
    for k in sample_indices(len(runs.lengths), _MAX_LENGTHS):
        if k is None:
            canvas.text(MARGIN, top + 12, "⋮", style="soft")
            top += 18
            continue
        length, count = runs.lengths[k]
        label = f"{format_thousands(count, 'run')} of {format_thousands(length, 'element')}"
        width = max(420 * count / max_count, 1)
        canvas.box(MARGIN, top, width, 14, colour(0, 1), label)
        canvas.text(MARGIN + width + 8, top + 11, label, size=10, style="soft")
        top += 18
    return top


def draw_relayout(relayout: Relayout) -> Svg:
    """Draw a copy from one layout to another."""
    src, dst = relayout.src, relayout.dst
    canvas = Canvas()
    title = f"{src.dtype}{list(src.shape)}"
    y = head(canvas, f"relayout of {title}", f"from {truncate(formula(src), 140)}",
             f"to {truncate(formula(dst), 140)}") + 34
    if not src.num_elements:
        canvas.text(MARGIN, y, "nothing is copied", style="soft")
        return canvas.finished(f"relayout of {title}: nothing is copied")
    pieces: list[DrawnRun] = []
    for label, layout in (("From", src), ("To", dst)):
        y, drawn = _memory(canvas, label, layout, y)
        y += 40
        pieces += drawn
    y = draw_runs(canvas, src.runs_to(dst), y) + 30
    legend(canvas, y, row_colours(src.shape, pieces), ["A row has one colour on both sides."])
    return canvas.finished(f"relayout of {title}")


def _memory(
    canvas: Canvas, label: str, layout: Layout, y: float
) -> tuple[float, Sequence[DrawnRun]]:
    """Draw the memory of one side; return the bottom y coordinate and the pieces shown."""
    try:
        parts = parts_of(layout, by_rows=True)
    except LayoutError:
        heading(canvas, MARGIN, y, label, "the index map has no closed-form inverse")
        return y + 10, ()
    scale = Scale(layout, parts)
    caption = f"physical {list(layout.physical_shape)} in {layout.memory}"
    end = draw_memories(canvas, layout, parts, scale, (MARGIN, y), (label, caption))
    return end, parts.pieces


def draw_index_map(index_map: IndexMap) -> Svg:
    """Draw an index map: which indices each result depends on."""
    canvas = Canvas()
    indices, results = index_map.initial_indices, index_map.final_indices
    names = [truncate(variable.name, 40) for variable in indices]
    texts = [truncate(str(expr), 90) for expr in results]
    y = head(canvas, "index map", truncate(index_map.formula, 160)) + 34
    width = 24 + max([text_width(name, 12, "mono") for name in names], default=0)
    right = MARGIN + width + 120
    heading(canvas, MARGIN, y, "Index")
    heading(canvas, right, y, "Place", "one border per physical axis")
    for k, name in enumerate(names):
        canvas.box(MARGIN, y + 14 + k * 32, width, 24, colour(k), f"index {name}")
        canvas.text(MARGIN + 12, y + 30 + k * 32, name, size=12, style="mono dark")
    ends = {axis + 1 for axis in index_map.axis_separators}
    top = y + 14
    for k, (expr, text) in enumerate(zip(results, texts, strict=True)):
        if k in ends:
            canvas.line([(right - 10, top), (right + 220, top)], is_dashed=True,
                        title="end of a physical axis")
            top += 10
        used = free_variables(expr)
        fill = next((colour(n) for n, var in enumerate(indices) if var in used), NEUTRAL)
        canvas.box(right, top, 24 + text_width(text, 12, "mono"), 24, fill, f"place {k}: {text}")
        canvas.text(right + 12, top + 16, text, size=12, style="mono dark")
        for n, var in enumerate(indices):
            if var in used:
                canvas.line([(MARGIN + width, y + 26 + n * 32), (right, top + 12)], colour(n, 3),
                            title=f"{names[n]} is in place {k}")
        top += 32
    return canvas.finished(f"the index map {index_map.formula}")
