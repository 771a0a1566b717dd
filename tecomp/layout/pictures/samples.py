"""Parts of a layout that stand for all of it: some rows of the tensor, some blocks of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tecomp.layout.placement.places import elements_at, offsets_at
from tecomp.layout.placement.stored import StoredTensor
from tecomp.poly.maps.enumerate import unravel

_MOST_COLUMNS = 1 << 16
"""Columns of a row that are looked at; those of longer rows stand for the rest."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements side by side, in the tensor and in one block of memory.

    Attributes:
        first: index of the first of them.
        count: how many there are.
        padding: places of the block that hold no element; 0 for a piece of the tensor.
        size: places of a block.
        block: number of the block.
        hue: which of the parts of the tensor that are told apart, or which core.
        shade: which piece of its row.
    """

    first: tuple[int, ...]
    count: int
    padding: int
    size: int
    block: int
    hue: int
    shade: int


@dataclass(frozen=True, slots=True)
class Slab:
    """Blocks of memory that follow each other; None where some are left out.

    Attributes:
        number: of the outermost physical axis that has more than one place.
        offset: places before it.
        blocks: some of its blocks.
    """

    number: int
    offset: int
    blocks: tuple[Piece | None, ...]


def sampled(count: int, most: int, last: int = 1) -> list[int | None]:
    """Numbers below `count`: all if there are at most `most`, else the first, None, the last.

    >>> sampled(4, 6), sampled(1000, 4)
    ([0, 1, 2, 3], [0, 1, 2, None, 999])
    """
    if count <= most:
        return list(range(count))
    return [*range(most - last), None, *range(count - last, count)]


def hues(layout: StoredTensor, most: int) -> int:
    """How many parts are told apart: the cores, or parts of the rows."""
    if layout.grid_axes:
        return min(prod(layout.grid_shape), most)
    return max(min(_rows(layout), most), 1)


def logical_rows(layout: StoredTensor, most: int) -> list[tuple[int, list[Piece | None]] | None]:
    """Some rows of the tensor (all indices but the last count rows), each cut where memory is."""
    parts = hues(layout, 4)
    rows = _rows(layout)
    each = max(most // parts, 1)
    chosen: list[int | None] = []
    for part in range(parts):
        start, end = -(-part * rows // parts), -(-(part + 1) * rows // parts)
        chosen += [
            None if n is None else start + n for n in sampled(end - start, max(each, 2))
        ]
    return [None if row is None else (row, _pieces(layout, row)) for row in chosen]


def _pieces(layout: StoredTensor, row: int) -> list[Piece | None]:
    size = layout.physical_shape[-1]
    columns = min(layout.shape[-1] if layout.shape else 1, _MOST_COLUMNS)
    outer = unravel(row, layout.shape[:-1])
    offsets = offsets_at(layout, [*outer, np.arange(columns)])
    cuts = np.flatnonzero(
        (np.diff(offsets) != 1) | (offsets[1:] // size != offsets[:-1] // size)
    ) + 1
    starts = [0, *map(int, cuts)]
    ends = [*starts[1:], columns]
    pieces: list[Piece | None] = []
    for number in sampled(len(starts), 5):
        if number is None:
            pieces.append(None)
            continue
        start = starts[number]
        first = (*outer, start) if layout.shape else ()
        offset = int(offsets[start])
        pieces.append(
            Piece(first, ends[number] - start, 0, size, offset // size,
                  _hue(layout, first, offset), number)
        )
    return pieces


def slabs(layout: StoredTensor, most_slabs: int, most_blocks: int) -> list[Slab | None]:
    """Some parts of memory, each with some of its blocks."""
    size = layout.physical_shape[-1]
    outer = [n for n in layout.physical_shape[:-1] if n > 1]
    count = outer[0] if len(outer) > 1 else 1
    blocks = layout.num_places // size // count
    found: list[Slab | None] = []
    for number in sampled(count, most_slabs):
        if number is None:
            found.append(None)
            continue
        chosen = [
            None if n is None else _block(layout, number * blocks + n)
            for n in sampled(blocks, most_blocks, most_blocks // 2)
        ]
        found.append(Slab(number, number * blocks * size, tuple(chosen)))
    return found


def first_blocks(layout: StoredTensor, most: int) -> list[Piece]:
    """The blocks at the start of memory."""
    count = layout.num_places // layout.physical_shape[-1]
    return [_block(layout, number) for number in range(min(count, most))]


def _block(layout: StoredTensor, block: int) -> Piece:
    size = layout.physical_shape[-1]
    start = block * size
    found = elements_at(layout, np.arange(start, start + size))
    real = np.flatnonzero(found[:, 0] >= 0) if found.size else np.arange(size)
    if not layout.shape:
        return Piece((), min(size, 1), size - 1, size, block, 0, 0)
    if not real.size:
        return Piece((), 0, size, size, block, 0, 0)
    first = tuple(int(n) for n in found[real[0]])
    shade = first[-1] // max(_piece_width(layout, first), 1)
    return Piece(
        first, int(real.size), size - int(real.size), size, block,
        _hue(layout, first, start + int(real[0])), shade,
    )


def _piece_width(layout: StoredTensor, index: Sequence[int]) -> int:
    """How many elements of a row lie in one block, as far as its first one tells."""
    columns = min(layout.shape[-1], _MOST_COLUMNS)
    offsets = offsets_at(layout, [*index[:-1], np.arange(columns)])
    size = layout.physical_shape[-1]
    other = np.flatnonzero(offsets // size != offsets[0] // size)
    return int(other[0]) if other.size else columns


def _hue(layout: StoredTensor, index: Sequence[int], offset: int) -> int:
    if layout.grid_axes:
        place = unravel(offset, layout.physical_shape)
        core = 0
        for axis in layout.grid_axes:
            core = core * layout.physical_shape[axis] + place[axis]
        return core
    row = 0
    for n, extent in zip(index[:-1], layout.shape[:-1], strict=True):
        row = row * extent + n
    return row * hues(layout, 4) // max(_rows(layout), 1)


def _rows(layout: StoredTensor) -> int:
    return prod(layout.shape[:-1])
