"""The full tiles among values of loops: those that run through their whole extents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import islpy as isl

from tecomp.poly.loops.scopes import first_dims
from tecomp.poly.sets.context import asked_of_sets, within_share

_DIM = isl.dim_type.set


def full_tiles(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set | None:
    """The part of `points` where every tiled dimension runs through its whole extent.

    Args:
        points: values of loops, the first dimension outermost.
        tiled: dimension and full extent of each tile loop.

    Returns:
        The part, or None if it is everything, nothing, or no simple range of the other loops; or
        if isl takes too long to say.
    """
    return within_share(partial(_full_tiles, points, tuple(tiled))) if tiled else None


@asked_of_sets
def _full_tiles(points: isl.Set, tiled: tuple[tuple[int, int], ...]) -> isl.Set | None:
    last = max(dim for dim, _ in tiled) + 1
    inside = first_dims(points, last)
    if _all_tiles(inside, tiled).is_subset(inside):
        return None
    is_convex = inside.n_basic_set() == 1 and not inside.involves_locals()
    whole = _with_corners(inside, tiled) if is_convex else _without_gaps(inside, tiled)
    full = points.intersect(whole.add_dims(_DIM, points.dim(_DIM) - last)).coalesce()
    if full.is_empty() or points.is_subset(full):
        return None
    # Full tiles that come and go (tiles of 5 over places in blocks of 4) are not worth loops of
    # their own: there would be one for each pattern.
    return None if full.n_basic_set() > 1 or full.involves_locals() else full


def _with_corners(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """Where all corners of a tile are among `points`, which are convex: then all of it is."""
    whole = points
    for dim, _ in tiled:
        whole = free(whole, dim)
    for corner in product(*([0, extent - 1] for _, extent in tiled)):
        held = points
        for (dim, _), place in zip(tiled, corner, strict=True):
            held = free(held.fix_val(_DIM, dim, place), dim)
        whole = whole.intersect(held)
    return whole


def _all_tiles(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """The whole of each tile of which a part is among `points`."""
    tiles = points
    for dim, extent in tiled:
        tiles = free(tiles, dim).lower_bound_val(_DIM, dim, 0)
        tiles = tiles.upper_bound_val(_DIM, dim, extent - 1)
    return tiles


def _without_gaps(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """Where no part of a tile is missing from `points`."""
    tiles = _all_tiles(points, tiled)
    partial = tiles.subtract(points)
    for dim, _ in tiled:
        partial = free(partial, dim)
    return tiles.subtract(partial)


def free(points: isl.Set, dim: int) -> isl.Set:
    """`points` with any value in one dimension."""
    return points.project_out(_DIM, dim, 1).insert_dims(_DIM, dim, 1)
