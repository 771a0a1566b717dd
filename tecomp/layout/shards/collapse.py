"""Several dimensions as one: the map from the indices of a tensor to the axes of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.language.expr import Binary, BinOp, Expr, Var, index_value
from tecomp.ir.language.given import check_kind
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
