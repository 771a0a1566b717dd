"""Random programs that nobody scheduled compute what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp.schedules.auto import auto
from tests.strategies.te_programs import draw_program

CPU = tecomp.Target.load("cpu")


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    p = draw_program(seed)
    last = [x for x in p.values if x[0].op.input_tensors][-1]
    others = [x for x in p.values if x[0].op.input_tensors and x is not last]
    results = [last, *(p.dice.sample(others, 1) if others and seed % 3 == 0 else ())]
    outputs = [x for x, _ in results]
    inputs, given = p.needed(outputs)
    kernel = tecomp.build(auto(outputs, CPU), [*inputs, *outputs])
    made = [np.full(x.shape, np.nan, np.float32) for x in outputs]
    kernel(*given, *made)

    for value, (_, expected) in zip(made, results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-3, atol=2e-3)
