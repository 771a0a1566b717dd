"""Products of matrices of which one has few rows or columns: the other is read once, as it is."""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.structure.products import Product
from tecomp.schedules.structure.sizes import Size, ceil_div, is_one
from tecomp.schedules.structure.stages import unconverted
from tecomp.schedules.tiling.fold import left_of, one
from tecomp.schedules.tiling.tiles import RegisterTile, balanced, core_of, register_tile, walk_tiles


def stream(s: te.Schedule, d: Product, target: Target) -> None:
    """For few rows: the columns are read once, in the order in which they lie in memory.

    Of a product with one column the rows are read so: if they are transposed, one step of the depth
    at a time too.
    """
    total = d.total
    for factor in total.op.input_tensors:
        if unconverted(factor) is not factor:
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


def _rows(
    s: te.Schedule, d: Product, axes: tuple[te.IterVar, te.IterVar], target: Target
) -> te.IterVar:
    """Add a few rows of an operand at a time, each times values of the other, to sums in the cache.

    Args:
        s: the schedule.
        d: the product.
        axes: its axis with few elements, and that along which rows are read.
        target: for its vectors and cache.
    """
    core, stage, dtype = core_of(target), s[d.total], d.total.dtype
    tile = register_tile(target, dtype)
    batch, (i, j), (*taps, k) = d.outer, axes, d.depth
    m, n = i.extent, j.extent
    rows = max(m, 1) if isinstance(m, int) else 1
    most = max(core.second_cache // 4 // (rows * dtype.bytes), tile.columns)
    if isinstance(n, int):
        most = max(min(most, ceil_div(n, core.count)), tile.columns)
    block, j = stage.split(j, factor=balanced(n, most, tile.columns))
    tile = RegisterTile(balanced(m, tile.rows), tile.columns, tile.lanes)
    row, column, inside = walk_tiles(stage, i, j, tile)
    steps, k = stage.split(k, factor=8)
    stage.reorder(*batch, block, *taps, steps, row, column, k, *inside)
    stage.unroll(k)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    return block


def _dots(s: te.Schedule, d: Product, target: Target) -> te.IterVar:
    """Products of a row of one operand with as many rows of the other as a vector has lanes.

    Each product has a vector of sums; these are transposed in registers, to add up their lanes.
    """
    lanes = core_of(target).lanes(d.total.dtype)
    if d.rows.ends_in(d.row) and not is_one(d.m):
        _turn(s, d)
    stage, held = s[d.total], one(s.cache_write(d.total, "local"))
    batch, i, j = d.outer, d.row, d.column
    by_rows = _is_fewer(j.extent, i.extent, lanes)
    several, row = (i, j) if by_rows else (j, i)
    count = min(several.extent, lanes) if isinstance(several.extent, int) else lanes
    outer, inner = stage.split(several, factor=count)
    stage.reorder(*batch, outer, row, inner)
    stage.vectorize(inner)
    *taps, k = d.depth_of(held)
    if taps:
        s[held].reorder(*taps, k)
        k = s[held].fuse(*taps, k)
    _, lane = s[held].split(k, factor=lanes * max(4 // max(count, 1), 1))
    sums = one(s.rfactor(held, lane))
    s[held].compute_at(stage, row)
    (lane,) = s[held].op.reduce_axis
    _, i, _, j = d.axes_of(held)
    s[held].reorder(lane, *((j, i) if by_rows else (i, j)))
    s[held].unroll(lane)
    s[held].vectorize(i if by_rows else j)
    part = s[sums]
    part.compute_at(stage, row)
    part.transform_layout(lambda lane, *place: [*place, lane])
    *rows, lane = part.leaf_iter_vars[: len(sums.shape)]
    part.reorder(*left_of(s, sums), *rows, lane)
    for axis in rows:
        part.unroll(axis)
    part.vectorize(lane)
    part.set_scope("local")
    for axis in reversed(batch):
        outer = stage.fuse(axis, outer)
    return outer


def _is_fewer(columns: Size, rows: Size, lanes: int) -> bool:
    """Whether there are not enough columns for a vector, and more rows."""
    if not isinstance(columns, int) or columns >= lanes:
        return False
    return not isinstance(rows, int) or rows > columns


def _turn(s: te.Schedule, d: Product) -> None:
    """A copy of the rows along whose rows the depth is contiguous."""
    copy = s[s.cache_read(d.rows.tensor, "global", [d.total])]

    def place(*axes: te.Expr) -> list[te.Expr]:
        at = dict(zip(d.rows.axes, axes, strict=True))
        depth = [at.pop(axis) for axis in d.depth]
        return [*at.values(), *depth]

    copy.transform_layout(place)
