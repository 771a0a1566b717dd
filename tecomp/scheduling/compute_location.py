"""Primitives for placement and storage: compute_at, compute_inline, set_scope, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.graph_utils import post_order
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.state import (
    AtRoot,
    ComputedAt,
    GroupKey,
    GroupState,
    Inline,
    ScheduleState,
    StageState,
    check_equal_shapes,
    leaf_position,
)


def compute_at(
    state: ScheduleState, key: Operation, consumer: Operation, axis: IterVar
) -> tuple[ScheduleState, None]:
    """Compute, in each iteration of a consumer loop, the region of a stage that is read there.

    See `Stage.compute_at`.
    """
    stage, parent = state.stage(key), state.stage(consumer)
    where = f"s[{stage.name}].compute_at(s[{parent.name}])"
    _check_computed(stage, "compute_at")
    if stage.key is parent.key:
        raise ScheduleError("{where}: a stage cannot be computed inside itself", where=where)
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
            "{where}: {parent} does not read {stage}, directly or through other stages; {instead}",
            kind="no-consumer", where=where, parent=parent.name, stage=stage.name, instead=instead,
        )
    return state.update(replace(stage, attach=ComputedAt(parent.key, axis))), None


def compute_inline(state: ScheduleState, key: Operation) -> tuple[ScheduleState, None]:
    """Substitute the expression of a stage into its readers, without allocating memory.

    See `Stage.compute_inline`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].compute_inline"
    _check_computed(stage, "compute_inline")
    if stage.is_output:
        raise ScheduleError(
            "{where}: {stage} is an output and needs its memory; inline what it reads",
            kind="requires-storage", where=where, stage=stage.name,
        )
    if reason := _why_memory(stage.compute):
        raise ScheduleError(
            "{where}: {stage} {subject} and needs memory for its results; use compute_at with an "
            "inner loop of its consumer",
            kind="requires-storage", where=where, stage=stage.name, subject=reason,
        )
    return state.update(replace(stage, attach=Inline())), None


def compute_root(state: ScheduleState, key: Operation) -> tuple[ScheduleState, None]:
    """Compute a stage once before its first consumer, or at the location of its group.

    See `Stage.compute_root`.
    """
    stage = state.stage(key)
    _check_computed(stage, "compute_root")
    return state.update(replace(stage, attach=state.place_in_groups(stage.group))), None


def set_scope(state: ScheduleState, key: Operation, scope: str) -> tuple[ScheduleState, None]:
    """Store the elements of a stage in memory `scope`; see `Stage.set_scope`."""
    stage = state.stage(key)
    check_scope(scope, f"s[{stage.name}].set_scope")
    return state.update(replace(stage, scope=scope)), None


