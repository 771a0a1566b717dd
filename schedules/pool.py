"""Pooling: the maximum or the mean of each window of an image, or of the whole image.

Each position of the window is a separate row of loads, so vectors run along the last axis. A vector
of results takes one step per position of the window and stays in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tecomp import Target, knob, te
from tecomp.schedules import reduce
from tecomp.schedules.analysis.convolution import (
    Pair,
    WindowGeometry,
    WindowReduction,
    need_windows,
    pair,
    windows_of,
)
from tecomp.schedules.analysis.stages import create_inlined_schedule, is_private_formula
from tecomp.schedules.common import Size, ceil_div, product, values_around, wide_type
from tecomp.schedules.tiling.reduction import first_output
from tecomp.schedules.tiling.register_blocking import (
    balanced_block_size,
    core_of,
    lanes_of,
    width_of,
)

Operation = Literal["max", "mean"]
Layout = Literal["NHWC", "NCHW"]

_STEPS = 64
"""Maximum number of window positions times vectors that are unrolled; more run in a loop."""
_VECTORS = 4
"""Result vectors computed concurrently, which hides the latency of dependent operations."""
_ROWS = 4
"""Rows of a block if the length of a row is symbolic."""


def define(
    X: te.Tensor,
    window: Pair,
    op: Operation = "max",
    *,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    count_padding: bool = True,
    layout: Layout = "NHWC",
    name: str = "pool",
) -> te.Tensor:
    """Define the maximum or the mean of each window.

    Args:
        X: Images of shape (n, h, w, c) for NHWC, (n, c, h, w) for NCHW.
        window: Rows and columns of the window.
        op: Reduction, "max" or "mean".
        stride: Pixels between adjacent windows, down and across. Default: the size of the window.
        padding: Rows and columns around the image; they are ignored by "max" and count as 0 in
            "mean". Default: 0.
        dilation: Pixels between adjacent positions of a window. Default: 1.
        count_padding: Whether a mean is divided by the number of all positions of the window; if
            False, by the number of positions inside the image.
        layout: Order of the axes.
        name: Name of the result.

    Raises:
        ValueError: If the padding is more than half of the window.

    >>> X = te.placeholder((1, 56, 56, 64), name="X")
    >>> define(X, 2).shape, define(X, 3, "mean", stride=2, padding=1).shape
    ((1, 28, 28, 64), (1, 28, 28, 64))
    """
    first, sizes, pads = 2 if layout == "NCHW" else 1, pair(window), pair(padding)
    sliding = WindowGeometry(first, sizes, pair(stride or window), pads, pair(dilation))
    if any(2 * pad > size for pad, size in zip(pads, sizes, strict=True)):
        raise ValueError(
            f"pool.define: padding={pads} exceeds half of window={sizes}; reduce "
            "padding, or pass a larger window"
        )
    image = sliding.padded(X, _neutral_padding(X.dtype, op))
    taps = [te.reduce_axis((0, size), name=axis) for size, axis in zip(sizes, "rs", strict=True)]
    wide_dtype = wide_type(X.dtype) if op == "mean" else X.dtype

    def combined(*i: te.Expr) -> te.Expr:
        value = te.cast(image(*sliding.element(i, taps)), wide_dtype)
        return te.max(value, axis=taps) if op == "max" else te.sum(value, axis=taps)

    def result(*i: te.Expr) -> te.Expr:
        if op == "max":
            return te.cast(total(*i), X.dtype)
        if count_padding or not any(pads):
            share = te.const(1 / (sizes[0] * sizes[1]), wide_dtype)
        else:
            share = te.const(1, wide_dtype) / te.cast(_count_inside(X, sliding, i), wide_dtype)
        return te.cast(total(*i) * share, X.dtype)

    shape = tuple(sliding.shape(X))
    total = te.compute(shape, combined, name=f"{name}_total")
    return te.compute(shape, result, name=name)


def _neutral_padding(dtype: str, op: Operation) -> te.Expr:
    """Return the padding value, which is neutral for the reduction."""
    if op == "mean":
        return te.const(0, dtype)
    return te.lower_bound(dtype)


def _count_inside(X: te.Tensor, sliding: WindowGeometry, i: Sequence[te.Expr]) -> te.Expr:
    """Return the number of elements of a window that are inside the image."""
    rows, columns = (
        _count_from(
            i[sliding.first + k] * sliding.steps[k] - sliding.pads[k], sliding.sizes[k],
            sliding.dilations[k], X.shape[sliding.first + k],
        )
        for k in range(2)
    )
    return rows * columns


def _count_from(start: te.Expr, size: Size, dilation: int, extent: Size) -> te.Expr:
    """Count the positions `start + apart * t`, `0 <= t < size`, in the interval [0, extent)."""
    before = te.max((dilation - 1 - start) // dilation, 0)
    return te.min((extent - start + (dilation - 1)) // dilation, size) - before


def whole(
    X: te.Tensor, op: Operation = "max", *, layout: Layout = "NHWC", name: str = "pool"
) -> te.Tensor:
    """Reduce each whole image with `op`; its rows and columns are kept as axes of extent 1.

    >>> whole(te.placeholder((1, 7, 7, 64), name="X"), "mean").shape
    (1, 1, 1, 64)
    """
    axes = (2, 3) if layout == "NCHW" else (1, 2)
    result: te.Tensor = reduce.define(X, axes, op, keepdims=True, name=name)
    return result


def describe(output: te.Tensor) -> WindowReduction:
    """Return the roles of the axes of a windowed reduction with an optional epilogue.

    Args:
        output: Result of `define`, or any tensor that is such a reduction.

    Raises:
        ScheduleError: If `output` is not a windowed reduction.
    """
    return need_windows(output, "pool.describe")


def schedule(op: te.Tensor | WindowReduction, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for a reduction of windows or of whole images, with an optional epilogue.

    Vectors run along the last axis. Padding is materialized for a few rows at a time, which stay in
    a cache.

    Args:
        op: Result of `define` or of `whole`, any other tensor that is such a reduction, or its
            description.
        target: Target whose vector registers and caches decide the sizes.

    Raises:
        ScheduleError: If `op` is not such a reduction.
    """
    target = Target.of(target)
    if isinstance(op, te.Tensor) and windows_of(op) is None:
        whole_images: te.Schedule = reduce.schedule(op, target)
        return whole_images
    d = need_windows(op, "pool.schedule")
    s: te.Schedule = create_inlined_schedule(d.output, d.between)
    windows_at_root(s, d, target)
    return s


