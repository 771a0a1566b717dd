"""Products of matrices, of any transposition, in batches, with a bias and an activation.

The schedule is that of the BLAS libraries: both operands are packed into the order in which a tile
of registers walks through them; a block of rows stays in a cache while all columns pass.

Source:
    K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions
    on Mathematical Software 34(3), 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tecomp import Target, te
from tecomp.schedules import on_cores
from tecomp.schedules.contraction import CONVERTED, of_matrices, source
from tecomp.schedules.dots import add_dots, dot_types, lanes_of_dots, sum_in_vectors
from tecomp.schedules.elementwise import is_one, is_short
from tecomp.schedules.epilogue import finished
from tecomp.schedules.placement import placement_of
from tecomp.schedules.thin import stream
from tecomp.schedules.tiles import (
    RegisterTile,
    balanced,
    ceil_div,
    core_of,
    fill_registers,
    register_tile,
    round_up,
    used_share,
    walk_tiles,
)
from tecomp.schedules.types import wide_type

PACKED_ROWS_PAY = 32
"""Column tiles from which on packing the rows pays: each packed value is used once for each."""
TURNED_ROWS_PAY = 16
"""The same where rows lie across the memory, so that each step of the depth reads another line."""
DOTS_PAY = 4
"""Row tiles up to which products of rows are faster than a transposed copy of the columns."""
_LOAD = 0.1
"""What a load beside the products takes of the time of one."""
_UNDER_WAY = 8
"""Sums that are needed: as many as two multipliers have under way."""
_PAGE_BYTES = 4096
_LINE_BYTES = 64


def define(
    A: te.Tensor,
    B: te.Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: te.Tensor | None = None,
    activation: Callable[[te.Expr], te.Expr] | None = None,
    out_dtype: str | None = None,
    pairs: bool = True,
    name: str = "matmul",
) -> te.Tensor:
    """`activation(A @ B + bias)`.

    Args:
        A: shape (..., m, k), or (..., k, m) if transposed.
        B: shape (..., k, n), or (..., n, k) if transposed, with the same leading axes.
        transpose_a: whether the last two axes of A are exchanged.
        transpose_b: whether those of B are.
        bias: shape (n,), added to each row.
        activation: applied to each element at last.
        out_dtype: type of the result, in which products are added up; that of A if None. For
            narrow floats they are added up in float32, and the result is rounded once.
        pairs: whether a processor may multiply and add up several neighbours along the depth in
            one instruction, where it has one for the types; of floats the order of the sum changes.
        name: of the result.

    Returns:
        Shape (..., m, n).

    >>> A, B = te.placeholder((4, 8, 16), name="A"), te.placeholder((4, 16, 32), name="B")
    >>> define(A, B).shape
    (4, 8, 32)
    """
    *batch, m, depth = (*A.shape[:-2], A.shape[-1], A.shape[-2]) if transpose_a else A.shape
    n = B.shape[-2] if transpose_b else B.shape[-1]
    dtype = out_dtype or A.dtype
    wide = wide_type(dtype)
    if A is B:
        # Each operand is packed in its own way, so there have to be two.
        B = te.compute(B.shape, lambda *axes: A(*axes), name=f"{B.name}_again")
    A, B = _converted(A, wide), _converted(B, wide)
    k = te.reduce_axis((0, depth), name="k")

    def product(*axes: te.Expr) -> te.Expr:
        *outer, i, j = axes
        a = A(*outer, k, i) if transpose_a else A(*outer, i, k)
        b = B(*outer, j, k) if transpose_b else B(*outer, k, j)
        return te.sum(a * b, axis=k)

    shape = (*batch, m, n)
    order = {"transpose_a": transpose_a, "transpose_b": transpose_b, "pairs": pairs}
    if bias is None and activation is None and wide == dtype:
        return te.compute(shape, product, name=name, attrs=order)
    total = te.compute(shape, product, name=f"{name}_sum", attrs=order)
    result: te.Tensor = finished(total, dtype, bias, len(shape) - 1, activation, name)
    return result


def _converted(x: te.Tensor, dtype: str) -> te.Tensor:
    """`x` in the type of the sums: each value is converted once, while it is packed."""
    if x.dtype == dtype:
        return x
    return te.compute(
        x.shape, lambda *axes: te.cast(x(*axes), dtype), name=f"{x.name}_{dtype}", attrs=CONVERTED
    )


@dataclass(frozen=True)
class Plan:
    """How a product is cut into blocks.

    Attributes:
        tile: sums in registers.
        block_rows: rows whose packed values stay in a cache.
        depth: how much of the sum is formed at a time.
        is_split: whether that is less than all of it.
        column_parts: parts that the columns are cut into, where there are too few rows to share.
        pack_rows: whether A is packed.
        steps: steps of the depth that lie side by side in each packed row of A.
        pack_columns: whether B is packed; if not, its rows stream past the few rows of A.
    """

    tile: RegisterTile
    block_rows: int
    depth: int
    is_split: bool
    column_parts: int
    pack_rows: bool
    steps: int
    pack_columns: bool


def plan(total: te.Tensor, target: Target, each: int = 1) -> Plan:
    """The blocks for a product of any size, whose steps along the depth add up `each` terms.

    * The columns of a tile, for the whole depth, take an eighth of the second cache.
    * A block of packed rows takes three quarters of it, or an eighth of a core's share of the third
      if that is more: rows are walked in order, so that they come in time from there too, and all
      columns pass by from farther away once for each block.
    * Blocks are even, and each core has as many.
    """
    core = core_of(target)
    m, n = total.shape[-2:]
    pack_rows = each > 1 or _packed_rows_pay(total, target)
    tile = _tile(total, target, pack_rows)
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    width = total.dtype.bytes
    k = ceil_div(total.op.reduce_axis[0].extent, each)
    pays = _packed_columns_pay(total, target) * register_tile(target, total.dtype).rows
    is_shallow = is_short(total.op.reduce_axis[0], tile.lanes, 1)
    steps = 1 if total.op.attrs["transpose_a"] or is_shallow else tile.lanes
    depth = _depth(k, max(second // 8 // (tile.columns * width), 64), steps)
    share = core.cache_bytes[-1] // 8 // core.count if len(core.cache_bytes) > 2 else 0
    block_bytes = max(second * 3 // 4, share)
    most_rows = max(block_bytes // (depth * width) // tile.rows, 1) * tile.rows
    if isinstance(m, int):
        most_rows = min(most_rows, round_up(ceil_div(m, core.count), tile.rows))
    batched = len(total.shape) > 2
    sharers = 1 if batched else core.count
    block_rows = balanced(m, max(most_rows, tile.rows), tile.rows, share=sharers)
    blocks = ceil_div(m, block_rows) if isinstance(m, int) else core.count
    return Plan(
        tile=tile,
        block_rows=block_rows,
        depth=depth,
        is_split=not isinstance(k, int) or depth < k,
        column_parts=1 if batched or blocks >= core.count else core.count,
        pack_rows=pack_rows,
        steps=steps,
        pack_columns=not is_one(n) and (not isinstance(m, int) or m >= pays),
    )


def _packed_rows_pay(total: te.Tensor, target: Target) -> bool:
    """Whether the rows are used so often, or are converted, that a packed copy of them pays."""
    if total.op.input_tensors[0].op.attrs.get("is_converted"):
        return True
    n, tile = total.shape[-1], register_tile(target, total.dtype)
    tiles = TURNED_ROWS_PAY if total.op.attrs["transpose_a"] else PACKED_ROWS_PAY
    return not isinstance(n, int) or n >= tiles * tile.columns


def _tile(total: te.Tensor, target: Target, pack_rows: bool) -> RegisterTile:
    """The tile that wastes least of itself at the edge of the columns, of those that are fast."""
    m, n = total.shape[-2:]
    most = core_of(target).vector_registers if pack_rows else _rows_at_hand(total, target)
    best, chosen = 0.0, register_tile(target, total.dtype)
    for vectors in (2, 3, 1, 4):
        tile = register_tile(target, total.dtype, vectors)
        if isinstance(n, int) and tile.columns > round_up(n, tile.lanes):
            continue
        rows = _rows_of_a_tile(m, min(tile.rows, most))
        sums = rows * vectors
        used = _used_columns(n, tile) * min(sums / _UNDER_WAY, 1.0)
        score = used / (1 + _LOAD * (rows + vectors) / sums)
        if score > best * 1.02:
            best, chosen = score, RegisterTile(rows, tile.columns, tile.lanes)
    return chosen


def _used_columns(n: int | te.Expr, tile: RegisterTile) -> float:
    """How much of the vectors of the tiles is inside the result.

    Tiles at the edge are whole; but a result that is narrower than one is a single vector, which
    processors have in powers of two.
    """
    if not isinstance(n, int) or n >= tile.columns or n % tile.lanes == 0:
        size = min(n, tile.columns) if isinstance(n, int) else tile.columns
        used: float = used_share(n, size)
        return used
    return n / (1 << (n - 1).bit_length()) if n else 1.0


def _rows_at_hand(total: te.Tensor, target: Target) -> int:
    """How many rows of A, as it lies in memory, have a line each in the first cache.

    Lines a page apart share a set of it, and a set has a line of as many pages as the cache holds.
    """
    core, A = core_of(target), total.op.input_tensors[0]
    if total.op.attrs["transpose_a"]:
        return int(core.vector_registers)
    apart = A.shape[-1] * A.dtype.bytes if isinstance(A.shape[-1], int) else _PAGE_BYTES
    ways = max(core.cache_bytes[0] // _PAGE_BYTES, 1)
    sets = [i * apart % _PAGE_BYTES // _LINE_BYTES for i in range(core.vector_registers)]
    return next((i for i, place in enumerate(sets) if sets[:i].count(place) == ways), len(sets))


def _rows_of_a_tile(m: int | te.Expr, most: int) -> int:
    """The number, of those near `most`, with which tiles reach least beyond the last row.

    A few rows less leave the multipliers as busy.

    >>> _rows_of_a_tile(1024, 14), _rows_of_a_tile(1000, 14), _rows_of_a_tile(8, 14)
    (13, 13, 8)
    """
    if not isinstance(m, int):
        return most
    even: int = balanced(m, most)
    near: int = min(range(even, most * 5 // 6, -1), default=even, key=lambda n: round_up(m, n))
    return near


def _packed_columns_pay(total: te.Tensor, target: Target) -> int:
    """Row tiles from which on a packed copy of the columns pays.

    Where B is transposed, products of its rows need none. But their sums have to be turned, which
    has to be little beside them, and a few rows have to stay in the first cache.
    """
    k = total.op.reduce_axis[0].extent
    core, lanes = core_of(target), core_of(target).lanes(total.dtype)
    if not total.op.attrs["transpose_b"] or not isinstance(k, int) or k < 32 * lanes:
        return 1
    return DOTS_PAY if 2 * lanes * k * total.dtype.bytes <= core.cache_bytes[0] else 1


def _depth(k: int | te.Expr, about: int, unit: int) -> int:
    """Even parts of the depth of about that size: a second pass over the sums costs more."""
    part = max(ceil_div(k, max(round(k / about), 1)), 1) if isinstance(k, int) else about
    whole: int = round_up(part, unit)
    return whole


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`."""
    s = te.create_schedule(output)
    total = output if output.op.reduce_axis else s.tensor(f"{output.name}_sum")
    where = placement_of(target)
    if where is not None:
        done: te.Schedule = on_cores.schedule(output, of_matrices(total), where)
        return done
    types = _dot_types(total, target)
    p = plan(total, target, lanes_of_dots(types))
    if not p.pack_columns:
        stream(s, output, total, target)
        return s
    moved = None
    if types is not None:
        total, moved = add_dots(s, total, total.op.reduce_axis[0], types)
    driver, sums = _sums(s, output, total, p)
    block, depth, tile = _walk(s, driver, p)
    fill_registers(s, sums, driver, tile)
    rows, columns = total.op.input_tensors
    packed = _pack_columns(s, columns, sums, p)
    if moved is not None:
        # It needs all columns before the first block.
        sum_in_vectors(s, moved, p.tile.columns)
    elif len(output.shape) > 2:
        s[packed].compute_at(s[driver], block)
    if p.pack_rows:
        packed = _pack_rows(s, rows, sums, p)
        s[packed].compute_at(s[driver], block if depth is None else depth)
    if driver is not output:
        _finish(s, output, driver, p)
    return s


