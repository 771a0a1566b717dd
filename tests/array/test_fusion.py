"""Fusion of recorded operations: arrays and programs have equal kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tests.graph.test_fusion import PROGRAMS as OF_TENSORS
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]


def softmax(np: Any, x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def normalized(np: Any, x: Any) -> Any:
    centered = x - np.mean(x, axis=-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered * centered, axis=-1, keepdims=True) + 1e-5)


def read_twice(value: Any, *readers: Callable[[Any], Any]) -> list[Any]:
    return [reader(value) for reader in readers]


def low_bits(np: Any, x: Any) -> Any:
    return np.astype(np.bitwise_and(np.astype(x * 8, np.int32), 7), np.float32)


PROGRAMS: dict[str, Callable[[Any, Any, Any, Any], list[Any]]] = {
    "softmax": lambda np, x, y, w: [softmax(np, x)],
    "normalization": lambda np, x, y, w: [normalized(np, x)],
    "chain": lambda np, x, y, w: [x * 3 - 1],
    "exp read by a map and a sum": lambda np, x, y, w: read_twice(
        np.exp(x), lambda e: e + 1, lambda e: np.sum(e, axis=1)),
    "product by 2 read by two maps": lambda np, x, y, w: read_twice(
        x * 2, lambda e: e + 1, lambda e: e - 1),
    "exp read by two maps": lambda np, x, y, w: read_twice(
        np.exp(x), lambda e: e + 1, lambda e: e - 1),
    "product, bias and maximum": lambda np, x, y, w: [np.maximum(x @ w + 1, 0)],
    "product of a transposed operand": lambda np, x, y, w: [x.T @ y],
    "sum of a sum": lambda np, x, y, w: [np.sum(np.sum(x, axis=0) * 2)],
    "two sums": lambda np, x, y, w: [np.sum(x, axis=1), np.sum(x * x, axis=1)],
    "quotient by sums of columns": lambda np, x, y, w: [x / np.sum(x, axis=0)],
    "bits read by a map and a sum": lambda np, x, y, w: read_twice(
        low_bits(np, x), lambda e: e + 1, lambda e: np.sum(e, axis=1)),
}


def check(program: Callable[..., Sequence[Any]], arrays: Sequence[Array], kernels: int) -> None:
    """Compare results with NumPy, and the number of kernels."""
    given = [xp.asarray(x) for x in arrays]
    assert len(xp.explain(*program(xp, *given)).loops) == kernels
    results, exact = program(xp, *given), program(np, *arrays)
    for found, expected in zip(results, exact, strict=True):
        assert_close(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("shape", [(512, 64), (7, 200)])
@pytest.mark.parametrize("name", OF_TENSORS)
def test_arrays_have_the_kernels_of_programs(name: str, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    shapes = shape, shape, (shape[1], shape[1])
    arrays = [random.uniform(0.1, 1, size).astype("float32") for size in shapes]
    _, kernels, *_ = OF_TENSORS[name]

    check(PROGRAMS[name], arrays, kernels)


def attention(np: Any, x: Any, w: Any) -> list[Any]:
    q = x @ w
    return [softmax(np, q @ q.T * 0.1) @ x]


ROWS: dict[str, tuple[int, Callable[[Any, Any, Any], list[Any]]]] = {
    "rows between products": (4, attention),
    "rows of rows": (1, lambda np, x, w: [softmax(np, normalized(np, x))]),
    "rows and a product": (2, lambda np, x, w: [normalized(np, x + softmax(np, x)) @ w]),
    "standard deviation": (1, lambda np, x, w: [
        (x - np.mean(x, axis=1, keepdims=True)) / (np.std(x, axis=1, keepdims=True) + 1)]),
    "two rows": (1, lambda np, x, w: [
        softmax(np, x) + softmax(np, x * 2) * np.sum(x, axis=1, keepdims=True)]),
    "a row that is a result": (2, lambda np, x, w: read_twice(
        np.exp(x), lambda e: e, lambda e: e / np.sum(e, axis=1, keepdims=True))),
    "rows without kept axes": (2, lambda np, x, w: [
        x / np.expand_dims(np.sum(x, axis=1), axis=1)]),
    "columns": (4, lambda np, x, w: [softmax(np, x.T).T + 1, x - np.mean(x, axis=0)]),
    "squares of rows": (3, lambda np, x, w: [x @ w / np.sum(x @ w, axis=1)]),
}


@pytest.mark.exhaustive(keep=1, most=6)
@pytest.mark.parametrize("shape", [(7, 7), (1, 5), (5, 1), (90, 33)])
@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str, shape: tuple[int, int]) -> None:
    """Operations on rows agree with NumPy, and one kernel computes them where possible."""
    random = np.random.default_rng(1)
    rows = shape[1] if name == "squares of rows" else shape[0]
    arrays = [random.uniform(0.1, 1, size).astype("float32")
              for size in ((rows, shape[1]), (shape[1], shape[1]))]
    kernels, program = ROWS[name]
    given = [xp.asarray(x) for x in arrays]
    if min(shape) > 1:
        assert len(xp.explain(*program(xp, *given)).loops) == kernels
    for found, expected in zip(program(xp, *given), program(np, *arrays), strict=True):
        assert_close(np.asarray(found), expected, rtol=2e-4, atol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("order", ["C", "F", "reversed", "step"])
def test_rows_in_any_memory_order(order: str) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (12, 20, 30)).astype("float32")
    view = {"C": x, "F": np.asfortranarray(x), "reversed": x[::-1, :, ::-1], "step": x[:, ::3, ::2]}
    for program in (softmax, normalized):
        found = program(xp, xp.asarray(view[order]))
        assert_close(np.asarray(found), program(np, view[order]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sum", "max", "argmin"])
def test_a_computed_row_next_to_a_square_matrix_is_not_taken_for_a_result(name: str, axis: int) -> None:
    """A row of a square matrix has the shape of its sums, along another axis."""
    x, row = np.random.default_rng(0).uniform(-1, 1, (6, 6)), np.arange(6.0)
    found = getattr(xp, name)((xp.asarray(x) + 1) * (xp.asarray(row) * 3 - 1), axis=axis)
    wanted = getattr(np, name)((x + 1) * (row * 3 - 1), axis=axis)
    assert_close(np.asarray(found), wanted, 1e-14, magnitude=100)
