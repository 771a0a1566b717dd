"""GEMM loop nests: packed blocks, and streaming loops for skinny operands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from tecomp import Target, accesses, te
from tecomp.schedules.analysis.matmul import MatmulOperand, Product, operand, source_before_copy
from tecomp.schedules.analysis.stages import is_pointwise, is_untouched, strip_cast
from tecomp.schedules.common import Size, ceil_div, is_one, product
from tecomp.schedules.tiling.gemm_blocking import OPEN_TILES, GemmBlocking, plan_blocks
from tecomp.schedules.tiling.reduction import (
    add_dots,
    dot_types,
    first_output,
    lanes_of_dots,
    remaining_reduction_loops,
    sum_in_vectors,
)
from tecomp.schedules.tiling.register_blocking import (
    RegisterTile,
    balanced_block_size,
    core_of,
    keep_tile,
    register_tile,
    walk_tiles,
)

_MAX_UNPACKING_OPERATIONS = 24
"""Maximum operations per element that are repeated for each of a few rows.

Products of 1 to 8 rows by 4096x4096 weights of 4 bits then take 0.1 to 0.6 of the time that they
take with the unpacked weights in memory, also with a scale per 32 weights.
"""


def stream(s: te.Schedule, d: Product, target: Target) -> None:
    """Schedule a product with few rows: read the columns once, in memory order.

    For a product with a single column, the rows are read in memory order instead: one step of the
    depth at a time if they are transposed, else as dot products.
    """
    total = d.total
    for factor in total.op.input_tensors:
        if strip_cast(factor) is not factor or _is_read_packed(s, factor, d, target):
            s[factor].compute_inline()
    if is_one(d.n) and not is_one(d.m) and d.rows.ends_in(d.row):
        shared = _rows(s, d, (d.column, d.row), target)
    elif is_one(d.n) or d.dots_rows:
        shared = _dots(s, d, target)
    else:
        shared = _rows(s, d, (d.row, d.column), target)
    s[total].parallel(shared)
    if total is not d.output:
        last = s[d.output].op.axis[-1]
        _, lane = s[d.output].split(last, factor=core_of(target).lanes(total.dtype))
        s[d.output].vectorize(lane)


def _is_read_packed(s: te.Schedule, x: te.Tensor, d: Product, target: Target) -> bool:
    """Return whether a factor is computed where it is read, because its inputs are smaller.

    Examples are weights that are stored as elements of 4 bits. A single row reads each of them
    once. For several rows, unpacked weights that stay in the cache are computed once.
    """
    inputs, work = _stored_inputs(s, x)
    sizes = [product((*y.shape, y.dtype.bytes)) for y in (x, *inputs)]
    if not is_pointwise(x) or not all(isinstance(size, int) for size in sizes):
        return False
    is_smaller = 2 * sum(sizes[1:]) <= sizes[0] and work <= _MAX_UNPACKING_OPERATIONS
    is_reused = not is_one(d.m) and not is_one(d.n)
    return bool(is_smaller and (not is_reused or sizes[0] > core_of(target).second_cache))


def _stored_inputs(s: te.Schedule, x: te.Tensor) -> tuple[set[te.Tensor], int]:
    """Return the inputs of a stage through inlined stages, and the operations per element."""
    found: set[te.Tensor] = set()
    work = accesses(x).work
    for y in x.op.input_tensors:
        # A stage with its original axes has no loop nest yet: it is inlined, or will be.
        if is_pointwise(y) and is_untouched(s, y):
            inputs, operations = _stored_inputs(s, y)
            found, work = found | inputs, work + operations
        else:
            found.add(y)
    return found, work


def _rows(
    s: te.Schedule, d: Product, axes: tuple[te.IterVar, te.IterVar], target: Target
) -> te.IterVar:
    """Add a few rows of one operand at a time, scaled by the other, to sums in the cache.

    Args:
        s: Schedule.
        d: Description of the product.
        axes: The axis with few elements, and the axis along which rows are read.
        target: Target whose vector registers and caches decide the sizes.
    """
    core, stage, dtype = core_of(target), s[d.total], d.total.dtype
    tile = register_tile(target, dtype)
    batch, (i, j), (*taps, k) = d.outer, axes, d.depth
    m, n = i.extent, j.extent
    rows = max(m, 1) if isinstance(m, int) else 1
    max_columns = max(core.second_cache // 4 // (rows * dtype.bytes), tile.columns)
    if isinstance(n, int):
        max_columns = max(min(max_columns, ceil_div(n, core.count)), tile.columns)
    else:
        max_columns = min(max_columns // tile.columns, 2 * OPEN_TILES) * tile.columns
    block, j = stage.split(j, factor=balanced_block_size(n, max_columns, tile.columns))
    tile = RegisterTile(balanced_block_size(m, tile.rows), tile.columns, tile.lanes)
    steps, k = stage.split(k, factor=8)
    if isinstance(n, int):
        row, column, tiles = walk_tiles(stage, i, j, tile)
        stage.reorder(*batch, block, *taps, steps, row, column, k, *tiles)
        stage.unroll(k)
    else:
        row_at, column_at = [_place_of(axis, d.total) for axis in axes]
        inside = (row_at, i), (column_at, j)
        _sum_steps(s, d, (*batch, block), (*taps, steps), inside, tile)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    return block


def _place_of(axis: te.IterVar, x: te.Tensor) -> int:
    return next(position for position, other in enumerate(x.op.axis) if other is axis)


def _sum_steps(
    s: te.Schedule, d: Product, outer: Sequence[te.IterVar], steps: Sequence[te.IterVar],
    axes: Sequence[tuple[int, te.IterVar]], tile: RegisterTile,
) -> None:
    """Accumulate a few steps of the depth in registers before adding them to sums in the cache.

    A partial tile loads and stores its sums under masks. Doing that in each step takes longer than
    its products.

    Args:
        s: Schedule.
        d: Description of the product.
        outer: Loops around all steps.
        steps: Loops of the depth without the innermost one.
        axes: For rows and for columns, the position among the axes of the sums and the loop inside
            a block.
        tile: Register tile of accumulators.
    """
    stage, ((row_at, i), (column_at, j)) = s[d.total], axes
    step = stage.fuse(*steps) if len(steps) > 1 else steps[0]
    partial = first_output(s.rfactor(d.total, step, factor_axis=0))
    row, column, inside = walk_tiles(stage, i, j, tile)
    stage.reorder(*outer, *remaining_reduction_loops(s, d.total), row, column, *inside)
    part = s[partial]
    part.set_scope("local")
    part.compute_at(stage, column)
    first, *inner = part.op.axis
    others = [axis for position, axis in enumerate(inner) if position not in (row_at, column_at)]
    (k,) = remaining_reduction_loops(s, partial)
    part.reorder(first, *others, k, *keep_tile(part, inner[row_at], inner[column_at]))
    part.unroll(k)


def _dots(s: te.Schedule, d: Product, target: Target) -> te.IterVar:
    """Compute dot products of a row of one operand with `lanes` rows of the other operand.

    Each dot product has a vector accumulator. The accumulators are transposed in registers, so that
    the horizontal reduction is vectorized. Return the outer loop.
    """
    lanes = core_of(target).lanes(d.total.dtype)
    if d.rows.ends_in(d.row) and not is_one(d.m):
        _turn(s, d)
    stage, accumulator = s[d.total], first_output(s.cache_write(d.total, "local"))
    batch, i, j = d.outer, d.row, d.column
    by_rows = _is_fewer(j.extent, i.extent, lanes)
    vector_axis, row = (i, j) if by_rows else (j, i)
    count = min(vector_axis.extent, lanes) if isinstance(vector_axis.extent, int) else lanes
    outer, inner = stage.split(vector_axis, factor=count)
    stage.reorder(*batch, outer, row, inner)
    stage.vectorize(inner)
    *taps, k = d.depth_of(accumulator)
    if taps:
        s[accumulator].reorder(*taps, k)
        k = s[accumulator].fuse(*taps, k)
    _, lane = s[accumulator].split(k, factor=lanes * max(4 // max(count, 1), 1))
    sums = first_output(s.rfactor(accumulator, lane))
    s[accumulator].compute_at(stage, row)
    (lane,) = s[accumulator].op.reduce_axis
    _, i, _, j = d.axes_of(accumulator)
    s[accumulator].reorder(lane, *((j, i) if by_rows else (i, j)))
    s[accumulator].unroll(lane)
    s[accumulator].vectorize(i if by_rows else j)
    part = s[sums]
    part.compute_at(stage, row)
    part.transform_layout(lambda lane, *index: [*index, lane])
    *rows, lane = part.leaf_iter_vars[: len(sums.shape)]
    part.reorder(*remaining_reduction_loops(s, sums), *rows, lane)
    for axis in rows:
        part.unroll(axis)
    part.vectorize(lane)
    part.set_scope("local")
    for axis in reversed(batch):
        outer = stage.fuse(axis, outer)
    return outer


def _is_fewer(columns: Size, rows: Size, lanes: int) -> bool:
    """Return whether there are too few columns for a vector, and more rows than columns."""
    if not isinstance(columns, int) or columns >= lanes:
        return False
    return not isinstance(rows, int) or rows > columns


def _turn(s: te.Schedule, d: Product) -> None:
    """Copy the rows so that the depth is contiguous."""
    copy = s[s.cache_read(d.rows.tensor, "global", [d.total])]

    def place(*axes: te.Expr) -> list[te.Expr]:
        index_of = dict(zip(d.rows.axes, axes, strict=True))
        depth = [index_of.pop(axis) for axis in d.depth]
        return [*index_of.values(), *depth]

    copy.transform_layout(place)


def product_at_root(
    s: te.Schedule, d: Product, target: Target, plan: GemmBlocking | None = None,
    constants: Collection[te.Tensor] = (),
) -> None:
    """Schedule a matrix product and its epilogue as a separate loop nest on a CPU.

    Args:
        s: Schedule.
        d: Description of the product.
        target: Target.
        plan: Block sizes. Default: the result of `plan_blocks`.
        constants: Arguments that are equal in every call. Default: none.
    """
    source, (d, types) = d, _as_dots(d, target)
    p = plan or plan_blocks(d, target, lanes_of_dots(types), constants)
    if not p.pack_columns and not p.read_columns:
        stream(s, source, target)
        return
    correction = None
    if types is not None:
        order = (types[1], types[0]) if d.is_swapped else types
        total, factors, correction = add_dots(s, d.total, d.depth[-1], order, d.output)
        d = d.with_factors(total, *factors)
    driver, sums = _sums(s, d, p)
    block, part, tile = _walk(s, driver, d, p)
    depth = _fill(s, sums, d, p)
    s[sums].compute_at(s[driver], tile)
    packed = None
    if p.pack_columns:
        packed = _pack_columns(s, [sums] if correction is None else [sums, correction], d, p)
    if correction is not None:
        # The correction reads all columns and is computed before the first block.
        sum_in_vectors(s, correction, p.tile.columns)
    elif packed is not None and any(d.columns.has(axis) for axis in d.batch):
        s[packed].compute_at(s[driver], block)
    if p.pack_rows and d.rows.tensor != d.columns.tensor:
        packed = _pack_rows(s, sums, d, p, depth)
        if d.rows.tensor not in constants:
            s[packed].compute_at(s[driver], block if part is None else part)
    if driver is not d.output:
        _finish(s, driver, d, p)


def _sums(s: te.Schedule, d: Product, p: GemmBlocking) -> tuple[te.Tensor, te.Tensor]:
    """Return the stage that has the loops over tiles, and the stage of the accumulators."""
    if p.is_split:
        return d.total, _in_parts(s, d, p)
    if d.total is d.output:
        return d.total, first_output(s.cache_write(d.total, "local"))
    s[d.total].set_scope("local")
    return d.output, d.total


def _in_parts(s: te.Schedule, d: Product, p: GemmBlocking) -> te.Tensor:
    """Split the sum: accumulate a block of the depth in registers, then add it to the result."""
    first, *others = d.depth_of(d.total)
    outer, inner = s[d.total].split(first, factor=p.depth)
    if others:
        s[d.total].reorder(outer, inner, *others)
    sums: te.Tensor = first_output(s.rfactor(d.total, outer))
    s[sums].set_scope("local")
    return sums


def _walk(
    s: te.Schedule, driver: te.Tensor, d: Product, p: GemmBlocking
) -> tuple[te.IterVar, te.IterVar | None, te.IterVar]:
    """Create the loops over row blocks, depth blocks, column tiles, row tiles and inside a tile.

    Returns:
        The loop over row blocks, the loop over depth blocks or None if the depth is not split, and
        the loop over row tiles.
    """
    stage = s[driver]
    batch, i, column_batch, j = d.axes_of(driver)
    depth = stage.op.reduce_axis
    block, i = stage.split(i, factor=p.block_rows)
    parts: list[te.IterVar] = []
    if p.part_columns is not None:
        part, j = stage.split(j, factor=p.part_columns)
        parts = [part]
    tile, column, inside = walk_tiles(stage, i, j, p.tile)
    stage.reorder(*batch, *parts, block, *depth, *column_batch, column, tile, *inside)
    for axis in reversed([*batch, *parts]):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    return block, depth[0] if depth else None, tile


def _fill(s: te.Schedule, sums: te.Tensor, d: Product, p: GemmBlocking) -> list[te.IterVar]:
    """Order the loops so that each step of the depth adds an outer product to the register tile.

    Returns:
        The loops of the depth, innermost last.
    """
    stage = s[sums]
    batch, i, column_batch, j = d.axes_of(sums)
    depth: list[te.IterVar] = remaining_reduction_loops(s, sums) if p.is_split else d.depth_of(sums)
    stage.reorder(*batch, *column_batch, *depth, *keep_tile(stage, i, j))
    return depth


def _pack_columns(
    s: te.Schedule, readers: Sequence[te.Tensor], d: Product, p: GemmBlocking
) -> te.Tensor:
    """Pack the columns into tiles."""
    packed: te.Tensor = operand(s, d.columns.tensor, *readers)
    s[packed].transform_layout(_place(d, d.columns, d.column, p.tile.columns))
    if d.dots_rows:
        _copy_transposed(s, packed, d, p.tile.lanes)
    else:
        _copy_in_order(s, packed, d)
    return packed


def _pack_rows(
    s: te.Schedule, sums: te.Tensor, d: Product, p: GemmBlocking, depth: Sequence[te.IterVar]
) -> te.Tensor:
    """Pack the rows into tiles.

    If the depth is contiguous in memory, a tile stores a vector of consecutive steps of each of its
    rows contiguously. The copy then moves full vectors along the depth, and each cache line of the
    packed operand serves as many steps as in step order.
    """
    packed: te.Tensor = operand(s, d.rows.tensor, sums)
    s[packed].transform_layout(_place(d, d.rows, d.row, p.tile.rows, p.steps))
    if p.steps > 1:
        s[sums].split(depth[-1], factor=p.steps)
    s[packed].vectorize(s[packed].leaf_iter_vars[-1])
    return packed


def _place(
    d: Product, factor: MatmulOperand, tile_axis: te.IterVar, width: int, steps: int = 1
) -> Callable[..., list[te.Expr]]:
    """Return the packed layout of an operand: `width` values of each step are contiguous.

    Args:
        d: Description of the product.
        factor: Operand.
        tile_axis: Axis of its rows or columns.
        width: Rows or columns of a tile.
        steps: Consecutive steps of the depth that are contiguous for each row or column. Default:
            1.
    """

    def place(*axes: te.Expr) -> list[te.Expr]:
        index_of = dict(zip(factor.axes, axes, strict=True))
        *taps, k = (index_of.pop(axis) for axis in d.depth)
        x = index_of.pop(tile_axis)
        inside = [k, x % width] if steps == 1 else [k // steps, x % width, k % steps]
        return [*index_of.values(), x // width, *taps, *inside]

    return place


def _copy_in_order(s: te.Schedule, packed: te.Tensor, d: Product) -> None:
    """Pack a few steps of the depth at a time; their tiles are contiguous in both layouts."""
    stage = s[packed]
    *outer, k, lane = stage.leaf_iter_vars
    leading, (tile, *taps) = outer[: -len(d.depth)], outer[-len(d.depth) :]
    steps, k = stage.split(k, factor=8)
    stage.reorder(*leading, *taps, steps, tile, k, lane)
    stage.vectorize(lane)
    _share(stage, d, [*leading, *taps, steps])


def _copy_transposed(s: te.Schedule, packed: te.Tensor, d: Product, lanes: int) -> None:
    """Pack one tile at a time in transposed squares; its steps are consecutive in both layouts."""
    stage = s[packed]
    *outer, k, lane = stage.leaf_iter_vars
    vector, lane = stage.split(lane, factor=lanes)
    steps, k = stage.split(k, factor=lanes)
    stage.reorder(*outer, steps, vector, k, lane)
    stage.unroll(k)
    stage.vectorize(lane)
    _share(stage, d, outer)


def _share(stage: te.Stage, d: Product, loops: Sequence[te.IterVar]) -> None:
    """Parallelize a copy of all columns; a copy for one batch is made by the core of that batch."""
    if not any(d.columns.has(axis) for axis in d.batch):
        stage.parallel(loops[0])


def _finish(s: te.Schedule, driver: te.Tensor, d: Product, p: GemmBlocking) -> None:
    """Apply the epilogue to a block of rows while it is in the cache."""
    stage = s[d.output]
    batch, i, column_batch, j = d.axes_of(d.output)
    block, i = stage.split(i, factor=p.block_rows)
    columns, lane = stage.split(j, factor=p.tile.columns)
    if d.outer:
        stage.reorder(*batch, block, i, *column_batch, columns, lane)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    stage.parallel(block)
    stage.vectorize(lane)
    s[driver].compute_at(stage, block)


def _as_dots(d: Product, target: Target) -> tuple[Product, tuple[str, str] | None]:
    """Return the product on unconverted factors, and the dtypes of its dot products.

    The dtypes are None, and the product is returned unchanged, if `pairs=False` was passed to
    `define` or the target has no dot-product instruction. The attribute is needed because accesses
    do not record it.
    """
    if not d.is_sum or not d.total.op.attrs.get("pairs", True):
        return d, None
    rows, columns = map(source_before_copy, (d.rows, d.columns))
    names = str(rows.tensor.dtype), str(columns.tensor.dtype)
    types: tuple[str, str] | None = dot_types(*names, str(d.total.dtype), target)
    return (d, None) if types is None else (replace(d, rows=rows, columns=columns), types)
