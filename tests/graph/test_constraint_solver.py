"""Optimal assignment against exhaustive search, and bounds where tables would be too large."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest

from tecomp.graph import CostTable, minimise


def drawn(seed: int) -> tuple[list[int], list[CostTable]]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    domains = [int(n) for n in rng.integers(1, 4, count)]
    factors = []
    for _ in range(rng.integers(0, 9)):
        size = int(rng.integers(1, min(count, 3) + 1))
        variables = tuple(int(v) for v in rng.permutation(count)[:size])
        costs = rng.integers(0, 10, [domains[v] for v in variables]).astype(float)
        costs[rng.random(costs.shape) < 0.15] = inf
        factors.append(CostTable(variables, costs))
    return domains, factors


def cheapest(domains: list[int], factors: list[CostTable]) -> float:
    return min(
        sum(float(f.costs[tuple(values[v] for v in f.variables)]) for f in factors)
        for values in product(*map(range, domains))
    )


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_assignment_is_cheaper(first: int) -> None:
    for seed in range(first, first + 50):
        domains, factors = drawn(seed)
        found = minimise(domains, factors)

        assert (found.cost, found.lower_bound) == (cheapest(domains, factors),) * 2, seed
        assert found.is_exact


@pytest.mark.parametrize("budget", [1, 3, 9])
def test_small_tables_give_a_bound(budget: int) -> None:
    for seed in range(100):
        domains, factors = drawn(seed)
        found, best = minimise(domains, factors, budget), cheapest(domains, factors)

        assert found.lower_bound <= best <= found.cost, seed
        assert not found.is_exact or found.cost == best, seed


def test_a_chain_takes_tables_of_two() -> None:
    rng = np.random.default_rng(0)
    factors = [CostTable((k, k + 1), rng.random((5, 5))) for k in range(300)]

    assert minimise([5] * 301, factors).width == 2
