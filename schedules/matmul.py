"""Products of matrices, of any transposition, in batches, with a bias and an activation.

The schedule is that of the BLAS libraries: both operands are packed into the order in which a tile
of registers walks through them; a block of rows stays in a cache while all columns pass. What is
used too seldom for a copy to pay is read where it lies.

Source:
    K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions
    on Mathematical Software 34(3), 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tecomp import ScheduleError, Target, te
from tecomp.schedules.products.thin import stream
from tecomp.schedules.scratchpads import on_cores
from tecomp.schedules.scratchpads.placement import Placement, placement_of
from tecomp.schedules.structure.contraction import of_matrices
from tecomp.schedules.structure.products import Factor, Product, need_product, operand
from tecomp.schedules.structure.sizes import ceil_div, is_one, product, round_up
from tecomp.schedules.structure.stages import is_computed, unconverted
from tecomp.schedules.tiling.dots import add_dots, dot_types, lanes_of_dots, sum_in_vectors
from tecomp.schedules.tiling.epilogue import finished
from tecomp.schedules.tiling.fold import one
from tecomp.schedules.tiling.streams import is_short
from tecomp.schedules.tiling.tiles import (
    RegisterTile,
    balanced,
    core_of,
    keep_tile,
    register_tile,
    used_share,
    walk_tiles,
)
from tecomp.schedules.tiling.types import wide_type

PACKED_ROWS_PAY = 32
"""Column tiles from which on packing the rows pays: each packed value is used once for each."""
TURNED_ROWS_PAY = 16
"""The same where rows lie across the memory, so that each step of the depth reads another line."""
DOTS_PAY = 4
"""Row tiles up to which products of rows are faster than a transposed copy of the columns."""
STREAMED_ROWS = 4
"""Rows up to which reading the columns in their order takes longer than multiplying."""
READ_TILES = 4
"""Row tiles up to which reading the columns where they are is faster than packing them."""
_LOAD = 0.1
"""What a load beside the products takes of the time of one."""
_UNDER_WAY = 8
"""Sums that are needed: as many as two multipliers have under way."""
_OPEN_TILES = 8
"""Column tiles of a part where it is open how many columns there are."""
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
    wish = {} if pairs else {"pairs": False}
    if bias is None and activation is None and wide == dtype:
        return te.compute(shape, product, name=name, attrs=wish)
    total = te.compute(shape, product, name=f"{name}_sum", attrs=wish)
    result: te.Tensor = finished(total, dtype, bias, len(shape) - 1, activation, name)
    return result


def _converted(x: te.Tensor, dtype: str) -> te.Tensor:
    """`x` in the type of the sums: each value is converted once, while it is packed."""
    if x.dtype == dtype:
        return x
    return te.compute(
        x.shape, lambda *axes: te.cast(x(*axes), dtype), name=f"{x.name}_{dtype}"
    )


@dataclass(frozen=True)
class Plan:
    """How a product is cut into blocks.

    Attributes:
        tile: sums in registers.
        block_rows: rows whose packed values stay in a cache.
        depth: how much of the sum is formed at a time.
        is_split: whether that is less than all of it.
        part_columns: columns of a part, where there are too few rows to share; None if they are
            not cut.
        pack_rows: whether A is packed.
        steps: steps of the depth that lie side by side in each packed row of A.
        pack_columns: whether B is packed.
        read_columns: whether tiles read B where it is; if it is not packed either, its rows stream
            past the few rows of A.
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


def describe(output: te.Tensor) -> Product:
    """The roles of the axes of a product, or of what is made of one element by element.

    It is read off what the tensor reads: how it is written, called or made makes no difference.

    Args:
        output: the result of `define`, or any tensor that is such a product: with its factors in
            any order, their axes in any order, any number of axes of each kind.

    Raises:
        ScheduleError: it is no product.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    >>> describe(define(A, B, transpose_a=False)).depth
    (k,)
    """
    return need_product(output, "matmul.describe")


