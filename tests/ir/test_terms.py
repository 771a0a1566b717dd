"""Conversion of expressions to quasi-affine sums and back."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings

from tecomp.ir import MAX_DEPTH, BinOp, Expr, TermTable, Var, binary
from tests.properties.test_index_algebra import assert_same
from tests.strategies.index_algebra import World, worlds_and_digits, worlds_and_indices

i, j = Var("i"), Var("j")


@settings(max_examples=5 * settings().max_examples)
@given(worlds_and_indices())
def test_terms_round_trip_keeps_values(case: tuple[World, Expr]) -> None:
    check(*case)


@settings(max_examples=5 * settings().max_examples)
@given(worlds_and_digits())
def test_digits_read_and_written_have_the_same_values(case: tuple[World, Expr]) -> None:
    check(*case)


def check(world: World, expr: Expr) -> None:
    terms = TermTable()
    total = terms.sum_of(expr)
    text = terms.expr(total)
    note(f"{expr} is {total}, written {text}")
    assert_same(world, text, world.evaluate(expr))
    assert terms.sum_of(text) == total
    assert terms.expr(total) is text
    repeated = TermTable()
    assert repeated.expr(repeated.sum_of(text), like=text) is text


@pytest.mark.parametrize(("one", "other"), [
    (i + j, j + i),
    (i * 2 - j, i - j + i),
    (i // 2 // 4, i // 8),
    (i // 2 % 4, i % 8 // 2),
    ((i + j) // 2 // 4, (j + i) // 8),
    (i * j, j * i),
    (i * 3 * j, j * i * 3),
    ((i // 4) * j, j * (i // 4)),
])
def test_equivalent_terms_have_one_key(one: Expr, other: Expr) -> None:
    terms = TermTable()
    assert terms.key(one) == terms.key(other)
    assert terms.sum_of(one) == terms.sum_of(other)


@pytest.mark.parametrize("expr", [
    i * 8 + j, i // 4 % 8, (i + j) // 4 % 8, (i // 4 + 3) % 8, i * 4 - j - 1, 5 - i * 2,
    i * j * 4 + i % 4, binary(BinOp.MIN, i, j) // 4 * 4,
])
def test_canonical_terms_are_returned_unchanged(expr: Expr) -> None:
    terms = TermTable()
    assert terms.expr(terms.sum_of(expr), like=expr) is expr


def test_deep_expressions_are_read_without_recursion() -> None:
    expr: Expr = i
    for _ in range(20 * MAX_DEPTH):
        expr = (expr + j) // 3
    terms = TermTable()
    total = terms.sum_of(expr)
    assert total.depth <= MAX_DEPTH
    assert terms.expr(total, like=expr) is expr


def test_squares_of_squares_are_no_list_of_factors() -> None:
    """Sixty nested squares have 2**60 factors, but each square is entered once."""
    terms = TermTable()
    square: Expr = i
    for _ in range(60):
        square = square * square
    total = terms.sum_of(square * 2 + square)
    (term,) = total.terms
    assert total.terms[term] == 3
    assert terms.expr(terms.sum_of(square), like=square) is square
