"""Apply work-division hints to kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tecomp.compute.access_relations import accesses
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint
from tecomp.errors import InternalError, LayoutError, TecompError
from tecomp.graph.constraint_solver import minimal_conflict
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.fusion import FusionGroup
from tecomp.graph.layout_result import DivisionHintOutcome
from tecomp.schedules.scratchpad.work_division import DivisionSpec

Made = TypeVar("Made")

_NO_KERNEL = "it is not the result of a kernel"
_REMEDY = "remove one of them, or make it a soft hint"


@dataclass(frozen=True, slots=True)
class KernelDivision:
    """A division hint, mapped to the axes of the result of a kernel.

    Attributes:
        hint: Hint on a value that the kernel computes.
        parts: Pairs of a result axis, or None if the result lacks it, and a number of parts.
    """

    hint: DivisionHint
    parts: tuple[tuple[int | None, int], ...]


def apply_division_hints(
    hints: Sequence[DivisionHint], graph: ProgramGraph, replacements: Mapping[Tensor, Tensor],
    groups: Sequence[FusionGroup],
) -> dict[Operation, tuple[KernelDivision, ...]]:
    """Return the division hints of each group, by its result.

    Args:
        hints: Division hints.
        graph: Program of the caller.
        replacements: Replacements of rewritten values.
        groups: Groups of the compiled program.

    Raises:
        LayoutError: If a hinted value is not computed by the program, or a hard hint refers to a
            value that no kernel computes.
    """
    found: dict[Operation, tuple[KernelDivision, ...]] = {}
    for hint in hints:
        x = graph.of(hint.tensor)
        if x.op not in graph.operations:
            raise LayoutError(
                "hints: {tensor} has a division hint, but no operation of the program computes it; "
                "computed values: {computed}",
                kind="layout-requirement", tensor=hint.tensor.name,
                computed=", ".join(x.name for x in graph.computed),
            )
        op = replacements.get(x, x).op
        owners = [group for group in groups if op in group.operations]
        if hint.is_hard and not owners:
            raise LayoutError(
                "hints: {hint} cannot be satisfied: {no_kernel}; remove it",
                kind="layout-requirement", hint=hint, no_kernel=_NO_KERNEL,
            )
        for group in owners:
            axes = _axes_of_result(group, op)
            if len(axes) != len(hint.axes):
                axes = [None] * len(hint.axes)  # legalization split the operation
            parts = tuple((axes[axis], count) for axis, count in hint.parts)
            found[group.result] = (*found.get(group.result, ()), KernelDivision(hint, parts))
    return found


def division_outcomes(
    hinted: Mapping[Operation, Sequence[KernelDivision]],
    refused: Mapping[Operation, Mapping[DivisionHint, str]],
    results: Mapping[DivisionHint, Operation],
) -> tuple[DivisionHintOutcome, ...]:
    """Return the outcomes of the division hints.

    Args:
        hinted: Division hints of each group, by its result.
        refused: Hints that were not honoured in each group, with the reasons.
        results: Operation that computes the hinted value of each hint.
    """
    found = []
    for hint, result in results.items():
        owners = [op for op, divisions in hinted.items() if any(d.hint is hint for d in divisions)]
        reasons = [refused[op][hint] for op in owners if hint in refused.get(op, {})]
        if not owners:
            reasons = [_NO_KERNEL]
        inside = () if result in owners else tuple(op.name for op in owners)
        found.append(DivisionHintOutcome(hint, "; ".join(dict.fromkeys(reasons)), inside))
    return tuple(found)


def compile_with_hints(
    divisions: Sequence[KernelDivision], make: Callable[[DivisionSpec | None], Made]
) -> tuple[Made, dict[DivisionHint, str]]:
    """Compile a kernel with as many division hints as possible.

    Args:
        divisions: Division hints of the kernel.
        make: Function that compiles the kernel with a division; raises if that is impossible.

    Returns:
        The compiled kernel, and the soft hints that were not honoured with the reasons.

    Raises:
        LayoutError: If a hard hint cannot be honoured, or hard hints conflict.
    """
    if not divisions:
        return make(None), {}
    compiled = _attempt(divisions, make)
    if not isinstance(compiled, str):
        return compiled, {}
    accepted = [division for division in divisions if division.hint.is_hard]
    kernel = _attempt(accepted, make) if accepted else None
    if isinstance(kernel, str):
        raise _refusal(accepted, make)
    refused = {}
    for division in divisions:
        if division.hint.is_hard:
            continue
        trial = _attempt([*accepted, division], make)
        if isinstance(trial, str):
            refused[division.hint] = trial
        else:
            accepted, kernel = [*accepted, division], trial
    return (make(None) if kernel is None else kernel), refused


def _attempt(
    divisions: Sequence[KernelDivision], make: Callable[[DivisionSpec | None], Made]
) -> Made | str:
    """Compile with the given hints, or return the reason why they cannot be honoured."""
    merged = _merge(divisions)
    if isinstance(merged, str):
        return merged
    try:
        return make(merged)
    except InternalError:
        raise
    except TecompError as error:
        return error.message


def _merge(divisions: Sequence[KernelDivision]) -> DivisionSpec | str:
    """Merge hints into one division, or return the reason why they do not apply or conflict."""
    found: dict[str, dict[int, int]] = {"cores": {}, "num_tiles_per_dim": {}}
    for division in divisions:
        x = division.hint.tensor
        for (number, _), (axis, count) in zip(division.hint.parts, division.parts, strict=True):
            name = division.hint.axes[number].name
            if axis is None:
                return (
                    f"{x.name}: its axis {name} is not an axis of the result of the kernel "
                    "that computes it, or of its single reduction; attach the hint to that result"
                )
            before = found[division.hint.kind].setdefault(axis, count)
            if before != count:
                return f"{x.name}: its axis {name} must have {before} and {count} parts; {_REMEDY}"
    return DivisionSpec(found["cores"], found["num_tiles_per_dim"])


def _refusal(
    divisions: Sequence[KernelDivision], make: Callable[[DivisionSpec | None], Made]
) -> LayoutError:
    """Return the error for hints that cannot be honoured."""
    core = minimal_conflict(divisions, lambda subset: not isinstance(_attempt(subset, make), str))
    reason = _attempt(core, make)
    texts = " and ".join(str(division.hint) for division in core)
    problem = "clash" if len(core) > 1 else "cannot be satisfied"
    return LayoutError(
        "hints: {hints} {how}: {reason}",
        kind="layout-requirement", hints=texts, how=problem, reason=reason,
    )


def _axes_of_result(group: FusionGroup, op: Operation) -> list[int | None]:
    """Return, for each axis of an operation, the corresponding axis of the result, or None.

    Axes of the only reduction of the group follow the axes of the result.
    """
    known: dict[Operation, list[int | None]] = {
        group.result: list(range(len(group.result.axis)))
    }
    for reader in reversed(group.operations):
        if reader not in known:
            continue
        result_axis = dict(zip(reader.axis, known[reader], strict=True))
        for read in accesses(reader.output(0)).reads:
            producer = read.tensor.op
            if producer in group.operations and producer is not reader:
                axes = [None if axis is None else result_axis.get(axis) for axis in read.axes]
                before = known.setdefault(producer, axes)
                known[producer] = [a if a == b else None for a, b in zip(before, axes, strict=True)]
    reductions = [other for other in group.operations if other.reduce_axis]
    first = len(group.result.axis)
    depth = [first + k if reductions == [op] else None for k in range(len(op.reduce_axis))]
    return [*known.get(op, [None] * len(op.axis)), *depth]