def _sums(
    s: te.Schedule, output: te.Tensor, total: te.Tensor, p: Plan
) -> tuple[te.Tensor, te.Tensor]:
    """The stage that the walk is that of, and the stage of the sums in registers."""
    if p.is_split:
        return total, _in_parts(s, total, p)
    if total is output:
        return total, s.cache_write(total, "local")
    s[total].set_scope("local")
    return output, total


def _pack_columns(s: te.Schedule, columns: te.Tensor, sums: te.Tensor, p: Plan) -> te.Tensor:
    """A copy of the columns in tiles."""
    is_turned = bool(sums.op.attrs["transpose_b"])
    packed = _pack(s, columns, sums, p.tile.columns, first=is_turned)
    if is_turned:
        _copy_turned(s, packed, p.tile.lanes)
    else:
        _copy_in_order(s, packed)
    return packed


def _pack_rows(s: te.Schedule, rows: te.Tensor, sums: te.Tensor, p: Plan) -> te.Tensor:
    """A copy of the rows in tiles."""
    if p.steps > 1:
        packed = _pack_runs(s, rows, sums, p)
    else:
        packed = _pack(s, rows, sums, p.tile.rows, first=not sums.op.attrs["transpose_a"])
    s[packed].vectorize(s[packed].leaf_iter_vars[-1])
    return packed


