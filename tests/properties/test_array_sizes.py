"""Random array functions agree with NumPy for all sizes and compile nothing for later sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.statistics import counters
from tests.numerics import assert_close

Step = Callable[[Any, Any], Any]
"""Function of a namespace and a matrix, with a matrix of the same shape as its result."""

REDUCED = ["sum", "mean", "max", "min", "std"]


def reduced(draw: random.Random) -> Step:
    kind, axis = draw.choice(REDUCED), draw.choice([0, 1, None])
    scale = draw.choice([1.0, 0.5])
    return lambda xp, x: x - getattr(xp, kind)(x * scale, axis=axis, keepdims=True) / 8


def scaled(draw: random.Random) -> Step:
    kind, axis = draw.choice(REDUCED), draw.choice([0, 1])
    return lambda xp, x: x / (getattr(xp, kind)(x * x, axis=axis, keepdims=True) + 1)


def formula(draw: random.Random) -> Step:
    number = draw.choice([2.0, -0.25])
    return draw.choice([
        lambda xp, x: x * number + 1,
        lambda xp, x: xp.tanh(x) - number,
        lambda xp, x: xp.where(x > 0, x, x * number),
        lambda xp, x: xp.clip(x, -1.0, 1.5),
        lambda xp, x: x[0] * x - x[:, :1] / 2,
        lambda xp, x: xp.exp(-x[1] * x[1]) + x,
    ])


def moved(draw: random.Random) -> Step:
    axis, by = draw.choice([0, 1]), draw.choice([1, -2])
    return draw.choice([
        lambda xp, x: xp.roll(x, by, axis=axis),
        lambda xp, x: xp.flip(x, axis=axis) + x,
        lambda xp, x: xp.reshape(xp.reshape(x.T, (-1,)) + 1, (x.shape[1], x.shape[0])).T,
        lambda xp, x: x + xp.concat([x[1:], x[:1] * 2], axis=0),
        lambda xp, x: xp.sum(xp.stack([x, x * 2], axis=axis), axis=axis),
        lambda xp, x: xp.concat([x[:, ::2], x[:, 1::2]], axis=1),
        lambda xp, x: xp.repeat(x, 2, axis=axis)[tuple(slice(None, None, 1 + (k == axis)) for k in (0, 1))],
        lambda xp, x: xp.diff(xp.concat([x, x[:, :1]], axis=1), axis=1),
        lambda xp, x: xp.tile(x, (2, 1))[: x.shape[0]] - 1,
    ])


def running(draw: random.Random) -> Step:
    axis = draw.choice([0, 1])
    return lambda xp, x: xp.cumulative_sum(x / 16, axis=axis)


def found(draw: random.Random) -> Step:
    name = draw.choice(["argmax", "argmin"])
    return lambda xp, x: x + xp.astype(getattr(xp, name)(x, axis=1, keepdims=True), x.dtype) / 64


def multiplied(draw: random.Random) -> Step:
    return draw.choice([
        lambda xp, x: (x @ x.T / 64) @ x,
        lambda xp, x: x * xp.vecdot(x, x / 64)[:, None],
        lambda xp, x: x + (x @ x[0] / 64)[:, None],
        lambda xp, x: xp.tensordot(x, xp.tensordot(x, x, axes=((0,), (0,))), axes=1) / 512,
    ])


STEPS = [reduced, reduced, scaled, formula, formula, formula, moved, moved, running, found, multiplied]
SHAPES = [(6, 9), (13, 8), (7, 31), (40, 17), (11, 12)]


def drawn(draw: random.Random) -> Step:
    steps = [draw.choice(STEPS)(draw) for _ in range(draw.randrange(2, 6))]
    keeps = [draw.random() < 0.2 for _ in steps]

    def function(xp: Any, x: Any) -> Any:
        extra = []
        for step, keep in zip(steps, keeps, strict=True):
            x = step(xp, x)
            if keep:
                extra.append(x)
        return x, extra

    return function


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(20))
def test_random_functions(seed: int) -> None:
    draw = random.Random(seed)
    function = drawn(draw)
    dtype = draw.choice(["float64", "float64", "float32"])
    near = 1e-9 if dtype == "float64" else 2e-3
    compiled = []
    for shape in SHAPES:
        x = np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)
        actual, extra = function(xp, xp.asarray(x))
        expected, reference = function(np, x)
        for own, other in zip([actual, *extra], [expected, *reference], strict=True):
            assert (own.shape, own.dtype) == (other.shape, other.dtype)
            assert_close(np.asarray(own), other, rtol=near, atol=near)
        compiled.append(counters.compiled)
    assert compiled[1] == compiled[-1]
