"""A layout for every value of a program, with the relayouts that cost least in all.

Each operation has the combinations of layouts that the rules of the machine allow it, decided by
sets. A value is made in one layout; readers that need another get a copy, which all of them share.
What is chosen for an operation and for the values around it are variables, and which of them go
together is a table: `assignment` finds the cheapest, and says how sure it is of that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import inf, prod
from types import MappingProxyType

import numpy as np

from tecomp.compute.accesses import accesses
from tecomp.compute.define import compute, placeholder
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.check import allows, check_constraints
from tecomp.errors import LayoutError
from tecomp.graph.assignment import Assignment, Factor, Table, minimise
from tecomp.graph.dag import Graph
from tecomp.graph.keys import definition_key
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.sticks.forms import StickFormat
from tecomp.layout.sticks.stick import StickLayout
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class Copy:
    """A value brought to another layout.

    Attributes:
        tensor: the value.
        source: the layout that it is made in.
        layout: the one of the copy.
        readers: the operations that read the copy.
        elements: that are moved.
    """

    tensor: Tensor
    source: Layout
    layout: Layout
    readers: tuple[Operation, ...]
    elements: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """How sure it is that no other layouts cost less.

    Attributes:
        cost: elements that all relayouts move.
        lower_bound: no choice of layouts moves fewer.
        method: how that is known.
    """

    cost: int
    lower_bound: int
    method: str


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of a program.

    Attributes:
        of: the layout that each value is made in.
        relayouts: copies of values in other layouts.
        certificate: how sure it is that none would be cheaper.
    """

    of: Mapping[Tensor, Layout]
    relayouts: tuple[Copy, ...]
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class _State:
    """What is made of a value: in which candidate it lies, and which others there are copies of."""

    made: int
    copies: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Way:
    """A combination of candidates that an operation allows: of its result, and of its inputs."""

    out: int
    inputs: tuple[int, ...]
    cost: int = 0


def choose_layouts(
    graph: Graph, target: Target, given: Mapping[Tensor, Layout] = MappingProxyType({})
) -> Layouts:
    """The layouts of all values, with the fewest elements moved by relayouts.

    Args:
        graph: the program.
        target: a machine with sticks.
        given: layouts that inputs and constants come in; the target's own where none is said.

    Raises:
        LayoutError: an operation has no layouts that the rules allow, or cannot be decided about.
    """
    values = (*graph.inputs, *graph.constants, *(x for op in graph.operations for x in op.outputs))
    known = {x: _candidates(x, x.op in graph.readers, target, given.get(x)) for x in values}
    made = {x: range(1) if _is_given(x, graph) else range(len(known[x])) for x in values}
    chooser = _Chooser(target, known, {}, {})
    ways = {op: chooser.ways(op) for op in graph.operations}
    states = {
        x: list(_states(made[x], len(known[x]), len(graph.readers.get(x.op, ())))) for x in values
    }
    costs = {x: chooser.costs(x, states[x]) for x in values}
    found, taken, picked = _cheapest(states, costs, ways)
    if found.cost == inf:
        raise LayoutError(chooser.refusal(_first_impossible(states, costs, ways)))
    exact = "variable elimination along a tree decomposition, exact"
    bounded = "variables changed one at a time, against a bound of tables minimised apart"
    certificate = Certificate(
        int(found.cost), int(found.lower_bound), exact if found.is_exact else bounded
    )
    copies = tuple(copy for x in values for copy in _copies(x, taken[x], known[x], graph, picked))
    return Layouts(
        MappingProxyType({x: known[x][taken[x].made] for x in values}), copies, certificate
    )


def _cheapest(
    states: Mapping[Tensor, Sequence[_State]], costs: Mapping[Tensor, Table],
    ways: Mapping[Operation, Sequence[_Way]],
) -> tuple[Assignment, dict[Tensor, _State], dict[Operation, _Way]]:
    """What is made of each value, and the way of each operation, at the least cost in all."""
    keys: tuple[Tensor | Operation, ...] = (*states, *ways)
    number = {key: k for k, key in enumerate(keys)}
    factors = [Factor((number[x],), costs[x]) for x in states]
    for op, own in ways.items():
        factors.append(Factor((number[op],), np.array([float(way.cost) for way in own])))
        factors += _tables(op, own, states, number)
    found = minimise([*map(len, states.values()), *map(len, ways.values())], factors)
    taken = {x: own[found.values[number[x]]] for x, own in states.items()}
    return found, taken, {op: own[found.values[number[op]]] for op, own in ways.items()}


def _first_impossible(
    states: Mapping[Tensor, Sequence[_State]], costs: Mapping[Tensor, Table],
    ways: Mapping[Operation, Sequence[_Way]],
) -> Operation:
    """The first operation with which those up to it have no layouts."""
    ops = list(ways)

    def is_impossible(count: int) -> bool:
        found, _, _ = _cheapest(states, costs, {op: ways[op] for op in ops[:count]})
        return found.cost == inf

    return ops[bisect_left(range(1, len(ops) + 1), True, key=is_impossible)]


