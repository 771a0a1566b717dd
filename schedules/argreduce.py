"""Index of the first maximum or minimum along an axis.

Across rows, an index is reduced together with each value. Along rows that would take several
instructions per element, whereas a value is found again cheaply while its row is in the first-level
cache. The schedule therefore computes the extreme of each block of the row at the speed of any
maximum, then finds the first block that contains the extreme of the row, then the first position in
that block. The first position may also be searched in the whole row, which is faster for rows of
symbolic length that fit the first-level cache. Short rows are transposed instead, so that each lane
of a vector belongs to a different row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from tecomp import Target, accesses, te
from tecomp.schedules.analysis.reduction import need_reduction
from tecomp.schedules.analysis.stages import is_private_formula
from tecomp.schedules.common import Size, product
from tecomp.schedules.reduce import across_rows
from tecomp.schedules.tiling.reduction import fold
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of
from tecomp.schedules.tiling.traversal import (
    are_transposed,
    number_of,
    transpose_last_axis_first,
    transpose_where_used,
)
from tecomp.schedules.transpose import describe

Operation = Literal["argmax", "argmin"]

_BLOCK = 256
"""Maximum elements of a block of a row; one block per row is searched a second time."""
_OPEN_BLOCK = 64
"""Elements of a block if the length is symbolic; short rows leave most of a block empty."""


def define(
    A: te.Tensor,
    axis: int = -1,
    op: Operation = "argmax",
    *,
    out_dtype: str = "int64",
    name: str | None = None,
    has_short_rows: bool = False,
) -> te.Tensor:
    """Define the index of the first maximum or minimum along an axis, as in NumPy.

    NaN counts as both maximum and minimum.

    Args:
        A: Input tensor, whose reduced axis has at least one element.
        axis: Axis to reduce. Negative values count from the last axis. Default: the last axis.
        op: Reduction, "argmax" or "argmin".
        out_dtype: Dtype of the indices.
        name: Name of the result. Default: `op`.
        has_short_rows: Whether rows of symbolic length are searched as a whole instead of in
            blocks. This only affects performance. Default: False.

    Returns:
        Tensor of indices without the reduced axis.

    Raises:
        ValueError: If `axis` is out of bounds, or statically known to be empty.

    >>> define(te.placeholder((4, 9), name="A"), axis=0).shape
    (9,)
    """
    rank, name = len(A.shape), name or op
    if not -rank <= axis < rank:
        raise ValueError(
            f"argreduce.define: axis={axis} of {rank} axes is out of bounds; pass a number "
            f"from {-rank} to {rank - 1}"
        )
    axis %= rank
    extent = A.shape[axis]
    if isinstance(extent, int) and extent == 0:
        raise ValueError(
            f"argreduce.define: axis {axis} of {A.name} has no elements; pass at least one element"
        )
    if axis == rank - 1 and are_transposed(A):
        rows = A.shape[:-1]
        position = _across(transpose_last_axis_first(A, A.dtype, f"{name}_transposed"), 0, op, name)
        return te.compute(
            rows, lambda *i: te.cast(position(number_of(i, rows)), out_dtype), name=name
        )
    if axis < rank - 1:
        position = _across(A, axis, op, name)
    elif has_short_rows and not isinstance(extent, int):
        position = _search_whole_rows(A, extent, op, name)
    else:
        position = _reduce_last_axis(A, axis, op, name)
    return te.compute(position.shape, lambda *i: te.cast(position(*i), out_dtype), name=name)


def index_type(A: te.Tensor, extent: Size) -> str:
    """Return the dtype of the indices that are reduced together with values.

    int32 is chosen if the indices fit and the values are not wider than 32 bits, because vectors of
    wider indices have fewer lanes. An extent of dtype int32 fits.

    Args:
        A: Tensor of values.
        extent: Extent of the axis.

    >>> A = te.placeholder((te.size_var("n"), 9), "float32", name="A")
    >>> [index_type(A, n) for n in (9, 1 << 31, te.size_var("n"), te.size_var("n", "int64"))]
    ['int32', 'int64', 'int32', 'int64']
    """
    is_small = extent < 1 << 31 if isinstance(extent, int) else extent.dtype == "int32"
    return "int32" if is_small and A.dtype.bytes <= 4 else "int64"


def _across(A: te.Tensor, axis: int, op: Operation, name: str) -> te.Tensor:
    """Reduce values and their indices jointly."""
    extent = A.shape[axis]
    k = te.reduce_axis((0, extent), name="k")
    index = te.cast(k, index_type(A, extent))
    shape = (*A.shape[:axis], *A.shape[axis + 1 :])
    position, _ = te.compute(
        shape,
        lambda *i: first_of(A.dtype, op)((index, A(*i[:axis], k, *i[axis:])), axis=k),
        name=f"{name}_found",
    )
    assert isinstance(position, te.Tensor)
    return position


def first_of(dtype: str, op: Operation) -> Callable[..., tuple[te.Expr, ...]]:
    """Return a reducer of (index, value) pairs that keeps the first of equal values.

    The index of the result is thus the smallest one if the reduction is in ascending order.
    """
    is_float = te.const(1, dtype).dtype.is_float

    def combine(x: Sequence[te.Expr], y: Sequence[te.Expr]) -> list[te.Expr]:
        is_better = y[1] > x[1] if op == "argmax" else y[1] < x[1]
        if is_float:
            # Comparisons with NaN are False: a NaN `y` is then taken unless `x` is NaN already.
            is_worse = y[1] <= x[1] if op == "argmax" else y[1] >= x[1]
            is_better = te.all(te.logical_not(is_worse), x[1] == x[1])
        return [te.Select(is_better, y[n], x[n]) for n in (0, 1)]

    def neutral(index: str, value: str) -> list[te.Expr]:
        return [te.const(0, index), _worst(value, op)]

    return te.comm_reducer(combine, neutral, name=op)


def _worst(dtype: str, op: Operation) -> te.Expr:
    return te.lower_bound(dtype) if op == "argmax" else te.upper_bound(dtype)


def _reduce_last_axis(A: te.Tensor, axis: int, op: Operation, name: str) -> te.Tensor:
    """Compute the extremes of blocks of the last axis, and search the extreme of the row again.

    The last block starts early enough to be a full block.
    """
    extent, extreme = A.shape[axis], {"argmax": te.max, "argmin": te.min}[op]
    length = min(_BLOCK, extent) if isinstance(extent, int) else _OPEN_BLOCK
    blocks, dtype = (extent + (length - 1)) // length, index_type(A, extent)
    last, end = te.max(extent - length, 0), te.cast(extent, dtype)
    r, b, c, k = (
        te.reduce_axis((0, size), name=x)
        for x, size in (("r", length), ("b", blocks), ("c", blocks), ("k", length))
    )

    def start(block: te.Expr) -> te.Expr:
        return te.min(block * length, last)

    def inside(index: te.Expr) -> te.Expr | None:
        return None if isinstance(extent, int) else index < extent

    rows = A.shape[:-1]
    peaks = te.compute(
        (*rows, blocks),
        lambda *i: extreme(A(*i[:-1], start(i[-1]) + r), axis=r, where=inside(start(i[-1]) + r)),
        name=f"{name}_peaks",
    )
    peak = te.compute(rows, lambda *i: extreme(peaks(*i, b), axis=b), name=f"{name}_most")
    begin = te.compute(
        rows,
        lambda *i: te.min(
            te.cast(te.Select(_is_found(peaks(*i, c), peak(*i)), start(c), last), dtype), axis=c
        ),
        name=f"{name}_begin",
    )

    def place(*i: te.Expr) -> te.Expr:
        # The index is always in bounds; the explicit clamp makes a bounds check at run time
        # unnecessary. A conversion of the sum would hide that elements are contiguous.
        index_dtype = "int64" if isinstance(extent, int) else extent.dtype
        index = te.max(te.min(te.cast(begin(*i), index_dtype), last), 0) + k
        found = _is_found(A(*i, index), peak(*i))
        return te.min(te.Select(found, te.cast(index, dtype), end), axis=k, where=inside(index))

    return te.compute(rows, place, name=f"{name}_found")


def _search_whole_rows(A: te.Tensor, extent: te.Expr, op: Operation, name: str) -> te.Tensor:
    """Compute the extreme of each row, and search it in the whole row."""
    extreme = te.max if op == "argmax" else te.min
    dtype = index_type(A, extent)
    r, k = (te.reduce_axis((0, extent), name=x) for x in ("r", "k"))
    rows, end = A.shape[:-1], te.cast(extent, dtype)
    extremum = te.compute(rows, lambda *i: extreme(A(*i, r), axis=r), name=f"{name}_most")
    return te.compute(
        rows,
        lambda *i: te.min(
            te.Select(_is_found(A(*i, k), extremum(*i)), te.cast(k, dtype), end), axis=k
        ),
        name=f"{name}_found",
    )


def _is_found(value: te.Expr, expected: te.Expr) -> te.Expr:
    """Return whether a value equals the expected value or is NaN."""
    is_equal = value == expected
    return te.any(is_equal, te.isnan(value)) if value.dtype.is_float else is_equal


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`."""
    target = Target.of(target)
    s = te.create_schedule(output)
    (found,) = output.op.input_tensors
    if found.op.num_outputs > 1:
        (values,) = {read.tensor for read in accesses(found).reads}
        if is_private_formula(s, values, found.op.output(0)) and describe(values) is not None:
            _schedule_row_per_lane(s, output, found, values, target)
        else:
            columns = need_reduction(found, "argreduce.schedule").columns
            across_rows(s, output, found, columns, target)
        return s
    stages = _block_stages(found)
    row = s[output].fuse(*output.op.axis)
    s[output].parallel(row)
    rows = product(output.shape)
    is_shared = isinstance(rows, int) and rows < core_of(target).count
    for x in (found, *stages):
        fused = s[x].fuse(*x.op.axis)
        if is_shared and len(stages) > 1 and x is stages[-1]:
            s[x].parallel(fused)
        else:
            s[x].compute_at(s[output], row)
        fold(s, x, x.op.reduce_axis[0], fused, target)
    return s


