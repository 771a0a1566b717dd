"""2-D convolutions with any stride, dilation, padding and grouping, in NHWC or NCHW.

A register tile accumulates some pixels times some channels. For each filter tap, vectors of one
operand are multiplied with broadcast values of the other, as in a matrix product. NCHW images are
transposed on input and output, one block of rows at a time, because rows of pixels rarely fill full
vectors, whereas channels usually do. Depthwise convolutions reuse each value too rarely for that;
their vectors run along the rows.

Source:
    J. Zhang, F. Franchetti, T. M. Low, "High performance zero-memory overhead direct convolutions",
    ICML 2018, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tecomp import Target, te
from tecomp.schedules.analysis.convolution import (
    Convolution,
    Pair,
    WindowGeometry,
    need_convolution,
    pair,
)
from tecomp.schedules.analysis.matmul import of_images
from tecomp.schedules.analysis.stages import (
    create_inlined_schedule,
    is_computed,
    is_private_formula,
)
from tecomp.schedules.common import is_one, wide_type
from tecomp.schedules.scratchpad import contraction
from tecomp.schedules.scratchpad.placement import placement_of
from tecomp.schedules.tiling import register_blocking
from tecomp.schedules.tiling.reduction import (
    add_dots,
    apply_epilogue,
    dot_types,
    first_output,
    sum_in_vectors,
)
from tecomp.schedules.tiling.register_blocking import (
    ConvBlocking,
    keep_tile,
    transpose_squares,
    walk_tiles,
)
from tecomp.schedules.tiling.traversal import is_short

Layout = Literal["NHWC", "NCHW"]

_MAX_UNROLLED_VECTORS = 4
"""Number of vectors below which a copied row is unrolled."""


def define(
    X: te.Tensor,
    W: te.Tensor,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    layout: Layout = "NHWC",
    bias: te.Tensor | None = None,
    activation: Callable[[te.Expr], te.Expr] | None = None,
    out_dtype: str | None = None,
    pairs: bool = True,
    name: str = "conv2d",
) -> te.Tensor:
    """Define `activation(X * W + bias)`, where `*` is the convolution with the filters `W`.

    Args:
        X: Images of shape (n, h, w, c) for NHWC, (n, c, h, w) for NCHW.
        W: Filters of shape (r, s, c / groups, k) for NHWC, (k, c / groups, r, s) for NCHW.
        stride: Pixels between adjacent filter positions, down and across. Default: 1.
        padding: Rows and columns of zeros around the image. Default: 0.
        dilation: Pixels between adjacent filter taps. Default: 1.
        groups: Number of groups of channels; each output channel reads one group. Default: 1.
        layout: Order of the axes.
        bias: Tensor of shape (k,) that is added to each pixel. Default: no bias.
        activation: Function that is applied to each element last. Default: none.
        out_dtype: Dtype of the result and of the accumulator. Default: the dtype of `X`. float16
            and bfloat16 accumulate in float32, and the result is rounded once.
        pairs: Whether dot-product instructions may multiply and accumulate several adjacent
            channels, if the target has them for the dtypes; they change the summation order of
            floats.
        name: Name of the result.

    Returns:
        Images of `k` channels with the same axis order.

    >>> X, W = te.placeholder((1, 56, 56, 64), name="X"), te.placeholder((3, 3, 64, 32), name="W")
    >>> define(X, W, padding=1).shape, define(X, W, stride=2).shape
    ((1, 56, 56, 32), (1, 27, 27, 32))
    """
    first = layout == "NCHW"
    dtype = out_dtype or X.dtype
    sum_type = wide_type(dtype)
    *taps, depth, k = (W.shape[i] for i in ((2, 3, 1, 0) if first else (0, 1, 2, 3)))
    sliding = WindowGeometry(2 if first else 1, taps, pair(stride), pair(padding), pair(dilation))
    image = sliding.padded(X, te.const(0, X.dtype))
    r, s = (te.reduce_axis((0, count), name=axis) for count, axis in zip(taps, "rs", strict=True))
    channel, channels = te.reduce_axis((0, depth), name="c"), 1 if first else 3

    def total_at(*axes: te.Expr) -> te.Expr:
        out, index = axes[channels], sliding.element(axes, (r, s))
        index[channels] = channel if groups == 1 else out // (k // groups) * depth + channel
        factors = image(*index), W(out, channel, r, s) if first else W(r, s, channel, out)
        value, weight = factors if sum_type == X.dtype else (te.cast(x, sum_type) for x in factors)
        return te.sum(value * weight, axis=[r, s, channel])

    shape = sliding.shape(X)
    shape[channels] = k
    attrs = {} if pairs else {"pairs": False}
    if bias is None and activation is None and sum_type == dtype:
        return te.compute(tuple(shape), total_at, name=name, attrs=attrs)
    total = te.compute(tuple(shape), total_at, name=f"{name}_sum", attrs=attrs)
    result: te.Tensor = apply_epilogue(total, dtype, bias, channels, activation, name)
    return result


def describe(output: te.Tensor) -> Convolution:
    """Return the roles of the axes of a convolution with an optional element-wise epilogue.

    Args:
        output: Result of `define`, or any tensor that is such a sum.

    Raises:
        ScheduleError: If `output` is not a convolution.
    """
    return need_convolution(output, "conv2d.describe")


def plan(op: te.Tensor | Convolution, target: str | Path | Target) -> ConvBlocking:
    """Choose the register tile and the block of rows of a convolution.

    Raises:
        ScheduleError: If `op` is not a convolution.
    """
    target = Target.of(target)
    d = need_convolution(op, "conv2d.plan")
    return register_blocking.plan(d, target)


def schedule(
    op: te.Tensor | Convolution, target: str | Path | Target, plan: ConvBlocking | None = None
) -> te.Schedule:
    """Return a schedule for a convolution with an optional element-wise epilogue.

    Args:
        op: Result of `define`, any other tensor that is such a sum, or its description.
        target: Target.
        plan: Register tile and block sizes. Default: the result of `plan`. Ignored for targets with
            scratchpads.

    Raises:
        ScheduleError: If `op` is not a convolution.
    """
    target = Target.of(target)
    d = need_convolution(op, "conv2d.schedule")
    s: te.Schedule = create_inlined_schedule(d.output, d.between)
    where = placement_of(target)
    if where is not None:
        padded = [d.image] if is_computed(d.image) else []
        contraction.schedule(s, d.output, of_images(d, padded), where)
        where.put_arguments(s)
    else:
        convolution_at_root(s, d, target, plan)
    return s


def convolution_at_root(
    s: te.Schedule, d: Convolution, target: Target, plan: ConvBlocking | None = None
) -> None:
    """Schedule a convolution and its epilogue as a separate loop nest on a CPU."""
    source = d.image
    d, correction = _by_dots(s, d, target)
    p = plan or register_blocking.plan(d, target)
    image = d.image
    copies = [x for x in dict.fromkeys((image, source)) if is_private_formula(s, x, d.total, image)]
    if d.first and not d.depthwise:
        sums, block = _schedule_transposed_block(s, d, p)
        if image is not source or not copies:
            image = s.cache_read(image, "global", [sums])
            copies.insert(0, image)
        s[image].transform_layout(_channels_last if p.depth is None else _in_blocks(p.depth))
    else:
        sums, block = _in_order(s, d, p)
    if not d.depthwise:
        _pack_weights(s, d, [sums] if correction is None else [sums, correction], p)
    if correction is not None:
        sum_in_vectors(s, correction, p.tile.columns)
    step = d.steps[1]
    if d.depthwise and d.first and step > 1:
        copies.insert(0, _in_phases(s, image, sums, step))
    for copy in copies:
        s[copy].compute_at(s[d.output], block)
        *_, row, lane = s[copy].leaf_iter_vars
        if d.first and not d.depthwise and copy is image:
            transpose_squares(s[copy], row, lane, p.tile.lanes)
        else:
            outer, lane = s[copy].split(lane, factor=p.tile.lanes)
            s[copy].vectorize(lane)
            if is_short(copy.op.axis[-1], p.tile.lanes, _MAX_UNROLLED_VECTORS):
                # The masks of the padding are constants then.
                s[copy].unroll(outer)


def _by_dots(
    s: te.Schedule, d: Convolution, target: Target
) -> tuple[Convolution, te.Tensor | None]:
    """Rewrite the sum with dot products of adjacent channels where the target is faster with them.

    Returns:
        The rewritten convolution, and the correction that is subtracted from it if the image was
        shifted by 128; else the given convolution and None.
    """
    if not d.total.op.attrs.get("pairs", True) or d.groups != 1:
        return d, None
    types = dot_types(str(d.image.dtype), str(d.weights.dtype), str(d.total.dtype), target)
    if types is None:
        return d, None
    channel = d.taps_of(d.total)[2]
    order = (types[1], types[0]) if d.is_swapped else types
    total, words, correction = add_dots(s, d.total, channel, order, d.output)
    image, weights = reversed(words) if d.is_swapped else words
    return replace(d, total=total, image=image, weights=weights), correction


def _in_phases(s: te.Schedule, image: te.Tensor, sums: te.Tensor, step: int) -> te.Tensor:
    """Copy the image so that the columns a result vector reads for one tap are contiguous."""
    copy: te.Tensor = s.cache_read(image, "global", [sums])
    *_, phase, _ = s[copy].transform_layout(lambda n, c, y, x: [n, c, y, x % step, x // step])
    s[copy].unroll(phase)
    return copy


def _channels_last(n: te.Expr, channel: te.Expr, y: te.Expr, x: te.Expr) -> list[te.Expr]:
    return [n, y, x, channel]


def _in_blocks(depth: int) -> Callable[..., list[te.Expr]]:
    """Store the channels that are summed together next to each other, block by block."""
    return lambda n, channel, y, x: [n, channel // depth, y, x, channel % depth]


def _in_order(s: te.Schedule, d: Convolution, p: ConvBlocking) -> tuple[te.Tensor, te.IterVar]:
    """Schedule register tiles that are stored to the result directly.

    Returns:
        The stage of the sums, and the loop over blocks of rows; for NCHW a block has one channel.
    """
    sums = d.total
    if d.total is d.output:
        sums = first_output(s.cache_write(d.total, "local"))
    else:
        s[d.total].set_scope("local")
    first, stage = d.first, s[d.output]
    n, y, x, channel = d.axes_of(d.output)
    block, y = stage.split(y, factor=p.rows)
    if first:
        tile, outer, inside = walk_tiles(stage, y, x, p.tile)
        blocks, order = [n, channel, block], [tile, outer]
    else:
        tile, outer, inside = walk_tiles(stage, x, channel, p.tile)
        # The register tile's channels, and thus their weights, stay fixed for all pixels of the
        # block.
        blocks, order = [n, block], [outer, y, tile]
    stage.reorder(*blocks, *order, *inside)
    shared = stage.fuse(*blocks)
    stage.parallel(shared)
    fixed, single, vector_axis = s[sums].op.axis[1:]
    r, column, depth = d.taps_of(sums)
    taps = [depth, r, column] if first else [r, column, depth]
    s[sums].compute_at(stage, order[-1])
    # Each tap of each channel adds the products of broadcast values and vectors to the tile.
    s[sums].reorder(fixed, *taps, *keep_tile(s[sums], single, vector_axis, p.tile))
    if d.depthwise:
        # The remaining loop body is too short to pay for a loop.
        s[sums].unroll(column)
    return sums, shared


def _schedule_transposed_block(
    s: te.Schedule, d: Convolution, p: ConvBlocking
) -> tuple[te.Tensor, te.IterVar]:
    """Schedule register tiles into a channels-last block that is transposed into the result.

    Blocks of channels are summed one after the other if the filters of all of them exceed the
    first-level cache.

    Returns:
        The stage of the sums, and the loop over blocks of rows.
    """
    rows = first_output(s.cache_write(d.total, "global")) if d.total is d.output else d.total
    if p.depth is None:
        sums = first_output(s.cache_write(rows, "local"))
        s[sums].transform_layout(_channels_last)
    else:
        part, inside = s[rows].split(d.taps_of(rows)[2], factor=p.depth)
        s[rows].reorder(part, *d.taps_of(rows)[:2], inside)
        sums = first_output(s.rfactor(rows, part))
        s[sums].set_scope("local")
        s[sums].transform_layout(lambda part, *axes: [part, *_channels_last(*axes)])
    s[rows].transform_layout(_channels_last)
    stage = s[d.output]
    n, channel, y, x = stage.op.axis
    if p.channels is None:
        block, y = stage.split(y, factor=p.rows)
    else:
        block, channel = stage.split(channel, factor=p.channels)
    pixel = stage.fuse(y, x)
    stage.reorder(n, block, channel, pixel)
    transpose_squares(stage, channel, pixel, p.tile.lanes)
    shared = stage.fuse(n, block)
    stage.parallel(shared)
    s[rows].compute_at(stage, shared)
    n, y, x, channel, *parts = s[rows].leaf_iter_vars
    tile, outer, inside = walk_tiles(s[rows], x, channel, p.tile)
    s[rows].reorder(n, outer, *parts, y, tile, *inside)
    y, single, vector_axis, *taps = s[sums].leaf_iter_vars[1 + len(parts):]
    if not parts:
        taps = list(d.taps_of(sums))
    s[sums].compute_at(s[rows], tile)
    s[sums].reorder(y, *taps, *keep_tile(s[sums], single, vector_axis, p.tile))
    return sums, shared


def _pack_weights(
    s: te.Schedule, d: Convolution, readers: Sequence[te.Tensor], p: ConvBlocking
) -> None:
    """Pack the filters so that the values a tile needs for one tap are contiguous."""
    width, weights, first = p.tile.columns, d.weights, d.order[3] == 0

    def place(*axes: te.Expr) -> list[te.Expr]:
        r, q, c, k = (axes[dim] for dim in d.order)
        if p.depth is not None:
            return [k // width, c // p.depth, r, q, c % p.depth, k % width]
        return [k // width, r, q, c, k % width]

    computed = is_private_formula(s, weights, *readers)
    if computed and first:
        _side_by_side(s, weights, p.tile.lanes)
    copy = weights if computed and not first else s.cache_read(weights, "global", readers)
    stage = s[copy]
    if not first:
        stage.transform_layout(place)
        stage.vectorize(stage.leaf_iter_vars[-1])
        stage.parallel(stage.leaf_iter_vars[0])
        return
    stage.transform_layout(place, loops="logical")
    k, *taps = copy.op.axis
    tile, k = stage.split(k, factor=width)
    vector, lane = stage.split(k, factor=p.tile.lanes)
    # The reduced values of an output channel are contiguous; `lanes` of them form squares.
    tap_block, one_tap = stage.split(stage.fuse(*taps), factor=p.tile.lanes)
    stage.reorder(tile, tap_block, vector, one_tap, lane)
    stage.unroll(one_tap)
    stage.vectorize(lane)
    stage.parallel(tile)


def _side_by_side(s: te.Schedule, weights: te.Tensor, lanes: int) -> None:
    """Compute vectors of the filters along the taps, or along the channels of a 1x1 filter."""
    stage = s[weights]
    k, channel, *taps = stage.op.axis
    tap = stage.fuse(*taps)
    is_single = all(is_one(axis.extent) for axis in taps)
    vector_axis, other = (channel, tap) if is_single else (tap, channel)
    outer, lane = stage.split(vector_axis, factor=lanes)
    stage.reorder(k, other, outer, lane)
    stage.vectorize(lane)
    stage.parallel(k)
