"""Hulls: the boxes around regions, with starts that loops can compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import islpy as isl

from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.language.stmt import Extent
from tecomp.poly.loops.regions import MOST_CASES, line_of, of_iterations, of_sizes
from tecomp.poly.loops.scopes import Scope, point_at
from tecomp.poly.sets.context import CONTEXT, asked_of_sets, asked_once, within_share
from tecomp.poly.sets.express import to_expr
from tecomp.poly.sets.numbers import python_int

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param


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
            behind_digits(_at_single(known, box, scope), k)
            or _interval(known, k, scope)
            # What is known may itself be a case distinction.
            or _interval(points, k, scope)
            or _interval(unclipped.intersect_params(scope.context), k, scope)
        )

    def behind_digits(single: isl.Set, k: int) -> tuple[Expr, Extent] | None:
        # The line is made first: a set loses what follows from its other conditions when isl
        # tidies it up, and with that how one value follows from another.
        return None if single is known else _interval(line_of(single, k), 0, scope)

    def cases(k: int, whole: Extent) -> tuple[Expr, Extent]:
        single = _at_single(known, box, scope)
        if not line_of(single, k).is_bounded():
            # Before anything else is asked: unknowns with large coefficients take isl forever.
            return Const(0), whole
        # Ends that follow from what is known would be cases, too.
        short = single.compute_divs().coalesce().gist_params(scope.context)
        return _around_cases(short, k, scope, whole)

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
            here = point_at([start], scope.params)
            after = points.dim(_DIM) - k - 1
            points = points.intersect(here.insert_dims(_DIM, 0, k).insert_dims(_DIM, k + 1, after))
    return points


def corner(points: isl.Set, scope: Scope) -> list[Expr]:
    """The least value in each dimension, with case distinctions where it takes some."""
    known = points.intersect_params(scope.context)
    return [_least(known, points, k, scope) for k in range(points.dim(_DIM))]


def _least(known: isl.Set, points: isl.Set, dim: int, scope: Scope) -> Expr:
    if (found := _interval(known, dim, scope) or _interval(points, dim, scope)) is not None:
        return found[0]
    line = line_of(known, dim)
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
    line = line_of(points, dim).intersect_params(scope.context)
    best: tuple[Expr, Extent] = (Const(0), whole)
    if not line.is_bounded():
        return best
    anywhere = line.project_out(_PARAM, 0, line.dim(_PARAM))
    first, last = anywhere.dim_min_val(0), anywhere.dim_max_val(0)
    width = None
    if first.is_int() and last.is_int():
        width = python_int(last.sub(first)) + 1
        if not isinstance(whole, int) or width < whole:
            best = (Const(python_int(first)), width)
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
    line = line_of(points, dim).intersect_params(scope.context)
    if not line.is_bounded():
        return []
    rest = of_iterations(line, loop, scope, "other >= now")
    least = rest.dim_min(0).gist_params(scope.context).coalesce()
    found = (_from(start, line, scope) for start in [*_starts(rest, scope), least])
    numbers = [(each[0], each[1]) for each in found if each and isinstance(each[1], int)]
    return sorted(numbers, key=lambda interval: interval[1])


def _starts(line: isl.Set, scope: Scope) -> list[isl.PwAff]:
    """The cases of the least value that are never behind others, or those of two that are not.

    Where each case is a number, as of few blocks, a bound of the values may be a start as well.
    """
    low = line.dim_min(0).gist_params(scope.context).coalesce()
    # Elsewhere a case may be no whole number.
    cases = [case.floor().to_pw_aff() for _, case in low.get_pieces()[:MOST_CASES]]
    singles = [case for case in cases if not case.is_cst() and _is_before(case, line)]
    if singles := singles or _bounds(line):
        return singles
    pairs = (a.min(b) for k, a in enumerate(cases) for b in cases[:k])
    return [pair for pair in pairs if not pair.is_cst() and _is_before(pair, line)]


def _bounds(line: isl.Set) -> list[isl.PwAff]:
    """What values are at least, one by one, where that changes with the loops around."""
    parts = line.compute_divs().get_basic_sets()
    found = []
    for constraint in parts[0].get_constraints() if len(parts) == 1 else ():
        if constraint.is_lower_bound(_DIM, 0) and not constraint.is_equality():
            bound = constraint.get_bound(_DIM, 0).ceil().to_pw_aff()
            found.append(bound.project_domain_on_params())
    return [bound for bound in found if not bound.is_cst()]


def _is_before(start: isl.PwAff, line: isl.Set) -> bool:
    """Whether no value is behind `start`."""
    here: isl.Set = isl.Set.from_pw_aff(start).align_params(line.get_space())
    order = isl.Map.read_from_str(CONTEXT, "{ [a] -> [b] : b >= a }")
    return bool(line.is_subset(here.apply(order)))


@asked_once
def _interval(points: isl.Set, dim: int, scope: Scope) -> tuple[Expr, Extent] | None:
    found = _ends(points, dim, scope.context)
    return None if found is None else _written(*found, scope)


_Ends: TypeAlias = "tuple[isl.PwAff | int, isl.Set | int]"
"""The first value, and the number of values or all numbers that may be."""


@asked_of_sets
def _ends(points: isl.Set, dim: int, context: isl.Set) -> _Ends | None:
    """The interval of all values in a dimension, if its start is one case."""
    line = line_of(points, dim)
    if line.is_empty():
        return 0, 0
    # Not `dim_is_bounded`, which is mistaken about remainders: `d0 % 32 == p0`.
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


def _from(start: isl.PwAff, line: isl.Set, scope: Scope) -> tuple[Expr, Extent] | None:
    """`start`, which is no value behind, and the extent that holds all values from there on."""
    return _written(*_ends_from(start, line, scope.context), scope)


def _ends_from(start: isl.PwAff, line: isl.Set, context: isl.Set) -> _Ends:
    """As `_from`, in terms of isl's parameters."""
    width = line.dim_max(0).sub(start).add_constant_val(1)
    if width.n_piece() == 1 and (only := width.get_pieces()[0][1]).is_cst():
        return start, python_int(only.get_constant_val())
    widths = isl.Set.from_pw_aff(width).intersect_params(context)
    anywhere = widths.project_out(_PARAM, 0, widths.dim(_PARAM))
    most = anywhere.dim_max_val(0)
    # A number is worth more than a tighter bound that depends on sizes.
    return start, python_int(most) if most.is_int() else widths


def _written(
    start: isl.PwAff | int, widths: isl.Set | int, scope: Scope
) -> tuple[Expr, Extent] | None:
    """A start and an extent as expressions; None where no number is the greatest extent."""
    names = scope.space(()).names
    extent = widths if isinstance(widths, int) else _greatest(of_sizes(widths, scope), names)
    if extent is None:
        return None
    return Const(start) if isinstance(start, int) else to_expr(start, names), extent


def _greatest(widths: isl.Set, names: Mapping[str, Expr]) -> Extent | None:
    """The greatest element, in terms of the sizes."""
    if not widths.is_bounded():
        return None
    expr = to_expr(widths.dim_max(0).coalesce(), names)
    return int(expr.value) if isinstance(expr, Const) else expr