def _dot_types(total: te.Tensor, target: Target) -> tuple[str, str] | None:
    """Types of short vectors to multiply, if the product may and the machine does so."""
    if not total.op.attrs["pairs"]:
        return None
    a, b = (str(source(x).dtype) for x in total.op.input_tensors)
    types: tuple[str, str] | None = dot_types(a, b, str(total.dtype), target)
    return types


def _in_parts(s: te.Schedule, total: te.Tensor, p: Plan) -> te.Tensor:
    """Cut the sum: a part of the depth is added up in registers, and then to the result."""
    (k,) = s[total].op.reduce_axis
    outer, _ = s[total].split(k, factor=p.depth)
    sums = s.rfactor(total, outer)
    assert isinstance(sums, te.Tensor)
    s[sums].set_scope("local")
    return sums


def _walk(
    s: te.Schedule, driver: te.Tensor, p: Plan
) -> tuple[te.IterVar, te.IterVar | None, te.IterVar]:
    """Loops over blocks of rows, parts of the depth, column tiles, row tiles, and inside a tile.

    Returns:
        The loop over blocks, that over the depth if it is cut, and that over row tiles.
    """
    stage = s[driver]
    *batch, i, j = stage.op.axis
    depth = stage.op.reduce_axis
    block, i = stage.split(i, factor=p.block_rows)
    parts: list[te.IterVar] = []
    if p.column_parts > 1:
        part, j = stage.split(j, nparts=p.column_parts)
        parts = [part]
    tile, column, inside = walk_tiles(stage, i, j, p.tile)
    stage.reorder(*batch, *parts, block, *depth, column, tile, *inside)
    for axis in reversed([*batch, *parts]):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    return block, depth[0] if depth else None, tile


