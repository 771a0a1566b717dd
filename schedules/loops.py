"""Loops for a reduction of any kind: vectors along memory, whose results stay in registers."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import Target, accesses, te
from tecomp.schedules.elementwise import is_one
from tecomp.schedules.fold import one
from tecomp.schedules.tiles import lanes_of
from tecomp.schedules.transpose import formula_at_root


def any_at_root(s: te.Schedule, chain: Sequence[te.Tensor], target: Target) -> None:
    """Schedule a reduction with loops of its own, and then what is made of it.

    A vector has elements of the result that lie side by side in what is read, if there are such, or
    else in the result.

    Args:
        s: the schedule.
        chain: the stages from the last one back to the reduction.
        target: for its vectors.
    """
    output, total = chain[0], chain[-1]
    if output is not total and output.shape:
        formula_at_root(s, output, target)
    along = _along(total)
    if along is None:
        return
    stage = s[total]
    held = one(s.cache_write(total, "local")) if total.op.num_outputs == 1 else None
    lanes = lanes_of(total, along, target)
    outer, lane = stage.split(along, factor=lanes)
    others = [axis for axis in total.op.axis if axis is not along]
    if held is None:
        stage.reorder(*others, outer, *total.op.reduce_axis, lane)
    else:
        stage.reorder(*others, outer, lane)
    shared = stage.fuse(*others, outer)
    stage.parallel(shared)
    stage.vectorize(lane)
    if held is not None:
        dim = next(k for k, axis in enumerate(total.op.axis) if axis is along)
        part, own = s[held], held.op.axis[dim]
        part.compute_at(stage, shared)
        rest = [axis for axis in held.op.axis if axis is not own]
        part.reorder(*rest, *held.op.reduce_axis, own)
        part.vectorize(own)


def _along(total: te.Tensor) -> te.IterVar | None:
    """The axis of the result along which vectors run."""
    axes = [axis for axis in total.op.axis if not is_one(axis.extent)]
    if not axes:
        return None
    ends = [read.index[-1].axis for read in accesses(total).reads if read.index]
    found = [axis for axis in axes if any(axis is end for end in ends)]
    return found[-1] if found else axes[-1]
