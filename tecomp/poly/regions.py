"""Regions of index spaces while loops are made: fixing coordinates, boxes around, full tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Protocol, TypeVar

import islpy as isl

from tecomp.ir.expr import Const, Expr, Var, logical_and
from tecomp.ir.rewrite import free_variables
from tecomp.ir.stmt import Extent
from tecomp.poly.affine import NotAffine, Space, condition_hull, index_relation, pw_aff
from tecomp.poly.context import CONTEXT, within_share
from tecomp.poly.express import to_expr

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param
_Set = TypeVar("_Set", isl.Set, isl.BasicSet)
_MOST_CASES = 6
"""Cases of a case distinction of which each is tried for all."""


@dataclass(frozen=True)
class Scope:
    """What surrounds a piece of program: variables in order, and what is known about them.

    Attributes:
        params: size variables, then loop variables, outermost first.
        context: the values that they can have together.
        n_sizes: how many of `params` are sizes.
        concurrent: loops whose iterations run at the same time, each with the call that said so.
    """

    params: tuple[Var, ...]
    context: isl.Set
    n_sizes: int
    concurrent: tuple[tuple[Var, str], ...] = ()

    @classmethod
    def of_sizes(cls, sizes: Sequence[Var], extents: Sequence[Expr] = ()) -> Scope:
        """The scope outside all loops, where `extents` are not negative."""
        space = Space((), tuple(sizes))
        known = space.universe_set()
        for extent in extents:
            known = known.intersect(condition_hull(extent >= 0, space)[0])
        return cls(tuple(sizes), known.params().coalesce(), len(sizes))

    def space(self, dims: Sequence[Var]) -> Space:
        """The space of `dims` inside this scope."""
        return Space(tuple(dims), self.params)

    def enter(self, values: Sequence[Expr], copy: isl.Set) -> Scope:
        """The scope inside loops whose dimensions have `values`, for the points `copy`."""
        variables = dict.fromkeys(v for value in values for v in free_variables(value))
        fresh = tuple(v for v in variables if v not in set(self.params))
        params = (*self.params, *fresh)
        known = _rest(copy, values, params).params().intersect(self.context)
        return replace(self, params=params, context=known)

    def within(self, var: Var, extent: Expr) -> Scope:
        """The scope inside a loop over `extent` values from 0."""
        params = (*self.params, var)
        inside = logical_and(var >= 0, var < extent)
        known, _ = condition_hull(inside, Space((), params))
        return replace(self, params=params, context=known.params().intersect(self.context))

    def running_at_once(self, loops: Sequence[tuple[Var, str]]) -> Scope:
        """This scope, with loops whose iterations run at the same time."""
        return replace(self, concurrent=(*self.concurrent, *loops))


def _point(values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """The one point with these coordinates, in terms of parameters."""
    return index_relation(values, Space((), params)).range()


def fix(points: isl.Set, values: Sequence[Expr], scope: Scope) -> isl.Set:
    """The rest of the coordinates of `points`, where the first ones have `values`."""
    return _rest(points, values, scope.params).intersect_params(scope.context)


def _rest(points: isl.Set, values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """As `fix`; most values are numbers, and variables that `points` do not depend on yet."""
    names = {var: f"p{k}" for k, var in enumerate(params)}
    fresh = [names[value] for value in values if isinstance(value, Var)]
    is_plain = len(set(fresh)) + sum(isinstance(value, Const) for value in values) == len(values)
    if not is_plain or any(points.find_dim_by_name(_PARAM, name) >= 0 for name in fresh):
        here = _point(values, params).add_dims(_DIM, points.dim(_DIM) - len(values))
        return points.intersect(here).project_out(_DIM, 0, len(values))
    for k, value in reversed([*enumerate(values)]):
        if isinstance(value, Const):
            points = points.fix_val(_DIM, k, int(value.value)).project_out(_DIM, k, 1)
    first = points.dim(_PARAM)
    points = points.move_dims(_PARAM, first, _DIM, 0, len(fresh))
    for k, name in enumerate(fresh, first):
        points = points.set_dim_name(_PARAM, k, name)
    return points


def first_dims(points: isl.Set, count: int) -> isl.Set:
    """`points` without the coordinates after the first `count`."""
    return points.project_out(_DIM, count, points.dim(_DIM) - count)


def without_first(points: isl.Set) -> isl.Set:
    """`points` without their first coordinate."""
    return points.project_out(_DIM, 0, 1)


def extend(points: isl.Set, count: int) -> isl.Set:
    """`points` with `count` more coordinates that may be anything."""
    return points.add_dims(_DIM, count)


def united(points: isl.Set, scope: Scope) -> isl.Set:
    """The same points inside `scope`, as one convex piece where they make one.

    Reads that overlap, such as those of neighbours, then get one loop.
    """
    points = points.intersect_params(scope.context).coalesce()
    if points.n_basic_set() > 1:
        hull = isl.Set.from_basic_set(points.simple_hull())
        if hull.is_subset(points):
            return hull
    return points


def image(points: isl.Set, exprs: Sequence[Extent], space: Space) -> isl.Set:
    """The values of `exprs`, affine on `space`, at `points`."""
    return points.apply(index_relation(exprs, space))


def preimage(points: isl.Set, exprs: Sequence[Extent], space: Space) -> isl.Set:
    """Where in `space` the values of `exprs`, affine on it, are in `points`."""
    return points.apply(index_relation(exprs, space).reverse())


def without_gaps(points: isl.Set) -> isl.Set | None:
    """`points`, and others that fill the gaps between several pieces, in each dimension.

    None if that takes more than a few cases to say.
    """
    if points.n_basic_set() < 2:
        return points
    if points.involves_locals():
        return None
    filled = within_share(partial(_filled, points))
    return None if filled is None or filled.n_basic_set() > _MOST_CASES else filled


def convex_around(points: isl.Set) -> isl.Set:
    """One convex piece that holds `points`, and may stick out of the box around them."""
    pieces = points.remove_divs()
    hull = pieces.simple_hull()
    for dim in range(points.dim(_DIM)):
        # So that it sticks out less than a simple hull does.
        hull = hull.intersect(_across(_line(pieces, dim).remove_divs().simple_hull(), points, dim))
    return isl.Set.from_basic_set(hull)


def _filled(points: isl.Set) -> isl.Set:
    """What a simple hull has between `points` in each dimension."""
    hull = isl.Set.from_basic_set(points.simple_hull())
    for dim in range(points.dim(_DIM)):
        # A simple hull may stick out of the box around its points.
        hull = hull.intersect(_across(_between(_line(points, dim).coalesce()), points, dim))
    return hull.coalesce()


def _between(line: isl.Set) -> isl.Set:
    """All that is neither before nor after all of a line's points."""
    sides = (isl.Map.read_from_str(CONTEXT, f"{{ [a] -> [b] : b {way} a }}")
             for way in (">=", "<="))  # fmt: skip
    low, high = (line.apply(side).coalesce() for side in sides)
    return low.intersect(high)


