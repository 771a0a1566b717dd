"""Running sums along an axis.

Along the first axis of several, each row of sums follows from the one before, a scan. Strips
of columns are so narrow that the row before is still in the first cache.

Several short rows are transposed, so that a vector has one element of each, and walked through so.

Elsewhere a sum that waits for the one before keeps one adder busy, and no vector. So the axis is
cut into groups of a few elements. The sums of groups are made first, and of groups of those, until
few are left; what comes before a group then follows from what comes before the group it is in:

    a0 a1 | a2 a3 | a4 a5 | a6 a7        elements
    b0      b1    | b2      b3           sums of groups: b1 = a2 + a3
    before a5  =  b0 + b1  +  a4

Along rows, the groups of a row are transposed, so that a vector has one element of each of several;
their sums follow from one another, and are transposed back.
"""

from __future__ import annotations

from pathlib import Path

from tecomp import Target, accesses, te
from tecomp.schedules.analysis.reduction import GroupedScan, grouped_scan_of, scanned
from tecomp.schedules.analysis.stages import is_own, is_scan
from tecomp.schedules.common import Size, product, round_up, wide_type
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of, transpose_squares, width_of
from tecomp.schedules.tiling.traversal import (
    are_long_rows_transposed,
    number_of,
    stream_large,
    transpose_where_used,
    transposed,
    walk_steps,
)

_ALONG, _ACROSS = 8, 4
"""Elements of a group: along memory a vector; across it rows, which if far apart by a power of two
share few places in the first cache, once to be read and once to be written."""
_SIDE = 16
_MANY = 8
"""Elements of a group that is transposed, and what the count of groups is a multiple of."""
_STEPS = 8
"""Steps through transposed rows that are written out: a sum waits for memory once for all."""
_LINE_BYTES = 64
_SOME = 4
"""Rows that are transposed where it is open how long they are."""
_LEVELS = 4
"""Times that groups are made where the extent is known at the call only: few are left of 2000."""


def define(
    A: te.Tensor,
    axis: int = -1,
    *,
    exclusive: bool = False,
    out_dtype: str | None = None,
    name: str = "cumsum",
) -> te.Tensor:
    """The sums of all elements of A up to each along an axis, as NumPy's function.

    Args:
        A: the tensor.
        axis: counted from the end if negative.
        exclusive: whether an element is left out of its own sum.
        out_dtype: type of the result; that of A if None. Narrow floats are added up in float32.
        name: of the result.

    Raises:
        ValueError: A has no such axis.

    >>> define(te.placeholder((4, 9), name="A"), axis=0).shape
    (4, 9)
    """
    rank = len(A.shape)
    if not -rank <= axis < rank:
        raise ValueError(
            f"cumsum.define: axis={axis} of {rank} axes; give a number from {-rank} to {rank - 1}"
        )
    axis %= rank
    dtype = out_dtype or A.dtype
    wide = wide_type(dtype)
    if axis == 0 and rank > 1 and dtype == wide:
        return _by_steps(A, exclusive, dtype, name)
    if axis == rank - 1 and (are_long_rows_transposed(A) or _are_open(A)):
        return _by_rows(A, exclusive, dtype, wide, name)
    extent = A.shape[axis]
    if axis == rank - 1 and isinstance(extent, int) and extent > _SIDE * _MANY:
        return _by_groups(A, extent, exclusive, dtype, wide, name)
    sums, group = [A], _group(A, axis)
    while _is_long(sums[-1].shape[axis], group, len(sums)):
        sums.append(_groups(sums[-1], axis, wide, f"{name}_groups{len(sums)}"))
    before = None
    for level in reversed(range(1, len(sums))):
        before = _running(sums[level], axis, wide, before, wide, False, f"{name}_before{level}")
    return _running(A, axis, wide, before, dtype, not exclusive, name)


def _are_open(A: te.Tensor) -> bool:
    """Whether only the call says how long rows are, and there are some: a vector has one of each.

    Groups of groups, as many as rows of any length need, take several times as long.
    """
    *rows, columns = A.shape
    count = product(rows)
    return not isinstance(columns, int) and (not isinstance(count, int) or count >= _SOME)


