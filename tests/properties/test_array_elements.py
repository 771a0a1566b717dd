"""Fused element-wise functions give the same elements as NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.statistics import counters
from tecomp.operations import elementwise_in
from tecomp.ptensor import FUNCTIONS
from tests.array.test_elementwise import oracle
from tests.strategies.dtypes import standard
from tests.strategies.elements import Data, elements

FLOATS, INTEGERS = standard("real floating"), standard("integral")
ROUNDED = ("add", "multiply", "square", "subtract", "pow", "imag")
# Functions with exactly rounded results that kernels do not contract to a fused multiply-add.
EXACT = [
    kind for kind, row in sorted(elementwise_in("array").items())
    if kind in ROUNDED or not any(row.ulps)
]


def _choices(values: list[Data], rng: np.random.Generator) -> tuple[str, list[Data]]:
    """Draw a function and operands that are in its domain."""
    while True:
        kind = EXACT[rng.integers(len(EXACT))]
        op = FUNCTIONS[kind]
        first = values[rng.integers(len(values))]
        same = [value for value in values if value.dtype == first.dtype]
        operands = [first, *(same[rng.integers(len(same))] for _ in range(op.arity - 1))]
        if first.dtype.name not in op.functions[kind]:
            continue
        if kind in ROUNDED and first.dtype.kind == "f":
            continue
        if kind == "pow" and first.dtype.kind == "i" and (operands[1] < 0).any():
            continue  # NumPy has no negative powers of integers
        if kind in ("copysign", "signbit") and any(
            x is not values[1] and np.isnan(x).any() for x in operands
        ):
            continue  # the sign of a computed NaN is unspecified
        return kind, operands


def _step(values: list[Data], arrays: dict[int, Any], rng: np.random.Generator) -> Data:
    if rng.random() < 0.2:
        truths = [value for value in values if value.dtype == bool]
        one = values[rng.integers(len(values))]
        test, other = truths[rng.integers(len(truths))], one[::-1].copy()
        arrays[id(other)] = xp.asarray(other)
        values.append(other)
        result = np.where(test, one, other)
        arrays[id(result)] = xp.where(*(arrays[id(x)] for x in (test, one, other)))
        return result
    kind, operands = _choices(values, rng)
    result = oracle(kind, *operands)
    arrays[id(result)] = getattr(xp, kind)(*(arrays[id(x)] for x in operands))
    return result


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(40))
def test_chains_of_functions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtypes = [str(rng.choice(INTEGERS)), str(rng.choice(FLOATS)), "bool"]
    values = [elements(dtype, 64, seed + k) for k, dtype in enumerate(dtypes)]
    arrays = {id(value): xp.asarray(value) for value in values}
    for _ in range(int(rng.integers(4, 14))):
        values.append(_step(values, arrays, rng))
    before = counters.called
    xp.eval(*arrays.values())
    assert counters.called <= before + 2
    for value in values:
        result = np.asarray(arrays[id(value)])
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result, value)
