"""Layouts as pictures: where the parts of a tensor go, the order of memory, and what is padding."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np

from tecomp.layout.pictures.samples import (
    Piece,
    Slab,
    first_blocks,
    hues,
    logical_rows,
    slabs,
)
from tecomp.layout.pictures.text import formula
from tecomp.layout.placement.places import all_offsets, elements_at
from tecomp.layout.placement.stored import StoredTensor
from tecomp.svg import Canvas, text_width

Offsets: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"

_COLOURS = (
    ("#aad2ef", "#7ab6e4", "#4a9ad9", "#2c80c4"),
    ("#f9d29d", "#f5bb6a", "#f1a136", "#dc8813"),
    ("#b0e9d5", "#83ddbd", "#57d0a5", "#37b588"),
    ("#e1b5d5", "#d28cbb", "#c262a1", "#a84387"),
)
"""For each part of the tensor, or core, the colours of the pieces of a row."""

_LEFT = 24.0
_TOP = 84.0
_ROW = 22.0
_BAR = 18.0
_BLOCK = 128.0
"""Width of a whole block of memory."""
_GAP = 2.0
_FEW_PLACES = 256
_CELL = 34.0


def drawn(layout: StoredTensor) -> str:
    """The picture of a layout: every place if there are few, else parts that stand for all."""
    title = f"{layout.dtype}{list(layout.shape)}"
    canvas = Canvas()
    canvas.text(_LEFT, 30, title, size=18, style="bold")
    canvas.text(_LEFT, 51, formula(layout), size=12, style="mono")
    canvas.text(
        _LEFT + text_width(formula(layout), 12, "mono") + 16, 51, _subtitle(layout), style="soft"
    )
    if not layout.num_places:
        canvas.text(_LEFT, _TOP, "no places", style="soft")
        return canvas.finished(title)
    is_small = layout.num_places <= _FEW_PLACES and 1 <= len(layout.shape) <= 2
    bottom = _cells(canvas, layout) if is_small else _parts(canvas, layout)
    _allocation(canvas, layout, bottom + 34)
    return canvas.finished(f"{title} as {formula(layout)}")


def _subtitle(layout: StoredTensor) -> str:
    block = layout.physical_shape[-1]
    text = f"physical {list(layout.physical_shape)} in {layout.memory}; a block is {block} places"
    if layout.grid_axes:
        text += f"; {prod(layout.grid_shape)} cores"
    return text


def _heading(canvas: Canvas, x: float, y: float, words: str, remark: str) -> None:
    canvas.text(x, y, words, size=13, style="bold")
    canvas.text(x + text_width(words, 13, "bold") + 4, y, remark, style="soft")


def _parts(canvas: Canvas, layout: StoredTensor) -> float:
    """The logical and the physical view side by side, then memory in order; where they end."""
    rows = logical_rows(layout, 12)
    x0 = _LEFT + 60
    _heading(canvas, _LEFT, _TOP, "Logical view", "pieces of rows that lie in one block")
    right = x0 + 230
    for number, entry in enumerate(rows):
        y = _TOP + 34 + number * _ROW
        name = "⋮" if entry is None else _row_name(layout, entry[0])
        canvas.text(x0 - 8, y + 13, name, size=10, style="mono soft", anchor="end")
        right = max(right, _pieces(canvas, entry[1] if entry else [], x0, y))
    first = next((entry[1] for entry in rows if entry), [])
    _columns(canvas, first, x0)
    found = slabs(layout, 4, 12)
    _heading(canvas, right + 60, _TOP, "Physical view", "memory: down, then on to the right")
    _slabs(canvas, found, right + 60)
    bottom = _TOP + 34 + _ROW * max(
        len(rows), max((len(slab.blocks) for slab in found if slab), default=0)
    )
    return _linear(canvas, layout, bottom + 34)


def _row_name(layout: StoredTensor, row: int) -> str:
    index = np.unravel_index(row, layout.shape[:-1]) if len(layout.shape) > 1 else ()
    return ",".join(str(int(n)) for n in index)


def _columns(canvas: Canvas, pieces: list[Piece | None], x: float) -> None:
    """Which columns the pieces of the first row are, as far as there is room."""
    for piece in pieces:
        width = _width(piece)
        if piece is not None and piece.first:
            start = piece.first[-1]
            name = f"{start}…{start + piece.count - 1}" if piece.count > 1 else f"{start}"
            if text_width(name, 9, "mono") <= width:
                canvas.text(
                    x + width / 2, _TOP + 26, name, size=9, style="mono soft", anchor="middle"
                )
        x += width + _GAP


def _pieces(canvas: Canvas, pieces: list[Piece | None], x: float, y: float) -> float:
    for piece in pieces:
        x = _piece(canvas, piece, x, y)
    return x


def _piece(canvas: Canvas, piece: Piece | None, x: float, y: float) -> float:
    """Draw a piece, and the padding of its block; where the next one starts."""
    width = _width(piece)
    if piece is None:
        canvas.text(x + 6, y + 12, "⋯", style="soft")
        return x + width + _GAP
    if piece.count:
        name = ",".join(map(str, piece.first))
        canvas.box(
            x, y, width, _BAR, _colour(piece),
            f"{piece.count} elements from ({name}), in block {piece.block}",
        )
        if text_width(name, 9, "mono") <= width:
            canvas.text(x + width / 2, y + 12.5, name, size=9, style="mono dark", anchor="middle")
        x += width + _GAP
    if piece.padding:
        wide = _BLOCK * piece.padding / piece.size
        canvas.box(
            x, y, max(wide - _GAP, 2), _BAR, "pad",
            f"{piece.padding} places of padding in block {piece.block}",
        )
        x += wide
    return x


def _width(piece: Piece | None) -> float:
    return 24 if piece is None else max(_BLOCK * piece.count / piece.size, 12.0)


def _colour(piece: Piece) -> str:
    return _COLOURS[piece.hue % len(_COLOURS)][min(piece.shade, 3)]


def _slabs(canvas: Canvas, found: list[Slab | None], x: float) -> None:
    top = _TOP + 34
    for slab in found:
        if slab is None:
            canvas.text(x, top + 13, "⋯", style="soft")
            x += 24
            continue
        canvas.text(x + 12, _TOP + 26, f"@{slab.offset:,}", size=9, style="mono soft")
        for number, block in enumerate(slab.blocks):
            if block is None:
                canvas.text(x + 20, top + number * _ROW + 13, "⋮", style="soft")
            else:
                _piece(canvas, block, x + 12, top + number * _ROW)
        height = len(slab.blocks) * _ROW - 6
        canvas.arrow((x + 4, top), (x + 4, top + height))
        x += _BLOCK + 40


def _linear(canvas: Canvas, layout: StoredTensor, y: float) -> float:
    """The first blocks of memory, one after the other."""
    _heading(canvas, _LEFT, y, "Memory", "its first blocks")
    x = _LEFT + 60
    for block in first_blocks(layout, 7):
        x = _piece(canvas, block, x, y + 10)
    return y + 10 + _BAR


def _cells(canvas: Canvas, layout: StoredTensor) -> float:
    """Each element with its place, and each place with its element."""
    _heading(canvas, _LEFT, _TOP, "Logical", "number = place")
    offsets = all_offsets(layout).reshape(-1, layout.shape[-1])
    right = _elements(canvas, layout, offsets)
    x0 = max(right, _LEFT + 260) + 60
    _heading(canvas, x0 - 36, _TOP, "Physical", "name = index")
    size = layout.physical_shape[-1]
    names = elements_at(layout, np.arange(layout.num_places)).reshape(-1, size, len(layout.shape))
    colours = _cell_colours(layout, offsets)
    for row, cells in enumerate(names):
        y = _TOP + 34 + row * _ROW
        canvas.text(x0 - 6, y + 13, str(row * size), size=10, style="mono soft", anchor="end")
        for column, index in enumerate(cells):
            place = row * size + column
            name = ",".join(str(int(n)) for n in index) if index[0] >= 0 else ""
            _cell(canvas, x0 + column * _CELL, y, name, colours.get(place, "pad"), place)
    return _TOP + 34 + max(len(names), len(offsets)) * _ROW


def _elements(canvas: Canvas, layout: StoredTensor, offsets: Offsets) -> float:
    """The tensor, each element with its place; where it ends to the right."""
    x0 = _LEFT + 36
    colours = _cell_colours(layout, offsets)
    for column in range(offsets.shape[1]):
        canvas.text(
            x0 + column * _CELL + _CELL / 2, _TOP + 26, str(column), size=9, style="mono soft",
            anchor="middle",
        )
    for row, places in enumerate(offsets.tolist()):
        y = _TOP + 34 + row * _ROW
        canvas.text(x0 - 6, y + 13, str(row), size=10, style="mono soft", anchor="end")
        for column, place in enumerate(places):
            _cell(canvas, x0 + column * _CELL, y, str(place), colours[place], place)
    return x0 + offsets.shape[1] * _CELL


def _cell_colours(layout: StoredTensor, offsets: Offsets) -> dict[int, str]:
    """The colour of each place that holds an element: by its row, darker with each block."""
    size = layout.physical_shape[-1]
    cuts = np.diff(offsets // size, axis=1, prepend=offsets[:, :1] // size) != 0
    shades = np.minimum(np.cumsum(cuts, axis=1), 3)
    parts = hues(layout, 4)
    return {
        place: _COLOURS[row * parts // len(offsets) % 4][shade]
        for row, (places, own) in enumerate(
            zip(offsets.tolist(), shades.tolist(), strict=True)
        )
        for place, shade in zip(places, own, strict=True)
    }


def _cell(canvas: Canvas, x: float, y: float, name: str, colour: str, place: int) -> None:
    title = f"place {place}" if name else f"place {place}: padding"
    canvas.box(x, y, _CELL - _GAP, _BAR, colour, title)
    if name:
        canvas.text(
            x + _CELL / 2 - 1, y + 12.5, name, size=8.5, style="mono dark", anchor="middle"
        )


def _allocation(canvas: Canvas, layout: StoredTensor, y: float) -> None:
    """How much of the memory holds elements."""
    share = layout.padding_share
    real = layout.num_elements
    words = (
        f"{layout.nbytes:,} B; {real:,} elements ({100 * (1 - share):.1f} %), "
        f"{layout.padding_count:,} places of padding ({100 * share:.1f} %)"
    )
    _heading(canvas, _LEFT, y, "Allocation", words)
    parts = hues(layout, 4)
    wide = 760.0
    x = _LEFT
    for part in range(parts):
        each = wide * (1 - share) / parts
        canvas.box(x, y + 10, max(each - _GAP, 1), _BAR, _COLOURS[part % 4][1], _part(layout, part))
        x += each
    if layout.padding_count:
        canvas.box(x, y + 10, max(wide * share, 2), _BAR, "pad", "padding")
    x = _LEFT
    for part in range(parts):
        canvas.box(x, y + 38, 12, 12, _COLOURS[part % 4][1])
        canvas.text(x + 18, y + 48, _part(layout, part), style="soft")
        x += 18 + text_width(_part(layout, part), 11) + 18
    canvas.box(x, y + 38, 12, 12, "pad")
    canvas.text(x + 18, y + 48, "padding; light to dark: along a row", style="soft")


def _part(layout: StoredTensor, part: int) -> str:
    if layout.grid_axes:
        total = prod(layout.grid_shape)
        return f"core {part}" if total <= 4 else f"cores {part}, {part + 4}, …"
    rows, parts = prod(layout.shape[:-1]), hues(layout, 4)
    start, end = -(-part * rows // parts), -(-(part + 1) * rows // parts) - 1
    return f"rows {start}…{end}" if end > start else f"row {start}"
