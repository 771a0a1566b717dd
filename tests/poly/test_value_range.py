"""Minimum and maximum of index expressions over a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.poly import IndexMap, value_range

CASES: dict[str, Callable[..., Any]] = {
    "sum": lambda i, j, k: i * 40 + j * 3 + k,
    "negative": lambda i, j, k: 7 - 2 * i + j * -3,
    "digits": lambda i, j, k: i // 2 % 4 + j // 5 * 10 - k % 8,
    "digits-of-one-axis": lambda i, j, k: i % 4 * 10 - i // 4,
    "short-period": lambda i, j, k: (i * 5 + j) % 7 * 3,
    "fold": lambda i, j, k: (i * 13 + j) // 9 - k,
    "bits": lambda i, j, k: (i ^ k) - (j & 5),
    "constant": lambda i, j, k: 12,
    "minus-constant": lambda i, j, k: -3,
}


@pytest.mark.parametrize("shape", [(3, 13, 5), (11, 13, 6), (60, 13, 40)])
@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_value_range(function: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    index_map = IndexMap.from_func(lambda i, j, k: [function(i, j, k)])
    values = np.asarray(function(*np.indices(shape)))

    found = value_range(index_map.final_indices[0], index_map.initial_indices, shape)

    assert found == (values.min(), values.max())
