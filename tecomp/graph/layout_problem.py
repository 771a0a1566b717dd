"""The layout optimization problem and its minimum-cost choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf

import numpy as np

from tecomp.compute.operation import Operation, PlaceholderOp
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import Hint
from tecomp.errors import LayoutError
from tecomp.graph.constraint_solver import Assignment, CostTable, Table, minimise
from tecomp.graph.dag import ProgramGraph, steps_of_scans
from tecomp.graph.layout_candidates import (
    candidates,
    has_layouts,
    is_one_to_a_row,
    layout_along,
    layouts_in,
)
from tecomp.graph.layout_combinations import (
    LayoutCapabilities,
    LayoutCombination,
    OperandSlot,
    Seat,
    is_layout_opaque,
    is_same_place,
    runs_along,
    slots_of,
    view_in_layout,
    view_of,
)
from tecomp.graph.layout_demands import LayoutRequirement, check_demanded_layout
from tecomp.graph.padding_propagation import has_padding_value, requested_paddings, with_paddings
from tecomp.graph.sizes import elements_of, plain_layout, sizes_of
from tecomp.layout.core.layout import Layout


@dataclass(frozen=True, slots=True)
class LayoutState:
    """Assignment of a value: the candidate in which it is computed, and those of its copies."""

    computed_candidate: int
    copies: frozenset[int]


@dataclass(frozen=True, slots=True)
class LayoutVariable:
    """Storage candidates of a value.

    Attributes:
        candidates: Candidates: layouts, and for a view the views of its source candidates.
        computable_candidates: Candidates in which the value can be computed.
        is_known: Whether the value depends on constants only, so that copies are free.
        readers: Number of operand slots that read the value.
        hints: Soft hints on the value.
        detour: Number of elements that count as moved unless the first candidate is chosen.
        scattered: Candidates that the copy to the host would move element by element; empty for
            values that the host does not get, or whose layout is requested.
    """

    candidates: tuple[Seat, ...]
    computable_candidates: tuple[int, ...]
    is_known: bool
    readers: int
    hints: tuple[Hint, ...]
    detour: float = 0.0
    scattered: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LayoutProblem:
    """Layout optimization problem of a program.

    Attributes:
        graph: Program.
        machine: Layout capabilities of the target.
        values: Candidates of each value.
        slots: Operand slots of each operation.
        opaque: Operations that no rule describes.
        combinations: Supported combinations of each operation.
        copying: Explicit copies to a requested layout.
        permitted_layouts: Permitted layouts of the values with requirements.
        soft: Hints by value.
        paddings: Padding values that readers require, by value.
        readers: Number of operand slots that read each value.
    """

    graph: ProgramGraph
    machine: LayoutCapabilities
    values: dict[Tensor, LayoutVariable]
    slots: dict[Operation, tuple[OperandSlot, ...]]
    opaque: frozenset[Operation]
    combinations: dict[Operation, tuple[LayoutCombination, ...]]
    copying: set[Operation]
    permitted_layouts: Mapping[Tensor, tuple[Layout, ...]]
    soft: Mapping[Tensor, Sequence[Hint]]
    paddings: Mapping[Tensor, AbstractSet[float]]
    readers: Mapping[Tensor, int]

    @cached_property
    def share(self) -> float:
        """Cost of a byte, such that all possible copies together cost less than one element."""
        layouts = (
            x for value in self.values.values() for x in value.candidates if isinstance(x, Layout)
        )
        return 0.25 / max(sum(layout.nbytes for layout in layouts), 1)

    def candidate_layouts(self, tensor: Tensor, layouts: Sequence[Layout]) -> tuple[Layout, ...]:
        """Return the given layouts and all others that the target or a reader suggests."""
        found = dict.fromkeys((*layouts, *_target_candidates(tensor, self.machine)))
        values = sorted(self.paddings.get(tensor, ()))
        found = dict.fromkeys(with_paddings(tuple(found), values, self.machine.target))
        if any(op in self.opaque for op in self.graph.readers.get(tensor.op, ())):
            found.setdefault(plain_layout(tensor))
        return tuple(found)

    def value(
        self, tensor: Tensor, initial: Sequence[Seat], ids: Iterable[int], *, is_known: bool
    ) -> LayoutVariable:
        """Return the candidates of a value, beginning with `initial`."""
        layouts = [storage for storage in initial if isinstance(storage, Layout)]
        storages = tuple(dict.fromkeys((*initial, *self.candidate_layouts(tensor, layouts))))
        hints = tuple(self.soft.get(tensor, ()))
        return LayoutVariable(storages, tuple(ids), is_known, self.readers.get(tensor, 0), hints)


def build_layout_problem(
    graph: ProgramGraph, machine: LayoutCapabilities, demands: Sequence[LayoutRequirement],
    hints: Sequence[Hint]
) -> LayoutProblem:
    """Build the layout optimization problem.

    Raises:
        LayoutError: If an operation cannot be analyzed, or a value has no layout.
    """
    values = (*graph.inputs, *graph.constants, *(x for op in graph.operations for x in op.outputs))
    steps = steps_of_scans(graph.operations)
    opaque = frozenset(op for op in graph.operations if is_layout_opaque(op) or op in steps)
    slots = {op: slots_of(op, set(values), is_opaque=op in opaque) for op in graph.operations}
    readers: dict[Tensor, int] = {}
    for slot in (slot for op_slots in slots.values() for slot in op_slots):
        readers[slot.tensor] = readers.get(slot.tensor, 0) + 1
    soft: dict[Tensor, list[Hint]] = {}
    for hint in hints:
        soft.setdefault(graph.of(hint.tensor), []).append(hint)
    ruled = [op for op in graph.operations if op not in opaque]
    views = {op: load for op in ruled if (load := view_of(op)) is not None}
    paddings = requested_paddings(ruled, views, machine.target, is_strict=machine.is_strict)
    problem = LayoutProblem(
        graph, machine, {}, slots, opaque, {}, set(), _required_layouts(demands, machine), soft,
        paddings,
        readers,
    )
    for x in (*graph.inputs, *graph.constants):
        problem.values[x] = _input_variable(problem, x)
    for op in graph.operations:
        _add(problem, op)
    if has_layouts(machine.target):
        _count_host_copies(problem)
    return problem


def _count_host_copies(problem: LayoutProblem) -> None:
    """Find the layouts of outputs that the host would get element by element."""
    for x in problem.graph.outputs:
        value = problem.values[x]
        if x not in problem.permitted_layouts and not value.hints and not value.is_known:
            scattered = (k for k, s in enumerate(value.candidates) if is_scattered(s, x))
            problem.values[x] = replace(value, scattered=frozenset(scattered))


def is_scattered(storage: Seat, tensor: Tensor) -> bool:
    """Return whether rows of a tensor in host memory are not contiguous in its storage.

    Values with one element per stick are not: no layout of such a value has contiguous rows.
    """
    nontrivial = [axis for axis, extent in enumerate(sizes_of(tensor)) if extent > 1]
    layout = storage if isinstance(storage, Layout) else storage.layout
    if len(nontrivial) < 2 or is_one_to_a_row(layout):
        return False
    return not runs_along(storage, tensor, nontrivial[-1])


def _required_layouts(
    demands: Sequence[LayoutRequirement], machine: LayoutCapabilities
) -> dict[Tensor, tuple[Layout, ...]]:
    """Return the permitted layouts of values with requirements; empty if these conflict."""
    found: dict[Tensor, tuple[Layout, ...]] = {}
    for demand in demands:
        layouts = _layouts_of(demand, machine)
        found[demand.tensor] = tuple(x for x in found.get(demand.tensor, layouts) if x in layouts)
    return found


def _input_variable(problem: LayoutProblem, tensor: Tensor) -> LayoutVariable:
    """Return the candidates of an input or a constant.

    An input arrives in a required layout, else in the default layout of the target or a hinted
    one; if that is infeasible, the host supplies another layout. A constant is packed once, in
    any layout.
    """
    is_known = tensor in problem.graph.constants
    if tensor in problem.permitted_layouts:
        layouts: Sequence[Layout] = problem.permitted_layouts[tensor]
        return problem.value(tensor, layouts, range(len(layouts)), is_known=is_known)
    layouts = problem.candidate_layouts(tensor, ())
    full = [k for k, layout in enumerate(layouts) if not is_one_to_a_row(layout)]
    if not is_known and not problem.machine.is_strict and tensor not in problem.soft:
        numbers = range(len(layouts)) if problem.machine.is_lone else full
        unpadded = [k for k in numbers if layouts[k].pad_value is None]
        value = problem.value(tensor, layouts, unpadded, is_known=False)
        return replace(value, detour=float(elements_of(tensor)))
    if not is_known:
        is_wished = tensor in problem.soft
        full = [k for k in full if layouts[k].pad_value is None] if is_wished else full[:1]
    return problem.value(tensor, layouts, full, is_known=is_known)


def _add(problem: LayoutProblem, op: Operation) -> None:
    """Add the candidates of the results of an operation, and the combinations that it supports."""
    values, machine = problem.values, problem.machine
    reads = [x for x in op.input_tensors if x in values]
    is_known = bool(reads) and all(values[x].is_known for x in reads)
    load = None if op in problem.opaque else view_of(op)
    if (
        load is not None
        and op.output(0) not in problem.permitted_layouts
        and load.tensor in values
    ):
        x = op.output(0)
        storages, combos = _view_candidates(
            op, values[load.tensor].candidates, problem.candidate_layouts(x, ())
        )
        computable = dict.fromkeys(combo.outs[0] for combo in combos)
        values[x] = problem.value(x, storages, computable, is_known=is_known)
        problem.combinations[op] = combos
        return
    for x in op.outputs:
        known = (
            problem.permitted_layouts[x]
            if x in problem.permitted_layouts
            else problem.candidate_layouts(x, ())
        )
        if op in problem.opaque:
            known = (plain_layout(x),)
        values[x] = problem.value(x, known, range(len(known)), is_known=is_known)
    if op in problem.opaque:
        reads = [slot.tensor for slot in problem.slots[op]]
        numbers = tuple(values[x].candidates.index(plain_layout(x)) for x in reads)
        permitted = problem.permitted_layouts
        is_plain = all(plain_layout(x) in permitted.get(x, (plain_layout(x),)) for x in op.outputs)
        combo = LayoutCombination((0,) * op.num_outputs, numbers)
        problem.combinations[op] = (combo,) if is_plain else ()
        return
    candidates = {x: value.candidates for x, value in values.items()}
    problem.combinations[op] = _with_costs(
        op, machine.combinations(op, problem.slots[op], candidates), problem
    )


def _with_costs(op: Operation, ways: Sequence[LayoutCombination], problem: LayoutProblem) -> tuple[
        LayoutCombination, ...]:
    """Set the costs of combinations; an explicit copy moves all elements."""
    computed = [set(problem.values[x].computable_candidates) for x in op.outputs]
    fit = [w for w in ways if all(k in ids for k, ids in zip(w.outs, computed, strict=True))]
    load = view_of(op)
    if load is None:
        return tuple(replace(combo, cost=_num_filled_elements(op, combo, problem)) for combo in fit)
    problem.copying.add(op)
    source, result = problem.values[load.tensor], problem.values[op.output(0)]
    priced = []
    for combo in fit:
        out = result.candidates[combo.outs[0]]
        view = view_in_layout(op, load, source.candidates[combo.inputs[0]])
        is_free = source.is_known or (isinstance(out, Layout) and is_same_place(view, out))
        cost = 0.0 if is_free else float(elements_of(op.output(0)))
        priced.append(LayoutCombination(combo.outs, combo.inputs, cost))
    return tuple(priced)


def _num_filled_elements(op: Operation, combo: LayoutCombination, problem: LayoutProblem) -> float:
    """Return the number of padding elements that an operation must fill explicitly."""
    out = problem.values[op.output(0)].candidates[combo.outs[0]]
    if not isinstance(out, Layout) or out.pad_value is None:
        return 0.0
    storages = {
        slot.tensor: problem.values[slot.tensor].candidates[n]
        for slot, n in zip(problem.slots[op], combo.inputs, strict=True)
    }
    return 0.0 if has_padding_value(op, out, storages) else float(out.padding_count)


def _view_candidates(
    op: Operation, source: Sequence[Seat], known: Sequence[Layout]
) -> tuple[tuple[Seat, ...], tuple[LayoutCombination, ...]]:
    """Return the candidates of a view, and the pairs of view and source candidates."""
    load = view_of(op)
    assert load is not None
    candidates: list[Seat] = list(known)
    combos = []
    for n, storage in enumerate(source):
        view = view_in_layout(op, load, storage)
        number = next((k for k, layout in enumerate(known) if is_same_place(view, layout)), None)
        if number is None:
            number = len(candidates)
            candidates.append(view)
        combos.append(LayoutCombination((number,), (n,)))
    return tuple(candidates), tuple(combos)


def _target_candidates(tensor: Tensor, machine: LayoutCapabilities) -> tuple[Layout, ...]:
    """Return the candidate layouts of a tensor on the target.

    Raises:
        LayoutError: If the target cannot store the dtype.
    """
    shape = sizes_of(tensor)
    key = shape, tensor.dtype
    if key not in machine.known:
        try:
            machine.known[key] = candidates(machine.target, shape, tensor.dtype)
        except LayoutError as error:
            raise LayoutError(
                "layouts: {tensor} has no layout on {target}: {reason}",
                kind=error.kind, tensor=tensor.name, target=machine.target.name,
                reason=error.message,
            ) from None
    return machine.known[key]


def _default_layout(tensor: Tensor, machine: LayoutCapabilities) -> Layout:
    """Return the default layout of the target; operations without rules use row-major order."""
    is_computed = not isinstance(tensor.op, PlaceholderOp)
    if is_computed and is_layout_opaque(tensor.op):
        return plain_layout(tensor)
    return _target_candidates(tensor, machine)[0]


def _layouts_of(demand: LayoutRequirement, machine: LayoutCapabilities) -> tuple[Layout, ...]:
    """Return the layouts that a requirement permits."""
    tensor, spec = demand.tensor, demand.permitted
    if demand.axis is not None:
        order = layout_along(machine.target, sizes_of(tensor), tensor.dtype, demand.axis)
        known = dict.fromkeys((*_target_candidates(tensor, machine), order))
        return tuple(layout for layout in known if runs_along(layout, tensor, demand.axis))
    found = tuple(
        _default_layout(tensor, machine) if layout == "default" else layout
        for layout in layouts_in(spec)
    )
    for layout in found:
        check_demanded_layout(tensor, layout, machine.target)
    if not found:
        raise LayoutError(
            "layouts: {tensor} has an empty list of candidate layouts; pass one or more",
            kind="layout-requirement", tensor=tensor.name,
        )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """Solution: the state of each value, and the combination of each operation."""

    assignment: Assignment
    states: Mapping[Tensor, LayoutState]
    combinations: Mapping[Operation, LayoutCombination]


def states_of(value: LayoutVariable, *, may_copy: bool) -> list[LayoutState]:
    """Enumerate the candidates of a value together with sets of copies, at most one per reader."""
    layouts = [k for k, storage in enumerate(value.candidates) if isinstance(storage, Layout)]
    found = []
    for computed in value.computable_candidates:
        others = [k for k in layouts if k != computed]
        for size in range(min(value.readers, len(others)) + 1 if may_copy else 1):
            found += [LayoutState(computed, frozenset(c)) for c in combinations(others, size)]
    return found


def minimum_cost_layouts(
    problem: LayoutProblem, states: Mapping[Tensor, Sequence[LayoutState]], count: int
) -> LayoutChoice:
    """Find the minimum-cost choice for the first `count` operations."""
    combos = dict(list(problem.combinations.items())[:count])
    involved = {x for op in combos for x in (*op.outputs, *(s.tensor for s in problem.slots[op]))}
    value_states = {x: states[x] for x in problem.values if x in involved}
    if not all(value_states.values()) or not all(combos.values()):
        return LayoutChoice(Assignment((), inf, inf, 0, is_exact=True), {}, {})
    keys: tuple[Tensor | Operation, ...] = (*value_states, *combos)
    number = {key: k for k, key in enumerate(keys)}
    factors = [CostTable((number[x],), _costs(problem, x, states[x])) for x in value_states]
    for op, options in combos.items():
        costs = [combo.cost + _exchange_cost(problem, op, combo) for combo in options]
        factors.append(CostTable((number[op],), np.array(costs, float)))
        factors += _tables(problem, op, states, number)
    assignment = minimise([*map(len, value_states.values()), *map(len, combos.values())], factors)
    chosen = {x: options[assignment.values[number[x]]] for x, options in value_states.items()}
    picked = {op: options[assignment.values[number[op]]] for op, options in combos.items()}
    return LayoutChoice(assignment, chosen, picked)


def _exchange_cost(problem: LayoutProblem, op: Operation, combo: LayoutCombination) -> float:
    """Return the cost of exchanged factors of a product; 0 for other combinations.

    The host gets rows of an output, so a transposed output is relaid. Otherwise, the cost is below
    that of a byte, so that the order as written is preferred among equals.
    """
    if not combo.is_exchanged:
        return 0.0
    x, cost = op.output(0), problem.share / 2
    value = problem.values[x]
    layout = value.candidates[combo.outs[0]]
    if combo.outs[0] in value.scattered and isinstance(layout, Layout):
        cost += elements_of(x) + problem.share * layout.nbytes
    return cost


def _costs(problem: LayoutProblem, tensor: Tensor, states: Sequence[LayoutState]) -> Table:
    """Return the cost of each state of a value: its copies and its unmet hints."""
    value = problem.values[tensor]
    unmet = {
        computed: sum(
            h.cost for h in value.hints if not satisfies_hint(value.candidates[computed], tensor, h)
        )
        for computed in value.computable_candidates
    }
    costs = np.array([unmet[state.computed_candidate] for state in states], float)
    costs += [
        value.detour * (state.computed_candidate != value.computable_candidates[0])
        for state in states
    ]
    # Of assignments that move equally many elements, prefer those with contiguous outputs.
    tie_weight = 0.25 / max(len(problem.graph.outputs), 1)
    costs += [
        tie_weight * value.scattered.issuperset({s.computed_candidate, *s.copies}) for s in states
    ]
    if not value.is_known:
        return costs + moved_elements(problem, tensor, states)
    # Constants are packed once, so they cost memory only.
    sizes = [storage.nbytes if isinstance(storage, Layout) else 0 for storage in value.candidates]
    memory = np.array(
        [sum(sizes[k] for k in (s.computed_candidate, *s.copies)) for s in states], float
    )
    return costs + problem.share * memory


def satisfies_hint(storage: Seat, tensor: Tensor, hint: Hint) -> bool:
    """Return whether the storage of a value satisfies a hint."""
    return runs_along(storage, tensor, hint.stick)


def copies_of(problem: LayoutProblem, tensor: Tensor, candidates: Iterable[int]) -> frozenset[int]:
    """Return the given candidates of a value, and the candidates that copies of them can reach."""
    storages, sources = problem.values[tensor].candidates, frozenset(candidates)
    layouts = {k: storage for k, storage in enumerate(storages) if isinstance(storage, Layout)}
    numbers = list(layouts)
    if problem.values[tensor].detour and problem.machine.is_repeated:
        return sources.union(numbers)
    prices = problem.machine.prices(tensor, storages, tuple(layouts.values()))
    return sources | {numbers[result] for source, result in prices if source in sources}


def can_copy(problem: LayoutProblem, tensor: Tensor, source: int, dest: int) -> bool:
    """Return whether the target can copy a value from one candidate to another."""
    storages = problem.values[tensor].candidates
    numbers = [k for k, storage in enumerate(storages) if isinstance(storage, Layout)]
    layouts = tuple(storage for storage in storages if isinstance(storage, Layout))
    return (source, numbers.index(dest)) in problem.machine.prices(tensor, storages, layouts)


def moved_elements(problem: LayoutProblem, tensor: Tensor, states: Sequence[LayoutState]) -> Table:
    """Return the number of elements that the copies of a value move, for each state."""
    value = problem.values[tensor]
    if not any(state.copies for state in states):
        return np.zeros(len(states))
    layouts = {k: s for k, s in enumerate(value.candidates) if isinstance(s, Layout)}
    prices = problem.machine.prices(tensor, value.candidates, tuple(layouts.values()))
    number = {k: n for n, k in enumerate(layouts)}
    share = problem.share
    # The host can supply an input in a layout that no device copy produces.
    other = value.detour or inf if problem.machine.is_repeated else inf

    def cost(computed: int, k: int) -> float:
        return prices.get((computed, number[k]), other) + share * layouts[k].nbytes

    return np.array(
        [sum(cost(state.computed_candidate, k) for k in state.copies) for state in states], float
    )


def _tables(
    problem: LayoutProblem, op: Operation, states: Mapping[Tensor, Sequence[LayoutState]],
    number: Mapping[Tensor | Operation, int],
) -> Iterator[CostTable]:
    """Yield tables that tie the combinations of an operation to the states of its values."""
    combos = problem.combinations[op]
    for k, x in enumerate(op.outputs):
        computed = np.array([state.computed_candidate for state in states[x]])
        outs = np.array([combo.outs[k] for combo in combos], int)
        yield CostTable((number[op], number[x]), np.where(outs[:, None] == computed, 0.0, inf))
    for k, slot in enumerate(problem.slots[op]):
        value_states = states[slot.tensor]
        table = np.full((len(problem.values[slot.tensor].candidates), len(value_states)), inf)
        for n, state in enumerate(value_states):
            table[[state.computed_candidate, *state.copies], n] = 0.0
        numbers = np.array([combo.inputs[k] for combo in combos], int)
        yield CostTable((number[op], number[slot.tensor]), table[numbers])
