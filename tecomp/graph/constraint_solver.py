"""Minimum-cost assignment by variable elimination; minimal conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, prod
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Table: TypeAlias = "npt.NDArray[np.float64]"

BUDGET = 4_000_000
"""Maximum number of entries of a cost table."""


@dataclass(frozen=True, slots=True)
class CostTable:
    """Joint cost of a few variables.

    Attributes:
        variables: Variable numbers.
        costs: Cost table with one axis per variable; infinite for forbidden combinations.
    """

    variables: tuple[int, ...]
    costs: Table


@dataclass(frozen=True, slots=True)
class Assignment:
    """A candidate for each variable, with a bound on the optimal cost.

    Attributes:
        values: Candidate number of each variable.
        cost: Total cost; infinite if the problem is infeasible.
        lower_bound: Lower bound of the cost of every assignment.
        width: Maximum number of variables eliminated jointly.
        is_exact: Whether the assignment is optimal.
    """

    values: tuple[int, ...]
    cost: float
    lower_bound: float
    width: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class _Elimination:
    """Elimination of one variable by minimization over the tables that contain it.

    Attributes:
        variable: Variable number.
        neighbours: Other variables of those tables.
        costs: Sum of those tables, with the variable as last axis; None if the sum exceeds the
            budget and the tables were minimized separately.
    """

    variable: int
    neighbours: tuple[int, ...]
    costs: Table | None


def minimise(
    domains: Sequence[int], factors: Iterable[CostTable], budget: int = BUDGET
) -> Assignment:
    """Find a minimum-cost assignment by variable elimination.

    Args:
        domains: Number of candidates of each variable.
        factors: Cost tables, which are summed.
        budget: Maximum number of entries of a table.

    Returns:
        The assignment; optimal unless a table would exceed the budget.

    >>> apart = np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> own = CostTable((0,), np.array([5.0, 0.0])), CostTable((1,), np.array([0.0, 4.0]))
    >>> minimise([2, 2], [CostTable((0, 1), apart), *own])
    Assignment(values=(1, 0), cost=3.0, lower_bound=3.0, width=2, is_exact=True)
    """
    if 0 in domains:
        return Assignment((0,) * len(domains), inf, inf, 0, is_exact=True)
    tables = [factor for factor in factors if factor.variables]
    steps, bound, width = _eliminate(domains, tables, budget)
    values = _back_substitute(domains, steps)
    if all(step.costs is not None for step in steps):
        # Recompute the cost in input order: float sums depend on the order in the last bits.
        cost = _cost(tables, values)
        return Assignment(tuple(values), cost, cost, width, is_exact=True)
    values = _descend(domains, tables, values)
    cost = _cost(tables, values)
    return Assignment(tuple(values), cost, bound, width, is_exact=cost <= bound)


def _eliminate(
    domains: Sequence[int], factors: Sequence[CostTable], budget: int
) -> tuple[list[_Elimination], float, int]:
    """Eliminate all variables; return the steps, a lower bound of the cost, and the width."""
    tables: dict[int, list[CostTable]] = {v: [] for v in range(len(domains))}
    position = {v: k for k, v in enumerate(_order(domains, factors))}

    def put(factor: CostTable) -> float:
        if not factor.variables:
            return float(factor.costs)
        tables[min(factor.variables, key=position.__getitem__)].append(factor)
        return 0.0

    bound = sum(put(factor) for factor in factors)
    steps, width = [], 0
    for variable in sorted(position, key=position.__getitem__):
        bucket = tables.pop(variable)
        neighbours = tuple(sorted({v for f in bucket for v in f.variables} - {variable}))
        scope = (*neighbours, variable)
        width = max(width, len(scope))
        if prod(domains[v] for v in scope) <= budget:
            costs = _join(bucket, scope, domains)
            steps.append(_Elimination(variable, neighbours, costs))
            bound += put(CostTable(neighbours, costs.min(axis=-1)))
            continue
        steps.append(_Elimination(variable, neighbours, None))
        for part in _parts(bucket, variable, domains, budget):
            others = tuple(sorted({v for f in part for v in f.variables} - {variable}))
            costs = _join(part, (*others, variable), domains)
            bound += put(CostTable(others, costs.min(axis=-1)))
    return steps, bound, width


def _order(domains: Sequence[int], factors: Sequence[CostTable]) -> list[int]:
    """Return an elimination order: variables from the leaves of a tree decomposition upwards."""
    import networkx as nx  # imported lazily: it takes 0.25 s, and most programs need no layouts

    graph = nx.Graph()
    graph.add_nodes_from(range(len(domains)))
    for factor in factors:
        graph.add_edges_from(combinations(factor.variables, 2))
    order: list[int] = []
    for component in nx.connected_components(graph):
        _, tree = nx.approximation.treewidth_min_degree(graph.subgraph(component))
        root = next(iter(tree))
        seen: set[int] = set()
        for bag in nx.dfs_preorder_nodes(tree, root):
            order += sorted(set(bag) - seen, reverse=True)
            seen |= bag
    return order[::-1]


def _join(factors: Iterable[CostTable], scope: tuple[int, ...], domains: Sequence[int]) -> Table:
    """Sum cost tables over the variables of `scope`, with one axis per variable."""
    total = np.zeros([domains[v] for v in scope])
    for factor in factors:
        order = sorted(range(len(factor.variables)), key=lambda k: scope.index(factor.variables[k]))
        variables = {factor.variables[k] for k in order}
        shape = [domains[v] if v in variables else 1 for v in scope]
        total += factor.costs.transpose(order).reshape(shape)
    return total


def _parts(
    factors: Sequence[CostTable], variable: int, domains: Sequence[int], budget: int
) -> list[list[CostTable]]:
    """Partition tables greedily so that the sum of each part stays within the budget."""
    parts: list[tuple[set[int], list[CostTable]]] = []
    for factor in sorted(factors, key=lambda f: -f.costs.size):
        for scope, part in parts:
            if prod(domains[v] for v in scope | set(factor.variables)) <= budget:
                scope |= set(factor.variables)
                part.append(factor)
                break
        else:
            parts.append(({variable, *factor.variables}, [factor]))
    return [part for _, part in parts]


def _back_substitute(domains: Sequence[int], steps: Sequence[_Elimination]) -> list[int]:
    """Recover the minimizing candidates by back-substitution in reverse elimination order."""
    values = [0] * len(domains)
    for step in reversed(steps):
        if step.costs is not None:
            neighbours = tuple(values[v] for v in step.neighbours)
            values[step.variable] = int(step.costs[neighbours].argmin())
    return values


def _cost(factors: Sequence[CostTable], values: Sequence[int]) -> float:
    return float(sum(f.costs[tuple(values[v] for v in f.variables)] for f in factors))


def _descend(
    domains: Sequence[int], factors: Sequence[CostTable], values: Sequence[int]
) -> list[int]:
    """Improve an assignment by coordinate descent: fewest forbidding tables, then lowest cost."""
    best = list(values)
    tables_of: dict[int, list[CostTable]] = {v: [] for v in range(len(domains))}
    for factor in factors:
        for variable in factor.variables:
            tables_of[variable].append(factor)
    changed = True
    while changed:
        changed = False
        for variable, tables in tables_of.items():
            costs = [_price(tables, best, variable, value) for value in range(domains[variable])]
            cheapest = min(range(domains[variable]), key=costs.__getitem__)
            if costs[cheapest] < costs[best[variable]]:
                best[variable], changed = cheapest, True
    return best


def _price(
    factors: Sequence[CostTable], values: Sequence[int], variable: int, value: int
) -> tuple[int, float]:
    """Return the number of tables that forbid a candidate, and its cost in the other tables."""
    costs = [
        float(f.costs[tuple(value if v == variable else values[v] for v in f.variables)])
        for f in factors
    ]
    return sum(cost == inf for cost in costs), sum(cost for cost in costs if cost < inf)


T = TypeVar("T")


def minimal_conflict(wishes: Sequence[T], is_possible: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a minimal infeasible subset of constraints.

    Args:
        wishes: Constraints that are infeasible together; at least one.
        is_possible: Predicate that tests whether a subset is feasible.
    """
    remaining = list(wishes)
    for wish in wishes:
        without = [other for other in remaining if other is not wish]
        if without and not is_possible(without):
            remaining = without
    return remaining
