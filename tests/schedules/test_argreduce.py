"""Argmin and argmax equal NumPy's, including first-occurrence and NaN semantics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import argreduce
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise


def run(a: np.ndarray, axis: int, target: tecomp.Target, op: Any = "argmax",
        shape: Any = None) -> np.ndarray:
    A = te.placeholder(shape or a.shape, str(a.dtype), name="A")
    B = argreduce.define(A, axis, op)
    kernel = tecomp.build(argreduce.schedule(B, target), [A, B])
    result = np.full(np.delete(a.shape, axis), -1, np.int64)
    call_fenced(kernel, a, result)
    return result


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return values of a small range, so that ties are frequent."""
    return np.random.default_rng(0).integers(-20, 20, shape).astype(dtype)


@pytest.mark.exhaustive(keep=2)
@pairwise(
    n=[1, 2, 3, 7, 127, 1000, 1023], axis=[0, 1], op=["argmax", "argmin"], target=CORES
)
def test_sizes(n: int, axis: int, op: str, target: tecomp.Target) -> None:
    a = values(n, 37) if axis == 0 else values(5, n)

    np.testing.assert_array_equal(run(a, axis, target, op), getattr(np, op)(a, axis))


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes(axis: int, target: tecomp.Target) -> None:
    a = values(3, 40, 33)

    np.testing.assert_array_equal(run(a, axis, target), a.argmax(axis))


@pytest.mark.exhaustive(keep=2, most=13)
@pairwise(
    shape=[(8, 1), (50, 3), (33, 10), (2, 3, 5, 7), (19, 130), (8, 255), (9, 256)],
    op=["argmax", "argmin"], target=CORES,
)
def test_several_rows_at_once(shape: tuple[int, ...], op: str, target: tecomp.Target) -> None:
    a = values(*shape)
    a.reshape(-1)[::11] = np.nan
    expected = getattr(np, op)(a, -1)
    np.testing.assert_array_equal(run(a, -1, target, op), expected)
    sizes = [*(te.var(f"n{k}") for k in range(len(shape) - 1)), shape[-1]]

    np.testing.assert_array_equal(run(a, -1, target, op, sizes), expected)


@pytest.mark.exhaustive(keep=1)
def test_one_long_row(target: tecomp.Target) -> None:
    a = np.random.default_rng(1).standard_normal(100_001, np.float32)

    assert run(a, 0, target) == a.argmax()


@pytest.mark.exhaustive(keep=2)
@pairwise(dtype=["int8", "uint8", "int64", "float64", "float16"], axis=[0, 1], target=CORES)
def test_types(dtype: str, axis: int, target: tecomp.Target) -> None:
    a = values(30, 300, dtype=dtype)

    np.testing.assert_array_equal(run(a, axis, target), a.argmax(axis))


@pytest.mark.exhaustive(keep=2)
@pairwise(axis=[0, 1], op=["argmax", "argmin"], target=CORES)
def test_the_first_nan_wins(axis: int, op: str, target: tecomp.Target) -> None:
    a = values(300, 300)
    a[np.arange(300), np.random.default_rng(2).permutation(300)] = np.nan
    a[::7] = np.nan
    a[:, 5] = np.inf

    np.testing.assert_array_equal(run(a, axis, target, op), getattr(np, op)(a, axis))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_least_value_everywhere(axis: int, target: tecomp.Target) -> None:
    a = np.full((20, 300), -np.inf, np.float32)

    np.testing.assert_array_equal(run(a, axis, target), a.argmax(axis))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("has_short_rows", [False, True])
def test_sizes_known_at_the_call(axis: int, has_short_rows: bool, target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    B = argreduce.define(A, axis, has_short_rows=has_short_rows)
    kernel = tecomp.build(argreduce.schedule(B, target), [A, B])
    for shape in ((1, 1), (3, 700), (65, 9), (3, 64), (2, 129)):
        a = values(*shape)
        result = np.full(np.delete(shape, axis), -1, np.int64)
        call_fenced(kernel, a, result)
        np.testing.assert_array_equal(result, a.argmax(axis))


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize(("shape", "axis"), [((5, 300), 1), ((5, 300), 0), ((50, 3), 1)])
def test_indices_of_another_type(
    shape: tuple[int, int], axis: int, target: tecomp.Target
) -> None:
    a = values(*shape)
    A = te.placeholder(shape, name="A")
    B = argreduce.define(A, axis, out_dtype="int16")
    result = np.full(np.delete(shape, axis), -1, np.int16)
    call_fenced(tecomp.build(argreduce.schedule(B, target), [A, B]), a, result)

    np.testing.assert_array_equal(result, a.argmax(axis))


def test_wrong_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="axis=") as error:
        argreduce.define(te.placeholder((4, 5), name="A"), 2)

    assert str(error.value) == (
        "argreduce.define: axis=2 of 2 axes is out of bounds; pass a number from -2 to 1"
    )


def test_an_empty_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="no element") as error:
        argreduce.define(te.placeholder((4, 0), name="A"))

    assert str(error.value) == (
        "argreduce.define: axis 1 of A has no elements; pass at least one element"
    )