def plan(op: te.Tensor | Product, target: Target, each: int = 1) -> Plan:
    """The blocks for a product of any size, whose steps along the depth add up `each` terms.

    * The columns of a tile, for the whole depth, take an eighth of the second cache.
    * A block of packed rows takes three quarters of it, or an eighth of a core's share of the third
      if that is more: rows are walked in order, so that they come in time from there too, and all
      columns pass by from farther away once for each block.
    * Blocks are even, and each core has as many.

    Args:
        op: a product, or its description.
        target: for its vectors and caches.
        each: terms that one step adds up.

    Raises:
        ScheduleError: `op` is no product.
    """
    return _blocks(need_product(op, "matmul.plan"), target, each)


def _blocks(d: Product, target: Target, each: int) -> Plan:
    core, dtype = core_of(target), d.total.dtype
    m, n = d.m, d.n
    pack_rows = each > 1 or _packed_rows_pay(d, target)
    tile = _tile(d, target, pack_rows)
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    k, inner = d.depth[0].extent, product(axis.extent for axis in d.depth[1:])
    if len(d.depth) == 1:
        k = ceil_div(k, each)
    width = dtype.bytes * (inner if isinstance(inner, int) else 1)
    pays = _packed_columns_pay(d, target) * register_tile(target, dtype).rows
    is_shallow = is_short(d.depth[-1], tile.lanes, 1)
    steps = tile.lanes if d.rows.ends_in(d.depth[-1]) and not is_shallow else 1
    least = 64 if inner == 1 else 1
    about = max(second // 8 // (tile.columns * max(width, 1)), least)
    depth = _depth(k, about, steps if inner == 1 else 1)
    share = core.cache_bytes[-1] // 8 // core.count if len(core.cache_bytes) > 2 else 0
    block_bytes = max(second * 3 // 4, share)
    most_rows = max(block_bytes // max(depth * width, 1) // tile.rows, 1) * tile.rows
    if isinstance(m, int):
        most_rows = min(most_rows, round_up(ceil_div(m, core.count), tile.rows))
    batched = bool(d.outer)
    sharers = 1 if batched else core.count
    block_rows = balanced(m, max(most_rows, tile.rows), tile.rows, share=sharers)
    blocks = ceil_div(m, block_rows) if isinstance(m, int) else core.count
    is_few = isinstance(m, int) and m < pays
    read_columns = each == 1 and _are_read(d, tile, target, is_few=is_few)
    return Plan(
        tile=tile,
        block_rows=block_rows,
        depth=depth,
        is_split=not isinstance(k, int) or depth < k,
        part_columns=None if batched or blocks >= core.count else _part(d.n, core.count, tile),
        pack_rows=pack_rows,
        steps=steps,
        pack_columns=not is_one(n) and not is_few and not read_columns,
        read_columns=read_columns,
    )


def _are_read(d: Product, tile: RegisterTile, target: Target, *, is_few: bool) -> bool:
    """Whether tiles read the columns where they lie: so few that they stay in a cache.

    Copying them costs little only beside many rows. Where there are so few rows that the columns
    would stream, larger ones might come from memory, which is quicker in order. Beside more, a
    tile at the edge must not need a mask for each value.
    """
    core, m, n, columns = core_of(target), d.m, d.n, d.columns.tensor
    own = (axis.extent for axis in d.columns.axes if not any(axis is b for b in d.batch))
    size = product((*own, columns.dtype.bytes))
    if is_computed(columns) or d.across or not d.columns.ends_in(d.column):
        return False
    if not isinstance(size, int) or not isinstance(n, int) or is_one(n) or is_one(m):
        return False
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    if is_few and isinstance(m, int) and m > STREAMED_ROWS and size <= second // 8:
        return True
    if _used_columns(n, tile) < 1.0:
        return False
    is_some = not is_few and isinstance(m, int) and m <= READ_TILES * tile.rows
    return bool(2 * size <= core.cache_bytes[0] or (is_some and size <= second))


def _part(n: int | te.Expr, cores: int, tile: RegisterTile) -> int:
    """Columns of one core, as whole tiles: one that is cut would be computed under masks.

    Where it is open how many there are, a part has a fixed number: sets tell nothing of a product
    of sizes, and so of a part whose size depends on them.
    """
    columns = max(ceil_div(n, cores), 1) if isinstance(n, int) else _OPEN_TILES * tile.columns
    return int(round_up(columns, tile.columns))


def _packed_rows_pay(d: Product, target: Target) -> bool:
    """Whether the rows are used so often, or are computed, that a packed copy of them pays."""
    if is_computed(d.rows.tensor):
        return True
    n, tile = d.n, register_tile(target, d.total.dtype)
    if d.across:
        n = product((n, *(axis.extent for axis in d.across)))
    tiles = TURNED_ROWS_PAY if d.rows.ends_in(d.row) else PACKED_ROWS_PAY
    return not isinstance(n, int) or n >= tiles * tile.columns


def _tile(d: Product, target: Target, pack_rows: bool) -> RegisterTile:
    """The tile that wastes least of itself at the edge of the columns, of those that are fast."""
    m, n, dtype = d.m, d.n, d.total.dtype
    most = core_of(target).vector_registers if pack_rows else _rows_at_hand(d, target)
    best, chosen = 0.0, register_tile(target, dtype)
    for vectors in (2, 3, 1, 4):
        tile = register_tile(target, dtype, vectors)
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


def _rows_at_hand(d: Product, target: Target) -> int:
    """How many of the rows, as they lie in memory, have a line each in the first cache.

    Lines a page apart share a set of it, and a set has a line of as many pages as the cache holds.
    """
    core = core_of(target)
    if d.rows.ends_in(d.row):
        return int(core.vector_registers)
    apart = d.rows.stride(d.row) * d.rows.tensor.dtype.bytes
    ways = max(core.cache_bytes[0] // _PAGE_BYTES, 1)
    if not isinstance(apart, int):
        apart = _PAGE_BYTES
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


def _packed_columns_pay(d: Product, target: Target) -> int:
    """Row tiles from which on a packed copy of the columns pays.

    Where B is transposed, products of its rows need none. But their sums have to be turned, which
    has to be little beside them, and a few rows have to stay in the first cache.
    """
    k, width = d.terms, d.total.dtype.bytes
    core, lanes = core_of(target), core_of(target).lanes(d.total.dtype)
    if not d.dots_rows or not isinstance(k, int) or k < 32 * lanes:
        return 1
    return DOTS_PAY if 2 * lanes * k * width <= core.cache_bytes[0] else 1


def _depth(k: int | te.Expr, about: int, unit: int) -> int:
    """Even parts of the depth of about that size: a second pass over the sums costs more."""
    part = max(ceil_div(k, max(round(k / about), 1)), 1) if isinstance(k, int) else about
    whole: int = round_up(part, unit)
    return whole


def schedule(
    op: te.Tensor | Product, target: Target, plan: Plan | None = None
) -> te.Schedule:
    """A schedule for a product, or for what is made of one element by element.

    Args:
        op: the result of `define`, any other tensor that is such a product, or its description.
        target: the machine.
        plan: how it is cut; what `plan` says if None. Machines with scratchpads have none.

    Raises:
        ScheduleError: `op` is no product.
    """
    d = need_product(op, "matmul.schedule")
    s: te.Schedule = te.create_schedule(d.output)
    where = placement_of(target)
    if where is not None:
        product_on_cores(s, d, where)
        return s
    for x in d.between:
        s[x].compute_inline()
    product_at_root(s, d, target, plan)
    return s


def product_on_cores(s: te.Schedule, d: Product, where: Placement) -> None:
    """Schedule a product and what is made of it on a machine with scratchpads.

    Raises:
        ScheduleError: it is a matrix times itself.
    """
    _need_two(d)
    for x in d.between:
        s[x].compute_inline()
    on_cores.schedule(s, d.output, of_matrices(d), where)


def product_at_root(
    s: te.Schedule, d: Product, target: Target, plan: Plan | None = None
) -> None:
    """Schedule a product and what is made of it on a processor, with loops of their own."""
    types = _dot_types(d, target)
    p = plan or _blocks(d, target, lanes_of_dots(types))
    if not p.pack_columns and not p.read_columns:
        stream(s, d, target)
        return
    moved = None
    if types is not None:
        order = (types[1], types[0]) if d.is_swapped else types
        total, factors, moved = add_dots(s, d.total, d.depth[-1], order)
        d = d.with_factors(total, *factors)
    driver, sums = _sums(s, d, p)
    block, part, tile = _walk(s, driver, d, p)
    depth = _fill(s, sums, d, p)
    s[sums].compute_at(s[driver], tile)
    packed = None
    if p.pack_columns:
        packed = _pack_columns(s, [sums] if moved is None else [sums, moved], d, p)
    if moved is not None:
        # It needs all columns before the first block.
        sum_in_vectors(s, moved, p.tile.columns)
    elif packed is not None and any(d.columns.has(axis) for axis in d.batch):
        s[packed].compute_at(s[driver], block)
    if p.pack_rows and d.rows.tensor != d.columns.tensor:
        packed = _pack_rows(s, sums, d, p, depth)
        s[packed].compute_at(s[driver], block if part is None else part)
    if driver is not d.output:
        _finish(s, driver, d, p)


def _need_two(d: Product) -> None:
    """Refuse a matrix times itself, of which there would have to be two kinds of copies.

    Raises:
        ScheduleError: it is one.
    """
    if d.rows.tensor == d.columns.tensor:
        name = d.rows.tensor.name
        raise ScheduleError(
            f"matmul.schedule: {d.total.name} multiplies {name} by itself, and scratchpads have "
            f"rows and columns in different layouts; multiply by a copy: te.compute({name}.shape, "
            f"lambda *i: {name}(*i))"
        )


def _sums(s: te.Schedule, d: Product, p: Plan) -> tuple[te.Tensor, te.Tensor]:
    """The stage that the walk is that of, and the stage of the sums in registers."""
    if p.is_split:
        return d.total, _in_parts(s, d, p)
    if d.total is d.output:
        return d.total, one(s.cache_write(d.total, "local"))
    s[d.total].set_scope("local")
    return d.output, d.total


def _in_parts(s: te.Schedule, d: Product, p: Plan) -> te.Tensor:
    """Cut the sum: a part of the depth is added up in registers, and then to the result."""
    first, *others = d.depth_of(d.total)
    outer, inner = s[d.total].split(first, factor=p.depth)
    if others:
        s[d.total].reorder(outer, inner, *others)
    sums: te.Tensor = one(s.rfactor(d.total, outer))
    s[sums].set_scope("local")
    return sums


def _walk(
    s: te.Schedule, driver: te.Tensor, d: Product, p: Plan
) -> tuple[te.IterVar, te.IterVar | None, te.IterVar]:
    """Loops over blocks of rows, parts of the depth, column tiles, row tiles, and inside a tile.

    Returns:
        The loop over blocks, that over the depth if it is cut, and that over row tiles.
    """
    stage = s[driver]
    batch, i, across, j = d.axes_of(driver)
    depth = stage.op.reduce_axis
    block, i = stage.split(i, factor=p.block_rows)
    parts: list[te.IterVar] = []
    if p.part_columns is not None:
        part, j = stage.split(j, factor=p.part_columns)
        parts = [part]
    tile, column, inside = walk_tiles(stage, i, j, p.tile)
    stage.reorder(*batch, *parts, block, *depth, *across, column, tile, *inside)
    for axis in reversed([*batch, *parts]):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    return block, depth[0] if depth else None, tile


def _fill(s: te.Schedule, sums: te.Tensor, d: Product, p: Plan) -> list[te.IterVar]:
    """Each step of the depth adds the product of one column and one row to the tile.

    Returns:
        The loops of the depth, the innermost last.
    """
    stage = s[sums]
    batch, i, across, j = d.axes_of(sums)
    depth = list(sums.op.reduce_axis) if p.is_split else d.depth_of(sums)
    stage.reorder(*batch, *across, *depth, *keep_tile(stage, i, j))
    return depth


def _pack_columns(
    s: te.Schedule, readers: Sequence[te.Tensor], d: Product, p: Plan
) -> te.Tensor:
    """A copy of the columns in tiles."""
    packed: te.Tensor = operand(s, d.columns.tensor, *readers)
    s[packed].transform_layout(_place(d, d.columns, d.column, p.tile.columns))
    if d.dots_rows:
        _copy_turned(s, packed, d, p.tile.lanes)
    else:
        _copy_in_order(s, packed, d)
    return packed


def _pack_rows(
    s: te.Schedule, sums: te.Tensor, d: Product, p: Plan, depth: Sequence[te.IterVar]
) -> te.Tensor:
    """A copy of the rows in tiles.

    Where the depth is contiguous, a tile finds a vector of steps of each of its rows side by side.
    So what lies along the depth is copied in whole vectors, and each of its cache lines serves as
    many steps as in the order of the steps.
    """
    packed: te.Tensor = operand(s, d.rows.tensor, sums)
    s[packed].transform_layout(_place(d, d.rows, d.row, p.tile.rows, p.steps))
    if p.steps > 1:
        s[sums].split(depth[-1], factor=p.steps)
    s[packed].vectorize(s[packed].leaf_iter_vars[-1])
    return packed


def _place(
    d: Product, factor: Factor, along: te.IterVar, width: int, steps: int = 1
) -> Callable[..., list[te.Expr]]:
    """Where an operand lies: a tile finds `width` values of each step of the depth side by side.

    Args:
        d: the product.
        factor: the operand.
        along: its axis of rows or of columns.
        width: rows or columns of a tile.
        steps: steps of the depth that lie side by side for each of them.
    """

    def place(*axes: te.Expr) -> list[te.Expr]:
        at = dict(zip(factor.axes, axes, strict=True))
        *taps, k = (at.pop(axis) for axis in d.depth)
        x = at.pop(along)
        inside = [k, x % width] if steps == 1 else [k // steps, x % width, k % steps]
        return [*at.values(), x // width, *taps, *inside]

    return place


def _copy_in_order(s: te.Schedule, packed: te.Tensor, d: Product) -> None:
    """Copy a few steps of the depth at a time: their tiles lie side by side in both orders."""
    stage = s[packed]
    *outer, k, lane = stage.leaf_iter_vars
    lead, (tile, *taps) = outer[: -len(d.depth)], outer[-len(d.depth) :]
    steps, k = stage.split(k, factor=8)
    stage.reorder(*lead, *taps, steps, tile, k, lane)
    stage.vectorize(lane)
    _share(stage, d, [*lead, *taps, steps])


def _copy_turned(s: te.Schedule, packed: te.Tensor, d: Product, lanes: int) -> None:
    """Copy a tile at a time, in squares: its steps follow each other in both orders."""
    stage = s[packed]
    *outer, k, lane = stage.leaf_iter_vars
    vector, lane = stage.split(lane, factor=lanes)
    steps, k = stage.split(k, factor=lanes)
    stage.reorder(*outer, steps, vector, k, lane)
    stage.unroll(k)
    stage.vectorize(lane)
    _share(stage, d, outer)


def _share(stage: te.Stage, d: Product, loops: Sequence[te.IterVar]) -> None:
    """Share a copy of all columns among cores; one for a batch is made by the core that has it."""
    if not any(d.columns.has(axis) for axis in d.batch):
        stage.parallel(loops[0])


def _finish(s: te.Schedule, driver: te.Tensor, d: Product, p: Plan) -> None:
    """Apply what follows the sum to a block of rows while it is in the cache."""
    stage = s[d.output]
    batch, i, across, j = d.axes_of(d.output)
    block, i = stage.split(i, factor=p.block_rows)
    columns, lane = stage.split(j, factor=p.tile.columns)
    if d.outer:
        stage.reorder(*batch, block, i, *across, columns, lane)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    stage.vectorize(lane)
    s[driver].compute_at(stage, block)


def _dot_types(d: Product, target: Target) -> tuple[str, str] | None:
    """Types of short vectors to multiply, if the product may and the machine does so.

    That it may not is what `define` was told: no relation says so.
    """
    if not d.is_sum or not d.total.op.attrs.get("pairs", True):
        return None
    rows, columns = (str(unconverted(x.tensor).dtype) for x in (d.rows, d.columns))
    types: tuple[str, str] | None = dot_types(rows, columns, str(d.total.dtype), target)
    return types
