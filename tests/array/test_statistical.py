"""Sums, products, extrema, moments, `any`, `all` and cumulative sums agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tecomp.operations import CUMULATIVE, INTEGERS
from tests.array.drawn import ALL, FLOATS, NUMBERS, array, check, draw
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.operations.references import AXES_REDUCTIONS, numpy_reduction, takes

REAL = [*INTEGERS, *FLOATS]
SHAPE = (2, 3, 4)
AXES = [None, 0, -1, (0, 2), (), (1,)]
def function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(xp, name)
    return found


def cases() -> list[Any]:
    """Return each function with each dtype; axes alternate, so that each function has each axis."""
    turns = cycle([(axis, keeps) for keeps in (False, True) for axis in AXES])
    return [
        pytest.param(name, dtype, *next(turns), id=f"{name}-{dtype}")
        for name, row in AXES_REDUCTIONS.items() for dtype in ALL if takes(row, dtype)
    ]


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize(("name", "dtype", "axis", "keepdims"), cases())
def test_reductions(name: str, dtype: str, axis: Any, keepdims: bool) -> None:
    x = draw(SHAPE, dtype)
    actual = function(name)(array(x), axis=axis, keepdims=keepdims)
    check(actual, numpy_reduction(AXES_REDUCTIONS[name])(x, axis=axis, keepdims=keepdims))


@pytest.mark.exhaustive(keep=13)
@pytest.mark.parametrize("name", AXES_REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 5)])
@np.errstate(invalid="ignore", divide="ignore")
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
def test_reductions_of_few_elements_and_of_none(name: str, shape: tuple[int, ...]) -> None:
    x = draw(shape, "float32")
    if x.size == 0 and AXES_REDUCTIONS[name].needs_elements:
        axis = shape.index(0)
        with pytest.raises(ArrayValueError) as refused:
            function(name)(array(x))
        assert diagnostic(refused.value) == (
            Diagnostic("array-shapes", where=name, shape=shape, empty=axis)
        )
        x = x.reshape(0, 4)
        check(function(name)(array(x), axis=1), np.zeros(0, "float32"))
        return
    check(function(name)(array(x)), numpy_reduction(AXES_REDUCTIONS[name])(x))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("correction", [1, 0.5])
def test_variance_of_a_sample(dtype: str, correction: float) -> None:
    x = draw(SHAPE, dtype)
    actual = xp.var(array(x), axis=1, correction=correction)
    check(actual, np.var(x, axis=1, ddof=correction))
    spread = xp.std(array(x[:1]), axis=0, correction=1)
    assert np.isnan(np.asarray(spread)).all()


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_nan(name: str) -> None:
    x = np.array([[1, np.nan, 3], [np.inf, 2, -np.inf], [-0.0, 0.0, 1]], "float32")
    check(function(name)(array(x), axis=1), getattr(np, name)(x, axis=1))
    check(function(name)(array(x)), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize(
    ("argument", "expected"), [("int8", "int16"), ("float32", "float64"), ("uint8", "complex64")])
def test_results_of_another_type(name: str, argument: str, expected: str) -> None:
    x = draw(SHAPE, argument)
    actual = function(name)(array(x), axis=(0, 1), dtype=np.dtype(expected))
    check(actual, getattr(np, name)(x, axis=(0, 1), dtype=expected))


def test_sums_of_narrow_integers_do_not_overflow() -> None:
    x = np.full((3, 100), 127, "int8")
    check(xp.sum(array(x)), np.int64(38100))
    check(xp.prod(array(np.full(6, 127, "int8"))), np.int64(127) ** 6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_many_are_as_exact_as_pairwise_ones(dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = (rng.random((300, 1000)) + 1).astype(dtype)
    exact = np.sum(x.astype(np.longdouble))
    for name, expected in (("sum", exact), ("mean", exact / x.size)):
        if name == "sum" and dtype == "float16":
            continue  # the sum overflows
        actual = float(function(name)(array(x)))
        assert abs(actual - float(expected)) <= 4 * float(np.spacing(np.dtype(dtype).type(expected)))


@pytest.mark.exhaustive(keep=1, most=10)
@pytest.mark.parametrize("name", [*CUMULATIVE, *(f"cumulative_{name}" for name in CUMULATIVE)])
@pytest.mark.parametrize("dtype", [None, "uint8", "float32", "complex128"])
def test_booleans_are_summed_as_integers(name: str, dtype: str | None) -> None:
    x = draw(SHAPE, "bool")
    for axis in (0, -1):
        actual = function(name)(array(x), axis=axis, dtype=dtype)
        check(actual, getattr(np, name)(x, axis=axis, dtype=dtype))
    on_device = function(name)(xp.asarray(x, device="stick128"), axis=0)
    assert on_device.dtype == np.int32
    np.testing.assert_array_equal(np.asarray(on_device), getattr(np, name)(x, axis=0))


def test_variance_of_numbers_far_from_zero() -> None:
    x = (np.random.default_rng(7).standard_normal(1000) + 1e4).astype("float32")
    expected = np.var(x.astype("float64"))
    assert_close(float(xp.var(array(x))), expected, rtol=1e-6)


@pytest.mark.exhaustive(most=2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float64", "float32"])
@pytest.mark.parametrize("shape", [(1,), (300,), (5, 300), (300, 5), (3, 40, 5)])
def test_cumulative_sum_of_long_rows_of_any_strides(shape: tuple[int, ...], dtype: str) -> None:
    x = draw(shape, dtype)
    turned = np.asfortranarray(x)
    gaps = np.stack([x, x], axis=-1)[..., 0]
    for axis in range(len(shape)):
        for argument in (x, turned, gaps):
            result = xp.cumulative_sum(array(argument) * 2, axis=axis)
            assert_close(
                np.asarray(result), np.cumulative_sum(x * 2, axis=axis), rtol=1e-5, atol=1e-4)
        actual = xp.cumulative_sum(array(turned), axis=axis)
        assert_close(
            np.asarray(actual), np.cumulative_sum(x, axis=axis), rtol=1e-5, atol=1e-4)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_running(name: str, dtype: str) -> None:
    x, turn = draw((3, 4), dtype), NUMBERS.index(dtype)
    axis, initial = turn % 2, turn % 3 == 0
    actual = function(name)(array(x), axis=axis, include_initial=initial)
    check(actual, getattr(np, name)(x, axis=axis, include_initial=initial))
    actual = function(name)(array(x[0]), include_initial=not initial)
    check(actual, getattr(np, name)(x[0], include_initial=not initial))


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (2, 3, 40)])
@pytest.mark.parametrize("initial", [False, True])
def test_running_over_rows_of_all_lengths(
    name: str, shape: tuple[int, ...], initial: bool
) -> None:
    x = draw(shape, "float64")
    for axis in range(x.ndim):
        actual = function(name)(array(x), axis=axis, include_initial=initial)
        check(actual, getattr(np, name)(x, axis=axis, include_initial=initial))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_of_extremes(name: str, dtype: str) -> None:
    x, turn = draw((4, 5), dtype), REAL.index(dtype)
    axis = [None, 0, 1, -2][turn % 4]
    check(
        function(name)(array(x), axis=axis, keepdims=turn % 2 == 0),
        getattr(np, name)(x, axis=axis, keepdims=turn % 2 == 0),
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_several_extremes_is_found(name: str) -> None:
    rows = np.array([[1, 3, 3, 0, 0], [2, np.nan, np.inf, np.nan, -np.inf]])
    check(function(name)(array(rows), axis=1), getattr(np, name)(rows, axis=1))
    check(function(name)(array(rows)), getattr(np, name)(rows))
    check(function(name)(array(np.float32(2))), np.int64(0))
    with pytest.raises(ArrayValueError) as refused:
        function(name)(array(np.zeros((2, 0))), axis=1)
    assert diagnostic(refused.value) == (
        Diagnostic("array-shapes", where=name, shape=(2, 0), empty=1)
    )


def test_refusals() -> None:
    x: Any = array(np.zeros((2, 3), "bool"))
    zeros: Any = np.zeros(3)
    no_number: Any = "1"
    refused_calls: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
        (lambda: xp.sum(x, dtype=np.bool), ArrayTypeError,
         Diagnostic(
             "array-type", where="sum", subject="the element dtype is", dtype="bool",
             supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
         )),
        (lambda: xp.all(x, axis=2), ArrayIndexError,
         Diagnostic(
             "array-index", where="all", subject="axis", value=2, rank=2, numbers="from -2 to 1",
         )),
        (lambda: xp.any(x, axis=(0, -2)), ArrayValueError,
         Diagnostic("array-value", where="any", axes=(0, -2), rank=2)),
        (lambda: xp.any(x, axis=no_number), ArrayTypeError,
         Diagnostic("array-type", where="any", subject="axis", axis="1")),
        (lambda: xp.any(zeros), ArrayTypeError,
         Diagnostic("not-an-array", where="any", subject="x", type="ndarray")),
        (lambda: xp.var(array(np.zeros(3)), correction=no_number), ArrayTypeError,
         Diagnostic("array-type", where="var", correction="1")),
        (lambda: xp.sum(array(np.zeros(3, "complex64")), dtype=np.float32),
         ArrayTypeError,
         Diagnostic("array-type", where="sum", dtype="complex64", expected="float32")),
        (lambda: xp.cumulative_sum(array(np.zeros((2, 3)))), ArrayValueError,
         Diagnostic("array-shapes", where="cumulative_sum", shape=(2, 3), rank=2)),
        (lambda: xp.cumulative_prod(array(2.0)), ArrayValueError,
         Diagnostic("array-shapes", where="cumulative_prod")),
    ]
    for call, kind, expected in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert diagnostic(refused.value) == expected
