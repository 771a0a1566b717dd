"""Joining dimensions: any list of intervals, and those that are none."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tecomp.errors import LayoutError
from tecomp.layout.sharding.shard_maps import collapsed, joined_dims
from tecomp.poly.maps import brute_force


@pytest.mark.parametrize(
    ("rank", "intervals", "groups"),
    [
        (4, None, [[0, 1, 2], [3]]),
        (1, None, [[0]]),
        (0, None, []),
        (4, [], [[0], [1], [2], [3]]),
        (5, [(1, 3)], [[0], [1, 2], [3], [4]]),
        (6, [(0, 2), (3, 5)], [[0, 1], [2], [3, 4], [5]]),
        (6, [(3, 5), (0, 2)], [[0, 1], [2], [3, 4], [5]]),
        (4, [(0, 4)], [[0, 1, 2, 3]]),
        (4, [(-4, -2), (-2, 4)], [[0, 1], [2, 3]]),
        (4, [(2, 2)], [[0], [1], [2], [3]]),
        (4, [(1, 2)], [[0], [1], [2], [3]]),
    ],
)
def test_groups(
    rank: int, intervals: list[tuple[int, int]] | None, groups: list[list[int]]
) -> None:
    assert [list(group) for group in joined_dims(rank, intervals)] == groups


def test_every_interval_of_a_small_tensor() -> None:
    """No dimension is lost, and all are in their order."""
    shape = (2, 3, 2, 4)
    for begin, end in product(range(4), range(5)):
        if begin > end:
            continue
        index_map = collapsed(shape, [(begin, end)], None)
        axes = dict(zip(index_map.initial_indices, np.indices(shape), strict=True))
        values = [brute_force.values(expr, axes) for expr in index_map.final_indices]
        extents = [int(value.max()) + 1 for value in values]

        assert np.array_equal(np.ravel_multi_index(values, extents), np.arange(48).reshape(shape))


def test_missing_axes_are_zeros_in_front() -> None:
    assert str(collapsed((7,), None, 3)) == "lambda d0: [0, 0, d0]"


@pytest.mark.parametrize(
    ("rank", "intervals", "message"),
    [
        (
            4, [(0, 3), (2, 4)],
            "shard layout: dimension 2 is in two of the intervals [(0, 3), (2, 4)]; join each "
            "dimension once",
        ),
        (
            4, [(0, 5)],
            "shard layout: the interval [0, 5) leaves the 4 dimensions; count from 0 to 4, or from "
            "-4 to -1",
        ),
        (
            4, [(-5, 2)],
            "shard layout: the interval [-5, 2) leaves the 4 dimensions; count from 0 to 4, or "
            "from -4 to -1",
        ),
        (
            4, [(-1, 1)],
            "shard layout: the interval [-1, 1) of 4 dimensions ends before it begins; write the "
            "first dimension and then the one after the last",
        ),
        (
            4, [(0, 1, 2)],
            "shard layout: (0, 1, 2) is no interval of dimensions; give pairs of integers, the "
            "first dimension and the one after the last, such as [(0, -1)]",
        ),
        (
            4, (0, -1),
            "shard layout: 0 is no interval of dimensions; give pairs of integers, the first "
            "dimension and the one after the last, such as [(0, -1)]",
        ),
    ],
    ids=["overlap", "end", "begin", "backwards", "three", "no-list"],
)
def test_refusals(rank: int, intervals: Any, message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        joined_dims(rank, intervals)

    assert caught.value.message == message
