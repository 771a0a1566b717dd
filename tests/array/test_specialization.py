"""When sizes that come again are built in: not before that can pay."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.kernels import execution_plan, kernel
from tecomp.array.kernels.kernel import calls_that_pay
from tecomp.array.statistics import counters
from tests.numerics import assert_close


def standardised(x: xp.Array) -> xp.Array:
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def oracle(x: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def compiled_by(calls: int, *shape: int) -> int:
    """The kernels that calls with the same sizes compile, after one with other sizes."""
    other = xp.asarray(np.random.default_rng(1).random([n + 1 for n in shape]))
    xp.eval(standardised(other))
    x = np.random.default_rng(0).random(shape)
    given = xp.asarray(x)
    before = counters.compiled
    for _ in range(calls):
        assert_close(np.asarray(standardised(given)), oracle(x), rtol=1e-9, atol=1e-9)
    return counters.compiled - before


def test_tiny_sizes_are_not_built_in_while_that_cannot_pay() -> None:
    assert compiled_by(100, 5, 4) == 0


def test_a_program_follows_on_the_call_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_plan, "calls_that_pay", lambda kernels, points: 6)
    assert compiled_by(5, 11, 4) == 0
    assert compiled_by(20, 12, 4) == 1


def test_a_kernel_of_several_loops_follows_on_the_call_that_pays(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "calls_that_pay", lambda kernels, points: 6)
    a = xp.asarray(np.ones((6001, 3)))
    xp.eval(xp.sum(a - a * a, axis=1))
    before = counters.compiled
    for _ in range(4):
        xp.eval(xp.sum(a - a * a, axis=1))
    assert counters.compiled == before
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(xp.sum(a - a * a, axis=1)), np.zeros(6001))
    assert counters.compiled == before + 1


def test_the_calls_that_pay_take_as_long_as_compiling() -> None:
    assert calls_that_pay(1, 10) == 3332
    assert calls_that_pay(3, 30) == 3332
    assert calls_that_pay(1, 1_000_000) == 50
    assert calls_that_pay(1, 4_000_000) == 16
    assert calls_that_pay(3, 10**9) == 16
