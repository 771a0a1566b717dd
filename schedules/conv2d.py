"""Convolutions of images: any stride, dilation, padding and grouping, channels last or first.

A tile of registers holds the sums of some pixels by some channels. For each tap of the filter, the
vectors of one operand are multiplied with single values of the other, as in a product of matrices.

Source:
    J. Zhang, F. Franchetti, T. M. Low, "High performance zero-memory overhead direct convolutions",
    ICML 2018, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tecomp import Target, te
from tecomp.schedules.tiles import balanced, ceil_div, core_of

Layout = Literal["NHWC", "NCHW"]
Pair = int | tuple[int, int]


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
    name: str = "conv2d",
) -> te.Tensor:
    """`activation(X * W + bias)`, where `*` slides the filters over the image.

    Args:
        X: images; shape (n, h, w, c) for NHWC, (n, c, h, w) for NCHW.
        W: filters; shape (r, s, c / groups, k) for NHWC, (k, c / groups, r, s) for NCHW.
        stride: pixels from one place of a filter to the next, down and across.
        padding: rows and columns of zeros around the image.
        dilation: pixels from one tap of a filter to the next.
        groups: parts that the channels are cut into; each output sees one part.
        layout: order of the axes.
        bias: shape (k,), added to each pixel.
        activation: applied to each element at last.
        name: of the result.

    Returns:
        The images of `k` channels, in the same order of axes.

    >>> X, W = te.placeholder((1, 56, 56, 64), name="X"), te.placeholder((3, 3, 64, 32), name="W")
    >>> define(X, W, padding=1).shape, define(X, W, stride=2).shape
    ((1, 56, 56, 32), (1, 27, 27, 32))
    """
    first = layout == "NCHW"
    n, h, w = (X.shape[i] for i in ((0, 2, 3) if first else (0, 1, 2)))
    taps_y, taps_x, depth, k = (W.shape[i] for i in ((2, 3, 1, 0) if first else (0, 1, 2, 3)))
    (step_y, step_x), (pad_y, pad_x), (apart_y, apart_x) = map(_pair, (stride, padding, dilation))
    rows = (h + 2 * pad_y - apart_y * (taps_y - 1) - 1) // step_y + 1
    columns = (w + 2 * pad_x - apart_x * (taps_x - 1) - 1) // step_x + 1
    image = _padded(X, pad_y, pad_x, first) if pad_y or pad_x else X
    r, s = te.reduce_axis((0, taps_y), name="r"), te.reduce_axis((0, taps_x), name="s")
    channel = te.reduce_axis((0, depth), name="c")

    def total_at(*axes: te.Expr) -> te.Expr:
        b, y, x, out = (axes[i] for i in ((0, 2, 3, 1) if first else (0, 1, 2, 3)))
        row, column = y * step_y + r * apart_y, x * step_x + s * apart_x
        source = channel if groups == 1 else out // (k // groups) * depth + channel
        value = image(b, source, row, column) if first else image(b, row, column, source)
        weight = W(out, channel, r, s) if first else W(r, s, channel, out)
        return te.sum(value * weight, axis=[r, s, channel])

    shape = (n, k, rows, columns) if first else (n, rows, columns, k)
    attrs = {"layout": layout, "depthwise": groups > 1 and depth == 1, "groups": groups,
             "stride": step_x}
    if bias is None and activation is None:
        return te.compute(shape, total_at, name=name, attrs=attrs)
    total = te.compute(shape, total_at, name=f"{name}_sum", attrs=attrs)

    def finish(*axes: te.Expr) -> te.Expr:
        value: te.Expr = total(*axes)
        if bias is not None:
            value = value + bias(axes[1] if first else axes[3])
        return activation(value) if activation is not None else value

    return te.compute(shape, finish, name=name)


def _pair(value: Pair) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _padded(X: te.Tensor, pad_y: int, pad_x: int, first: bool) -> te.Tensor:
    """`X` with zeros around it."""
    rows, columns = (2, 3) if first else (1, 2)
    shape = list(X.shape)
    shape[rows] = shape[rows] + 2 * pad_y
    shape[columns] = shape[columns] + 2 * pad_x

    def value(*axes: te.Expr) -> te.Expr:
        y, x = axes[rows] - pad_y, axes[columns] - pad_x
        place = [*axes]
        place[rows], place[columns] = y, x
        inside = te.all(y >= 0, y < X.shape[rows], x >= 0, x < X.shape[columns])
        return te.if_then_else(inside, X(*place), te.const(0, X.dtype))

    return te.compute(tuple(shape), value, name=f"{X.name}_padded")


@dataclass(frozen=True)
class Plan:
    """A tile of sums: `single` values by `vectors` vectors of `lanes`, and rows computed together.

    Attributes:
        single: outputs along the axis whose operand is read one value at a time.
        vectors: vectors along the other.
        lanes: values of a vector.
        rows: output rows whose input stays in the second cache.
    """

    single: int
    vectors: int
    lanes: int
    rows: int

    @property
    def wide(self) -> int:
        """Lanes of vectors of several registers, which are computed side by side."""
        return self.lanes * (self.vectors & -self.vectors)


def plan(total: te.Tensor, target: Target) -> Plan:
    """The tile that wastes least of itself at the edges, among those that fit the registers.

    Sums, vectors and one single value have to fit. At least 8 sums are needed: as many as two
    multipliers have under way.
    """
    core = core_of(target)
    lanes = core.lanes(total.dtype)
    first = total.op.attrs["layout"] == "NCHW"
    depthwise = bool(total.op.attrs["depthwise"])
    _, a, b, c = total.shape
    along = a if first and not depthwise else b
    across = c
    own = _channels_of_group(total)
    if own is not None and not first:
        # A vector of channels of several groups would gather its inputs.
        while own % lanes:
            lanes //= 2
    best, chosen = 0.0, (1, 1)
    for vectors in (4, 3, 2, 1):
        if vectors > 1 and isinstance(across, int) and across < vectors * lanes:
            # The only tile would be a part of one, with masks in its innermost loop.
            continue
        for single in range(1, (core.vector_registers - 1 - vectors) // vectors + 1):
            if own is not None and own % (single if first else vectors * lanes):
                continue
            used = _share(along, single) * _share(across, vectors * lanes)
            # Each step loads `single` values, and vectors that come from farther away: twice
            # their price. From some number of products a load on, the multipliers are the limit.
            work = single * vectors / (single + 2 * vectors)
            score = used * min(single * vectors / 8, 1.0) * min(work, 1.5)
            if score > best * 1.001:
                best, chosen = score, (single, vectors)
    single, vectors = chosen
    image = total.op.input_tensors[0]
    row_values = [n for n in image.shape[1:] if isinstance(n, int)]
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    height = total.shape[2 if first else 1]
    most = 4 if len(row_values) < 3 else max(
        second // 4 // (_row_bytes(image, first) or 1), 1
    )
    if isinstance(height, int):
        most = min(most, max(ceil_div(height, core.count), 1))
    return Plan(single, vectors, lanes, balanced(height, most))


def _channels_of_group(total: te.Tensor) -> int | None:
    """Output channels that see the same input channels; None where all do, or each its own."""
    groups = total.op.attrs["groups"]
    channels = total.shape[1 if total.op.attrs["layout"] == "NCHW" else 3]
    assert isinstance(groups, int)
    if groups == 1 or total.op.attrs["depthwise"] or not isinstance(channels, int):
        return None
    return channels // groups


def _share(extent: int | te.Expr, size: int) -> float:
    """How much of the tiles along an axis is inside it."""
    return extent / (ceil_div(extent, size) * size) if isinstance(extent, int) else 1.0


def _row_bytes(image: te.Tensor, first: bool) -> int:
    """Bytes of one row of an image, with all of its channels."""
    size = image.dtype.bytes
    for n in (image.shape[1], image.shape[3]) if first else image.shape[2:]:
        size *= n if isinstance(n, int) else 64
    return size


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`."""
    s = te.create_schedule(output)
    total = output if output.op.reduce_axis else s.tensor(f"{output.name}_sum")
    p = plan(total, target)
    image, weights = total.op.input_tensors
    if total is output:
        driver, sums = total, s.cache_write(total, "local")
    else:
        driver, sums = output, total
        s[total].set_scope("local")
    first = total.op.attrs["layout"] == "NCHW"
    depthwise = bool(total.op.attrs["depthwise"])
    block, tile = _walk(s, driver, p, first, depthwise)
    _fill_registers(s, sums, driver, tile, p, first, depthwise)
    if not depthwise:
        _pack_weights(s, weights, sums, p, first)
    width, lanes = _whole_width(total, p) if first and not depthwise else (0, p.lanes)
    if not image.op.input_tensors and width:
        image = s.cache_read(image, "global", [sums])
    if image.op.input_tensors or width:
        if width:
            s[image].transform_layout(lambda b, c, y, x: [b, c, y, x // width, x % width])
        padded = s[image]
        padded.compute_at(s[driver], block)
        _, lane = padded.split(padded.leaf_iter_vars[-1], factor=lanes)
        padded.vectorize(lane)
    return s


def _whole_width(total: te.Tensor, p: Plan) -> tuple[int, int]:
    """Columns of the pieces in which a row of the image has memory for whole tiles across.

    The last of two or more pieces reaches beyond the row, so no tile at its end is masked.

    Returns:
        The columns of a piece, and the lanes of vectors that fit into it; 0 columns where the
        tiles are whole anyway.
    """
    image, across = total.op.input_tensors[0], total.shape[3]
    width, tile = image.shape[3], p.vectors * p.lanes
    if not isinstance(across, int) or not isinstance(width, int) or across % tile == 0:
        return 0, p.lanes
    step = total.op.attrs["stride"]
    assert isinstance(step, int)
    needed = width + (ceil_div(across, tile) * tile - across) * step
    lanes = p.lanes
    while lanes:
        for piece in range(lanes, width, lanes):
            if ceil_div(width, piece) * piece >= needed:
                return piece, lanes
        lanes //= 2
    return 0, p.lanes


def _walk(
    s: te.Schedule, driver: te.Tensor, p: Plan, first: bool, depthwise: bool
) -> tuple[te.IterVar, te.IterVar]:
    """Loops over blocks of rows, tiles of channels, and tiles of pixels, and inside a tile.

    A tile of channels stays while all pixels of the block pass by, and so do its weights.

    Returns:
        The loop over blocks, and the innermost over tiles.
    """
    stage = s[driver]
    n, a, b, c = stage.op.axis
    y, x, channel = (b, c, a) if first else (a, b, c)
    block, y = stage.split(y, factor=p.rows)
    across = x if first else channel
    along = (channel if not depthwise else y) if first else x
    outer, across = stage.split(across, factor=p.vectors * p.lanes)
    vector, lane = stage.split(across, factor=p.wide)
    tile, single = stage.split(along, factor=p.single)
    if first and depthwise:
        order = [channel, tile, outer]
    elif first:
        order = [tile, y, outer]
    else:
        order = [outer, y, tile]
    stage.reorder(n, block, *order, single, vector, lane)
    shared = stage.fuse(n, block)
    stage.parallel(shared)
    _in_registers(stage, single, vector, lane)
    return shared, order[-1]


def _in_registers(
    stage: te.Stage, single: te.IterVar, vector: te.IterVar, lane: te.IterVar
) -> None:
    stage.unroll(single)
    stage.unroll(vector)
    stage.vectorize(lane)


def _fill_registers(
    s: te.Schedule,
    sums: te.Tensor,
    driver: te.Tensor,
    tile: te.IterVar,
    p: Plan,
    first: bool,
    depthwise: bool,
) -> None:
    """Each tap of each channel adds the product of single values and vectors to the tile."""
    stage = s[sums]
    stage.compute_at(s[driver], tile)
    n, a, b, c = stage.op.axis
    r, column, channel = stage.op.reduce_axis
    fixed, single = (a, b) if depthwise or not first else (b, a)
    vector, lane = stage.split(c, factor=p.wide)
    taps = [channel, r, column] if first else [r, column, channel]
    stage.reorder(n, fixed, *taps, single, vector, lane)
    if first or depthwise:
        # What is left inside would be less than a loop costs.
        stage.unroll(column)
    _in_registers(stage, single, vector, lane)


def _pack_weights(
    s: te.Schedule, weights: te.Tensor, sums: te.Tensor, p: Plan, first: bool
) -> None:
    """A copy of the filters in which a tile finds its values for each tap side by side."""
    packed = s.cache_read(weights, "global", [sums])
    if first:
        s[packed].transform_layout(
            lambda k, c, r, q: [k // p.single, c, r, q, k % p.single])
    else:
        width = p.vectors * p.lanes
        s[packed].transform_layout(lambda r, q, c, k: [k // width, r, q, c, k % width])
    s[packed].vectorize(s[packed].leaf_iter_vars[-1])
    s[packed].parallel(s[packed].leaf_iter_vars[0])
