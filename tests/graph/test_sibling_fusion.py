"""Horizontal fusion of element-wise kernels: fewer kernels, equal results, no cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
Pair = tuple[te.Tensor, Array]
ROWS, COLUMNS = 24, 40


def names(program: Any) -> list[str]:
    return [call.group.result.name for call in program.kernels]


def shifted(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: x[i, te.max(j - 1, 0)] * 0.5, name="shifted")


def of_one(define: Callable[[te.Tensor], te.Tensor], exact: Callable[[Array], Array]) -> Any:
    return lambda x, y: (define(x[0]), exact(x[1]))


KINDS: list[Callable[[Pair, Pair], Pair]] = [
    of_one(lambda x: topi.exp(topi.multiply(topi.tanh(x), 0.5)), lambda x: np.exp(np.tanh(x) / 2)),
    of_one(topi.nn.relu, lambda x: np.maximum(x, 0)),
    of_one(shifted, lambda x: x[:, [0, *range(COLUMNS - 1)]] * 0.5),
    of_one(lambda x: topi.flip(x, axis=0), lambda x: x[::-1]),
    of_one(lambda x: topi.subtract(x, topi.sum(topi.multiply(x, 0.01), axis=1, keepdims=True)),
           lambda x: x - x.sum(1, keepdims=True) * 0.01),
    of_one(lambda x: topi.multiply(topi.cast(topi.greater(x, 0.25), "float32"), x),
           lambda x: x * (x.astype(np.float32) > 0.25)),
    lambda x, y: (topi.add(x[0], topi.multiply(y[0], 0.5)), x[1] + y[1] * 0.5),
    lambda x, y: (topi.multiply(x[0], topi.tanh(y[0])), x[1] * np.tanh(y[1])),
]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """Values are read in order, shifted, reversed, by reductions and as outputs."""
    random = np.random.default_rng(seed)
    inputs = [te.placeholder((ROWS, COLUMNS), name=name) for name in "AB"]
    values = random.uniform(-1, 1, (2, ROWS, COLUMNS)).astype(np.float32)
    pairs: list[Pair] = [(x, v.astype(float)) for x, v in zip(inputs, values, strict=True)]
    for _ in range(int(random.integers(3, 12))):
        x, y = (pairs[k] for k in random.integers(len(pairs), size=2))
        pairs.append(KINDS[int(random.integers(len(KINDS)))](x, y))
    count = min(int(random.integers(1, 6)), len(pairs) - 2)
    chosen = [pairs[k] for k in sorted(random.choice(range(2, len(pairs)), count, replace=False))]
    program = tecomp.compile([x for x, _ in chosen], inputs)

    results = program(*values)
    for result, (_, exact) in zip(results if count > 1 else [results], chosen, strict=True):
        # The comparison with 0.25 may fall differently for rounded values.
        close = np.isclose(result, exact, rtol=1e-4, atol=1e-4)
        assert close.mean() > 0.995


def test_an_optimizer_step_is_one_kernel() -> None:
    w, g, m, v = (te.placeholder((ROWS, COLUMNS), name=name) for name in "wgmv")
    first = topi.add(topi.multiply(m, 0.9), topi.multiply(g, 0.1))
    second = topi.add(topi.multiply(v, 0.99), topi.multiply(topi.multiply(g, g), 0.01))
    step = topi.divide(first, topi.add(topi.sqrt(second), 1e-3))
    program = tecomp.compile([topi.subtract(w, step), first, second], [w, g, m, v])
    values = np.random.default_rng(0).uniform(0.1, 1, (4, ROWS, COLUMNS)).astype(np.float32)

    assert len(program.kernels) == 1
    exact_w, exact_g, exact_m, exact_v = values.astype(float)
    m1, v1 = exact_m * 0.9 + exact_g * 0.1, exact_v * 0.99 + exact_g**2 * 0.01
    for got, exact in zip(
        program(*values), (exact_w - m1 / (np.sqrt(v1) + 1e-3), m1, v1), strict=True
    ):
        assert_close(got, exact, rtol=1e-5, atol=1e-6)


def test_kernels_with_a_path_between_them_are_not_combined() -> None:
    x = te.placeholder((ROWS, COLUMNS), name="x")
    powers = topi.exp(x)
    total = topi.sum(topi.sum(powers, axis=0), axis=0)
    program = tecomp.compile([powers, topi.multiply(x, total)], [x])
    a = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)

    assert names(program)[0] == "T_exp"
    assert names(program)[-1] == "T_multiply"
    exact = np.exp(a.astype(float))
    for got, expected in zip(program(a), (exact, a * exact.sum()), strict=True):
        assert_close(got, expected, rtol=1e-4)


def test_values_of_constants_are_not_combined_with_others() -> None:
    x, c = (te.placeholder((ROWS, COLUMNS), name=name) for name in "xc")
    once = topi.exp(c)
    outputs = [topi.add(x, c), topi.multiply(topi.matmul(x, once, transp_b=True), 2.0)]
    value = np.full((ROWS, COLUMNS), 0.5, np.float32)
    program = tecomp.compile(outputs, [x], constants={c: value})

    assert "T_exp" not in names(program)
    a = np.ones((ROWS, COLUMNS), np.float32)
    total, result = program(a)
    assert_close(total, a + 0.5, rtol=1e-6)
    assert_close(result, np.full((ROWS, ROWS), COLUMNS * np.exp(0.5) * 2), rtol=1e-5)


def test_dtypes_of_different_widths_are_not_combined() -> None:
    x = te.placeholder((ROWS, COLUMNS), name="x")
    program = tecomp.compile([topi.greater(x, 0.5), topi.add(x, 1.0)], [x])

    assert len(program.kernels) == 2
