"""Pairwise test cases cover all pairs, with a number of cases close to the minimum."""

from __future__ import annotations

import random
from itertools import combinations, product

from tests.strategies.pairwise import covering


def test_every_pair_is_there_and_few_rows_more() -> None:
    draw = random.Random(0)
    for _ in range(60):
        sizes = [draw.randint(1, 7) for _ in range(draw.randint(2, 5))]
        values = [[f"{k}:{n}" for n in range(size)] for k, size in enumerate(sizes)]

        rows = covering(values)

        assert len(set(rows)) == len(rows)
        assert all(row[k] in each for row in rows for k, each in enumerate(values))
        for a, b in combinations(range(len(values)), 2):
            assert {(row[a], row[b]) for row in rows} == set(product(values[a], values[b]))
        largest = sorted(sizes)[-2:]
        assert len(rows) <= 1.5 * largest[0] * largest[1] + 3


def test_pairwise_covers_all_pairs() -> None:
    assert sorted(covering([[1, 2, 3], "ab"])) == sorted(product([1, 2, 3], "ab"))
