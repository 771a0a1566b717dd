"""Select the parts of a layout that a figure shows: some cores, parts of their memory, and blocks.

Parts are selected in memory, and the corresponding tensor elements follow from the layout. Both
sides of a figure thus show the same elements, and sampling never omits a whole core or block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tecomp.drawing.canvas import sample_indices
from tecomp.errors import LayoutError
from tecomp.layout.formats.stored_tensor import (
    StoredTensor,
    all_offsets,
    elements_at,
    offset_of,
    offsets_at,
    row_major,
)
from tecomp.poly.maps.brute_force import unravel

Index: TypeAlias = tuple[int, ...]
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_MAX_PLACES = 1 << 12
"""Number of places inspected per block; they represent the remainder of a longer block."""
_MAX_TABLE_ENTRIES = 1 << 16
_MAX_LABELLED_PLACES = 256
_MAX_LABELLED_CORES = 6


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run of places in one block that holds consecutive elements, or padding.

    Attributes:
        start: Number of the first place in its block.
        count: Number of places.
        first: Index of the first element; None for padding.
        offset: Offset of the first place in the memory of its core.
        core: Core number.
        part: Number of the tensor part, or of the core among those shown; selects the hue.
    """

    start: int
    count: int
    first: Index | None
    offset: int
    core: int
    part: int


@dataclass(frozen=True, slots=True)
class Block:
    """Places along the last axis: block `number` of its slab; None marks omitted pieces."""

    number: int
    pieces: tuple[DrawnRun | None, ...]


@dataclass(frozen=True, slots=True)
class Slab:
    """Blocks drawn below each other: outer index, and `offset` in the memory of the core."""

    index: Index
    offset: int
    blocks: tuple[Block | None, ...]


@dataclass(frozen=True, slots=True)
class MemoryPanel:
    """The parts of the memory of one core that are shown."""

    core: int
    index: Index
    slabs: tuple[Slab | None, ...]


@dataclass(frozen=True)
class Parts:
    """The parts of a layout that are shown.

    Attributes:
        layout: Layout to show.
        memories: One entry per core shown, or a single one; None marks omitted cores.
    """

    layout: StoredTensor
    memories: tuple[MemoryPanel | None, ...]

    @cached_property
    def pieces(self) -> tuple[DrawnRun, ...]:
        """All pieces that are shown, in memory order."""
        return tuple(
            piece
            for memory in self.memories if memory
            for slab in memory.slabs if slab
            for block in slab.blocks if block
            for piece in block.pieces if piece
        )


@dataclass(frozen=True)
class DrawnSpace:
    """The axes of a layout as a figure uses them, and the lookup of elements.

    Attributes:
        layout: Layout to show.
        shows_all: Whether every place is shown individually.
        by_rows: Whether colours distinguish tensor rows rather than cores.
    """

    layout: StoredTensor
    shows_all: bool
    by_rows: bool

    @property
    def cores(self) -> int:
        """Number of memories."""
        return prod(self.layout.grid_shape)

    @cached_property
    def shard(self) -> Index:
        """Physical shape of one memory."""
        return shard_of(self.layout) or (1,)

    @property
    def size(self) -> int:
        """Number of places of a block."""
        return self.shard[-1]

    @cached_property
    def rows_axis(self) -> int:
        """Axis of a memory whose blocks are drawn below each other; -1 if there is one block."""
        axes = [k for k, n in enumerate(self.shard[:-1]) if n > 1]
        return axes[-1] if axes else -1

    @property
    def rows(self) -> int:
        """Number of blocks of a slab."""
        return self.shard[self.rows_axis] if self.rows_axis >= 0 else 1

    @property
    def slabs(self) -> int:
        """Number of slabs of a memory."""
        return prod(self.shard[:-1]) // self.rows

    @cached_property
    def _table(self) -> dict[int, int]:
        """Element number at each offset, for a layout without a closed-form inverse."""
        return {int(offset): n for n, offset in enumerate(all_offsets(self.layout).flat)}

    @cached_property
    def _has_inverse(self) -> bool:
        try:
            self.layout.inverse  # noqa: B018 - whether there is one
        except LayoutError:
            if self.layout.num_elements > _MAX_TABLE_ENTRIES:
                raise
            return False
        return True

    def elements(self, core: int, start: int, count: int) -> Numbers:
        """Return the element index at each place of a memory; -1 in all components for padding."""
        grid = dict(zip(
            self.layout.grid_axes, unravel(core, self.layout.grid_shape), strict=True))
        inside = iter(np.unravel_index(np.arange(start, start + count), self.shard))
        coords = [
            grid[axis] if axis in grid else next(inside)
            for axis in range(len(self.layout.physical_shape))
        ]
        offsets = np.broadcast_to(offset_of(coords, self.layout.physical_shape), count)
        if not self.layout.shape:
            is_element = offsets == offsets_at(self.layout, ())
            return np.where(is_element, 0, -1)[:, None]
        if self._has_inverse:
            return elements_at(self.layout, np.ascontiguousarray(offsets))
        found = [self._table.get(int(n)) for n in offsets]
        no_element = (-1,) * len(self.layout.shape)
        return np.array([no_element if n is None else unravel(n, self.layout.shape) for n in found])


def shard_of(layout: StoredTensor) -> Index:
    """Return the physical shape of the shard of one core, for any kind of layout."""
    grid = set(layout.grid_axes)
    return tuple(n for axis, n in enumerate(layout.physical_shape) if axis not in grid)


