"""Stages that intrinsics compute: the loops of tiles, and what takes their place."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import LowerError
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.state import Inline, State, Tensorized


def with_tiles(state: State) -> State:
    """`state` with the loops of tiles inside of those around, and the intrinsics in their place.

    Raises:
        LowerError: an operand was inlined, so that no memory has it.
    """
    for stage in state:
        op = stage.op
        if not isinstance(op, TensorComputeOp):
            continue
        for load in walk(*op.operands):
            if isinstance(load, TensorLoad) and isinstance(
                state.stage(load.tensor.op).attach, Inline
            ):
                name = state.stage(load.tensor.op).name
                raise LowerError(
                    f"s[{name}].compute_inline: {stage.name} is computed by {op.intrin.name}, "
                    f"which reads {name} from memory; do not inline it, or compute {stage.name} by "
                    f"loops with s[{stage.name}].expand()",
                    kind="needs-memory",
                )
        inner = op.inner_loops
        state = state.update(replace(
            stage, leaves=(*stage.leaves, *inner), tensorized=Tensorized(inner[0], op.intrin)))
    return state
