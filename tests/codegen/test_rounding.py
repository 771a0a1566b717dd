"""te.round rounds ties away from 0 and te.nearbyint to even, for every float dtype and lanes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.ir import DType, evaluate
from tecomp.operations import element_type
from tests.strategies.dtypes import FLOATS

SIGNED_ZERO = [name for name in FLOATS if "-0" in element_type(name).special_values]


def numbers(name: str) -> NDArray[Any]:
    """Return all 16-bit values; for wider dtypes ties, their neighbours and special values."""
    kind = DType(name).numpy
    if DType(name).bits == 16:
        return np.arange(2**16, dtype="uint16").view(kind)
    whole = 2.0 ** np.arange(0, 54)
    halves = np.concatenate([np.arange(100) + 0.5, whole + 0.5, whole - 0.5, whole]).astype(kind)
    near = np.concatenate([halves, np.nextafter(halves, kind.type(0)),
                           np.nextafter(halves, kind.type(np.inf))])
    special = np.array([0, np.inf, np.nan, 5e-324, 1e-40, 1e38], np.float64).astype(kind)
    result = np.concatenate([near, special])
    return np.concatenate([result, -result])


@cache
def all_right(dtype: str, name: str) -> NDArray[Any]:
    """Return the expected results for `numbers`."""
    with np.errstate(all="ignore"):
        widened = numbers(dtype).astype("float64")
    return np.array([right(item, name) for item in widened.tolist()])


def right(x: float, name: str) -> float:
    if not math.isfinite(x) or x == 0:
        return x
    size = abs(Fraction(x))
    below = math.floor(size)
    away = below + (size - below >= Fraction(1, 2))
    return math.copysign(float(away if name == "round" else round(size)), x)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", SIGNED_ZERO)
@pytest.mark.parametrize("function", ["round", "nearbyint"])
@pytest.mark.parametrize("is_vector", [False, True], ids=["scalars", "vectors"])
def test_halves(function: str, dtype: str, *, is_vector: bool) -> None:
    x, expected = numbers(dtype), all_right(dtype, function)
    A = te.placeholder(x.shape, dtype, name="A")
    B = te.compute(x.shape, lambda i: getattr(te, function)(A[i]), name="B")
    s = te.create_schedule(B.op)
    if is_vector:
        s[B].vectorize(s[B].split(B.op.axis[0], factor=13)[1])
    kernel = tecomp.build(s, [A, B])

    actual, interpreted = np.zeros_like(x), np.zeros_like(x)
    kernel(x, actual)
    evaluate(kernel.lowered.final, [x, interpreted])

    for result in (actual, interpreted):
        with np.errstate(all="ignore"):
            found = result.astype("float64")
        np.testing.assert_array_equal(found, expected)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])
