"""Random sharded layouts with reference addresses of all elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp import Layout, ShardLayout, TtnnLayout
from tests.strategies.draws import Draw, Draws

Array: TypeAlias = NDArray[Any]

TILES = ((2, 3), (3, 4), (4, 4), (2, 2))
"""Tile shapes smaller than on any machine, so that small tensors have full and partial tiles."""


@dataclass(frozen=True)
class Shards:
    """Sharded layout with reference data for the addresses of its elements.

    Attributes:
        layout: Layout under test.
        box: Extents of the sharded axes.
        shard_indices: Index of every element along each sharded axis.
        shard: Extents of a shard.
        grid: Number of shards along each axis.
        tile: Shape of a tile; None without tiles.
    """

    layout: Layout
    box: tuple[int, ...]
    shard_indices: list[Array]
    shard: tuple[int, ...]
    grid: tuple[int, ...]
    tile: tuple[int, int] | None

    def addresses(self, *, gap: int) -> Array:
        """Return the address of every element, with `gap` unused positions after each core."""
        core, each = np.zeros_like(self.shard_indices[0]), self._places() + gap
        for value, size, count in zip(self.shard_indices, self.shard, self.grid, strict=True):
            core = core * count + value // size
        inside = [value % size for value, size in zip(self.shard_indices, self.shard, strict=True)]
        counts = list(self.shard)
        if self.tile is not None:
            inner = inside[-2:]
            inside[-2:] = [
                *(value // t for value, t in zip(inner, self.tile, strict=True)),
                *(value % t for value, t in zip(inner, self.tile, strict=True)),
            ]
            counts[-2:] = [*self._tiles(), *self.tile]
        place = np.zeros_like(core)
        for value, count in zip(inside, counts, strict=True):
            place = place * count + value
        return core * each + place

    def _tiles(self) -> list[int]:
        assert self.tile is not None
        return [-(-n // t) for n, t in zip(self.shard[-2:], self.tile, strict=True)]

    def _places(self) -> int:
        if self.tile is None:
            return prod(self.shard)
        return prod(self.shard[:-2]) * prod(self._tiles()) * prod(self.tile)


def draw_shards(draw: Draw, shape: Sequence[int]) -> Shards:
    """Draw shards of a tensor of `shape`, with or without tiles."""
    draws = Draws(draw)
    tile = draws.pick(TILES) if draws.chance(40) else None
    return _rows(draws, shape, tile) if draws.chance(30) else _collapsed(draws, shape, tile)


def _collapsed(draws: Draws, shape: Sequence[int], tile: tuple[int, int] | None) -> Shards:
    """Draw shards on a grid, with some adjacent axes merged."""
    first = draws.number(0, len(shape))
    end = draws.number(first, len(shape))
    grid_indices = np.indices(shape)
    groups = [range(k, k + 1) for k in range(first)]
    groups += [range(first, end)] if end > first else []
    groups += [range(k, k + 1) for k in range(end, len(shape))]
    at = [_row_major([grid_indices[k] for k in g], [shape[k] for k in g]) for g in groups]
    box = [prod(shape[k] for k in g) for g in groups]
    missing = max(draws.number(0, 1), 2 - len(box) if tile else 0, 0 if box else 1)
    at = [np.zeros(shape, np.int64)] * missing + at
    box = [1] * missing + box
    grid = tuple(draws.number(1, 4) for _ in box)
    layout = ShardLayout(
        shape, "int32", collapse_intervals=[(first, end)], grid=grid, tile=tile,
        allowed_tiles=TILES, oob_val="zero",
    )
    shard = tuple(-(-n // count) for n, count in zip(box, grid, strict=True))
    return Shards(layout, tuple(box), at, shard, grid, tile)


def _rows(draws: Draws, shape: Sequence[int], tile: tuple[int, int] | None) -> Shards:
    """Draw shards of any shape of rows with the width of the last axis."""
    padded = list(shape)
    if tile is not None:
        last = padded[-2:]
        padded[-2:] = [-(-n // t) * t for n, t in zip(last, tile[-len(last):], strict=True)]
    width = padded[-1]
    indices = list(np.indices(shape))
    row = _row_major(indices[:-1], padded[:-1]) if len(shape) > 1 else np.zeros(shape, np.int64)
    height = prod(padded[:-1])
    if tile is not None and len(shape) == 1:
        height = tile[0]
    t = tile or (1, 1)
    shard = tuple(
        draws.number(1, max(n // step, 1)) * step
        for n, step in zip((height, width), t, strict=True)
    )
    layout = TtnnLayout(
        shape, "int32", memory_layout="block_sharded", memory_space="l1", shard_shape=shard,
        tile=tile, allowed_tiles=TILES,
    )
    box = (height, width)
    grid = tuple(-(-n // s) for n, s in zip(box, shard, strict=True))
    return Shards(layout, box, [row, indices[-1]], shard, grid, tile)


def _row_major(indices: Sequence[Array], extents: Sequence[int]) -> Array:
    total = np.zeros_like(indices[0])
    for index, extent in zip(indices, extents, strict=True):
        total = total * extent + index
    return total
