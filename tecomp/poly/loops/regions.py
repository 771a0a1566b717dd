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
from tecomp.poly.sets.isl_context import CONTEXT, within_budget
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
_DIV = isl.dim_type.div


@dataclass(frozen=True)
class LoopScope:
    """Variables at a program point in order, and the facts about them.

    Attributes:
        params: Size variables, then loop variables, outermost first.
        context: Joint values that `params` can have.
        n_sizes: Number of sizes in `params`.
        concurrent: Loops with concurrent iterations, each with the call that requested this.
    """

    params: tuple[Var, ...]
    context: isl.Set
    n_sizes: int
    concurrent: tuple[tuple[Var, str], ...] = ()

    @classmethod
    def of_sizes(cls, sizes: Sequence[Var], extents: Sequence[Expr] = ()) -> LoopScope:
        """Return the scope outside all loops.

        There, `extents` are nonnegative, and sizes are within their declared bounds.
        """
        space = Space((), tuple(sizes))
        known = space.universe_set()
        facts = [extent >= 0 for extent in extents]
        facts += [fact for var in sizes for fact in _declared_facts(var)]
        for fact in facts:
            known = known.intersect(condition_hull(fact, space)[0])
        return cls(tuple(sizes), known.params().coalesce(), len(sizes))

    @property
    def is_inside_loops(self) -> bool:
        """Whether there are enclosing loops."""
        return len(self.params) > self.n_sizes

    def space(self, dims: Sequence[Var]) -> Space:
        """Return the space of `dims` in this scope."""
        return Space(tuple(dims), self.params)

    def enter(self, values: Sequence[Expr], copy: isl.Set) -> LoopScope:
        """Return the scope inside loops whose dimensions have `values`, for the points `copy`."""
        variables = dict.fromkeys([v for value in values for v in free_variables(value)])
        fresh = tuple([v for v in variables if v not in set(self.params)])
        params = (*self.params, *fresh)
        inside = rest_of(copy, values, params).params()
        # Undefined existential variables would be duplicated in each set that uses the context.
        known = inside.remove_unknown_divs().intersect(self.context)
        return replace(self, params=params, context=known)

    def within(self, var: Var, extent: Expr) -> LoopScope:
        """Return the scope inside a loop from 0 to `extent`, exclusive."""
        params = (*self.params, var)
        inside = logical_and(var >= 0, var < extent)
        known, _ = condition_hull(inside, Space((), params))
        return replace(self, params=params, context=known.params().intersect(self.context))

    def running_at_once(self, loops: Sequence[tuple[Var, str]]) -> LoopScope:
        """Return this scope with additional loops whose iterations run concurrently."""
        return replace(self, concurrent=(*self.concurrent, *loops))


def _declared_facts(var: Var) -> list[Expr]:
    """Return the conditions that the declared bounds of a size imply."""
    bounds = var.bounds
    if bounds is None:
        return []
    facts: list[Expr] = [var >= bounds.minimum]
    facts += [] if bounds.maximum is None else [var <= bounds.maximum]
    return facts + ([var % bounds.multiple == 0] if bounds.multiple > 1 else [])


