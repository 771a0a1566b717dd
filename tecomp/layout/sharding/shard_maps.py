"""Collapsed axes, core and tile maps, and per-core padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div, round_up
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    index_value,
    logical_or,
)
from tecomp.ir.traversal.rewrite import free_variables, operands_of, substitute
from tecomp.layout.addressing.arguments import quotient, remainder
from tecomp.layout.addressing.stored_tensor import offset_of
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.index_map import IndexMap

Intervals = Sequence[tuple[int, int]]


def collapsed(shape: Sequence[int], intervals: Intervals | None, rank: int | None) -> IndexMap:
    """Each interval of dimensions as one, every other dimension as it is, in their order.

    Args:
        shape: extents of the tensor.
        intervals: pairs (first, end) of dimensions, counted from the end where negative; `end`
            is not in it. None stands for all but the last.
        rank: how many results there are; those that are missing are zeros in front.

    Raises:
        LayoutError: an interval is out of bounds, runs backwards or meets another, or there are
            more results than `rank`.

    Source:
        Tensor Layout (tt-mlir), "Dimension Collapsing".

    >>> collapsed((2, 3, 64, 128), None, 2)
    lambda d0, d1, d2, d3: [d0 * 192 + d1 * 64 + d2, d3]
    >>> collapsed((4, 5, 6, 7), [(1, -1)], 3)
    lambda d0, d1, d2, d3: [d0, d1 * 6 + d2, d3]
    """
    dims = [Var(f"d{k}") for k in range(len(shape))]
    groups = joined_dims(len(shape), intervals)
    results = [joined([dims[k] for k in group], [shape[k] for k in group]) for group in groups]
    if rank is not None and len(results) > rank:
        joins = " and ".join(f"[{b}, {e})" for b, e in intervals or [(0, -1)])
        raise LayoutError(
            f"shard layout: joining {joins} of {list(shape)} leaves {len(results)} axes, but the "
            f"grid has {rank}; join more dimensions, or give a grid of {len(results)} axes",
            kind="shards",
        )
    zeros: list[Expr] = [index_value(0)] * max((rank or 1) - len(results), 0)
    return IndexMap(tuple(dims), (*zeros, *results))


def joined_dims(rank: int, intervals: Intervals | None) -> list[range]:
    """Which dimensions make each result.

    >>> joined_dims(7, [(0, 3), (-3, -1)])
    [range(0, 3), range(3, 4), range(4, 6), range(6, 7)]
    """
    default = [(0, -1)] if rank else []
    given = _pairs(default if intervals is None else intervals)
    joined = sorted(_bounds(begin, end, rank) for begin, end in given)
    groups: list[range] = []
    at = 0
    for begin, end in joined:
        if begin == end:
            continue
        if begin < at:
            raise LayoutError(
                f"shard layout: dimension {begin} is in two of the intervals "
                f"{[tuple(pair) for pair in intervals or ()]}; join each dimension once",
                kind="shards",
            )
        groups += [range(k, k + 1) for k in range(at, begin)]
        groups.append(range(begin, end))
        at = end
    return groups + [range(k, k + 1) for k in range(at, rank)]


def _pairs(intervals: Intervals) -> Intervals:
    check_kind(
        intervals, Sequence, "shard layout: collapse_intervals",
        "give pairs of integers, such as [(0, -1)]", LayoutError,
    )
    for pair in intervals:
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(
            isinstance(n, int) and not isinstance(n, bool) for n in pair
        ):
            raise LayoutError(
                f"shard layout: {pair!r} is no interval of dimensions; give pairs of integers, the "
                "first dimension and the one after the last, such as [(0, -1)]",
                kind="shards",
            )
    return intervals


def _bounds(begin: int, end: int, rank: int) -> tuple[int, int]:
    first = begin + rank if begin < 0 else begin
    last = end + rank if end < 0 else end
    if not (0 <= first <= rank and 0 <= last <= rank):
        raise LayoutError(
            f"shard layout: the interval [{begin}, {end}) leaves the {rank} dimensions; count from "
            f"0 to {rank}, or from -{rank} to -1",
            kind="shards",
        )
    if last < first:
        raise LayoutError(
            f"shard layout: the interval [{begin}, {end}) of {rank} dimensions ends before it "
            "begins; write the first dimension and then the one after the last",
            kind="shards",
        )
    return first, last


def joined(dims: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """Dimensions one after another, the last one fastest."""
    return weighted(dims, [prod(extents[k + 1 :]) for k in range(len(extents))])


def weighted(dims: Sequence[Expr], strides: Sequence[int]) -> Expr:
    """The sum of dimensions times strides; 0 for none."""
    total: Expr | None = None
    for dim, stride in zip(dims, strides, strict=True):
        if stride == 0:
            continue
        term = dim if stride == 1 else Binary(BinOp.MUL, dim, index_value(stride))
        total = term if total is None else Binary(BinOp.ADD, total, term)
    return index_value(0) if total is None else total


Shape = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """How a box is cut.

    Attributes:
        grid: how many shards there are along each axis.
        shard: extents of a shard, in elements.
        tile: rows and columns of a tile; None for elements one by one.
        face: rows and columns of a face, tiles being rows of faces; None for one face.
        aligned: multiple of elements to which rows of a shard without tiles are padded.
    """

    grid: Shape
    shard: Shape
    tile: tuple[int, int] | None = None
    face: tuple[int, int] | None = None
    aligned: int = 1

    @classmethod
    def evenly(
        cls, box: Shape, grid: Shape, tile: tuple[int, int] | None, face: tuple[int, int] | None,
        aligned: int = 1,
    ) -> Cut:
        """Shards of one size; the last along an axis may be partly empty, or all."""
        shard = tuple(ceil_div(n, count) for n, count in zip(box, grid, strict=True))
        return cls(grid, shard, tile, face, aligned)

    @property
    def memref(self) -> Shape:
        """Extents of a shard, in tiles along the last two axes if there are tiles."""
        if self.tile is None:
            return self.padded
        tiles = (ceil_div(n, t) for n, t in zip(self.shard[-2:], self.tile, strict=True))
        return (*self.shard[:-2], *tiles)

    @property
    def padded(self) -> Shape:
        """Extents of a shard in elements, with whole tiles, or with aligned rows."""
        if self.tile is None:
            return (*self.shard[:-1], *(round_up(n, self.aligned) for n in self.shard[-1:]))
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
            if self.padded != self.shard:
                inside[-1] = remainder(inside[-1], self.padded[-1])
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


_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class CorePadding:
    """The padding in the shard of one core.

    Attributes:
        core: of the virtual grid.
        count: how many places hold no element.
        margins: along each axis of the collapsed box, how many places of the shard lie beyond
            the core's part of that box, those of tiles that are not full included.
        places: a variable for each axis of the shard.
        condition: over `places`; holds where there is no element.
    """

    core: tuple[int, ...]
    count: int
    margins: tuple[int, ...]
    places: tuple[Var, ...]
    condition: Expr


def core_padding(
    core: tuple[int, ...],
    cut: Cut,
    collapsed: tuple[int, ...],
    shard: tuple[int, ...],
    padding: tuple[tuple[Var, ...], Expr],
    count: int,
) -> CorePadding:
    """The padding of one core.

    Args:
        core: of the virtual grid.
        cut: how the collapsed axes are cut.
        collapsed: their extents.
        shard: the physical shape of what a core has.
        padding: of all cores: a variable for each physical axis, and what holds there.
        count: how many places of this core hold no element.
    """
    places, condition = padding
    axes = places[len(core) :]
    fixed = {var: Const(n, INT64) for var, n in zip(places, core, strict=False)}
    ranges = {
        var: (Const(0, INT64), Const(extent - 1, INT64))
        for var, extent in zip(axes, shard, strict=True)
    }
    filled = [
        min(max(extent - n * size, 0), size)
        for n, extent, size in zip(core, collapsed, cut.shard, strict=True)
    ]
    return CorePadding(
        core,
        count,
        tuple(n - real for n, real in zip(cut.padded, filled, strict=True)),
        axes,
        _shortened(simplify(substitute(condition, fixed), ranges)),
    )


def _shortened(condition: Expr) -> Expr:
    """A condition without `x >= 18` where `x >= 17` is another of its parts."""
    least: dict[Expr, int] = {}
    others: list[Expr] = []
    for alternative in operands_of(BinOp.OR, condition):
        match alternative:
            case Compare(CmpOp.GE, Var() as var, Const(int() as bound)):
                least[var] = min(bound, least.get(var, bound))
            case part:
                others.append(part)
    bounds = [Compare(CmpOp.GE, var, Const(bound, INT64)) for var, bound in least.items()]
    return logical_or(*bounds, *others)


def count_on_cores(
    index_map: IndexMap, shape: tuple[int, ...], grid: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """How many elements each core has.

    Axes of the grid that depend on different indices are counted apart.

    Args:
        index_map: its first results are the axes of the grid.
        shape: of the tensor.
        grid: how many cores there are along each axis.
    """
    exprs = index_map.final_indices[: len(grid)]
    counts = np.ones(grid, np.int64)
    used: set[int] = set()
    for dims, axes in _groups(index_map, exprs):
        used |= dims
        part = _count([exprs[k] for k in axes], index_map, sorted(dims), shape,
                      [grid[k] for k in axes])
        counts *= part.reshape([n if k in axes else 1 for k, n in enumerate(grid)])
    return counts * prod(n for k, n in enumerate(shape) if k not in used)


def _groups(
    index_map: IndexMap, exprs: tuple[Expr, ...]
) -> list[tuple[set[int], list[int]]]:
    """Sets of dimensions, each with the results that depend on them and on no others."""
    numbers = {var: k for k, var in enumerate(index_map.initial_indices)}
    groups: list[tuple[set[int], list[int]]] = []
    for axis, expr in enumerate(exprs):
        dims = {numbers[var] for var in free_variables(expr)}
        axes = [axis]
        for other in [group for group in groups if group[0] & dims]:
            groups.remove(other)
            dims |= other[0]
            axes += other[1]
        groups.append((dims, sorted(axes)))
    return groups


def _count(
    exprs: list[Expr], index_map: IndexMap, dims: list[int], shape: tuple[int, ...],
    grid: list[int],
) -> npt.NDArray[np.int64]:
    """How many indices of some dimensions each place of a grid has, a block of them at a time."""
    box = [shape[k] for k in dims]
    total = np.zeros(prod(grid), np.int64)
    first = box[0] if box else 1
    step = max(_AT_ONCE // max(prod(box[1:]), 1), 1)
    for start in range(0, first, step):
        block = [(start, min(start + step, first)), *((0, n) for n in box[1:])]
        ranges = block[: len(box)]
        axes: Any = np.ogrid[tuple(slice(*pair) for pair in ranges)] if box else ()
        at = {index_map.initial_indices[k]: axis for k, axis in zip(dims, axes, strict=True)}
        place = [brute_force.values(expr, at) for expr in exprs]
        flat = np.zeros([b - a for a, b in ranges], np.int64) + offset_of(place, grid)
        total += np.bincount(flat.reshape(-1), minlength=total.size)
    return total.reshape(grid)