def _across(line: _Set, points: isl.Set, dim: int) -> _Set:
    """All points of a space that are on `line` in one dimension."""
    after = points.dim(_DIM) - dim - 1
    return line.insert_dims(_DIM, 1, after).insert_dims(_DIM, 0, dim)


def of_earlier_iterations(points: isl.Set, loop: Var, scope: Scope) -> isl.Set:
    """All that `points` were in earlier iterations of `loop`."""
    return _of_iterations(points, loop, scope, "other < now")


def _of_iterations(points: isl.Set, loop: Var, scope: Scope, which: str) -> isl.Set:
    """All that `points` are in other iterations of `loop`."""
    position = scope.params.index(loop)
    known = points.intersect_params(scope.context).align_params(Space((), scope.params).isl)
    before = known.move_dims(_DIM, 0, _PARAM, position, 1).insert_dims(_DIM, 0, 1)
    order = isl.Set.read_from_str(CONTEXT, f"{{ [now, other] : {which} }}")
    rest = before.dim(_DIM) - 2
    both = before.intersect(order.add_dims(_DIM, rest).align_params(before.get_space()))
    there = both.project_out(_DIM, 1, 1).move_dims(_PARAM, position, _DIM, 0, 1)
    there = there.set_dim_name(_PARAM, position, f"p{position}")
    return there.intersect_params(scope.context).coalesce()


def where_equal(points: isl.Set, space: Space, pairs: Sequence[tuple[Expr, Expr]]) -> isl.Set:
    """The points at which the two expressions of each pair can be equal.

    A pair that is not affine rules out nothing.
    """
    for a, b in pairs:
        try:
            points = points.intersect(pw_aff(a, space).eq_set(pw_aff(b, space)))
        except NotAffine:
            continue
    return points


