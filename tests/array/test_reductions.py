"""One kernel per reduction for all sizes and memory layouts."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.kernels import MANY
from tecomp.array.statistics import counters
from tests.array.arrays import array
from tests.numerics import assert_close
from tests.operations.references import AXES_REDUCTIONS, numpy_reduction, takes

Data = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: str = "float64") -> Data:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)


VIEWS: dict[str, Callable[[Data], Data]] = {
    "all": lambda x: x,
    "steps": lambda x: x[:, ::2],
    "reversed": lambda x: x[:, ::-1, ::-1],
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2), (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_along_any_axes(view: str, axis: Any, keepdims: bool) -> None:
    x = VIEWS[view](numbers(4, 6, 5))
    a = array(x)
    result = xp.sum(a * a + 1, axis=axis, keepdims=keepdims) * 2
    expected = np.asarray((x * x + 1).sum(axis=axis, keepdims=keepdims) * 2)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.exhaustive(keep=1, most=8)
@pytest.mark.parametrize("kind", AXES_REDUCTIONS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32"])
def test_kinds_and_types(kind: str, dtype: str) -> None:
    x = (numbers(5, 3) % 3).astype(dtype)
    if not takes(AXES_REDUCTIONS[kind], dtype):
        return
    for axis in (0, 1, None):
        actual = np.asarray(getattr(xp, kind)(array(x), axis=axis))
        expected = numpy_reduction(AXES_REDUCTIONS[kind])(x, axis=axis)
        assert_close(actual, expected, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(4_000_000,), (1_234_567,), (3, 300_001), (70_000, 3), (63,)])
def test_sums_are_right_to_two_units_in_the_last_place(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0, 1, shape).astype(dtype)
    for axis in (None, x.ndim - 1):
        rows = x.reshape(1, -1) if axis is None else x.reshape(-1, shape[-1])
        exact = np.array([fsum(row.tolist()) for row in rows])
        unit = np.spacing(exact.astype(dtype)).astype("float64")
        total = np.asarray(xp.sum(array(x), axis=axis)).astype("float64").reshape(-1)
        assert np.all(np.abs(total - exact) <= 2 * unit)
        mean = np.asarray(xp.mean(array(x), axis=axis)).astype("float64").reshape(-1)
        assert np.all(np.abs(mean - exact / rows.shape[1]) <= 3 * unit / rows.shape[1])


def test_one_kernel_serves_all_sizes() -> None:
    def run(*shape: int) -> None:
        x, y = numbers(*shape), numbers(*shape)[1:2]
        actual = xp.sum(array(x) * array(x), axis=0) - array(y)[0]
        np.testing.assert_array_equal(np.asarray(actual), (x * x).sum(axis=0) - y[0])

    run(3, 4)
    before = counters.compiled
    for shape in [(7, 9), (64, 33), (5, 2, 6), (2, 70, 1)]:
        run(*shape)
    assert counters.compiled == before


def test_referenced_operands_of_reductions_are_stored() -> None:
    x = numbers(6, 4)
    square = array(x) * array(x)
    total = xp.sum(square, axis=1)
    np.testing.assert_array_equal(np.asarray(total), (x * x).sum(axis=1))
    np.testing.assert_array_equal(np.asarray(square), x * x)


def test_kernels_are_specialized_for_frequent_sizes() -> None:
    x = numbers(1_400_000, 3)
    a = array(x)
    before = counters.compiled
    for _ in range(18):
        np.testing.assert_array_equal(np.asarray(xp.sum(a * a * a, axis=1)), (x * x * x).sum(axis=1))
    assert counters.compiled == before + 2


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
@pytest.mark.parametrize("columns", [33, 47, 64, 65, 200])
def test_searches_of_many_short_rows_find_the_first_of_equal_values(
    dtype: str, columns: int
) -> None:
    """Rows are transposed in squares, and the last rows and columns fill no square."""
    rows = MANY // columns + 13
    a = np.random.default_rng(columns).integers(0, 9, (rows, columns)).astype(dtype)
    if a.dtype.kind == "f":
        a[::5, columns // 2 :: 7] = np.nan
    x = xp.asarray(a)

    np.testing.assert_array_equal(np.asarray(xp.argmax(x, axis=1)), a.argmax(1))
    np.testing.assert_array_equal(np.asarray(xp.argmin(x, axis=1)), a.argmin(1))
