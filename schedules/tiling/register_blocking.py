"""Tile sizes that fit registers and caches, for GEMM and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tecomp import Core, Target, TargetError, te
from tecomp.schedules.analysis.convolution import Convolution
from tecomp.schedules.common import Size, ceil_div, product, round_up

_SPARE = 2
"""Vector registers that hold no sum and no column: the value of a row, and one on the way."""


def used_share(extent: Size, size: int) -> float:
    """How much of the tiles along an axis is inside it; all where that is not known.

    >>> used_share(48, 32), used_share(96, 32)
    (0.75, 1.0)
    """
    return extent / round_up(extent, size) if isinstance(extent, int) and extent else 1.0


def balanced(extent: Size, most: int, unit: int = 1, share: int = 1) -> int:
    """The size of even parts of at most `most`, which is a multiple of `unit`.

    Parts of 96, 96 and 1 take longer than three of 65; and of 3 parts one of 2 cores has 2.

    Args:
        extent: what is cut.
        most: the size of a part, as far as `unit` allows.
        unit: what a part is a multiple of.
        share: cores that parts are shared among: as many for each, where that makes no part
            smaller than `unit`.

    >>> balanced(193, 96), balanced(193, 96, unit=8), balanced(10, 96, unit=8)
    (65, 72, 16)
    >>> balanced(193, 96, share=2), balanced(3, 96, share=2), balanced(3, 1, share=2)
    (49, 2, 1)
    """
    if not isinstance(extent, int):
        return most
    parts = max(ceil_div(extent, most), 1)
    parts = min(round_up(parts, share), max(ceil_div(extent, unit), 1))
    size: int = round_up(max(ceil_div(extent, parts), 1), unit)
    return size


@dataclass(frozen=True)
class RegisterTile:
    """A tile of sums that stays in registers.

    Attributes:
        rows: values that are broadcast, one after the other.
        columns: values of the vectors that they are multiplied with.
        lanes: values in one vector.
    """

    rows: int
    columns: int
    lanes: int

    @property
    def vectors(self) -> int:
        """Vectors of a row."""
        return self.columns // self.lanes

    @property
    def wide(self) -> int:
        """Values of a vector of several registers, which are computed side by side."""
        return self.lanes * (self.vectors & -self.vectors)


def register_tile(target: Target, dtype: str, vectors: int = 2) -> RegisterTile:
    """The largest tile of outer products that is `vectors` vectors wide.

    Each row needs a register for each vector; the vectors themselves stay in registers as well.
    Two vectors load 2 + rows values for 2 * rows products, enough to keep two multipliers busy.
    """
    core = core_of(target)
    lanes = core.lanes(dtype)
    rows = (core.vector_registers - vectors - _SPARE) // vectors
    return RegisterTile(max(rows, 1), vectors * lanes, lanes)


def walk_tiles(
    stage: te.Stage, row: te.IterVar, column: te.IterVar, tile: RegisterTile
) -> tuple[te.IterVar, te.IterVar, list[te.IterVar]]:
    """Cut rows and columns into tiles; a row of a tile is one vector, of several registers.

    What follows the sums is then computed for these registers side by side, so that one does not
    wait for the other.

    Returns:
        The loops over tiles of rows and of columns, and those inside a tile, which go innermost.
    """
    rows, i = stage.split(row, factor=tile.rows)
    columns, j = stage.split(column, factor=tile.columns)
    return rows, columns, keep_tile(stage, i, j, tile)


def keep_tile(
    stage: te.Stage, row: te.IterVar, column: te.IterVar, tile: RegisterTile | None = None
) -> list[te.IterVar]:
    """Keep a tile in registers: values of rows one by one, those of columns as vectors.

    Args:
        stage: the stage.
        row: its loop over the rows of a tile.
        column: its loop over the columns of a tile.
        tile: the tile, if a row of it may be several vectors; None if it is one.

    Returns:
        The loops, which go innermost.
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
    s: te.Schedule, sums: te.Tensor, driver: te.Tensor, place: te.IterVar
) -> None:
    """Each step of the depth adds the product of one column and one row to the tile at `place`."""
    stage = s[sums]
    stage.compute_at(s[driver], place)
    *outer, i, j = stage.op.axis
    stage.reorder(*outer, *stage.op.reduce_axis, *keep_tile(stage, i, j))


def transpose_squares(stage: te.Stage, row: te.IterVar, column: te.IterVar, lanes: int) -> None:
    """Walk in squares of vectors: what lies in columns is read so, and transposed in registers."""
    rows, row = stage.split(row, factor=lanes)
    columns, lane = stage.split(column, factor=lanes)
    stage.reorder(rows, columns, row, lane)
    stage.unroll(row)
    stage.vectorize(lane)