def point_at(values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """Return the single point with these coordinates, in terms of parameters."""
    return index_relation(values, Space((), params)).range()


def fix(points: isl.Set, values: Sequence[Expr], scope: LoopScope) -> isl.Set:
    """Fix the first coordinates of `points` to `values` and return the other coordinates."""
    return rest_of(points, values, scope.params).intersect_params(scope.context)


def rest_of(points: isl.Set, values: Sequence[Expr], params: tuple[Var, ...]) -> isl.Set:
    """Fix coordinates as `fix` does; fast for constants and for variables not yet in `points`."""
    names = {var: f"p{k}" for k, var in enumerate(params)}
    fresh = [names[value] for value in values if isinstance(value, Var)]
    is_plain = len(set(fresh)) + sum([isinstance(value, Const) for value in values]) == len(values)
    if not is_plain or any(points.find_dim_by_name(_PARAM, name) >= 0 for name in fresh):
        fixed = point_at(values, params).add_dims(_DIM, points.dim(_DIM) - len(values))
        return points.intersect(fixed).project_out(_DIM, 0, len(values))
    for k, value in reversed([*enumerate(values)]):
        if isinstance(value, Const):
            points = points.fix_val(_DIM, k, int(value.value)).project_out(_DIM, k, 1)
    if not fresh:
        return points
    # Name the coordinates before they move: the pieces of a union may name them differently, which
    # isl accepts for dimensions but not for parameters.
    for k, name in enumerate(fresh):
        points = points.set_dim_name(_DIM, k, name)
    return points.move_dims(_PARAM, points.dim(_PARAM), _DIM, 0, len(fresh))


def first_dims(points: isl.Set, count: int) -> isl.Set:
    """Project out all coordinates after the first `count`."""
    return project_out_dims(points, count, points.dim(_DIM) - count)


def project_out_dims(points: isl.Set, first: int, count: int) -> isl.Set:
    """Project out `count` coordinates from position `first` on."""
    return points.project_out(_DIM, first, count) if count else points


def project_out_first_dim(points: isl.Set) -> isl.Set:
    """Project out the first coordinate."""
    return points.project_out(_DIM, 0, 1)


def extend(points: isl.Set, count: int) -> isl.Set:
    """Append `count` unconstrained coordinates to `points`."""
    return points.add_dims(_DIM, count)


_Set = TypeVar("_Set", isl.Set, isl.BasicSet)
MAX_CASES = 6
"""Maximum number of pieces of a set that are considered one by one."""


def coalesce_convex(points: isl.Set, scope: LoopScope) -> isl.Set:
    """Restrict `points` to `scope` and merge them into one convex piece if that is exact.

    Overlapping reads, such as those of adjacent elements, then get a single loop.
    """
    points = points.intersect_params(scope.context).coalesce()
    if points.n_basic_set() > 1:
        hull = isl.Set.from_basic_set(points.simple_hull())
        if hull.is_subset(points):
            return hull
    elif points.involves_locals() and (box := within_budget(partial(_equal_box, points))):
        return box
    return points


def _equal_box(points: isl.Set) -> isl.Set | None:
    """Return `points` as a box with quotients of parameters only, or None if that is not possible.

    Overlapping strided windows read a box, whose set has quotients of the dimensions. A dimension
    that begins at a quotient, as inside of a fused loop, keeps the digits that it has.
    """
    pieces = points.get_basic_sets()
    if len(pieces) != 1 or pieces[0].dim(_DIV) > points.dim(_DIM):
        return None
    box = points.params().insert_dims(_DIM, 0, points.dim(_DIM))
    for dim in range(points.dim(_DIM)):
        line = line_of(points, dim)
        if not line.is_bounded():
            return None
        low, high = line.dim_min(0).coalesce(), line.dim_max(0).coalesce()
        if any(case.dim(_DIV) for _, case in low.get_pieces()):
            return None
        for end, side in ((low, at_least), (high, at_most)):
            # The cases of a minimum all limit the box; for other cases the box is not equal.
            for _, case in end.get_pieces()[:MAX_CASES]:
                values = side(isl.Set.from_pw_aff(case.to_pw_aff()))
                box = box.intersect(_across(values, points, dim))
    return box if box.is_equal(points) else None


def image(points: isl.Set, exprs: Sequence[Extent], space: Space) -> isl.Set:
    """Return the values of `exprs`, affine on `space`, at `points`."""
    relation = relation_unless_identity(exprs, space)
    return points if relation is None else points.apply(relation)


def preimage(points: isl.Set, exprs: Sequence[Extent], space: Space) -> isl.Set:
    """Return the points of `space` where the values of `exprs`, affine on it, are in `points`."""
    relation = relation_unless_identity(exprs, space)
    return points if relation is None else points.apply(relation.reverse())


def fill_gaps(points: isl.Set) -> isl.Set | None:
    """Fill the gaps between several pieces of `points` in each dimension.

    Returns None if `points` has existential variables, or if the result takes too long to compute
    or has more than `MAX_CASES` pieces.
    """
    if points.n_basic_set() < 2:
        return points
    if points.involves_locals():
        return None
    filled = within_budget(partial(_bounded_simple_hull, points))
    return None if filled is None or filled.n_basic_set() > MAX_CASES else filled


def convex_superset(points: isl.Set) -> isl.Set:
    """Return one convex superset of `points`, which may exceed their bounding box."""
    pieces = points.remove_divs()
    hull = pieces.simple_hull()
    for dim in range(points.dim(_DIM)):
        # The hull of each dimension is tighter there than the simple hull of all dimensions.
        line = line_of(pieces, dim).remove_divs().simple_hull()
        hull = hull.intersect(_across(line, points, dim))
    return isl.Set.from_basic_set(hull)


def _bounded_simple_hull(points: isl.Set) -> isl.Set:
    """Return the simple hull of `points`, cut to the range of values in each dimension."""
    hull = isl.Set.from_basic_set(points.simple_hull())
    for dim in range(points.dim(_DIM)):
        # A simple hull may exceed the bounding box of its points.
        hull = hull.intersect(_across(_between(line_of(points, dim).coalesce()), points, dim))
    return hull.coalesce()


def _between(line: isl.Set) -> isl.Set:
    """Return all values that are neither before nor after all points of a line."""
    return at_least(line).coalesce().intersect(at_most(line).coalesce())


def at_least(line: isl.Set) -> isl.Set:
    """Return all values that are greater than or equal to a point of a line."""
    return line.apply(isl.Map.read_from_str(CONTEXT, "{ [a] -> [b] : b >= a }"))


def at_most(line: isl.Set) -> isl.Set:
    """Return all values that are less than or equal to a point of a line."""
    return line.apply(isl.Map.read_from_str(CONTEXT, "{ [a] -> [b] : b <= a }"))


def _across(line: _Set, points: isl.Set, dim: int) -> _Set:
    """Return all points of a space whose coordinate `dim` is on `line`."""
    after = points.dim(_DIM) - dim - 1
    return line.insert_dims(_DIM, 1, after).insert_dims(_DIM, 0, dim)


def of_earlier_iterations(points: isl.Set, loop: Var, scope: LoopScope) -> isl.Set:
    """Return the union of `points` over earlier iterations of `loop` and over its inner loops."""
    return of_iterations(points, loop, scope, "other < now")


def of_iterations(points: isl.Set, loop: Var, scope: LoopScope, constraint: str) -> isl.Set:
    """Return the union of `points` over other iterations of `loop` and over its inner loops.

    Args:
        points: Set that depends on the loops of `scope`.
        loop: Loop of `scope`.
        scope: Enclosing loops.
        constraint: isl constraint on `now` and `other`, e.g. "other < now".
    """
    position = scope.params.index(loop)
    known = of_loops_inside(points, loop, scope)
    before = known.move_dims(_DIM, 0, _PARAM, position, 1).insert_dims(_DIM, 0, 1)
    order = isl.Set.read_from_str(CONTEXT, f"{{ [now, other] : {constraint} }}")
    n_dims = before.dim(_DIM) - 2
    pairs = before.intersect(order.add_dims(_DIM, n_dims).align_params(before.get_space()))
    shifted = pairs.project_out(_DIM, 1, 1).set_dim_name(_DIM, 0, f"p{position}")
    shifted = shifted.move_dims(_PARAM, position, _DIM, 0, 1)
    return shifted.intersect_params(scope.context).coalesce()


def of_loops_inside(points: isl.Set, loop: Var, scope: LoopScope) -> isl.Set:
    """Return the union of `points` over all loops inside `loop`, for one iteration of `loop`."""
    inside = scope.params.index(loop) + 1
    known = points.intersect_params(scope.context).align_params(Space((), scope.params).isl)
    return known.project_out(_PARAM, inside, len(scope.params) - inside)


def equality_points(points: isl.Set, space: Space, pairs: Sequence[tuple[Expr, Expr]]) -> isl.Set:
    """Return the points at which the expressions of each pair can be equal.

    A pair that is not affine excludes no point.
    """
    for a, b in pairs:
        try:
            points = points.intersect(pw_aff(a, space).eq_set(pw_aff(b, space)))
        except NotAffine:
            continue
    return points


def round_to_blocks(points: isl.Set, dim: int, size: int) -> isl.Set:
    """Extend `points` in one dimension to all values of the same block of `size`."""
    block = isl.Map.read_from_str(
        CONTEXT,
        "{ [a] -> [b] : exists t : "
        f"{size} t <= a < {size} t + {size} and {size} t <= b < {size} t + {size} }}",
    )
    before: isl.Map = isl.Map.identity(_universe(dim).get_space().map_from_set())
    after = points.dim(_DIM) - dim - 1
    unchanged: isl.Map = isl.Map.identity(_universe(after).get_space().map_from_set())
    return points.apply(before.flat_product(block).flat_product(unchanged))


def _universe(rank: int) -> isl.Set:
    return isl.Set.universe(isl.Space.set_alloc(CONTEXT, 0, rank))


def is_inside(points: isl.Set, others: isl.Set, scope: LoopScope) -> bool:
    """Return whether all `points` are in `others`, given the facts of `scope`."""
    return bool(points.intersect_params(scope.context).is_subset(others))


def line_of(points: isl.Set, dim: int) -> isl.Set:
    """Return the values of one dimension."""
    after = points.dim(_DIM) - dim - 1
    return project_out_dims(project_out_dims(points, dim + 1, after), 0, dim)


def of_sizes(points: isl.Set, scope: LoopScope) -> isl.Set:
    """Return the union of `points` over all enclosing loops."""
    for k in range(len(scope.params) - 1, scope.n_sizes - 1, -1):
        position = points.find_dim_by_name(_PARAM, f"p{k}")
        if position >= 0:
            points = points.project_out(_PARAM, position, 1)
    return points


class AxisRange(Protocol):
    """Interface of an axis range: start and extent."""

    @property
    def base(self) -> Expr:
        """First value."""

    @property
    def extent(self) -> Extent:
        """Number of values."""


def is_box(region: isl.Set, ranges: Sequence[AxisRange], scope: LoopScope) -> bool:
    """Return whether `region` equals the box of `ranges`; False if isl takes too long to decide."""
    axes = tuple(Var("axis") for _ in ranges)
    try:
        box = scope.space(axes).box([(span.base, span.extent) for span in ranges])
    except NotAffine:
        return False
    return is_same(box, region, scope)


def is_same(points: isl.Set, others: isl.Set, scope: LoopScope) -> bool:
    """Return whether both sets are equal in `scope`; False if isl takes too long to decide."""
    known = scope.context
    result = within_budget(
        lambda: points.intersect_params(known).is_equal(others.intersect_params(known))
    )
    return bool(result)


def covers(region: isl.Set, required: isl.Set, scope: LoopScope) -> bool:
    """Return whether all iterations of the enclosing loops together require all of `required`."""
    return bool(required.is_subset(of_sizes(region.intersect_params(scope.context), scope)))
