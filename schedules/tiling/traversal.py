"""Traversal orders: streaming, scan steps, and transposed short rows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from tecomp import Accesses, Core, Target, knob, te
from tecomp.schedules.analysis.pointwise_chains import (
    are_counted,
    invariant_cost,
    longest_path,
    reads_of_chain,
    work_of_chain,
)
from tecomp.schedules.analysis.reduction import has_own_columns
from tecomp.schedules.common import Size, ceil_div, product, round_up, values_around
from tecomp.schedules.tiling.register_blocking import (
    balanced_block_size,
    core_of,
    elements_fitting_l1,
    lanes_of,
    transpose_squares,
    width_of,
)

_STEPS = 16
"""Scan steps that are unrolled, so that the state goes through memory once per `_STEPS` steps."""
_MAX_LATENCY_BOUND_VECTORS = 2
"""Maximum vectors of a step for which the latency of the previous step dominates."""


def walk_steps(
    s: te.Schedule, scan: te.Tensor, target: Target, roots: Container[te.Tensor] | None = None
) -> None:
    """Schedule a scan in column strips, row by row inside a strip.

    If columns depend on other columns, the rows are the outer loop instead. Axes of static extents
    are fused first, so that short rows do not make narrow strips. Element-wise inputs of the steps
    are inlined, except those in `roots`.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (steps, *axes) = s[scan], list(scan.op.axis)
    if not axes:
        _unroll_steps(stage, steps, _STEPS)
        return
    is_per_column = has_own_columns(scan)
    is_across = is_per_column and len(axes) == 1 and _is_read_across(scan, roots)
    if all(isinstance(axis.extent, int) for axis in axes):
        axes = [stage.fuse(*axes)]
    core, last = core_of(target), axes.pop()
    lanes, strip_size = core.lanes(scan.dtype), elements_fitting_l1(scan, target)
    if isinstance(last.extent, int):
        strip_size = min(strip_size, max(ceil_div(last.extent, core.count), 1))
    strip_size = lanes if is_across else round_up(strip_size, lanes)
    strip, column = stage.split(last, factor=strip_size)
    vectors, lane = stage.split(column, factor=lanes_of(scan, last, target))
    rows = [steps]
    if is_across:
        # Squares are loaded in memory order and transposed in registers.
        rows = _unroll_steps(stage, steps, lanes)
    elif (
        is_per_column and isinstance(last.extent, int)
        and min(last.extent, strip_size) <= _MAX_LATENCY_BOUND_VECTORS * lanes
    ):
        rows = _unroll_steps(stage, steps, _STEPS)
    strips = [*axes, strip]
    stage.reorder(*([*strips, *rows] if is_per_column else [*rows, *strips]), vectors, lane)
    stage.parallel(stage.fuse(*strips))
    stage.vectorize(lane)


def _unroll_steps(stage: te.Stage, steps: te.IterVar, count: int) -> list[te.IterVar]:
    """Split and unroll `count` steps, which then wait for memory once."""
    rows, row = stage.split(steps, factor=count)
    stage.unroll(row)
    return [rows, row]


def _is_read_across(scan: te.Tensor, roots: Container[te.Tensor] | None) -> bool:
    """Return whether the inputs of the steps are contiguous along the steps, not along the rows."""
    *_, step = scan.op.input_tensors
    return any(
        read.dims and read.dims[-1] == 0 and len(step.op.axis) - 1 in read.used
        for read in reads_of_chain(step, roots)
    )


def walk_transposed(s: te.Schedule, output: te.Tensor, scan: te.Tensor, target: Target) -> None:
    """Schedule a scan with its steps along the rows of `output`, one row per lane.

    Inputs and results of the steps are transposed in squares.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (row, column) = s[output], output.op.axis
    steps, lane = scan.op.axis
    lanes = lanes_of(scan, lane, target)
    block, lane_row = stage.split(row, factor=lanes)
    transpose_squares(stage, lane_row, column, lanes)
    stage.parallel(block)
    s[scan].compute_at(stage, block)
    s[scan].set_scope("local")
    _, step = s[scan].split(steps, factor=lanes)
    s[scan].unroll(step)
    s[scan].vectorize(lane)


_STREAM = "global.stream"

_LONG_ROW_LINES = 32
"""Minimum lines of a row for which a partial line at its end is negligible."""

_VECTORS = 2
"""Vectors per iteration for short expressions and for chains of dependent function calls.

