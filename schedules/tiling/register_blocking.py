"""Tile sizes that fit registers and caches, for GEMM and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tecomp import Core, Target, TargetError, knob, te
from tecomp.schedules.analysis.convolution import Convolution
from tecomp.schedules.common import Size, ceil_div, is_one, product, round_up, values_around

OPEN_EXTENT = 64
"""Assumed extent of an axis whose extent is symbolic."""
_RESERVED_REGISTERS = 2
"""Vector registers for neither accumulators nor columns: a broadcast value and a temporary."""


def utilization(extent: Size, size: int) -> float:
    """Return the fraction of the tiles along an axis that is inside the axis; 1.0 if symbolic.

    >>> utilization(48, 32), utilization(96, 32)
    (0.75, 1.0)
    """
    return extent / round_up(extent, size) if isinstance(extent, int) and extent else 1.0


def balanced_block_size(extent: Size, max_size: int, unit: int = 1, share: int = 1) -> int:
    """Return the size of even parts of at most `max_size` elements, a multiple of `unit`.

    Even parts balance the load: parts of 96, 96 and 1 take longer than three parts of 65, and of 3
    parts on 2 cores one core gets 2.

    Args:
        extent: Extent that is split.
        max_size: Maximum size of a part, as far as `unit` allows.
        unit: Number of which the size is a multiple. Default: 1.
        share: Number of cores. The number of parts is a multiple of it, unless parts would be
            smaller than `unit`. Default: 1.

    >>> balanced_block_size(193, 96), balanced_block_size(193, 96, unit=8)
    (65, 72)
    >>> balanced_block_size(10, 96, unit=8)
    16
    >>> [balanced_block_size(n, block, share=2) for n, block in ((193, 96), (3, 96), (3, 1))]
    [49, 2, 1]
    """
    if not isinstance(extent, int):
        return max_size
    parts = max(ceil_div(extent, max_size), 1)
    parts = min(round_up(parts, share), max(ceil_div(extent, unit), 1))
    size: int = round_up(max(ceil_div(extent, parts), 1), unit)
    return size


@dataclass(frozen=True)
class RegisterTile:
    """Tile of accumulators that stays in registers.

    Attributes:
        rows: Number of values that are broadcast one after the other.
        columns: Number of values in the vectors that they are multiplied with.
        lanes: Lanes of one vector.
    """

    rows: int
    columns: int
    lanes: int

    @property
    def vectors(self) -> int:
        """Number of vectors per row."""
        return self.columns // self.lanes

    @property
    def wide(self) -> int:
        """Lanes of the widest power-of-two group of registers that divides a row."""
        return self.lanes * (self.vectors & -self.vectors)


def register_tile(target: Target, dtype: str, vectors: int = 2) -> RegisterTile:
    """Return the largest tile of outer products that is `vectors` vectors wide.

    Each row needs one register per vector, and the column vectors stay in registers as well. With
    two vectors, a step loads 2 + rows values for 2 * rows products, which keeps two multipliers
    busy.
    """
    core = core_of(target)
    lanes = core.lanes(dtype)
    rows = (core.vector_registers - vectors - _RESERVED_REGISTERS) // vectors
    return RegisterTile(max(rows, 1), vectors * lanes, lanes)


def walk_tiles(
    stage: te.Stage, row: te.IterVar, column: te.IterVar, tile: RegisterTile
) -> tuple[te.IterVar, te.IterVar, list[te.IterVar]]:
    """Split rows and columns into tiles; a row of a tile is one vector of several registers.

    The epilogue of the sums is then computed for these registers together, so that its operations
    are independent.

    Returns:
        The loops over row tiles and over column tiles, and the loops inside a tile, which belong
        innermost.
    """
    rows, i = stage.split(row, factor=tile.rows)
    columns, j = stage.split(column, factor=tile.columns)
    return rows, columns, keep_tile(stage, i, j, tile)


def keep_tile(
    stage: te.Stage, row: te.IterVar, column: te.IterVar, tile: RegisterTile | None = None
) -> list[te.IterVar]:
    """Keep a tile in registers: unroll its rows and vectorize its columns.

    Args:
        stage: Stage.
        row: Loop over the rows of a tile.
        column: Loop over the columns of a tile.
        tile: Tile, if a row of it may be split into several vectors; None if a row is one vector.

    Returns:
        The loops inside the tile, which belong innermost.
    """
    inside = [row]
    if tile is not None and tile.wide < tile.columns:
        vector, column = stage.split(column, factor=tile.wide)
        inside.append(vector)
    for axis in inside:
        stage.unroll(axis)
    stage.vectorize(column)
    return [*inside, column]


def fill_registers(
    s: te.Schedule, sums: te.Tensor, driver: te.Tensor, loop: te.IterVar
) -> None:
    """Compute `sums` at `loop`; each step of the depth adds an outer product to the tile."""
    stage = s[sums]
    stage.compute_at(s[driver], loop)
    *outer, i, j = stage.op.axis
    stage.reorder(*outer, *stage.op.reduce_axis, *keep_tile(stage, i, j))


def transpose_squares(stage: te.Stage, row: te.IterVar, column: te.IterVar, lanes: int) -> None:
    """Tile two loops into squares of vectors, which are transposed in registers."""
    rows, row = stage.split(row, factor=lanes)
    columns, lane = stage.split(column, factor=lanes)
    stage.reorder(rows, columns, row, lane)
    stage.unroll(row)
    stage.vectorize(lane)


def width_of(x: te.Tensor) -> int:
    """Return the bytes of the widest dtype among the outputs of a stage."""
    return max([int(y.dtype.bytes) for y in x.op.outputs])


def lanes_of(x: te.Tensor, axis: te.IterVar, target: Target) -> int:
    """Return the lanes of a vector of `x`: a power of two that is at most the extent."""
    lanes = max(core_of(target).vector_bytes // width_of(x), 1)
    while isinstance(axis.extent, int) and lanes > max(axis.extent, 1):
        lanes //= 2
    return lanes


def elements_fitting_l1(x: te.Tensor, target: Target) -> int:
    """Return the elements of `x` that fill a quarter of the first-level cache."""
    return max(core_of(target).cache_bytes[0] // 4 // width_of(x), 1)


def core_of(target: Target) -> Core:
    """Return the description of a core of the target.

    Raises:
        TargetError: If the target has no table [core].
    """
    if target.core is None:
        raise TargetError(
            "target {target} has no table [core], which these schedules require to select tiles; "
            "describe the vectors and caches there",
            kind="unsupported-by-target", target=target.name,
        )
    return target.core


_ROWS = 4
"""Rows of a block if the extents of the image are symbolic."""
_MAX_TILES = 8
"""Number of register tiles that the knob of a convolution offers, by their modelled cost."""
_LOAD = 0.5
"""Cost of a load relative to a multiplication that it overlaps."""


@dataclass(frozen=True)
class ConvBlocking:
    """Register tile and block size of a convolution.

    Attributes:
        tile: Register tile of accumulators. Its rows are outputs along the axis whose operand is
            broadcast, its columns are outputs along the other axis.
        rows: Output rows of a block, whose input stays in the second-level cache.
        depth: Channels of the image that are summed in registers, after which the sums of the tiles
            of a block are stored; their filters stay in the first-level cache. None if a tile sums
            all channels at once.
        channels: Output channels of a block if blocks of channels share the cores, so that each
            core reads only its filters; None if blocks of rows do.
    """

    tile: RegisterTile
    rows: int
    depth: int | None = None
    channels: int | None = None


def plan(d: Convolution, target: Target) -> ConvBlocking:
    """Choose the tile that wastes the least work at the edges and fits the registers.

    Accumulators, vectors, a broadcast value and a temporary must fit. At least 8 accumulators are
    needed to hide the latency of two multipliers. In a depthwise convolution both operands are
    vectors, and the vectors of the image are reused for several taps, so accumulators get half of
    the registers.
    """
    core, total, depthwise = core_of(target), d.total, d.depthwise
    lanes = core.lanes(total.dtype)
    _, a, b, c = total.shape
    transposed = d.first and not depthwise
    row_extent, column_extent = (c, a) if transposed else (b, c)
    group_channels = _channels_of_group(d)
    if group_channels is not None:
        # A vector that spans channel groups would gather its inputs.
        while group_channels % lanes:
            lanes //= 2
    scores: dict[tuple[int, int], float] = {}
    best, chosen = 0.0, (1, 1)
    for vectors in (4, 3, 2, 1):
        if vectors > 1 and isinstance(column_extent, int) and column_extent < vectors * lanes:
            # The only tile would be partial and need masks in its innermost loop.
            continue
        free = core.vector_registers - _RESERVED_REGISTERS - vectors
        registers = core.vector_registers // 2 if depthwise else free
        for single in range(1, max(registers // vectors, 1) + 1):
            if group_channels is not None and group_channels % (vectors * lanes):
                continue
            usage = utilization(row_extent, single) * utilization(column_extent, vectors * lanes)
            # Each step loads `single` values and `vectors` vectors. The vectors come from more
            # distant memory, so they cost twice as much. The products hide a part of the cost.
            work = single * vectors / (single + 2 * vectors)
            score = usage * min(single * vectors / 8, 1.0) / (1 + _LOAD / work)
            scores[single, vectors] = score
            if score > best * 1.001:
                best, chosen = score, (single, vectors)
    tiles = sorted(scores, key=lambda tile: -scores[tile])[:_MAX_TILES]
    names = [f"{single}x{vectors}" for single, vectors in dict.fromkeys((chosen, *tiles))]
    single, vectors = map(int, knob("tile", names).split("x"))
    tile = RegisterTile(single, vectors * lanes, lanes)
    depth = _depth(d, target, tile) if transposed else None
    if transposed and _are_filters_large(d, target):
        share = round_up(ceil_div(a, core.count), tile.columns)
        return ConvBlocking(tile, b, depth, share)
    rows = _rows(d, target, transposed)
    height = total.shape[2 if d.first else 1]
    rows = knob("block_rows", values_around(rows, 1, height if isinstance(height, int) else None))
    return ConvBlocking(tile, rows, depth)


def _are_filters_large(d: Convolution, target: Target) -> bool:
    """Return whether one image fits half of the second-level cache, and the filters do not.

    Blocks of rows would read all filters once for each block.
    """
    images, *extents = d.total.shape
    sizes = [*d.image.shape, *d.weights.shape, *extents]
    if not is_one(images) or d.groups > 1 or not all(isinstance(n, int) for n in sizes):
        return False
    used = _bytes(d.image, [1, 2, 3]) + _bytes(d.total, [1, 2, 3])
    cache = core_of(target).second_cache
    return used <= cache // 2 and _bytes(d.weights, [0, 1, 2, 3]) > cache


def _depth(d: Convolution, target: Target, tile: RegisterTile) -> int | None:
    """Return the channels whose filters for a column of tiles fill half of the first-level cache.

    None if all channels fit, or if no multiple of the lanes divides the channels.
    """
    r, s, channel = (axis.extent for axis in d.taps_of(d.total))
    if not all(isinstance(n, int) for n in (r, s, channel)) or d.groups > 1:
        return None
    channel_bytes = r * s * tile.columns * d.total.dtype.bytes
    most = core_of(target).cache_bytes[0] // 2 // channel_bytes
    fitting = [n for n in range(tile.lanes, 2 * most + 1, tile.lanes) if channel % n == 0]
    default = max((n for n in fitting if n <= most), default=None)
    if channel <= most or default is None:
        return None
    depth: int = knob("channel_block", [default, *(n for n in fitting if n != default)])
    return depth


def _rows(d: Convolution, target: Target, transposed: bool) -> int:
    """Return the output rows of a block, whose input fits the L2 cache, balanced over the cores.

    Images that are transposed are stored twice. NCHW images that are not transposed have blocks of
    one channel, which gives enough blocks.
    """
    core, total, image, first = core_of(target), d.total, d.image, d.first
    images, height = total.shape[0], total.shape[2 if first else 1]
    if first and not transposed:
        row_bytes, blocks = _bytes(image, [3]), product(total.shape[:2])
    elif first:
        row_bytes, blocks = _bytes(image, [1, 3]) + _bytes(total, [1, 3]), images
    else:
        row_bytes, blocks = _bytes(image, [2, 3]), images
    is_known = all(isinstance(extent, int) for extent in image.shape[1:])
    max_rows = max(core.second_cache // 4 // (row_bytes or 1), 1) if is_known else _ROWS
    is_even = isinstance(blocks, int) and blocks % core.count == 0
    if isinstance(height, int) and not is_even:
        max_rows = min(max_rows, max(ceil_div(height, core.count), 1))
    rows: int = balanced_block_size(height, max_rows, share=1 if is_even else core.count)
    return rows


def _channels_of_group(d: Convolution) -> int | None:
    """Return the output channels per group; None without groups or if depthwise."""
    *_, channel = d.axes_of(d.total)
    if d.groups == 1 or d.depthwise or not isinstance(channel.extent, int):
        return None
    return int(channel.extent // d.groups)


def _bytes(x: te.Tensor, axes: Sequence[int]) -> int:
    """Return the bytes of a slice of `x` along axes; symbolic extents are `OPEN_EXTENT`."""
    sizes = [x.shape[k] for k in axes]
    return x.dtype.bytes * prod(n if isinstance(n, int) else OPEN_EXTENT for n in sizes)
