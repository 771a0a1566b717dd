"""Random programs with any dtypes, sizes, gathers and scans agree with NumPy without a schedule."""

from __future__ import annotations

import pytest

from tests.strategies.draws import Dice
from tests.strategies.unscheduled import draw_unscheduled


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(32))
def test_random_programs(seed: int) -> None:
    draw_unscheduled(Dice(seed=seed)).check()