def full_tiles(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set | None:
    """The part of `points` where every tiled dimension runs through its whole extent.

    Args:
        points: values of loops, the first dimension outermost.
        tiled: dimension and full extent of each tile loop.

    Returns:
        The part, or None if it is everything, nothing, or no simple range of the other loops.
    """
    if not tiled:
        return None
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


def rounded(points: isl.Set, dim: int, size: int) -> isl.Set:
    """`points` with all values that a dimension has in the same block of `size`."""
    block = isl.Map.read_from_str(
        CONTEXT,
        "{ [a] -> [b] : exists t : "
        f"{size} t <= a < {size} t + {size} and {size} t <= b < {size} t + {size} }}",
    )
    before: isl.Map = isl.Map.identity(_universe(dim).get_space().map_from_set())
    after = points.dim(_DIM) - dim - 1
    same: isl.Map = isl.Map.identity(_universe(after).get_space().map_from_set())
    return points.apply(before.flat_product(block).flat_product(same))


def _universe(rank: int) -> isl.Set:
    return isl.Set.universe(isl.Space.set_alloc(CONTEXT, 0, rank))


def is_inside(points: isl.Set, others: isl.Set, scope: Scope) -> bool:
    """Whether `points` are all among `others`, as far as is known in `scope`."""
    return bool(points.intersect_params(scope.context).is_subset(others))


def box_around(
    points: isl.Set, unclipped: isl.Set, scope: Scope, shape: Sequence[Extent]
) -> tuple[tuple[Expr, Extent], ...]:
    """(start, extent) in each dimension of a box that holds `points` at all times.

    The starts are affine in the loops around; the extents depend on the sizes alone. A start
    that would need a case distinction, because the region meets the tensor's edge, is
    taken from `unclipped`, the region before it was cut at the edge; or it is one of the cases,
    if that is never behind the others. Where it takes isl too long to say, the dimension is whole.
    """
    known = points.intersect_params(scope.context)
    box: list[tuple[Expr, Extent]] = []

    def side(k: int) -> tuple[Expr, Extent] | None:
        return (
            _interval(known, k, scope)
            # What is known may itself be a case distinction.
            or _interval(points, k, scope)
            or _interval(unclipped.intersect_params(scope.context), k, scope)
        )

    def cases(k: int, whole: Extent) -> tuple[Expr, Extent]:
        return _around_cases(_at_single(known, box, scope), k, scope, whole)

    for k, whole in enumerate(shape):
        box.append(
            within_share(partial(side, k)) or within_share(partial(cases, k, whole))
            or (Const(0), whole)
        )
    return tuple(box)


def _at_single(points: isl.Set, box: Sequence[tuple[Expr, Extent]], scope: Scope) -> isl.Set:
    """`points`, said to be at the one value of each dimension that has one.

    Digits of a fused loop follow from those before, where isl would tell the values of these apart.
    """
    for k, (start, extent) in enumerate(box):
        if isinstance(extent, int) and extent == 1 and not isinstance(start, Const):
            here = _point([start], scope.params)
            after = points.dim(_DIM) - k - 1
            points = points.intersect(here.insert_dims(_DIM, 0, k).insert_dims(_DIM, k + 1, after))
    # Ends that follow from what is known would be cases, too.
    return points.compute_divs().coalesce().gist_params(scope.context)


def corner(points: isl.Set, scope: Scope) -> list[Expr]:
    """The least value in each dimension, with case distinctions where it takes some."""
    known = points.intersect_params(scope.context)
    return [_least(known, points, k, scope) for k in range(points.dim(_DIM))]


def _least(known: isl.Set, points: isl.Set, dim: int, scope: Scope) -> Expr:
    if (found := _interval(known, dim, scope) or _interval(points, dim, scope)) is not None:
        return found[0]
    line = _line(known, dim)
    if not line.dim_is_bounded(_DIM, 0):
        return Const(0)
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    return to_expr(low, scope.space(()).names)


def _around_cases(
    points: isl.Set, dim: int, scope: Scope, whole: Extent
) -> tuple[Expr, Extent]:
    """An interval where the least values take a case distinction: from one of the cases on.

    The narrowest of them; that of all values at any time, or all of the axis, if none is narrower.
    """
    if (found := _interval(points, dim, scope)) is not None:
        return found
    line = _line(points, dim).intersect_params(scope.context)
    best: tuple[Expr, Extent] = (Const(0), whole)
    if not line.is_bounded():
        return best
    anywhere = line.project_out(_PARAM, 0, line.dim(_PARAM))
    first, last = anywhere.dim_min_val(0), anywhere.dim_max_val(0)
    width = None
    if first.is_int() and last.is_int():
        width = int(last.sub(first).to_python()) + 1
        if not isinstance(whole, int) or width < whole:
            best = (Const(int(first.to_python())), width)
    for start in _starts(line, scope):
        found = _from(start, line, scope)
        if found is not None and isinstance(found[1], int) and (width is None or found[1] < width):
            best, width = found, found[1]
    return best


def windows_around(
    points: isl.Set, dim: int, loop: Var, scope: Scope
) -> list[tuple[Expr, int]]:
    """Intervals that hold `points` at all times and have no later ones before them.

    Nothing before them is needed any more then. The narrowest first; those alone that are as long
    at all times.
    """
    line = _line(points, dim).intersect_params(scope.context)
    if not line.is_bounded():
        return []
    rest = _of_iterations(line, loop, scope, "other >= now")
    least = rest.dim_min(0).gist_params(scope.context).coalesce()
    found = (_from(start, line, scope) for start in [*_starts(rest, scope), least])
    numbers = [(each[0], each[1]) for each in found if each and isinstance(each[1], int)]
    return sorted(numbers, key=lambda interval: interval[1])


def _starts(line: isl.Set, scope: Scope) -> list[isl.PwAff]:
    """The cases of the least value that are never behind others, or those of two that are not."""
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    # Elsewhere a case may be no whole number.
    cases = [case.floor().to_pw_aff() for _, case in low.get_pieces()[:_MOST_CASES]]
    singles = [case for case in cases if not case.is_cst() and _is_before(case, line)]
    if singles:
        return singles
    pairs = (a.min(b) for k, a in enumerate(cases) for b in cases[:k])
    return [pair for pair in pairs if not pair.is_cst() and _is_before(pair, line)]


def _is_before(start: isl.PwAff, line: isl.Set) -> bool:
    """Whether no value is behind `start`."""
    here: isl.Set = isl.Set.from_pw_aff(start).align_params(line.get_space())
    order = isl.Map.read_from_str(CONTEXT, "{ [a] -> [b] : b >= a }")
    return bool(line.is_subset(here.apply(order)))


def _line(points: isl.Set, dim: int) -> isl.Set:
    """The values in one dimension."""
    after = points.dim(_DIM) - dim - 1
    return points.project_out(_DIM, dim + 1, after).project_out(_DIM, 0, dim)


def _interval(points: isl.Set, dim: int, scope: Scope) -> tuple[Expr, Extent] | None:
    line = _line(points, dim)
    if line.is_empty():
        return Const(0), 0
    # Not `dim_is_bounded`, which is mistaken about remainders: `d0 % 32 == p0`.
    if not line.is_bounded():
        return None
    if not line.involves_dims(_PARAM, 0, line.dim(_PARAM)):
        first, last = (int(end.to_python()) for end in (line.dim_min_val(0), line.dim_max_val(0)))
        return Const(first), last - first + 1
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    if low.n_piece() != 1:
        return None
    start = low.as_aff() if low.isa_aff() else low.get_pieces()[0][1]
    return _from(start.to_pw_aff(), line, scope)


def _from(start: isl.PwAff, line: isl.Set, scope: Scope) -> tuple[Expr, Extent] | None:
    """`start`, which is no value behind, and the extent that holds all values from there on."""
    width = line.dim_max(0).sub(start).add_constant_val(1)
    if width.n_piece() == 1 and (only := width.get_pieces()[0][1]).is_cst():
        return to_expr(start, scope.space(()).names), int(only.get_constant_val().to_python())
    widths = isl.Set.from_pw_aff(width).intersect_params(scope.context)
    names = scope.space(()).names
    anywhere = widths.project_out(_PARAM, 0, widths.dim(_PARAM))
    most = anywhere.dim_max_val(0)
    if most.is_int():
        # A number is worth more than a tighter bound that depends on sizes.
        return to_expr(start, names), int(most.to_python())
    extent = _greatest(_of_sizes(widths, scope), names)
    return None if extent is None else (to_expr(start, names), extent)


def _greatest(widths: isl.Set, names: Mapping[str, Expr]) -> Extent | None:
    """The greatest element, in terms of the sizes."""
    if not widths.is_bounded():
        return None
    expr = to_expr(widths.dim_max(0).coalesce(), names)
    return int(expr.value) if isinstance(expr, Const) else expr


def _of_sizes(points: isl.Set, scope: Scope) -> isl.Set:
    """`points` for any values of the loops around."""
    for k in range(len(scope.params) - 1, scope.n_sizes - 1, -1):
        position = points.find_dim_by_name(_PARAM, f"p{k}")
        if position >= 0:
            points = points.project_out(_PARAM, position, 1)
    return points


class Side(Protocol):
    """Where an axis starts and how far it runs."""

    @property
    def base(self) -> Expr:
        """First value."""

    @property
    def extent(self) -> Extent:
        """Number of values."""


def is_box(region: isl.Set, sides: Sequence[Side], scope: Scope) -> bool:
    """Whether `region` is everything that `sides` enclose."""
    axes = tuple(Var("axis") for _ in sides)
    try:
        box = scope.space(axes).box([(side.base, side.extent) for side in sides])
    except NotAffine:
        return False
    known = scope.context
    return bool(box.intersect_params(known).is_equal(region.intersect_params(known)))


def covers(region: isl.Set, whole: isl.Set, scope: Scope) -> bool:
    """Whether all iterations of the loops around together need the `whole`."""
    return bool(whole.is_subset(_of_sizes(region.intersect_params(scope.context), scope)))
