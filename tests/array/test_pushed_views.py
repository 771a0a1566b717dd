"""Views of pending arrays: one kernel on views for all sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.statistics import counters
from tests.array.arrays import array
from tests.numerics import assert_close


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype("float64")


def test_views_of_results_are_one_kernel_for_all_sizes() -> None:
    def run(m: int, n: int) -> None:
        x, y = numbers(m, n), numbers(n)
        a, b = array(x), array(y)
        actual = (a * b + 1)[1:, ::-1].T - (a + a)[0, :][:, None]
        expected = (x * y + 1)[1:, ::-1].T - (x + x)[0, :][:, None]
        np.testing.assert_array_equal(np.asarray(actual), expected)

    run(5, 7)
    before = counters.compiled
    for m, n in [(9, 4), (33, 65), (3, 3)]:
        run(m, n)
    assert counters.compiled == before


def test_reductions_of_views() -> None:
    def run(m: int) -> None:
        x = numbers(m, 3)
        difference = array(x)[:, None, :] - array(x)[None, :, :]
        actual = xp.sum(xp.reshape(difference * difference, (m * m, 3)), axis=-1)
        expected = (((x[:, None] - x) ** 2).reshape(m * m, 3)).sum(axis=-1)
        np.testing.assert_array_equal(np.asarray(actual), expected)

    run(4)
    run(9)


def test_repeatedly_read_values_are_computed_first() -> None:
    x = numbers(40)
    value = array(x)
    for _ in range(3):
        value = value * value * 0.01
    result = sum((value[k : k + 30] for k in range(1, 9)), start=value[:30])
    expected = x
    for _ in range(3):
        expected = expected * expected * 0.01
    total = sum((expected[k : k + 30] for k in range(1, 9)), start=expected[:30])
    del value
    assert_close(np.asarray(result), total, rtol=1e-14)


@pytest.mark.exhaustive(keep=16)
@pytest.mark.parametrize("seed", range(30))
def test_random_views(seed: int) -> None:
    draw = random.Random(seed)
    x, y = numbers(4, 6), numbers(6)
    actual, expected = array(x) + array(y), x + y
    for _ in range(draw.randint(1, 5)):
        way = draw.randrange(7)
        if way == 0:
            actual, expected = xp.permute_dims(actual, tuple(range(expected.ndim))[::-1]), expected.T
        elif way == 1:
            actual, expected = actual[1:], expected[1:]
        elif way == 2:
            actual, expected = xp.flip(actual), np.flip(expected)
        elif way == 3:
            actual, expected = xp.reshape(actual, (-1,)), expected.reshape(-1)
        elif way == 4:
            actual, expected = actual[..., None], expected[..., None]
        elif way == 5:
            actual, expected = actual * actual[:1] - 2, expected * expected[:1] - 2
        else:
            shape = (2, *expected.shape)
            actual, expected = xp.broadcast_to(actual, shape), np.broadcast_to(expected, shape)
    np.testing.assert_array_equal(np.asarray(actual + 1), expected + 1)


def test_views_of_several_arrays_are_no_chain() -> None:
    """Views of several arrays are independent, however their results are combined."""
    data = numbers(1, 4)
    ways: dict[str, Any] = {
        "squeeze": lambda np, x: np.squeeze(x, axis=0), "flip": lambda np, x: np.flip(x),
        "expand": lambda np, x: np.expand_dims(x, axis=0), "slice": lambda np, x: x[:, 1:],
        "reshape": lambda np, x: np.reshape(x, (4,)), "T": lambda np, x: x.T,
        "broadcast": lambda np, x: np.broadcast_to(x, (3, 4)),
    }
    combined: list[Any] = [
        lambda np, u, v: np.concat([u, v]), lambda np, u, v: np.stack([u, v]),
        lambda np, u, v: np.roll(u, 1) + v, lambda np, u, v: np.concat([u, np.roll(v, 1), u]),
    ]
    for name, way in ways.items():
        for combine in combined:
            def both(np: Any, x: Any, y: Any, way: Any = way, combine: Any = combine) -> Any:
                return combine(np, way(np, x), way(np, y))
            expected = both(np, data, data + 5)
            for result in (
                both(xp, array(data) + 0, array(data) + 5),
                xp.jit(lambda x, y, both=both: both(xp, x, y))(array(data), array(data + 5)),
            ):
                np.testing.assert_array_equal(np.asarray(result), expected, name)
