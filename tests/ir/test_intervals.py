"""Interval arithmetic of sums agrees with enumeration of their values."""

from __future__ import annotations

from itertools import product

import pytest

from tecomp.ir import Interval, interval_of_sum

ENDS: tuple[Interval, ...] = ((-2, 3), (0, 0), (1, None), (None, 4), (None, None))
FAR = 1000


def values(interval: Interval) -> range:
    """Return the integers in an interval; `FAR` replaces an unknown end."""
    low, high = interval
    return range(-FAR if low is None else low, (FAR if high is None else high) + 1, 1)


@pytest.mark.parametrize("factors", [(1, 1), (2, -3), (-1, -1), (5, 1)])
@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_interval_of_a_sum(
    factors: tuple[int, int], first: Interval, second: Interval
) -> None:
    ends = {"x": first, "y": second}
    low, high = interval_of_sum(7, dict(zip(ends, factors, strict=True)), ends.__getitem__)

    corners = [(values(item)[0], values(item)[-1]) for item in (first, second)]
    sums = [7 + sum(n * x for n, x in zip(factors, at, strict=True)) for at in product(*corners)]
    assert low == (min(sums) if min(sums) > -FAR // 2 else None)
    assert high == (max(sums) if max(sums) < FAR // 2 else None)
