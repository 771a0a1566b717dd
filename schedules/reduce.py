"""Reductions over any axes of a tensor: sum, mean, product, maximum, minimum.

If the last axis is reduced, vector accumulators run along the rows. If the last axis is kept, full
rows are combined vector by vector, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from tecomp import Core, Target, accesses, knob, te
from tecomp.schedules.analysis.reduction import ReductionPattern, need_reduction
from tecomp.schedules.analysis.stages import create_inlined_schedule
from tecomp.schedules.common import ceil_div, is_one, product, values_around, wide_type
from tecomp.schedules.tiling.reduction import (
    LONG,
    NO_BOUNDS,
    VECTOR_OF_ROWS,
    Bounds,
    declared_maximum,
    first_output,
    fold,
    remaining_reduction_loops,
)
from tecomp.schedules.tiling.register_blocking import (
    balanced_block_size,
    core_of,
    elements_fitting_l1,
    lanes_of,
    width_of,
)
from tecomp.schedules.tiling.traversal import is_short

Operation = Literal["sum", "mean", "prod", "max", "min"]

_REDUCERS: Mapping[Operation, Callable[..., te.Expr]] = {
    op: getattr(te, "sum" if op == "mean" else op) for op in get_args(Operation)
}
_ROWS_PER_UPDATE = 8
"""Rows that are combined in registers before the result in memory is updated."""
_INTERLEAVED_ROWS = 2
"""Rows of constant length whose lanes are reduced together.

Their loops are unrolled, so each load instruction advances by all of these rows, and prefetchers
follow about 1 KB: sums of 63 float64 in memory take 19 ns a row for 2 rows and 72 for 4.
"""
_SYMBOLIC_INTERLEAVED_ROWS = 4
"""Rows of symbolic length whose lanes are reduced together; each has a loop of its own."""
_MAX_SHORT_VECTORS = 8
"""Vectors of a row up to which the lanes of several rows are reduced together."""
_SYMBOLIC_MAX_SHORT_VECTORS = 16
"""Vectors of a row of symbolic length up to which the lanes of several rows are reduced together.

Such rows are read one after the other. In caches, 65 float64 take 8 ns a row instead of 12, 255
float32 15 ns instead of 23; from 20 vectors on, several accumulators are as fast.
"""
_SHORT_SEARCH = 32
"""Vectors of a row of symbolic length up to which two rows are searched together.

Combining lanes takes several comparisons and selections of values and of indices.
"""
_MAX_TINY_ROW = 32
"""Elements of a row up to which vectors across rows are as fast as horizontal reductions.

Longer rows are transposed as well, up to a square: as many elements as there are rows in a vector.
With AVX-512, sums of 17 float32 in a cache take 2.2 ns a row and 2.8 as horizontal reductions, of
32 take 4.3 and 4.0.
"""
_MAX_ROW_OF_NARROW_TOTALS = 12
"""Elements of a row up to which vectors across rows are faster if totals are narrower than inputs.

