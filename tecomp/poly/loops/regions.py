"""Regions, and the scope of a program point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import islpy as isl

from tecomp.ir.nodes.expr import Const, Expr, Var, logical_and
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.sets.isl_context import CONTEXT, within_share
from tecomp.poly.sets.to_isl import (
    NotAffine,
    Space,
    condition_hull,
    index_relation,
    pw_aff,
    relation_unless_identity,
)

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param


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

    @property
    def is_inside_loops(self) -> bool:
        """Whether there are loops around."""
        return len(self.params) > self.n_sizes

    def space(self, dims: Sequence[Var]) -> Space:
        """The space of `dims` inside this scope."""
        return Space(tuple(dims), self.params)

    def enter(self, values: Sequence[Expr], copy: isl.Set) -> Scope:
        """The scope inside loops whose dimensions have `values`, for the points `copy`."""
        variables = dict.fromkeys(v for value in values for v in free_variables(value))
        fresh = tuple(v for v in variables if v not in set(self.params))
        params = (*self.params, *fresh)
        inside = rest_of(copy, values, params).params()
        # Unknowns without an expression come once more with every set that the context is put to.
        known = inside.remove_unknown_divs().intersect(self.context)
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


def point_at(values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """The one point with these coordinates, in terms of parameters."""
    return index_relation(values, Space((), params)).range()


def fix(points: isl.Set, values: Sequence[Expr], scope: Scope) -> isl.Set:
    """The rest of the coordinates of `points`, where the first ones have `values`."""
    return rest_of(points, values, scope.params).intersect_params(scope.context)


def rest_of(points: isl.Set, values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """As `fix`; most values are numbers, and variables that `points` do not depend on yet."""
    names = {var: f"p{k}" for k, var in enumerate(params)}
    fresh = [names[value] for value in values if isinstance(value, Var)]
    is_plain = len(set(fresh)) + sum(isinstance(value, Const) for value in values) == len(values)
    if not is_plain or any(points.find_dim_by_name(_PARAM, name) >= 0 for name in fresh):
        here = point_at(values, params).add_dims(_DIM, points.dim(_DIM) - len(values))
        return points.intersect(here).project_out(_DIM, 0, len(values))
    for k, value in reversed([*enumerate(values)]):
        if isinstance(value, Const):
            points = points.fix_val(_DIM, k, int(value.value)).project_out(_DIM, k, 1)
    if not fresh:
        return points
    # Named before they move: the parts of a union may have other names for its coordinates, which
    # isl does not mind as long as they are no parameters.
    for k, name in enumerate(fresh):
        points = points.set_dim_name(_DIM, k, name)
    return points.move_dims(_PARAM, points.dim(_PARAM), _DIM, 0, len(fresh))


def first_dims(points: isl.Set, count: int) -> isl.Set:
    """`points` without the coordinates after the first `count`."""
    return without(points, count, points.dim(_DIM) - count)


def without(points: isl.Set, first: int, count: int) -> isl.Set:
    """`points` without `count` coordinates from `first` on."""
    return points.project_out(_DIM, first, count) if count else points


def without_first(points: isl.Set) -> isl.Set:
    """`points` without their first coordinate."""
    return points.project_out(_DIM, 0, 1)


def extend(points: isl.Set, count: int) -> isl.Set:
    """`points` with `count` more coordinates that may be anything."""
    return points.add_dims(_DIM, count)


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
