"""The primitive that puts an operation of the machine in the place of loops."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import ScheduleError
from tecomp.scheduling.state import State, Tensorized, leaf_position


def tensorize(
    state: State, key: Operation, axis: IterVar, intrin: TensorIntrin
) -> tuple[State, None]:
    """Replace a loop and all inside it by an operation of the machine.

        for i in range(16):            ->    the statements of `intrin`, on the parts of A, B and
            for j in range(16):              C that these loops touch
                for k in range(16):
                    C[...] += A[...] * B[...]

    Whether the loops compute what the intrinsic does is decided when the schedule is lowered, by
    what they read and write and not by how they are written: axes may be permuted, fused or split,
    operands exchanged, transposed or in any layout.

    Raises:
        ScheduleError: `axis` is no loop of this stage, or `intrin` no intrinsic of its types.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "tensorize")
    where = f"s[{stage.name}].tensorize({axis.name})"
    if not isinstance(intrin, TensorIntrin):
        raise ScheduleError(
            f"{where}: expected what te.decl_tensor_intrin gives, got {intrin!r}"
        )
    if isinstance(stage.op, ScanOp):
        raise ScheduleError(
            f"{where}: {stage.name} is a scan; tensorize a stage that its steps are computed from"
        )
    if stage.tensorized is not None and stage.tensorized.axis is not axis:
        raise ScheduleError(
            f"{where}: {stage.name} is tensorized at {stage.tensorized.axis.name} already; a stage "
            "is tensorized once, at one loop"
        )
    found, known = stage.compute.dtypes, intrin.op.dtypes
    if found != known:
        raise ScheduleError(
            f"{where}: {stage.name} is {', '.join(found)}, and {intrin.name} computes "
            f"{', '.join(known)}"
        )
    return state.update(replace(stage, tensorized=Tensorized(axis, intrin))), None
