"""Functions of many complex elements, computed in blocks, agree with those of few elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tests.numerics import assert_close

RNG = np.random.default_rng(3)
LINE = RNG.standard_normal(40_003) + 1j * RNG.standard_normal(40_003)
SHEET = LINE[: 200 * 200].reshape(200, 200)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("part", [
    lambda z: z,
    lambda z: z[::-1],
    lambda z: z[:40_000].reshape(200, 200)[:, ::-1],
    lambda z: z[:40_000].reshape(200, 200).T,
    lambda z: z[:40_000].reshape(4, 100, 100)[:, :, :97],
])
def test_places_in_memory(dtype: str, part: Callable[[Any], Any]) -> None:
    z = part(LINE.astype(dtype))
    result = np.asarray(xp.exp(xp.asarray(z)))
    assert result.dtype == z.dtype
    assert_close(result, np.exp(z), rtol=4 * float(np.finfo(dtype).eps))


def test_several_results_of_one_kernel() -> None:
    z = xp.asarray(SHEET)
    root = xp.sqrt(z)
    total = root * 2 + z[:, :1]
    assert_close(np.asarray(total), np.sqrt(SHEET) * 2 + SHEET[:, :1], rtol=1e-14)
    assert_close(np.asarray(root), np.sqrt(SHEET), rtol=1e-15)


def test_real_operands_of_complex_results() -> None:
    x = np.linspace(-3, 3, 50_001)
    result = xp.exp(xp.asarray(x) * 1j)
    assert_close(np.asarray(result), np.exp(1j * x), rtol=1e-15)


def test_blocks_match_pairs() -> None:
    many = np.asarray(xp.tanh(xp.asarray(LINE)))
    few = np.concatenate([np.asarray(xp.tanh(xp.asarray(LINE[k : k + 20_002])))
                          for k in (0, 20_002)])
    assert_close(many, few[: LINE.size], rtol=4e-16)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_blocks_of_arithmetic(count: int) -> None:
    few, many = xp.asarray(SHEET[0] * 0.1), xp.asarray(LINE * 0.1)
    results = []
    for z in (few, many):
        c = z
        for _ in range(count):
            z = z * z + c
        assert ("parts" in xp.explain(z).schedules[0]) == (count > 1 and z.size == LINE.size)
        results.append(np.asarray(z))
    expected = LINE * 0.1
    for _ in range(count):
        expected = expected * expected + LINE * 0.1
    assert_close(results[1], expected, rtol=1e-13)
    assert_close(results[0], results[1][:200], rtol=1e-13)
