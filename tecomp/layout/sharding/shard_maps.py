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
from tecomp.layout.formats.arguments import quotient, remainder
from tecomp.layout.formats.stored_tensor import offset_of
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.index_map import IndexMap

Intervals = Sequence[tuple[int, int]]


def collapse_map(shape: Sequence[int], intervals: Intervals | None, rank: int | None) -> IndexMap:
    """Build a map that merges each interval of dimensions and keeps all others, in order.

    Args:
        shape: Shape of the tensor.
        intervals: Half-open intervals (first, end) of dimensions; negative values count from the
            end. Default: all dimensions but the last.
        rank: Number of results; missing results are zeros in front.

    Raises:
        LayoutError: If an interval is out of bounds, runs backwards or overlaps another one, or
            there are more results than `rank`.

    Source:
        Tensor Layout (tt-mlir), "Dimension Collapsing".

    >>> collapse_map((2, 3, 64, 128), None, 2)
    lambda d0, d1, d2, d3: [d0 * 192 + d1 * 64 + d2, d3]
    >>> collapse_map((4, 5, 6, 7), [(1, -1)], 3)
    lambda d0, d1, d2, d3: [d0, d1 * 6 + d2, d3]
    """
    dims = [Var(f"d{k}") for k in range(len(shape))]
    groups = merged_dims(len(shape), intervals)
    results = [linearize_dims([dims[k] for k in group], [shape[k] for k in group]) for group
        in groups]
    if rank is not None and len(results) > rank:
        joins = " and ".join(f"[{b}, {e})" for b, e in intervals or [(0, -1)])
        raise LayoutError(
            "shard layout: collapsing {joins} of {shape} results in {result_count} axes, but the "
            "grid has {rank}; collapse more dimensions, or pass a grid of {result_count} axes",
            kind="shards", joins=joins, shape=list(shape), result_count=len(results), rank=rank,
        )
    zeros: list[Expr] = [index_value(0)] * max((rank or 1) - len(results), 0)
    return IndexMap(tuple(dims), (*zeros, *results))


def aligned_map(
    shape: Sequence[int], intervals: Intervals | None, alignments: Sequence[int]
) -> tuple[IndexMap, Shape]:
    """Build a map that merges intervals of dimensions with padding after each dimension.

    From the last dimension of an interval to the first, the number of positions so far is
    multiplied by the extent and then rounded up to a multiple of the alignment.

    Returns:
        The map, and the number of positions of each result, which includes all padding.

    Raises:
        LayoutError: If an interval is out of bounds, runs backwards or overlaps another one.

    Source:
        tt-mlir, `ttcore.metal_layout`.

    >>> aligned_map((9, 43, 7), None, (256, 32, 32))
    (lambda d0, d1, d2: [d0 * 64 + d1, d2], (768, 32))
    """
    dims = [Var(f"d{k}") for k in range(len(shape))]
    results, sizes = list[Expr](), list[int]()
    for group in merged_dims(len(shape), intervals):
        count, strides = 1, dict[int, int]()
        for k in reversed(group):
            strides[k] = count
            count = round_up(shape[k] * count, alignments[k])
        results.append(linear_combination([dims[k] for k in group], [strides[k] for k in group]))
        sizes.append(count)
    return IndexMap(tuple(dims), tuple(results)), tuple(sizes)


def merged_dims(rank: int, intervals: Intervals | None) -> list[range]:
    """Return the dimensions that are merged into each result.

    >>> merged_dims(7, [(0, 3), (-3, -1)])
    [range(0, 3), range(3, 4), range(4, 6), range(6, 7)]
    """
    default = [(0, -1)] if rank else []
    pairs = _pairs(default if intervals is None else intervals)
    joined = sorted(_bounds(begin, end, rank) for begin, end in pairs)
    groups: list[range] = []
    next_dim = 0
    for begin, end in joined:
        if begin == end:
            continue
        if begin < next_dim:
            raise LayoutError(
                "shard layout: dimension {begin} is in two of the intervals {intervals}; collapse "
                "each dimension once",
                kind="shards", begin=begin, intervals=[tuple(pair) for pair in intervals or ()],
            )
        groups += [range(k, k + 1) for k in range(next_dim, begin)]
        groups.append(range(begin, end))
        next_dim = end
    return groups + [range(k, k + 1) for k in range(next_dim, rank)]


