"""Searches by user-defined reducers find the first or the last of equally good elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

import tecomp
from tecomp import te

RULES: dict[str, Callable[[Sequence[te.Expr], Sequence[te.Expr]], te.Expr]] = {
    "first greatest": lambda a, b: a[1] >= b[1],
    "last greatest": lambda a, b: a[1] > b[1],
    "first least": lambda a, b: a[1] <= b[1],
    "last least": lambda a, b: te.logical_not(b[1] <= a[1]),
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_places_of_extremes(rule: str, seed: int) -> None:
    dice = Random(f"{seed} {rule}")
    rows, row = dice.choice([1, 3, 20, 70]), dice.choice([3, 64, 65, 100, 333, 2100])
    dtype = dice.choice(["float32", "float64", "int8", "int32", "float16"])
    index, step, first = dice.choice(["int32", "int64", "int16"]), dice.choice([1, 3]), dice.randint(-2, 2)
    n = te.var("n") if dice.random() < 0.5 else row
    A, k = te.placeholder((rows, n), dtype, "A"), te.reduce_axis((0, n), name="k")
    is_greatest, is_first = "greatest" in rule, "first" in rule

    def combine(a: list[te.Expr], b: list[te.Expr]) -> list[te.Expr]:
        return [te.Select(RULES[rule](a, b), a[m], b[m]) for m in (0, 1)]

    def identity(place: str, value: str) -> list[te.Expr]:
        least = te.min_value(value) if is_greatest else te.max_value(value)
        return [te.min_value(place) if is_first else te.const(-9, place), least]

    best = te.comm_reducer(combine, identity, name="best")
    found, value = te.compute((rows,), lambda i: best(
        (te.cast(k * step + first, index), A[i, k]), axis=k), name="best")
    place = te.compute((rows,), lambda i: te.cast(found[i], "int64"), name="place")
    B = te.compute((rows,), lambda i: value[i] + value[i], name="B")
    a = np.random.default_rng(seed).integers(-9, 9, (rows, row)).astype(dtype)
    p, b = np.empty(rows, np.int64), np.empty(rows, dtype)

    tecomp.build([place, B], [A, place, B])(a, p, b)

    extreme = a.max(1) if is_greatest else a.min(1)
    expected = [np.flatnonzero(x == y)[0 if is_first else -1] for x, y in zip(a, extreme, strict=True)]
    np.testing.assert_array_equal(p, np.array(expected) * step + first)
    np.testing.assert_array_equal(b, extreme + extreme)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(300, 40), (9, 1000), (40, 5, 33), (1, 7)])
def test_places_of_extremes_across_rows(rule: str, shape: tuple[int, ...]) -> None:
    A, k = te.placeholder(shape, name="A"), te.reduce_axis((0, shape[0]), name="k")

    def combine(a: list[te.Expr], b: list[te.Expr]) -> list[te.Expr]:
        return [te.Select(RULES[rule](a, b), a[m], b[m]) for m in (0, 1)]

    is_greatest, is_first = "greatest" in rule, "first" in rule
    best = te.comm_reducer(combine, lambda place, value: [
        te.const(-1, place), te.min_value(value) if is_greatest else te.max_value(value)])
    found, _ = te.compute(shape[1:], lambda *i: best((k, A(k, *i)), axis=k), name="found")
    B = te.compute(shape[1:], lambda *i: te.cast(found(*i), "int64"), name="B")
    a = np.random.default_rng(0).integers(-3, 3, shape).astype(np.float32)
    b = np.empty(shape[1:], np.int64)

    tecomp.build(B, [A, B])(a, b)

    at = a if is_first else a[::-1]
    expected = at.argmax(0) if is_greatest else at.argmin(0)
    np.testing.assert_array_equal(b, expected if is_first else shape[0] - 1 - expected)