The lanes of a narrow total are combined in fewer registers than the inputs fill: `any` of 9 int64
takes 2.5 ns a row, and 1.6 in vectors across rows; of 16 int64 2.2 and 3.0.
"""
_MAX_ROWS_ACROSS = 32
"""Rows of a vector across rows: larger squares exceed the registers when they are transposed."""
_RESERVED_REGISTERS = 4
"""Vector registers that hold no accumulator."""
_PART_BYTES = 128 * 1024
"""Bytes that justify a separate part when the cores split the reduction of one result."""


def define(
    A: te.Tensor,
    axis: int | Sequence[int] | None = None,
    op: Operation = "sum",
    *,
    keepdims: bool = False,
    out_dtype: str | None = None,
    name: str | None = None,
    tag: str = "",
) -> te.Tensor:
    """Define a reduction of `A` over some axes, as NumPy's function of the same name.

    Args:
        A: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes.
        op: Reduction: "sum", "mean", "prod", "max" or "min".
        keepdims: Whether reduced axes are kept with extent 1. Default: False.
        out_dtype: Dtype of the result. Default: the dtype of `A`. float16 and bfloat16 accumulate
            in float32.
        name: Name of the result. Default: `op`.
        tag: Tag of the operations.

    Raises:
        ValueError: If an axis is repeated or out of bounds, or if there is no axis to reduce.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> define(A, axis=(0, -1)).shape, define(A, axis=1, op="max", keepdims=True).shape
    ((5,), (4, 1, 6))
    """
    rank, name = len(A.shape), name or op
    reduced = _positions(axis, rank)
    if not reduced:
        raise ValueError("reduce.define: got no axis to reduce; pass at least one axis")
    runs = {k: te.reduce_axis((0, A.shape[k]), name=f"k{k}") for k in reduced}
    dtype = out_dtype or A.dtype
    wide_dtype = wide_type(dtype)
    shape = tuple(1 if k in runs else A.shape[k] for k in range(rank) if keepdims or k not in runs)

    def total(*axes: te.Expr) -> te.Expr:
        indices = iter(axes)
        where = {k: next(indices) for k in range(rank) if keepdims or k not in runs}
        value = A(*(runs[k] if k in runs else where[k] for k in range(rank)))
        return _REDUCERS[op](te.cast(value, wide_dtype), axis=list(runs.values()))

    if wide_dtype == dtype and op != "mean":
        return te.compute(shape, total, name=name, tag=tag)
    inner = te.compute(shape, total, name=f"{name}_wide", tag=tag)

    def finish(*axes: te.Expr) -> te.Expr:
        value: te.Expr = inner(*axes)
        if op == "mean":
            value = value / te.cast(product([A.shape[k] for k in reduced]), wide_dtype)
        return te.cast(value, dtype)

    return te.compute(shape, finish, name=name, tag=tag)


def _positions(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    found = [k + rank if k < 0 else k for k in axes]
    if any(not 0 <= k < rank for k in found) or len(set(found)) < len(found):
        raise ValueError(
            f"reduce.define: axis={axis} of {rank} axes is out of bounds or contains duplicates; "
            f"pass numbers from {-rank} to {rank - 1}, each axis once"
        )
    return sorted(found)


def describe(output: te.Tensor) -> ReductionPattern:
    """Return the roles of the axes of a reduction with an optional element-wise epilogue.

    Args:
        output: Result of `define`, or any tensor that reduces an element-wise expression.

    Raises:
        ScheduleError: If `output` is not a reduction, or the contiguous axis of its input is
            neither the last axis of the result nor a reduction axis.
    """
    return need_reduction(output, "reduce.describe")


def schedule(
    op: te.Tensor | ReductionPattern, target: str | Path | Target, bounds: Bounds = NO_BOUNDS
) -> te.Schedule:
    """Return a schedule for a reduction with an optional element-wise epilogue.

    Args:
        op: Result of `define`, any other tensor that is a reduction, or its description.
        target: Target whose vector registers and caches decide the sizes.
        bounds: Expected upper bounds of symbolic sizes, which only affect performance. Default:
            none.

    Raises:
        ScheduleError: If `describe` does not recognize the tensor as a reduction.
    """
    target = Target.of(target)
    d = need_reduction(op, "reduce.schedule")
    s: te.Schedule = create_inlined_schedule(d.output, d.between)
    reduce_at_root(s, d, target, bounds)
    return s


def reduce_at_root(
    s: te.Schedule, d: ReductionPattern, target: Target, bounds: Bounds = NO_BOUNDS
) -> None:
    """Schedule a reduction and its epilogue as a separate loop nest.

    Args:
        s: Schedule.
        d: Reduction.
        target: Target whose vector registers and caches decide the sizes.
        bounds: Expected upper bounds of symbolic sizes, which only affect performance. Default:
            none.
    """
    if d.columns == 1 and _are_short(d.total, target):
        _across_short_rows(s, d.output, d.total, target)
    elif d.columns:
        across_rows(s, d.output, d.total, d.columns, target)
    elif (columns := _columns_before(d, target)) is not None:
        _across_then_along(s, d, columns, target)
    elif _are_tiny(d, target):
        _vectors_of_rows(s, d, target)
    else:
        _along_rows(s, d, target, bounds)


def _columns_before(d: ReductionPattern, target: Target) -> int | None:
    """Return the number of trailing result axes that directly precede short rows in memory.

    The reduction must also run across these rows. Return None if rows are long, if fewer than
    `_ROWS_PER_UPDATE` rows are reduced across, or if the partial results of all elements exceed the
    cache budget.
    """
    row_runs, outer = d.runs[len(d.runs) - d.adjacent :], d.runs[: len(d.runs) - d.adjacent]
    row = product(axis.extent for axis in row_runs)
    lanes = core_of(target).lanes(d.total.dtype)
    if not outer or not isinstance(row, int) or row >= LONG * lanes:
        return None
    main = accesses(d.total).reads
    dims = max((read.axes for read in main if read.axes), key=len)[: -d.adjacent]
    columns = 0
    for result_axis, axis in zip(reversed(d.total.op.axis), reversed(dims), strict=False):
        columns += result_axis is axis and columns >= 0
        if result_axis is not axis:
            break
    elements = product(axis.extent for axis in d.total.op.axis)
    if not isinstance(elements, int) or elements * row > elements_fitting_l1(d.total, target):
        return None
    rows = product(axis.extent for axis in outer)
    return columns if not isinstance(rows, int) or rows >= _ROWS_PER_UPDATE else None


def _across_then_along(s: te.Schedule, d: ReductionPattern, columns: int, target: Target) -> None:
    """Combine short rows element-wise first, then reduce the elements of each row.

    The element-wise partial results stay in the first-level cache, as one row per outer iteration.
    """
    total = d.total
    row_runs = d.runs[len(d.runs) - d.adjacent :]
    s[total].reorder(*d.runs)
    last = s[total].fuse(*row_runs) if len(row_runs) > 1 else row_runs[0]
    partial = first_output(s.rfactor(total, last, factor_axis=len(total.shape)))
    stage, axes = s[partial], list(partial.op.axis)
    run = stage.fuse(*axes[len(axes) - 1 - columns :])
    lanes = lanes_of(partial, run, target)
    block_size = balanced_block_size(
        run.extent, max(ceil_div(_number(run), core_of(target).count), lanes), lanes
    )
    block, column = stage.split(run, factor=block_size)
    vectors, lane = stage.split(column, factor=lanes)
    outer = axes[: len(axes) - 1 - columns]
    stage.reorder(*outer, block, *remaining_reduction_loops(s, partial), vectors, lane)
    stage.parallel(stage.fuse(*outer, block))
    stage.vectorize(lane)


def _number(axis: te.IterVar) -> int:
    assert isinstance(axis.extent, int)
    return axis.extent


def _are_tiny(d: ReductionPattern, target: Target) -> bool:
    """Return whether rows are so short that vectors across rows are faster, and fill a vector.

    A symbolic number of rows is assumed to fill a vector.
    """
    row_count = next((n for n in reversed(d.total.shape) if not is_one(n)), 1)
    run, lanes = d.runs[-1].extent, _lanes_across(d, target)
    is_narrow = any(width_of(x) > width_of(d.total) for x in d.total.op.input_tensors)
    max_row = max(lanes, _MAX_ROW_OF_NARROW_TOTALS if is_narrow else _MAX_TINY_ROW)
    return (
        len(d.runs) == 1 and isinstance(run, int) and run <= max_row
        and lanes > 1 and (not isinstance(row_count, int) or row_count >= lanes)
    )


def _lanes_across(d: ReductionPattern, target: Target) -> int:
    """Return the number of rows of a vector across rows: loaded values fill one register."""
    widest = max(width_of(x) for x in (d.total, *d.total.op.input_tensors))
    lanes: int = min(core_of(target).vector_bytes // widest, _MAX_ROWS_ACROSS)
    return lanes


def _vectors_of_rows(s: te.Schedule, d: ReductionPattern, target: Target) -> None:
    """Schedule a vector of rows at a time: the first element of each row, then the second.

    A vector along a row would be mostly empty and need a horizontal reduction.
    """
    total = d.total
    if total is d.output:  # accumulate in registers instead of in the result
        total = first_output(s.cache_write(total, "local"))
    rows = _vectors(s, d.output, target, _lanes_across(d, target))
    s[d.output].parallel(rows)
    s[total].compute_at(s[d.output], rows)
    lane = next(axis for axis in reversed(s[total].op.axis) if not is_one(axis.extent))
    (run,) = remaining_reduction_loops(s, total)
    s[total].reorder(run, lane)
    s[total].vectorize(lane)
    s[total].unroll(run)


def _along_rows(s: te.Schedule, d: ReductionPattern, target: Target, bounds: Bounds) -> None:
    """Reduce one row or several rows per result, with vectors along the rows."""
    output, total, order = d.output, d.total, accesses(d.total).rising
    *outer, run = _loops_of_reduction(s, d, target)
    n_rows = _side_by_side(output, run, target, bounds, order is not None)
    if total is output:
        rows = group_loop = _groups(s, output, n_rows)
    else:
        # Rows that are reduced together become one vector of the result, which stays in a register.
        rows = _vectors(s, output, target, n_rows if n_rows >= VECTOR_OF_ROWS else None)
        s[total].compute_at(s[output], rows)
        group_loop = _groups(s, total, n_rows)
    s[output].parallel(rows)
    partial = total
    if (length := _part_length(total, [*outer, run], target)) is not None:
        parts, _ = s[total].split(outer[0] if outer else run, factor=length)
        partial = first_output(s.rfactor(total, parts, factor_axis=0))
        run = remaining_reduction_loops(s, partial)[-1]
        n_rows = _side_by_side(partial, run, target, bounds, order is not None)
        group_loop = _groups(s, partial, n_rows)
        s[partial].parallel(group_loop)
    fold(s, partial, run, group_loop, target, rows=n_rows, order=order)


def _side_by_side(
    x: te.Tensor, run: te.IterVar, target: Target, bounds: Bounds, is_search: bool
) -> int:
    """Return the number of rows reduced together: several if rows are short and numerous."""
    is_open = not isinstance(run.extent, int)
    length = bounds.get(run.extent, declared_maximum(run.extent)) if is_open else run.extent
    if length is None:
        return 1
    vectors, n_rows = ceil_div(length, lanes_of(x, run, target)), _INTERLEAVED_ROWS
    if is_open and vectors <= (_MAX_SHORT_VECTORS if is_search else _SYMBOLIC_MAX_SHORT_VECTORS):
        n_rows = _SYMBOLIC_INTERLEAVED_ROWS
    if is_open:
        is_long = vectors > (_SHORT_SEARCH if is_search else _SYMBOLIC_MAX_SHORT_VECTORS)
    else:
        is_long = vectors > _MAX_SHORT_VECTORS
    row_count = next((n for n in reversed(x.shape) if not is_one(n)), 1)
    count = product(x.shape)
    is_few = isinstance(count, int) and count < n_rows * core_of(target).count
    is_narrow = isinstance(row_count, int) and row_count < n_rows
    found = 1 if is_long or is_few or is_narrow else n_rows
    most = row_count if isinstance(row_count, int) else n_rows
    return knob("rows", [found, *(n for n in (1, 2, 4, 8) if n != found and n <= most)])


def _groups(s: te.Schedule, x: te.Tensor, group_size: int) -> te.IterVar:
    """Return a loop over the elements of `x`, or over groups of several along its last axis."""
    if group_size == 1:
        return _fused_axes(s, x)
    axes = list(s[x].op.axis)
    last = max(k for k, axis in enumerate(axes) if not is_one(axis.extent))
    groups, _ = s[x].split(axes[last], factor=group_size)
    return s[x].fuse(*axes[:last], groups)


def _vectors(
    s: te.Schedule, x: te.Tensor, target: Target, lanes: int | None = None
) -> te.IterVar:
    """Vectorize the last axis of `x` and return the loop over vectors, at least one per core."""
    axes, count = list(s[x].op.axis), product(x.shape)
    last = max((k for k, axis in enumerate(axes) if not is_one(axis.extent)), default=None)
    if last is None:
        return _fused_axes(s, x)
    lanes = lanes or lanes_of(x, axes[last], target)
    while isinstance(count, int) and lanes > 1 and count < lanes * core_of(target).count:
        lanes //= 2
    vectors, lane = s[x].split(axes[last], factor=lanes)
    s[x].vectorize(lane)
    return s[x].fuse(*axes[:last], vectors)


def _fused_axes(s: te.Schedule, x: te.Tensor) -> te.IterVar:
    return s[x].fuse(*s[x].op.axis)


def _loops_of_reduction(s: te.Schedule, d: ReductionPattern, target: Target) -> list[te.IterVar]:
    """Return the reduction loops; the last one is contiguous and fused until it is long."""
    total, outer, last = d.total, list(d.runs[:-1]), d.runs[-1]
    if any(a is not b for a, b in zip(d.runs, total.op.reduce_axis, strict=True)):
        s[total].reorder(*d.runs)
    lanes = lanes_of(total, last, target)
    for _ in range(d.adjacent - 1):
        if outer and is_short(last, lanes, LONG):
            last = s[total].fuse(outer.pop(), last)
    return [*outer, last]


def _part_length(
    total: te.Tensor, loops: Sequence[te.IterVar], target: Target
) -> int | None:
    """Return the extent of a part of the first loop if there are fewer rows than cores.

    Return None if the reduction is not split into parts.
    """
    core, extent = core_of(target), loops[0].extent
    rows = product(axis.extent for axis in total.op.axis)
    size = product(axis.extent for axis in loops)
    if not isinstance(rows, int) or not isinstance(size, int) or not isinstance(extent, int):
        return None
    parts: int = min(size * width_of(total) // _PART_BYTES, 4 * core.count, extent)
    if rows >= core.count or parts < 2:
        return None
    length: int = balanced_block_size(extent, extent // parts, 64 if len(loops) == 1 else 1)
    return length


def _are_short(total: te.Tensor, target: Target) -> bool:
    """Return whether rows are partial vectors and a row per lane fits the registers."""
    core, columns, run = core_of(target), total.shape[-1], total.op.reduce_axis[-1].extent
    lanes = core.lanes(total.dtype)
    if not isinstance(columns, int) or (isinstance(run, int) and run < lanes):
        return False
    return bool(columns % lanes > 0 and 1 < columns <= core.vector_registers - _RESERVED_REGISTERS)


def _across_short_rows(
    s: te.Schedule, output: te.Tensor, total: te.Tensor, target: Target
) -> None:
    """Accumulate as many rows as a vector has lanes, then reduce over these rows.

    For lane l and column c, p[l, c] = sum(A[k * lanes + l, c]), and r[c] = sum(p[l, c]).
    """
    *outer, last = s[output].op.axis
    single, _ = s[output].split(last, nparts=1)
    fused = s[output].fuse(*outer, single)
    s[output].parallel(fused)
    if total is not output:
        s[total].compute_at(s[output], fused)
        *rows, last = s[total].op.axis
        single, _ = s[total].split(last, nparts=1)
        fused = s[total].fuse(*rows, single)
    lanes = core_of(target).lanes(total.dtype)
    _, row = s[total].split(s[total].op.reduce_axis[-1], factor=lanes)
    partial = first_output(s.rfactor(total, row, factor_axis=len(outer)))
    s[partial].set_scope("local")
    s[partial].compute_at(s[total], fused)
    *_, row, column = s[partial].op.axis
    vectors, lane = s[partial].split(s[partial].fuse(row, column), factor=lanes)
    s[partial].reorder(*remaining_reduction_loops(s, partial), vectors, lane)
    s[partial].unroll(vectors)
    s[partial].vectorize(lane)


def across_rows(
    s: te.Schedule, output: te.Tensor, total: te.Tensor, columns: int, target: Target
) -> None:
    """Add a few rows at a time to the result, while a block of the result stays in a cache.

    A few rows are combined in a register first, so that the result is loaded and stored less often.
    Short rows that come from memory are read one by one in order, because the prefetcher then
    follows a single contiguous stream.

    Args:
        s: Schedule.
        output: Result.
        total: Reduction stage: `output` itself, or the stage that its epilogue reads.
        columns: Number of trailing axes that are contiguous in memory.
        target: Target whose vector registers and caches decide the sizes.
    """
    max_elements = knob("block", values_around(_elements_of_a_block(total, columns, target)))
    block, inside = _split_into_blocks(s, output, columns, max_elements, target)
    s[output].parallel(block)
    if total is not output:
        _, lane = s[output].split(inside[-1], factor=lanes_of(total, inside[-1], target))
        s[output].vectorize(lane)
        s[total].compute_at(s[output], block)
        inside = list(s[total].op.axis)
    partial = None
    update = 1 if _are_read_in_order(total, columns, target) else _ROWS_PER_UPDATE
    update = knob("rows_per_update", [update, *(n for n in (1, 2, 4, 8, 16) if n != update)])
    if update > 1:
        *outer, last = s[total].op.reduce_axis
        steps, _ = s[total].split(last, factor=update)
        partial = first_output(s.rfactor(total, s[total].fuse(*outer, steps), factor_axis=0))
    vectors, lane = s[total].split(inside[-1], factor=lanes_of(total, inside[-1], target))
    s[total].reorder(*s[total].op.reduce_axis, *inside[:-1], vectors, lane)
    s[total].vectorize(lane)
    if partial is None:
        return
    s[partial].set_scope("local")
    s[partial].compute_at(s[total], vectors)
    *elements, lane = s[partial].op.axis
    (row,) = s[partial].op.reduce_axis
    s[partial].reorder(*elements, row, lane)
    s[partial].unroll(row)
    s[partial].vectorize(lane)


def _are_read_in_order(total: te.Tensor, columns: int, target: Target) -> bool:
    """Return whether rows come from memory and several of them fit one page.

    Prefetching stops at the end of a page, so several long rows are as good as one.
    """
    row = product(total.shape[len(total.shape) - columns :])
    is_short = isinstance(row, int) and row * width_of(total) <= Core.PAGE_BYTES
    return is_short and _is_far(total, target)


def _elements_of_a_block(total: te.Tensor, columns: int, target: Target) -> int:
    """Return the result elements of a block: a cache-sized block, or the row's share of a core.

    The larger of the two is used if rows come from memory, limited by an eighth of the L2 cache.
    """
    core, size = core_of(target), elements_fitting_l1(total, target)
    row = product(total.shape[len(total.shape) - columns :])
    if not isinstance(row, int) or not _is_far(total, target):
        return int(size)
    return int(max(size, min(core.second_cache // 8 // width_of(total), ceil_div(row, core.count))))


def _is_far(total: te.Tensor, target: Target) -> bool:
    """Return whether the reduced tensor exceeds a quarter of the last-level cache."""
    count = product(axis.extent for axis in (*total.op.axis, *total.op.reduce_axis))
    width = min(x.dtype.bytes for x in total.op.input_tensors)
    return isinstance(count, int) and count * width > core_of(target).cache_bytes[-1] // 4


def _split_into_blocks(
    s: te.Schedule, x: te.Tensor, count: int, max_elements: int, target: Target
) -> tuple[te.IterVar, list[te.IterVar]]:
    """Split the elements of `x` into blocks that fit a cache several times.

    Args:
        s: Schedule.
        x: Stage.
        count: Number of trailing axes that are contiguous in memory.
        max_elements: Maximum elements of a block.
        target: Target whose vector registers decide the sizes.

    Returns:
        One loop over all blocks, and the loops inside a block.
    """
    stage, axes = s[x], list(s[x].op.axis)
    outer, last = axes[:-1], axes[-1]
    if not isinstance(last.extent, int) or last.extent > max_elements:
        size = balanced_block_size(last.extent, max_elements, lanes_of(x, last, target))
        block, inner = stage.split(last, factor=size)
        return stage.fuse(*outer, block), [inner]
    if count == 1:
        return stage.fuse(*outer), [last]
    block, inner = stage.split(outer[-1], factor=max(max_elements // max(last.extent, 1), 1))
    return stage.fuse(*outer[:-1], block), [inner, last]
