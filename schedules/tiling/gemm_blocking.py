"""Choose GEMM block sizes for registers, caches and cores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tecomp import Target, knob, te
from tecomp.schedules.analysis.matmul import Product
from tecomp.schedules.analysis.stages import is_computed
from tecomp.schedules.common import ceil_div, is_one, product, round_up, values_around
from tecomp.schedules.tiling.register_blocking import (
    OPEN_EXTENT,
    RegisterTile,
    balanced_block_size,
    core_of,
    register_tile,
    utilization,
)
from tecomp.schedules.tiling.traversal import is_short

MIN_COLUMN_TILES_TO_PACK = 32
"""Minimum column tiles for which packing rows pays; each tile uses every value once."""
MIN_COLUMN_TILES_TO_TRANSPOSE = 16
"""Minimum column tiles for which packing pays if the rows are transposed.

Each step of the depth then reads a different cache line.
"""
MAX_ROW_TILES_FOR_DOTS = 4
"""Maximum row tiles for which dot products of rows beat a transposed copy of the columns."""
STREAMED_ROWS = 4
"""Maximum number of rows for which streaming the columns takes longer than multiplying."""
READ_TILES = 4
"""Maximum row tiles for which reading the columns unpacked is faster than packing them."""
_LOAD = 0.1
"""Cost of a load relative to a multiplication that it overlaps."""
_MIN_ACCUMULATORS = 8
"""Independent accumulators needed to hide the latency of two multipliers."""
OPEN_TILES = 8
"""Column tiles of a part if the number of columns is symbolic."""
_OPEN_ROW_TILES = 2
"""Row tiles of a block if the number of rows is symbolic, so that few rows use several cores too.

On one core, blocks of 28 rows take as long as blocks of 504, for 67 to 1031 rows and columns.
"""
_OPEN_BLOCK_VECTORS = 1 << 15
"""Vector products of a block with unpacked rows if the number of rows is symbolic.

A block then takes about 10 microseconds, a few times the cost of waking a thread.
"""
_OPEN_ROWS = 16
"""Maximum rows of a tile if the number of rows is symbolic.