def storage_align(
    state: ScheduleState, key: Operation, axis: IterVar, factor: int, offset: int
) -> tuple[ScheduleState, None]:
    """Pad the tensor so that the stride of `axis` is `offset` modulo `factor` elements.

    See `Stage.storage_align`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].storage_align"
    _check_computed(stage, "storage_align")
    check_equal_shapes(stage, where)
    position = next((k for k, a in enumerate(stage.layout_axes) if a is axis), None)
    if position is None:
        names = ", ".join(a.name for a in stage.layout_axes)
        raise ScheduleError(
            "{where}: expected an axis of the stored tensor ({names}), got {axis!r}",
            kind="unknown-loop", where=where, names=names, axis=axis,
        )
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in (factor, offset)):
        raise ScheduleError(
            "{where}: factor and offset must be integers, got {factor!r} and {offset!r}",
            kind="invalid-type", where=where, factor=factor, offset=offset,
        )
    if factor < 1 or not 0 <= offset < factor:
        raise ScheduleError(
            "{where}: expected factor >= 1 and 0 <= offset < factor, got factor {factor!r} and "
            "offset {offset!r}",
            kind="invalid-value", where=where, factor=factor, offset=offset,
        )
    retained = tuple(a for a in stage.aligns if a[0] != position)
    return state.update(replace(stage, aligns=(*retained, (position, factor, offset)))), None


def double_buffer(state: ScheduleState, key: Operation) -> tuple[ScheduleState, None]:
    """Double-buffer a stage: compute the data of the next iteration before the current use.

    See `Stage.double_buffer`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].double_buffer"
    _check_computed(stage, "double_buffer")
    if stage.is_output:
        raise ScheduleError(
            "{where}: {stage} is an output, whose memory is passed by the caller; use "
            "s.cache_write({stage}, ...) and place the cache stage",
            kind="requires-storage", where=where, stage=stage.name,
        )
    if stage.compute.num_outputs > 1:
        raise ScheduleError(
            "{where}: {stage} has several outputs; only stages with a single output are supported",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    return state.update(replace(stage, is_doubled=True)), None


def rolling_buffer(state: ScheduleState, key: Operation) -> tuple[ScheduleState, None]:
    """Reuse elements computed by the previous iteration of the enclosing loop.

    See `Stage.rolling_buffer`.
    """
    stage = state.stage(key)
    _check_computed(stage, "rolling_buffer")
    if stage.is_output:
        raise ScheduleError(
            "s[{stage}].rolling_buffer: {stage} is an output, whose memory is passed by the "
            "caller; use rolling_buffer on a stage that {stage} reads",
            kind="requires-storage", stage=stage.name,
        )
    return state.update(replace(stage, is_rolling=True)), None


def _why_memory(op: ComputeOp) -> str:
    """Return why an operation cannot be inlined, as a predicate; empty if inlining is possible."""
    if isinstance(op, ScanOp):
        return "is a scan"
    if isinstance(op, ExternOp):
        return "is a te.extern"
    if isinstance(op, TensorComputeOp):
        return f"is computed by {op.intrin.name}"
    if op.reduce_axis:
        return "is a reduction"
    return "has several outputs" if op.num_outputs > 1 else ""


def expand(state: ScheduleState, key: Operation) -> tuple[ScheduleState, None]:
    """Replace the intrinsic call of a stage by loops over its definition.

    See `Stage.expand`.
    """
    stage = state.stage(key)
    op = stage.op
    if not isinstance(op, TensorComputeOp):
        raise ScheduleError(
            "s[{stage}].expand: {stage} does not call an intrinsic and already has loops; use "
            "expand on a te.compute that calls an intrinsic",
            kind="pattern-mismatch", stage=stage.name,
        )
    loops_op = ComputeOp(op.name, op.axis, op.body, op.tag, op.attrs, op.location)
    expanded = replace(stage, leaves=(*stage.leaves, *op.inner_loops))
    return state.redefine(expanded, loops_op), None


def check_loops(stage: StageState, where: str) -> None:
    """Raise if a stage calls an intrinsic instead of having loops over its definition.

    Raises:
        ScheduleError: If an intrinsic computes the stage.
    """
    if isinstance(stage.op, TensorComputeOp):
        raise ScheduleError(
            "{where}: {stage} is computed by the intrinsic {intrin}; call s[{stage}].expand() "
            "first to compute it with loops",
            kind="pattern-mismatch", where=where, intrin=stage.op.intrin.name, stage=stage.name,
        )


def check_scope(scope: object, where: str) -> None:
    """Raise if `scope` cannot be the name of a memory.

    Raises:
        ScheduleError: If `scope` is not a string or is empty.
    """
    if not isinstance(scope, str) or not scope:
        raise ScheduleError(
            "{where}: scope must be a memory name (str), got {scope!r}",
            kind="invalid-type", where=where, scope=scope,
        )


def _check_computed(stage: StageState, call: str) -> None:
    if stage.is_placeholder:
        raise ScheduleError(
            "s[{stage}].{call}: {stage} is a placeholder, whose memory is passed by the caller; "
            "use s.cache_read({stage}, ...) and place the copy",
            kind="requires-storage", stage=stage.name, call=call,
        )


def direct_consumers(state: ScheduleState, stage: StageState) -> list[StageState]:
    """Return the stages whose definitions read `stage`."""
    return [
        other
        for other in state
        if not other.is_placeholder
        and any(state.find(t.op) is stage for t in other.op.input_tensors)
    ]


def consumers_below(state: ScheduleState, key: Operation) -> set[Operation]:
    """Return the keys of all stages that read stage `key`, directly or through other stages."""
    first = state.stage(key)
    readers = walk(first, parts=lambda stage: direct_consumers(state, stage))
    return {reader.key for reader in readers if reader is not first}


def create_group(
    state: ScheduleState, outputs: Sequence[Tensor], inputs: Sequence[Tensor],
    include_inputs: bool = False
) -> tuple[ScheduleState, GroupKey]:
    """Group the stages between `inputs` and `outputs`, so that one call places all of them.

    See `Schedule.create_group`.

    Returns:
        The new state and the key of the group.
    """
    names = ", ".join(tensor.name for tensor in outputs)
    read = ", ".join(tensor.name for tensor in inputs)
    where = f"s.create_group([{names}], [{read}])"
    members = _between(state, outputs, inputs, include_inputs=include_inputs)
    if not members:
        raise ScheduleError(
            "{where}: no stage lies between {read} and {names}; pass inputs that the outputs read, "
            "directly or through other stages",
            kind="no-consumer", where=where, read=read or "nothing", names=names or "nothing",
        )
    new_group = GroupKey()
    subgroups: list[GroupKey] = []
    parent: GroupKey | None = None
    for group in state.groups:
        keys = {stage.key for stage in stages_of(state, group)}
        if members <= keys and (parent is None or parent in state.enclosing_groups(group)):
            parent = group
        elif keys < members:
            subgroups.append(group)
        elif keys & members and not members <= keys:
            first = next(stage.name for stage in state if stage.key in keys - members)
            raise ScheduleError(
                "{where}: the group overlaps another group, which also contains {first}; groups "
                "must be nested or disjoint",
                kind="no-consumer", where=where, first=first,
            )
    groups = dict(state.groups)
    for group in subgroups:
        if groups[group].parent is parent:
            groups[group] = replace(groups[group], parent=new_group)
    groups[new_group] = GroupState(parent)
    for stage in state:
        if stage.key in members and stage.group is parent:
            state = state.update(replace(stage, group=new_group))
    return replace(state, groups=MappingProxyType(groups)), new_group


def place_group(
    state: ScheduleState, group: GroupKey, consumer: Operation | None = None, axis: IterVar
    | None = None
) -> tuple[ScheduleState, None]:
    """Compute the stages of a group in each iteration of a loop, as `compute_at` does.

    See `Schedule.place_group`.
    """
    members = stages_of(state, group)
    if consumer is not None and any(stage.key is consumer for stage in members):
        names = ", ".join(stage.name for stage in members)
        raise ScheduleError(
            "s.place_group: {consumer} is itself in the group ({names}); place the group in a "
            "stage that reads these",
            kind="no-consumer", consumer=consumer.name, names=names,
        )
    inherited = state.place_in_groups(state.groups[group].parent)
    for stage in members:
        if stage.is_placeholder or not _is_placed_by(state, stage, group):
            continue
        if consumer is None or axis is None:
            state = state.update(replace(stage, attach=inherited))
            continue
        state, _ = compute_at(state, stage.key, consumer, axis)
        updated = state.stage(stage.key)
        state = state.update(replace(updated, attach=ComputedAt(consumer, axis, group)))
    attach = AtRoot() if consumer is None or axis is None else ComputedAt(consumer, axis, group)
    groups = {**state.groups, group: replace(state.groups[group], attach=attach)}
    return replace(state, groups=MappingProxyType(groups)), None


def stages_of(state: ScheduleState, group: GroupKey) -> list[StageState]:
    """Return the stages of a group and of its inner groups."""
    return [stage for stage in state if group in state.enclosing_groups(stage.group)]


def _is_placed_by(state: ScheduleState, stage: StageState, group: GroupKey) -> bool:
    """Return whether a stage is at the root, or is placed by a group or an enclosing group."""
    if isinstance(stage.attach, AtRoot):
        return True
    enclosing = state.enclosing_groups(group)
    return isinstance(stage.attach, ComputedAt) and stage.attach.group in set(enclosing)


def scan_steps(state: ScheduleState) -> dict[Operation, set[Operation]]:
    """Return the stages that compute the steps of each scan; they form an implicit group."""
    found: dict[Operation, set[Operation]] = {}
    for stage in state:
        for tensor in stage.op.states if isinstance(stage.op, ScanOp) else ():
            if (placeholder := state.find(tensor.op)) is None:
                continue
            readers = consumers_below(state, placeholder.key) - {stage.key}
            inside = {key for key in readers if stage.key in consumers_below(state, key)}
            found.setdefault(stage.key, set()).update(inside)
    return found


def _between(
    state: ScheduleState, outputs: Sequence[Tensor], inputs: Sequence[Tensor], *,
    include_inputs: bool
) -> set[Operation]:
    """Return the keys of the stages on dependence paths from `inputs` to `outputs`."""
    first = {state.stage(tensor.op).key for tensor in inputs}
    last = [state.stage(tensor.op).key for tensor in outputs]

    def producers(key: Operation) -> list[Operation]:
        if key in first:
            return []
        return [state.stage(tensor.op).key for tensor in state.stage(key).op.input_tensors]

    reached: dict[Operation, bool] = {}
    for key in post_order(*last, parts=producers):
        reached[key] = key in first or any(reached[producer] for producer in producers(key))
    return {key for key, flag in reached.items() if flag and (include_inputs or key not in first)}
