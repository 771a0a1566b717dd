"""Closed forms of sliced index sets agree with enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np

from tecomp.dist.partition import (
    common,
    count_of,
    indices_as_array,
    select_indices,
    steps,
    window_positions,
)

SLICES = [
    steps(start, stop, step)
    for start, stop, step in product((0, 1, 5), (0, 6, 7, 20), (1, 2, 3, 4, 6))
]


def test_common_places() -> None:
    for owned, expected in product(SLICES, SLICES):
        here, there = common(owned, expected)
        both = np.intersect1d(indices_as_array(owned), indices_as_array(expected))

        assert isinstance(here, slice)
        assert isinstance(there, slice)
        np.testing.assert_array_equal(indices_as_array(owned)[here], both)
        np.testing.assert_array_equal(indices_as_array(expected)[there], both)
        assert count_of(here) == count_of(there) == len(both)


def test_places_in_any_order_and_more_than_once() -> None:
    here, there = common(np.array([2, 3, 5]), np.array([5, 9, 2, 5, 0]))

    np.testing.assert_array_equal(here, [2, 0, 2])
    np.testing.assert_array_equal(there, [0, 2, 3])


def test_chosen_places() -> None:
    for places, inner in product(SLICES, SLICES):
        if not count_of(inner) or indices_as_array(inner)[-1] < count_of(places):
            np.testing.assert_array_equal(indices_as_array(select_indices(places, inner)), indices_as_array(places)[indices_as_array(inner)])


def test_seen_places() -> None:
    for places, start, step, extent in product(SLICES, (0, 3, 9), (1, 2, 3, -1, -2), (0, 1, 4, 12)):
        numbers = [k for k in range(extent) if start + step * k in indices_as_array(places)]

        np.testing.assert_array_equal(indices_as_array(window_positions(places, start, step, extent)), numbers)
