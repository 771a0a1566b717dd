"""How many elements each core has, and where in its shard there are none."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BinOp, CmpOp, Compare, Const, Expr, Var, logical_or
from tecomp.ir.traversal.rewrite import free_variables, operands_of, substitute
from tecomp.layout.placement.places import offset_of
from tecomp.layout.shards.cuts import Cut
from tecomp.poly.maps import enumerate as elements
from tecomp.poly.maps.index_map import IndexMap

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
        place = [elements.values(expr, at) for expr in exprs]
        flat = np.zeros([b - a for a, b in ranges], np.int64) + offset_of(place, grid)
        total += np.bincount(flat.reshape(-1), minlength=total.size)
    return total.reshape(grid)
