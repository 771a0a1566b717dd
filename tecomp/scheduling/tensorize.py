"""The primitive that puts an operation of the machine in the place of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tecomp.compute.axis import IterVar
from tecomp.compute.intrinsic import TensorIntrin, fits, with_sizes
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Var
from tecomp.scheduling.place import check_loops
from tecomp.scheduling.state import (
    StageState,
    State,
    Tensorized,
    is_data,
    is_reduction,
    leaf_position,
)


def tensorize(
    state: State, key: Operation, axis: IterVar, intrin: TensorIntrin
) -> tuple[State, None]:
    """Replace a loop and all inside it by an operation of the machine; see `Stage.tensorize`."""
    stage = state.stage(key)
    leaf_position(stage, axis, "tensorize")
    where = f"s[{stage.name}].tensorize({axis.name})"
    if not isinstance(intrin, TensorIntrin):
        raise ScheduleError(
            f"{where}: expected what te.decl_tensor_intrin gives, got {intrin!r}",
            kind="wrong-argument",
        )
    if isinstance(stage.op, ScanOp):
        raise ScheduleError(
            f"{where}: {stage.name} is a scan; tensorize a stage that its steps are computed from",
            kind="not-this-form",
        )
    check_loops(stage, where)
    if stage.tensorized is not None and stage.tensorized.axis is not axis:
        raise ScheduleError(
            f"{where}: {stage.name} is tensorized at {stage.tensorized.axis.name} already; a stage "
            "is tensorized once, at one loop",
            kind="too-late",
        )
    found, known = stage.compute.dtypes, intrin.op.dtypes
    if found != known:
        raise ScheduleError(
            f"{where}: {stage.name} is {', '.join(found)}, and {intrin.name} computes "
            f"{', '.join(known)}",
            kind="tensorize",
        )
    sized = _sized(stage, axis, intrin, where)
    return state.update(replace(stage, tensorized=Tensorized(axis, sized))), None


def _sized(stage: StageState, axis: IterVar, intrin: TensorIntrin, where: str) -> TensorIntrin:
    """The intrinsic, of the extents that the loops have which it takes the place of.

    Raises:
        ScheduleError: its extents are variables that these loops do not say.
    """
    if not intrin.sizes:
        return intrin
    inside = stage.leaves[leaf_position(stage, axis, "tensorize"):]
    sizes: dict[Var, int] = {}
    for own, loops in (
        (intrin.op.axis, [leaf for leaf in inside if is_data(leaf)]),
        (intrin.op.reduce_axis, [leaf for leaf in inside if is_reduction(leaf)]),
    ):
        if len(own) != len(loops) or not all(
            isinstance(leaf.extent, int) and fits(other.extent, leaf.extent, sizes)
            for other, leaf in zip(own, loops, strict=True)
        ):
            raise ScheduleError(
                f"{where}: {intrin.name} runs through "
                f"{_extents((*intrin.op.axis, *intrin.op.reduce_axis))}, where variables become "
                f"numbers, and these loops through {_extents(inside)}; split and reorder so that "
                "there is one loop inside for each axis, of a number of iterations",
                kind="tensorize",
            )
    return with_sizes(intrin, sizes)


def _extents(axes: Sequence[IterVar]) -> str:
    return ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
