"""Kernels are specialized on repeated sizes only when the compilation time pays off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp.array as xp
from tecomp.array.kernels import execution_plan, kernel, specialization_threshold
from tecomp.array.statistics import counters
from tecomp.machine import host_vector_bytes
from tests.numerics import assert_close


def standardised(x: xp.Array) -> xp.Array:
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def oracle(x: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def compiled_by(calls: int, *shape: int) -> int:
    """Count the kernels that calls with equal sizes compile, after one call with other sizes."""
    other = xp.asarray(np.random.default_rng(1).random([n + 1 for n in shape]))
    xp.eval(standardised(other))
    x = np.random.default_rng(0).random(shape)
    data = xp.asarray(x)
    before = counters.compiled
    for _ in range(calls):
        assert_close(np.asarray(standardised(data)), oracle(x), rtol=1e-9, atol=1e-9)
    return counters.compiled - before


def test_tiny_sizes_are_not_built_in_while_that_cannot_pay() -> None:
    assert compiled_by(100, 5, 4) == 0


def test_a_program_follows_on_the_call_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_plan, "specialization_threshold", lambda kernels, points: 6)
    assert compiled_by(5, 11, 4) == 0
    assert compiled_by(20, 12, 4) == 1


def test_a_kernel_of_several_loops_follows_on_the_call_that_pays(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "specialization_threshold", lambda kernels, points: 6)
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
    assert specialization_threshold(1, 10) == 3332
    assert specialization_threshold(3, 30) == 3332
    assert specialization_threshold(1, 1_000_000) == 50
    assert specialization_threshold(1, 4_000_000) == 16
    assert specialization_threshold(3, 10**9) == 16


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "sum"])
def test_rows_of_each_length_with_ties_and_nan(name: str, dtype: str) -> None:
    """Kernels for unknown lengths cover rows of up to 8, of up to 32, and of more vectors."""
    vector = host_vector_bytes() // np.dtype(dtype).itemsize
    edges = [k * vector + d for k in (4, 5, 8, 9, 16, 31, 32, 33) for d in (-1, 0, 1)]
    before, known = counters.compiled, sum(n <= max(32, 4 * vector) for n in edges)
    for n in edges:
        random = np.random.default_rng(n)
        rows = 20_000 // n + random.integers(5)
        x = random.integers(0, 3, (rows, n)).astype(dtype)
        if np.dtype(dtype).kind == "f" and name != "sum":
            places = random.integers(n, size=(2, rows // 4))
            x[np.arange(rows // 4), places] = np.nan
            x[-1] = -np.inf
        found = np.asarray(getattr(xp, name)(xp.asarray(x), axis=1))
        np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1))
    assert counters.compiled - before <= known + 3


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float64", 8)])
def test_lengths_of_short_rows_are_built_in(dtype: str, width: int) -> None:
    """Rows of up to 4 vectors, and of up to 32 elements, are specialized; longer ones share kernels."""
    short = max(32, 4 * host_vector_bytes() // width)

    def compiled(columns: int) -> int:
        x = np.random.default_rng(columns).random((3000, columns)).astype(dtype)
        before = counters.compiled
        found = np.asarray(xp.min(xp.asarray(x) * 0.375, axis=1))
        np.testing.assert_array_equal(found, (x * x.dtype.type(0.375)).min(axis=1))
        return counters.compiled - before

    assert [compiled(n) for n in (17, 17, short - 1, short)] == [1, 0, 1, 1]
    assert compiled(short + 1) == 1
    assert [compiled(short + n) for n in (2, 3, short, 3 * short)] == [0, 0, 0, 0]
    assert [compiled(4 * short + n) for n in (1, 2, 100)] == [1, 0, 0]


@pytest.mark.exhaustive
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_reductions_of_rows_of_any_length(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float64", "int8", "int32", "uint16", "bool"]))
    columns, rows = data.draw(st.integers(1, 140)), data.draw(st.sampled_from([1, 7, 300]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    x = rng.integers(0, 2 if dtype == "bool" else 90, (rows, columns)).astype(dtype)
    names = ["argmax", "argmin", "max", "min", "sum", "prod"] if dtype != "bool" else ["any", "all"]
    name = data.draw(st.sampled_from(names))
    if name == "prod":
        x = x % 2 + x.dtype.type(1 if columns < 7 else 0)

    found = np.asarray(getattr(xp, name)(xp.asarray(x), axis=1))

    # Sums of such small integers are exact in any order.
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1))


@pytest.mark.exhaustive
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_indices_of_extremes_with_ties_and_nan(data: st.DataObject) -> None:
    """The index of the first of equal values, or of the first NaN, is found in rows and columns."""
    dtype = data.draw(st.sampled_from(["float32", "float64", "int8", "int32", "int64"]))
    rows, columns = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    x = rng.integers(0, data.draw(st.sampled_from([1, 2, 100])) + 1, (rows, columns)).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < data.draw(st.sampled_from([0.0, 0.01, 1.0]))] = np.nan
    name = data.draw(st.sampled_from(["argmax", "argmin"]))
    axis = data.draw(st.sampled_from([0, 1]))

    found = np.asarray(getattr(xp, name)(xp.asarray(x), axis=axis))

    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=axis))


def test_extents_beyond_32_bits_are_built_in() -> None:
    """Indices have 32 bits where an extent is unknown."""
    most = 2**31 - 1
    assert kernel.static_extents((5, most), 10**10) == (None, None)
    assert kernel.static_extents((most + 1, 5), 10**10, short=0) == (most + 1, None)
