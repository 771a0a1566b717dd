"""Fold operations on constants at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import BuildRequest
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.ir.arith.extents import round_up
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import consumers_schedule, producers_schedule, stages_of
from tecomp.scheduling.state import ScheduleState, StageState


def compile_time_constants(graph: ProgramGraph, groups: Sequence[FusionGroup]) -> frozenset[Tensor]:
    """Return the constants and the results of groups that depend on constants only."""
    known = set(graph.constants)
    for group in groups:
        is_asked_for = not set(graph.outputs).isdisjoint(group.result.outputs)
        if not is_asked_for and all(x in known for x in group_inputs(group)):
            known.update(group.result.outputs)
    return frozenset(known)


def fold(
    asked: BuildRequest, constants: Sequence[Tensor]
) -> tuple[BuildRequest, tuple[tuple[BuildRequest, tuple[int, ...]], ...]]:
    """Split the stages that depend on constants only off a kernel.

    Args:
        asked: Build request of the kernel.
        constants: Arguments that are equal in every call.

    Returns:
        The remaining kernel, whose arguments are the inputs that it still reads, the folded stages
        in order, and the results; and, for each folded stage, the kernel that computes it with the
        positions of its operands among the original arguments.
    """
    state = asked.schedule.state
    stages = stages_of(state, constants)
    if not stages:
        return asked, ()
    left, places = consumers_schedule(state, stages)
    reads = [x for x in asked.args if isinstance(x, Tensor) and _is_read(left, x)]
    results = [x for x in asked.args if isinstance(x, Tensor) and x.op in state.outputs]
    args = [*reads, *(places[stage.key] for stage in stages), *results]
    folded = tuple(_fold(asked, producers_schedule(state, stage), stage) for stage in stages)
    return replace(asked, program=Schedule(left), args=args), folded


def _is_read(state: ScheduleState, tensor: Tensor) -> bool:
    stage = state.find(tensor.op)
    return stage is not None and stage.is_placeholder


def _fold(
    asked: BuildRequest, state: ScheduleState, stage: StageState
) -> tuple[BuildRequest, tuple[int, ...]]:
    sources = [
        (k, x) for k, x in enumerate(asked.args) if isinstance(x, Tensor) and _is_read(state, x)
    ]
    args = [*(x for _, x in sources), stage.op.output(0)]
    build = replace(asked, program=Schedule(state), args=args)
    return build, tuple(k for k, _ in sources)


@dataclass(slots=True)
class ConstantPool:
    """Pool of constants of a program: an allocator of consecutive aligned regions.

    Attributes:
        alignment: Alignment of each constant in bytes.
        end: Number of allocated bytes.
        places: Byte offset of each constant, by its key.
    """

    alignment: int
    end: int = 0
    places: dict[object, int] = field(default_factory=dict)

    def offset(self, key: object, size: int) -> int:
        """Return the byte offset of a constant of `size` bytes, allocating it on first use."""
        if key not in self.places:
            self.places[key] = self.end
            self.end = round_up(self.end + size, self.alignment)
        return self.places[key]
