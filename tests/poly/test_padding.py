"""Loops over padding visit all addresses without an element exactly once, in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tecomp.ir import (
    INT64,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    Expr,
    IfThenElse,
    PrimFunc,
    Range,
    Stmt,
    Var,
    evaluate,
    seq,
    walk,
)
from tecomp.poly import padding_loops
from tests.strategies.linear import Sum, box, sums
from tests.strategies.reference import number

ROW, COLUMN = Var("i"), Var("j")
START, SHAPE = (1, 2), (4, 5)
BOUNDS = [Range(Const(low), Const(n)) for low, n in zip(START, SHAPE, strict=True)]
PLACES = [(START[0] + i, START[1] + j) for i, j in box(SHAPE)]
VISITED, TIME = Buffer("visited", (8, 8), INT64), Buffer("time", (1,), INT64)


def note(at: tuple[Expr, ...]) -> Stmt:
    """Return the statement that stores the number of the visit at the address."""
    zero = (Const(0),)
    later = BufferLoad(TIME, zero) + Const(1)
    return seq(BufferStore(TIME, later, zero), BufferStore(VISITED, BufferLoad(TIME, zero), at))


def visits(loops: Stmt) -> tuple[list[tuple[int, int]], int]:
    """Return the addresses in the order of visits, and the number of visits."""
    visited, time = np.zeros((8, 8), np.int64), np.zeros(1, np.int64)
    evaluate(PrimFunc("f", (VISITED, TIME), loops), [visited, time])
    found = sorted((int(n), place) for place, n in np.ndenumerate(visited) if n)
    return [(place[0], place[1]) for _, place in found], int(time[0])


def expected(where: Expr) -> list[tuple[int, int]]:
    return [at for at in PLACES if number(where, dict(zip((ROW, COLUMN), at, strict=True)))]


@given(sums(2, digits=True), sums(2, digits=True))
def test_places_where_a_condition_holds(a: Sum, b: Sum) -> None:
    index = ROW, COLUMN
    where = (a(index) + ROW * 0 >= 0) & (b(index) + ROW * 0 < 3)

    loops = padding_loops(where, index, BOUNDS, note)

    assert visits(loops) == (expected(where), len(expected(where)))


@pytest.mark.parametrize("where", [(ROW ^ COLUMN) > 3, ROW * COLUMN > 7])
def test_non_affine_conditions_are_evaluated(where: Expr) -> None:
    loops = padding_loops(where, (ROW, COLUMN), BOUNDS, note)

    assert any(isinstance(node, IfThenElse) for node in walk(loops))
    assert visits(loops) == (expected(where), len(expected(where)))


def test_no_place_of_a_symbolic_box_is_visited_where_none_is_empty() -> None:
    # isl detects emptiness late: between two queries on one set.
    count = Var("m")
    bounds = [Range(Const(0), Const(3)), Range(Const(0), count)]

    loops = padding_loops(count * 3 + 2 <= COLUMN * 3 + ROW, (ROW, COLUMN), bounds, note)

    assert not any(isinstance(node, BufferStore) for node in walk(loops))
