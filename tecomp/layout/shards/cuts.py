"""Cut collapsed axes into cores, tiles and faces: the results of an index map that do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.expr import Expr, index_value
from tecomp.layout.placement.axes import quotient, remainder

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """How a box is cut.

    Attributes:
        grid: how many shards there are along each axis.
        shard: extents of a shard, in elements.
        tile: rows and columns of a tile; None for elements one by one.
        face: rows and columns of a face, tiles being rows of faces; None for one face.
    """

    grid: Shape
    shard: Shape
    tile: tuple[int, int] | None = None
    face: tuple[int, int] | None = None

    @classmethod
    def evenly(
        cls, box: Shape, grid: Shape, tile: tuple[int, int] | None, face: tuple[int, int] | None
    ) -> Cut:
        """Shards of one size; the last along an axis may be partly empty, or all."""
        shard = tuple(ceil_div(n, count) for n, count in zip(box, grid, strict=True))
        return cls(grid, shard, tile, face)

    @property
    def memref(self) -> Shape:
        """Extents of a shard, in tiles along the last two axes if there are tiles."""
        if self.tile is None:
            return self.shard
        tiles = (ceil_div(n, t) for n, t in zip(self.shard[-2:], self.tile, strict=True))
        return (*self.shard[:-2], *tiles)

    @property
    def padded(self) -> Shape:
        """Extents of a shard in elements, with whole tiles."""
        if self.tile is None:
            return self.shard
        ends = (n * t for n, t in zip(self.memref[-2:], self.tile, strict=True))
        return (*self.shard[:-2], *ends)

    def axes(self, values: Sequence[Expr]) -> tuple[Expr, ...]:
        """Core, place in the shard, place in the tile, for the axes of the box as `values`.

        Every result is a remainder (or 0), so that the map says how many places there are.
        """
        cores = [
            _places(quotient(value, size), count)
            for value, size, count in zip(values, self.shard, self.grid, strict=True)
        ]
        inside = [
            _places(value, size) for value, size in zip(values, self.shard, strict=True)
        ]
        if self.tile is None:
            return (*cores, *inside)
        lead, last = inside[:-2], inside[-2:]
        tiles = [
            _places(quotient(value, t), count)
            for value, t, count in zip(last, self.tile, self.memref[-2:], strict=True)
        ]
        within = [remainder(value, t) for value, t in zip(last, self.tile, strict=True)]
        return (*cores, *lead, *tiles, *faces(within, self.tile, self.face))


def faces(
    within: Sequence[Expr], tile: tuple[int, int], face: tuple[int, int] | None
) -> tuple[Expr, ...]:
    """Row and column of a tile; if it has faces, of the face and then in it."""
    if face is None:
        return tuple(within)
    which = [
        _places(quotient(value, f), t // f)
        for value, f, t in zip(within, face, tile, strict=True)
    ]
    return (*which, *(remainder(value, f) for value, f in zip(within, face, strict=True)))


def _places(value: Expr, size: int) -> Expr:
    """`value % size`; 0 where that is all there is."""
    return index_value(0) if size == 1 else remainder(value, size)


def keep(layout: object, **fields: object) -> None:
    """Set fields of a frozen layout while it is made."""
    for name, value in fields.items():
        object.__setattr__(layout, name, value)
