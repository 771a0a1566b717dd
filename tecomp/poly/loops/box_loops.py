"""Bounding boxes of sets and loops over boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import islpy as isl

from tecomp.ir.nodes.expr import BinOp, Const, Expr, Var, binary, index_value, is_const
from tecomp.ir.nodes.stmt import Extent, For, ForKind, Stmt
from tecomp.poly.loops.regions import (
    MAX_CASES,
    LoopScope,
    at_least,
    line_of,
    of_iterations,
    of_sizes,
    point_at,
)
from tecomp.poly.sets.from_isl import to_expr
from tecomp.poly.sets.isl_context import (
    cached_question,
    cached_set_question,
    within_budget,
)
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.to_isl import Space

_PARAM, _DIM, _DIV = isl.dim_type.param, isl.dim_type.set, isl.dim_type.div
_MAX_UPPER_BOUNDS = 2
"""Maximum number of upper bounds of a loop; isl sorts more of them and removes redundant ones."""

Body: TypeAlias = Callable[[Mapping[Var, Expr], isl.Set], Stmt]
Ends: TypeAlias = list[tuple[Expr, Expr]]


def box_loops(
    ends: Ends,
    points: isl.Set,
    space: Space,
    body: Body,
    kinds: Mapping[Var, ForKind],
    threads: Mapping[Var, str],
) -> Stmt:
    """Return the loops over a box; a dimension of extent 1 gets no loop unless bound to a thread.

    Args:
        ends: First value and extent of each dimension, from `ends_of`.
        points: Points of the box.
        space: Space of `points`; each loop variable is named after its dimension.
        body: Function from the value of each dimension and `points` to the innermost statement.
        kinds: Kind of the loop of each dimension. Default: serial.
        threads: Grid axis that the loop of a dimension is bound to. Default: none.
    """
    loops: list[tuple[Var, Var, Expr, Expr]] = []
    values: dict[Var, Expr] = {}
    for dim, (low, extent) in zip(space.dims, ends, strict=True):
        if is_const(extent, 1) and (is_const(low, 0) or dim not in threads):
            values[dim] = low
            continue
        values[dim] = var = Var(dim.name)
        loops.append((dim, var, low, extent))
    statement = body(values, points)
    for dim, var, low, extent in reversed(loops):
        kind = kinds.get(dim, ForKind.SERIAL)
        statement = For(var, low, extent, kind, statement, threads.get(dim, ""))
    return statement


def ends_of(points: isl.Set, space: Space, context: isl.Set | None) -> Ends | None:
    """Return first value and extent of each dimension if `points` is a box, otherwise None.

    Args:
        points: Points of `space`.
        space: Space that gives the variables of the parameters.
        context: Facts about the parameters, as a set of the parameters only.
    """
    sides = _sides_of(points, context)
    return None if sides is None else [_first_and_extent(*side, space) for side in sides]


_End: TypeAlias = "int | isl.Aff"
_Side: TypeAlias = "tuple[_End, list[_End]]"
"""First value in a dimension, and extents whose minimum applies."""


@cached_question
@cached_set_question
def _sides_of(points: isl.Set, context: isl.Set | None) -> list[_Side] | None:
    """Return the result of `ends_of` in terms of isl's parameters."""
    simple = points if context is None else points.gist_params(context)
    if simple.involves_dims(_PARAM, 0, simple.dim(_PARAM)):
        return _sides_by_parameters(simple)
    if not simple.is_box() or not simple.is_bounded():
        return None
    box: list[_Side] = []
    for k in range(simple.dim(_DIM)):
        low, high = simple.dim_min_val(k), simple.dim_max_val(k)
        if not low.is_int() or not high.is_int():
            return None
        first = python_int(low)
        box.append((first, [python_int(high) - first + 1]))
    return box


