"""Groups of stages that are computed in one place: made, and put there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.ir.language.graph import post_order
from tecomp.scheduling.place import compute_at, consumers_below
from tecomp.scheduling.state import At, AtRoot, GroupKey, GroupState, StageState, State


def create_group(
    state: State, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool = False
) -> tuple[State, GroupKey]:
    """Put the stages between some tensors into a group, which can be placed at once.

    See `Schedule.create_group`.

    Returns:
        The new state; the group.
    """
    names = ", ".join(tensor.name for tensor in outputs)
    read = ", ".join(tensor.name for tensor in inputs)
    where = f"s.create_group([{names}], [{read}])"
    members = _between(state, outputs, inputs, include_inputs=include_inputs)
    if not members:
        raise ScheduleError(
            f"{where}: no stage is on a way from {read or 'nothing'} to {names or 'nothing'}; name "
            "what these read, directly or through other stages",
            kind="no-reader",
        )
    made = GroupKey()
    inside: list[GroupKey] = []
    parent: GroupKey | None = None
    for group in state.groups:
        theirs = {stage.key for stage in stages_of(state, group)}
        if members <= theirs and (parent is None or _is_inside(state, group, parent)):
            parent = group
        elif theirs < members:
            inside.append(group)
        elif theirs & members and not members <= theirs:
            first = next(stage.name for stage in state if stage.key in theirs - members)
            raise ScheduleError(
                f"{where}: another group has some of its stages, and {first} too; groups are "
                "inside one another or have no stage together",
                kind="no-reader",
            )
    groups = dict(state.groups)
    for group in inside:
        if groups[group].parent is parent:
            groups[group] = replace(groups[group], parent=made)
    groups[made] = GroupState(parent)
    for stage in state:
        if stage.key in members and stage.group is parent:
            state = state.update(replace(stage, group=made))
    return replace(state, groups=MappingProxyType(groups)), made


def place_group(
    state: State, group: GroupKey, consumer: Operation | None = None, axis: IterVar | None = None
) -> tuple[State, None]:
    """Compute the stages of a group anew in each iteration of a loop, as `compute_at` does.

    See `Schedule.place_group`.
    """
    members = stages_of(state, group)
    if consumer is not None and any(stage.key is consumer for stage in members):
        names = ", ".join(stage.name for stage in members)
        raise ScheduleError(
            f"s.place_group: {consumer.name} is in the group itself ({names}); place it in a stage "
            "that reads these",
            kind="no-reader",
        )
    around = state.place_in_groups(state.groups[group].parent)
    for stage in members:
        if stage.is_placeholder or not _is_placed_by(state, stage, group):
            continue
        if consumer is None or axis is None:
            state = state.update(replace(stage, attach=around))
            continue
        state, _ = compute_at(state, stage.key, consumer, axis)
        placed = state.stage(stage.key)
        state = state.update(replace(placed, attach=At(consumer, axis, group)))
    attach = AtRoot() if consumer is None or axis is None else At(consumer, axis, group)
    groups = {**state.groups, group: replace(state.groups[group], attach=attach)}
    return replace(state, groups=MappingProxyType(groups)), None


def stages_of(state: State, group: GroupKey) -> list[StageState]:
    """The stages of a group, and of groups inside of it."""
    return [stage for stage in state if group in state.around(stage.group)]


def _is_inside(state: State, group: GroupKey, other: GroupKey) -> bool:
    return other in state.around(group)


def _is_placed_by(state: State, stage: StageState, group: GroupKey) -> bool:
    """Whether a stage has no place but that of a group, or of one around it."""
    if isinstance(stage.attach, AtRoot):
        return True
    around = state.around(group)
    return isinstance(stage.attach, At) and stage.attach.group in set(around)


def scan_steps(state: State) -> dict[Operation, set[Operation]]:
    """For each scan, the stages that its steps are computed by: a group that is always there."""
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
    state: State, outputs: Sequence[Tensor], inputs: Sequence[Tensor], *, include_inputs: bool
) -> set[Operation]:
    """The stages on ways from inputs to outputs."""
    first = {state.stage(tensor.op).key for tensor in inputs}
    last = [state.stage(tensor.op).key for tensor in outputs]

    def producers(key: Operation) -> list[Operation]:
        if key in first:
            return []
        return [state.stage(tensor.op).key for tensor in state.stage(key).op.input_tensors]

    leads: dict[Operation, bool] = {}
    for key in post_order(*last, parts=producers):
        leads[key] = key in first or any(leads[each] for each in producers(key))
    return {key for key, is_led in leads.items() if is_led and (include_inputs or key not in first)}
