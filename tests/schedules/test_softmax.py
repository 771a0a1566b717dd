"""Softmax equals NumPy for all sizes, without overflow."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import softmax
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced


def expected(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a.astype(np.float64) - a.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def run(A: te.Tensor, a: np.ndarray, target: tecomp.Target) -> np.ndarray:
    B = softmax.define(A)
    kernel = tecomp.build(softmax.schedule(B, target), [A, B])
    result = np.full(a.shape, np.nan, a.dtype)
    call_fenced(kernel, a, result)
    return result


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (5, 2), (3, 7), (2, 127), (4, 1000), (2, 1023), (2, 3, 40), (70,), (2, 5000),
     (9, 10), (20, 5), (3, 9, 17), (16, 31), (2, 3, 2, 5, 7)],
)
def test_sizes(shape: tuple[int, ...], target: tecomp.Target) -> None:
    a = np.random.default_rng(0).standard_normal(shape, np.float32) * 5

    result = run(te.placeholder(shape, name="A"), a, target)
    assert_close(result, expected(a), rtol=1e-5, atol=1e-7)


def test_large_values(target: tecomp.Target) -> None:
    a = np.array([[1e4, 0.0, -1e4], [-3e38, -3e38, -3e38]], np.float32)

    result = run(te.placeholder((2, 3), name="A"), a, target)
    assert_close(result, [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 1e-3)])
def test_types(dtype: str, tolerance: float, target: tecomp.Target) -> None:
    a = np.random.default_rng(0).standard_normal((6, 45)).astype(dtype)

    result = run(te.placeholder((6, 45), dtype, name="A"), a, target)
    assert_close(result, expected(a), rtol=tolerance, atol=tolerance)


@pytest.mark.exhaustive(keep=1)
def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    B = softmax.define(A)
    kernel = tecomp.build(softmax.schedule(B, target), [A, B])
    for shape in ((1, 1), (3, 700), (65, 9)):
        a = np.random.default_rng(0).standard_normal(shape, np.float32)
        result = np.full(a.shape, np.nan, a.dtype)
        call_fenced(kernel, a, result)
        assert_close(result, expected(a), rtol=1e-5, atol=1e-7)
