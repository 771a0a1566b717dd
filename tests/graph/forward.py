"""Greedy layout assignment in program order, the baseline for exact layout assignment."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from tecomp.compute import Operation, Tensor
from tecomp.graph import (
    LayoutCapabilities,
    LayoutCombination,
    LayoutProblem,
    LayoutState,
    ProgramGraph,
    build_layout_problem,
    moved_elements,
)
from tecomp.layout import Layout
from tecomp.machine import Target


def forward_relayouts(graph: ProgramGraph, target: Target) -> tuple[int, int] | None:
    """Return the relayout cost of greedy layout assignment, operation by operation.

    Each operation in turn takes its cheapest layouts and relayouts its own operands. Exact layout
    assignment is compared with this cost.

    Args:
        graph: Program.
        target: Target machine.

    Returns:
        Number of elements moved and number of bytes written. None if an operation has no supported
        layouts after the choices for its predecessors.
    """
    problem = build_layout_problem(graph, LayoutCapabilities(target), [], ())
    result = {x: value.computable_candidates[0] for x, value in problem.values.items()}
    elements, nbytes = 0, 0
    for op, ways in problem.combinations.items():
        costs = [_cost_now(problem, op, way, result) for way in ways]
        way = min(ways, key=lambda item: costs[ways.index(item)], default=None)
        if way is None or min(costs) == inf:
            return None
        elements += int(min(costs))
        result.update(zip(op.outputs, way.outs, strict=True))
        for tensor, number in _copied(problem, op, way, result):
            value, slot = problem.values[tensor], problem.values[tensor].candidates[number]
            nbytes += slot.nbytes if isinstance(slot, Layout) and not value.is_known else 0
    return elements, nbytes


def _copied(
    problem: LayoutProblem, op: Operation, way: LayoutCombination, result: Mapping[Tensor, int]
) -> set[tuple[Tensor, int]]:
    """Return the operands that an operation reads in another layout than their producer's."""
    expected = {(s.tensor, n) for s, n in zip(problem.slots[op], way.inputs, strict=True)}
    return {(tensor, number) for tensor, number in expected if number != result[tensor]}


def _cost_now(
    problem: LayoutProblem, op: Operation, way: LayoutCombination, result: Mapping[Tensor, int]
) -> float:
    """Return the elements moved for one operation, given the layouts of its predecessors."""
    if any(k not in problem.values[x].computable_candidates for k, x in zip(way.outs, op.outputs, strict=True)):
        return inf
    cost = way.cost
    for tensor, number in _copied(problem, op, way, result):
        state = LayoutState(result[tensor], frozenset({number}))
        value = problem.values[tensor]
        is_layout = isinstance(value.candidates[number], Layout)
        moved = moved_elements(problem, tensor, [state])[0] if is_layout else inf
        cost += 0.0 if value.is_known and is_layout else moved
    return cost
