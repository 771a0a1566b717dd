"""Operators agree with the functions, with scalar operands on either side, and in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.statistics import counters
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.dtypes import NUMPY_FLOATS
from tests.strategies.elements import distances, elements

ARITHMETIC = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "pow": operator.pow,
}
BITS = {
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
}
TESTS: dict[str, Any] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}
SIGNS: dict[str, Any] = {
    "negative": operator.neg, "positive": operator.pos, "abs": operator.abs,
    "bitwise_invert": operator.invert,
}
_INPLACE: Any = operator
INPLACE = {kind: f"__i{f.__name__.strip('_')}__" for kind, f in (ARITHMETIC | BITS).items()}


def same(result: Any, expected: Any) -> None:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("kind", [*ARITHMETIC, *BITS, *TESTS])
def test_operators_are_the_functions(kind: str) -> None:
    function = (ARITHMETIC | BITS | TESTS)[kind]
    dtype = "uint8" if kind in BITS else "float32"
    x, y = xp.asarray(elements(dtype, 50)), xp.asarray(elements(dtype, 50, 1))
    named = getattr(xp, kind)
    same(function(x, y), named(x, y))
    number = 3 if kind in BITS else 2.5
    same(function(x, number), named(x, number))
    same(function(number, x), named(number, x))


@pytest.mark.parametrize("kind", SIGNS)
def test_operators_of_one_array(kind: str) -> None:
    x = xp.asarray(elements("int16", 50))
    same(SIGNS[kind](x), getattr(xp, kind)(x))


@pytest.mark.parametrize("kind", INPLACE)
def test_in_place_is_a_new_value_under_the_same_name(kind: str) -> None:
    dtype = "int32" if kind in BITS else "float64"
    x, y = xp.asarray(elements(dtype, 20)), xp.asarray(elements(dtype, 20, 1)[:1])
    before, old = x + 0, x
    expected = getattr(xp, kind)(x, y)
    x = getattr(operator, INPLACE[kind])(x, y)
    assert x is old
    same(x, expected)
    assert before.shape == x.shape
    x = getattr(operator, INPLACE[kind])(x, 3)
    same(x, getattr(xp, kind)(expected, 3))


def test_in_place_operators_keep_referenced_values() -> None:
    x = xp.asarray([1.0, 2.0])
    y = x + 1
    view = x[:1]
    x += 5
    assert [float(e) for e in (*x, *y, *view)] == [6, 7, 2, 3, 6]


@pytest.mark.parametrize(("change", "error", "expected"), [
    (lambda x: _INPLACE.iadd(x, 1.5), ArrayTypeError,
     Diagnostic(
         "array-type", where="add", new="ptensor<2xfloat64, device='cpu'>",
         old="ptensor<2xint64, device='cpu'>",
     )),
    (lambda x: _INPLACE.iadd(x, xp.zeros((3, 2), dtype=xp.int64)), ArrayTypeError,
     Diagnostic(
         "array-type", where="add", new="ptensor<3x2xint64, device='cpu'>",
         old="ptensor<2xint64, device='cpu'>",
     )),
    (lambda x: _INPLACE.itruediv(x, x), ArrayTypeError,
     Diagnostic(
         "array-type", where="divide", new="ptensor<2xfloat64, device='cpu'>",
         old="ptensor<2xint64, device='cpu'>",
     )),
    (lambda x: _INPLACE.iadd(x, xp.zeros(3, dtype=xp.int64)), ArrayValueError,
     Diagnostic("array-shapes", where="add", texts="(2,) and (3,)", axis=-1, extents="2 and 3")),
    (lambda x: (x == x) - (x == x), ArrayTypeError,
     Diagnostic(
         "array-type", where="subtract", dtype="bool and bool",
         supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
     )),
    (lambda x: (x == x) & 1.5, ArrayTypeError,
     Diagnostic(
         "array-type", where="bitwise_and", dtype="bool and float64",
         supported="bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64",
     )),
])
def test_refusals(change: Callable[[Any], Any], error: type[Exception], expected: Diagnostic) -> None:
    x = xp.asarray([1, 2])
    with pytest.raises(error) as caught:
        change(x)
    assert diagnostic(caught.value) == expected
    assert [int(e) for e in x] == [1, 2]


def test_foreign_operands_return_not_implemented() -> None:
    x = xp.asarray([1.0, 2.0])
    for other in (None, "text", object()):
        assert [x == other, x != other] == [False, True]
        for function in (*ARITHMETIC.values(), *BITS.values(), operator.lt, operator.ge):
            with pytest.raises(TypeError):
                function(x, other)
            if other == "text" and function is operator.mod:
                continue  # string formatting
            with pytest.raises(TypeError):
                function(other, x)
    with pytest.raises(TypeError):
        hash(x)


def test_numbers_of_numpy_are_numbers() -> None:
    x = xp.asarray(np.array([1, 2], "float32"))
    for number in (np.float64(2.5), np.float32(2.5)):
        same(number * x, 2.5 * x)
        same(x - number, x - 2.5)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32", "float64"])
def test_squares_are_powers(dtype: str) -> None:
    data = elements(dtype, 100)
    x = xp.asarray(data)
    with np.errstate(all="ignore"):
        expected = data * data
    for result in (x**2, xp.pow(x, 2), _INPLACE.ipow(xp.asarray(data), 2)):
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(result), expected)
    assert (x**2.0).dtype == xp.result_type(x, 2.0)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
def test_cubes_are_powers(dtype: str) -> None:
    data = elements(dtype, 300)
    result = np.asarray(xp.asarray(data) ** 3)
    assert result.dtype == np.dtype(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(data, np.array(3, dtype))
    if dtype.startswith("float"):
        assert distances(result, expected).max() <= 2
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", NUMPY_FLOATS)
def test_inverses_are_powers(dtype: str) -> None:
    data = elements(dtype, 100)
    with np.errstate(all="ignore"):
        expected = np.ones((), dtype) / data
    for number in (-1, -1.0):
        result = xp.asarray(data) ** number
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(result), expected)
    powers = xp.pow(xp.asarray(data), -xp.ones((1,), dtype=np.dtype(dtype)))
    assert_close(np.asarray(powers).astype("float64"), expected.astype("float64"),
                               rtol=float(2 * np.finfo(dtype).eps))


def test_numbers_are_no_reason_to_compile_again() -> None:
    x = xp.asarray(np.ones(7, "float32"))
    np.asarray(x * 1.5 + 2)
    before = counters.compiled
    for k in range(5):
        assert float((x * (k + 0.5) + k)[0]) == 2 * k + 0.5
    assert counters.compiled == before


@pytest.mark.parametrize("power", [-1.5, -0.5, 0.5, 1.5])
@pytest.mark.parametrize("dtype", NUMPY_FLOATS)
def test_powers_of_roots_are_powers(dtype: str, power: float) -> None:
    random = np.random.default_rng(0)
    kind, limits = np.dtype(dtype), np.finfo(dtype)
    low, high = np.log2(float(limits.smallest_normal)) - 5, np.log2(float(limits.max))
    data = np.exp2(random.uniform(low, high, 5000)).astype(kind)
    data[:4], data[4:14] = -data[:4], [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 4, 0.25, 9]
    found = np.asarray(xp.asarray(data) ** power)

    widened = data.astype(np.longdouble)
    with np.errstate(all="ignore"):
        expected = np.power(widened, power).astype(kind)  # the operator uses roots, which differ
    assert distances(found, expected).max() <= 2
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
