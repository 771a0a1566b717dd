"""Simplification of index arithmetic on loaded values preserves wrap-around at 64 bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tecomp.ir import (
    INT64,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    Expr,
    PrimFunc,
    binary,
    evaluate,
    index_value,
    simplify,
)
from tests.strategies.draws import Draws

DATA, OUT = Buffer("D", (2,), INT64), Buffer("O", (1,), INT64)
LEAST, MOST = -(2**63), 2**63 - 1
PAIRS = (
    (LEAST, 1), (LEAST + 7, -1), (MOST, LEAST), (5, -13), (0, 2**62 + 3), (MOST - 6, 7),
    (-(2**62), 2**62 + 3),
)


def expression(drawn: Draws, depth: int) -> Expr:
    """Draw sums, products with constants, quotients and remainders of two loaded values."""
    if depth == 0 or drawn.chance(10):
        return BufferLoad(DATA, (index_value(drawn.number(0, 1)),))
    inner = expression(drawn, depth - 1)
    op = drawn.pick((BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD, BinOp.MOD))
    if op in (BinOp.ADD, BinOp.SUB) and drawn.chance(50):
        return binary(op, inner, expression(drawn, depth - 1))
    return binary(op, inner, Const(drawn.pick((2, 3, 4, 8, 12)), INT64))


@st.composite
def expressions(draw: st.DrawFn) -> Expr:
    """Draw an expression of up to four nested operations."""
    drawn = Draws(draw)
    return expression(drawn, drawn.number(1, 4))


@settings(max_examples=8 * settings().max_examples)
@given(expressions())
def test_simplification_keeps_wrapping_values(expr: Expr) -> None:
    simple = simplify(expr)
    note(f"{expr} is simplified to {simple}")
    assert str(simplify(simple)) == str(simple)
    for a, b in PAIRS:
        assert value(simple, a, b) == value(expr, a, b), (a, b)


def value(expr: Expr, a: int, b: int) -> int:
    """Evaluate `expr` with the interpreter for the given memory contents."""
    data, out = np.array([a, b], np.int64), np.zeros(1, np.int64)
    body = BufferStore(OUT, expr, (index_value(0),))
    evaluate(PrimFunc("f", (DATA, OUT), body), [data, out])
    return int(out[0])


def test_remainders_of_wrapping_values_are_not_expanded() -> None:
    x = BufferLoad(DATA, (index_value(0),))
    simple = simplify((x * 4 + 1) % 12 // 2)
    assert str(simple) == "(D[0] * 4 + 1) // 2 % 6"
    assert value(simple, 2**62, 0) == 0


def test_a_remainder_in_a_sum_is_not_opened_where_the_sum_would_wrap_around() -> None:
    x = BufferLoad(DATA, (index_value(0),))
    simple = simplify((x % 12 + 2) % 12)
    assert str(simple) == "(D[0] % 12 + 2) % 12"
    assert value(simple, MOST, 0) == (MOST % 12 + 2) % 12
