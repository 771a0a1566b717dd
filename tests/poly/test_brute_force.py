"""Vectorized enumeration of elements equals enumeration by a Python loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp import te
from tecomp.errors import LayoutError
from tecomp.ir import Const, Not, Var
from tecomp.poly import (
    LIMIT,
    count_places,
    evaluate_over_box,
    first_collision,
    is_enumerable,
    is_small,
    unravel,
)
from tests.messages import Diagnostic, diagnostic
from tests.strategies.linear import Sum, box, sums

X, Y = Var("i"), Var("j")
Operation = Callable[[Any, Any], Any]
OPERATIONS: dict[str, Operation] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // (b % 3 + 1),
    "%": lambda a, b: a % (b % 5 + 1),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << (b % 4),
    ">>": lambda a, b: a >> (b % 4),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(sums(2), sums(2))
def test_values(name: str, a: Sum, b: Sum) -> None:
    def value(x: Any) -> Any:
        return OPERATIONS[name](a(x) + x[0] * 0, b(x) + x[0] * 0)

    (found,) = evaluate_over_box([value((X, Y))], (X, Y), (4, 5))

    assert found.tolist() == [value(at) for at in box((4, 5))]


@given(sums(2), sums(2))
def test_choices_and_comparisons(a: Sum, b: Sum) -> None:
    x, y = a((X, Y)) + X * 0, b((X, Y)) + X * 0
    exprs = [
        te.if_then_else(te.all(x < y, Not(x == 1)), x, y), te.min(x, y), te.max(x, y),
        te.abs(x), te.if_then_else(te.any(x != y, x >= 2), X, Const(7)),
    ]

    found = evaluate_over_box(exprs, (X, Y), (4, 5))

    for k, at in enumerate(box((4, 5))):
        p, q = a(at), b(at)
        expected = [
            p if p < q and p != 1 else q, min(p, q), max(p, q), abs(p),
            at[0] if p != q or p >= 2 else 7,
        ]
        assert [int(item[k]) for item in found] == expected


def test_division_by_zero_gives_zero() -> None:
    found = evaluate_over_box([Const(7) // X, Const(7) % X], (X,), (3,))

    assert [item.tolist() for item in found] == [[0, 7, 3], [0, 0, 1]]


@given(st.lists(sums(2, digits=True), min_size=1, max_size=2), st.integers(0, 5), st.integers(1, 5))
def test_collisions(places: list[Sum], rows: int, columns: int) -> None:
    shape = rows, columns
    index = (X, Y)
    found = evaluate_over_box([place(index) + X * 0 for place in places], index, shape)
    first: dict[tuple[int, ...], tuple[int, ...]] = {}
    pairs = []
    for at in box(shape):
        place = tuple(item(at) for item in places)
        if place in first:
            pairs.append((first[place], at))
        first[place] = at

    # The smallest first index, with the next index that has the same address.
    assert first_collision(found, shape) == min(pairs, default=None)
    assert count_places(found, rows * columns) == len(first)


def test_positions() -> None:
    assert [unravel(k, (2, 3)) for k in range(6)] == list(box((2, 3)))
    assert unravel(0, ()) == ()


def test_enumerated_points() -> None:
    n = te.var("n")

    assert is_small([X + Y], (X, Y), (64, 64))
    assert not is_small([X + Y], (X, Y), (64, 65))
    assert not is_small([X + Y], (X, Y), (64, n))
    assert not is_small([X + n], (X, Y), (4, 4))
    assert is_enumerable([X ^ Y], (X, Y), (1 << 11, 1 << 11)) == (1 << 11, 1 << 11)


@pytest.mark.parametrize(
    ("expr", "shape", "parameters"),
    [
        (X ^ Var("k"), (4, 4), {"expr": "i ^ k", "other": "k"}),
        (X ^ Y, (4, te.var("n")), {"axis": "j", "extent": "n"}),
        (X ^ Y, (LIMIT, 2), {"size": 2 * LIMIT, "names": "i, j", "limit": LIMIT}),
    ],
    ids=["variable", "extent", "many"],
)
def test_points_outside_the_set(expr: Any, shape: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(LayoutError) as error:
        is_enumerable([expr], (X, Y), shape)

    subject = "index map: bit operations are decided by enumerating all elements"
    assert diagnostic(error.value) == Diagnostic("limit-exceeded", subject=subject, **parameters)


def test_arrays_are_64_bits_wide() -> None:
    (found,) = evaluate_over_box([X * (1 << 40)], (X,), (3,))

    assert found.dtype == np.int64
    assert found[2] == 1 << 41
