"""Regions of index spaces: their unions and images, what lies between their pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeVar

import islpy as isl

from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import Extent
from tecomp.poly.loops.scopes import Scope, without
from tecomp.poly.sets.affine import NotAffine, Space, pw_aff, relation_unless_identity
from tecomp.poly.sets.context import CONTEXT, within_share

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param
_Set = TypeVar("_Set", isl.Set, isl.BasicSet)
MOST_CASES = 6
"""Cases of a case distinction of which each is tried for all."""


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
    relation = relation_unless_identity(exprs, space)
    return points if relation is None else points.apply(relation)


def preimage(points: isl.Set, exprs: Sequence[Extent], space: Space) -> isl.Set:
    """Where in `space` the values of `exprs`, affine on it, are in `points`."""
    relation = relation_unless_identity(exprs, space)
    return points if relation is None else points.apply(relation.reverse())


def without_gaps(points: isl.Set) -> isl.Set | None:
    """`points`, and others that fill the gaps between several pieces, in each dimension.

    None if that takes more than a few cases to say.
    """
    if points.n_basic_set() < 2:
        return points
    if points.involves_locals():
        return None
    filled = within_share(partial(_filled, points))
    return None if filled is None or filled.n_basic_set() > MOST_CASES else filled


def convex_around(points: isl.Set) -> isl.Set:
    """One convex piece that holds `points`, and may stick out of the box around them."""
    pieces = points.remove_divs()
    hull = pieces.simple_hull()
    for dim in range(points.dim(_DIM)):
        # So that it sticks out less than a simple hull does.
        line = line_of(pieces, dim).remove_divs().simple_hull()
        hull = hull.intersect(_across(line, points, dim))
    return isl.Set.from_basic_set(hull)


def _filled(points: isl.Set) -> isl.Set:
    """What a simple hull has between `points` in each dimension."""
    hull = isl.Set.from_basic_set(points.simple_hull())
    for dim in range(points.dim(_DIM)):
        # A simple hull may stick out of the box around its points.
        hull = hull.intersect(_across(_between(line_of(points, dim).coalesce()), points, dim))
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
    """All that `points` were in earlier iterations of `loop`, in any of loops inside of it."""
    return of_iterations(points, loop, scope, "other < now")


def of_iterations(points: isl.Set, loop: Var, scope: Scope, which: str) -> isl.Set:
    """All that `points` are in other iterations of `loop`, and in any of loops inside of it."""
    position = scope.params.index(loop)
    known = of_loops_inside(points, loop, scope)
    before = known.move_dims(_DIM, 0, _PARAM, position, 1).insert_dims(_DIM, 0, 1)
    order = isl.Set.read_from_str(CONTEXT, f"{{ [now, other] : {which} }}")
    rest = before.dim(_DIM) - 2
    both = before.intersect(order.add_dims(_DIM, rest).align_params(before.get_space()))
    there = both.project_out(_DIM, 1, 1).set_dim_name(_DIM, 0, f"p{position}")
    there = there.move_dims(_PARAM, position, _DIM, 0, 1)
    return there.intersect_params(scope.context).coalesce()


def of_loops_inside(points: isl.Set, loop: Var, scope: Scope) -> isl.Set:
    """All that `points` are in an iteration of `loop`, whatever those of loops inside of it are."""
    inside = scope.params.index(loop) + 1
    known = points.intersect_params(scope.context).align_params(Space((), scope.params).isl)
    return known.project_out(_PARAM, inside, len(scope.params) - inside)


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


def line_of(points: isl.Set, dim: int) -> isl.Set:
    """The values in one dimension."""
    after = points.dim(_DIM) - dim - 1
    return without(without(points, dim + 1, after), 0, dim)


def of_sizes(points: isl.Set, scope: Scope) -> isl.Set:
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
    """Whether `region` is all that `sides` enclose; False where isl takes too long to say."""
    axes = tuple(Var("axis") for _ in sides)
    try:
        box = scope.space(axes).box([(side.base, side.extent) for side in sides])
    except NotAffine:
        return False
    return is_same(box, region, scope)


def is_same(points: isl.Set, others: isl.Set, scope: Scope) -> bool:
    """Whether both are the same, as far as is known; False where isl takes too long to say."""
    known = scope.context
    same = within_share(
        lambda: points.intersect_params(known).is_equal(others.intersect_params(known))
    )
    return bool(same)


def covers(region: isl.Set, whole: isl.Set, scope: Scope) -> bool:
    """Whether all iterations of the loops around together need the `whole`."""
    return bool(whole.is_subset(of_sizes(region.intersect_params(scope.context), scope)))
