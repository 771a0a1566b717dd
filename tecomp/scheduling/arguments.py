"""Arguments of a kernel that its schedule does not know: inputs that nothing reads."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from tecomp.compute.operation import PlaceholderOp
from tecomp.compute.tensor import Tensor
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import initial_stage


def with_arguments(schedule: Schedule, args: Sequence[object]) -> Schedule:
    """A schedule that has a stage for each placeholder among the arguments.

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
