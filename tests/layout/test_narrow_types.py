"""Narrow floats: all codes, and values of all dtypes, against ml_dtypes and fractions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import DType
from tecomp.layout import DLFLOAT16, FLOAT8_E5M2, SmallFloat, storage_format
from tecomp.operations import element_type
from tests.strategies.dtypes import FLOATS_WITH_ZERO

Array = np.ndarray[Any, Any]

FLOAT8 = [name for name in FLOATS_WITH_ZERO if DType(name).bits == 8]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 448, 464, 465, -480, 57344, 61440, 61439]


def bits_of_all_kinds() -> Array:
    """Return float32 values: random bit patterns, all float16 values and random magnitudes."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 50_000, np.uint64).astype(np.uint32).view(np.float32)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    sizes = rng.standard_normal(50_000) * 10.0 ** rng.integers(-9, 9, 50_000)
    return np.concatenate([patterns, halves, sizes.astype(np.float32), np.array(SPECIAL, np.float32)])


def ml_dtype(name: str) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def same_but_for_nan(found: Array, expected: Array) -> bool:
    a, b = found.astype(np.float32), expected.astype(np.float32)
    signs = np.signbit(a) == np.signbit(b)
    return bool(np.all(((a == b) & signs) | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("name", FLOAT8)
def test_every_code_of_8_bits(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(ml_dtype(name))

    assert same_but_for_nan(storage_format(name).decode_array(codes), expected)
    assert same_but_for_nan(storage_format(name).decode_array(codes, "float16"), expected)


@pytest.mark.exhaustive(keep=18)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "int32", "int8"])
@pytest.mark.parametrize("name", FLOAT8)
def test_values_to_8_bits(name: str, dtype: str) -> None:
    is_int = dtype.startswith("int")
    values = np.arange(-2000, 2000) if is_int else bits_of_all_kinds()
    with np.errstate(all="ignore"):
        source = values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        expected = source.astype(ml_dtype(name))

    found = storage_format(name).encode_array(source)

    assert same_but_for_nan(found.view(ml_dtype(name)), expected)


def nearest(values: Array, numbers: Array) -> Array:
    """Return the index of the nearest element of ascending `numbers`; ties go to the even index."""
    above = np.searchsorted(numbers, values).clip(1, len(numbers) - 1)
    down, up = values - numbers[above - 1], numbers[above] - values
    chosen: Array = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    return chosen


@pytest.mark.parametrize("name", FLOAT8)
def test_float64_is_rounded_once(name: str) -> None:
    """Float64 is rounded once, also next to midpoints, where rounding via float32 is wrong."""
    numbers = np.arange(element_type(name).largest_code + 1, dtype=np.uint8).view(ml_dtype(name)).astype(np.float64)
    middles = (numbers[1:] + numbers[:-1]) / 2
    values = np.concatenate([middles * (1 + k * 2.0**-50) for k in (-1, 0, 1)])

    found = storage_format(name).encode_array(values)

    assert np.array_equal(found, nearest(values, numbers))


@pytest.mark.parametrize("name", FLOAT8)
def test_saturating(name: str) -> None:
    full = SmallFloat(**{**vars(storage_format(name)), "saturate": True})
    greatest = float(ml_dtypes.finfo(ml_dtype(name)).max)  # type: ignore[no-untyped-call]

    stored = full.encode_array(np.array([1e9, -np.inf, greatest, 0.5, np.nan]))

    found = full.decode_array(stored)
    assert found[:4].tolist() == [greatest, -greatest, greatest, 0.5]
    assert np.isnan(found[4])


def dlfloat16_values() -> Array:
    """Return the values of the 32768 non-negative codes, by the description of the format."""
    codes = np.arange(2**15)
    exponent, fraction = codes >> 9, codes & 511
    values = (1 + fraction / 512) * 2.0 ** (exponent - 31)
    values[0], values[-1] = 0, np.nan
    return values


def test_every_code_of_dlfloat16() -> None:
    expected = np.concatenate([dlfloat16_values(), -dlfloat16_values()])

    found = DLFLOAT16.decode_array(np.arange(2**16, dtype=np.uint16))

    assert same_but_for_nan(found, expected)
    assert np.array_equal(
        DLFLOAT16.encode_array(found) & 0x7FFF, np.arange(2**16, dtype=np.uint16) & 0x7FFF
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_to_dlfloat16(dtype: str) -> None:
    """Rounding is to nearest, ties away from 0; underflow gives 0, overflow and inf all ones."""
    numbers = dlfloat16_values()[:-1]
    middles = (numbers[2:] + numbers[1:-1]) / 2
    source = bits_of_all_kinds()
    values = np.concatenate([source[np.isfinite(source)].astype(np.float64), numbers, middles])
    values = values[(np.abs(values) >= numbers[1]) & (np.abs(values) <= numbers[-1])]
    values = values.astype(dtype).astype(np.float64)
    above = np.searchsorted(numbers, np.abs(values))
    takes_upper = numbers[above] - np.abs(values) <= np.abs(values) - numbers[above - 1]
    expected = np.where(takes_upper, above, above - 1) | (np.signbit(values) << 15)

    found = DLFLOAT16.encode_array(values.astype(dtype))

    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0.0, 0), (-0.0, 0x8000), (2.0**-31, 0), (2.0**-31 * (1 + 2**-10), 1), (2.0**-40, 0),
        (-(2.0**-31) * (1 + 2**-9), 0x8001), (2.0**33 - 2**24, 0x7FFE), (2.0**33 - 2**23, 0x7FFF),
        (np.inf, 0x7FFF), (-np.inf, 0xFFFF), (1e38, 0x7FFF), (np.nan, 0x7FFF),
    ],
)
def test_the_ends_of_dlfloat16(value: float, code: int) -> None:
    assert int(DLFLOAT16.encode_array(np.array([value]))[0]) == code


def test_quantising_is_a_stage_of_a_program() -> None:
    A = te.placeholder((4, 33), name="A")
    B = FLOAT8_E5M2.quantise(A)
    C = te.compute((4, 33), lambda i, j: B[i, j] * 2.0, name="C")
    a = np.random.default_rng(0).standard_normal((4, 33), np.float32)
    c = np.empty_like(a)

    tecomp.build(te.create_schedule(C), [A, C])(a, c)

    assert np.array_equal(c, 2 * a.astype(ml_dtypes.float8_e5m2).astype(np.float32))
