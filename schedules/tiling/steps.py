"""Scans: steps one after the other, in strips of columns that stay in a cache, or row by row."""

from __future__ import annotations

from collections.abc import Container

from tecomp import Target, te
from tecomp.schedules.structure.chains import reads_of_chain
from tecomp.schedules.structure.scans import has_own_columns
from tecomp.schedules.structure.sizes import ceil_div, round_up
from tecomp.schedules.tiling.tiles import (
    core_of,
    elements_at_hand,
    lanes_of,
    transpose_squares,
)

_STEPS = 16
"""Steps that are written out: the state goes through memory once for all of them."""
_FEW = 2
"""Vectors of a step up to which it waits for the one before."""


def walk_steps(
    s: te.Schedule, scan: te.Tensor, target: Target, apart: Container[te.Tensor] | None = None
) -> None:
    """Strips of columns, a row after another in each; where columns follow from others, row by row.

    Axes of known extent are one for that, so that short rows are no short strips. Formulas that the
    steps read are computed there, but for those `apart`.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (steps, *axes) = s[scan], list(scan.op.axis)
    if not axes:
        _write_out(stage, steps, _STEPS)
        return
    is_apart = has_own_columns(scan)
    is_across = is_apart and len(axes) == 1 and _is_read_across(scan, apart)
    if all(isinstance(axis.extent, int) for axis in axes):
        axes = [stage.fuse(*axes)]
    core, last = core_of(target), axes.pop()
    lanes, most = core.lanes(scan.dtype), elements_at_hand(scan, target)
    if isinstance(last.extent, int):
        most = min(most, max(ceil_div(last.extent, core.count), 1))
    most = lanes if is_across else round_up(most, lanes)
    strip, column = stage.split(last, factor=most)
    vectors, lane = stage.split(column, factor=lanes_of(scan, last, target))
    rows = [steps]
    if is_across:
        # Squares are read along memory, and transposed in registers.
        rows = _write_out(stage, steps, lanes)
    elif is_apart and isinstance(last.extent, int) and min(last.extent, most) <= _FEW * lanes:
        rows = _write_out(stage, steps, _STEPS)
    strips = [*axes, strip]
    stage.reorder(*([*strips, *rows] if is_apart else [*rows, *strips]), vectors, lane)
    stage.parallel(stage.fuse(*strips))
    stage.vectorize(lane)


def _write_out(stage: te.Stage, steps: te.IterVar, count: int) -> list[te.IterVar]:
    """Several steps one after the other, which wait for memory once for all."""
    rows, row = stage.split(steps, factor=count)
    stage.unroll(row)
    return [rows, row]


def _is_read_across(scan: te.Tensor, apart: Container[te.Tensor] | None) -> bool:
    """Whether what the steps read lies side by side along them, and not along their rows."""
    *_, step = scan.op.input_tensors
    return any(
        read.dims and read.dims[-1] == 0 and len(step.op.axis) - 1 in read.used
        for read in reads_of_chain(step, apart)
    )


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
