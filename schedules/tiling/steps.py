"""Scans: steps one after the other, in strips of columns that stay in a cache, or row by row."""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.structure.sizes import ceil_div, round_up
from tecomp.schedules.tiling.tiles import (
    core_of,
    elements_at_hand,
    lanes_of,
    transpose_squares,
)


def walk_steps(s: te.Schedule, scan: te.Tensor, target: Target) -> None:
    """Strips of columns, a row after another in each.

    Axes of known extent are one for that, so that short rows are no short strips.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (steps, *axes) = s[scan], list(scan.op.axis)
    if all(isinstance(axis.extent, int) for axis in axes):
        axes = [stage.fuse(*axes)]
    core, last = core_of(target), axes.pop()
    lanes, most = core.lanes(scan.dtype), elements_at_hand(scan, target)
    if isinstance(last.extent, int):
        most = min(most, max(ceil_div(last.extent, core.count), 1))
    strip, column = stage.split(last, factor=round_up(most, lanes))
    vectors, lane = stage.split(column, factor=lanes_of(scan, last, target))
    stage.reorder(*axes, strip, steps, vectors, lane)
    stage.parallel(stage.fuse(*axes, strip))
    stage.vectorize(lane)


def walk_transposed(s: te.Schedule, output: te.Tensor, scan: te.Tensor, target: Target) -> None:
    """Each row of a block of `output`, along which the steps are, in a lane of its own.

    What the steps read along rows is transposed in squares, as what is made of them is.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (row, column) = s[output], output.op.axis
    steps, lane = scan.op.axis
    lanes = lanes_of(scan, lane, target)
    block, several = stage.split(row, factor=lanes)
    transpose_squares(stage, several, column, lanes)
    stage.parallel(block)
    s[scan].compute_at(stage, block)
    s[scan].set_scope("local")
    _, step = s[scan].split(steps, factor=lanes)
    s[scan].unroll(step)
    s[scan].vectorize(lane)
