"""Virtual grids as pictures: which core of which device stands for each core of a layout."""

from __future__ import annotations

from math import prod

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.palette import colour
from tecomp.drawing.panels import head, heading, legend, sampled
from tecomp.drawing.svg import Svg
from tecomp.ir.language.text import counted, shortened
from tecomp.layout.shards.virtual_grid import GridMap
from tecomp.poly.maps.enumerate import unravel

_MOST_DEVICES, _MOST_ROWS, _MOST_COLUMNS = 4, 12, 12
_HIGH = 22.0


def drawn(grid: GridMap) -> Svg:
    """The picture of a virtual grid: the cores of the machine, each with the one it stands for."""
    canvas = Canvas()
    lines = [shortened(grid.index_map.formula, 140),
             f"{counted(prod(grid.shape), 'virtual core')} on {list(grid.physical)}, "
             f"{counted(grid.idle_count, 'core')} idle"]
    y = head(canvas, f"virtual grid {list(grid.shape)}", *lines) + 30
    *outer, rows, columns = (1, 1, *grid.physical)[-max(len(grid.physical), 2):]
    last = ",".join(str(n - 1) for n in grid.shape)
    wide = max(30.0, text_width(last, 9, "mono") + 8)
    for number in sampled(prod(outer), _MOST_DEVICES):
        if number is None:
            canvas.text(MARGIN, y, "⋮", style="soft")
            y += 24
            continue
        heading(canvas, MARGIN, y, f"Device {number}" if outer else "Cores",
                "numbers are virtual cores")
        y = _device(canvas, grid, number * rows * columns, (rows, columns), wide, y + 14) + 34
    legend(canvas, y - 20, [("pad", "stands idle")] if grid.idle_count else [])
    return canvas.finished(f"the virtual grid {list(grid.shape)}")


def _device(
    canvas: Canvas, grid: GridMap, first: int, extents: tuple[int, int], wide: float, y: float
) -> float:
    """The cores of one device; where they end."""
    rows = sampled(extents[0], _MOST_ROWS)
    for line, row in enumerate(rows):
        top = y + line * _HIGH
        for place, column in enumerate(sampled(extents[1], _MOST_COLUMNS)):
            x = MARGIN + place * wide
            if row is None or column is None:
                canvas.text(x + 8, top + 14, "⋯" if row is not None else "⋮", style="soft")
                continue
            core = unravel(first + row * extents[1] + column, grid.physical)
            virtual = grid.virtual(core)
            words = "" if virtual is None else ",".join(map(str, virtual))
            fill = "pad" if virtual is None else colour(virtual[-2] if len(virtual) > 1 else 0, 1)
            canvas.box(x, top, wide - 2, _HIGH - 2, fill, f"core {core}: {words or 'idle'}", words)
    return y + len(rows) * _HIGH