Up to that many, a partial tile is unrolled row by row under conditions
(`lowering/vectorize/unroll.py`), so that accumulators stay in registers.
"""
_MIN_BALANCE_GAIN = 1.03
"""Minimum ratio by which a smaller tile must reduce the rows of the most loaded core."""


@dataclass(frozen=True)
class GemmBlocking:
    """Block sizes and packing decisions of a matrix product.

    Attributes:
        tile: Register tile of accumulators.
        block_rows: Rows whose packed values stay in a cache.
        depth: Extent of a block of the depth, which is accumulated in registers.
        is_split: Whether `depth` is less than the full depth.
        part_columns: Columns per core if there are too few blocks of rows for all cores; None if
            the columns are not split.
        pack_rows: Whether the left operand is packed.
        steps: Steps of the depth that are contiguous in each packed row of the left operand.
        pack_columns: Whether the right operand is packed.
        read_columns: Whether tiles read the right operand unpacked. If it is neither packed nor
            read by tiles, its rows are streamed past the few rows of the left operand.
    """

    tile: RegisterTile
    block_rows: int
    depth: int
    is_split: bool
    part_columns: int | None
    pack_rows: bool
    steps: int
    pack_columns: bool
    read_columns: bool = False


def plan_blocks(
    d: Product, target: Target, step_terms: int, constants: Collection[te.Tensor] = ()
) -> GemmBlocking:
    """Choose the blocks of a product whose steps add `step_terms` terms; see `matmul.plan`.

    Args:
        d: Description of the product.
        target: Target.
        step_terms: Terms that a step adds.
        constants: Arguments that are equal in every call; packing them costs no time in a call.
    """
    core, dtype = core_of(target), d.total.dtype
    m, n = d.m, d.n
    is_prepared = d.rows.tensor in constants
    pack_rows = step_terms > 1 or is_prepared or is_computed(d.rows.tensor)
    if not pack_rows:
        pays_to_pack = _packed_rows_pay(d, target)
        pack_rows = knob("pack_rows", [pays_to_pack, not pays_to_pack])
    tile = _tile(d, target, pack_rows)
    k, inner = d.depth[0].extent, product(axis.extent for axis in d.depth[1:])
    if len(d.depth) == 1:
        k = ceil_div(k, step_terms)
    width = dtype.bytes * (inner if isinstance(inner, int) else 1)
    pays = _packed_columns_pay(d, target) * register_tile(target, dtype).rows
    is_shallow = is_short(d.depth[-1], tile.lanes, 1)
    steps = tile.lanes if d.rows.ends_in(d.depth[-1]) and not is_shallow else 1
    min_steps = 64 if is_one(inner) else 1
    approx = max(core.second_cache // 8 // (tile.columns * max(width, 1)), min_steps)
    depth = _depth(k, approx, steps if is_one(inner) else 1)
    depth = knob("depth", _depths(k, depth, steps if is_one(inner) else 1))
    block_bytes = core.second_cache * 3 // 4
    are_columns_near = isinstance(n, int) and n * depth * width <= core.second_cache
    if len(core.cache_bytes) > 2 and not are_columns_near:
        # All columns are read from a more distant memory for each block.
        block_bytes = max(block_bytes, core.cache_bytes[-1] // 8 // core.count)
    most_rows = max(block_bytes // max(depth * width, 1) // tile.rows, 1) * tile.rows
    batched = bool(d.outer)
    if isinstance(m, int):
        most_rows = min(most_rows, round_up(ceil_div(m, core.count), tile.rows))
    elif not batched:
        most_rows = min(most_rows, _open_row_tiles(d, tile, pack_rows) * tile.rows)
    sharers = 1 if batched else core.count
    block_rows = balanced_block_size(m, max(most_rows, tile.rows), tile.rows, share=sharers)
    block_rows = knob("block_rows", values_around(block_rows, tile.rows, _maximum(m, tile.rows)))
    blocks = ceil_div(m, block_rows) if isinstance(m, int) else core.count
    is_few = isinstance(m, int) and m < pays
    read_columns = (
        step_terms == 1 and d.columns.tensor not in constants
        and _are_read(d, tile, target, is_few=is_few)
    )
    columns = "read" if read_columns else "stream" if is_one(n) or is_few else "pack"
    columns = knob("columns", _ways_of_columns(d, columns, step_terms))
    return GemmBlocking(
        tile=tile,
        block_rows=block_rows,
        depth=depth,
        is_split=not isinstance(k, int) or depth < k,
        part_columns=None if batched or blocks >= core.count else _part(d.n, core.count, tile),
        pack_rows=pack_rows,
        steps=steps,
        pack_columns=columns == "pack",
        read_columns=columns == "read",
    )


def _maximum(extent: int | te.Expr, unit: int) -> int | None:
    """Return the largest block of an axis in units; None if its extent is symbolic."""
    return int(round_up(extent, unit)) if isinstance(extent, int) else None


def _depths(k: int | te.Expr, depth: int, unit: int) -> list[int]:
    """Return blocks of the depth: the block that was chosen, the full depth, and others."""
    if not isinstance(k, int):
        return [depth]
    full = int(round_up(k, unit))
    return [*dict.fromkeys([*values_around(depth, unit, full), full])]


def _ways_of_columns(d: Product, usual: str, step_terms: int) -> list[str]:
    """Return how tiles may get the columns: from a packed copy, unpacked, or as a stream."""
    others = []
    if not is_one(d.n):
        others.append("pack")
        is_plain = not is_computed(d.columns.tensor) and not d.column_batch_axes
        if step_terms == 1 and is_plain and d.columns.ends_in(d.column):
            others.append("read")
    if isinstance(d.m, int) and d.m <= 2 * STREAMED_ROWS:
        others.append("stream")
    return [*dict.fromkeys([usual, *others])]


def _open_row_tiles(d: Product, tile: RegisterTile, pack_rows: bool) -> int:
    """Return the row tiles of a block if the number of rows is symbolic.

    A symbolic depth of transposed rows, as in `x.T @ y`, is assumed to be long and the rows to be
    few: a larger block would keep all of them on one core.
    """
    extents = [axis.extent for axis in d.depth]
    is_open_depth = not all(isinstance(n, int) for n in extents)
    if pack_rows or not isinstance(d.n, int) or (is_open_depth and d.rows.ends_in(d.row)):
        return _OPEN_ROW_TILES
    terms = product(n if isinstance(n, int) else OPEN_EXTENT for n in extents)
    vectors: int = tile.rows * tile.vectors * ceil_div(d.n, tile.columns) * terms
    return max(_OPEN_BLOCK_VECTORS // max(vectors, 1), _OPEN_ROW_TILES)


def _are_read(d: Product, tile: RegisterTile, target: Target, *, is_few: bool) -> bool:
    """Return whether tiles read the columns unpacked because the columns stay in a cache.

    Copying the columns is cheap only relative to many rows. If there are so few rows that the
    columns would be streamed, columns that exceed the cache might come from memory, where
    sequential reads are faster. With more rows, a tile at the edge must not need a mask for each
    value.
    """
    core, m, n, columns = core_of(target), d.m, d.n, d.columns.tensor
    column_extents = (axis.extent for axis in d.columns.axes if not any(axis is b for b in d.batch))
    size = product((*column_extents, columns.dtype.bytes))
    if is_computed(columns) or d.column_batch_axes or not d.columns.ends_in(d.column):
        return False
    if not isinstance(size, int) or not isinstance(n, int) or is_one(n) or is_one(m):
        return False
    if is_few and isinstance(m, int) and m > STREAMED_ROWS and size <= core.second_cache // 8:
        return True
    if _used_columns(n, tile) < 1.0:
        return False
    is_moderate = not is_few and isinstance(m, int) and m <= READ_TILES * tile.rows
    return bool(2 * size <= core.cache_bytes[0] or (is_moderate and size <= core.second_cache))


def _part(n: int | te.Expr, cores: int, tile: RegisterTile) -> int:
    """Return the columns of one core, in full tiles; a partial tile would be computed under masks.

    If the number of columns is symbolic, a part has a fixed number of them: integer sets cannot
    represent a product of sizes, and thus no part whose size depends on them.
    """
    columns = max(ceil_div(n, cores), 1) if isinstance(n, int) else OPEN_TILES * tile.columns
    return int(round_up(columns, tile.columns))


def _packed_rows_pay(d: Product, target: Target) -> bool:
    """Return whether the rows are reused often enough for a packed copy to pay."""
    n, tile = d.n, register_tile(target, d.total.dtype)
    if d.column_batch_axes:
        n = product((n, *(axis.extent for axis in d.column_batch_axes)))
    tiles = MIN_COLUMN_TILES_TO_TRANSPOSE if d.rows.ends_in(d.row) else MIN_COLUMN_TILES_TO_PACK
    return not isinstance(n, int) or n >= tiles * tile.columns


def _tile(d: Product, target: Target, pack_rows: bool) -> RegisterTile:
    """Return the fast register tile that wastes the least work at the edge of the columns."""
    m, n, dtype = d.m, d.n, d.total.dtype
    sharers = 1 if d.outer else core_of(target).count
    max_rows = core_of(target).vector_registers if pack_rows else _rows_at_hand(d, target)
    best, chosen = 0.0, register_tile(target, dtype)
    for vectors in (2, 3, 1, 4):
        tile = register_tile(target, dtype, vectors)
        if isinstance(n, int) and tile.columns > round_up(n, tile.lanes):
            continue
        rows = _rows_of_a_tile(m, min(tile.rows, max_rows), sharers)
        sums = rows * vectors
        usage = _used_columns(n, tile) * min(sums / _MIN_ACCUMULATORS, 1.0)
        score = usage / (1 + _LOAD * (rows + vectors) / sums)
        if score > best * 1.02:
            best, chosen = score, RegisterTile(rows, tile.columns, tile.lanes)
    vectors = knob("tile_vectors", [chosen.vectors, *_other(chosen.vectors, (1, 2, 3, 4))])
    if vectors != chosen.vectors:
        tile = register_tile(target, dtype, vectors)
        rows = _rows_of_a_tile(m, min(tile.rows, max_rows), sharers)
        chosen = RegisterTile(rows, tile.columns, tile.lanes)
    shorter = {max(chosen.rows - 1, 1), max(chosen.rows * 3 // 4, 1), max(chosen.rows // 2, 1)}
    most = min(register_tile(target, dtype, vectors).rows, max_rows)
    rows = knob("tile_rows", [chosen.rows, *_other(chosen.rows, (*sorted(shorter), most))])
    return RegisterTile(rows, chosen.columns, chosen.lanes)


def _other(chosen: int, values: Sequence[int]) -> list[int]:
    """Return the values of a knob besides the one that was chosen."""
    return [value for value in dict.fromkeys(values) if value != chosen]


def _used_columns(n: int | te.Expr, tile: RegisterTile) -> float:
    """Return the fraction of the tile vectors that is inside the result.

    Tiles at the edge are full. A result that is narrower than one tile is a single vector, whose
    lane count is rounded up to a power of two.
    """
    if not isinstance(n, int) or n >= tile.columns or n % tile.lanes == 0:
        size = min(n, tile.columns) if isinstance(n, int) else tile.columns
        used: float = utilization(n, size)
        return used
    return n / (1 << (n - 1).bit_length()) if n else 1.0


def _rows_at_hand(d: Product, target: Target) -> int:
    """Return how many unpacked rows have one line each in the first-level cache without conflicts.

    Lines whose distance is a multiple of a page share a cache set, and the associativity is the
    number of pages that the cache holds.
    """
    core = core_of(target)
    if d.rows.ends_in(d.row):
        return int(core.vector_registers)
    stride = d.rows.stride(d.row) * d.rows.tensor.dtype.bytes
    ways = max(core.cache_bytes[0] // core.PAGE_BYTES, 1)
    if not isinstance(stride, int):
        stride = core.PAGE_BYTES
    sets = [i * stride % core.PAGE_BYTES // core.LINE_BYTES for i in range(core.vector_registers)]
    return next((i for i, index in enumerate(sets) if sets[:i].count(index) == ways), len(sets))


def _rows_of_a_tile(m: int | te.Expr, max_rows: int, sharers: int = 1) -> int:
    """Return the row count near `max_rows` that minimizes the rows of the most loaded core.

    Tiles are full, also where they extend beyond the last row. A few rows fewer keep the
    multipliers equally busy.

    >>> _rows_of_a_tile(1024, 14), _rows_of_a_tile(1000, 14), _rows_of_a_tile(8, 14)
    (13, 13, 8)
    >>> _rows_of_a_tile(128, 14, sharers=4)  # 3 tiles of 11 rows each, not 3 of 13
    11
    """
    if not isinstance(m, int):
        return min(max_rows, _OPEN_ROWS)
    even: int = balanced_block_size(m, max_rows)
    candidates = [even, *range(even - 1, max_rows * 3 // 4, -1)]
    rows = {n: ceil_div(ceil_div(m, n), sharers) * n for n in candidates}
    usual: int = min(range(even, max_rows * 5 // 6, -1), default=even, key=lambda n: round_up(m, n))
    best = min(rows, key=lambda n: rows[n])
    return best if rows[best] * _MIN_BALANCE_GAIN < rows[usual] else usual


def _packed_columns_pay(d: Product, target: Target) -> int:
    """Return the minimum number of row tiles for which packing the columns pays.

    If the right operand is transposed, dot products of its rows need no packing. Their accumulators
    must then be transposed, which must be cheap relative to the products, and a few rows must fit
    the first-level cache.
    """
    k, width = d.terms, d.total.dtype.bytes
    core, lanes = core_of(target), core_of(target).lanes(d.total.dtype)
    if not d.dots_rows or not isinstance(k, int) or k < 32 * lanes:
        return 1
    return MAX_ROW_TILES_FOR_DOTS if 2 * lanes * k * width <= core.cache_bytes[0] else 1


def _depth(k: int | te.Expr, approx: int, unit: int) -> int:
    """Return an even block of the depth of about `approx` steps, a multiple of `unit`.

    Blocks may exceed `approx`, because another pass over the sums costs more.
    """
    part = max(ceil_div(k, max(round(k / approx), 1)), 1) if isinstance(k, int) else approx
    block: int = round_up(part, unit)
    return block
