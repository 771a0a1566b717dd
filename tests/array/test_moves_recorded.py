"""Data movement inside recorded functions agrees with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayTypeError, CallError
from tests.messages import Diagnostic, diagnostic

DATA = np.arange(12.0).reshape(3, 4)
PLACES = np.array([0, -1, 2])


def written(x: Any) -> Any:
    y = x * 2
    y[1:, ::2] = -1.0
    y[0] = x[2]
    y[x > 7] = 0.0
    y[:, None, 1] = x[:, 3:]
    return y


CASES: list[Callable[[Any, Any, Any], Any]] = [
    lambda np, x, i: written(x), lambda np, x, i: written(x)[:, i], lambda np, x, i: x[i, i],
    lambda np, x, i: np.take(x, i, axis=1), lambda np, x, i: x[..., None, 0],
    lambda np, x, i: np.roll(x, 1, axis=0), lambda np, x, i: np.concat([x, x * 2]),
    lambda np, x, i: np.zeros((2,)) + x[0, 0], lambda np, x, i: np.arange(4) * x,
    lambda np, x, i: np.take_along_axis(x, np.reshape(i, (3, 1)), axis=1),
    lambda np, x, i: np.linspace(0, 1, 4) + np.eye(3, 4) * x, lambda np, x, i: np.full((2,), 3) + x[0, :2],
    lambda np, x, i: np.reshape(x.T, (2, 6)), lambda np, x, i: np.broadcast_to(np.flip(x), (2, 3, 4)),
]


@pytest.mark.parametrize("k", range(len(CASES)))
def test_recorded_functions(k: int) -> None:
    recorded = xp.jit(lambda x, i: CASES[k](xp, x, i))
    x = xp.asarray(DATA)
    expected = CASES[k](np, DATA, PLACES)
    for _ in range(2):
        result = recorded(x, xp.asarray(PLACES))
        assert result.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(result), expected)
    np.testing.assert_array_equal(np.asarray(x), DATA)


BY_VALUE: list[Callable[[Any, Any], Any]] = [
    lambda xp, x: x[x > 2], lambda xp, x: xp.nonzero(x),
    lambda xp, x: xp.repeat(x[0], xp.astype(xp.abs(x[0]), np.int64)),
]


@pytest.mark.parametrize("k", range(len(BY_VALUE)))
def test_data_dependent_shapes_are_recomputed_in_each_call(k: int) -> None:
    recorded = xp.jit(lambda x: BY_VALUE[k](xp, x))
    for data in (DATA, DATA - 3, DATA):
        found, expected = recorded(xp.asarray(data)), BY_VALUE[k](np, data)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            np.testing.assert_array_equal(np.asarray(one), other)


def test_values_are_not_known_while_a_function_is_recorded() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        xp.jit(lambda x: float(x[0, 0]))(xp.asarray(DATA))
    assert diagnostic(caught.value) == (
        Diagnostic("recording", where="jit")
    )


def test_indices_out_of_bounds_are_refused_at_run_time() -> None:
    recorded = xp.jit(lambda x, i: x[:, i])
    with pytest.raises(CallError) as caught:
        np.asarray(recorded(xp.asarray(DATA), xp.asarray([0, 9, 1])))
    found = diagnostic(caught.value)
    place, _, access = found.parameters["text"].rpartition(": ")
    assert found == Diagnostic("out-of-bounds", value=9, text=f"{place}: {access}")
    assert access == "x0[i0, x1[i1]] (axis 1 of x0[n0, n1])"
    assert place.startswith(__file__)
