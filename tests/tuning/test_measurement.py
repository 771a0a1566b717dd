"""Processes of candidates, their limits, and the paired test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.stats

from tecomp.tuning import Failure, WorkerPool, compare, difference, signed_rank_p_value
from tests.tuning.candidates import Faulty


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(Faulty(), 1 << 31) as found:
        ((_, worker, _),) = found.build([{}], 30)
        assert worker is not None
        assert worker.ask(30, "check", True) is None
        yield found


@pytest.mark.parametrize(("how", "message"), [
    ("crash", "its process crashed"), ("exit", "its process crashed"),
    ("memory", "out of memory"), ("error", "ValueError: no such schedule"),
    ("hang", "no answer within"),
])  # fmt: skip
def test_a_candidate_that_fails_is_a_failure(pool: WorkerPool, how: str, message: str) -> None:
    ((choices, _, found),) = pool.build([{"how": how}], 1.0 if how == "hang" else 30)

    assert choices == {"how": how}
    assert isinstance(found, Failure)
    assert message.startswith(found.message[: len(message)]) or found.message.startswith(message)


def test_results_of_candidates_are_compared(pool: WorkerPool) -> None:
    ((_, worker, built),) = pool.build([{"how": "wrong"}], 30)

    assert worker is not None
    assert not isinstance(built, Failure)
    assert "64 of 64 results differ" in worker.ask(30, "check", False).message
    worker.end()
    assert isinstance(worker.ask(30, "time", 0.001), Failure)


def test_equal_candidates_agree_and_are_measured(pool: WorkerPool) -> None:
    ((_, worker, _),) = pool.build([{}], 30)

    assert worker is not None
    assert worker.ask(30, "check", False) is None
    assert 0 < worker.ask(30, "time", 0.001) < 1
    worker.end()


@pytest.mark.parametrize("count", [1, 5, 8, 20])
def test_the_p_value_is_that_of_scipy(count: int) -> None:
    for seed in range(5):
        values = np.random.default_rng(seed).normal(-0.3, 1.0, count)
        expected = scipy.stats.wilcoxon(values, alternative="less", method="exact").pvalue
        assert signed_rank_p_value([*values]) == pytest.approx(expected, rel=1e-12)


def noisy(center: float, seed: int) -> Callable[[], float]:
    """Return a function that returns times with rare large disturbances, as a busy machine has."""
    random = np.random.default_rng(seed)
    return lambda: float(center * (1 + random.exponential(0.02) + (random.random() < 0.1)))


def test_a_faster_candidate_is_found_in_noise() -> None:
    outcomes = [
        compare(noisy(1.0, seed), noisy(0.8, 1000 + seed), np.random.default_rng(seed)).outcome
        for seed in range(50)
    ]

    assert outcomes.count("faster") >= 45


def test_an_equal_candidate_is_rarely_taken_for_faster() -> None:
    outcomes = [
        compare(noisy(1.0, seed), noisy(1.0, 1000 + seed), np.random.default_rng(seed)).outcome
        for seed in range(200)
    ]

    # The probability of an error is at most 1 percent; 9 or more of 200 are then as rare as 1e-3.
    assert outcomes.count("faster") <= 8


def test_a_clearly_worse_candidate_is_given_up_early() -> None:
    calls = itertools.count()

    found = compare(
        lambda: 1.0, lambda: 2.0 + 0 * next(calls), np.random.default_rng(0))

    assert (found.outcome, found.ratio, next(calls)) == ("slower", 2.0, 2)


def test_a_crash_while_measuring_ends_the_comparison() -> None:
    found = compare(lambda: 1.0, lambda: float("inf"), np.random.default_rng(0))

    assert found.ratio == float("inf")


@pytest.mark.parametrize(("found", "expected", "agrees"), [
    ([1.0, 2.0], [1.0, 2.0 + 1e-8], True), ([1.0, 2.0], [1.0, 2.1], False),
    ([1.0, np.nan], [1.0, np.nan], True), ([1.0, 1.0], [1.0, np.nan], False),
    ([1.0, np.inf], [1.0, np.inf], True), ([1.0, -np.inf], [1.0, np.inf], False),
    ([1, 2], [1, 2], True), ([1, 2], [1, 3], False), ([True, False], [True, True], False),
])  # fmt: skip
def test_differences_of_results(
    found: list[float], expected: list[float], agrees: bool
) -> None:
    problem = difference(np.array(found), np.array(expected), 1e-6)

    assert (problem is None) == agrees