@dataclass(frozen=True, slots=True)
class _Chooser:
    """What a machine allows, and what was found out about it so far.

    Attributes:
        target: the machine.
        known: the candidates of each value.
        prices: of relayouts, by shape, type and the two layouts.
        allowed: the ways of operations, by what these compute and the candidates around them.
    """

    target: Target
    known: Mapping[Tensor, Sequence[Layout]]
    prices: dict[object, float]
    allowed: dict[object, list[_Way]]

    def ways(self, op: Operation) -> list[_Way]:
        """The combinations that an operation allows.

        Raises:
            LayoutError: there are none.
        """
        if not isinstance(op, ComputeOp) or op.num_outputs > 1:
            raise LayoutError(
                f"layouts: {op.name} is no te.compute of one result, so no rule of "
                f"{self.target.name} says in which layouts it runs"
            )
        out, reads = op.output(0), op.input_tensors
        key = definition_key([op], reads), *(tuple(self.known[x]) for x in (out, *reads))
        if key not in self.allowed:
            self.allowed[key] = self._allowed(op)
        if not self.allowed[key]:
            raise LayoutError(self.refusal(op))
        return self.allowed[key]

    def _allowed(self, op: ComputeOp) -> list[_Way]:
        out, reads = op.output(0), op.input_tensors
        view = _view(op)
        found: list[_Way] = []
        for k, *inputs in product(*(range(len(self.known[x])) for x in (out, *reads))):
            chosen = zip((out, *reads), (k, *inputs), strict=True)
            layouts = {x: self.known[x][n] for x, n in chosen}
            if allows(op, self.target, layouts):
                is_free = view is None or _is_same(view, layouts[reads[0]], layouts[out])
                found.append(_Way(k, tuple(inputs), 0 if is_free else _elements(out)))
        # Where a permutation needs no copy in some layouts, a copy is that of its input.
        return [way for way in found if not way.cost] or found

    def refusal(self, op: Operation) -> str:
        """What is said of an operation that has no layouts."""
        layouts = {x: self.known[x][0] for x in (op.output(0), *op.input_tensors)}
        violations = check_constraints(op, self.target, layouts)
        why = "; ".join(map(str, violations)) or f"{op.name}: its operands go together in no layout"
        return f"layouts: {op.name} is infeasible on {self.target.name}: {why}"

    def costs(self, tensor: Tensor, states: Sequence[_State]) -> Table:
        """What the copies of a value cost, for each of its states."""
        return np.array([
            sum(self._moved(tensor, state.made, other) for other in state.copies)
            for state in states
        ])

    def _moved(self, tensor: Tensor, source: int, result: int) -> float:
        first, second = self.known[tensor][source], self.known[tensor][result]
        key = (tensor.shape, tensor.dtype, first, second)
        if key not in self.prices:
            before = placeholder(tensor.shape, tensor.dtype, tensor.name)
            after = compute(tensor.shape, lambda *i: before[i if i else ()], name="copy")
            assert isinstance(after, Tensor)
            assert isinstance(after.op, ComputeOp)
            may = allows(after.op, self.target, {before: first, after: second})
            self.prices[key] = float(_elements(tensor)) if may else inf
        return self.prices[key]


def _is_given(tensor: Tensor, graph: Graph) -> bool:
    return tensor in graph.inputs or tensor in graph.constants


def _candidates(
    tensor: Tensor, is_read: bool, target: Target, given: Layout | None
) -> tuple[Layout, ...]:
    """The layouts that a value may lie in: sticks along each axis, full or of one element."""
    shape = tuple(extent for extent in tensor.shape if isinstance(extent, int))
    own = given or StickLayout.for_target(target, shape, tensor.dtype)
    found: dict[Layout, None] = {own: None}
    for form in (StickFormat.Dense, StickFormat.Sparse):
        for dim in reversed(range(len(shape))):
            order = [*(k for k in range(len(shape)) if k != dim), dim]
            layout = StickLayout.for_target(target, shape, tensor.dtype, order, form, size=shape)
            found.setdefault(layout)
    return tuple(found)


def _states(made: range, count: int, readers: int) -> Iterator[_State]:
    """A value in one candidate, with copies in as many others as there are readers."""
    for k in made:
        others = [other for other in range(count) if other != k]
        for size in range(min(readers, len(others)) + 1):
            for copies in combinations(others, size):
                yield _State(k, frozenset(copies))


def _tables(
    op: Operation, ways: Sequence[_Way], states: Mapping[Tensor, Sequence[_State]],
    number: Mapping[Tensor | Operation, int],
) -> Iterator[Factor]:
    """Which ways of an operation go together with which states of the values around it."""
    out = op.output(0)
    made = [[0.0 if way.out == state.made else inf for state in states[out]] for way in ways]
    yield Factor((number[op], number[out]), np.array(made))
    for k, tensor in enumerate(op.input_tensors):
        there = [
            [
                0.0 if way.inputs[k] in {state.made, *state.copies} else inf
                for state in states[tensor]
            ]
            for way in ways
        ]
        yield Factor((number[op], number[tensor]), np.array(there))


def _copies(
    tensor: Tensor, state: _State, known: Sequence[Layout], graph: Graph,
    picked: Mapping[Operation, _Way],
) -> Iterator[Copy]:
    for layout in sorted(state.copies):
        readers = tuple(
            op for op in graph.readers.get(tensor.op, ())
            if picked[op].inputs[op.input_tensors.index(tensor)] == layout
        )
        yield Copy(tensor, known[state.made], known[layout], readers, _elements(tensor))


def _view(op: ComputeOp) -> IndexMap | None:
    """Where in the only thing that it reads an element of a permutation is; None if it is none."""
    found = accesses(op.output(0))
    if found.reduce_axis or len(found.factors) != 1 or len(op.input_tensors) != 1:
        return None
    (read,) = found.factors
    axes = tuple(axis for axis in read.axes if axis is not None)
    is_all = len(set(axes)) == len(read.index) == len(op.axis)
    same = read.tensor.dtype == op.dtypes[0]
    return IndexMap(op.axis, axes, ()) if is_all and same else None


def _is_same(view: IndexMap, source: Layout, result: Layout) -> bool:
    """Whether a view of `source` has its elements where `result` has them."""
    return view.then(source.index_map).is_equivalent_to(result.index_map, result.shape)


def _elements(tensor: Tensor) -> int:
    return prod(extent for extent in tensor.shape if isinstance(extent, int))
