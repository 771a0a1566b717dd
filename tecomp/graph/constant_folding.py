"""Fold operations on constants at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import Build
from tecomp.graph.dag import Graph
from tecomp.graph.fusion import Group, border_of
from tecomp.ir.arith.extents import round_up
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import after, before, stages_of
from tecomp.scheduling.state import StageState, State


def known_once(graph: Graph, groups: Sequence[Group]) -> frozenset[Tensor]:
    """Constants, and what groups compute from constants alone for others."""
    known = set(graph.constants)
    for group in groups:
        is_asked_for = not set(graph.outputs).isdisjoint(group.result.outputs)
        if not is_asked_for and all(x in known for x in border_of(group)):
            known.update(group.result.outputs)
    return frozenset(known)


def fold(
    asked: Build, constants: Sequence[Tensor]
) -> tuple[Build, tuple[tuple[Build, tuple[int, ...]], ...]]:
    """A kernel without the stages that follow from constants alone, and those.

    Args:
        asked: the kernel.
        constants: those of its arguments that are the same in every call.

    Returns:
        The kernel, whose arguments are those that it still reads, then the folded stages in order,
        then the results. For each folded stage the kernel that computes it, with the positions
        among the arguments of what that reads.
    """
    state = asked.schedule.state
    stages = stages_of(state, constants)
    if not stages:
        return asked, ()
    left, places = after(state, stages)
    reads = [x for x in asked.args if isinstance(x, Tensor) and _is_read(left, x)]
    results = [x for x in asked.args if isinstance(x, Tensor) and x.op in state.outputs]
    args = [*reads, *(places[stage.key] for stage in stages), *results]
    folded = tuple(_folded(asked, before(state, stage), stage) for stage in stages)
    return replace(asked, schedule=Schedule(left), args=args), folded


def _is_read(state: State, tensor: Tensor) -> bool:
    stage = state.find(tensor.op)
    return stage is not None and stage.is_placeholder


def _folded(asked: Build, state: State, stage: StageState) -> tuple[Build, tuple[int, ...]]:
    sources = [
        (k, x) for k, x in enumerate(asked.args) if isinstance(x, Tensor) and _is_read(state, x)
    ]
    args = [*(x for _, x in sources), stage.op.output(0)]
    build = replace(asked, schedule=Schedule(state), args=args)
    return build, tuple(k for k, _ in sources)


@dataclass(slots=True)
class Room:
    """Memory for constants of a program, side by side.

    Attributes:
        alignment: bytes that each begins at a multiple of.
        end: bytes that are taken.
        places: where each begins, by what it is.
    """

    alignment: int
    end: int = 0
    places: dict[object, int] = field(default_factory=dict)

    def offset(self, key: object, size: int) -> int:
        """Where a constant of so many bytes begins, which gets a place if it has none yet."""
        if key not in self.places:
            self.places[key] = self.end
            self.end = round_up(self.end + size, self.alignment)
        return self.places[key]