def parts_of(layout: StoredTensor, *, by_rows: bool = False) -> Parts:
    """Select the parts of a non-empty layout to show.

    Args:
        layout: Layout to show.
        by_rows: Whether colours distinguish tensor rows even if there are several cores.

    Raises:
        LayoutError: If the layout is large and has no closed-form inverse.
    """
    space = DrawnSpace(
        layout, layout.num_places <= _MAX_LABELLED_PLACES, by_rows or prod(layout.grid_shape) == 1
    )
    limit = 4 if space.shows_all else 3
    memories: list[MemoryPanel | None] = []
    previous = -1
    for number, core in enumerate(_cores(layout.grid_shape)):
        if core > previous + 1:
            memories.append(None)
        memories.append(_memory(space, core, number, limit))
        previous = core
    return Parts(layout, tuple(memories))


def _cores(grid: Index) -> list[int]:
    """Return the cores to show: all if few, else the first, its neighbours and the last."""
    count = prod(grid)
    if count <= _MAX_LABELLED_CORES:
        return list(range(count))
    steps = [step for step, extent in zip(row_major(grid), grid, strict=True) if extent > 1]
    return sorted({0, *steps[-_MAX_LABELLED_CORES + 2 :], count - 1})


def _memory(space: DrawnSpace, core: int, number: int, limit: int) -> MemoryPanel:
    has_grid = space.cores > 1
    max_rows = 16 if space.shows_all else 4 if has_grid else 8
    max_slabs = 16 if space.shows_all else limit if has_grid else 4
    slabs = [
        None if n is None else _slab(space, core, number, n, max_rows)
        for n in sample_indices(space.slabs, max_slabs)
    ]
    return MemoryPanel(core, unravel(core, space.layout.grid_shape), tuple(slabs))


def _slab(space: DrawnSpace, core: int, number: int, slab: int, limit: int) -> Slab:
    outer = space.shard[: max(space.rows_axis, 0)]
    slab_size = space.rows * space.size
    blocks = [
        None if n is None else
        Block(n, tuple(_pieces(space, core, number, slab * slab_size + n * space.size)))
        for n in sample_indices(space.rows, limit)
    ]
    return Slab(unravel(slab, outer), slab * slab_size, tuple(blocks))


def _pieces(space: DrawnSpace, core: int, number: int, start: int) -> Iterator[DrawnRun | None]:
    """Yield the pieces of the block that starts at `start`; None marks omitted pieces."""
    count = min(space.size, _MAX_PLACES)
    found = space.elements(core, start, count)
    cuts = _cuts(found, space.shows_all)
    chosen = [*sample_indices(len(cuts) - 1, 1 << 9 if space.shows_all else 5)]
    for n in chosen:
        if n is None:
            yield None
            continue
        first, end = cuts[n], cuts[n + 1]
        # A block whose inspected places form one piece is assumed to continue uniformly.
        length = space.size - first if n == len(cuts) - 2 and first == 0 else end - first
        yield _piece(space, core, number, start, first, length, found[first])
    if count < space.size and len(cuts) > 2:
        yield None


def _piece(
    space: DrawnSpace, core: int, number: int, start: int, first: int, count: int, element: Numbers
) -> DrawnRun:
    rank = len(space.layout.shape)
    if element[0] < 0:
        return DrawnRun(first, count, None, start + first, core, number)
    index = tuple(int(n) for n in element[:rank])
    if rank:
        count = min(count, space.layout.shape[-1] - index[-1])
    row = 0
    for n, extent in zip(index[:-1], space.layout.shape[:-1], strict=False):
        row = row * extent + n
    rows = max(prod(space.layout.shape[:-1]), 1)
    part = row * min(rows, 4) // rows if space.by_rows else number
    return DrawnRun(first, count, index, start + first, core, part)


def _cuts(found: Numbers, is_few: bool) -> list[int]:
    """Return the start of each piece, followed by the end of the last piece."""
    count = len(found)
    if is_few:
        return list(range(count + 1))
    is_element = found[:, 0] >= 0
    step = np.zeros(found.shape[1], np.int64)
    step[-1] = 1
    continues = (np.diff(found, axis=0) == step).all(axis=1) & is_element[1:] & is_element[:-1]
    continues |= ~is_element[1:] & ~is_element[:-1]
    return [0, *map(int, np.flatnonzero(~continues) + 1), count]


def rows_of(layout: StoredTensor, pieces: Sequence[DrawnRun]) -> dict[int, list[DrawnRun]]:
    """Group the pieces shown by tensor row; rows are numbered by all indices but the last."""
    found: dict[int, list[DrawnRun]] = {}
    for piece in pieces:
        if piece.first is None:
            continue
        row = 0
        for n, extent in zip(piece.first[:-1], layout.shape[:-1], strict=False):
            row = row * extent + n
        found.setdefault(row, []).append(piece)
    return {
        row: sorted(found[row], key=lambda piece: piece.first or ()) for row in sorted(found)
    }


def shades_of(layout: StoredTensor, rows: dict[int, list[DrawnRun]]) -> dict[tuple[int, int], int]:
    """Return, by core and offset of a piece, the number of block changes before it in its row."""
    size = (shard_of(layout) or (1,))[-1]
    found: dict[tuple[int, int], int] = {}
    for pieces in rows.values():
        shade, previous = -1, (-1, -1)
        for piece in pieces:
            block = piece.core, piece.offset // size
            shade = 0 if piece.core != previous[0] else shade + (block != previous)
            previous = block
            found[piece.core, piece.offset] = shade
    return found