def _pairs(intervals: Intervals) -> Intervals:
    check_kind(
        intervals, Sequence, "shard layout: collapse_intervals",
        "pass pairs of integers, such as [(0, -1)]", LayoutError,
    )
    for pair in intervals:
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(
            isinstance(n, int) and not isinstance(n, bool) for n in pair
        ):
            raise LayoutError(
                "shard layout: {pair!r} is not a valid interval of dimensions; pass pairs of "
                "integers, the first dimension and the one after the last, such as [(0, -1)]",
                kind="shards", pair=pair,
            )
    return intervals


def _bounds(begin: int, end: int, rank: int) -> tuple[int, int]:
    first = begin + rank if begin < 0 else begin
    last = end + rank if end < 0 else end
    if not (0 <= first <= rank and 0 <= last <= rank):
        raise LayoutError(
            "shard layout: the interval [{begin}, {end}) is out of bounds for {rank} dimensions; "
            "use bounds from 0 to {rank}, or from -{rank} to -1",
            kind="shards", begin=begin, end=end, rank=rank,
        )
    if last < first:
        raise LayoutError(
            "shard layout: the interval [{begin}, {end}) of {rank} dimensions ends before it "
            "begins; pass the first dimension, then the one after the last",
            kind="shards", begin=begin, end=end, rank=rank,
        )
    return first, last


