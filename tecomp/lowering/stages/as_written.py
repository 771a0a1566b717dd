"""What scans are computed from as it was written, before the schedule changed it."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.operation import ComputeOp
from tecomp.compute.scan import ScanOp
from tecomp.compute.topology import post_order
from tecomp.lowering.stages.program import Program, definition_of
from tecomp.scheduling.state import State, initial_stage


def as_written(program: Program) -> Program:
    """The scans of `program`, and what they are computed from, without caches, layouts or places.

    What an element follows from is the same in both. Sets tell it best from what was written: a
    layout may be more than they can describe, and loops may compute more than anything reads.
    """
    scans = dict.fromkeys(key for key, _ in program.states.values())
    stages = tuple(initial_stage(op, is_output=op in scans) for op in post_order([*scans]))
    definitions = {
        stage.key: definition_of(
            stage, stage.op.body, stage.op.start if isinstance(stage.op, ScanOp) else (),
            program.sizes,
        )
        for stage in stages
        if isinstance(stage.op, ComputeOp)
    }
    return replace(program, state=State(stages, tuple(scans)), definitions=definitions)