def _block_stages(found: te.Tensor) -> tuple[te.Tensor, ...]:
    """Return the stages of the start of the block, the row extreme, and the block extremes.

    Rows that are searched as a whole have a row extreme only.
    """
    reductions = [x for x in found.op.input_tensors if x.op.reduce_axis]
    begin = next((
        x for x in reductions if any(x is not y and y in x.op.input_tensors for y in reductions)
    ), None)
    if begin is None:
        return tuple(reductions)
    extremum = next(x for x in reductions if x in begin.op.input_tensors)
    (peaks,) = extremum.op.input_tensors
    return begin, extremum, peaks


def _schedule_row_per_lane(
    s: te.Schedule, output: te.Tensor, found: te.Tensor, values: te.Tensor, target: Target
) -> None:
    """Schedule one row per lane, which carries its extreme and its index."""
    stage, (row,) = s[found], found.op.axis
    lanes = lanes_of(found, row, target)
    block, lane = s[output].split(s[output].fuse(*output.op.axis), factor=lanes)
    s[output].vectorize(lane)
    s[output].parallel(block)
    stage.compute_at(s[output], block)
    stage.set_scope("local")
    stage.reorder(*stage.op.reduce_axis, row)
    stage.vectorize(row)
    transpose_where_used(s, values, output, block, lanes)
