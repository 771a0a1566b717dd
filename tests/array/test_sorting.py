"""Sorting and searching agree with NumPy, and library calls are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.statistics import counters
from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tests.array.drawn import FLOATS, array, check, draw
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import standard

REAL = [*standard("integral"), *FLOATS]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_orders(dtype: str, stable: bool, axis: int) -> None:
    x = draw((4, 3), dtype)
    check(xp.sort(array(x), axis=axis, stable=stable), np.sort(x, axis))
    down = xp.sort(array(x), axis=axis, stable=stable, descending=True)
    check(down, np.flip(np.sort(x, axis), axis))
    for descending in (False, True):
        places = xp.argsort(array(x), axis=axis, stable=stable, descending=descending)
        found = np.take_along_axis(x, np.asarray(places), axis)
        check(xp.sort(array(x), axis=axis, descending=descending), found)


def test_equal_elements_stay_in_their_order() -> None:
    x = np.array([1, 0, 1, 0, 1], "float32")
    check(xp.argsort(array(x)), np.array([1, 3, 0, 2, 4]))
    check(xp.argsort(array(x), descending=True), np.array([0, 2, 4, 1, 3]))
    zeros = np.array([0.0, -0.0, 1, -0.0])
    signs = np.signbit(np.asarray(xp.sort(array(zeros), descending=True)))
    assert signs.tolist() == [False, False, True, True]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_of_both_signs_stay_in_their_order_in_long_rows(dtype: str, descending: bool) -> None:
    random = np.random.default_rng(0)
    x = random.choice(np.array([0.0, -0.0, 1.0, -2.0, 3.0]), (3, 500)).astype(dtype)
    for rows in (x, np.abs(x), x + np.array(1e-3, dtype)):
        order = np.argsort(-rows if descending else rows, axis=-1, kind="stable")
        expected = np.take_along_axis(rows, order, -1)
        found = np.asarray(xp.sort(array(rows), descending=descending))
        check(xp.sort(array(rows), descending=descending), expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_no_number_is_the_greatest() -> None:
    x = np.array([np.nan, 1, -np.inf, np.inf])
    check(xp.sort(array(x)), np.array([-np.inf, 1, np.inf, np.nan]))
    check(xp.sort(array(x), descending=True), np.array([np.nan, np.inf, 1, -np.inf]))


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0, 3)])
def test_orders_of_few_elements_and_of_none(shape: tuple[int, ...]) -> None:
    x = draw(shape, "float64")
    check(xp.sort(array(x), axis=0), x)
    check(xp.argsort(array(x), axis=0), np.zeros(shape, "int64"))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
def test_places_in_a_row(dtype: str, side: Any) -> None:
    x, values = draw((9,), dtype), draw((2, 3), dtype, 1)
    row = np.sort(x)
    check(xp.searchsorted(array(row), array(values), side=side), np.searchsorted(row, values, side))
    order = np.argsort(x)
    sorter = array(order.astype("uint64" if side == "right" else "int8"))
    found = xp.searchsorted(array(x), array(values), side=side, sorter=sorter)
    check(found, np.searchsorted(x, values, side, order))
    check(xp.searchsorted(array(row), 2, side=side), np.searchsorted(row, np.array(2), side))


def test_calls_of_the_library_are_counted() -> None:
    before = counters.libraries.copy()
    xp.sort(array(np.zeros(3)) + 1)
    xp.argsort(array(np.zeros(3)))
    assert counters.libraries - before == {"numpy.sort": 1, "numpy.argsort": 1}


def test_results_are_where_the_operands_are() -> None:
    x = xp.asarray(np.arange(3, dtype="float32"), device="stick128")
    for result in (xp.sort(x), xp.unique_values(x), xp.searchsorted(x, x), xp.isin(x, x)):
        assert result.device == "stick128"


def test_refusals() -> None:
    x: Any = array(np.zeros((2, 3)))
    no_side: Any = "middle"
    refused_calls: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
        (lambda: xp.sort(array(np.zeros(2, "complex64"))), ArrayTypeError,
         Diagnostic(
             "array-type", where="sort", subject="the element dtype is", dtype="complex64",
             supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64",
         )),
        (lambda: xp.argsort(x, axis=2), ArrayIndexError,
         Diagnostic(
             "array-index", where="argsort", subject="axis", value=2, rank=2, numbers="from -2 to 1",
         )),
        (lambda: xp.searchsorted(x, x), ArrayValueError,
         Diagnostic("array-shapes", shape=(2, 3))),
        (lambda: xp.searchsorted(x[0], x, side=no_side), ArrayValueError,
         Diagnostic(
             "array-value", where="searchsorted", subject="side", value="middle", name="'left'",
             other_name="'right'",
         )),
        (lambda: xp.searchsorted(x[0], x, sorter=array(np.array([0, 3, 1], "uint64"))), ArrayIndexError,
         Diagnostic("array-index", index=3, size=3)),
        (lambda: xp.searchsorted(x[0], x, sorter=array(np.array([0, 1, -1], "int8"))), ArrayIndexError,
         Diagnostic("array-index", index=-1, size=3)),
        (lambda: xp.searchsorted(x[0], x, sorter=x[0]), ArrayTypeError,
         Diagnostic(
             "array-type", sorter="ptensor<3xfloat64, device='cpu'>",
             x="ptensor<3xfloat64, device='cpu'>",
         )),
    ]
    for call, kind, expected in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert diagnostic(refused.value) == expected
