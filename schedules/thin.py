"""Products of matrices of which one has few rows or columns: the other is read once, as it is."""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.elementwise import is_one
from tecomp.schedules.fold import one
from tecomp.schedules.tiles import (
    RegisterTile,
    Size,
    balanced,
    ceil_div,
    core_of,
    register_tile,
    walk_tiles,
)


def stream(s: te.Schedule, output: te.Tensor, total: te.Tensor, target: Target) -> None:
    """For few rows of A: B is read once, in the order in which it lies in memory.

    Of a product with one column A is read so: where it is transposed, a row of it at a time too.
    """
    for operand in total.op.input_tensors:
        if operand.op.attrs.get("is_converted"):
            s[operand].compute_inline()
    m, n = total.shape[-2:]
    i, j = total.op.axis[-2:]
    if is_one(n) and not is_one(m) and total.op.attrs["transpose_a"]:
        shared = _rows(s, total, (j, i), target)
    elif is_one(n) or total.op.attrs["transpose_b"]:
        shared = _dots(s, total, target)
    else:
        shared = _rows(s, total, (i, j), target)
    s[total].parallel(shared)
    if total is not output:
        _, lane = s[output].split(s[output].op.axis[-1], factor=core_of(target).lanes(total.dtype))
        s[output].vectorize(lane)


def _rows(
    s: te.Schedule, total: te.Tensor, axes: tuple[te.IterVar, te.IterVar], target: Target
) -> te.IterVar:
    """Add a few rows of an operand at a time, each times values of the other, to sums in the cache.

    Args:
        s: the schedule.
        total: the product.
        axes: its axis with few elements, and that along which rows are read.
        target: for its vectors and cache.
    """
    core, stage, tile = core_of(target), s[total], register_tile(target, total.dtype)
    batch, (i, j) = stage.op.axis[:-2], axes
    (k,) = stage.op.reduce_axis
    m, n = i.extent, j.extent
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    rows = max(m, 1) if isinstance(m, int) else 1
    most = max(second // 4 // (rows * total.dtype.bytes), tile.columns)
    if isinstance(n, int):
        most = max(min(most, ceil_div(n, core.count)), tile.columns)
    block, j = stage.split(j, factor=balanced(n, most, tile.columns))
    tile = RegisterTile(balanced(m, tile.rows), tile.columns, tile.lanes)
    row, column, inside = walk_tiles(stage, i, j, tile)
    steps, k = stage.split(k, factor=8)
    stage.reorder(*batch, block, steps, row, column, k, *inside)
    stage.unroll(k)
    for axis in reversed(batch):
        block = stage.fuse(axis, block)
    return block


def _dots(s: te.Schedule, total: te.Tensor, target: Target) -> te.IterVar:
    """Products of a row of one operand with as many rows of the other as a vector has lanes.

    Each product has a vector of sums; these are turned in registers, to add up their lanes.
    """
    lanes = core_of(target).lanes(total.dtype)
    if total.op.attrs["transpose_a"] and not is_one(total.shape[-2]):
        _turn(s, total)
    stage, held = s[total], one(s.cache_write(total, "local"))
    *batch, i, j = stage.op.axis
    by_rows = _is_fewer(j.extent, i.extent, lanes)
    several, row = (i, j) if by_rows else (j, i)
    count = min(several.extent, lanes) if isinstance(several.extent, int) else lanes
    outer, inner = stage.split(several, factor=count)
    stage.reorder(*batch, outer, row, inner)
    stage.vectorize(inner)
    (k,) = s[held].op.reduce_axis
    _, lane = s[held].split(k, factor=lanes * max(4 // max(count, 1), 1))
    sums = one(s.rfactor(held, lane))
    s[held].compute_at(stage, row)
    (lane,) = s[held].op.reduce_axis
    *_, i, j = s[held].op.axis
    s[held].reorder(lane, *((j, i) if by_rows else (i, j)))
    s[held].unroll(lane)
    s[held].vectorize(i if by_rows else j)
    part = s[sums]
    part.compute_at(stage, row)
    part.transform_layout(lambda lane, *place: [*place, lane])
    *rows, lane = part.leaf_iter_vars[: len(sums.shape)]
    part.reorder(*part.op.reduce_axis, *rows, lane)
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


def _turn(s: te.Schedule, total: te.Tensor) -> None:
    """A copy of A with its last two axes exchanged in memory."""
    copy = s[s.cache_read(total.op.input_tensors[0], "global", [total])]
    copy.transform_layout(lambda *axes: [*axes[:-2], axes[-1], axes[-2]])
