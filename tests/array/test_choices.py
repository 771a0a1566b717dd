"""Element selection with `where` and `clip`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError
from tecomp.ptensor import PTensorType, WhereOp
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import standard
from tests.strategies.elements import Data, elements

REAL = standard("integral", "real floating")


@pytest.mark.parametrize("dtype", standard())
def test_elements_are_chosen(dtype: str) -> None:
    test, x, y = elements("bool", 100), elements(dtype, 100), elements(dtype, 100, 1)
    result = xp.where(xp.asarray(test), xp.asarray(x), xp.asarray(y))
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(result), np.where(test, x, y))


@pytest.mark.parametrize(("x", "y", "expected"), [
    (1.5, np.array([1, 2], "float32"), "float32"), (np.array([1, 2], "int8"), 3, "int8"), (1, 2, "int64"),
    (1, 2.5, "float64"), (True, False, "bool"), (1j, 2, "complex128"), (1j, True, "complex128"),
    (np.array([1, 2], "int8"), np.array([3, 4], "uint8"), "int16"), (1j, np.array([1, 2], "float32"), "complex64"),
])
def test_numbers_take_the_type_of_the_array(x: Any, y: Any, expected: str) -> None:
    test = np.array([[True, False], [False, True]])
    inputs = [xp.asarray(part) if isinstance(part, np.ndarray) else part for part in (x, y)]
    result = xp.where(xp.asarray(test), *inputs)
    assert result.dtype == np.dtype(expected)
    np.testing.assert_array_equal(np.asarray(result), np.where(test, x, y))


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("dtype", REAL)
def test_clip_limits_elements_to_bounds(dtype: str) -> None:
    x, low, high = (elements(dtype, 200, seed) for seed in range(3))
    low, high = np.minimum(low, high), np.maximum(low, high)
    for some in itertools.product((False, True), repeat=2):
        bounds = [b if inputs else None for b, inputs in zip((low, high), some, strict=True)]
        inputs = [None if b is None else xp.asarray(b) for b in bounds]
        result = xp.clip(xp.asarray(x), *inputs)
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(result), _clipped(x, *bounds))


def _clipped(x: Data, low: Data | None, high: Data | None) -> Data:
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def test_bounds_are_numbers_and_broadcast() -> None:
    x = np.array([[-1.5, 0.5], [2.5, np.nan]])
    result = xp.clip(xp.asarray(x), min=0, max=xp.asarray([1.0, 2.0]))
    np.testing.assert_array_equal(np.asarray(result), [[0, 0.5], [1, np.nan]])
    assert xp.clip(xp.asarray(1.5), max=xp.zeros((2, 1))).shape == (2, 1)
    same = xp.asarray(x)
    np.testing.assert_array_equal(np.asarray(xp.clip(same)), x)
    assert xp.clip(same) is not same


def test_bounds_beyond_a_type_bound_nothing() -> None:
    x = np.array([0, 100, 255], "uint8")
    np.testing.assert_array_equal(np.asarray(xp.clip(xp.asarray(x), -5, 300)), x)
    bounds = xp.asarray([-5, -5, 1000]), xp.asarray([50, 2000, 2000])
    result = xp.clip(xp.asarray(x), *bounds)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(np.asarray(result), [0, 100, 255])
    wide = xp.clip(xp.asarray([2**63, 5], dtype=xp.uint64), xp.asarray([-1, 7]))
    assert [int(wide[0]), int(wide[1])] == [2**63, 7]


def test_nonzero_conditions_are_true() -> None:
    test = np.array([0.0, -0.0, 2.0, np.nan])
    found = xp.where(xp.asarray(test), xp.asarray([1, 2, 3, 4]), 0)
    np.testing.assert_array_equal(np.asarray(found), np.where(test, [1, 2, 3, 4], 0))
    (places,) = xp.where(xp.asarray(test))
    np.testing.assert_array_equal(np.asarray(places), np.where(test)[0])
    with pytest.raises(ArrayTypeError) as refused:
        WhereOp().infer(PTensorType((1,), "int64"), PTensorType((), "int64"), PTensorType((), "int64"))
    assert diagnostic(refused.value) == (
        Diagnostic("array-type", dtype="int64")
    )


@pytest.mark.parametrize(("call", "error", "expected"), [
    (lambda: xp.clip(xp.asarray([1]), 0.5), ArrayTypeError,
     Diagnostic("array-type", subject="min", dtype="float64", type_dtype="int64", allowed="an integer")),
    (lambda: xp.clip(xp.asarray([1.5]), max=xp.asarray([1])), ArrayTypeError,
     Diagnostic(
         "array-type", subject="max", dtype="int64", type_dtype="float64", allowed="a real number",
     )),
    (lambda: xp.clip(xp.asarray([1j])), ArrayTypeError,
     Diagnostic(
         "array-type", where="clip", subject="the element dtype is", dtype="complex128",
         supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64",
     )),
    (lambda: xp.clip(xp.asarray([1], dtype=xp.int8), 200), ArrayTypeError,
     Diagnostic("array-type", where="clip", value=200, dtype="int8", minimum=-128, maximum=127)),
    (lambda: xp.clip(xp.zeros(2), xp.zeros(3)), ArrayValueError,
     Diagnostic("array-shapes", where="clip", texts="(2,) and (3,)", axis=-1, extents="2 and 3")),
    (lambda: xp.where(xp.asarray([1]), 1, None), ArrayTypeError,  # type: ignore[call-overload]
     Diagnostic("not-an-array", where="where", subject="x2", class_="NoneType")),
    (lambda: xp.where(xp.asarray([True]), "1", 2), ArrayTypeError,  # type: ignore[call-overload]
     Diagnostic("not-an-array", where="where", subject="x1", class_="str")),
    (lambda: xp.clip(xp.zeros(2, dtype="float32"), xp.zeros(2, device="stick128")), DeviceMismatchError,
     Diagnostic(
         "device-mismatch", where="clip", first="ptensor<2xfloat32, device='cpu'>", k=1,
         other="ptensor<2xfloat32, device='stick128'>", device="cpu",
     )),
])
def test_refusals(call: Any, error: type[Exception], expected: Diagnostic) -> None:
    with pytest.raises(error) as caught:
        call()
    assert diagnostic(caught.value) == expected
