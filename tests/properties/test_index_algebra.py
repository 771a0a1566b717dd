"""Simplified expressions equal the original for all small sizes and variable values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tecomp.ir import Expr, Ranges, Stmt, Var, bounds, simplify
from tests.strategies.index_algebra import World, worlds_and_digits, worlds_and_indices
from tests.strategies.index_programs import places, programs


@settings(max_examples=10 * settings().max_examples)
@given(worlds_and_indices())
def test_simplified_indices_have_the_same_values(case: tuple[World, Expr]) -> None:
    check(*case)


@pytest.mark.exhaustive
@settings(max_examples=10 * settings().max_examples)
@given(worlds_and_digits())
def test_digits_put_together_have_the_same_values(case: tuple[World, Expr]) -> None:
    check(*case)


SIZES = [(0, 0), (1, 1), (0, 2), (2, 0), (1, 3), (3, 2), (2, 3), (4, 1), (5, 2)]


@pytest.mark.exhaustive
@settings(max_examples=5 * settings().max_examples)
@given(programs(), st.sampled_from([None, 0, 1]))
def test_simplified_programs_store_to_the_same_places(
    case: tuple[Stmt, tuple[Var, Var]], least: int | None
) -> None:
    """Stores keep their order when nothing is known of the sizes, or a lower bound of 0 or 1."""
    program, (n, m) = case
    ranges: Ranges = {} if least is None else {n: (least, None), m: (least, None)}
    simple = simplify(program, ranges)
    note(f"{program}\nis simplified to\n{simple}\nwhere n and m are from {least} on")

    for sizes in SIZES:
        at = dict(zip((n, m), sizes, strict=True))
        if min(sizes) >= (least or 0):
            assert places(simple, at) == places(program, at), sizes
    assert str(simplify(simple, ranges)) == str(simple)


def check(world: World, expr: Expr) -> None:
    """Check values and bounds of the simplified expression, and idempotence."""
    simple = simplify(expr, world.ranges)
    note(f"{expr}\nis simplified to\n{simple}\nwhere {world}")

    expected = world.evaluate(expr)

    assert_same(world, simple, expected)
    low, high = bounds(expr, world.ranges)
    assert low is None or (expected >= low).all()
    assert high is None or (expected <= high).all()
    assert str(simplify(simple, world.ranges)) == str(simple)


def assert_same(world: World, expr: Expr, expected: NDArray[Any]) -> None:
    found = world.evaluate(expr)
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        at = {var.name: int(column[wrong[0]]) for var, column in world.points.items()}
        raise AssertionError(f"{expr} at {at}: {found[wrong[0]]}, not {expected[wrong[0]]}")

