"""Collapsed dimensions: all interval lists, and errors for invalid ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tecomp.errors import LayoutError
from tecomp.layout import collapse_map, merged_dims
from tecomp.poly.maps import brute_force
from tests.messages import Diagnostic, diagnostic


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
    assert [list(group) for group in merged_dims(rank, intervals)] == groups


def test_every_interval_of_a_small_tensor() -> None:
    """Collapsing any interval keeps all dimensions in row-major order."""
    shape = (2, 3, 2, 4)
    for begin, end in product(range(4), range(5)):
        if begin > end:
            continue
        index_map = collapse_map(shape, [(begin, end)], None)
        axes = dict(zip(index_map.initial_indices, np.indices(shape), strict=True))
        values = [brute_force.values(expr, axes) for expr in index_map.final_indices]
        extents = [int(value.max()) + 1 for value in values]

        assert np.array_equal(np.ravel_multi_index(values, extents), np.arange(48).reshape(shape))


def test_missing_axes_are_zeros_in_front() -> None:
    assert str(collapse_map((7,), None, 3)) == "lambda d0: [0, 0, d0]"


@pytest.mark.parametrize(
    ("rank", "intervals", "expected"),
    [
        (
            4, [(0, 3), (2, 4)],
            Diagnostic("shards", begin=2, intervals="[(0, 3), (2, 4)]"),
        ),
        (
            4, [(0, 5)],
            Diagnostic("shards", begin=0, end=5, rank=4),
        ),
        (
            4, [(-5, 2)],
            Diagnostic("shards", begin=-5, end=2, rank=4),
        ),
        (
            4, [(-1, 1)],
            Diagnostic("shards", begin=-1, end=1, rank=4),
        ),
        (
            4, [(0, 1, 2)],
            Diagnostic("shards", pair=(0, 1, 2)),
        ),
        (
            4, (0, -1),
            Diagnostic("shards", pair=0),
        ),
    ],
    ids=["overlap", "end", "begin", "backwards", "three", "no-list"],
)
def test_refusals(rank: int, intervals: Any, expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        merged_dims(rank, intervals)

    assert diagnostic(caught.value) == expected
