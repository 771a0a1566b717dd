"""Transposes: copies and element-wise operators that use full cache lines on both sides.

Where the contiguous axes of source and result differ, a block reads full cache lines of both, and
squares of vectors are transposed in registers inside the block.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tecomp import Target, copy_schedule, knob, te
from tecomp.schedules.analysis.pointwise_chains import (
    NO_STRIDES,
    ChainRead,
    Strides,
    inline_chain,
    is_strided,
    reads_of_chain,
    run_length,
    work_of_chain,
)
from tecomp.schedules.analysis.stages import is_result
from tecomp.schedules.common import same_shape, values_around
from tecomp.schedules.tiling.register_blocking import core_of, width_of
from tecomp.schedules.tiling.traversal import stream, stream_large

_MOST_WORK = 64
"""Maximum number of operations of an element-wise expression that is tiled and transposed."""


def define(
    A: te.Tensor, axes: Sequence[int] | None = None, *, name: str = "transpose"
) -> te.Tensor:
    """Define `A` with its axes permuted, as `numpy.transpose`.

    Args:
        A: Input tensor.
        axes: Axis of `A` for each axis of the result. Default: reversed order.
        name: Name of the result.

    Raises:
        ValueError: If an axis is missing or repeated.

    >>> define(te.placeholder((2, 3, 4), name="A"), (0, 2, 1)).shape
    (2, 4, 3)
    """
    rank = len(A.shape)
    order = list(reversed(range(rank))) if axes is None else [k % rank for k in axes]
    if sorted(order) != list(range(rank)):
        raise ValueError(
            f"transpose.define: axes={tuple(axes or ())} of {rank} axes is not a permutation; "
            "pass each axis once"
        )
    inverse = [order.index(k) for k in range(rank)]
    return te.compute(
        tuple(A.shape[k] for k in order), lambda *i: A(*(i[k] for k in inverse)),
        name=name,
    )


def describe(output: te.Tensor, roots: Container[te.Tensor] | None = None) -> int | None:
    """Return the axis of the result along which a transposed input is contiguous.

    Args:
        output: Result of `define`, or of any other element-wise operator.
        roots: Element-wise stages in the chain that are not inlined. Default: none.

    Returns:
        The number of the axis, which is not the last one; None if every input is contiguous along
        the last axis of the result.

    >>> A = te.placeholder((2, 3, 4), name="A")
    >>> describe(define(A, (2, 0, 1))), describe(define(A, (1, 0, 2)))
    (0, None)
    """
    read = _find_transposed_read(output, roots)
    return None if read is None else read.contiguous_axis


def _find_transposed_read(
    output: te.Tensor, roots: Container[te.Tensor] | None, strides: Strides = NO_STRIDES
) -> ChainRead | None:
    """Find the first read that depends on the last axis but is contiguous along another axis.

    Return None if the expression has more than `_MOST_WORK` operations, because each operation
    would be unrolled for every row of a tile.
    """
    if work_of_chain(output, roots) > _MOST_WORK:
        return None
    last = len(output.shape) - 1
    return next(
        (read for read in reads_of_chain(output, roots, strides)
         if last in read.used and read.contiguous_axis not in (None, last)),
        None,
    )


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`, or for another element-wise operator."""
    target = Target.of(target)
    s = te.create_schedule(output)
    inline_chain(s, output)
    formula_at_root(s, output, target)
    return s


def formula_at_root(
    s: te.Schedule, output: te.Tensor, target: Target,
    roots: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES,
) -> None:
    """Schedule an element-wise stage in the memory order of its result, or of both sides.

    Args:
        s: Schedule.
        output: Element-wise stage.
        target: Target.
        roots: Element-wise inputs that are not inlined. Default: none.
        strides: Strides of the tensors that are not contiguous in memory.
    """
    read = _find_transposed_read(output, roots, strides)
    if read is not None:
        core = core_of(target)
        joined = _neighbours(output, roots, strides)
        axes, dims = _taken_together(s[output], _dims(output, read), joined)
        widths = te.const(1, read.tensor.dtype).dtype.bytes, width_of(output)
        by_source = knob("by_source", [False, True])
        walk = copy_schedule.moves_of(dims, widths, core.vector_bytes, by_source=by_source)
        walk = replace(walk, block_bytes=knob("block_bytes", values_around(walk.block_bytes)))
        copy_schedule.schedule_moves(s[output], axes, walk, core.count)
    elif output.shape:
        row = run_length(output, roots, strides)
        stream(s, output, target, row, roots, one_by_one=is_strided(output, roots, strides))
        if is_result(s, output) and output not in strides:
            stream_large(s, output, target, row)


def _dims(output: te.Tensor, read: ChainRead) -> list[copy_schedule.Dim]:
    """Return the extent of each axis with the strides of the read tensor and of the result."""
    steps = _steps(read.tensor.shape) if read.strides is None else [
        n if isinstance(n, int) else copy_schedule.FAR for n in read.strides]
    sources = dict(zip(read.dims, steps, strict=True))
    results = zip(map(_count, output.shape), _steps(output.shape), strict=True)
    return [
        copy_schedule.Dim(count, sources.get(axis, 0), step)
        for axis, (count, step) in enumerate(results)
    ]


def _count(extent: te.Expr | int) -> int:
    """Return an extent as an int; a symbolic extent counts as `copy_schedule.FAR`."""
    return max(extent, 1) if isinstance(extent, int) else copy_schedule.FAR


def _steps(shape: Sequence[te.Expr | int]) -> list[int]:
    """Return the row-major strides of a tensor in elements."""
    found = [1]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * _count(extent))
    return found[::-1]


def _neighbours(
    output: te.Tensor, roots: Container[te.Tensor] | None, strides: Strides
) -> list[bool]:
    """Return for each axis but the last whether all reads are dense over this axis and the next."""
    reads = reads_of_chain(output, roots, strides)
    is_dense = output not in strides and all(read.strides is None for read in reads)
    return [
        all(_are_one(read, k, int(extent)) for read in reads)
        if is_dense and isinstance(extent, int) else False
        for k, extent in enumerate(output.shape[1:])
    ]


def _are_one(read: ChainRead, axis: int, extent: int) -> bool:
    """Return whether `axis` and the next axis, of `extent`, are dense in the read tensor."""
    pairs = zip(pairwise(read.dims), read.tensor.shape[1:], strict=True)
    return any(
        dims == (axis, axis + 1) and same_shape((size,), (extent,)) for dims, size in pairs
    )


def _taken_together(
    stage: te.Stage, dims: Sequence[copy_schedule.Dim], joined: Sequence[bool]
) -> tuple[list[te.IterVar], list[copy_schedule.Dim]]:
    """Fuse the loops that are dense on both sides, and return all loops with their dimensions.

    Args:
        stage: Stage that has the loops.
        dims: Dimensions of the axes.
        joined: For each axis but the last, whether it may be fused with the next one.
    """
    first, *axes = stage.op.axis
    loops, found = [first], [dims[0]]
    for axis, dim, is_joined in zip(axes, dims[1:], joined, strict=True):
        if is_joined and found[-1].source != 1:
            loops[-1] = stage.fuse(loops[-1], axis)
            found[-1] = copy_schedule.Dim(found[-1].count * dim.count, dim.source, dim.result)
        else:
            loops.append(axis)
            found.append(dim)
    return loops, found
