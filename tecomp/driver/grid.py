"""Loops that are bound to the grid of cores, and what the target has."""

from __future__ import annotations

from tecomp.errors import TargetError
from tecomp.machine.descriptor import Target
from tecomp.scheduling.state import At, StageState, State
from tecomp.scheduling.threads import is_grid_axis


def check_grid(state: State, target: Target) -> None:
    """Every loop bound to a grid axis has its cores, and none asks a core to be many.

    Raises:
        TargetError: there is no such axis, it has fewer cores than the loop has iterations, or a
            loop around it has the axis already.
    """
    for stage in state:
        around = _around(stage, state)
        for leaf, tag in stage.threads.items():
            if not is_grid_axis(tag):
                continue
            loop = f"s[{stage.name}].bind({leaf.name})"
            if tag in around:
                raise TargetError(
                    f"{loop}: it runs inside of {around[tag]}, which has the cores of `{tag}`; "
                    "bind only one of them, or bind them to two axes",
                    kind="cores",
                )
            target.check_axis(tag, leaf.extent if isinstance(leaf.extent, int) else None, loop)


def _around(stage: StageState, state: State) -> dict[str, str]:
    """The tags of the loops of consumers that a stage is computed in, with the loops."""
    found: dict[str, str] = {}
    while isinstance(attach := stage.attach, At):
        stage = state.stage(attach.stage)
        for leaf in stage.leaves:
            if leaf in stage.threads:
                found.setdefault(stage.threads[leaf], f"loop {leaf.name} of {stage.name}")
            if leaf is attach.axis:
                break
    return found