def _sides_by_parameters(points: isl.Set) -> list[_Side] | None:
    """Return the ends of a box from its constraints, each of which must involve one dimension."""
    # isl detects that a set is empty only when it searches for redundant constraints.
    pieces = points.remove_redundancies().get_basic_sets() if points.n_basic_set() == 1 else []
    if len(pieces) != 1:
        return None
    (basic,) = pieces
    count = basic.dim(_DIM)
    if basic.dim(_DIV):
        return None
    lows: list[list[isl.Aff]] = [[] for _ in range(count)]
    highs: list[list[isl.Aff]] = [[] for _ in range(count)]
    for constraint in basic.get_constraints():
        about = [k for k in range(count) if constraint.involves_dims(_DIM, k, 1)]
        if len(about) != 1:
            return None
        (k,) = about
        aff = constraint.get_aff()
        factor = python_int(aff.get_coefficient_val(isl.dim_type.in_, k))
        if abs(factor) != 1:
            return None
        bound = aff.set_coefficient_val(isl.dim_type.in_, k, 0)
        if factor > 0 or constraint.is_equality():
            lows[k].append(bound.neg() if factor > 0 else bound)
        if factor < 0 or constraint.is_equality():
            highs[k].append(bound if factor < 0 else bound.neg())
    if any(len(low) != 1 or not 1 <= len(high) <= _MAX_UPPER_BOUNDS
           for low, high in zip(lows, highs, strict=True)):
        return None
    return [
        (low, [high.sub(low).add_constant_val(1) for high in uppers])
        for (low,), uppers in zip(lows, highs, strict=True)
    ]


def _first_and_extent(low: _End, counts: list[_End], space: Space) -> tuple[Expr, Expr]:
    extents = [_end_expr(count, space) for count in counts]
    extents.sort(key=lambda extent: not isinstance(extent, Const))
    extent = extents[0]
    for other in extents[1:]:
        extent = binary(BinOp.MIN, extent, other)
    return _end_expr(low, space), extent


def _end_expr(end: _End, space: Space) -> Expr:
    return Const(end) if isinstance(end, int) else index_value(to_expr(end, space.names))



def bounding_box(
    points: isl.Set, unclipped: isl.Set, scope: LoopScope, shape: Sequence[Extent]
) -> tuple[tuple[Expr, Extent], ...]:
    """Return (start, extent) in each dimension of a box that contains `points` in all iterations.

    The starts are affine in the enclosing loops; the extents depend on the sizes only. If a start
    would need a case distinction because the region meets the edge of the tensor, the start is
    computed from `unclipped`, the region before it was clipped at the edge, or is a case that is
    never greater than the others. If isl takes too long, the whole axis is returned.

    Args:
        points: Region, which depends on the loops of `scope`.
        unclipped: Region without clipping at the edges of the tensor.
        scope: Enclosing loops.
        shape: Extents of the tensor.
    """
    known = points.intersect_params(scope.context)
    box: list[tuple[Expr, Extent]] = []

    def side(k: int) -> tuple[Expr, Extent] | None:
        return (
            behind_digits(_at_single(known, box, scope), k)
            or _interval(known, k, scope)
            # The known region may itself be a case distinction.
            or _interval(points, k, scope)
            or _interval(unclipped.intersect_params(scope.context), k, scope)
        )

    def behind_digits(single: isl.Set, k: int) -> tuple[Expr, Extent] | None:
        # Project first: when isl simplifies a set, it may drop conditions that follow from others,
        # and with them the relation between the dimensions.
        return None if single is known else _interval(line_of(single, k), 0, scope)

    def cases(k: int, full: Extent) -> tuple[Expr, Extent]:
        single = _at_single(known, box, scope)
        if not line_of(single, k).is_bounded():
            # Test this first: existential variables with large coefficients take isl forever.
            return Const(0), full
        # Ends that follow from the context would otherwise become cases, too.
        short = single.compute_divs().coalesce().gist_params(scope.context)
        return _around_cases(short, k, scope, full)

    for k, full in enumerate(shape):
        box.append(
            within_budget(partial(side, k)) or within_budget(partial(cases, k, full))
            or (Const(0), full)
        )
    return tuple(box)


