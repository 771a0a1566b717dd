"""Primitives that say where a stage is computed and which memory it uses."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.axis import IterVar
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import ScheduleError
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.state import (
    At,
    Inline,
    StageState,
    State,
    check_alike,
    leaf_position,
)


def compute_at(
    state: State, key: Operation, consumer: Operation, axis: IterVar
) -> tuple[State, None]:
    """Compute a stage anew in each iteration of a loop of a consumer, as much as it reads there.

    See `Stage.compute_at`.
    """
    stage, parent = state.stage(key), state.stage(consumer)
    where = f"s[{stage.name}].compute_at(s[{parent.name}])"
    _computed(stage, "compute_at")
    if stage.key is parent.key:
        raise ScheduleError(f"{where}: a stage cannot be computed inside itself")
    leaf_position(parent, axis, f"compute_at target of {stage.name}")
    if parent.key not in consumers_below(state, stage.key):
        readers = ", ".join(s.name for s in direct_consumers(state, stage)) or "nothing"
        instead = (
            f"{stage.name} reads {parent.name}: that is s[{parent.name}].compute_at("
            f"s[{stage.name}], axis)"
            if stage.key in consumers_below(state, parent.key) and not parent.is_placeholder
            else f"{stage.name} is read by {readers}"
        )
        raise ScheduleError(
            f"{where}: {parent.name} does not read {stage.name}, directly or through other "
            f"stages; {instead}",
            kind="no-reader",
        )
    return state.update(replace(stage, attach=At(parent.key, axis))), None


def compute_inline(state: State, key: Operation) -> tuple[State, None]:
    """Write the stage's expression wherever it is read; it gets no memory.

    See `Stage.compute_inline`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].compute_inline"
    _computed(stage, "compute_inline")
    if stage.is_output:
        raise ScheduleError(
            f"{where}: {stage.name} is an output and needs its memory; inline what it reads",
            kind="needs-memory",
        )
    if what := _why_memory(stage.compute):
        raise ScheduleError(
            f"{where}: {stage.name} {what} and needs memory for its results; "
            "use compute_at with an inner loop of its consumer instead",
            kind="needs-memory",
        )
    return state.update(replace(stage, attach=Inline())), None


def compute_root(state: State, key: Operation) -> tuple[State, None]:
    """Compute the whole stage before its first consumer, or where its group is.

    See `Stage.compute_root`.
    """
    stage = state.stage(key)
    _computed(stage, "compute_root")
    return state.update(replace(stage, attach=state.place_in_groups(stage.group))), None


def set_scope(state: State, key: Operation, scope: str) -> tuple[State, None]:
    """Keep the stage's elements in memory `scope`; see `Stage.set_scope`."""
    stage = state.stage(key)
    check_scope(scope, f"s[{stage.name}].set_scope")
    return state.update(replace(stage, scope=scope)), None


def storage_align(
    state: State, key: Operation, axis: IterVar, factor: int, offset: int
) -> tuple[State, None]:
    """Pad rows so that the stride of `axis` is `offset` modulo `factor` elements.

    See `Stage.storage_align`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].storage_align"
    _computed(stage, "storage_align")
    check_alike(stage, where)
    position = next((k for k, a in enumerate(stage.layout_axes) if a is axis), None)
    if position is None:
        names = ", ".join(a.name for a in stage.layout_axes)
        raise ScheduleError(
            f"{where}: expected an axis of the stored tensor ({names}), got {axis!r}",
            kind="no-such-loop",
        )
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in (factor, offset)):
        raise ScheduleError(
            f"{where}: factor and offset are integers, got {factor!r} and {offset!r}",
            kind="wrong-argument",
        )
    if factor < 1 or not 0 <= offset < factor:
        raise ScheduleError(
            f"{where}: needs factor >= 1 and 0 <= offset < factor, "
            f"got factor {factor} and offset {offset}",
            kind="wrong-number",
        )
    kept = tuple(a for a in stage.aligns if a[0] != position)
    return state.update(replace(stage, aligns=(*kept, (position, factor, offset)))), None


def double_buffer(state: State, key: Operation) -> tuple[State, None]:
    """Keep two copies of a stage that is computed inside a loop, one for the next iteration.

    See `Stage.double_buffer`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].double_buffer"
    _computed(stage, "double_buffer")
    if stage.is_output:
        raise ScheduleError(
            f"{where}: {stage.name} is an output, whose memory the caller passes; "
            f"use s.cache_write({stage.name}, ...) and place the cache",
            kind="needs-memory",
        )
    if stage.compute.num_outputs > 1:
        raise ScheduleError(
            f"{where}: {stage.name} has several outputs; use it for stages with a single one",
            kind="not-this-form",
        )
    return state.update(replace(stage, is_doubled=True)), None


