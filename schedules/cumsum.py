"""Cumulative sums along an axis.

Along the first axis of several, each row of sums depends on the previous one: a scan. Column strips
are narrow enough that the previous row is still in the first-level cache.

Multiple short rows are transposed, so that each lane of a vector belongs to a different row, and
scanned in that form.

Elsewhere a sequential scan would be bound by the latency of one adder and use no vectors. The axis
is therefore split into groups of a few elements. The sums of groups are computed first, then the
sums of groups of groups, until few are left. The exclusive prefix of a group then follows from the
prefix of the group that contains it:

    a0 a1 | a2 a3 | a4 a5 | a6 a7        elements
    b0      b1    | b2      b3           sums of groups: b1 = a2 + a3
    prefix of a5  =  b0 + b1  +  a4

Along rows, the groups of a row are transposed, so that each lane of a vector belongs to a different
group. The cumulative sums inside the groups are computed step by step and transposed back.
"""

from __future__ import annotations

from pathlib import Path

from tecomp import Core, Target, accesses, te
from tecomp.schedules.analysis.reduction import GroupedScan, match_grouped_scan, scan_input
from tecomp.schedules.analysis.stages import is_private_formula, is_scan
from tecomp.schedules.common import Size, product, round_up, wide_type
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of, transpose_squares, width_of
from tecomp.schedules.tiling.traversal import (
    are_long_rows_transposed,
    number_of,
    stream_large,
    transpose_last_axis_first,
    transpose_where_used,
    walk_steps,
)

_ALONG, _ACROSS = 8, 4
"""Elements of a group: a vector along memory, a few rows across memory.

Rows whose distance is a power of two share few sets of the first-level cache, and each row needs
one line for reads and one for writes.
"""
_SIDE = 16
_GROUP_MULTIPLE = 8
"""Divisor of the number of transposed groups, which have `_SIDE` elements each."""
_STEPS = 8
"""Scan steps that are unrolled, so that the state goes through memory once per `_STEPS` sums."""
_MIN_TRANSPOSED_ROWS = 4
"""Minimum number of rows that are transposed if the length of a row is symbolic."""
_LEVELS = 4
"""Levels of groups if the extent is symbolic; they reduce 2000 elements to a few."""


def define(
    A: te.Tensor,
    axis: int = -1,
    *,
    exclusive: bool = False,
    out_dtype: str | None = None,
    name: str = "cumsum",
) -> te.Tensor:
    """Define the cumulative sum along an axis, as NumPy's function.

    Args:
        A: Input tensor.
        axis: Axis along which to sum. Negative values count from the last axis. Default: the last
            axis.
        exclusive: Whether an element is excluded from its own sum. Default: False.
        out_dtype: Dtype of the result. Default: the dtype of `A`. float16 and bfloat16 accumulate
            in float32.
        name: Name of the result.

    Raises:
        ValueError: If `axis` is out of bounds.

    >>> define(te.placeholder((4, 9), name="A"), axis=0).shape
    (4, 9)
    """
    rank = len(A.shape)
    if not -rank <= axis < rank:
        raise ValueError(
            f"cumsum.define: axis={axis} of {rank} axes is out of bounds; pass a number "
            f"from {-rank} to {rank - 1}"
        )
    axis %= rank
    dtype = out_dtype or A.dtype
    accum = wide_type(dtype)
    if axis == 0 and rank > 1 and dtype == accum:
        return _by_steps(A, exclusive, dtype, name)
    if axis == rank - 1 and (are_long_rows_transposed(A) or _has_symbolic_rows(A)):
        return _by_rows(A, exclusive, dtype, accum, name)
    extent = A.shape[axis]
    if axis == rank - 1 and isinstance(extent, int) and extent > _SIDE * _GROUP_MULTIPLE:
        return _by_groups(A, extent, exclusive, dtype, accum, name)
    sums, group = [A], _group(A, axis)
    while _is_long(sums[-1].shape[axis], group, len(sums)):
        sums.append(_groups(sums[-1], axis, accum, f"{name}_groups{len(sums)}"))
    before = None
    for level in reversed(range(1, len(sums))):
        before = _cumulative_sums(
            sums[level], axis, accum, before, accum, False, f"{name}_before{level}"
        )
    return _cumulative_sums(A, axis, accum, before, dtype, not exclusive, name)


def _has_symbolic_rows(A: te.Tensor) -> bool:
    """Return whether rows have symbolic length and there are enough rows to use one per lane.

    Groups of groups, with enough levels for rows of any length, take several times as long.
    """
    *rows, columns = A.shape
    count = product(rows)
    return not isinstance(columns, int) and (
        not isinstance(count, int) or count >= _MIN_TRANSPOSED_ROWS
    )


