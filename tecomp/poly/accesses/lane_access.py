"""Access patterns along vector lanes.

The answers depend on only a few axes of an operation: those that determine the lanes, or that
several coordinates of a layout share. All other axes are constant along the lanes and are dropped.
The reduced questions recur in most operations of a program, and each is answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import islpy as isl

from tecomp.caches import LRUCache
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.poly.sets.isl_context import CONTEXT
from tecomp.poly.sets.to_isl import Space, first_point, index_relation

_DIM = isl.dim_type.set
_OUT = isl.dim_type.out
_Found = TypeVar("_Found")
Pair = tuple[Mapping[Var, int], Mapping[Var, int]]


@dataclass(frozen=True, eq=False)
class LaneAddresses:
    """Physical coordinates of an operand's element at each point of an operation, the lane last.

    Attributes:
        axes: Axes of the operation, those of the result first.
        extents: Extents of the axes.
        exprs: Physical coordinates in terms of the axes.
    """

    axes: tuple[Var, ...]
    extents: tuple[int, ...]
    exprs: tuple[Expr, ...]
    # Many layout combinations are tried, and they ask the same questions about the same operand.
    _memo: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def space(self) -> Space:
        """Space of the axes."""
        return Space(self.axes)

    @cached_property
    def parts(self) -> tuple[tuple[str, frozenset[Var]], ...]:
        """Text of each expression, and the axes that the expression depends on."""
        return tuple((str(expr), frozenset(free_variables(expr))) for expr in self.exprs)

    @cached_property
    def used(self) -> frozenset[Var]:
        """Axes that the physical coordinates depend on."""
        return frozenset(axis for _, axes in self.parts for axis in axes)

    @cached_property
    def coupled_axes(self) -> frozenset[Var]:
        """Axes that the lane depends on, or that share an expression with another axis."""
        shared = [axes for _, axes in self.parts if len(axes) > 1]
        lane = self.parts[-1][1] if self.parts else frozenset()
        return lane.union(*shared)

    @cached_property
    def box(self) -> isl.Set:
        """All points of the operation."""
        return self.space.box([(0, extent) for extent in self.extents])

    @cached_property
    def relation(self) -> isl.Map:
        """Relation from points to physical coordinates.

        Raises:
            NotAffine: If a coordinate is not an affine function of the axes.
        """
        return index_relation(list(self.exprs), self.space).intersect_domain(self.box)

    def get_or_compute(self, key: object, find: Callable[[], _Found]) -> _Found:
        """Return the memoized answer for the key `key`, or compute it with `find`."""
        if key not in self._memo:
            self._memo[key] = find()
        found: _Found = self._memo[key]
        return found

    def next_lane(self, n_kept: int) -> isl.Map:
        """Return the map from each point to the points in the next lane of the same stick.

        Axes from `n_kept` on keep their values.
        """
        return self.get_or_compute(("next", n_kept), lambda: self._next_lane(n_kept))

    def _next_lane(self, n_kept: int) -> isl.Map:
        count = len(self.exprs)
        step = _step(count, count - 1)
        neighbours = self.relation.apply_range(step).apply_range(self.relation.reverse())
        for k in range(n_kept, len(self.axes)):
            neighbours = neighbours.equate(isl.dim_type.in_, k, _OUT, k)
        return neighbours

    def same_stick(self) -> isl.Map:
        """Return the relation between points whose elements are in one stick."""
        count = len(self.exprs)
        stick = self.relation.project_out(_OUT, count - 1, 1)
        return stick.apply_range(stick.reverse())

    def runs_along(self, axis: int) -> bool:
        """Return whether steps along `axis` go to the next lane, or to lane 0 of another stick."""
        return self.get_or_compute(("along", axis), lambda: self._runs_along_alone(axis))

    def _runs_along_alone(self, axis: int) -> bool:
        if not self.parts or self.axes[axis] not in self.parts[-1][1]:
            return False
        coupled = self.coupled_axes

        def answer() -> bool:
            sub = _restrict_to_axes(coupled, self)
            if sub is None:
                return self._runs_along(axis)
            return sub[0]._runs_along(sub[0].axes.index(self.axes[axis]))

        return _memoize_answer(("along", self.axes[axis].name, _key(coupled, self)), answer)

    def _runs_along(self, axis: int) -> bool:
        move = _step(len(self.axes), axis).intersect_domain(self.box).intersect_range(self.box)
        if move.is_empty():
            return False
        # Compare point by point: a relation between points would have twice as many dimensions.
        lane = _step(len(self.exprs), len(self.exprs) - 1)
        adjacent = move.apply_range(self.relation).intersect(self.relation.apply_range(lane))
        remaining = move.subtract_domain(adjacent.domain())
        if remaining.is_equal(move):
            return False
        # All other steps must lead to the first lane of a stick.
        starts = self.relation.intersect_range(
            isl.Set.universe(self.relation.range().get_space()).fix_val(
                _DIM, len(self.exprs) - 1, 0)
        ).domain()
        return bool(remaining.range().is_subset(starts))


def _restrict_to_axes(
    subset: AbstractSet[Var], *operands: LaneAddresses
) -> tuple[LaneAddresses, ...] | None:
    """Restrict operands to some axes, the others at 0; None without points or without lanes."""
    first = operands[0]
    if min(first.extents, default=1) < 1 or not all(operand.exprs for operand in operands):
        return None
    axes = tuple(axis for axis in first.axes if axis in subset)
    extents = tuple(n for axis, n in zip(first.axes, first.extents, strict=True) if axis in subset)
    zeros = {axis: Const(0, axis.dtype) for axis in first.axes if axis not in subset}
    restricted = []
    for operand in operands:
        *sticks, lane = (
            expr if used <= subset else substitute(expr, zeros)
            for expr, (_, used) in zip(operand.exprs, operand.parts, strict=True)
        )
        coords = (*(expr for expr in sticks if free_variables(expr)), lane)
        restricted.append(LaneAddresses(axes, extents, coords))
    return tuple(restricted)


def _key(subset: AbstractSet[Var], *operands: LaneAddresses) -> object:
    """Return a key that is equal for operands with the same coordinates in terms of some axes."""
    first = operands[0]
    names = [axis.name for axis in first.axes]
    if len(set(names)) < len(names):
        return first, operands
    axes = tuple(
        (axis.name, n) for axis, n in zip(first.axes, first.extents, strict=True) if axis in subset
    )
    texts = tuple(
        tuple(text for text, used in operand.parts if used & subset) + operand.parts[-1][:1]
        for operand in operands
    )
    return axes, texts


def _pair_of_few(
    find: Callable[[LaneAddresses, LaneAddresses, int], Pair | None], out: LaneAddresses,
    operand: LaneAddresses, n_kept: int
) -> Pair | None:
    """Search a pair of points in terms of few axes, with the others at 0.

    An axis that is a physical coordinate of its own in each operand is equal for neighbours in one
    stick and therefore left out.
    """
    subset = out.coupled_axes | operand.coupled_axes | (set(out.axes[:n_kept]) - out.used)
    count = sum(axis in subset for axis in out.axes[:n_kept])

    def answer() -> Pair | None:
        sub = _restrict_to_axes(subset, out, operand)
        return find(out, operand, n_kept) if sub is None else find(sub[0], sub[1], count)

    found = _memoize_answer((find, count, _key(subset, out, operand)), answer)
    return found and (_by_name(found[0], out), _by_name(found[1], out))


def _by_name(point: Mapping[Var, int], out: LaneAddresses) -> Mapping[Var, int]:
    """Return a point in terms of the axes of `out`, matching foreign axes by name."""
    values = {axis.name: value for axis, value in point.items()}
    return {axis: point.get(axis, values.get(axis.name, 0)) for axis in out.axes}


_answers: LRUCache[object, Any] = LRUCache("poly.lane_accesses")
_NEW: Any = object()


def _memoize_answer(question: object, find: Callable[[], _Found]) -> _Found:
    """Return the answer to a question, which may stem from other operands, or compute it."""
    found: _Found = _answers.get(question, _NEW)
    return _answers.keep(question, find()) if found is _NEW else found


def _step(count: int, axis: int) -> isl.Map:
    """Return the map `{ [x] -> [y] }` that increments one coordinate and keeps the others."""
    space = isl.Space.alloc(CONTEXT, 0, count, count)
    step = isl.Map.universe(space)
    for k in range(count):
        if k != axis:
            step = step.equate(isl.dim_type.in_, k, _OUT, k)
    local = isl.LocalSpace.from_space(step.get_space())
    grown = isl.Constraint.alloc_equality(local)
    grown = grown.set_coefficient_val(isl.dim_type.in_, axis, 1)
    grown = grown.set_coefficient_val(_OUT, axis, -1).set_constant_val(1)
    return step.add_constraint(grown)


def not_broadcast(out: LaneAddresses, operand: LaneAddresses, n_kept: int) -> Pair | None:
    """Return two points in adjacent lanes of the result that read different elements, or None."""
    key = "broadcast", operand, n_kept
    return out.get_or_compute(key, lambda: _pair_of_few(_not_broadcast, out, operand, n_kept))


def _not_broadcast(out: LaneAddresses, operand: LaneAddresses, n_kept: int) -> Pair | None:
    moves = out.next_lane(n_kept)
    same_element = operand.relation.apply_range(operand.relation.reverse())
    return _first(moves.subtract(same_element), out)


def not_in_one_lane(operand: LaneAddresses) -> Pair | None:
    """Return two points whose elements are in different lanes, or None."""
    return operand.get_or_compute("one lane", lambda: _not_in_one_lane(operand))


def _not_in_one_lane(operand: LaneAddresses) -> Pair | None:
    lane = index_relation([operand.exprs[-1]], operand.space).intersect_domain(operand.box)
    all_pairs = isl.Map.from_domain_and_range(operand.box, operand.box)
    return _first(all_pairs.subtract(lane.apply_range(lane.reverse())), operand)


def has_lanes(out: LaneAddresses, n_kept: int) -> bool:
    """Return whether any two points are in adjacent lanes of one stick."""
    return not out.next_lane(n_kept).is_empty()


def not_consecutive(out: LaneAddresses, operand: LaneAddresses, n_kept: int) -> Pair | None:
    """Return two points that prove that an operand's lanes differ from the result's, or None.

    Either the points are neighbours in the result but not in the operand, or the lane offsets
    between operand and result differ at the two points.
    """
    key = "consecutive", operand, n_kept
    return out.get_or_compute(key, lambda: _pair_of_few(_not_consecutive, out, operand, n_kept))


def _not_consecutive(out: LaneAddresses, operand: LaneAddresses, n_kept: int) -> Pair | None:
    count = len(operand.exprs)
    lane = _step(count, count - 1)
    adjacent = operand.relation.apply_range(lane).apply_range(operand.relation.reverse())
    violation = _first(out.next_lane(n_kept).subtract(adjacent), out)
    if violation is not None:
        return violation
    shift = index_relation([operand.exprs[-1] - out.exprs[-1]], out.space)
    shift = shift.intersect_domain(out.box)
    return _first(
        isl.Map.from_domain_and_range(out.box, out.box).subtract(
            shift.apply_range(shift.reverse())), out,
    )


def find_unaligned_point(
    out: LaneAddresses, offset: Expr, multiple: int
) -> Mapping[Var, int] | None:
    """Return a point in lane 0 of the result where `offset` is not a multiple, or None."""
    subset = out.coupled_axes | set(free_variables(offset))

    def answer() -> Mapping[Var, int] | None:
        sub = _restrict_to_axes(subset, out)
        return _find_unaligned(sub[0] if sub else out, offset, multiple)

    found = _memoize_answer(("aligned", multiple, str(offset), _key(subset, out)), answer)
    return found and _by_name(found, out)


def _find_unaligned(
    out: LaneAddresses, offset: Expr, multiple: int
) -> Mapping[Var, int] | None:
    first = out.relation.intersect_range(
        isl.Set.universe(out.relation.range().get_space()).fix_val(_DIM, len(out.exprs) - 1, 0)
    ).domain()
    remainders = index_relation([offset % multiple], out.space).intersect_domain(first)
    zero = isl.Set.universe(remainders.range().get_space()).fix_val(_DIM, 0, 0)
    unaligned = first.subtract(remainders.intersect_range(zero).domain())
    return None if unaligned.is_empty() else first_point(unaligned, out.space)


def find_stick_conflict(out: LaneAddresses) -> Pair | None:
    """Return two elements of one stick, or a point outside lane 0 twice, or None."""
    return out.get_or_compute("alone", lambda: _not_alone(out))


def _not_alone(out: LaneAddresses) -> Pair | None:
    neighbours = out.same_stick().subtract(out.relation.apply_range(out.relation.reverse()))
    found = _first(neighbours, out)
    if found is not None:
        return found
    lane = index_relation([out.exprs[-1]], out.space).intersect_domain(out.box)
    zero = isl.Set.universe(lane.range().get_space()).fix_val(_DIM, 0, 0)
    bad = out.box.subtract(lane.intersect_range(zero).domain())
    return None if bad.is_empty() else (first_point(bad, out.space), first_point(bad, out.space))


def has_one_element_per_stick(operand: LaneAddresses) -> bool:
    """Return whether every stick has at most one element."""

    def answer() -> bool:
        (sub,) = _restrict_to_axes(operand.used, operand) or (operand,)
        same_element = sub.relation.apply_range(sub.relation.reverse())
        return bool(sub.same_stick().is_subset(same_element))

    return operand.get_or_compute(
        "lone", lambda: _memoize_answer(("lone", _key(operand.used, operand)), answer)
    )


def _first(pairs: isl.Map, out: LaneAddresses) -> Pair | None:
    if pairs.is_empty():
        return None
    second = tuple(Var(axis.name) for axis in out.axes)
    found = first_point(pairs.wrap().flatten(), Space((*out.axes, *second)))
    return (
        {axis: found[axis] for axis in out.axes},
        {axis: found[other] for axis, other in zip(out.axes, second, strict=True)},
    )
