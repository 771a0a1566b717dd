"""Split a schedule into precomputed stages and the remaining computation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from tecomp.compute.access_relations import variables_of
from tecomp.compute.expression_analysis import substitute_inputs
from tecomp.compute.operation import ComputeOp, Operation, PlaceholderOp
from tecomp.compute.tensor import Tensor
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import AtRoot, Inline, ScheduleState, StageState, initial_stage


def with_arguments(schedule: Schedule, args: Sequence[object]) -> Schedule:
    """Return the schedule with an added stage for each placeholder argument that is never read.

    >>> from tecomp import te
    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
    >>> with_arguments(te.create_schedule(C), [A, B, C])
    Schedule(B, A, C)
    """
    state = schedule.state
    unread = [
        arg.op for arg in (args if isinstance(args, list | tuple) else ())
        if isinstance(arg, Tensor) and isinstance(arg.op, PlaceholderOp)
        and state.find(arg.op) is None
    ]
    if not unread:
        return schedule
    extended = copy(schedule)
    stages = (initial_stage(op, is_output=False) for op in dict.fromkeys(unread))
    extended.state = replace(state, stages=(*stages, *state.stages))
    return extended


def stages_of(state: ScheduleState, known: Sequence[Tensor]) -> list[StageState]:
    """Return the root stages that depend on the given placeholders only and that other stages read.

    Outputs of the schedule, stages with several outputs, and stages that depend on symbolic sizes
    are excluded.

    Args:
        state: Schedule state.
        known: Outputs of the placeholders.
    """
    ready = {tensor.op for tensor in known}
    for stage in state:
        is_candidate = isinstance(stage.attach, AtRoot | Inline) and not stage.is_placeholder
        is_known = all(_key(state, x) in ready for x in stage.op.input_tensors)
        if is_candidate and is_known and not variables_of(stage.op):
            ready.add(stage.key)
    read = {
        _key(state, x) for stage in state if stage.key not in ready for x in stage.op.input_tensors
    }
    return [
        stage for stage in state
        if stage.key in ready and stage.key in read and not stage.is_placeholder
        and isinstance(stage.attach, AtRoot) and stage.op.num_outputs == 1 and not stage.is_output
    ]


def producers_schedule(state: ScheduleState, stage: StageState) -> ScheduleState:
    """Return the schedule state of a stage and its dependences, with the stage as the output."""
    stages = tuple(
        replace(s, is_output=s.key is stage.key) for s
        in _required_stages(state, [stage.key])
    )
    return replace(state, stages=stages, outputs=(stage.key,))


def consumers_schedule(
    state: ScheduleState, stages: Sequence[StageState]
) -> tuple[ScheduleState, Mapping[Operation, Tensor]]:
    """Return the schedule state that remains when the caller passes the results of some stages.

    Returns:
        The new state, and the placeholder tensor that replaces each of the stages, by stage key.
    """
    placeholders = {
        stage.key: PlaceholderOp(stage.name, stage.op.shape, stage.op.dtypes[0]) for stage in stages
    }
    for stage in stages:
        tensor = placeholders[stage.key].output(0)
        new_stage = StageState(
            tensor.op, tensor.op, is_output=False, scope=stage.scope, layout=stage.layout
        )
        state = state.insert(new_stage, before=stage.key)
        for reader in state:
            read = [x for x in reader.op.input_tensors if _key(state, x) is stage.key]
            if read and isinstance(reader.op, ComputeOp):
                rewritten = substitute_inputs([reader.op], dict.fromkeys(read, tensor))
                op = rewritten[reader.op.output(0)].op
                assert isinstance(op, ComputeOp)
                state = state.redefine(reader, op)
    remaining = replace(state, stages=_required_stages(state, state.outputs))
    return remaining, {key: op.output(0) for key, op in placeholders.items()}


def _required_stages(state: ScheduleState, keys: Iterable[Operation]) -> tuple[StageState, ...]:
    """Return the stages with the given keys and all their dependences, in schedule order."""
    needed = set(keys)
    for stage in reversed(state.stages):
        if stage.key in needed:
            needed |= {_key(state, x) for x in stage.op.input_tensors}
    return tuple(stage for stage in state if stage.key in needed)


def _key(state: ScheduleState, tensor: Tensor) -> Operation:
    stage = state.find(tensor.op)
    return tensor.op if stage is None else stage.key
