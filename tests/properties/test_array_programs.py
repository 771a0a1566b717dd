"""Programs of reductions, matrix products and cumulative functions on arrays agree with NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.operations import TO_WIDE
from tests.numerics import assert_close
from tests.operations.references import AXES_REDUCTIONS, numpy_reduction

DTYPES = ["int8", "int64", "uint16", "float32", "float64", "complex64", "complex128", "bool"]
Pair = tuple[Any, Any]
"""Array and its NumPy counterpart."""


def drawn(draw: random.Random, shape: tuple[int, ...], dtype: str) -> Pair:
    rng = np.random.default_rng(draw.randrange(2**32))
    data = rng.integers(-3 if dtype[0] not in "ub" else 0, 4, shape).astype(dtype)
    return xp.asarray(data), data


def some_axes(draw: random.Random, rank: int) -> Any:
    axes = [None, tuple(k for k in range(rank) if draw.random() < 0.5)]
    return draw.choice([*axes, draw.randrange(-rank, rank)] if rank else axes)


def reduced(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    names = [
        name for name, row in AXES_REDUCTIONS.items()
        if y.dtype.name in row.takes.dtypes and (row.op != "reduce" or row.gives == TO_WIDE or y.size)
    ]
    name, axis, keeps = draw.choice(names), some_axes(draw, y.ndim), draw.random() < 0.5
    return (
        getattr(xp, name)(x, axis=axis, keepdims=keeps),
        np.asarray(numpy_reduction(AXES_REDUCTIONS[name])(y, axis=axis, keepdims=keeps)),
    )


def running(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if not y.ndim or y.dtype.kind == "b":
        return pair
    axis, initial = draw.randrange(y.ndim), draw.random() < 0.3
    name = draw.choice(["cumulative_sum", "cumulative_sum", "cumulative_prod"])
    source = {"axis": axis, "include_initial": initial}
    return getattr(xp, name)(x, **source), getattr(np, name)(y, **source)


def found(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if y.dtype.kind not in "iuf" or 0 in y.shape:
        return pair
    axis = draw.choice([None, *range(y.ndim)])
    name = draw.choice(["argmax", "argmin"])
    return getattr(xp, name)(x, axis=axis), np.asarray(getattr(np, name)(y, axis=axis))


def multiplied(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if not y.ndim or y.dtype.kind == "b":
        return pair
    depth = y.shape[-1]
    shape = draw.choice([(depth,), (depth, 3), *([(2, depth, 1)] if y.ndim < 3 else [])])
    other, expected = drawn(draw, shape, draw.choice([y.dtype.name, y.dtype.name, "float64"]))
    return x @ other, np.asarray(y @ expected)


def spread(draw: random.Random, pair: Pair) -> Pair:
    """Subtract the mean of each row from its elements; other dtypes are returned unchanged."""
    x, y = pair
    if y.dtype.kind not in "fc" or not y.ndim or 0 in y.shape:
        return pair
    axis = draw.randrange(y.ndim)
    return x - xp.mean(x, axis=axis, keepdims=True), y - np.mean(y, axis=axis, keepdims=True)


def moved(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if y.ndim < 2:
        return pair
    return xp.matrix_transpose(x), np.matrix_transpose(y)


def joined(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if y.dtype.kind == "b":
        return x & x, y & y
    other, expected = drawn(draw, y.shape[1:], y.dtype.name)
    return draw.choice([(x + other, y + expected), (x * other, y * expected), (-x, -y)])


def stepped(draw: random.Random, pair: Pair) -> Pair:
    x, y = pair
    if not y.ndim or y.dtype.kind == "b":
        return pair
    axis = draw.randrange(y.ndim)
    return xp.diff(x, axis=axis), np.diff(y, axis=axis)


STEPS: list[Callable[[random.Random, Pair], Pair]] = [
    reduced, reduced, running, found, multiplied, spread, moved, joined, joined, stepped,
]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(24))
@np.errstate(all="ignore")
def test_programs(seed: int) -> None:
    draw = random.Random(seed)
    shape = tuple(draw.choice([1, 2, 3, 5, 17, 0 if draw.random() < 0.1 else 4]) for _ in range(
        draw.choice([0, 1, 2, 2, 3])))
    pairs = [drawn(draw, shape, draw.choice(DTYPES))]
    for _ in range(draw.randrange(1, 7)):
        pairs.append(draw.choice(STEPS)(draw, draw.choice(pairs[-2:])))
    draw.shuffle(pairs)  # evaluate the values in random order
    for actual, expected in pairs:
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind not in "fc":
            np.testing.assert_array_equal(np.asarray(actual), expected)
            continue
        size = np.max(np.abs(expected), initial=1, where=np.isfinite(expected))
        near = 1e3 * np.finfo(expected.dtype).eps
        assert_close(np.asarray(actual), expected, rtol=near, atol=near * size)
