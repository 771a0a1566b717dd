"""Integer powers, compiled and interpreted, agree with Python for all dtypes and lane counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import DType, integer_range
from tests.strategies.dtypes import INTEGERS
from tests.strategies.pairwise import pairwise

COUNT = 203


def program(dtype: str, lanes: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build `x ** y` in vectors of `lanes` lanes, with a tail."""
    x = te.placeholder((COUNT,), dtype, name="x")
    y = te.placeholder((COUNT,), dtype, name="y")
    z = te.compute((COUNT,), lambda i: te.power(x[i], y[i]), name="z")
    s = te.create_schedule(z)
    if lanes > 1:
        _, inner = s[z].split(z.op.axis[0], factor=lanes)
        s[z].vectorize(inner)
    return s, [x, y, z]


def drawn(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return bases and exponents: small values, -1, 0 and 1, and extremes."""
    random, (lowest, highest) = np.random.default_rng(5), integer_range(DType(dtype))
    edges = [-2, -1, 0, 1, 2, 3, lowest, highest]
    bases, exponents = [*edges, *range(5, 120, 11)], [*edges, *range(4, 100, 7)]
    x, y = (
        random.choice(np.array([v for v in values if lowest <= v <= highest], dtype), COUNT)
        for values in (bases, exponents)
    )
    return x, y


def power(x: int, y: int, dtype: DType) -> int:
    """Return the power as Python computes it, wrapped to the range of the dtype."""
    if y < 0:
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)
    found = pow(x, y, 1 << dtype.bits)
    return found - (1 << dtype.bits) if dtype.kind == "int" and found >> dtype.bits - 1 else found


@pytest.mark.exhaustive(keep=8)
@pairwise(dtype=INTEGERS, lanes=(1, 3, 4, 8, 16, 24, 64))
def test_compiled_and_interpreted_powers(dtype: str, lanes: int) -> None:
    s, args = program(dtype, lanes)
    x, y = drawn(dtype)
    expected = np.array(
        [power(a, b, DType(dtype)) for a, b in zip(x.tolist(), y.tolist(), strict=True)], dtype)
    result = np.empty_like(x)

    tecomp.build(s, args)(x, y, result)
    np.testing.assert_array_equal(result, expected)

    interpreted = np.empty_like(x)
    tecomp.evaluate(tecomp.lower(s, args), [x, y, interpreted])
    np.testing.assert_array_equal(interpreted, expected)


def test_a_power_loops_over_exponent_bits() -> None:
    s, args = program("int64", 8)

    text = tecomp.build(s, args).source("llvm")

    assert text.count(" mul <8 x i64>") == 2


def test_a_power_is_read_back() -> None:
    s, args = program("uint16", 8)
    func = tecomp.lower(s, args)
    assert "pow(" in str(func)
    assert tecomp.parse(str(func)) == func
