"""Divide kernels among the cores of a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

from tecomp.compute.access_relations import accesses
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint
from tecomp.errors import CapacityError, InternalError, LayoutError, TargetError, TecompError
from tecomp.graph.constraint_solver import minimal_conflict
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.fusion import FusionGroup
from tecomp.graph.layout_result import DivisionHintOutcome
from tecomp.graph.value_placement import SpillKind
from tecomp.schedules.fusion.scratchpad import DividedResult, divide_result
from tecomp.schedules.scratchpad.placement import Placement
from tecomp.schedules.scratchpad.work_division import DivisionSpec, UndividedResult

UndividedReason = tuple[SpillKind, str]
"""Kind of the reason why a kernel is not divided, and its text."""


@dataclass(frozen=True, slots=True)
class OperandDivision:
    """Division of a value.

    Attributes:
        count: Number of parts along each axis.
        cores: For each axis, the axis of the result of the core loop with the same parts.
    """

    count: tuple[int, ...]
    cores: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class DividedKernel:
    """Kernel with its division.

    Attributes:
        name: Name of the result.
        division: Division, or the reason why there is none.
        operand_placeholders: Placeholders of the operands in the divided kernel.
        size: Size of the result in bytes.
        cores: For each axis of the result, the axis of the last member with the same parts.
    """

    name: str
    division: DividedResult | UndividedReason
    operand_placeholders: Mapping[Tensor, Tensor]
    size: int
    cores: tuple[int | None, ...]

    @property
    def cut(self) -> DivisionSpec:
        """Division of the kernel."""
        assert isinstance(self.division, DividedResult)
        return self.division.cut

    @property
    def parts(self) -> str:
        """Number of parts per axis, as text."""
        assert isinstance(self.division, DividedResult)
        return format_extents(self.division.outline.count)

    def part_of(self, x: Tensor) -> tuple[int, ...]:
        """Return the shape of the part of an operand that one core reads."""
        assert isinstance(self.division, DividedResult)
        box = self.division.input_boxes[self.operand_placeholders[x]]
        return tuple(span.extent for span in box)

    def division_of(self, x: Tensor) -> OperandDivision | None:
        """Return the division of an operand; None if several cores read the same elements."""
        assert isinstance(self.division, DividedResult)
        axes = self.division.division_of(self.operand_placeholders[x])
        if axes is None:
            return None
        counts = (1, *self.division.outline.count)
        count = tuple(counts[0 if axis is None else axis + 1] for axis in axes)
        cores = tuple(None if axis is None else self.cores[axis] for axis in axes)
        return OperandDivision(count, cores)

    def cost(self, best: DividedKernel) -> int:
        """Return the extra traffic over the best division, in bytes, scaled to the busiest core."""
        assert isinstance(self.division, DividedResult)
        assert isinstance(best.division, DividedResult)
        largest, smallest = prod(self.division.outline.core), prod(best.division.outline.core)
        traffic: int = self.division.outline.read + self.size
        best_traffic: int = best.division.outline.read + best.size
        extra: int = traffic * largest // smallest - best_traffic
        return extra


@dataclass(frozen=True, slots=True)
class FusedKernels:
    """Kernels that share one core loop.

    Attributes:
        last: Number of the kernel that computes the result of the loop.
        members: Kernels by number, with their divisions.
        resident_bytes: Resident values with their bytes per core, in reverse order.
        taken: Bytes of resident values that are live during each member.
        cuts: Division of the resident values.
    """

    last: int
    members: Mapping[int, DividedKernel]
    resident_bytes: Mapping[Tensor, int] = field(default_factory=dict)
    taken: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[Tensor, DivisionSpec] = field(default_factory=dict)


def division_of(result: Tensor, where: Placement) -> DividedResult | UndividedReason:
    """Return how the cores divide a kernel, or the reason why they do not."""
    try:
        found = divide_result(result, where)
    except CapacityError as error:
        return "capacity", error.message
    except TargetError as error:
        return "division", error.message
    return (found.kind, found.reason) if isinstance(found, UndividedResult) else found


def division_text(view: DividedKernel) -> str:
    """Format the name of a kernel and its division."""
    return f"{view.name} (divided {view.parts})"


def format_extents(sizes: Iterable[int]) -> str:
    """Format extents, such as `4 x 8`."""
    return " x ".join(map(str, sizes))


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