def _by_groups(
    A: te.Tensor, extent: int, exclusive: bool, dtype: str, wide: str, name: str
) -> te.Tensor:
    """Sums inside of groups along rows, which are transposed, and what comes before each group.

    Whole vectors of groups are made, with 0 in the place of what is missing; and in the place of
    the first element, where the rest moves on by one, if an element is left out of its own sum.
    """
    *rows, _ = A.shape
    whole, shift = round_up(extent, _SIDE * _MANY), int(exclusive)

    def moved(*i: te.Expr) -> te.Expr:
        place = i[-1] - shift
        inside = te.all(place >= 0, place < extent)
        return te.if_then_else(inside, A(*i[:-1], place), te.const(0, A.dtype))

    is_copied = exclusive or whole > extent
    padded = te.compute((*rows, whole), moved, name=f"{name}_padded") if is_copied else A
    columns = te.compute(
        (_SIDE, *rows, whole // _SIDE),
        lambda t, *i: te.cast(padded(*i[:-1], i[-1] * _SIDE + t), wide), name=f"{name}_transposed",
    )
    sums = _by_steps(columns, False, wide, f"{name}_sums")
    totals = te.compute(
        (whole // _SIDE, *rows), lambda group, *i: sums(_SIDE - 1, *i, group), name=f"{name}_totals"
    )
    before = _by_steps(totals, True, wide, f"{name}_before")

    def finish(*i: te.Expr) -> te.Expr:
        *row, place = i
        group = place // _SIDE
        return te.cast(before(group, *row) + sums(place % _SIDE, *row, group), dtype)

    return te.compute(A.shape, finish, name=name)


def _by_rows(A: te.Tensor, exclusive: bool, dtype: str, wide: str, name: str) -> te.Tensor:
    """Sums of rows that are transposed, transposed back."""
    *rows, _ = A.shape
    sums = _by_steps(transposed(A, wide, f"{name}_transposed"), exclusive, wide, f"{name}_sums")
    return te.compute(
        A.shape, lambda *i: te.cast(sums(i[-1], number_of(i[:-1], rows)), dtype), name=name
    )


def _by_steps(
    A: te.Tensor, exclusive: bool, dtype: str, name: str
) -> te.Tensor:
    """Each row of sums from the row before."""
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


def _at(index: tuple[te.Expr, ...], axis: int, place: te.Expr) -> tuple[te.Expr, ...]:
    return (*index[:axis], place, *index[axis + 1 :])


def _groups(A: te.Tensor, axis: int, wide: str, name: str) -> te.Tensor:
    """The sums of groups along the axis."""
    extent, group = A.shape[axis], _group(A, axis)
    t = te.reduce_axis((0, group), name="t")
    shape = (*A.shape[:axis], (extent + (group - 1)) // group, *A.shape[axis + 1 :])

    def total(*i: te.Expr) -> te.Expr:
        place = i[axis] * group + t
        value = te.cast(A(*_at(i, axis, place)), wide)
        return te.sum(value, axis=t, where=_inside(place, extent, group))

    return te.compute(shape, total, name=name)


def _inside(place: te.Expr, extent: Size, group: int) -> te.Expr | None:
    is_whole = isinstance(extent, int) and extent % group == 0
    return None if is_whole else place < extent


def _running(
    A: te.Tensor, axis: int, wide: str, before: te.Tensor | None, dtype: str, inclusive: bool,
    name: str,
) -> te.Tensor:
    """What comes before a group, and the elements of the group up to each.

    Along memory a vector is a group; each of its elements is added to all that follow, and 0 to
    the others.
    """
    extent, is_last = A.shape[axis], axis == len(A.shape) - 1
    length: Size = extent if before is None else _group(A, axis)
    t = te.reduce_axis((0, length), name="t")

    def inner(*i: te.Expr) -> te.Expr:
        group = i[axis] // length * length if before is not None else te.const(0, "int64")
        own = i[axis] - group
        counts = t <= own if inclusive else t < own
        value = te.cast(A(*_at(i, axis, group + t)), wide)
        if not is_last:
            return te.sum(value, axis=t, where=counts)
        value = te.Select(counts, value, te.const(0, wide))
        where = _inside(group + t, extent, _ALONG) if before is not None else None
        return te.sum(value, axis=t, where=where)

    within = te.compute(A.shape, inner, name=f"{name}_within")

    def finish(*i: te.Expr) -> te.Expr:
        value = within(*i)
        if before is not None:
            value = before(*_at(i, axis, i[axis] // length)) + value
        return te.cast(value, dtype)

    return te.compute(A.shape, finish, name=name)


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """A schedule for the result of `define`."""
    target = Target.of(target)
    s = te.create_schedule(output)
    if (groups := grouped_scan_of(output)) is not None:
        groups_at_root(s, groups, target)
        return s
    scans = [x for x in (output, *output.op.input_tensors) if is_scan(x)]
    if scans:
        # The result alone, or one that is transposed.
        walk_scan = walk_steps if scans[0] is output else _walk_rows
        walk_scan(s, output, target)
        return s
    axis = _axis_of(output)
    is_last = axis == len(output.shape) - 1
    stage, axes = s[output], list(s[output].op.axis)
    if is_last:
        place = stage.fuse(*axes[:-1])
    else:
        strip, axes[-1] = stage.split(axes[-1], factor=_strip(output, axis, target))
        outer = [x for k, x in enumerate(axes[:-1]) if k != axis]
        stage.reorder(*outer, strip, axes[axis], axes[-1])
        place = stage.fuse(*outer, strip)
    stage.parallel(place)
    walk = _along if is_last else _across
    walk(s, output, axes, axis, target)
    for groups, before in _levels(output):
        for x in (groups, before):
            s[x].compute_at(stage, place)
        _add_groups(s, groups, is_last, target)
        walk(s, before, list(s[before].op.axis), axis, target)
    return s


def _axis_of(output: te.Tensor) -> int:
    """The axis along which sums run: that of the index in which the sums inside of a group move."""
    within, _ = _parts(output)
    (t,) = within.op.reduce_axis
    (read,) = accesses(within).reads
    return next(k for k, index in enumerate(read.index) if index.coefficient(t))


def _parts(x: te.Tensor) -> tuple[te.Tensor, te.Tensor | None]:
    """What running sums are made of: the sums inside of groups, and what comes before a group."""
    (within,) = (y for y in x.op.input_tensors if y.op.reduce_axis)
    return within, next((y for y in x.op.input_tensors if y is not within), None)


def _levels(output: te.Tensor) -> list[tuple[te.Tensor, te.Tensor]]:
    """For each level the sums of groups, and what comes before each of them."""
    found: list[tuple[te.Tensor, te.Tensor]] = []
    _, before = _parts(output)
    while before is not None:
        within, next_ = _parts(before)
        found.append((within.op.input_tensors[0], before))
        before = next_
    return found


def groups_at_root(s: te.Schedule, d: GroupedScan, target: Target) -> None:
    """A row at a time: its groups transposed, summed a vector after the other, transposed back.

    Args:
        s: the schedule.
        d: the scan.
        target: for its vectors.
    """
    output, sums, before, columns = d.output, d.sums, d.before, d.columns
    for x in (*sums.op.input_tensors, *before.op.input_tensors, d.totals):
        s[x].compute_inline()
    stage, lanes = s[output], min(core_of(target).lanes(sums.dtype), d.size)
    *rows, last = output.op.axis
    whole, last = stage.split(last, nparts=1)
    group, own = stage.split(last, factor=d.size)
    transpose_squares(stage, group, own, lanes)
    row = stage.fuse(*rows, whole)
    stage.parallel(row)
    if int(str(last.extent)) * width_of(output) % _LINE_BYTES == 0:
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
        if is_own(s, padded, columns):
            s[padded].compute_at(stage, row)
            last = padded.op.axis[-1]
            _, lane = s[padded].split(last, factor=lanes_of(padded, last, target))
            s[padded].vectorize(lane)
    s[before].compute_at(stage, row)
    _, step = s[before].split(before.op.axis[0], factor=_STEPS)
    s[before].unroll(step)


def _walk_rows(s: te.Schedule, output: te.Tensor, target: Target) -> None:
    """Each row of a block in a lane of its own."""
    (sums,), stage = output.op.input_tensors, s[output]
    for part in sums.op.input_tensors:
        s[part].compute_inline()
    *rows, column = output.op.axis
    row = sums.op.axis[-1]
    lanes = lanes_of(sums, row, target)
    block, several = stage.split(stage.fuse(*rows), factor=lanes)
    transpose_squares(stage, several, column, lanes)
    stage.parallel(block)
    s[sums].compute_at(stage, block)
    s[sums].set_scope("local")
    _, step = s[sums].split(sums.op.axis[0], factor=_STEPS)
    s[sums].unroll(step)
    s[sums].vectorize(row)
    if (columns := scanned(sums)) is not None:
        transpose_where_used(s, columns, output, block, lanes)


def _strip(output: te.Tensor, axis: int, target: Target) -> int:
    """Columns of which the sums of groups stay in the second cache, and a line at least."""
    core, extent = core_of(target), output.shape[axis]
    lanes, rows = core.lanes(output.dtype), extent if isinstance(extent, int) else 4096
    most = core.second_cache // 2 // (max(rows // _ACROSS, 1) * width_of(output))
    size: int = max(most // lanes, 4) * lanes
    return size


def _add_groups(s: te.Schedule, x: te.Tensor, is_last: bool, target: Target) -> None:
    """A vector of sums; along memory their elements are read as squares, and transposed.

    That takes whole squares: where it is open how many there are, sums are made one by one.
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


def _along(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], axis: int, target: Target
) -> None:
    """A group is a vector."""
    groups, lane = s[x].split(axes[axis], factor=_ALONG)
    s[x].vectorize(lane)
    within, _ = _parts(x)
    s[within].compute_at(s[x], groups)
    s[within].set_scope("local")
    (t,) = s[within].op.reduce_axis
    s[within].reorder(t, s[within].op.axis[-1])
    s[within].unroll(t)
    s[within].vectorize(s[within].op.axis[-1])


def _across(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], axis: int, target: Target
) -> None:
    """A group is a few rows, a vector of each at a time."""
    groups, row = s[x].split(axes[axis], factor=_ACROSS)
    vectors, lane = s[x].split(axes[-1], factor=lanes_of(x, axes[-1], target))
    s[x].reorder(groups, vectors, row, lane)
    s[x].unroll(row)
    s[x].vectorize(lane)
    within, _ = _parts(x)
    s[within].compute_at(s[x], vectors)
    s[within].set_scope("local")
    own, lane = s[within].op.axis[axis], s[within].op.axis[-1]
    (t,) = s[within].op.reduce_axis
    s[within].reorder(own, t, lane)
    s[within].unroll(own)
    s[within].unroll(t)
    s[within].vectorize(lane)

