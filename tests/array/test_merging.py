"""Sorted parts are merged into one sorted row with few comparisons."""

from __future__ import annotations

from functools import total_ordering

import numpy as np
import pytest

from tecomp.array.distributed import merge_runs


@total_ordering
class Counted:
    """Number that counts comparisons of its class."""

    compared = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Counted) -> bool:
        Counted.compared += 1
        return self.value < other.value


@pytest.mark.parametrize("descending", [False, True])
def test_rows_in_order_are_merged_and_not_sorted_again(descending: bool) -> None:
    parts = [np.sort(np.random.default_rng(k).integers(0, 10**6, 1000)) for k in range(3)]
    data = np.concatenate([part[::-1] if descending else part for part in parts])
    Counted.compared = 0
    found = merge_runs(np.array([Counted(int(n)) for n in data]), descending=descending)

    expected = np.sort(data)[::-1] if descending else np.sort(data)
    assert [item.value for item in found] == expected.tolist()
    assert Counted.compared < 5 * len(data)  # sorting takes 16 comparisons per element


@pytest.mark.parametrize("descending", [False, True])
def test_merging_is_stable(descending: bool) -> None:
    found = merge_runs(np.array([0.0, 0.0, -0.0, -0.0, 0.0]), descending=descending)

    assert np.signbit(found).tolist() == [False, False, True, True, False]
