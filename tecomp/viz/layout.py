"""Draw layouts: the mapping of tensor parts to memory, the memory of each core, and padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from tecomp.drawing.canvas import (
    MARGIN,
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
from tecomp.errors import LayoutError
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.layout.core.layout import FixedTiledLayout, Layout, formula
from tecomp.layout.formats.stored_tensor import StoredTensor
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.poly.maps.brute_force import unravel
from tecomp.viz.layout_parts import (
    Block,
    DrawnRun,
    MemoryPanel,
    Parts,
    Slab,
    parts_of,
    rows_of,
    shades_of,
    shard_of,
)

_ROW, _BAR, _GAP = 22.0, 18.0, 2.0
_BLOCK = 132.0
"""Width of a full block of memory, in pixels."""
_MAX_WIDTH = 1160.0
_MOST_ROWS, _MOST_COLUMNS = 28, 6
_UNADDRESSABLE_ELEMENTS = 1 << 60
"""Number of places beyond which neither machines nor NumPy can address memory."""


def draw_layout_figure(layout: Layout) -> Svg:
    """Draw a layout: every place of a small layout, representative parts of a large one."""
    canvas = Canvas()
    title = f"{layout.dtype}{list(layout.shape)}"
    y = head(canvas, title, truncate(formula(layout), 160), *sizes_of(layout)) + 30
    reason = draw_layout(canvas, layout, y)
    return canvas.finished(f"{title}: {reason}" if reason else f"{title} as {formula(layout)}")


def draw_tiled_layout(value: FixedTiledLayout) -> Svg:
    """Draw the device layout of a value that is stored on the host and a device."""
    return draw_layout_figure(value.device_layout)


def draw_layout(canvas: Canvas, layout: Layout, y: float) -> str:
    """Draw the tensor and its memory from `y` on; return the reason if there is nothing to draw."""
    if not 0 < layout.num_places < _UNADDRESSABLE_ELEMENTS:
        reason = "more positions than addresses" if layout.num_places else "no places"
        canvas.text(MARGIN, y, reason, style="soft")
        return reason
    try:
        parts = parts_of(layout)
    except LayoutError:
        unknown = "memory is not shown: the index map has no closed-form inverse"
        canvas.text(MARGIN, y, unknown, style="soft")
        return ""
    scale = Scale(layout, parts)
    if prod(layout.grid_shape) > 1:
        y = _grid(canvas, layout, parts, y) + 34
    is_grid = prod(layout.grid_shape) > 1
    right = _tensor(canvas, layout, parts, scale, y)
    start = (right + 44, y) if right < _MAX_WIDTH / 2 else (MARGIN, canvas.bottom + 40)
    title = (
        ("Memories", "each core has its own, in the order of arrows") if is_grid
        else ("Memory", "in the order of arrows")
    )
    bottom = draw_memories(canvas, layout, parts, scale, start, title)
    y = _allocation(canvas, layout, max(bottom, canvas.bottom) + 40)
    legend(canvas, y + 14, _colours(layout, parts), _remarks(layout, parts))
    return ""


def sizes_of(layout: Layout) -> list[str]:
    """Describe the memory sizes of a layout."""
    text = f"physical {list(layout.physical_shape)} in {layout.memory}"
    if len(layout.memory_shape) > 1:
        text += f", whose axes are {list(layout.memory_shape)}"
    text += f"; {layout.nbytes:,} B"
    if not layout.grid_axes:
        return [text]
    cores = prod(layout.grid_shape)
    return [
        text,
        f"grid {list(layout.grid_shape)}: {format_count(cores, 'core')}, each with "
        f"{list(shard_of(layout))} = {layout.shard_nbytes:,} B in its own memory",
    ]


class Scale:
    """Widths, fills and labels of pieces."""

    def __init__(self, layout: Layout, parts: Parts) -> None:
        self._size = (shard_of(layout) or (1,))[-1]
        self.is_few = all(piece.count == 1 for piece in parts.pieces)
        names = [self.name(piece) for piece in parts.pieces]
        offsets = [str(piece.offset) for piece in parts.pieces]
        longest = max(text_width(name, 9, "mono") for name in (*names, *offsets))
        self._cell = min(max(26.0, longest + 6), 80.0)
        self._shades = shades_of(layout, rows_of(layout, parts.pieces))

    def width(self, count: int) -> float:
        """Return the width of a piece with `count` places, in pixels."""
        if self.is_few:
            return self._cell * count
        return max(_BLOCK * count / self._size, 14.0)

    def fill(self, piece: DrawnRun) -> str:
        """Return the fill of a piece, as for `Canvas.box`."""
        if piece.first is None:
            return "pad"
        return colour(piece.part, self._shades[piece.core, piece.offset])

    @staticmethod
    def name(piece: DrawnRun) -> str:
        """Return the index of the first element of a piece as text."""
        return "" if piece.first is None else ",".join(map(str, piece.first)) or "()"


def _grid(canvas: Canvas, layout: Layout, parts: Parts, y: float) -> float:
    """Draw the core grid and mark the cores shown; return the bottom y coordinate."""
    shape = (1, *layout.grid_shape) if len(layout.grid_shape) == 1 else layout.grid_shape
    rows, columns = prod(shape[:-1]), shape[-1]
    drawn = {memory.core: n for n, memory in enumerate(m for m in parts.memories if m)}
    heading(canvas, MARGIN, y, "Cores", "numbers are the cores shown below")
    counts = layout.elements_per_core.ravel() if isinstance(layout, ShardLayout) else None
    x0, top = MARGIN, y + 14
    for line, row in enumerate(sample_indices(rows, 12)):
        if row is None:
            canvas.text(x0 + 6, top + line * 20 + 13, "⋮", style="soft")
            continue
        for slot, column in enumerate(sample_indices(columns, 32)):
            x, box_top = x0 + slot * 32, top + line * 20
            if column is None:
                canvas.text(x + 8, box_top + 13, "⋯", style="soft")
                continue
            core = row * columns + column
            content = "" if counts is None else f": {format_count(int(counts[core]), 'element')}"
            is_idle = counts is not None and not counts[core]
            fill = "pad" if is_idle else colour(drawn[core], 1) if core in drawn else "plain"
            coords = ", ".join(map(str, unravel(core, layout.grid_shape)))
            label = str(core) if core in drawn and not is_idle else ""
            canvas.box(x, box_top, 30, 18, fill, f"core ({coords}){content}", label)
    lines, n_columns = len(sample_indices(rows, 12)), len(sample_indices(columns, 32))
    canvas.frame(x0 - 4, top - 4, n_columns * 32 + 6, lines * 20 + 6, title="the grid of cores")
    return top + lines * 20


def _tensor(
    canvas: Canvas, layout: Layout, parts: Parts, scale: Scale, y: float
) -> float:
    """Draw the tensor rows with elements in the pieces shown; return the right x coordinate."""
    note = "number = place" if scale.is_few else "pieces that are contiguous in memory"
    right = heading(canvas, MARGIN, y, "Tensor", note)
    rows = rows_of(layout, parts.pieces)
    slots = _slots(rows)
    rows = {row: visible for row, pieces in rows.items()
            if (visible := [piece for piece in pieces if _column(piece) in slots])}
    chosen = [n for n in sample_indices(len(rows), _MOST_ROWS) if n is not None]
    numbers = [list(rows)[n] for n in chosen]
    names = [",".join(map(str, unravel(row, layout.shape[:-1]))) for row in numbers]
    x0 = MARGIN + max((text_width(name, 10, "mono") for name in names), default=0) + 18
    lefts, last = _lefts(slots, scale, x0)
    _columns(canvas, slots, lefts, scale, y + 26)
    top = y + 34
    for row, name in zip(numbers, names, strict=True):
        if row and row - 1 not in numbers:
            canvas.text(x0 - 14, top + 12, "⋮", style="soft")
            top += 16
        canvas.text(x0 - 8, top + 13, name, size=10, style="mono soft", anchor="end")
        for piece in rows[row]:
            _draw(canvas, layout, piece, scale, lefts[_column(piece)], top, is_memory=False)
        top += _ROW
    if numbers and numbers[-1] + 1 < prod(layout.shape[:-1]):
        canvas.text(x0 - 14, top + 12, "⋮", style="soft")
    return max(right, last)


def _column(piece: DrawnRun) -> int:
    return piece.first[-1] if piece.first else 0


def _slots(rows: dict[int, list[DrawnRun]]) -> dict[int, int]:
    """Return the start columns of pieces that are drawn, each with its longest piece."""
    found: dict[int, int] = {}
    for pieces in rows.values():
        for piece in pieces:
            start = _column(piece)
            found[start] = max(found.get(start, 0), piece.count)
    starts = sorted(found)
    if all(count == 1 for count in found.values()):
        return {starts[n]: found[starts[n]] for n in sample_indices(len(starts), 32)
            if n is not None}
    if len(starts) <= _MOST_COLUMNS:
        return {start: found[start] for start in starts}
    ends: dict[int, list[int]] = {}
    for pieces in rows.values():
        for piece in pieces:
            ends.setdefault(piece.part, []).append(_column(piece))
    retained = {column for columns in ends.values() for column in (min(columns), max(columns))}
    return {start: found[start] for start in sorted(retained)}


def _lefts(slots: dict[int, int], scale: Scale, x: float) -> tuple[dict[int, float], float]:
    """Return the x coordinate of each column, with gaps at omitted columns, and the right end."""
    found: dict[int, float] = {}
    end = 0
    for start, count in slots.items():
        if start > end:
            x += 18
        found[start] = x
        x += scale.width(count) + _GAP
        end = start + count
    return found, x


def _columns(
    canvas: Canvas, slots: dict[int, int], lefts: dict[int, float], scale: Scale, y: float
) -> None:
    """Draw column numbers above the columns, with marks at omitted columns."""
    end = 0
    for start, x in lefts.items():
        width = scale.width(slots[start])
        if start > end:
            canvas.text(x - 16, y, "⋯", style="soft")
        last = start + slots[start] - 1
        long, short = f"{start}…{last}", f"{start}"
        name = short if last == start or text_width(long, 9, "mono") > width else long
        if text_width(name, 9, "mono") <= width:
            canvas.text(x + width / 2, y, name, size=9, style="mono soft", anchor="middle")
        end = last + 1


def _draw(
    canvas: Canvas, layout: Layout, piece: DrawnRun, scale: Scale, x: float, y: float,
    *, is_memory: bool,
) -> None:
    """Draw a piece as a bar, labelled with its address or (in memory) its element."""
    width = scale.width(piece.count) - (_GAP if is_memory or scale.is_few else 0)
    name = str(piece.offset) if scale.is_few and not is_memory else scale.name(piece)
    canvas.box(x, y, width, _BAR, scale.fill(piece), _title(layout, piece), name)


def _title(layout: Layout, piece: DrawnRun) -> str:
    """Return the tooltip of a piece."""
    location = f"place {piece.offset:,}"
    if piece.count > 1:
        location = f"places {piece.offset:,} to {piece.offset + piece.count - 1:,}"
    if (byte := _byte(layout, piece.offset)) is not None:
        location += f", byte {byte:#x}"
    if layout.grid_axes:
        location += f", core ({', '.join(map(str, unravel(piece.core, layout.grid_shape)))})"
    if piece.first is None:
        return f"padding: {location}"
    index = [*map(str, piece.first)]
    if piece.count > 1:
        index[-1] = f"{piece.first[-1]}:{piece.first[-1] + piece.count}"
    return f"[{', '.join(index)}] in {location}"


def _byte(layout: StoredTensor, offset: int) -> int | None:
    """Return the byte address of a place in its memory; None if elements are not whole bytes."""
    volume = layout.num_places // max(prod(layout.grid_shape), 1)
    size, remainder = divmod(layout.shard_nbytes, volume)
    return None if remainder else offset * size


def draw_memories(
    canvas: Canvas, layout: Layout, parts: Parts, scale: Scale, start: tuple[float, float],
    titles: tuple[str, str],
) -> float:
    """Draw a panel for the memory of each core, wrapped at the figure width.

    Args:
        canvas: Canvas to draw on.
        layout: Layout to show.
        parts: Parts of the layout to show.
        scale: Widths, fills and labels of pieces.
        start: Left and top coordinates.
        titles: Heading and a remark beside it.

    Returns:
        y coordinate of the bottom edge.
    """
    x0, y = start
    heading(canvas, x0, y, *titles)
    x, top, bottom = x0, y + 16, y + 16
    for memory in parts.memories:
        if memory is None:
            canvas.text(x, top + 20, "⋯", style="soft")
            x += 26
            continue
        width = _memory_width(layout, memory, scale)
        if x > x0 and x + width > max(_MAX_WIDTH, x0 + 520):
            x, top = x0, bottom + 12
        bottom = max(bottom, _memory(canvas, layout, memory, scale, (x, top)))
        x += width + 16
    return bottom


def _slab_width(layout: Layout, slab: Slab, scale: Scale) -> float:
    label = text_width(_slab_name(layout, slab), 9, "mono")
    blocks = (block for block in slab.blocks if block)
    return max(label, *(_block_width(block, scale) for block in blocks)) + 46


def _block_width(block: Block, scale: Scale) -> float:
    return sum(16 if piece is None else scale.width(piece.count) for piece in block.pieces)


def _memory_width(layout: Layout, memory: MemoryPanel, scale: Scale) -> float:
    width = sum(24 if slab is None else _slab_width(layout, slab, scale) for slab in memory.slabs)
    return max(width + 12, text_width(_memory_name(memory), 11, "bold") + 16)


def _memory_name(memory: MemoryPanel) -> str:
    return f"core ({', '.join(map(str, memory.index))})" if memory.index else ""


def _slab_name(layout: Layout, slab: Slab) -> str:
    """Return the index of a slab in its memory, and its address, as text."""
    byte = _byte(layout, slab.offset)
    where = f"@{slab.offset:,}" if byte is None else f"@{byte:#x}"
    return f"[{','.join(map(str, slab.index))}] {where}" if slab.index else where


def _memory(
    canvas: Canvas, layout: Layout, memory: MemoryPanel, scale: Scale, corner: tuple[float, float]
) -> float:
    """Draw the panel of one memory; return the bottom y coordinate."""
    x, y = corner
    top = y + 8
    if name := _memory_name(memory):
        canvas.text(x + 8, y + 15, name, size=11, style="bold")
        top = y + 24
    bottom, left = top, x + 6
    for slab in memory.slabs:
        if slab is None:
            canvas.text(left + 4, top + 28, "⋯", style="soft")
            left += 24
            continue
        bottom = max(bottom, _slab(canvas, layout, slab, scale, (left, top)))
        left += _slab_width(layout, slab, scale)
    title = name or f"the memory {layout.memory}"
    canvas.frame(
        x, y, _memory_width(layout, memory, scale), bottom - y + 8, thick=1.6, title=title
    )
    return bottom + 8


def _slab(
    canvas: Canvas, layout: Layout, slab: Slab, scale: Scale, corner: tuple[float, float]
) -> float:
    """Draw the blocks of a slab in a dashed frame; return the bottom y coordinate."""
    x, y = corner
    name = _slab_name(layout, slab)
    canvas.text(x + 8, y + 12, name, size=9, style="mono soft")
    top = first = y + 20
    for block in slab.blocks:
        if block is None:
            canvas.text(x + 22, top + 12, "⋮", style="soft")
            top += 16
            continue
        left = x + 20
        for piece in block.pieces:
            if piece is None:
                canvas.text(left + 2, top + 12, "⋯", style="soft")
                left += 16
                continue
            _draw(canvas, layout, piece, scale, left, top, is_memory=True)
            left += scale.width(piece.count)
        canvas.frame(x + 18, top - 2, left - x - 18, _BAR + 4, thick=0.5)
        top += _ROW
    canvas.arrow((x + 10, first), (x + 10, top - 4))
    width = _slab_width(layout, slab, scale) - 8
    canvas.frame(x, y, width, top - y + 2, is_dashed=True, title=f"part {name}")
    return top + 2


def _allocation(canvas: Canvas, layout: Layout, y: float) -> float:
    """Draw the shares of elements and padding in memory; return the bottom y coordinate."""
    share = layout.padding_share
    used = format_thousands(layout.num_elements, "element")
    unused = f"{format_thousands(layout.padding_count, 'place')} of padding"
    heading(
        canvas, MARGIN, y, "Allocation",
        f"{layout.nbytes:,} B; {used} ({100 * (1 - share):.1f} %), {unused} ({100 * share:.1f} %)",
    )
    width = 640.0
    used_width = min(width * (1 - share), width - 2 if layout.padding_count else width)
    if used_width > 0:
        canvas.box(MARGIN, y + 10, max(used_width, 1), 14, colour(0, 1), used)
    if layout.padding_count:
        canvas.box(MARGIN + used_width, y + 10, width - used_width, 14, "pad", unused)
    return y + 24


def _colours(layout: Layout, parts: Parts) -> list[tuple[str, str]]:
    """Return the legend of the colours."""
    found: list[tuple[str, str]] = []
    if prod(layout.grid_shape) > 1:
        drawn = [memory for memory in parts.memories if memory]
        used = {piece.part for piece in parts.pieces if piece.first is not None}
        found += [(colour(n, 1), _memory_name(memory)) for n, memory in enumerate(drawn)
                  if n in used]
    else:
        found += row_colours(layout.shape, parts.pieces)
    if any(piece.first is None for piece in parts.pieces):
        found.append(("pad", "padding"))
    return found


def row_colours(shape: Sequence[int], pieces: Iterable[DrawnRun]) -> list[tuple[str, str]]:
    """Return the legend of colours that distinguish tensor rows, for the rows shown."""
    rows = max(prod(shape[:-1]), 1)
    count = min(rows, 4)
    ends = [-(-k * rows // count) for k in range(count + 1)]
    used = {piece.part for piece in pieces if piece.first is not None}
    return [
        (colour(n, 1), f"row {a:,}" if b == a + 1 else f"rows {a:,} to {b - 1:,}")
        for n, (a, b) in enumerate(pairwise(ends)) if n in used
    ]


def _remarks(layout: Layout, parts: Parts) -> Sequence[str]:
    """Return remarks on the meaning of borders and on omitted parts."""
    shard = shard_of(layout) or (1,)
    size = shard[-1]
    block = _byte(layout, size)
    width = format_count(size, "place") + ("" if block is None else f" = {block:,} B")
    borders = f"A thin border is a block of {width}, a dashed one a part with adjacent blocks"
    borders += "; a thick one is the memory of a core." if layout.grid_axes else "."
    left = _left_out(layout, parts)
    shades = "Colours get darker where a row continues in another block."
    omitted = f"Omitted, at ⋮ and ⋯: {left}." if left else "All is shown."
    return [borders, f"{omitted} {shades}"]


def _left_out(layout: Layout, parts: Parts) -> str:
    memories = [memory for memory in parts.memories if memory]
    slabs = [slab for slab in memories[0].slabs if slab]
    blocks = [block for block in slabs[0].blocks if block]
    shard = shard_of(layout) or (1,)
    rows = blocks[-1].number + 1
    count = prod(shard[:-1]) // rows
    levels = (
        (prod(layout.grid_shape), len(memories), "cores"),
        (count, len(slabs), "parts of a memory"),
        (rows, len(blocks), "blocks of a part"),
    )
    found = [f"{all_ - drawn:,} of {all_:,} {unit}" for all_, drawn, unit in levels if drawn < all_]
    if any(piece is None for memory in memories for slab in memory.slabs if slab
           for block in slab.blocks if block for piece in block.pieces):
        found.append("pieces of blocks")
    visible = rows_of(layout, parts.pieces)
    if len(_slots(visible)) < len({_column(piece) for piece in parts.pieces if piece.first}):
        found.append("columns of the tensor")
    return ", ".join(found)
