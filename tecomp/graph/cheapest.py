"""The cheapest choice of layouts: costs as tables over few values and operations each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.wishes import Hint
from tecomp.graph.assignment import Assignment, Factor, Table, minimise
from tecomp.graph.problem import Problem, State, Value
from tecomp.graph.ways import Seat, Way, runs_along
from tecomp.layout.descriptions.layout import Layout


@dataclass(frozen=True, slots=True)
class Choice:
    """What is made of each value, and the way of each operation."""

    found: Assignment
    states: Mapping[Tensor, State]
    ways: Mapping[Operation, Way]


def states_of(value: Value, *, may_copy: bool) -> list[State]:
    """A value in one seat, with copies in as many layouts as there are readers."""
    layouts = [k for k, seat in enumerate(value.seats) if isinstance(seat, Layout)]
    found = []
    for made in value.made:
        others = [k for k in layouts if k != made]
        for size in range(min(value.readers, len(others)) + 1 if may_copy else 1):
            found += [State(made, frozenset(each)) for each in combinations(others, size)]
    return found


def cheapest(
    problem: Problem, states: Mapping[Tensor, Sequence[State]], count: int
) -> Choice:
    """What costs least in all, for the first operations."""
    ways = dict(list(problem.ways.items())[:count])
    around = {x for op in ways for x in (*op.outputs, *(s.tensor for s in problem.slots[op]))}
    own = {x: states[x] for x in problem.values if x in around}
    if not all(own.values()) or not all(ways.values()):
        return Choice(Assignment((), inf, inf, 0, is_exact=True), {}, {})
    keys: tuple[Tensor | Operation, ...] = (*own, *ways)
    number = {key: k for k, key in enumerate(keys)}
    factors = [Factor((number[x],), _costs(problem, x, states[x])) for x in own]
    for op, each in ways.items():
        factors.append(Factor((number[op],), np.array([way.cost for way in each], float)))
        factors += _tables(problem, op, states, number)
    found = minimise([*map(len, own.values()), *map(len, ways.values())], factors)
    taken = {x: each[found.values[number[x]]] for x, each in own.items()}
    picked = {op: each[found.values[number[op]]] for op, each in ways.items()}
    return Choice(found, taken, picked)


def _costs(problem: Problem, tensor: Tensor, states: Sequence[State]) -> Table:
    """What the copies of a value cost, and hints that are not kept, for each of its states."""
    value = problem.values[tensor]
    unkept = {
        made: sum(h.cost for h in value.hints if not keeps(value.seats[made], tensor, h))
        for made in value.made
    }
    wished = np.array([unkept[state.made] for state in states], float)
    wished += [value.detour * (state.made != value.made[0]) for state in states]
    if not value.is_known:
        return wished + moved_for(problem, tensor, states)
    # What is laid out once costs its memory alone.
    sizes = [seat.nbytes if isinstance(seat, Layout) else 0 for seat in value.seats]
    held = np.array([sum(sizes[k] for k in (s.made, *s.copies)) for s in states], float)
    return wished + problem.share * held


def keeps(seat: Seat, tensor: Tensor, hint: Hint) -> bool:
    """Whether a value that lies in a seat is as a hint wishes."""
    return runs_along(seat, tensor, hint.stick)


def copies_of(problem: Problem, tensor: Tensor, made: Iterable[int]) -> frozenset[int]:
    """The seats of a value that is made in some: those, and the ones of copies."""
    seats, own = problem.values[tensor].seats, frozenset(made)
    layouts = {k: seat for k, seat in enumerate(seats) if isinstance(seat, Layout)}
    numbers = list(layouts)
    if problem.values[tensor].detour and problem.machine.is_repeated:
        return own.union(numbers)
    prices = problem.machine.prices(tensor, seats, tuple(layouts.values()))
    return own | {numbers[result] for source, result in prices if source in own}


def can_copy(problem: Problem, tensor: Tensor, made: int, copied: int) -> bool:
    """Whether the machine has a copy from one seat of a value to another."""
    seats = problem.values[tensor].seats
    numbers = [k for k, seat in enumerate(seats) if isinstance(seat, Layout)]
    layouts = tuple(seat for seat in seats if isinstance(seat, Layout))
    return (made, numbers.index(copied)) in problem.machine.prices(tensor, seats, layouts)


def moved_for(problem: Problem, tensor: Tensor, states: Sequence[State]) -> Table:
    """The elements that copies of a value move, for each of its states."""
    value = problem.values[tensor]
    if not any(state.copies for state in states):
        return np.zeros(len(states))
    layouts = {k: seat for k, seat in enumerate(value.seats) if isinstance(seat, Layout)}
    prices = problem.machine.prices(tensor, value.seats, tuple(layouts.values()))
    number = {k: n for n, k in enumerate(layouts)}
    share = problem.share
    # What no copy on the machine makes of an input, the host may lay out as well.
    other = value.detour or inf if problem.machine.is_repeated else inf

    def cost(made: int, k: int) -> float:
        return prices.get((made, number[k]), other) + share * layouts[k].nbytes

    return np.array([sum(cost(state.made, k) for k in state.copies) for state in states], float)


def _tables(
    problem: Problem, op: Operation, states: Mapping[Tensor, Sequence[State]],
    number: Mapping[Tensor | Operation, int],
) -> Iterator[Factor]:
    """Which ways of an operation go together with which states of the values around it."""
    ways = problem.ways[op]
    for k, x in enumerate(op.outputs):
        made = np.array([state.made for state in states[x]])
        outs = np.array([way.outs[k] for way in ways], int)
        yield Factor((number[op], number[x]), np.where(outs[:, None] == made, 0.0, inf))
    for k, slot in enumerate(problem.slots[op]):
        own = states[slot.tensor]
        there = np.full((len(problem.values[slot.tensor].seats), len(own)), inf)
        for n, state in enumerate(own):
            there[[state.made, *state.copies], n] = 0.0
        seats = np.array([way.inputs[k] for way in ways], int)
        yield Factor((number[op], number[slot.tensor]), there[seats])
