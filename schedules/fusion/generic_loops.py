"""Loop nest for a reduction that matches no known pattern."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import Access, Target, accesses, knob, te
from tecomp.schedules.common import is_one, product, values_around
from tecomp.schedules.tiling.reduction import first_output
from tecomp.schedules.tiling.register_blocking import balanced_block_size, lanes_of
from tecomp.schedules.transpose import formula_at_root

_TILE = 8
"""Vectors of a result tile, which hide the latency of the multipliers."""

_USES = 16
"""Minimum uses of an element for which a copy of it pays."""

_TAPS = 16
"""Maximum terms of a sum that are unrolled."""
_WRITTEN_OUT = 512
"""Maximum operations of all terms of a sum that are unrolled."""


def generic_reduction_at_root(s: te.Schedule, chain: Sequence[te.Tensor], target: Target) -> None:
    """Schedule a reduction as a separate loop nest, followed by its epilogue.

    A vector consists of result elements that are contiguous in an input if there are such, else in
    the result.

    Args:
        s: Schedule.
        chain: Stages from the last one back to the reduction.
        target: Target whose vector registers decide the sizes.
    """
    output, total = chain[0], chain[-1]
    if output is not total and output.shape:
        formula_at_root(s, output, target)
    lane_axis = _vector_axis(total)
    if lane_axis is None:
        return
    if total.op.num_outputs > 1:
        _accumulate_in_memory(s, total, lane_axis, target)
    else:
        _copy_strided_inputs(s, total, lane_axis)
        _accumulate_in_registers(s, total, lane_axis, target)


def _copy_strided_inputs(s: te.Schedule, total: te.Tensor, lane_axis: te.IterVar) -> None:
    """Copy inputs that are reused often and strided along vectors, with the vector axis last."""
    for read in accesses(total).reads:
        dim = _vector_dimension(read, total, lane_axis)
        if dim is not None:
            _store_axis_last(s[s.cache_read(read.tensor, "global", [total])], dim)


def _store_axis_last(stage: te.Stage, dim: int) -> None:
    """Store a tensor with one of its axes last."""
    stage.transform_layout(lambda *i: [*i[:dim], *i[dim + 1 :], i[dim]])


def _vector_dimension(read: Access, total: te.Tensor, lane_axis: te.IterVar) -> int | None:
    """Return the dimension along vectors of an often reused read, if not the last; else None."""
    dims = [k for k, index in enumerate(read.index) if index.coefficient(lane_axis) != 0]
    if len(dims) != 1 or dims[0] == len(read.index) - 1:
        return None
    points = product(axis.extent for axis in (*total.op.axis, *total.op.reduce_axis))
    elements = product(read.tensor.shape)
    if not isinstance(points, int) or not isinstance(elements, int):
        return None
    return dims[0] if points >= _USES * elements else None


def _accumulate_in_memory(
    s: te.Schedule, total: te.Tensor, lane_axis: te.IterVar, target: Target
) -> None:
    """Vectorize a reduction of tuples, which accumulates in memory."""
    stage = s[total]
    outer, lane = stage.split(lane_axis, factor=lanes_of(total, lane_axis, target))
    others = [axis for axis in total.op.axis if axis is not lane_axis]
    runs = list(total.op.reduce_axis)
    if (run := _contiguous_reduction_axis(total, lane_axis)) is not None:
        # `lanes` unrolled steps read squares, which are transposed in registers.
        steps, step = stage.split(run, factor=lanes_of(total, lane_axis, target))
        stage.unroll(step)
        index = next(k for k, axis in enumerate(runs) if axis is run)
        runs[index : index + 1] = [steps, step]
    stage.reorder(*others, outer, *runs, lane)
    stage.parallel(stage.fuse(*others, outer))
    stage.vectorize(lane)


def _contiguous_reduction_axis(total: te.Tensor, lane_axis: te.IterVar) -> te.IterVar | None:
    """Return the last reduction axis if all vector inputs are contiguous along it, else None."""
    last = total.op.reduce_axis[-1]
    reads = [read for read in accesses(total).reads if lane_axis in _axes_of(read)]
    is_transposed = bool(reads) and all(
        read.index[-1].axis is last and not read.index[-1].coefficient(lane_axis) for read in reads
    )
    return last if is_transposed else None


def _accumulate_in_registers(
    s: te.Schedule, total: te.Tensor, lane_axis: te.IterVar, target: Target
) -> None:
    """Accumulate a tile of results in registers, which share loaded values."""
    stage, accumulator = s[total], first_output(s.cache_write(total, "local"))
    outer, lane = stage.split(lane_axis, factor=lanes_of(total, lane_axis, target))
    others = [axis for axis in total.op.axis if axis is not lane_axis]
    inside = [lane]
    if (shared := _most_invariant_axis(total, lane_axis)) is not None:
        size = balanced_block_size(shared.extent, _TILE)
        tiles, row = stage.split(shared, factor=knob("tile", values_around(size, 1, 2 * _TILE)))
        others = [tiles if axis is shared else axis for axis in others]
        inside.insert(0, row)
        stage.unroll(row)
    stage.reorder(*others, outer, *inside)
    fused = stage.fuse(*others, outer)
    stage.parallel(fused)
    stage.vectorize(lane)
    part, axis_map = s[accumulator], dict(zip(total.op.axis, accumulator.op.axis, strict=True))
    part.compute_at(stage, fused)
    last = [axis_map[axis] for axis in (shared, lane_axis) if axis is not None]
    remaining = [axis for axis in accumulator.op.axis if not any(axis is other for other in last)]
    part.reorder(*remaining, *accumulator.op.reduce_axis, *last)
    taps = product(axis.extent for axis in accumulator.op.reduce_axis)
    # Unrolling long terms gains nothing, and LLVM takes minutes to compile them.
    work = accesses(total).work
    is_short = isinstance(taps, int) and taps <= _TAPS and taps * work <= _WRITTEN_OUT
    unrolled = knob("unroll", [True, False]) if is_short else False
    short = accumulator.op.reduce_axis if unrolled else ()
    for axis in (*short, *last[:-1]):
        part.unroll(axis)
    part.vectorize(last[-1])


def is_shared_in_tiles(total: te.Tensor) -> bool:
    """Return whether tiles of results share loads and vectors need no horizontal reduction.

    Each read must then be contiguous along the last axis of the result, invariant along it, or
    copied into such a layout, and some read must be invariant along another axis.
    """
    found = accesses(total)
    if not found.axis or len(found.reads) < 2 or not found.reduce_axis:
        return False
    last = found.axis[-1]
    varying = [read for read in found.reads if last in _axes_of(read)]
    in_order = all(
        _vector_dimension(read, total, last) is not None
        or (read.index[-1].coefficient(last)
            and all(index.coefficient(last) == 0 for index in read.index[:-1]))
        for read in varying
    )
    return bool(varying) and in_order and _most_invariant_axis(total, last) is not None


def _most_invariant_axis(total: te.Tensor, lane_axis: te.IterVar) -> te.IterVar | None:
    """Return the axis, other than the vector axis, along which most reads are invariant, or None.

    Reads of overlapping windows count as invariant, because most of their elements are the same.
    """
    reads = [read for read in accesses(total).reads if lane_axis in _axes_of(read)]

    def same(axis: te.IterVar) -> int:
        return sum([
            axis not in _axes_of(read)
            or any(index.is_window for index in read.index if index.coefficient(axis))
            for read in reads
        ])

    axes = [axis for axis in total.op.axis if axis is not lane_axis and not is_one(axis.extent)]
    best = max(reversed(axes), key=same, default=None)
    return best if best is not None and same(best) else None


def _axes_of(read: Access) -> set[te.IterVar]:
    """Return the axes that a read depends on."""
    return {axis for index in read.index for axis in index.axes}


def _vector_axis(total: te.Tensor) -> te.IterVar | None:
    """Return the axis of the result along which vectors run; None for a scalar."""
    axes = [axis for axis in total.op.axis if not is_one(axis.extent)]
    if not axes:
        return None
    ends = [read.index[-1].axis for read in accesses(total).reads if read.index]
    found = [axis for axis in axes if any(axis is end for end in ends)]
    return found[-1] if found else axes[-1]
