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
from tecomp.graph.constraint_solver import least_clash
from tecomp.graph.dag import Graph
from tecomp.graph.fusion import Group
from tecomp.graph.layout_result import DivisionWish
from tecomp.schedules.scratchpad.work_division import Cut

Made = TypeVar("Made")

_NO_KERNEL = "no kernel computes it"
_CURE = "leave one of them out, or make it a soft hint"


@dataclass(frozen=True, slots=True)
class Divided:
    """A hint, on the axes of the result of a kernel.

    Attributes:
        hint: about a value that the kernel computes.
        parts: along axes of its result, by number; None for an axis that the result has not.
    """

    hint: DivisionHint
    parts: tuple[tuple[int | None, int], ...]


def divided(
    hints: Sequence[DivisionHint], graph: Graph, made: Mapping[Tensor, Tensor],
    groups: Sequence[Group],
) -> dict[Operation, tuple[Divided, ...]]:
    """The hints for each group, by its result.

    Args:
        hints: what is wished.
        graph: the program as the caller wrote it.
        made: what stands for its values, where that is another one.
        groups: those of the program as it is compiled.

    Raises:
        LayoutError: a hint is about no value of the program, or one that has to be kept about what
            no kernel computes.
    """
    found: dict[Operation, tuple[Divided, ...]] = {}
    for hint in hints:
        x = graph.of(hint.tensor)
        if x.op not in graph.operations:
            raise LayoutError(
                f"hints: {hint.tensor.name} is to be divided, and no operation of the program "
                f"computes it; these give {', '.join(x.name for x in graph.computed)}",
                kind="demand",
            )
        op = made.get(x, x).op
        homes = [group for group in groups if op in group.operations]
        if hint.is_hard and not homes:
            raise LayoutError(
                f"hints: {hint} cannot be kept: {_NO_KERNEL}; leave it out", kind="demand"
            )
        for group in homes:
            axes = _axes_of_result(group, op)
            if len(axes) != len(hint.axes):
                axes = [None] * len(hint.axes)  # It is done in several operations.
            parts = tuple((axes[axis], count) for axis, count in hint.parts)
            found[group.result] = (*found.get(group.result, ()), Divided(hint, parts))
    return found


def wishes_of(
    wished: Mapping[Operation, Sequence[Divided]],
    refused: Mapping[Operation, Mapping[DivisionHint, str]],
    results: Mapping[DivisionHint, Operation],
) -> tuple[DivisionWish, ...]:
    """What became of hints.

    Args:
        wished: the hints for each group.
        refused: why some are not kept there.
        results: what stands for the value of each hint.
    """
    found = []
    for hint, result in results.items():
        homes = [op for op, own in wished.items() if any(each.hint is hint for each in own)]
        reasons = [refused[op][hint] for op in homes if hint in refused.get(op, {})]
        if not homes:
            reasons = [_NO_KERNEL]
        inside = () if result in homes else tuple(op.name for op in homes)
        found.append(DivisionWish(hint, "; ".join(dict.fromkeys(reasons)), inside))
    return tuple(found)


def agreed(
    wished: Sequence[Divided], make: Callable[[Cut | None], Made]
) -> tuple[Made, dict[DivisionHint, str]]:
    """What is made with as many wishes kept as can be.

    Args:
        wished: hints for one kernel.
        make: compiles it, its result cut; raises where that cannot be.

    Returns:
        What is made, and why some soft ones are not kept.

    Raises:
        LayoutError: hard ones cannot be kept, or not together.
    """
    if not wished:
        return make(None), {}
    every = _attempt(wished, make)
    if not isinstance(every, str):
        return every, {}
    kept = [each for each in wished if each.hint.is_hard]
    made = _attempt(kept, make) if kept else None
    if isinstance(made, str):
        raise LayoutError(_refusal(kept, make), kind="demand")
    refused = {}
    for each in wished:
        if each.hint.is_hard:
            continue
        trial = _attempt([*kept, each], make)
        if isinstance(trial, str):
            refused[each.hint] = trial
        else:
            kept, made = [*kept, each], trial
    return (make(None) if made is None else made), refused


def _attempt(wished: Sequence[Divided], make: Callable[[Cut | None], Made]) -> Made | str:
    """What is made with these wishes kept, or why they cannot be."""
    merged = _merged(wished)
    if isinstance(merged, str):
        return merged
    try:
        return make(merged)
    except InternalError:
        raise
    except TecompError as error:
        return error.message


def _merged(wished: Sequence[Divided]) -> Cut | str:
    """How the result is to be cut, or why wishes say nothing about that, or not the same."""
    found: dict[str, dict[int, int]] = {"cores": {}, "num_tiles_per_dim": {}}
    for each in wished:
        x = each.hint.tensor
        for (number, _), (axis, count) in zip(each.hint.parts, each.parts, strict=True):
            name = each.hint.axes[number].name
            if axis is None:
                return (
                    f"{x.name}: its axis {name} is none of the result of the kernel that computes "
                    "it, or of its one reduction; give the hint to that"
                )
            before = found[each.hint.kind].setdefault(axis, count)
            if before != count:
                return f"{x.name}: its axis {name} is to have {before} parts and {count}; {_CURE}"
    return Cut(found["cores"], found["num_tiles_per_dim"])


def _refusal(wished: Sequence[Divided], make: Callable[[Cut | None], Made]) -> str:
    """What is said of wishes that cannot be kept."""
    left = least_clash(wished, lambda some: not isinstance(_attempt(some, make), str))
    reason = _attempt(left, make)
    texts = " and ".join(str(each.hint) for each in left)
    how = "clash" if len(left) > 1 else "cannot be kept"
    return f"hints: {texts} {how}: {reason}"


def _axes_of_result(group: Group, op: Operation) -> list[int | None]:
    """For each axis of an operation the axis of the result along which it is computed.

    Those that the one reduction of the group is over come after those of the result.
    """
    known: dict[Operation, list[int | None]] = {
        group.result: list(range(len(group.result.axis)))
    }
    for reader in reversed(group.operations):
        if reader not in known:
            continue
        places = dict(zip(reader.axis, known[reader], strict=True))
        for read in accesses(reader.output(0)).reads:
            made = read.tensor.op
            if made in group.operations and made is not reader:
                own = [None if axis is None else places.get(axis) for axis in read.axes]
                before = known.setdefault(made, own)
                known[made] = [a if a == b else None for a, b in zip(before, own, strict=True)]
    total = [each for each in group.operations if each.reduce_axis]
    first = len(group.result.axis)
    depth = [first + k if total == [op] else None for k in range(len(op.reduce_axis))]
    return [*known.get(op, [None] * len(op.axis)), *depth]
