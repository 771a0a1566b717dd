"""Precomputing any factors of the terms of a reduction does not change its result."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tests.numerics import assert_close

CPU = tecomp.Target.load("cpu")
REDUCERS = (te.sum, te.max, te.min)


def draw(dice: Random) -> tuple[list[te.Tensor], te.Tensor, int]:
    """Draw inputs, a reduction, and the number of factors of its terms."""
    i, j = dice.choice((1, 5, 16)), dice.choice((1, 3, 9))
    low = dice.choice((0, 0, 2))
    k = te.reduce_axis((low, low + dice.choice((1, 4, 7))), name="k")
    r = te.reduce_axis((0, dice.choice((1, 3))), name="r")
    inputs: list[te.Tensor] = []

    def factor(x: te.Expr, y: te.Expr) -> te.Expr:
        step = dice.choice((1, 1, 2, 3))
        index = dice.choice((
            (x,), (y,), (x, k), (k, y), (r, k), (x * step + r, k), (y + r,), (k * 2 + r,),
            (x // 2, k), (r,), (x + r + k,), (x + y, y + r),
        ))
        inputs.append(te.placeholder((64,) * len(index), name=f"A{len(inputs)}"))
        element = inputs[-1](*index)
        return dice.choice((
            lambda: element, lambda: te.max(element, 0.25), lambda: element + 0.5,
            lambda: te.if_then_else(index[0] > 1, inputs[-1](index[0] - 1, *index[1:]), 0.5),
            lambda: te.if_then_else(k > r, element, 0.125), lambda: element * element,
        ))()

    count = dice.randint(2, 4)
    reducer = dice.choice(REDUCERS)

    def value(x: te.Expr, y: te.Expr) -> te.Expr:
        term = factor(x, y)
        for _ in range(count - 1):
            other = factor(x, y)
            term = term / (other + 2.0) if dice.random() < 0.2 else term * other
        return reducer(term, axis=[k, r])

    result = te.compute((i, j), value, name="T")
    return inputs, result, len(tecomp.accesses(result).written)


def run(s: te.Schedule, args: list[te.Tensor], inputs: list[Any], shape: Any) -> Any:
    out = np.full(shape, np.nan, np.float32)
    tecomp.build(s, args)(*inputs, out)
    return out


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(24))
def test_terms_of_factors_that_are_computed_first(seed: int) -> None:
    dice = Random(seed)
    inputs, result, count = draw(dice)
    numbers = np.random.default_rng(seed)
    arrays = [numbers.uniform(0.5, 1.5, x.shape).astype(np.float32) for x in inputs]
    args = [*inputs, result]
    expected = run(te.create_schedule(result), args, arrays, result.shape)
    s = te.create_schedule(result)
    first = s.cache_factor(result, dice.sample(range(count), dice.randint(1, count - 1)), "global")
    assert first.op in [stage.op for stage in s.stages]

    for item in (s, auto(result, CPU)):
        assert_close(run(item, args, arrays, result.shape), expected, rtol=2e-5)
