"""Special floating-point values agree with the tables of the standard."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tests.array.special_cases import (
    BINARY,
    INPLACE,
    UNARY,
    Pattern,
    Result,
    Row,
    Rule,
    Some,
    Unsigned,
)
from tests.array.special_cases_complex import COMPLEX, TURNED
from tests.strategies.elements import Data, distances, special_floats

FLOATS = ("float32", "float64")


def samples(dtype: str) -> Data:
    """Return the operands for the table rows; NaN occurs with either sign."""
    plain = np.array([7.0, -7.0, 4.0, -4.0, 0.25, -0.75, 1e10, -1e10, 5e15, -4.5], dtype)
    return np.concatenate([special_floats(dtype), plain, -special_floats(dtype)[-1:]])


def pairs(dtype: str) -> tuple[Data, Data]:
    values = samples(dtype)
    first, second = np.meshgrid(values, values, indexing="ij")
    return first.ravel(), second.ravel()


def selected(pattern: Pattern, x: Data) -> Any:
    if isinstance(pattern, Some):
        return pattern.holds(x)
    same = np.isnan(x) if np.isnan(pattern) else x == x.dtype.type(pattern)
    return same & (np.signbit(x) == np.signbit(pattern)) if pattern == 0 else same


def follows(result: Data, expected: Result, operands: tuple[Data, ...]) -> Any:
    """Return where results match a row; finite numbers may differ by one unit in the last place."""
    if isinstance(expected, Some):
        return expected.holds(result)
    if isinstance(expected, Unsigned):
        return follows(abs(result), expected.value, operands)
    number = expected.of(*operands) if isinstance(expected, Rule) else expected
    number = np.broadcast_to(np.asarray(number, result.dtype), result.shape)
    if result.dtype.kind == "b":
        return result == number
    same_sign = (np.signbit(result) == np.signbit(number)) | np.isnan(number)
    return (distances(result, number) <= 1) & same_sign


def check(rows: list[Row], operands: tuple[Data, ...], *results: Data) -> None:
    """Check all rows; `results` are the parts of the result."""
    for patterns, expected in rows:
        for part, result in zip(expected, results, strict=True):
            _check_row(patterns, part, operands, result)


def _check_row(
    patterns: tuple[Pattern, ...], expected: Result, operands: tuple[Data, ...], result: Data
) -> None:
    chosen = np.ones(result.shape, bool)
    for pattern, x in zip(patterns, operands, strict=True):
        chosen &= selected(pattern, x)
    assert chosen.any(), patterns
    inputs = tuple([x[chosen] for x in operands])
    matches = follows(result[chosen], expected, inputs)
    wrong = [(*(x[~matches][0] for x in inputs), result[chosen][~matches][0])] if not matches.all() else []
    assert wrong == [], (patterns, expected)


@pytest.mark.exhaustive(keep=14)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", sorted(UNARY))
def test_special_cases_of_unary_functions(kind: str, dtype: str) -> None:
    x = samples(dtype)
    check(UNARY[kind], (x,), np.asarray(getattr(xp, kind)(xp.asarray(x))))


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", sorted(BINARY))
def test_special_cases_of_binary_functions(kind: str, dtype: str) -> None:
    operands = pairs(dtype)
    result = getattr(xp, kind)(*map(xp.asarray, operands))
    check(BINARY[kind], operands, np.asarray(result))


@pytest.mark.parametrize("name", sorted(INPLACE))
def test_in_place(name: str) -> None:
    operands = pairs("float64")
    first, second = map(xp.asarray, operands)
    function: Any = getattr(operator, name)
    result = function(first, second)
    assert result is first
    check(BINARY[INPLACE[name]], operands, np.asarray(result))


def parts(z: Data) -> tuple[Data, ...]:
    return (z.real, z.imag) if z.dtype.kind == "c" else (z,)


def paired(re: Data, im: Data) -> Data:
    """Combine two parts to complex numbers and keep the signs of zeros."""
    return np.stack([re, im], axis=-1).view(f"complex{16 * re.itemsize}")[..., 0]


def of_complex(kind: str, z: Data) -> Data:
    return np.asarray(getattr(xp, kind)(xp.asarray(z)))


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", sorted(COMPLEX))
def test_special_cases_of_complex_functions(kind: str, dtype: str) -> None:
    re, im = pairs(dtype)
    above = ~np.signbit(im) | np.isnan(im)
    re, im = re[above], im[above]
    check(COMPLEX[kind], (re, im), *parts(of_complex(kind, paired(re, im))))
    conjugate = of_complex(kind, paired(re, -im))
    if conjugate.dtype.kind == "c":
        conjugate = conjugate.conj()
    check(COMPLEX[kind], (re, im), *parts(conjugate))


@pytest.mark.parametrize("kind", ["asinh", "atanh", "sinh", "tanh"])
def test_odd_functions(kind: str) -> None:
    re, im = pairs("float64")
    result = of_complex(kind, paired(re, im))
    _compare(of_complex(kind, paired(-re, -im)), paired(-result.real, -result.imag), re, im)


@pytest.mark.parametrize("kind", sorted(TURNED))
def test_functions_of_rotated_complex_numbers(kind: str) -> None:
    re, im = pairs("float64")
    turned = of_complex(TURNED[kind], paired(-im, re))
    _compare(of_complex(kind, paired(re, im)), paired(turned.imag, -turned.real), re, im)


def test_cos_equals_cosh_of_the_rotated_number() -> None:
    re, im = pairs("float64")
    _compare(of_complex("cos", paired(re, im)), of_complex("cosh", paired(-im, re)), re, im)


def _compare(result: Data, expected: Data, re: Data, im: Data) -> None:
    for one, other in zip(parts(result), parts(expected), strict=True):
        # Signs of functions of NaN and of infinities are unspecified.
        plain = np.isfinite(re) & np.isfinite(im)
        # The two kernels may or may not fuse a multiplication and an addition.
        np.testing.assert_array_max_ulp(one[plain], other[plain], 2)
        np.testing.assert_array_equal(np.signbit(one[plain]), np.signbit(other[plain]))
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
