"""What is said of an operation that no layouts go together with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.check import Violation, violations_of
from tecomp.constraints.operation import computation
from tecomp.graph.ways import Seat, is_opaque
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target


def refusal(
    op: Operation, target: Target, seats: Mapping[Tensor, Seat], outs: Sequence[Seat],
    *, can_mend: bool,
) -> str:
    """The operation, its operands, the rules, points that show it, and what would mend it.

    Args:
        op: the operation.
        target: the machine.
        seats: where what it reads lies.
        outs: where its result may lie.
        can_mend: whether a relayout would, if somebody wrote one.
    """
    found = _least(op, target, seats, outs)
    reads = ", ".join(dict.fromkeys(x.name for x in op.input_tensors)) or "nothing"
    head = f"layouts: {op.name} is infeasible on {target.name}"
    if not found:
        return (
            f"{head}: the layouts of {reads} that it allows go together with none of "
            "the values around it; leave more layouts to choose"
        )
    # One point says of a rule what there is to say.
    each = {id(violation.rule): violation for violation in reversed(found)}
    head = f"{head}: " + "; ".join(_text(x, can_mend=can_mend) for x in reversed(each.values()))
    if not can_mend:
        return (
            f"{head}; no copies bring {reads} to where it may read them: leave more layouts to "
            f"choose, or make them inputs of a program that begins with {op.name}"
        )
    if any(violation.relayout is not None for violation in each.values()):
        return head
    return f"{head}; leave out relayouts=False, so that it may read copies"


def _least(
    op: Operation, target: Target, seats: Mapping[Tensor, Seat], outs: Sequence[Seat]
) -> tuple[Violation, ...]:
    """The rules that it breaks, for the layout of its result with which it breaks fewest.

    Of equal ones that is the first, which is the machine's own.
    """
    if is_opaque(op) or not isinstance(op, ComputeOp):
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
        text += f"; a relayout of {found.relayout} to {found.layout.index_map} mends it"
    return text