def _by_groups(
    A: te.Tensor, extent: int, exclusive: bool, dtype: str, accum: str, name: str
) -> te.Tensor:
    """Compute sums inside transposed groups of each row, and the exclusive prefix of each group.

    Rows are padded with 0 to a multiple of full vectors of groups. For an exclusive sum, the row is
    also shifted by one element and starts with 0.
    """
    *rows, _ = A.shape
    full, shift = round_up(extent, _SIDE * _GROUP_MULTIPLE), int(exclusive)

    def shifted(*i: te.Expr) -> te.Expr:
        position = i[-1] - shift
        inside = te.all(position >= 0, position < extent)
        return te.if_then_else(inside, A(*i[:-1], position), te.const(0, A.dtype))

    is_copied = exclusive or full > extent
    padded = te.compute((*rows, full), shifted, name=f"{name}_padded") if is_copied else A
    columns = te.compute(
        (_SIDE, *rows, full // _SIDE),
        lambda t, *i: te.cast(padded(*i[:-1], i[-1] * _SIDE + t), accum), name=f"{name}_transposed",
    )
    sums = _by_steps(columns, False, accum, f"{name}_sums")
    totals = te.compute(
        (full // _SIDE, *rows), lambda group, *i: sums(_SIDE - 1, *i, group), name=f"{name}_totals"
    )
    before = _by_steps(totals, True, accum, f"{name}_before")

    def finish(*i: te.Expr) -> te.Expr:
        *row, position = i
        group = position // _SIDE
        return te.cast(before(group, *row) + sums(position % _SIDE, *row, group), dtype)

    return te.compute(A.shape, finish, name=name)


def _by_rows(A: te.Tensor, exclusive: bool, dtype: str, accum: str, name: str) -> te.Tensor:
    """Compute cumulative sums over transposed rows, and transpose them back."""
    *rows, _ = A.shape
    sums = _by_steps(
        transpose_last_axis_first(A, accum, f"{name}_transposed"), exclusive, accum, f"{name}_sums"
    )
    return te.compute(
        A.shape, lambda *i: te.cast(sums(i[-1], number_of(i[:-1], rows)), dtype), name=name
    )


def _by_steps(
    A: te.Tensor, exclusive: bool, dtype: str, name: str
) -> te.Tensor:
    """Compute each row of sums from the previous row with `te.scan`."""
    steps = A.shape[0]
    first = (1 if not isinstance(steps, int) else min(steps, 1), *A.shape[1:])
    zero = te.const(0, dtype)
    state = te.placeholder(A.shape, dtype, name=f"{name}_state")
    start = te.compute(
        first, lambda *i: zero if exclusive else te.cast(A(*i), dtype), name=f"{name}_start"
    )

    def rule(t: te.Expr, *i: te.Expr) -> te.Expr:
        return state(t - 1, *i) + te.cast(A(t - 1 if exclusive else t, *i), dtype)

    step = te.compute(A.shape, rule, name=f"{name}_step")
    return te.scan(start, step, state, [A], name=name)


def _group(A: te.Tensor, axis: int) -> int:
    return _ALONG if axis == len(A.shape) - 1 else _ACROSS


def _is_long(extent: Size, group: int, levels: int) -> bool:
    return extent > group if isinstance(extent, int) else levels < _LEVELS


def _at(index: tuple[te.Expr, ...], axis: int, position: te.Expr) -> tuple[te.Expr, ...]:
    return (*index[:axis], position, *index[axis + 1 :])


def _groups(A: te.Tensor, axis: int, accum: str, name: str) -> te.Tensor:
    """Return the sums of groups along the axis."""
    extent, group = A.shape[axis], _group(A, axis)
    t = te.reduce_axis((0, group), name="t")
    shape = (*A.shape[:axis], (extent + (group - 1)) // group, *A.shape[axis + 1 :])

    def total(*i: te.Expr) -> te.Expr:
        position = i[axis] * group + t
        value = te.cast(A(*_at(i, axis, position)), accum)
        return te.sum(value, axis=t, where=_inside(position, extent, group))

    return te.compute(shape, total, name=name)


def _inside(position: te.Expr, extent: Size, group: int) -> te.Expr | None:
    is_multiple = isinstance(extent, int) and extent % group == 0
    return None if is_multiple else position < extent


def _cumulative_sums(
    A: te.Tensor, axis: int, accum: str, before: te.Tensor | None, dtype: str, inclusive: bool,
    name: str,
) -> te.Tensor:
    """Return the cumulative sums: the prefix of the group plus the sum inside the group.

    Along memory a group is a vector: each of its elements is added to all following lanes, and 0 to
    the other lanes.
    """
    extent, is_last = A.shape[axis], axis == len(A.shape) - 1
    length: Size = extent if before is None else _group(A, axis)
    t = te.reduce_axis((0, length), name="t")

    def inner(*i: te.Expr) -> te.Expr:
        group = i[axis] // length * length if before is not None else te.const(0, "int64")
        position = i[axis] - group
        counts = t <= position if inclusive else t < position
        value = te.cast(A(*_at(i, axis, group + t)), accum)
        if not is_last:
            return te.sum(value, axis=t, where=counts)
        value = te.Select(counts, value, te.const(0, accum))
        where = _inside(group + t, extent, _ALONG) if before is not None else None
        return te.sum(value, axis=t, where=where)

    group_sums = te.compute(A.shape, inner, name=f"{name}_within")

    def finish(*i: te.Expr) -> te.Expr:
        value = group_sums(*i)
        if before is not None:
            value = before(*_at(i, axis, i[axis] // length)) + value
        return te.cast(value, dtype)

    return te.compute(A.shape, finish, name=name)


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`."""
    target = Target.of(target)
    s = te.create_schedule(output)
    if (groups := match_grouped_scan(output)) is not None:
        groups_at_root(s, groups, target)
        return s
    scans = [x for x in (output, *output.op.input_tensors) if is_scan(x)]
    if scans:
        # The scan is either the result itself or an input that is transposed into the result.
        schedule_scan = walk_steps if scans[0] is output else _schedule_transposed_rows
        schedule_scan(s, output, target)
        return s
    axis = _summed_axis(output)
    is_last = axis == len(output.shape) - 1
    stage, axes = s[output], list(s[output].op.axis)
    if is_last:
        fused = stage.fuse(*axes[:-1])
    else:
        strip, axes[-1] = stage.split(axes[-1], factor=_strip(output, axis, target))
        outer = [x for k, x in enumerate(axes[:-1]) if k != axis]
        stage.reorder(*outer, strip, axes[axis], axes[-1])
        fused = stage.fuse(*outer, strip)
    stage.parallel(fused)
    walk = _schedule_vector_groups if is_last else _schedule_row_groups
    walk(s, output, axes, axis, target)
    for groups, before in _levels(output):
        for x in (groups, before):
            s[x].compute_at(stage, fused)
        _add_groups(s, groups, is_last, target)
        walk(s, before, list(s[before].op.axis), axis, target)
    return s


def _summed_axis(output: te.Tensor) -> int:
    """Return the axis of the cumulative sum, along which the reads inside a group move."""
    group_sums, _ = _parts(output)
    (t,) = group_sums.op.reduce_axis
    (read,) = accesses(group_sums).reads
    return next(k for k, index in enumerate(read.index) if index.coefficient(t))


def _parts(x: te.Tensor) -> tuple[te.Tensor, te.Tensor | None]:
    """Return the terms of cumulative sums: sums inside groups, and prefixes of groups or None."""
    (group_sums,) = (y for y in x.op.input_tensors if y.op.reduce_axis)
    return group_sums, next((y for y in x.op.input_tensors if y is not group_sums), None)


def _levels(output: te.Tensor) -> list[tuple[te.Tensor, te.Tensor]]:
    """Return for each level the stage of the group sums and the stage of their prefixes."""
    found: list[tuple[te.Tensor, te.Tensor]] = []
    _, before = _parts(output)
    while before is not None:
        group_sums, next_ = _parts(before)
        found.append((group_sums.op.input_tensors[0], before))
        before = next_
    return found


def groups_at_root(s: te.Schedule, d: GroupedScan, target: Target) -> None:
    """Schedule a grouped scan row by row: transpose the groups, sum vectors, transpose back.

    Args:
        s: Schedule.
        d: Description of the grouped scan.
        target: Target whose vector registers decide the sizes.
    """
    output, sums, before, columns = d.output, d.sums, d.before, d.columns
    for x in (*sums.op.input_tensors, *before.op.input_tensors, d.totals):
        s[x].compute_inline()
    stage, lanes = s[output], min(core_of(target).lanes(sums.dtype), d.size)
    *rows, last = output.op.axis
    single, last = stage.split(last, nparts=1)
    group, in_group = stage.split(last, factor=d.size)
    transpose_squares(stage, group, in_group, lanes)
    row = stage.fuse(*rows, single)
    stage.parallel(row)
    if int(str(last.extent)) * width_of(output) % Core.LINE_BYTES == 0:
        stream_large(s, output, target)
    s[sums].compute_at(stage, row)
    step, *rows, group = sums.op.axis
    groups, lane = s[sums].split(group, factor=lanes)
    s[sums].reorder(*rows, groups, step, lane)
    s[sums].unroll(step)
    s[sums].vectorize(lane)
    s[columns].compute_at(s[sums], groups)
    s[columns].set_scope("local")
    step, *_, lane = columns.op.axis
    s[columns].reorder(*columns.op.axis[1:-1], step, lane)
    s[columns].unroll(step)
    s[columns].vectorize(lane)
    for padded in columns.op.input_tensors:
        if is_private_formula(s, padded, columns):
            s[padded].compute_at(stage, row)
            last = padded.op.axis[-1]
            _, lane = s[padded].split(last, factor=lanes_of(padded, last, target))
            s[padded].vectorize(lane)
    s[before].compute_at(stage, row)
    _, step = s[before].split(before.op.axis[0], factor=_STEPS)
    s[before].unroll(step)


def _schedule_transposed_rows(s: te.Schedule, output: te.Tensor, target: Target) -> None:
    """Schedule a block of rows with one row per lane."""
    (sums,), stage = output.op.input_tensors, s[output]
    for part in sums.op.input_tensors:
        s[part].compute_inline()
    *rows, column = output.op.axis
    row = sums.op.axis[-1]
    lanes = lanes_of(sums, row, target)
    block, lane_row = stage.split(stage.fuse(*rows), factor=lanes)
    transpose_squares(stage, lane_row, column, lanes)
    stage.parallel(block)
    s[sums].compute_at(stage, block)
    s[sums].set_scope("local")
    _, step = s[sums].split(sums.op.axis[0], factor=_STEPS)
    s[sums].unroll(step)
    s[sums].vectorize(row)
    if (columns := scan_input(sums)) is not None:
        transpose_where_used(s, columns, output, block, lanes)


def _strip(output: te.Tensor, axis: int, target: Target) -> int:
    """Return the columns of a strip: their group sums fit the L2 cache; at least four vectors."""
    core, extent = core_of(target), output.shape[axis]
    lanes, rows = core.lanes(output.dtype), extent if isinstance(extent, int) else 4096
    max_columns = core.second_cache // 2 // (max(rows // _ACROSS, 1) * width_of(output))
    size: int = max(max_columns // lanes, 4) * lanes
    return size


def _add_groups(s: te.Schedule, x: te.Tensor, is_last: bool, target: Target) -> None:
    """Vectorize the sums of groups; along memory, squares are loaded and transposed.

    Squares must be full, so sums remain scalar along memory if their number is symbolic.
    """
    *_, last = s[x].op.axis
    if is_last and not isinstance(last.extent, int):
        return
    lanes = lanes_of(x, last, target)
    vectors, lane = s[x].split(last, factor=min(lanes, _ALONG) if is_last else lanes)
    (t,) = s[x].op.reduce_axis
    s[x].reorder(vectors, t, lane)
    s[x].unroll(t)
    s[x].vectorize(lane)


def _schedule_vector_groups(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], axis: int, target: Target
) -> None:
    """Schedule groups along memory as one vector each."""
    groups, lane = s[x].split(axes[axis], factor=_ALONG)
    s[x].vectorize(lane)
    group_sums, _ = _parts(x)
    s[group_sums].compute_at(s[x], groups)
    s[group_sums].set_scope("local")
    (t,) = s[group_sums].op.reduce_axis
    s[group_sums].reorder(t, s[group_sums].op.axis[-1])
    s[group_sums].unroll(t)
    s[group_sums].vectorize(s[group_sums].op.axis[-1])


def _schedule_row_groups(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], axis: int, target: Target
) -> None:
    """Schedule groups across memory as a few rows each, one vector of every row at a time."""
    groups, row = s[x].split(axes[axis], factor=_ACROSS)
    vectors, lane = s[x].split(axes[-1], factor=lanes_of(x, axes[-1], target))
    s[x].reorder(groups, vectors, row, lane)
    s[x].unroll(row)
    s[x].vectorize(lane)
    group_sums, _ = _parts(x)
    s[group_sums].compute_at(s[x], vectors)
    s[group_sums].set_scope("local")
    group_row, lane = s[group_sums].op.axis[axis], s[group_sums].op.axis[-1]
    (t,) = s[group_sums].op.reduce_axis
    s[group_sums].reorder(group_row, t, lane)
    s[group_sums].unroll(group_row)
    s[group_sums].unroll(t)
    s[group_sums].vectorize(lane)

