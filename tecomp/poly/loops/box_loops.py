"""Loops over a box whose ends may depend on parameters: what most bands of a schedule are.

isl's AST generator makes the same loops, but takes milliseconds for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import islpy as isl

from tecomp.ir.language.expr import BinOp, Const, Expr, Var, binary, index_value, is_const
from tecomp.ir.language.stmt import For, ForKind, Stmt
from tecomp.poly.sets.affine import Space
from tecomp.poly.sets.context import asked_of_sets, asked_once
from tecomp.poly.sets.express import to_expr
from tecomp.poly.sets.numbers import python_int

_PARAM, _DIM, _DIV = isl.dim_type.param, isl.dim_type.set, isl.dim_type.div
_MOST_ENDS = 2
"""Upper ends that a loop may have; isl orders more of them, and drops what it can."""

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
    """The loops over a box; a dimension of extent 1 has none.

    Args:
        ends: first value and extent in each dimension, from `ends_of`.
        points: the box.
        space: names the dimensions; each loop variable is named after its dimension.
        body: makes the innermost statement from the value of each dimension and `points`.
        kinds: how the loop of a dimension runs, if not serially.
        threads: the axis of the grid of cores that the loop of a dimension is bound to, if any.
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
    """First value and extent in each dimension, if `points` is a box; None if it is not.

    Args:
        points: of `space`.
        space: names the parameters.
        context: what is known about the parameters; a set of the parameters alone.
    """
    sides = _sides_of(points, context)
    return None if sides is None else [_first_and_extent(*side, space) for side in sides]


_End: TypeAlias = "int | isl.Aff"
_Side: TypeAlias = "tuple[_End, list[_End]]"
"""The first value in a dimension, and extents, the least of which counts."""


@asked_once
@asked_of_sets
def _sides_of(points: isl.Set, context: isl.Set | None) -> list[_Side] | None:
    """As `ends_of`, in terms of isl's parameters."""
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
    """The ends of a box from its constraints, each of which is about one dimension."""
    # Sets turn out to be empty only where isl looks for constraints that say nothing.
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
        rest = aff.set_coefficient_val(isl.dim_type.in_, k, 0)
        if factor > 0 or constraint.is_equality():
            lows[k].append(rest.neg() if factor > 0 else rest)
        if factor < 0 or constraint.is_equality():
            highs[k].append(rest if factor < 0 else rest.neg())
    if any(len(low) != 1 or not 1 <= len(high) <= _MOST_ENDS
           for low, high in zip(lows, highs, strict=True)):
        return None
    return [
        (low, [high.sub(low).add_constant_val(1) for high in each])
        for (low,), each in zip(lows, highs, strict=True)
    ]


def _first_and_extent(low: _End, counts: list[_End], space: Space) -> tuple[Expr, Expr]:
    extents = [_written(count, space) for count in counts]
    extents.sort(key=lambda extent: not isinstance(extent, Const))
    extent = extents[0]
    for other in extents[1:]:
        extent = binary(BinOp.MIN, extent, other)
    return _written(low, space), extent


def _written(end: _End, space: Space) -> Expr:
    return Const(end) if isinstance(end, int) else index_value(to_expr(end, space.names))
