"""Scopes: what surrounds a piece of program, and sets whose first coordinates are fixed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tecomp.ir.language.expr import Const, Expr, Var, logical_and
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.sets.affine import Space, condition_hull, index_relation

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
