"""Dtypes: names, promotion, ranges and conversions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import array_api_strict
import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import NUMPY_FLOATS, standard
from tests.strategies.elements import elements

NAMES = standard()
KINDS = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric",
)
"""Kinds of the array API standard."""


def test_names_of_types_and_numbers() -> None:
    for name in NAMES:
        assert getattr(xp, name) == np.dtype(name)
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)


def test_promotion_matches_the_standard() -> None:
    for first, second in itertools.product(NAMES, NAMES):
        strict = [getattr(array_api_strict, name) for name in (first, second)]
        try:
            expected = str(array_api_strict.result_type(*strict)).rpartition(".")[2]
        except TypeError:  # The standard defines no promotion.
            continue
        assert xp.result_type(np.dtype(first), xp.zeros((), dtype=second)).name == expected
        if expected == second:
            assert xp.can_cast(np.dtype(first), np.dtype(second))


def test_can_cast_rejects_lossy_casts() -> None:
    assert not xp.can_cast(xp.int64, xp.uint64)
    assert not xp.can_cast(xp.zeros(1, dtype=xp.complex64), xp.float64)
    assert not xp.can_cast(xp.float64, xp.complex64)


@pytest.mark.parametrize(("argument", "expected"), [
    (("int8", 1), "int8"), (("float32", 1), "float32"), (("float32", 1.5), "float32"),
    (("float32", 1j), "complex64"), (("complex64", 1.5, 2), "complex64"), (("bool", True), "bool"),
    (("int8", "uint8", 3), "int16"),
])
def test_numbers_take_part_in_types(argument: tuple[Any, ...], expected: str) -> None:
    parts = [np.dtype(part) if isinstance(part, str) else part for part in argument]
    assert xp.result_type(*parts) == np.dtype(expected)
    assert xp.result_type(*reversed(parts)) == np.dtype(expected)


def test_types_are_of_kinds() -> None:
    for name, kind in itertools.product(NAMES, KINDS):
        strict = array_api_strict.isdtype(getattr(array_api_strict, name), kind)
        assert xp.isdtype(np.dtype(name), kind) == strict, (name, kind)
        assert xp.isdtype(np.dtype(name), ("bool", kind, xp.int8)) == (
            strict or name in ("bool", "int8"))
    assert xp.isdtype(xp.float32, xp.float32)
    assert not xp.isdtype(xp.float32, xp.float64)


def test_ranges_of_types() -> None:
    for name in NAMES:
        if name.startswith(("int", "uint")):
            info, limits = np.iinfo(name), xp.iinfo(np.dtype(name))
            assert (limits.bits, limits.max, limits.min, limits.dtype) == (info.bits, info.max, info.min, info.dtype)
            assert type(limits.max) is int
    for name in (*NUMPY_FLOATS, *standard("complex floating")):
        numbers = np.finfo(name)
        floats = xp.finfo(xp.zeros(1, dtype=name))
        assert floats.bits == numbers.bits
        assert floats.dtype == numbers.dtype
        for field in ("eps", "max", "min", "smallest_normal"):
            assert getattr(floats, field) == float(getattr(numbers, field))
            assert type(getattr(floats, field)) is float
    assert xp.finfo("bfloat16").eps == 2.0**-7


@pytest.mark.exhaustive
def test_elements_are_converted_as_by_numpy() -> None:
    for source, target in itertools.product((*NAMES, "float16"), NAMES):
        if source.startswith("complex") and not target.startswith(("complex", "bool")):
            continue
        x = elements(source, 100)
        if source.startswith("float") and target.startswith(("int", "uint")):
            info = np.iinfo(target)
            widened = x.astype("float64")
            x = np.where((widened > info.min) & (widened < info.max), x, x.dtype.type(1.5))
        with np.errstate(all="ignore"):
            expected = x.astype(target)
        result = xp.astype(xp.asarray(x), np.dtype(target))
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(result), expected, f"{source} {target}")


def test_out_of_range_numbers_saturate() -> None:
    x = xp.asarray([float("nan"), float("inf"), float("-inf"), 300.0, -1.0])
    np.testing.assert_array_equal(np.asarray(xp.astype(x, xp.uint8)), [0, 255, 0, 255, 0])


def test_conversion_without_copy_gives_the_array_itself() -> None:
    x = xp.asarray([1.0, 2.0])
    assert xp.astype(x, xp.float64, copy=False) is x
    y = xp.astype(x, xp.float64)
    x[0] = 5.0
    assert float(y[0]) == 1.0
    assert xp.astype(x, xp.float32, device="cpu").device == "cpu"


@pytest.mark.parametrize(("call", "error", "expected"), [
    (lambda: xp.astype(xp.asarray([1j]), xp.float32), ArrayTypeError,
     Diagnostic("array-type", dtype="complex128", subject_dtype="float32")),
    (lambda: xp.isdtype(xp.int8, "integer"), ArrayValueError,
     Diagnostic(
         "unknown-choice", name="integer",
         kinds="'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric'",
     )),
    (lambda: xp.result_type(1, 2.0), ArrayValueError,
     Diagnostic("missing-input", where="result_type")),
    (lambda: xp.result_type(xp.int8, 1000), ArrayTypeError,
     Diagnostic("array-type", where="result_type", value=1000, dtype="int8", minimum=-128, maximum=127)),
    (lambda: xp.astype(xp.asarray([1]), None), ArrayTypeError,
     Diagnostic(
         "array-type", where="astype", name="None",
         all="bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
     )),
    (lambda: xp.iinfo(xp.float32), ArrayTypeError,
     Diagnostic(
         "array-type", where="iinfo", subject="the element dtype is", dtype="float32",
         supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64",
     )),
    (lambda: xp.finfo(xp.int8), ArrayTypeError,
     Diagnostic(
         "array-type", where="finfo", subject="the element dtype is", dtype="int8",
         supported="float16, bfloat16, float32, float64, complex64, complex128",
     )),
    (lambda: xp.astype([1], xp.int8), ArrayTypeError,  # type: ignore[arg-type]
     Diagnostic("not-an-array", where="astype", subject="x", type="list")),
])
def test_refusals(call: Any, error: type[Exception], expected: Diagnostic) -> None:
    with pytest.raises(error) as caught:
        call()
    assert diagnostic(caught.value) == expected