def rolling_buffer(state: State, key: Operation) -> tuple[State, None]:
    """Keep what the last iteration of the loop around has computed, and compute what is new.

    See `Stage.rolling_buffer`.
    """
    stage = state.stage(key)
    _computed(stage, "rolling_buffer")
    if stage.is_output:
        raise ScheduleError(
            f"s[{stage.name}].rolling_buffer: {stage.name} is an output, whose memory the caller "
            f"passes; use it for a stage that {stage.name} reads",
            kind="needs-memory",
        )
    return state.update(replace(stage, is_rolling=True)), None


def _why_memory(op: ComputeOp) -> str:
    """What is against computing the elements where they are read; nothing if empty."""
    if isinstance(op, ScanOp):
        return "is a scan"
    if isinstance(op, ExternOp):
        return "is a te.extern"
    if isinstance(op, TensorComputeOp):
        return f"is computed by {op.intrin.name}"
    if op.reduce_axis:
        return "is a reduction"
    return "has several outputs" if op.num_outputs > 1 else ""


def expand(state: State, key: Operation) -> tuple[State, None]:
    """Compute a stage by loops, as its definition says, and not by the intrinsic that it calls.

    See `Stage.expand`.
    """
    stage = state.stage(key)
    op = stage.op
    if not isinstance(op, TensorComputeOp):
        raise ScheduleError(
            f"s[{stage.name}].expand: no intrinsic computes {stage.name}, its loops are there; "
            "use it for a te.compute that calls one",
            kind="not-this-form",
        )
    plain = ComputeOp(op.name, op.axis, op.body, op.tag, op.attrs, op.location)
    expanded = replace(stage, leaves=(*stage.leaves, *op.inner_loops))
    return state.redefine(expanded, plain), None


def check_loops(stage: StageState, where: str) -> None:
    """Refuse a stage whose elements an intrinsic computes.

    Raises:
        ScheduleError: one does.
    """
    if isinstance(stage.op, TensorComputeOp):
        raise ScheduleError(
            f"{where}: {stage.op.intrin.name} computes {stage.name}; use s[{stage.name}].expand() "
            "before, which computes it by loops",
            kind="not-this-form",
        )


def check_scope(scope: object, where: str) -> None:
    """Refuse what is no name of a memory.

    Raises:
        ScheduleError: `scope` is no text, or empty.
    """
    if not isinstance(scope, str) or not scope:
        raise ScheduleError(
            f"{where}: a scope is the name of a memory, got {scope!r}", kind="wrong-argument"
        )


def _computed(stage: StageState, call: str) -> None:
    if stage.is_placeholder:
        raise ScheduleError(
            f"s[{stage.name}].{call}: {stage.name} is a placeholder, which the caller passes in; "
            f"use s.cache_read({stage.name}, ...) for a copy that can be placed",
            kind="needs-memory",
        )


def direct_consumers(state: State, stage: StageState) -> list[StageState]:
    """The stages whose definitions read `stage`."""
    return [
        other
        for other in state
        if not other.is_placeholder
        and any(state.find(t.op) is stage for t in other.op.input_tensors)
    ]


def consumers_below(state: State, key: Operation) -> set[Operation]:
    """All stages that read `key`, directly or through others."""
    first = state.stage(key)
    readers = walk(first, parts=lambda stage: direct_consumers(state, stage))
    return {reader.key for reader in readers if reader is not first}
