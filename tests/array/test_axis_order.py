"""Arrays with permuted axes in memory give the same results with the same kernels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.kernels import memory_order
from tecomp.array.statistics import counters
from tests.array.arrays import array
from tests.numerics import assert_close

Buffer = np.ndarray[Any, Any]


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> Buffer:
    drawn = np.random.default_rng(len(shape)).integers(-9, 9, (2, *shape))
    result: Buffer = (drawn[0] + (1j * drawn[1] if dtype.startswith("complex") else 0)).astype(dtype)
    return result


def lying(x: Buffer, order: tuple[int, ...]) -> Buffer:
    """Return the same elements with a given order of the axes in memory."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def test_one_kernel_serves_all_orders() -> None:
    def run(order: tuple[int, ...]) -> None:
        x = lying(numbers((4, 5, 6)), order)
        y = xp.exp(array(x)) - array(x)
        assert_close(np.asarray(y), np.exp(x) - x, rtol=1e-14)
        assert np.asarray(y).strides == x.strides

    run((0, 1, 2))
    before = counters.compiled
    for order in permutations(range(3)):
        run(order)
    assert counters.compiled == before


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_results_can_be_assigned_to_and_viewed(dtype: str) -> None:
    x = lying(numbers((4, 6), dtype), (1, 0))
    y = array(x) + array(x)
    xp.eval(y)
    view = y[1:, ::2]
    y[:, 0] = 5
    expected = x + x
    expected[:, 0] = 5
    np.testing.assert_array_equal(np.asarray(view), expected[1:, ::2])
    np.testing.assert_array_equal(np.asarray(xp.reshape(y, (24,))), expected.reshape(24))
    y += 1
    np.testing.assert_array_equal(np.asarray(y * 2), (expected + 1) * 2)
    np.testing.assert_array_equal(np.asarray(view), (expected + 1)[1:, ::2])


def test_results_reuse_existing_memory() -> None:
    x, y = lying(numbers((4, 6)), (1, 0)), np.zeros((4, 6))
    a, buffer = xp.zeros((4, 6)), xp.asarray(x, copy=False)
    a[...] = buffer * 2
    a[1:, ::2] += buffer[1:, ::2]
    y[...] = x * 2
    y[1:, ::2] += x[1:, ::2]
    np.testing.assert_array_equal(np.asarray(a), y)


@pytest.mark.exhaustive(keep=1, most=10)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_reductions_in_any_order(order: tuple[int, ...], keepdims: bool) -> None:
    x = lying(numbers((3, 4, 5)), order)
    a = array(x)
    for axis in [None, 0, 1, 2, (0, 1), (0, 2), (1, 2)]:
        reduced = np.asarray(np.sum(x, axis=axis, keepdims=keepdims))
        actual = xp.sum(a, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(np.asarray(actual), reduced)
        actual = xp.sqrt(xp.max(a * a, axis=axis, keepdims=keepdims)) + array(reduced)
        np.testing.assert_array_equal(
            np.asarray(actual), np.sqrt(np.max(x * x, axis=axis, keepdims=keepdims)) + reduced)
        actual = xp.any(a > 7, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(np.asarray(actual), np.any(x > 7, axis=axis, keepdims=keepdims))
        np.testing.assert_array_equal(
            np.asarray(xp.count_nonzero(a, axis=axis, keepdims=keepdims)),
            np.count_nonzero(x, axis=axis, keepdims=keepdims))


def drawn(seed: int) -> tuple[list[Buffer], int | None]:
    """Draw arrays that broadcast to one shape, with random memory orders, and an axis."""
    random = Random(seed)
    rank = random.randint(1, 4)
    shape = tuple(random.choice([1, 2, 3, 5]) for _ in range(rank))
    found = []
    common = tuple(random.sample(range(rank), rank))
    for k in range(random.randint(1, 3)):
        suffix = shape[random.randint(0, rank - 1) if k else 0:]
        suffix = tuple(1 if k and random.random() < 0.3 else n for n in suffix)
        x = numbers(suffix, random.choice(["float64", "complex128", "int32"]) if k else "float64")
        order = tuple(random.sample(range(len(suffix)), len(suffix)))
        if random.random() < 0.7 and len(suffix) == rank:
            order = common
        x = lying(x, order)
        if random.random() < 0.3:
            x = np.flip(x, random.randrange(len(suffix)))
        found.append(np.broadcast_to(x, shape) if random.random() < 0.2 else x)
    return found, random.choice([None, *range(rank)])


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(40))
def test_drawn_orders(seed: int) -> None:
    source, axis = drawn(seed)
    total, actual = source[0], array(source[0])
    for x in source[1:]:
        total, actual = total * x + x, actual * array(x) + array(x)
    np.testing.assert_array_equal(np.asarray(actual), total)
    summed = xp.sum(actual * 2, axis=axis) - 1
    np.testing.assert_array_equal(np.asarray(summed), np.sum(total * 2, axis=axis) - 1)


def test_operands_of_different_axis_order_are_read_in_result_order() -> None:
    assert memory_order([(1, 4), (4, 1)], (4, 4)) == (0, 1)
    assert memory_order([(1, 4), (1, 4)], (4, 4)) == (1, 0)
    assert memory_order([(1, 0), (0, 1)], (4, 4)) == (0, 1)
    assert memory_order([(0, 1, 4)], (3, 4, 4)) == (0, 2, 1)
    assert memory_order([], (3, 4)) == (0, 1)


_JOINED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "concat": lambda xp, x, y: xp.concat([x, y], axis=0),
    "concat along the last axis": lambda xp, x, y: xp.concat([x, y, x], axis=-1),
    "stack": lambda xp, x, y: xp.stack([x, y], axis=1),
    "roll": lambda xp, x, y: xp.roll(x, 3, axis=0),
    "of formulas": lambda xp, x, y: xp.concat([x + 1, xp.abs(y)], axis=1),
    "read again": lambda xp, x, y: xp.sum(xp.concat([x, y], axis=0), axis=0),
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", _JOINED)
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
def test_parts_are_put_together_in_the_order_of_memory(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    for order in permutations(range(3)):
        shape = 7, 6, 9
        x, y = (
            random.integers(-9, 9, [shape[k] for k in order]).astype(dtype)
            .transpose(np.argsort(order)) for _ in range(2)
        )
        for other in (y, np.ascontiguousarray(y), y[::-1]):
            found = np.asarray(_JOINED[name](xp, xp.asarray(x), xp.asarray(other)))
            np.testing.assert_array_equal(found, _JOINED[name](np, x, other))
            if name in ("concat", "roll") and other is y:
                assert found.transpose(order).flags.c_contiguous


def test_elements_assigned_to_a_transpose_go_along_memory() -> None:
    random = np.random.default_rng(0)
    data, rows = random.random((40, 30)), random.random((50, 30))
    x, y = xp.asarray(data, copy=True), xp.asarray(rows)
    x.T[:, 1:] = y.T[:, 11:]
    data.T[:, 1:] = rows.T[:, 11:]
    np.testing.assert_array_equal(np.asarray(x), data)
