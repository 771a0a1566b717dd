"""Stencils equal NumPy for all sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import stencil
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced

Window = Sequence[Sequence[float]]
LAPLACE = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]


def expected(a: np.ndarray, weights: Window) -> np.ndarray:
    height, width = len(weights), len(weights[0])
    rows, columns = a.shape[-2] - height + 1, a.shape[-1] - width + 1
    total = np.zeros((*a.shape[:-2], rows, columns))
    for y, row in enumerate(weights):
        for x, weight in enumerate(row):
            total += weight * a[..., y : y + rows, x : x + columns].astype(np.float64)
    return total


def check(A: te.Tensor, B: te.Tensor, shape: tuple[int, ...], weights: Window,
          target: tecomp.Target) -> None:
    kernel = tecomp.build(stencil.schedule(B, target), [A, B])
    a = np.random.default_rng(0).standard_normal(shape).astype(A.dtype)
    reference = expected(a, weights)
    result = np.full(reference.shape, np.nan, A.dtype)
    call_fenced(kernel, a, result)

    assert_close(result, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize(
    "shape", [(3, 3), (4, 9), (7, 34), (129, 127), (40, 1000), (2, 11, 30), (66, 66)]
)
def test_separable(shape: tuple[int, ...], target: tecomp.Target) -> None:
    A = te.placeholder(shape, name="A")
    column, row = [0.25, 0.5, 0.25], [1.0, 0.0, -1.0]
    weights = [[c * r for r in row] for c in column]

    check(A, stencil.separable(A, column, row), shape, weights, target)


@pytest.mark.parametrize("shape", [(3, 3), (9, 34), (130, 127), (2, 3, 11, 30)])
def test_any_window(shape: tuple[int, ...], target: tecomp.Target) -> None:
    A = te.placeholder(shape, name="A")

    check(A, stencil.define(A, LAPLACE), shape, LAPLACE, target)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 5), (7, 1), (9, 9), (2, 3)])
def test_windows_of_other_sizes(height: int, width: int, target: tecomp.Target) -> None:
    A = te.placeholder((20, 60), name="A")
    column, row = [0.5 + y for y in range(height)], [x - 1.5 for x in range(width)]
    weights = [[c * r for r in row] for c in column]

    check(A, stencil.separable(A, column, row), (20, 60), weights, target)
    check(A, stencil.define(A, weights), (20, 60), weights, target)


def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    third = [1 / 3] * 3
    B = stencil.separable(A, third, third)
    kernel = tecomp.build(stencil.schedule(B, target), [A, B])
    for shape in ((3, 3), (50, 70)):
        a = np.random.default_rng(0).standard_normal(shape, np.float32)
        result = np.full((shape[0] - 2, shape[1] - 2), np.nan, np.float32)
        call_fenced(kernel, a, result)
        assert_close(result, expected(a, [[1 / 9] * 3] * 3), atol=1e-5)


def test_a_window_of_zeros(target: tecomp.Target) -> None:
    A = te.placeholder((5, 6), name="A")

    check(A, stencil.define(A, [[0, 0], [0, 0]]), (5, 6), [[0, 0], [0, 0]], target)
