"""Assign a layout to every value, and explain infeasible programs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from operator import is_
from types import MappingProxyType
from typing import Any

from tecomp.compute.define import copy_of
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.check import Violation, violations_of
from tecomp.constraints.operation_view import IndirectAccess, computation
from tecomp.constraints.user_hints import Hint
from tecomp.errors import LayoutError
from tecomp.graph.constraint_solver import minimal_conflict
from tecomp.graph.dag import ProgramGraph, graph_with
from tecomp.graph.layout_candidates import Wanted, candidates, has_layouts, is_one_to_a_row
from tecomp.graph.layout_combinations import (
    LayoutCapabilities,
    LayoutCombination,
    OperandSlot,
    Seat,
    is_layout_opaque,
    view_of,
    written_elements,
)
from tecomp.graph.layout_demands import LayoutRequirement, demands_of
from tecomp.graph.layout_problem import (
    LayoutChoice,
    LayoutProblem,
    LayoutState,
    build_layout_problem,
    can_copy,
    minimum_cost_layouts,
    satisfies_hint,
    states_of,
)
from tecomp.graph.layout_result import (
    HintOutcome,
    InsertedCopy,
    OptimalityCertificate,
    ProgramLayouts,
)
from tecomp.graph.legalize import legalize
from tecomp.graph.sizes import plain_layout, sizes_of
from tecomp.layout.core.layout import Layout
from tecomp.machine.descriptor import Target


def _infeasible(
    op: Operation, target: Target, storages: Mapping[Tensor, Seat], outs: Sequence[Seat],
    *, can_mend: bool,
) -> LayoutError:
    """Return the error for an infeasible operation: violated rules with examples, and a remedy.

    Args:
        op: Operation.
        target: Target.
        storages: Storage of the operands.
        outs: Candidate storage of the result.
        can_mend: Whether an explicit relayout would make the operation feasible.
    """
    found = _fewest_violations(op, target, storages, outs)
    reads = ", ".join(dict.fromkeys(x.name for x in op.input_tensors)) or "nothing"
    where: dict[str, Any] = {"operation": op.name, "target": target.name}
    if not found:
        return LayoutError(
            "layouts: {operation} is infeasible on {target}: the layouts of {reads} that it "
            "supports are not compatible with those of the adjacent values; allow more layouts",
            kind="layout-requirement", **where, reads=reads,
        )
    # One violation per rule suffices as an example.
    by_rule = {id(violation.rule): violation for violation in reversed(found)}
    problems = "; ".join(_text(x, can_mend=can_mend) for x in reversed(by_rule.values()))
    if not can_mend:
        return LayoutError(
            "layouts: {operation} is infeasible on {target}: {problems}; no relayouts bring "
            "{reads} into a supported layout: allow more layouts, or make them inputs of a program "
            "that begins with {operation}",
            kind="layout-requirement", **where, problems=problems, reads=reads,
        )
    if any(violation.relayout is not None for violation in by_rule.values()):
        return LayoutError(
            "layouts: {operation} is infeasible on {target}: {problems}",
            kind="layout-requirement", **where, problems=problems,
        )
    return LayoutError(
        "layouts: {operation} is infeasible on {target}: {problems}; remove relayouts=False to "
        "allow relayouts",
        kind="layout-requirement", **where, problems=problems,
    )


def _fewest_violations(
    op: Operation, target: Target, storages: Mapping[Tensor, Seat], outs: Sequence[Seat]
) -> tuple[Violation, ...]:
    """Return the rules that are violated, for the result layout with the fewest violations.

    Ties are resolved in favour of the first candidate, which is the default of the target.
    """
    if is_layout_opaque(op) or not isinstance(op, ComputeOp):
        return ()
    known = {
        x: s for x, s in storages.items() if isinstance(s, Layout) and x in op.input_tensors
    }
    best: tuple[Violation, ...] = ()
    for out in outs:
        layouts = {**known, op.output(0): out} if isinstance(out, Layout) else known
        analyzed = computation(op, op.body[0], layouts)
        inputs = tuple(
            u if isinstance(storages.get(u.tensor), Layout | None) else u.at(storages[u.tensor])
            for u in analyzed.inputs
        )
        found = violations_of(analyzed.with_inputs(inputs), target)
        if found and (not best or len(found) < len(best)):
            best = found
    return best


def _text(found: Violation, *, can_mend: bool) -> str:
    text = found.message
    if found.rule is not None:
        text += f" (rule {found.rule.kind} of {found.rule.operation}: {found.rule.source})"
    if can_mend and found.relayout is not None and found.layout is not None:
        text += f"; a relayout of {found.relayout} to {found.layout.index_map} resolves it"
    return text


# Bound on repeated legalization: parts of a legalized operation may need legalization again.
_MAX_ROUNDS = 8


def choose_layouts(
    graph: ProgramGraph,
    target: Target,
    specs: Mapping[Tensor, Wanted] = MappingProxyType({}),
    hints: Sequence[Hint] = (),
    *,
    relayouts: bool = True,
) -> ProgramLayouts:
    """Assign layouts to all values, minimizing the number of elements that relayouts move.

    Args:
        graph: Program.
        target: Target.
        specs: Required layout, or alternatives, of some values. By default inputs arrive in the
            default layout of the target; constants may have any layout, as they are packed once.
        hints: Layout hints. Hard hints are honoured; soft hints are honoured unless that moves
            more elements than the cost of the hint.
        relayouts: Whether relayouts may be inserted; if False, layouts follow from the inputs.

    Raises:
        LayoutError: If an operation has no layouts that the rules allow, if it cannot be analyzed,
            or if two requirements conflict.
    """
    machine = LayoutCapabilities(target)
    demands = demands_of(graph, target, specs, hints)
    # On targets without lanes soft hints have no benefit: layouts affect memory order only.
    soft = hints if has_layouts(target) else ()
    problem = build_layout_problem(graph, machine, demands, soft)
    if relayouts and (unsupported := _unsupported_results(problem, demands)):
        graph = graph_with(graph, partial(_with_results_relaid, unsupported))
        demands = demands_of(graph, target, specs, hints)
        problem = build_layout_problem(graph, machine, demands, soft)
    choice = minimum_cost_layouts(
        problem, _states(problem, relayouts=relayouts), len(problem.combinations)
    )
    if choice.assignment.cost < inf:
        return _layouts(problem, choice, hints, relayouts=relayouts)
    if relayouts:
        found = _in_parts(graph, target, specs, hints)
        if isinstance(found, ProgramLayouts):
            return found
        graph, machine = found.graph, found.machine
        demands = demands_of(graph, target, specs, hints)
    # Input layouts are facts, not requests: if they alone are infeasible, an operation is to blame.
    facts = [demand for demand in demands if demand.axis is None and demand.tensor in graph.inputs]
    facts_only = build_layout_problem(graph, machine, facts, ())
    if len(facts) < len(demands) and _is_possible(facts_only, relayouts=relayouts):
        raise _clash(graph, machine, demands, relayouts=relayouts)
    raise _refusal(facts_only, relayouts=relayouts)


def _unsupported_results(
    problem: LayoutProblem, demands: Sequence[LayoutRequirement]
) -> frozenset[Tensor]:
    """Return the results that their operations can write in other layouts than required only."""
    candidates = {x: value.candidates for x, value in problem.values.items()}

    def is_supported(x: Tensor) -> bool:
        op = x.op
        if is_layout_opaque(op):
            return plain_layout(x) in problem.permitted_layouts[x]
        if problem.combinations[op] or op in problem.opaque or _is_copy(op):
            return True
        return not problem.machine.combinations(op, problem.slots[op], candidates)

    required = {demand.tensor for demand in demands if demand.axis is None}
    return frozenset(x for x in required if x.op in problem.combinations and not is_supported(x))


def _is_copy(op: Operation) -> bool:
    """Return whether an operation copies all elements of a tensor, in order."""
    load = view_of(op)
    return (
        load is not None and isinstance(op, ComputeOp)
        and load.tensor.shape == op.output(0).shape
        and len(load.indices) == len(op.axis) and all(map(is_, load.indices, op.axis))
    )


def _with_results_relaid(
    unsupported: Container[Tensor], before: Operation, op: Operation
) -> tuple[Tensor, ...]:
    """Return the results of an operation, with copies of those whose layout it cannot write."""
    if not any(x in unsupported for x in before.outputs):
        return op.outputs
    renamed: Any = op
    source: Operation = replace(renamed, name=f"{op.name}_source")
    return tuple(
        copy_of(x, result.name) if result in unsupported else x
        for x, result in zip(source.outputs, before.outputs, strict=True)
    )


def _states(problem: LayoutProblem, *, relayouts: bool) -> dict[Tensor, list[LayoutState]]:
    return {x: states_of(value, may_copy=relayouts) for x, value in problem.values.items()}


def _in_parts(
    graph: ProgramGraph, target: Target, specs: Mapping[Tensor, Wanted], hints: Sequence[Hint]
) -> ProgramLayouts | LayoutProblem:
    """Assign layouts after legalizing the operations that are infeasible as they are.

    This is the last resort, because layouts with one input element per stick cost much memory and
    time.

    Returns:
        The layouts, or the remaining problem if it is infeasible.
    """
    for is_lone, is_repeated in ((False, False), (True, False), (True, True)):
        machine = LayoutCapabilities(
            target, is_strict=False, is_lone=is_lone, is_repeated=is_repeated
        )
        for _ in range(_MAX_ROUNDS):
            problem = build_layout_problem(
                graph, machine, demands_of(graph, target, specs, hints), hints
            )
            choice = minimum_cost_layouts(
                problem, _states(problem, relayouts=True), len(problem.combinations)
            )
            if choice.assignment.cost < inf:
                return _layouts(problem, choice, hints, relayouts=True)
            parts = legalize(problem)
            if parts is None:
                break
            graph = parts
    return problem


def _is_possible(problem: LayoutProblem, *, relayouts: bool) -> bool:
    states = _states(problem, relayouts=relayouts)
    return minimum_cost_layouts(problem, states, len(problem.combinations)).assignment.cost < inf


def _clash(
    graph: ProgramGraph, machine: LayoutCapabilities, demands: Sequence[LayoutRequirement], *,
    relayouts: bool
) -> LayoutError:
    """Return the error for conflicting layout requirements."""
    core = minimal_conflict(
        demands,
        lambda subset: _is_possible(build_layout_problem(graph, machine, subset, ()),
        relayouts=relayouts),
    )
    texts = " and ".join(demand.text for demand in core)
    if len(core) == 1:
        text = _refusal(build_layout_problem(graph, machine, core, ()), relayouts=relayouts).message
        return LayoutError(
            "layouts: {demand} cannot be satisfied on {target}{instead}; {reason}",
            kind="layout-requirement", demand=texts, target=machine.target.name,
            instead=_instead(core[0], machine), reason=text.removeprefix("layouts: "),
        )
    return LayoutError(
        "layouts: conflict between {demands}: no assignment of layouts satisfies them together; "
        "remove one of them, or make it a soft hint",
        kind="layout-requirement", demands=texts,
    )


def _instead(demand: LayoutRequirement, machine: LayoutCapabilities) -> str:
    """Return the remedy for a layout that no operation can write or read."""
    if demand.axis is not None or not has_layouts(machine.target):
        return ", so allow more layouts"
    tensor = demand.tensor
    layout = candidates(machine.target, sizes_of(tensor), tensor.dtype)[0]
    return f", so remove it, or pass a supported layout, such as {layout.index_map}"


def _refusal(problem: LayoutProblem, *, relayouts: bool) -> LayoutError:
    """Return the error for the first operation that makes the program infeasible."""
    states = _states(problem, relayouts=relayouts)
    ops = list(problem.combinations)
    low, high = 0, len(ops)
    while high - low > 1:
        middle = (low + high) // 2
        if minimum_cost_layouts(problem, states, middle).assignment.cost == inf:
            high = middle
        else:
            low = middle
    before, op = minimum_cost_layouts(problem, states, low), ops[high - 1]
    # With relayouts every operand can be brought to the default layout, so report that one.
    pick = {x: value.computable_candidates[0] for x, value in problem.values.items()}
    pick |= {} if relayouts else {x: state.computed_candidate for x, state in before.states.items()}
    storages = {x: problem.values[x].candidates[number] for x, number in pick.items()}
    outs = [
        problem.values[op.output(0)].candidates[k]
        for k in problem.values[op.output(0)].computable_candidates
    ]
    return _infeasible(op, problem.machine.target, storages, outs, can_mend=not relayouts)


def _layouts(
    problem: LayoutProblem, choice: LayoutChoice, hints: Sequence[Hint], *, relayouts: bool
) -> ProgramLayouts:
    exact = "variable elimination along a tree decomposition, exact"
    bounded = "coordinate descent, bounded by independent minima of the cost tables"
    found, values = choice.assignment, problem.values
    certificate = OptimalityCertificate(
        int(found.cost), int(found.lower_bound), exact if found.is_exact else bounded
    )
    first = {
        x: LayoutState(value.computable_candidates[0], frozenset()) for x, value in values.items()
    }
    states = first | dict(choice.states)
    copies = tuple(copy for x in values for copy in _copies(problem, choice, x, states[x]))
    for_host = _copies_for_host(problem, states) if relayouts else ()
    storages = {x: value.candidates[states[x].computed_candidate] for x, value in values.items()}
    layouts = {x: s if isinstance(s, Layout) else s.layout for x, s in storages.items()}
    reads = {op: tuple(_reads(problem, op, c, states)) for op, c in choice.combinations.items()}
    views = {
        op for op in problem.combinations if op not in problem.opaque and view_of(op) is not None
    }
    explicit = frozenset(op for op in views if op in problem.copying)
    return ProgramLayouts(
        layouts, copies, certificate, storages, frozenset(op.output(0) for op in views - explicit),
        reads, explicit, frozenset(x.op for x in problem.permitted_layouts),
        tuple(_wish(problem, hint, storages) for hint in hints),
        problem.graph, tuple(for_host),
    )


def _wish(problem: LayoutProblem, hint: Hint, storages: Mapping[Tensor, Seat]) -> HintOutcome:
    tensor, target = problem.graph.of(hint.tensor), problem.machine.target
    reason = f"at a cost of {hint.cost:,.0f} elements" if has_layouts(target) else (
        f"as target {target.name} has no lanes; only a hard hint determines the memory layout"
    )
    return HintOutcome(hint, "" if satisfies_hint(storages[tensor], tensor, hint) else reason)


def _reads(
    problem: LayoutProblem, op: Operation, combo: LayoutCombination,
    states: Mapping[Tensor, LayoutState]
) -> Iterator[tuple[OperandSlot, Layout | None]]:
    """Yield the operand slots of an operation, each with the layout of the copy read, if any."""
    for slot, number in zip(problem.slots[op], combo.inputs, strict=True):
        storage = problem.values[slot.tensor].candidates[number]
        is_computed = states[slot.tensor].computed_candidate == number
        assert is_computed or isinstance(storage, Layout)
        yield slot, None if is_computed or not isinstance(storage, Layout) else storage


def _copies(
    problem: LayoutProblem, choice: LayoutChoice, tensor: Tensor, state: LayoutState
) -> Iterator[InsertedCopy]:
    value = problem.values[tensor]
    for number in sorted(state.copies):
        readers = tuple(
            op for op in problem.graph.readers.get(tensor.op, ())
            if any(
                slot.tensor is tensor and n == number
                for slot, n in zip(problem.slots[op], choice.combinations[op].inputs, strict=True)
            )
        )
        source, layout = value.candidates[state.computed_candidate], value.candidates[number]
        assert isinstance(layout, Layout)
        origin = source.layout if isinstance(source, IndirectAccess) else source
        count = 0 if value.is_known else written_elements(source, layout)
        is_of_host = value.detour > 0 and not can_copy(
            problem, tensor, state.computed_candidate, number
        )
        yield InsertedCopy(
            tensor, origin, layout, readers, int(value.detour) if is_of_host else count, is_of_host
        )


def _copies_for_host(problem: LayoutProblem, states: Mapping[Tensor, LayoutState]) -> Iterator[
        InsertedCopy]:
    """Yield relayouts of outputs that the host would otherwise get element by element."""
    for x in dict.fromkeys(problem.graph.outputs):
        value, state = problem.values[x], states[x]
        if not value.scattered.issuperset({state.computed_candidate, *state.copies}):
            continue
        source = value.candidates[state.computed_candidate]
        for number, layout in enumerate(value.candidates):
            if (
                isinstance(layout, Layout)
                and number not in value.scattered
                and not is_one_to_a_row(layout)
                and can_copy(problem, x, state.computed_candidate, number)
            ):
                origin = source.layout if isinstance(source, IndirectAccess) else source
                yield InsertedCopy(x, origin, layout, (), written_elements(source, layout))
                break