def _at_single(points: isl.Set, box: Sequence[tuple[Expr, Extent]], scope: LoopScope) -> isl.Set:
    """Restrict `points` to the value of each dimension with extent 1.

    Digits of a fused loop follow from earlier digits; isl would otherwise distinguish their values.
    """
    for k, (start, extent) in enumerate(box):
        if isinstance(extent, int) and extent == 1 and not isinstance(start, Const):
            fixed = point_at([start], scope.params)
            after = points.dim(_DIM) - k - 1
            points = points.intersect(fixed.insert_dims(_DIM, 0, k).insert_dims(_DIM, k + 1, after))
    return points


def corner(points: isl.Set, scope: LoopScope) -> list[Expr]:
    """Return the least value in each dimension, with case distinctions where necessary."""
    known = points.intersect_params(scope.context)
    return [_least(known, points, k, scope) for k in range(points.dim(_DIM))]


def _least(known: isl.Set, points: isl.Set, dim: int, scope: LoopScope) -> Expr:
    if (found := _interval(known, dim, scope) or _interval(points, dim, scope)) is not None:
        return found[0]
    line = line_of(known, dim)
    if not line.dim_is_bounded(_DIM, 0):
        return Const(0)
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    return to_expr(low, scope.space(()).names)


def _around_cases(
    points: isl.Set, dim: int, scope: LoopScope, full: Extent
) -> tuple[Expr, Extent]:
    """Return an interval that starts at one of the cases of a least value with a case distinction.

    The result is the narrowest of the intervals that start at a case, of the interval of all values
    over all iterations, and of the whole axis.
    """
    if (found := _interval(points, dim, scope)) is not None:
        return found
    line = line_of(points, dim).intersect_params(scope.context)
    best: tuple[Expr, Extent] = (Const(0), full)
    if not line.is_bounded():
        return best
    anywhere = line.project_out(_PARAM, 0, line.dim(_PARAM))
    first, last = anywhere.dim_min_val(0), anywhere.dim_max_val(0)
    width = None
    if first.is_int() and last.is_int():
        width = python_int(last.sub(first)) + 1
        if not isinstance(full, int) or width < full:
            best = (Const(python_int(first)), width)
    for start in _starts(line, scope):
        found = _from(start, line, scope)
        if found is not None and isinstance(found[1], int) and (width is None or found[1] < width):
            best, width = found, found[1]
    return best


def windows_around(
    points: isl.Set, dim: int, loop: Var, scope: LoopScope
) -> list[tuple[Expr, int]]:
    """Return intervals that contain `points` in all iterations, with no later point before them.

    All elements before such an interval are dead. Only intervals of constant extent are returned,
    the narrowest first.
    """
    line = line_of(points, dim).intersect_params(scope.context)
    if not line.is_bounded():
        return []
    later = of_iterations(line, loop, scope, "other >= now")
    minimum = later.dim_min(0).gist_params(scope.context).coalesce()
    found = (_from(start, line, scope) for start in [*_starts(later, scope), minimum])
    numbers = [(pair[0], pair[1]) for pair in found if pair and isinstance(pair[1], int)]
    return sorted(numbers, key=lambda interval: interval[1])


def _starts(line: isl.Set, scope: LoopScope) -> list[isl.PwAff]:
    """Return lower bounds of all values of a line, derived from the cases of its least value.

    The result has the cases that are lower bounds on their own. If there is none, as where all
    cases are constants, it has the lower bounds in the constraints. If there is none either, it has
    the minima of two cases that are lower bounds. Constants are excluded.
    """
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    # Outside its own piece a case may be fractional.
    cases = [case.floor().to_pw_aff() for _, case in low.get_pieces()[:MAX_CASES]]
    singles = [case for case in cases if not case.is_cst() and _is_before(case, line)]
    if singles := singles or _bounds(line):
        return singles
    pairs = (a.min(b) for k, a in enumerate(cases) for b in cases[:k])
    return [pair for pair in pairs if not pair.is_cst() and _is_before(pair, line)]


