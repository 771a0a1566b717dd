"""Split a schedule into precomputed stages and the remaining computation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

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
    made = copy(schedule)
    stages = (initial_stage(op, is_output=False) for op in dict.fromkeys(unread))
    made.state = replace(state, stages=(*stages, *state.stages))
    return made


def stages_of(state: ScheduleState, known: Sequence[Tensor]) -> list[StageState]:
    """Return the root stages that depend on the given placeholders only and that other stages read.

    Outputs of the schedule and stages with several outputs are excluded.

    Args:
        state: Schedule state.
        known: Outputs of the placeholders.
    """
    ready = {tensor.op for tensor in known}
    for stage in state:
        is_here = isinstance(stage.attach, AtRoot | Inline) and not stage.is_placeholder
        if is_here and all(_key(state, x) in ready for x in stage.op.input_tensors):
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
        replace(each, is_output=each.key is stage.key) for each
        in _required_stages(state, [stage.key])
    )
    return replace(state, stages=stages, outputs=(stage.key,))


def consumers_schedule(
    state: ScheduleState, given: Sequence[StageState]
) -> tuple[ScheduleState, Mapping[Operation, Tensor]]:
    """Return the schedule state that remains when the caller passes the results of some stages.

    Returns:
        The new state, and the placeholder tensor that replaces each of the stages, by stage key.
    """
    places = {
        stage.key: PlaceholderOp(stage.name, stage.op.shape, stage.op.dtypes[0]) for stage in given
    }
    for stage in given:
        place = places[stage.key].output(0)
        here = StageState(
            place.op, place.op, is_output=False, scope=stage.scope, layout=stage.layout
        )
        state = state.insert(here, before=stage.key)
        for reader in state:
            read = [x for x in reader.op.input_tensors if _key(state, x) is stage.key]
            if read and isinstance(reader.op, ComputeOp):
                moved = substitute_inputs([reader.op], dict.fromkeys(read, place))
                op = moved[reader.op.output(0)].op
                assert isinstance(op, ComputeOp)
                state = state.redefine(reader, op)
    left = replace(state, stages=_required_stages(state, state.outputs))
    return left, {key: op.output(0) for key, op in places.items()}


def _required_stages(state: ScheduleState, keys: Iterable[Operation]) -> tuple[StageState, ...]:
    """Return the stages with the given keys and all their dependences, in schedule order."""
    needed = set(keys)
    for each in reversed(state.stages):
        if each.key in needed:
            needed |= {_key(state, x) for x in each.op.input_tensors}
    return tuple(each for each in state if each.key in needed)


def _key(state: ScheduleState, tensor: Tensor) -> Operation:
    stage = state.find(tensor.op)
    return tensor.op if stage is None else stage.key
