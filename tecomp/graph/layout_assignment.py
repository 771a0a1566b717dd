"""Assign a layout to every value, and explain infeasible programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.check import Violation, violations_of
from tecomp.constraints.operation_view import IndirectAccess, computation
from tecomp.constraints.user_hints import Hint
from tecomp.errors import LayoutError
from tecomp.graph.constraint_solver import minimal_conflict
from tecomp.graph.dag import ProgramGraph
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
from tecomp.graph.sizes import sizes_of
from tecomp.layout.core.layout import Layout
from tecomp.machine.descriptor import Target


def _infeasible(
    op: Operation, target: Target, seats: Mapping[Tensor, Seat], outs: Sequence[Seat],
    *, can_mend: bool,
) -> LayoutError:
    """Return the error for an infeasible operation: violated rules with examples, and a remedy.

    Args:
        op: Operation.
        target: Target.
        seats: Storage of the operands.
        outs: Candidate storage of the result.
        can_mend: Whether an explicit relayout would make the operation feasible.
    """
    found = _fewest_violations(op, target, seats, outs)
    reads = ", ".join(dict.fromkeys(x.name for x in op.input_tensors)) or "nothing"
    where: dict[str, Any] = {"operation": op.name, "target": target.name}
    if not found:
        return LayoutError(
            "layouts: {operation} is infeasible on {target}: the layouts of {reads} that it "
            "supports are not compatible with those of the adjacent values; allow more layouts",
            kind="layout-requirement", **where, reads=reads,
        )
    # One violation per rule suffices as an example.
    each = {id(violation.rule): violation for violation in reversed(found)}
    problems = "; ".join(_text(x, can_mend=can_mend) for x in reversed(each.values()))
    if not can_mend:
        return LayoutError(
            "layouts: {operation} is infeasible on {target}: {problems}; no relayouts bring "
            "{reads} into a supported layout: allow more layouts, or make them inputs of a program "
            "that begins with {operation}",
            kind="layout-requirement", **where, problems=problems, reads=reads,
        )
    if any(violation.relayout is not None for violation in each.values()):
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
    op: Operation, target: Target, seats: Mapping[Tensor, Seat], outs: Sequence[Seat]
) -> tuple[Violation, ...]:
    """Return the rules that are violated, for the result layout with the fewest violations.

    Ties are resolved in favour of the first candidate, which is the default of the target.
    """
    if is_layout_opaque(op) or not isinstance(op, ComputeOp):
        return ()
    plain = {
        x: seat for x, seat in seats.items() if isinstance(seat, Layout) and x in op.input_tensors
    }
    best: tuple[Violation, ...] = ()
    for out in outs:
        own = {**plain, op.output(0): out} if isinstance(out, Layout) else plain
        each = computation(op, op.body[0], own)
        inputs = tuple(
            use if isinstance(seats.get(use.tensor), Layout | None) else use.at(seats[use.tensor])
            for use in each.inputs
        )
        found = violations_of(each.with_inputs(inputs), target)
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
    given: Mapping[Tensor, Wanted] = MappingProxyType({}),
    hints: Sequence[Hint] = (),
    *,
    relayouts: bool = True,
) -> ProgramLayouts:
    """Assign layouts to all values, minimizing the number of elements that relayouts move.

    Args:
        graph: Program.
        target: Target.
        given: Required layout, or alternatives, of some values. By default inputs arrive in the
            default layout of the target; constants may have any layout, as they are packed once.
        hints: Layout hints. Hard hints are honoured; soft hints are honoured unless that moves
            more elements than the cost of the hint.
        relayouts: Whether relayouts may be inserted; if False, layouts follow from the inputs.

    Raises:
        LayoutError: If an operation has no layouts that the rules allow, if it cannot be analyzed,
            or if two requirements conflict.
    """
    machine = LayoutCapabilities(target)
    demands = demands_of(graph, target, given, hints)
    # On targets without lanes soft hints have no benefit: layouts affect memory order only.
    problem = build_layout_problem(graph, machine, demands, hints if has_layouts(target) else ())
    choice = minimum_cost_layouts(
        problem, _states(problem, relayouts=relayouts), len(problem.combinations)
    )
    if choice.assignment.cost < inf:
        return _layouts(problem, choice, hints, relayouts=relayouts)
    if relayouts:
        found = _in_parts(graph, target, given, hints)
        if isinstance(found, ProgramLayouts):
            return found
        graph, machine = found.graph, found.machine
        demands = demands_of(graph, target, given, hints)
    # Input layouts are facts, not requests: if they alone are infeasible, an operation is to blame.
    facts = [each for each in demands if each.axis is None and each.tensor in graph.inputs]
    least = build_layout_problem(graph, machine, facts, ())
    if len(facts) < len(demands) and _is_possible(least, relayouts=relayouts):
        raise _clash(graph, machine, demands, relayouts=relayouts)
    raise _refusal(least, relayouts=relayouts)


def _states(problem: LayoutProblem, *, relayouts: bool) -> dict[Tensor, list[LayoutState]]:
    return {x: states_of(value, may_copy=relayouts) for x, value in problem.values.items()}


def _in_parts(
    graph: ProgramGraph, target: Target, given: Mapping[Tensor, Wanted], hints: Sequence[Hint]
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
                graph, machine, demands_of(graph, target, given, hints), hints
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
    left = minimal_conflict(
        demands,
        lambda some: _is_possible(build_layout_problem(graph, machine, some, ()),
        relayouts=relayouts),
    )
    texts = " and ".join(each.text for each in left)
    if len(left) == 1:
        why = _refusal(build_layout_problem(graph, machine, left, ()), relayouts=relayouts).message
        return LayoutError(
            "layouts: {demand} cannot be satisfied on {target}{instead}; {reason}",
            kind="layout-requirement", demand=texts, target=machine.target.name,
            instead=_instead(left[0], machine), reason=why.removeprefix("layouts: "),
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
    made = {x: value.computable_candidates[0] for x, value in problem.values.items()}
    made |= {} if relayouts else {x: state.computed_candidate for x, state in before.states.items()}
    seats = {x: problem.values[x].candidates[number] for x, number in made.items()}
    outs = [
        problem.values[op.output(0)].candidates[k]
        for k in problem.values[op.output(0)].computable_candidates
    ]
    return _infeasible(op, problem.machine.target, seats, outs, can_mend=not relayouts)


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
    taken = first | dict(choice.states)
    copies = tuple(each for x in values for each in _copies(problem, choice, x, taken[x]))
    for_host = _copies_for_host(problem, taken) if relayouts else ()
    seats = {x: value.candidates[taken[x].computed_candidate] for x, value in values.items()}
    of = {x: seat if isinstance(seat, Layout) else seat.layout for x, seat in seats.items()}
    reads = {op: tuple(_reads(problem, op, way, taken)) for op, way in choice.combinations.items()}
    views = {
        op for op in problem.combinations if op not in problem.opaque and view_of(op) is not None
    }
    asked = frozenset(op for op in views if op in problem.copying)
    return ProgramLayouts(
        of, copies, certificate, seats, frozenset(op.output(0) for op in views - asked),
        reads, asked, frozenset(x.op for x in problem.permitted_layouts),
        tuple(_wish(problem, each, seats) for each in hints),
        problem.graph, tuple(for_host),
    )


def _wish(problem: LayoutProblem, hint: Hint, seats: Mapping[Tensor, Seat]) -> HintOutcome:
    tensor, target = problem.graph.of(hint.tensor), problem.machine.target
    reason = f"at a cost of {hint.cost:,.0f} elements" if has_layouts(target) else (
        f"as target {target.name} has no lanes; only a hard hint determines the memory layout"
    )
    return HintOutcome(hint, "" if satisfies_hint(seats[tensor], tensor, hint) else reason)


def _reads(
    problem: LayoutProblem, op: Operation, way: LayoutCombination,
    taken: Mapping[Tensor, LayoutState]
) -> Iterator[tuple[OperandSlot, Layout | None]]:
    """Yield the operand slots of an operation, each with the layout of the copy read, if any."""
    for slot, number in zip(problem.slots[op], way.inputs, strict=True):
        seat = problem.values[slot.tensor].candidates[number]
        is_made = taken[slot.tensor].computed_candidate == number
        assert is_made or isinstance(seat, Layout)
        yield slot, None if is_made or not isinstance(seat, Layout) else seat


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
        held = source.layout if isinstance(source, IndirectAccess) else source
        moved = 0 if value.is_known else written_elements(source, layout)
        is_of_host = value.detour > 0 and not can_copy(
            problem, tensor, state.computed_candidate, number
        )
        yield InsertedCopy(
            tensor, held, layout, readers, int(value.detour) if is_of_host else moved, is_of_host
        )


def _copies_for_host(problem: LayoutProblem, taken: Mapping[Tensor, LayoutState]) -> Iterator[
        InsertedCopy]:
    """Yield relayouts of outputs that the host would otherwise get element by element."""
    for x in dict.fromkeys(problem.graph.outputs):
        value, state = problem.values[x], taken[x]
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
                held = source.layout if isinstance(source, IndirectAccess) else source
                yield InsertedCopy(x, held, layout, (), written_elements(source, layout))
                break
