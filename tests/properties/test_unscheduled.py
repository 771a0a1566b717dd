"""Random programs with any dtypes, sizes, gathers and scans agree with NumPy without a schedule."""

from __future__ import annotations

import pytest

from tests.strategies.draws import Dice
from tests.strategies.unscheduled import draw_unscheduled, draw_unscheduled_of_sizes


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(32))
def test_random_programs(seed: int) -> None:
    draw_unscheduled(Dice(seed=seed)).check()


@pytest.mark.exhaustive(keep=1, most=7)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs_of_symbolic_sizes(seed: int) -> None:
    """One compilation serves 20 sizes, including 0, 1 and primes."""
    draw_unscheduled_of_sizes(Dice(seed=seed)).check()
