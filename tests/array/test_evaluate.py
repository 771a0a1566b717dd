"""Recordings in loops are evaluated in pieces of limited size, with the same kernels."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.graph import MOST, PendingGraph, evaluate
from tecomp.array.statistics import counters
from tests.array.arrays import array
from tests.numerics import assert_close


def test_a_loop_is_compiled_once_and_never_too_long() -> None:
    x = np.linspace(0.0, 0.5, 12)
    actual, expected = array(x), x
    step, own = array(x), x
    before = 0
    for k in range(400):
        square = actual * actual
        actual = square * 0.25 + step
        expected = expected * expected * 0.25 + own
        step, own = step * 0.99, own * 0.99
        assert actual._node.pending <= MOST
        if k == 150:
            before = counters.compiled
    assert counters.compiled == before
    assert_close(np.asarray(actual), expected, rtol=1e-12)


def test_a_deep_graph_needs_no_recursion() -> None:
    actual = array(np.zeros(3))
    for _ in range(5000):
        actual = actual + 1
    np.testing.assert_array_equal(np.asarray(actual), np.full(3, 5000.0))


@pytest.fixture
def computed_together(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the number of steps and of results of each evaluation."""
    sizes: list[tuple[int, int]] = []
    run = evaluate._run

    def note(work: PendingGraph) -> None:
        sizes.append((len(work.steps), len(work.outputs)))
        run(work)

    monkeypatch.setattr(evaluate, "_run", note)
    return sizes


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("join", [xp.stack, xp.concat, lambda parts: xp.eval(*parts)])
def test_many_pending_arrays_are_computed_in_equal_pieces(
    join: Any, computed_together: list[tuple[int, int]]
) -> None:
    parts = [xp.asarray([float(k), 1.0]) + 1 for k in range(1000)]
    before = counters.compiled
    joined = join(parts)

    if joined is not None:
        expected = np.stack([[k + 1.0, 2.0] for k in range(1000)])
        np.testing.assert_array_equal(np.reshape(np.asarray(joined), (1000, 2)), expected)
    assert [float(part[0]) for part in parts] == [k + 1.0 for k in range(1000)]
    assert max(results for _, results in computed_together) <= 65  # one piece and `joined`
    assert counters.compiled - before <= 4


@pytest.mark.exhaustive(most=2)
@pytest.mark.parametrize("seed", range(6))
def test_programs_in_pieces(seed: int, computed_together: list[tuple[int, int]]) -> None:
    draw = random.Random(seed)
    data = np.arange(1.0, 7.0)
    pairs: list[tuple[Any, Any]] = [(array(data), data), (array(-data), -data)]
    for _ in range(draw.randrange(260, 500)):
        (x, p), (y, q) = draw.choice(pairs[-40:]), draw.choice(pairs)
        pairs.append(draw.choice(((x * 0.5 - y, p * 0.5 - q), (x * 0.5 + y * 0.25, p * 0.5 + q * 0.25))))
        if draw.random() < 0.2:
            del pairs[draw.randrange(2, len(pairs))]
    some = draw.sample(pairs, 100)
    xp.eval(*[actual for actual, _ in some])
    for actual, numpys in (*some, *pairs):
        np.testing.assert_allclose(np.asarray(actual), numpys, rtol=1e-9, atol=1e-9)
    assert max(steps for steps, _ in computed_together) <= 2 * MOST