def linearize_dims(dims: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """Linearize dimensions in row-major order."""
    return linear_combination(dims, [prod(extents[k + 1 :]) for k in range(len(extents))])


def linear_combination(dims: Sequence[Expr], strides: Sequence[int]) -> Expr:
    """Return the sum of dimensions times strides; 0 if there are none."""
    total: Expr | None = None
    for dim, stride in zip(dims, strides, strict=True):
        if stride == 0:
            continue
        term = dim if stride == 1 else Binary(BinOp.MUL, dim, index_value(stride))
        total = term if total is None else Binary(BinOp.ADD, total, term)
    return index_value(0) if total is None else total


Shape = tuple[int, ...]


@dataclass(frozen=True)
class ShardSplit:
    """Split of a box into shards, tiles and faces.

    Attributes:
        grid: Number of shards along each axis.
        shard: Shape of a shard in elements.
        tile: Rows and columns of a tile; None without tiles.
        face: Rows and columns of a face of a tile; None without faces.
        aligned: Number of elements to a multiple of which rows of untiled shards are padded.
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
    ) -> ShardSplit:
        """Split a box into shards of equal shape; trailing shards may be partial or empty."""
        shard = tuple(ceil_div(n, count) for n, count in zip(box, grid, strict=True))
        return cls(grid, shard, tile, face, aligned)

    @property
    def memref(self) -> Shape:
        """Shape of a shard, counting tiles along the last two axes if there are tiles."""
        if self.tile is None:
            return self.padded
        tiles = (ceil_div(n, t) for n, t in zip(self.shard[-2:], self.tile, strict=True))
        return (*self.shard[:-2], *tiles)

    @property
    def padded(self) -> Shape:
        """Shape of a shard in elements, padded to whole tiles or aligned rows."""
        if self.tile is None:
            return (*self.shard[:-1], *(round_up(n, self.aligned) for n in self.shard[-1:]))
        ends = (n * t for n, t in zip(self.memref[-2:], self.tile, strict=True))
        return (*self.shard[:-2], *ends)

    def axes(self, values: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return core, position in the shard and position in the tile for box coordinates `values`.

        Every result is a remainder (or 0), so that the map declares the extents.
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
        leading, last = inside[:-2], inside[-2:]
        tiles = [
            _places(quotient(value, t), count)
            for value, t, count in zip(last, self.tile, self.memref[-2:], strict=True)
        ]
        in_tile = [remainder(value, t) for value, t in zip(last, self.tile, strict=True)]
        return (*cores, *leading, *tiles, *faces(in_tile, self.tile, self.face))


def faces(
    in_tile: Sequence[Expr], tile: tuple[int, int], face: tuple[int, int] | None
) -> tuple[Expr, ...]:
    """Return row and column in a tile; with faces, those of the face and those in the face."""
    if face is None:
        return tuple(in_tile)
    face_index = [
        _places(quotient(value, f), t // f)
        for value, f, t in zip(in_tile, face, tile, strict=True)
    ]
    return (*face_index, *(remainder(value, f) for value, f in zip(in_tile, face, strict=True)))


def _places(value: Expr, size: int) -> Expr:
    """Return `value % size`, or 0 if `size` is 1."""
    return index_value(0) if size == 1 else remainder(value, size)


def keep(layout: object, **fields: object) -> None:
    """Set fields of a frozen dataclass during construction."""
    for name, value in fields.items():
        object.__setattr__(layout, name, value)


_MAX_ELEMENTS_PER_STEP = 2**20


@dataclass(frozen=True, eq=False)
class CorePadding:
    """Padding in the shard of one core.

    Attributes:
        core: Virtual core.
        count: Number of padding slots.
        margins: Along each axis of the collapsed box, number of slots of the shard beyond the part
            of the box that belongs to the core, including padding of partial tiles.
        shard_variables: Variables for the physical axes of the shard.
        condition: Condition over `shard_variables` that holds for padding slots.
    """

    core: tuple[int, ...]
    count: int
    margins: tuple[int, ...]
    shard_variables: tuple[Var, ...]
    condition: Expr


def core_padding(
    core: tuple[int, ...],
    cut: ShardSplit,
    collapsed: tuple[int, ...],
    shard: tuple[int, ...],
    padding: tuple[tuple[Var, ...], Expr],
    count: int,
) -> CorePadding:
    """Compute the padding of one core.

    Args:
        core: Virtual core.
        cut: Split of the collapsed axes.
        collapsed: Extents of the collapsed axes.
        shard: Physical shape of a shard.
        padding: Padding of all cores: physical index variables and condition.
        count: Number of padding slots of the core.
    """
    variables, condition = padding
    axes = variables[len(core) :]
    fixed = {var: Const(n, INT64) for var, n in zip(variables, core, strict=False)}
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
        tuple(n - used for n, used in zip(cut.padded, filled, strict=True)),
        axes,
        _shorten(simplify(substitute(condition, fixed), ranges)),
    )


def _shorten(condition: Expr) -> Expr:
    """Remove redundant bounds from a disjunction, such as `x >= 18` beside `x >= 17`."""
    lower_bounds: dict[Expr, int] = {}
    others: list[Expr] = []
    for alternative in operands_of(BinOp.OR, condition):
        match alternative:
            case Compare(CmpOp.GE, Var() as var, Const(int() as bound)):
                lower_bounds[var] = min(bound, lower_bounds.get(var, bound))
            case part:
                others.append(part)
    bounds = [Compare(CmpOp.GE, var, Const(bound, INT64)) for var, bound in lower_bounds.items()]
    return logical_or(*bounds, *others)


def count_on_cores(
    index_map: IndexMap, shape: tuple[int, ...], grid: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Count the elements of each core.

    Grid axes that depend on disjoint sets of indices are counted independently.

    Args:
        index_map: Map whose first results are the grid axes.
        shape: Shape of the tensor.
        grid: Number of cores along each axis.
    """
    exprs = index_map.final_indices[: len(grid)]
    counts = np.ones(grid, np.int64)
    counted: set[int] = set()
    for dims, axes in _groups(index_map, exprs):
        counted |= dims
        part = _count([exprs[k] for k in axes], index_map, sorted(dims), shape,
                      [grid[k] for k in axes])
        counts *= part.reshape([n if k in axes else 1 for k, n in enumerate(grid)])
    return counts * prod(n for k, n in enumerate(shape) if k not in counted)


def _groups(
    index_map: IndexMap, exprs: tuple[Expr, ...]
) -> list[tuple[set[int], list[int]]]:
    """Return disjoint sets of dimensions, each with the results that depend on them."""
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
    """Count the indices of some dimensions per grid position, block by block to bound memory."""
    box = [shape[k] for k in dims]
    total = np.zeros(prod(grid), np.int64)
    first = box[0] if box else 1
    step = max(_MAX_ELEMENTS_PER_STEP // max(prod(box[1:]), 1), 1)
    for start in range(0, first, step):
        block = [(start, min(start + step, first)), *((0, n) for n in box[1:])]
        ranges = block[: len(box)]
        axes: Any = np.ogrid[tuple(slice(*pair) for pair in ranges)] if box else ()
        bindings = {index_map.initial_indices[k]: axis for k, axis in zip(dims, axes, strict=True)}
        indices = [brute_force.values(expr, bindings) for expr in exprs]
        flat = np.zeros([b - a for a, b in ranges], np.int64) + offset_of(indices, grid)
        total += np.bincount(flat.reshape(-1), minlength=total.size)
    return total.reshape(grid)