Short expressions have noticeable loop overhead. In chains of functions, the distance to the next
independent operation exceeds the out-of-order window of processors. With the constants
of other expressions, two vectors would exceed the registers.
"""

_ROWS = 8
"""Rows of a loop over several rows with hoisted invariants, which pays from one function on."""

_MIN_ROWS_PER_CORE = 4
"""Minimum rows per core for which no row is split, as all cores finish at about the same time."""

_MIN_SCALAR_LANES = 8
"""Lanes of a vector whose lanes are loaded or stored separately.

Each lane takes a few instructions, so more lanes gain nothing.
"""

_MAX_FUSED_ROW_VECTORS = 4
"""Maximum vectors of a row that is fused with the next rows."""


def stream(
    s: te.Schedule, output: te.Tensor, target: Target, count: int,
    roots: Container[te.Tensor] | None = None, *, one_by_one: bool = False,
) -> None:
    """Traverse memory in order, one vector at a time, in chunks distributed over the cores.

    A chunk fits the first-level cache several times: long enough to pay for its start, and short
    enough for a chunk per core.

    Args:
        s: Schedule.
        output: Stage.
        target: Target whose vector registers and caches decide the sizes.
        count: Number of trailing axes that can be fused.
        roots: Element-wise inputs that are in memory and not inlined. Default: none.
        one_by_one: Whether the lanes of some tensor are loaded or stored separately. Default:
            False.
    """
    stage = s[output]
    *rows, last = stage.op.axis
    loop, unit = last, 1
    if count > 1 and not isinstance(last.extent, int):
        # One fused loop suits rows of any symbolic length. It does not pay if axis numbers are
        # values, because each lane would need divisions to recover them.
        if not are_counted(output, count, roots):
            loop = stage.fuse(*stage.op.axis[-count:])
            del rows[len(rows) + 1 - count :]
    elif count > 1 and is_short(last, lanes_of(output, last, target)):
        loop, unit = stage.fuse(rows.pop(), last), max(int(str(last.extent)), 1)
    lanes = lanes_of(output, loop, target)
    if isinstance(loop.extent, int) and lanes < loop.extent < _lanes_of_register(output, target):
        lanes *= 2  # One partial vector takes fewer operations than two vectors.
    # A row of symbolic length may be short and consist mostly of its tail.
    is_open = bool(rows) and not isinstance(loop.extent, int)
    is_short_row = is_open or is_short(loop, _VECTORS * lanes)
    many = 1 if is_short_row or not _profits_from_two_vectors(output, roots) else _VECTORS
    lanes *= knob("vectors", [many, *(n for n in (1, 2, 4) if n != many)])
    if one_by_one:
        lanes = min(lanes, _MIN_SCALAR_LANES)
    limit = max(elements_fitting_l1(output, target), unit * lanes)
    hoisted = invariant_cost(output, len(rows) - 1, roots) if rows else 0
    is_repeated = hoisted >= Accesses.FUNCTION_COST
    if not is_repeated and _has_rows_for_all_cores(rows, target) and isinstance(loop.extent, int):
        limit = max(loop.extent, limit)
    chunk_size = balanced_block_size(loop.extent, limit, unit * lanes)
    maximum = round_up(loop.extent, unit * lanes) if isinstance(loop.extent, int) else None
    chunk_size = knob("chunk", values_around(chunk_size, unit * lanes, maximum))
    chunk, loop = stage.split(loop, factor=chunk_size)
    vectors, lane = stage.split(loop, factor=lanes)
    stage.vectorize(lane)
    if is_repeated:
        rows[-1], row = stage.split(rows[-1], factor=knob("rows", [_ROWS, 1, 2, 4, 16]))
        stage.reorder(*rows, chunk, vectors, row, lane)
    stage.parallel(stage.fuse(*rows, chunk))


def _lanes_of_register(output: te.Tensor, target: Target) -> int:
    """Return the number of values of a stage that fill a vector register."""
    lanes: int = core_of(target).vector_bytes // width_of(output)
    return lanes


def _profits_from_two_vectors(output: te.Tensor, roots: Container[te.Tensor] | None) -> bool:
    """Return whether computing two vectors per iteration is faster than one."""
    has_functions = work_of_chain(output, roots) >= Accesses.FUNCTION_COST
    return not has_functions or bool(longest_path(output, roots) >= 2 * Accesses.FUNCTION_COST)


def _has_rows_for_all_cores(rows: Sequence[te.IterVar], target: Target) -> bool:
    """Return whether there are enough rows for all cores, so that no row is split."""
    count = product(row.extent for row in rows)
    return isinstance(count, int) and count >= _MIN_ROWS_PER_CORE * core_of(target).count


def is_short(axis: te.IterVar, lanes: int, max_vectors: int = _MAX_FUSED_ROW_VECTORS) -> bool:
    """Return whether an axis has below `max_vectors` vectors, so that a partial vector matters."""
    return isinstance(axis.extent, int) and axis.extent < max_vectors * lanes


def stream_large(s: te.Schedule, output: te.Tensor, target: Target, count: int = 1) -> None:
    """Use non-temporal stores for a result that fills the last-level cache by itself.

    The result would be evicted before any reader, and each of its lines would be loaded before it
    is written. This requires results that are written in order, in rows of full lines or in long
    rows: a line that is filled in several steps would be written to memory once per step.

    Args:
        s: Schedule.
        output: Stage.
        target: Target whose caches decide.
        count: Number of trailing axes that are traversed as one row. Default: 1.
    """
    sizes = [extent for extent in output.shape if isinstance(extent, int)]
    if len(sizes) < len(output.shape) or _STREAM not in target.memories:
        return
    row = prod(sizes[-count:]) * width_of(output)
    if row % Core.LINE_BYTES and row < _LONG_ROW_LINES * Core.LINE_BYTES:
        return
    is_large = prod(sizes) * width_of(output) >= core_of(target).cache_bytes[-1]
    if knob("stream", [is_large, not is_large]):
        s[output].set_scope(_STREAM)


_MAX_ROW_ELEMENTS = 256
"""Maximum elements of a row for which a few transposed rows stay in the first-level cache."""
_MIN_ROWS = 8
"""Minimum number of rows, which fill a vector."""
_LONG, _MANY_LONG = 2048, 64
"""Maximum elements and minimum number of rows for the second-level cache, for all cores."""
_TRANSPOSED_ROWS = 16
"""Rows that are transposed together."""


def are_transposed(A: te.Tensor) -> bool:
    """Return whether an operator along the rows of `A` processes several rows in one vector."""
    return _are_transposed(A, _MAX_ROW_ELEMENTS, _MIN_ROWS)


def are_long_rows_transposed(A: te.Tensor) -> bool:
    """Return whether an operator with little work per element transposes the rows of `A`.

    Transposed rows may then be in the second-level cache. Rows whose length is close to a multiple
    of a page share few sets of the first-level cache and evict each other; they are not transposed.
    """
    if are_transposed(A):
        return True
    is_counted = isinstance(product(A.shape[:-1]), int)
    if not is_counted or not _are_transposed(A, _LONG, _MANY_LONG):
        return False
    stride = A.shape[-1] * A.dtype.bytes
    sets = {row * stride % Core.PAGE_BYTES // Core.LINE_BYTES for row in range(_TRANSPOSED_ROWS)}
    return 2 * len(sets) > _TRANSPOSED_ROWS


def _are_transposed(A: te.Tensor, max_columns: int, min_rows: int) -> bool:
    *rows, columns = A.shape
    if not rows or not all(isinstance(extent, int) and extent > 0 for extent in rows[1:]):
        return False
    count = product(rows)
    has_rows = not isinstance(count, int) or count >= min_rows
    return has_rows and isinstance(columns, int) and columns < max_columns


def transpose_last_axis_first(A: te.Tensor, dtype: str, name: str) -> te.Tensor:
    """Copy `A` with its last axis first and the other axes fused into the second one.

    >>> transpose_last_axis_first(te.placeholder((4, 5, 3), name="A"), "float32",
    ...     "A_transposed").shape
    (3, 20)
    """
    *rows, columns = A.shape
    return te.compute(
        (columns, product(rows)),
        lambda column, row: te.cast(A(*_index_of(row, rows), column), dtype), name=name,
    )


def number_of(index: Sequence[te.Expr], shape: Sequence[Size]) -> te.Expr:
    """Return the row-major linear index of an element."""
    number = te.const(0, "int64")
    for position, extent in zip(index, shape, strict=True):
        number = number * extent + position
    return number


def _index_of(number: te.Expr, shape: Sequence[Size]) -> list[te.Expr]:
    """Return the multi-dimensional index of a row-major linear index."""
    index: list[te.Expr] = []
    for extent in reversed(shape[1:]):
        index.append(number % extent)
        number = number // extent
    return [number, *reversed(index)]


def transpose_where_used(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, block: te.IterVar, lanes: int
) -> None:
    """Compute a `transpose_last_axis_first` copy for a block of rows of `output`, in squares."""
    s[x].compute_at(s[output], block)
    s[x].set_scope("local")
    transpose_squares(s[x], *s[x].op.axis, lanes)