def _bounds(line: isl.Set) -> list[isl.PwAff]:
    """Return the lower bounds of the values that depend on the enclosing loops."""
    parts = line.compute_divs().get_basic_sets()
    found = []
    for constraint in parts[0].get_constraints() if len(parts) == 1 else ():
        if constraint.is_lower_bound(_DIM, 0) and not constraint.is_equality():
            bound = constraint.get_bound(_DIM, 0).ceil().to_pw_aff()
            found.append(bound.project_domain_on_params())
    return [bound for bound in found if not bound.is_cst()]


def _is_before(start: isl.PwAff, line: isl.Set) -> bool:
    """Return whether no value is less than `start`."""
    start_set: isl.Set = isl.Set.from_pw_aff(start).align_params(line.get_space())
    return bool(line.is_subset(at_least(start_set)))


@cached_question
def _interval(points: isl.Set, dim: int, scope: LoopScope) -> tuple[Expr, Extent] | None:
    found = _ends(points, dim, scope.context)
    return None if found is None else _box_axis(*found, scope)


_Ends: TypeAlias = "tuple[isl.PwAff | int, isl.Set | int]"
"""First value, and the number of values or the set of all such numbers."""


@cached_set_question
def _ends(points: isl.Set, dim: int, context: isl.Set) -> _Ends | None:
    """Return the interval of all values in a dimension if its start has a single piece."""
    line = line_of(points, dim)
    if line.is_empty():
        return 0, 0
    # `dim_is_bounded` is wrong for sets with remainders such as `d0 % 32 == p0`.
    if not line.is_bounded():
        return None
    if not line.involves_dims(_PARAM, 0, line.dim(_PARAM)):
        first, last = (python_int(end) for end in (line.dim_min_val(0), line.dim_max_val(0)))
        return first, last - first + 1
    low = line.dim_min(0).gist_params(context).coalesce()
    if low.n_piece() != 1:
        return None
    start = low.as_aff() if low.isa_aff() else low.get_pieces()[0][1]
    return _ends_from(start.to_pw_aff(), line, context)


def _from(start: isl.PwAff, line: isl.Set, scope: LoopScope) -> tuple[Expr, Extent] | None:
    """Return `start` and an extent that contains all values; no value may be less than `start`."""
    return _box_axis(*_ends_from(start, line, scope.context), scope)


def _ends_from(start: isl.PwAff, line: isl.Set, context: isl.Set) -> _Ends:
    """Return the result of `_from` in terms of isl's parameters."""
    width = line.dim_max(0).sub(start).add_constant_val(1)
    if width.n_piece() == 1 and (only := width.get_pieces()[0][1]).is_cst():
        return start, python_int(only.get_constant_val())
    widths = isl.Set.from_pw_aff(width).intersect_params(context)
    anywhere = widths.project_out(_PARAM, 0, widths.dim(_PARAM))
    upper = anywhere.dim_max_val(0)
    # A constant extent is preferred to a tighter bound that depends on sizes.
    return start, python_int(upper) if upper.is_int() else widths


def _box_axis(
    start: isl.PwAff | int, widths: isl.Set | int, scope: LoopScope
) -> tuple[Expr, Extent] | None:
    """Return start and extent as expressions, or None if the extent has no upper bound."""
    names = scope.space(()).names
    extent = widths if isinstance(widths, int) else _greatest(of_sizes(widths, scope), names)
    if extent is None:
        return None
    return Const(start) if isinstance(start, int) else to_expr(start, names), extent


def _greatest(widths: isl.Set, names: Mapping[str, Expr]) -> Extent | None:
    """Return the greatest element in terms of the sizes, or None if there is none."""
    if not widths.is_bounded():
        return None
    expr = to_expr(widths.dim_max(0).coalesce(), names)
    return int(expr.value) if isinstance(expr, Const) else expr