def windows_at_root(s: te.Schedule, d: WindowReduction, target: Target) -> None:
    """Schedule a windowed reduction and its epilogue as a separate loop nest."""
    output, image, total = d.output, d.image, d.total
    if total is output:
        total = first_output(s.cache_write(total, "local"))
    stage, lanes = s[output], lanes_of(output, output.op.axis[-1], target)
    *axes, last = stage.op.axis
    outer, row, middle = axes[: d.row], axes[d.row], axes[d.row + 1 :]
    block, y = stage.split(row, factor=_rows(d, target))
    # A partial tile of several vectors would loop over them at each window position, in memory.
    vectors = 1
    if isinstance(last.extent, int):
        most = max(ceil_div(last.extent, lanes), 1)
        vectors = knob("vectors", values_around(min(_VECTORS, most), 1, min(2 * _VECTORS, most)))
    tile, inner = stage.split(last, factor=vectors * lanes)
    vector, lane = stage.split(inner, factor=lanes)
    stage.reorder(*outer, block, y, *middle, tile, vector, lane)
    stage.unroll(vector)
    stage.vectorize(lane)
    shared = stage.fuse(*outer, block)
    stage.parallel(shared)
    _hold(s, total, output, tile, vectors, lanes)
    if is_private_formula(s, image, total):
        s[image].compute_at(stage, shared)
        _, lane = s[image].split(s[image].op.axis[-1], factor=lanes)
        s[image].vectorize(lane)


def _rows(d: WindowReduction, target: Target) -> int:
    """Return the output rows of a block: their input fits the L2 cache, with a block for each core.

    Padding is recomputed for rows that two blocks read.
    """
    core, output = core_of(target), d.output
    height, values = output.shape[d.row], product(output.shape[d.row + 1 :])
    max_rows = _ROWS
    if isinstance(values, int):
        max_rows = max(core.second_cache // 4 // (max(values, 1) * d.factor * width_of(output)), 1)
    if isinstance(height, int):
        max_rows = min(max_rows, max(ceil_div(height, core.count), 1))
    size: int = balanced_block_size(height, max_rows, share=core.count)
    size = knob("block_rows", values_around(size, 1, height if isinstance(height, int) else None))
    return size


def _hold(
    s: te.Schedule, total: te.Tensor, output: te.Tensor, tile: te.IterVar, vectors: int,
    lanes: int,
) -> None:
    """Accumulate a few vectors of results in registers, one window position after the other."""
    stage = s[total]
    stage.compute_at(s[output], tile)
    stage.set_scope("local")
    *outer, last = stage.op.axis
    vector, lane = stage.split(last, factor=lanes)
    stage.reorder(*outer, *stage.op.reduce_axis, vector, lane)
    window_size = product(x.extent for x in stage.op.reduce_axis)
    if isinstance(window_size, int) and window_size * vectors <= _STEPS:
        for axis in stage.op.reduce_axis:
            stage.unroll(axis)
    stage.unroll(vector)
    stage.vectorize(lane)