def width_of(x: te.Tensor) -> int:
    """Bytes of the largest of the types that a stage makes."""
    return max(int(y.dtype.bytes) for y in x.op.outputs)


def lanes_of(x: te.Tensor, along: te.IterVar, target: Target) -> int:
    """Lanes of a vector of elements of `x`: a power of two, no more than there are values."""
    lanes = max(core_of(target).vector_bytes // width_of(x), 1)
    while isinstance(along.extent, int) and lanes > max(along.extent, 1):
        lanes //= 2
    return lanes


def elements_at_hand(x: te.Tensor, target: Target) -> int:
    """How many elements of `x` leave room in the first cache for what else is in use."""
    return max(core_of(target).cache_bytes[0] // 4 // width_of(x), 1)


def core_of(target: Target) -> Core:
    """What a core of the target computes with.

    Raises:
        TargetError: its description does not say.
    """
    if target.core is None:
        raise TargetError(
            f"target {target.name} has no table [core], by which these schedules pick their tiles; "
            "describe its vectors and caches there",
            kind="target-lacks",
        )
    return target.core


_ROWS = 4
"""Rows of a block where it is open how long they are."""
_LOAD = 0.5
"""What a load beside the products takes of the time of one."""


@dataclass(frozen=True)
class Plan:
    """How a convolution is cut into blocks.

    Attributes:
        tile: sums in registers; its rows are outputs along the axis whose operand is read one value
            at a time, its columns those along the other.
        rows: output rows whose input stays in the second cache.
    """

    tile: RegisterTile
    rows: int


def plan(d: Convolution, target: Target) -> Plan:
    """The tile that wastes least of itself at the edges, among those that fit the registers.

    Sums, vectors and one single value have to fit. At least 8 sums are needed: as many as two
    multipliers have under way. Depthwise, both operands are vectors, and those of the image stay
    for several taps: sums get half of the registers.
    """
    core, total, depthwise = core_of(target), d.total, d.depthwise
    lanes = core.lanes(total.dtype)
    _, a, b, c = total.shape
    transposed = d.first and not depthwise
    along, across = (c, a) if transposed else (b, c)
    own = _channels_of_group(d)
    if own is not None:
        # A vector of channels of several groups would gather its inputs.
        while own % lanes:
            lanes //= 2
    best, chosen = 0.0, (1, 1)
    for vectors in (4, 3, 2, 1):
        if vectors > 1 and isinstance(across, int) and across < vectors * lanes:
            # The only tile would be a part of one, with masks in its innermost loop.
            continue
        room = core.vector_registers // 2 if depthwise else core.vector_registers - 1 - vectors
        for single in range(1, max(room // vectors, 1) + 1):
            if own is not None and own % (vectors * lanes):
                continue
            used = used_share(along, single) * used_share(across, vectors * lanes)
            # Each step loads `single` values, and vectors that come from farther away: twice
            # their price. The products hide a part of that.
            work = single * vectors / (single + 2 * vectors)
            score = used * min(single * vectors / 8, 1.0) / (1 + _LOAD / work)
            if score > best * 1.001:
                best, chosen = score, (single, vectors)
    single, vectors = chosen
    rows = _rows(d, target, transposed)
    return Plan(RegisterTile(single, vectors * lanes, lanes), rows)


def _rows(d: Convolution, target: Target, transposed: bool) -> int:
    """Output rows whose input stays in the second cache, in as many blocks for each core.

    Images that are transposed are there twice. Of those that are not, a block has one channel, if
    that comes first; then there are blocks enough.
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
    most = max(core.second_cache // 4 // (row_bytes or 1), 1) if is_known else _ROWS
    is_even = isinstance(blocks, int) and blocks % core.count == 0
    if isinstance(height, int) and not is_even:
        most = min(most, max(ceil_div(height, core.count), 1))
    rows: int = balanced(height, most, share=1 if is_even else core.count)
    return rows


def _channels_of_group(d: Convolution) -> int | None:
    """Output channels that see the same input channels; None where all do, or each its own."""
    *_, channel = d.axes_of(d.total)
    if d.groups == 1 or d.depthwise or not isinstance(channel.extent, int):
        return None
    return int(channel.extent // d.groups)


def _bytes(x: te.Tensor, axes: Sequence[int]) -> int:
    """Bytes along some axes."""
    sizes = [x.shape[k] for k in axes]
    return x.dtype.bytes * prod(n if isinstance(n, int) else 64 for n in sizes)