def _pack(
    s: te.Schedule, operand: te.Tensor, sums: te.Tensor, width: int, *, first: bool
) -> te.Tensor:
    """A copy of `operand` in which a tile finds `width` values of each step side by side.

    Args:
        s: the schedule.
        operand: the tensor; one that is computed is computed in that order at once.
        sums: the stage that reads it.
        width: rows or columns of a tile.
        first: whether those are the axis before the last, and the depth is the last.
    """
    packed = _copy_of(s, operand, sums)

    def place(*axes: te.Expr) -> list[te.Expr]:
        *outer, a, b = axes
        x, k = (a, b) if first else (b, a)
        return [*outer, x // width, k, x % width]

    s[packed].transform_layout(place)
    return packed


def _pack_runs(s: te.Schedule, rows: te.Tensor, sums: te.Tensor, p: Plan) -> te.Tensor:
    """A copy of `rows` in which a tile finds a vector of steps of each of its rows side by side.

    What lies along the depth is copied so in whole vectors, and each of its cache lines serves as
    many steps as in the order of the steps.
    """
    packed = _copy_of(s, rows, sums)
    width, steps = p.tile.rows, p.steps

    def place(*axes: te.Expr) -> list[te.Expr]:
        *outer, i, k = axes
        return [*outer, i // width, k // steps, i % width, k % steps]

    s[packed].transform_layout(place)
    s[sums].split(s[sums].op.reduce_axis[0], factor=steps)
    return packed


def _copy_of(s: te.Schedule, operand: te.Tensor, sums: te.Tensor) -> te.Tensor:
    """What is laid out for `sums`: an operand that is computed itself, else a copy."""
    is_computed = bool(operand.op.input_tensors)
    return operand if is_computed else s.cache_read(operand, "global", [sums])


def _copy_in_order(s: te.Schedule, packed: te.Tensor) -> None:
    """Copy a few steps of the depth at a time: their tiles lie side by side in both orders."""
    stage = s[packed]
    *outer, tile, k, lane = stage.leaf_iter_vars
    steps, k = stage.split(k, factor=8)
    stage.reorder(*outer, steps, tile, k, lane)
    stage.vectorize(lane)
    if not outer:
        stage.parallel(steps)


def _copy_turned(s: te.Schedule, packed: te.Tensor, lanes: int) -> None:
    """Copy a tile at a time, in squares: its steps follow each other in both orders."""
    stage = s[packed]
    *outer, tile, k, lane = stage.leaf_iter_vars
    vector, lane = stage.split(lane, factor=lanes)
    steps, k = stage.split(k, factor=lanes)
    stage.reorder(*outer, tile, steps, vector, k, lane)
    stage.unroll(k)
    stage.vectorize(lane)
    if not outer:
        stage.parallel(tile)


def _finish(s: te.Schedule, output: te.Tensor, total: te.Tensor, p: Plan) -> None:
    """Apply what follows the sum to a block of rows while it is in the cache."""
    stage = s[output]
    *batch, i, j = stage.op.axis
    block, i = stage.split(i, factor=p.block_rows)
    _, lane = stage.split(j, factor=p.tile.columns)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    stage.vectorize(lane)
    s[total].compute_at(stage, block)
