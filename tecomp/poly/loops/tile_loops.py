"""Tiled loops with full tiles separated from partial tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import TypeAlias

import islpy as isl

from tecomp.ir.nodes.expr import (
    BinOp,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import For, ForKind, IfThenElse, Stmt, seq
from tecomp.poly.loops.box_loops import Body
from tecomp.poly.loops.regions import first_dims
from tecomp.poly.sets.from_isl import set_to_condition, to_expr
from tecomp.poly.sets.isl_context import cached_set_question, within_budget
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.to_isl import Space

_DIM, _DIV, _IN = isl.dim_type.set, isl.dim_type.div, isl.dim_type.in_


def full_tiles(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set | None:
    """Return the part of `points` in which every tiled dimension has its full extent.

    Args:
        points: Values of the loops, with the first dimension outermost.
        tiled: Dimension and full extent of each tile loop.

    Returns:
        The part; None if it is everything, is empty, or is not a simple range of the other loops,
        or if isl takes too long.
    """
    return within_budget(partial(_full_tiles, points, tuple(tiled))) if tiled else None


@cached_set_question
def _full_tiles(points: isl.Set, tiled: tuple[tuple[int, int], ...]) -> isl.Set | None:
    if points.involves_locals():
        # Declared divisors of sizes are facts about parameters, not gaps between points.
        points = points.gist_params(points.params())
    last = max(dim for dim, _ in tiled) + 1
    inside = first_dims(points, last)
    if _all_tiles(inside, tiled).is_subset(inside):
        return None
    is_convex = inside.n_basic_set() == 1 and not inside.involves_locals()
    full_prefix = _with_corners(inside, tiled) if is_convex else _without_gaps(inside, tiled)
    full = points.intersect(full_prefix.add_dims(_DIM, points.dim(_DIM) - last)).coalesce()
    if full.is_empty() or points.is_subset(full):
        return None
    # Alternating full tiles (tiles of 5 over places in blocks of 4) do not pay off: each pattern
    # would need a loop of its own.
    return None if full.n_basic_set() > 1 or full.involves_locals() else full


def _with_corners(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """Return tiles with all corners in `points`; as `points` are convex, these tiles are full."""
    result = points
    for dim, _ in tiled:
        result = project_out_dim(result, dim)
    for corner in product(*([0, extent - 1] for _, extent in tiled)):
        projected = points
        for (dim, _), offset in zip(tiled, corner, strict=True):
            projected = project_out_dim(projected.fix_val(_DIM, dim, offset), dim)
        result = result.intersect(projected)
    return result


def _all_tiles(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """Return all points of each tile that intersects `points`."""
    tiles = points
    for dim, extent in tiled:
        tiles = project_out_dim(tiles, dim).lower_bound_val(_DIM, dim, 0)
        tiles = tiles.upper_bound_val(_DIM, dim, extent - 1)
    return tiles


def _without_gaps(points: isl.Set, tiled: Sequence[tuple[int, int]]) -> isl.Set:
    """Return the tiles of which no point is missing from `points`."""
    tiles = _all_tiles(points, tiled)
    partial = tiles.subtract(points)
    for dim, _ in tiled:
        partial = project_out_dim(partial, dim)
    return tiles.subtract(partial)


def project_out_dim(points: isl.Set, dim: int) -> isl.Set:
    """Make one dimension of `points` unconstrained."""
    return points.project_out(_DIM, dim, 1).insert_dims(_DIM, dim, 1)



@dataclass(frozen=True)
class _Line:
    """Dimensions that together count through `length` points.

    Attributes:
        steps: Step of each dimension within the points, outermost first.
        length: Number of points as a function of the parameters.
        most: Upper bound of the number of values of the first dimension; None if unknown.
        is_tiled: Whether full tiles, one for each value of the first dimension, are separated.
    """

    steps: Mapping[int, int]
    length: isl.Aff
    most: int | None
    is_tiled: bool = False

    @property
    def first(self) -> int:
        """Dimension with the greatest step, the outermost one."""
        return next(iter(self.steps))

    def full(self) -> isl.Set:
        """Return the points whose value of the first dimension belongs to a full tile."""
        step = self.steps[self.first]
        return _holds(self.length.add_constant_val(-step).add_coefficient_val(
            _IN, self.first, -step))

    def cut(self) -> isl.Set:
        """Return the points whose value of the first dimension belongs to the partial tile."""
        step = self.steps[self.first]
        remaining = self.length.add_coefficient_val(_IN, self.first, -step)
        started = _holds(remaining.add_constant_val(-1))
        return started.intersect(_holds(remaining.neg().add_constant_val(step - 1)))


@dataclass(frozen=True)
class Tiles:
    """Set of points that is a product of lines.

    Attributes:
        points: All points.
        fixed: Value of each dimension that has a single value.
        extents: Constant upper bound of the extent of other dimensions, where it is known.
        lines: Line that each dimension belongs to.
        guard: Condition on the parameters under which the set is nonempty.
    """

    points: isl.Set
    fixed: Mapping[int, int]
    extents: Mapping[int, int]
    lines: Mapping[int, _Line]
    guard: isl.Set


@cached_set_question
def tiles_of(points: isl.Set, isolated: isl.Set | None, context: isl.Set | None) -> Tiles | None:
    """Decompose `points` into lines; None if that is not possible.

    Args:
        points: Points to visit.
        isolated: Points to separate into loops of their own; they must be full tiles.
        context: Facts about the parameters, as a set of the parameters only.
    """
    simple = points if context is None else points.gist_params(context)
    if simple.n_basic_set() != 1:
        return None
    # isl may detect only here that the set is empty.
    pieces = simple.remove_redundancies().get_basic_sets()
    if not pieces or pieces[0].dim(_DIV):
        return None
    basic = pieces[0]
    found = _read(basic)
    if found is None:
        return None
    fixed, extents, lines, guards = found
    if any(k not in fixed and k not in extents and k not in lines for k in range(basic.dim(_DIM))):
        return None
    guard = isl.Set.universe(points.get_space().params())
    for aff in guards:
        guard = guard.intersect(_holds(aff).params())
    tiles = Tiles(points, fixed, extents, lines, guard)
    return tiles if isolated is None else _with_full_tiles(tiles, isolated, context)


_Read: TypeAlias = "tuple[dict[int, int], dict[int, int], dict[int, _Line], list[isl.Aff]]"


def _read(basic: isl.BasicSet) -> _Read | None:
    """Return fixed dimensions, extents, lines and guards of the constraints; None for others."""
    fixed: dict[int, int] = {}
    extents: dict[int, int] = {}
    uppers: list[tuple[dict[int, int], isl.Aff]] = []
    guards: list[isl.Aff] = []
    starts: set[int] = set()
    for constraint in basic.get_constraints():
        factors, bound = _parts(constraint.get_aff(), basic.dim(_DIM))
        number = python_int(bound.get_constant_val()) if bound.is_cst() else None
        match [*factors.items()], constraint.is_equality():
            case [(k, 1 | -1 as factor)], True if number is not None:
                fixed[k] = -number * factor
            case _, True:
                return None
            case [], _:
                guards.append(bound)
            case [(k, 1)], _ if number == 0:
                starts.add(k)
            case [(k, -1)], _ if number is not None:
                extents[k] = number + 1
            case outer, _ if all(factor < 0 for _, factor in outer):
                uppers.append(({k: -factor for k, factor in outer}, bound))
            case _:
                return None
    inside = [k for coeffs, _ in uppers for k in coeffs]
    if len(set(inside)) < len(inside) or not starts >= {*extents, *inside}:
        return None
    lines: dict[int, _Line] = {}
    for coeffs, bound in uppers:
        line = _Line(coeffs, bound.add_constant_val(1), extents.get(min(coeffs)))
        lines.update(dict.fromkeys(coeffs, line))
    return fixed, extents, lines, guards


def _parts(aff: isl.Aff, count: int) -> tuple[dict[int, int], isl.Aff]:
    """Return the coefficients of the dimensions, outermost first, and the rest of the sum."""
    factors: dict[int, int] = {}
    for k in range(count):
        if factor := python_int(aff.get_coefficient_val(_IN, k)):
            factors[k] = factor
            aff = aff.set_coefficient_val(_IN, k, 0)
    return factors, aff


def _with_full_tiles(
    tiles: Tiles, isolated: isl.Set, context: isl.Set | None
) -> Tiles | None:
    """Mark the lines whose full tiles are isolated; None if the isolated points are different."""
    known = isolated if context is None else isolated.intersect_params(context)
    expected = tiles.points if context is None else tiles.points.intersect_params(context)
    marked = {}
    for k, line in tiles.lines.items():
        if k == line.first and _is_cut_evenly(line, tiles.extents) and known.is_subset(line.full()):
            expected = expected.intersect(line.full())
            marked.update(dict.fromkeys(line.steps, replace(line, is_tiled=True)))
    if not marked or not expected.is_equal(known):
        return None
    return replace(tiles, lines={**tiles.lines, **marked})


def _is_cut_evenly(line: _Line, extents: Mapping[int, int]) -> bool:
    """Return whether the step of each dimension equals the range of the next dimension."""
    steps = [*line.steps.items()]
    if len(steps) < 2 or steps[-1][1] != 1:
        return False
    return all(
        step == inner * extents.get(k, 0)
        for (_, step), (k, inner) in pairwise(steps)
    )


def _holds(aff: isl.Aff) -> isl.Set:
    """Return the points where a function is nonnegative."""
    universe = isl.BasicSet.universe(aff.get_domain_space())
    constraint = isl.Constraint.inequality_from_aff(aff)
    return isl.Set.from_basic_set(universe.add_constraint(constraint))


def tile_loops(
    tiles: Tiles,
    space: Space,
    body: Body,
    kinds: Mapping[Var, ForKind],
    threads: Mapping[Var, str],
    context: isl.Set | None,
) -> Stmt:
    """Return the loops over `tiles`.

    Args:
        tiles: Result of `tiles_of`.
        space: Space of the points; each loop variable is named after its dimension.
        body: Function from the value of each dimension and the set of points of this copy of the
            statement to the innermost statement.
        kinds: Kind of the loop of each dimension. Default: serial.
        threads: Grid axis that the loop of a dimension is bound to. Default: none.
        context: Facts about the parameters, as a set of the parameters only.
    """
    remaining = {line.first: line.length for line in tiles.lines.values()}
    make = _Loops(tiles, space, body, kinds, threads, context)
    return make.guarded(tiles.guard, make.loops((), remaining, tiles.points, is_full=True))


_Rests: TypeAlias = "Mapping[int, isl.Aff | None]"
"""Remaining length of each line, by its first dimension, for the values of the enclosing loops;
None where inner dimensions have their full extent."""


@dataclass(frozen=True)
class _Loops:
    """Builder of loops from the outermost inwards; the fields are the arguments of `tile_loops`."""

    tiles: Tiles
    space: Space
    body: Body
    kinds: Mapping[Var, ForKind]
    threads: Mapping[Var, str]
    context: isl.Set | None

    def loops(
        self, values: tuple[Expr, ...], remaining: _Rests, points: isl.Set, *, is_full: bool
    ) -> Stmt:
        """Return the loops over `points` inside the loops whose `values` are given.

        `is_full` specifies whether all enclosing tiles are full.
        """
        k = len(values)
        if k == len(self.space.dims):
            return self.body(dict(zip(self.space.dims, values, strict=True)), points)
        if k in self.tiles.fixed:
            fixed = index_value(self.tiles.fixed[k])
            return self.loops((*values, fixed), remaining, points, is_full=is_full)
        line = self.tiles.lines.get(k)
        if line is not None and line.is_tiled and is_full and k == line.first:
            return self._split(line, values, remaining, points)
        extent = self._extent(k, values, remaining, points)
        rest = None if line is None else remaining[line.first]
        if line is not None and rest is not None:
            left = rest.add_coefficient_val(_IN, k, -line.steps[k])
            remaining = {**remaining, line.first: left}
        return self._loop(extent, values, lambda inner: self.loops(
            inner, remaining, points, is_full=is_full))

    def _split(
        self, line: _Line, values: tuple[Expr, ...], remaining: _Rests, points: isl.Set
    ) -> Stmt:
        """Return the loops over full tiles, followed by the loops of the partial tile."""
        step, first = line.steps[line.first], line.first
        n_full = line.length.scale_down_val(step).floor()
        count = self._least(line.most, self._expr(n_full, values))
        full = self._loop(count, values, lambda inner: self.loops(
            inner, {**remaining, first: None}, points.intersect(line.full()), is_full=True))
        tail = line.length.mod_val(step)
        cut = self.loops(
            (*values, self._expr(n_full, values)), {**remaining, first: tail},
            points.intersect(line.cut()), is_full=False)
        if first + 1 not in line.steps:
            cut = IfThenElse(Compare(CmpOp.GT, self._expr(tail, values), Const(0)), cut)
        is_begun = _holds(line.length)
        if line.most is not None:
            is_begun = is_begun.intersect(_holds(
                line.length.neg().add_constant_val(line.most * step - 1)))
        return seq(full, self.guarded(is_begun.params(), cut))

    def _extent(
        self, k: int, values: tuple[Expr, ...], remaining: _Rests, points: isl.Set
    ) -> Expr:
        """Return the extent of a dimension for the values of the enclosing loops."""
        cap, line = self.tiles.extents.get(k), self.tiles.lines.get(k)
        rest = None if line is None else remaining[line.first]
        if line is None or rest is None:
            return index_value(self.tiles.extents[k])
        step = line.steps[k]
        extent = self._expr(rest.add_constant_val(step - 1).scale_down_val(step), values)
        if cap is None:
            return extent
        is_enough = self._known(points).is_subset(_holds(rest.neg().add_constant_val(cap * step)))
        return extent if is_enough else self._least(cap, extent)

    def _loop(
        self,
        extent: Expr,
        values: tuple[Expr, ...],
        inner: Callable[[tuple[Expr, ...]], Stmt],
    ) -> Stmt:
        if is_const(extent, 1):
            return inner((*values, Const(0)))
        dim = self.space.dims[len(values)]
        var = Var(dim.name)
        kind, thread = self.kinds.get(dim, ForKind.SERIAL), self.threads.get(dim, "")
        return For(var, Const(0), extent, kind, inner((*values, var)), thread)

    def _expr(self, value: isl.Aff, values: tuple[Expr, ...]) -> Expr:
        """Return a function, rounded down, for the values of the enclosing loops."""
        names = {f"d{k}": v for k, v in enumerate(values)}
        return index_value(to_expr(value, {**self.space.names, **names}))

    def _least(self, cap: int | None, extent: Expr) -> Expr:
        return extent if cap is None else binary(BinOp.MIN, Const(cap), extent)

    def _known(self, points: isl.Set) -> isl.Set:
        return points if self.context is None else points.intersect_params(self.context)

    def guarded(self, where: isl.Set, statement: Stmt) -> Stmt:
        """Guard `statement` by the condition that the parameters are in `where`."""
        if self.context is not None:
            where = where.gist(self.context)
        condition = set_to_condition(where.from_params(), self.space.names)
        return statement if is_const(condition, 1) else IfThenElse(condition, statement)
