"""Scan stages and their step computations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.errors import LowerError
from tecomp.scheduling.compute_location import consumers_below, direct_consumers
from tecomp.scheduling.state import AtRoot, ComputedAt, ScheduleState, StageState, is_scan

States = Mapping[Operation, tuple[Operation, int]]
"""Scan and output number for each state placeholder."""


def states_of(state: ScheduleState) -> States:
    """Return the state placeholders of scans.

    Raises:
        LowerError: If a placeholder is the state of several scans, or has a layout of its own.
    """
    found: dict[Operation, tuple[Operation, int]] = {}
    for stage in state:
        for k, tensor in enumerate(stage.op.states if isinstance(stage.op, ScanOp) else ()):
            key = state.find(tensor.op)
            if key is None:
                continue
            if key.key in found:
                other = state.stage(found[key.key][0]).name
                raise LowerError(
                    "lower: {tensor} is the state placeholder of both {other} and {stage}; create "
                    "a separate placeholder for each scan",
                    kind="dependence-violation", tensor=tensor.name, other=other, stage=stage.name,
                )
            if key.layout.maps:
                raise LowerError(
                    "s[{tensor}].transform_layout: {tensor} is the state placeholder of {stage}; "
                    "apply the layout to the scan: s[{stage}].transform_layout",
                    kind="dependence-violation", tensor=tensor.name, stage=stage.name,
                )
            found[key.key] = stage.key, k
    return found


def step_stages(state: ScheduleState, states: States) -> dict[Operation, set[Operation]]:
    """Return, for each scan, the stages between its states and its steps."""
    found: dict[Operation, set[Operation]] = {}
    for placeholder, (key, _) in states.items():
        readers = consumers_below(state, placeholder) - {key}
        inside = {reader for reader in readers if key in consumers_below(state, reader)}
        found.setdefault(key, set()).update(inside)
    return found


def in_steps(state: ScheduleState, states: States) -> ScheduleState:
    """Attach root stages that read the state of a scan to the loops of the scan.

    Within a scan, the root means once for each step, or once for each iteration of an outer loop if
    a consumer is attached there.

    Raises:
        LowerError: If such a stage is attached outside the scan.
    """
    for key, stages in step_stages(state, states).items():
        for stage in reversed(state.stages):
            if stage.key in stages and isinstance(stage.attach, AtRoot):
                attach = ComputedAt(key, _outermost(state, stage, key))
                state = state.update(replace(stage, attach=attach))
        for inside in stages:
            _check_inside(state, inside, key)
    return state


def _outermost(state: ScheduleState, stage: StageState, scan: Operation) -> IterVar:
    """Return the innermost step loop, or an outer loop to which a consumer is attached."""
    leaves = state.stage(scan).leaves
    last = max(k for k, leaf in enumerate(leaves) if is_scan(leaf))
    loops = {_loop_around(state, reader, scan) for reader in direct_consumers(state, stage)}
    return next(leaf for leaf in leaves if leaf is leaves[last] or leaf in loops)


def _loop_around(state: ScheduleState, stage: StageState, scan: Operation) -> IterVar | None:
    """Return the loop of a scan in which a stage is computed, or None."""
    while isinstance(stage.attach, ComputedAt):
        if stage.attach.stage is scan:
            return stage.attach.axis
        stage = state.stage(stage.attach.stage)
    return None


def _check_inside(state: ScheduleState, inside: Operation, scan: Operation) -> None:
    """Raise if a stage that the steps depend on is not attached inside the scan."""
    stage = state.stage(inside)
    if _loop_around(state, stage, scan) is not None:
        return
    if isinstance(stage.attach, ComputedAt):
        name, parent = state.stage(scan).name, state.stage(stage.attach.stage).name
        raise LowerError(
            "s[{stage}].compute_at(s[{of}], {axis}): {stage} reads the state of {name}, so it is "
            "computed in every step of it; compute it inside {name}, or at the root, which is "
            "equivalent",
            kind="dependence-violation", stage=stage.name, of=parent, axis=stage.attach.axis.name,
            name=name,
        )
