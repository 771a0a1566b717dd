"""Primitives that say how a loop may run faster, and nothing about what it computes."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.given import is_one_of, whole_number
from tecomp.scheduling.loops import mark
from tecomp.scheduling.place import consumers_below
from tecomp.scheduling.pragma import MARKS, check_pragma
from tecomp.scheduling.state import Ahead, State, leaf_position


def prefetch(
    state: State, key: Operation, tensor: Tensor, axis: IterVar, offset: int
) -> tuple[State, None]:
    """Fetch to the caches what a loop reads of a tensor, some iterations before it is read.

    See `Stage.prefetch`.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "prefetch")
    source = state.stage(tensor.op)
    where = f"s[{stage.name}].prefetch({tensor.name}, {axis.name})"
    if stage.key not in consumers_below(state, source.key):
        read = ", ".join(dict.fromkeys(t.name for t in stage.op.input_tensors)) or "nothing"
        raise ScheduleError(
            f"{where}: {stage.name} does not read {tensor.name}; what it reads is {read}",
            kind="no-reader",
        )
    count = None if isinstance(offset, Expr) else whole_number(offset)
    if count is None or count < 0:
        raise ScheduleError(
            f"{where}: the offset is a number of iterations, 0 or more, got {offset!r}",
            kind="wrong-argument",
        )
    kept = tuple(
        old for old in stage.prefetches
        if old.axis is not axis or state.find(old.tensor.op) is not source
        or old.tensor.value_index != tensor.value_index
    )
    ahead = Ahead(tensor, axis, count)
    return state.update(replace(stage, prefetches=(*kept, ahead))), None


def pragma(
    state: State, key: Operation, axis: IterVar, kind: str, value: int | None = None
) -> tuple[State, None]:
    """Set a pragma of a loop; see `Stage.pragma`."""
    if is_one_of(kind, tuple(MARKS)):
        return mark(state, key, axis, MARKS[kind])
    stage = state.stage(key)
    leaf_position(stage, axis, "pragma")
    name, number = check_pragma(kind, value, f"s[{stage.name}].pragma({axis.name}, {kind!r})")
    pragmas = MappingProxyType({**stage.pragmas, (axis, name): number})
    return state.update(replace(stage, pragmas=pragmas)), None
