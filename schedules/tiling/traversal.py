"""Traversal orders: streaming, scan steps, and transposed short rows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from tecomp import Target, te
from tecomp.schedules.analysis.pointwise_chains import (
    are_counted,
    longest_path,
    reads_of_chain,
    repeated_work,
    work_of_chain,
)
from tecomp.schedules.analysis.reduction import has_own_columns
from tecomp.schedules.common import Size, ceil_div, product, round_up
from tecomp.schedules.tiling.register_blocking import (
    balanced,
    core_of,
    elements_at_hand,
    lanes_of,
    transpose_squares,
    width_of,
)

_STEPS = 16
"""Steps that are written out: the state goes through memory once for all of them."""
_FEW_STEP_VECTORS = 2
"""Vectors of a step up to which it waits for the one before."""


def walk_steps(
    s: te.Schedule, scan: te.Tensor, target: Target, apart: Container[te.Tensor] | None = None
) -> None:
    """Strips of columns, a row after another in each; where columns follow from others, row by row.

    Axes of known extent are one for that, so that short rows are no short strips. Formulas that the
    steps read are computed there, but for those `apart`.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (steps, *axes) = s[scan], list(scan.op.axis)
    if not axes:
        _write_out(stage, steps, _STEPS)
        return
    is_apart = has_own_columns(scan)
    is_across = is_apart and len(axes) == 1 and _is_read_across(scan, apart)
    if all(isinstance(axis.extent, int) for axis in axes):
        axes = [stage.fuse(*axes)]
    core, last = core_of(target), axes.pop()
    lanes, most = core.lanes(scan.dtype), elements_at_hand(scan, target)
    if isinstance(last.extent, int):
        most = min(most, max(ceil_div(last.extent, core.count), 1))
    most = lanes if is_across else round_up(most, lanes)
    strip, column = stage.split(last, factor=most)
    vectors, lane = stage.split(column, factor=lanes_of(scan, last, target))
    rows = [steps]
    if is_across:
        # Squares are read along memory, and transposed in registers.
        rows = _write_out(stage, steps, lanes)
    elif (
        is_apart and isinstance(last.extent, int)
        and min(last.extent, most) <= _FEW_STEP_VECTORS * lanes
    ):
        rows = _write_out(stage, steps, _STEPS)
    strips = [*axes, strip]
    stage.reorder(*([*strips, *rows] if is_apart else [*rows, *strips]), vectors, lane)
    stage.parallel(stage.fuse(*strips))
    stage.vectorize(lane)


def _write_out(stage: te.Stage, steps: te.IterVar, count: int) -> list[te.IterVar]:
    """Several steps one after the other, which wait for memory once for all."""
    rows, row = stage.split(steps, factor=count)
    stage.unroll(row)
    return [rows, row]


def _is_read_across(scan: te.Tensor, apart: Container[te.Tensor] | None) -> bool:
    """Whether what the steps read lies side by side along them, and not along their rows."""
    *_, step = scan.op.input_tensors
    return any(
        read.dims and read.dims[-1] == 0 and len(step.op.axis) - 1 in read.used
        for read in reads_of_chain(step, apart)
    )


def walk_transposed(s: te.Schedule, output: te.Tensor, scan: te.Tensor, target: Target) -> None:
    """Each row of a block of `output`, along which the steps are, in a lane of its own.

    What the steps read along rows is transposed in squares, as what is made of them is.
    """
    for part in scan.op.input_tensors:
        s[part].compute_inline()
    stage, (row, column) = s[output], output.op.axis
    steps, lane = scan.op.axis
    lanes = lanes_of(scan, lane, target)
    block, several = stage.split(row, factor=lanes)
    transpose_squares(stage, several, column, lanes)
    stage.parallel(block)
    s[scan].compute_at(stage, block)
    s[scan].set_scope("local")
    _, step = s[scan].split(steps, factor=lanes)
    s[scan].unroll(step)
    s[scan].vectorize(lane)


_STREAM = "global.stream"

_LINE = 64
"""Bytes that go to memory at once."""
_LONG_ROW_LINES = 32
"""Lines of a row beside which the one at its end does not count."""

_VECTORS = 2
"""Vectors that are computed at a time by short formulas, for which loops are work too, and by those
where functions wait for functions: what is between them is more than processors look ahead to
begin with the next. Others have so many constants that registers run out for two."""

_FUNCTION = 10
"""Operations that are worth it to walk down some rows, and to compute what is the same for all of
them once."""
_ROWS = 8
"""So many."""

_ROWS_EACH = 4
"""Rows for each core with which none has to be cut: the last ones end at nearly the same time."""

_LANES_ONE_BY_ONE = 8
"""Lanes of a vector whose lanes are read or written one after the other: each is a few
instructions, and more lanes gain nothing."""

_FEW_ROW_VECTORS = 4
"""Vectors of a row up to which it is walked through together with the next."""


def stream(
    s: te.Schedule, output: te.Tensor, target: Target, count: int,
    apart: Container[te.Tensor] | None = None, *, one_by_one: bool = False,
) -> None:
    """Walk through memory in order, a vector at a time, in chunks that are shared among cores.

    A chunk is as long as fits the first cache several times: long enough to be worth its start,
    short enough that there is one for each core.

    Args:
        s: the schedule.
        output: the stage.
        target: for its vectors and cache.
        count: how many of the last axes can be walked through as one.
        apart: formulas that it reads and that are in memory.
        one_by_one: whether lanes of some tensor are read or written one after the other.
    """
    stage = s[output]
    *rows, last = stage.op.axis
    along, unit = last, 1
    if count > 1 and not isinstance(last.extent, int):
        # How long a row is, only the call says; one loop through all of them suits any length. Not
        # where the numbers of axes are values, which each lane would have to divide for.
        if not are_counted(output, count, apart):
            along = stage.fuse(*stage.op.axis[-count:])
            del rows[len(rows) + 1 - count :]
    elif count > 1 and is_short(last, lanes_of(output, last, target)):
        along, unit = stage.fuse(rows.pop(), last), max(int(str(last.extent)), 1)
    lanes = lanes_of(output, along, target)
    # A row of unknown length may be a short one, most of which is its end.
    is_open = bool(rows) and not isinstance(along.extent, int)
    is_short_row = is_open or is_short(along, _VECTORS * lanes)
    lanes *= 1 if is_short_row or not _gains_by_two(output, apart) else _VECTORS
    if one_by_one:
        lanes = min(lanes, _LANES_ONE_BY_ONE)
    most = max(elements_at_hand(output, target), unit * lanes)
    is_repeated = bool(rows) and repeated_work(output, len(rows) - 1, apart) >= _FUNCTION
    if not is_repeated and _are_many(rows, target) and isinstance(along.extent, int):
        most = max(along.extent, most)
    chunk, along = stage.split(along, factor=balanced(along.extent, most, unit * lanes))
    vectors, lane = stage.split(along, factor=lanes)
    stage.vectorize(lane)
    if is_repeated:
        rows[-1], row = stage.split(rows[-1], factor=_ROWS)
        stage.reorder(*rows, chunk, vectors, row, lane)
    stage.parallel(stage.fuse(*rows, chunk))


def _gains_by_two(output: te.Tensor, apart: Container[te.Tensor] | None) -> bool:
    """Whether two vectors at a time take less than one after the other."""
    has_functions = work_of_chain(output, apart) >= _FUNCTION
    return not has_functions or bool(longest_path(output, apart) >= 2 * _FUNCTION)


def _are_many(rows: Sequence[te.IterVar], target: Target) -> bool:
    """Whether there are rows for all cores, so that none has to be cut."""
    count = product(row.extent for row in rows)
    return isinstance(count, int) and count >= _ROWS_EACH * core_of(target).count


def is_short(axis: te.IterVar, lanes: int, few: int = _FEW_ROW_VECTORS) -> bool:
    """Whether an axis is so `few` vectors long that a part of one at its end counts."""
    return isinstance(axis.extent, int) and axis.extent < few * lanes


def stream_large(s: te.Schedule, output: te.Tensor, target: Target, count: int = 1) -> None:
    """Store a result past the caches if it fills the last one alone.

    It would be gone from there before anybody reads it, and each of its lines would have been read
    before it is written. This is for results that are written in order, in rows of whole lines, or
    long ones: a line that is filled part by part, with others in between or in other ways, would go
    to memory once for each part.

    Args:
        s: the schedule.
        output: the stage.
        target: for its caches.
        count: how many of the last axes are walked through as one row.
    """
    sizes = [extent for extent in output.shape if isinstance(extent, int)]
    if len(sizes) < len(output.shape) or _STREAM not in target.memories:
        return
    row = prod(sizes[-count:]) * width_of(output)
    if row % _LINE and row < _LONG_ROW_LINES * _LINE:
        return
    if prod(sizes) * width_of(output) >= core_of(target).cache_bytes[-1]:
        s[output].set_scope(_STREAM)


_MOST = 256
"""Elements of a row up to which a few rows, transposed, stay in the first cache."""
_MANY = 8
"""Rows from which on they fill a vector."""
_LONG, _MANY_LONG = 2048, 64
"""The same for the second cache, and for longer rows: each of several cores has some."""
_PAGE_BYTES = 4096
_LINE_BYTES = 64
_TOGETHER = 16
"""Rows that are transposed together."""


def are_transposed(A: te.Tensor) -> bool:
    """Whether what runs along the rows of `A` is to walk through several of them at once."""
    return _are_transposed(A, _MOST, _MANY)


def are_long_rows_transposed(A: te.Tensor) -> bool:
    """The same where little is done with each element, and transposed rows may be farther away.

    Rows that are some pages long, or nearly, share few sets of the first cache, and push each other
    out of it.
    """
    if are_transposed(A):
        return True
    is_counted = isinstance(product(A.shape[:-1]), int)
    if not is_counted or not _are_transposed(A, _LONG, _MANY_LONG):
        return False
    apart = A.shape[-1] * A.dtype.bytes
    sets = {row * apart % _PAGE_BYTES // _LINE_BYTES for row in range(_TOGETHER)}
    return 2 * len(sets) > _TOGETHER


def _are_transposed(A: te.Tensor, most: int, many: int) -> bool:
    *rows, columns = A.shape
    if not rows or not all(isinstance(extent, int) and extent > 0 for extent in rows[1:]):
        return False
    count = product(rows)
    fits = not isinstance(count, int) or count >= many
    return fits and isinstance(columns, int) and columns < most


def transposed(A: te.Tensor, dtype: str, name: str) -> te.Tensor:
    """A copy of `A` in which its last axis is the first, and the others are one after it.

    >>> transposed(te.placeholder((4, 5, 3), name="A"), "float32", "A_transposed").shape
    (3, 20)
    """
    *rows, columns = A.shape
    return te.compute(
        (columns, product(rows)),
        lambda column, row: te.cast(A(*_index_of(row, rows), column), dtype), name=name,
    )


def number_of(index: Sequence[te.Expr], shape: Sequence[Size]) -> te.Expr:
    """Which one an element is, counted as they lie in memory."""
    number = te.const(0, "int64")
    for place, extent in zip(index, shape, strict=True):
        number = number * extent + place
    return number


def _index_of(number: te.Expr, shape: Sequence[Size]) -> list[te.Expr]:
    """Where the element of a number is."""
    index: list[te.Expr] = []
    for extent in reversed(shape[1:]):
        index.append(number % extent)
        number = number // extent
    return [number, *reversed(index)]


def transpose_where_used(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, block: te.IterVar, lanes: int
) -> None:
    """Make what `transposed` gives for a block of rows of `output`, in squares."""
    s[x].compute_at(s[output], block)
    s[x].set_scope("local")
    transpose_squares(s[x], *s[x].op.axis, lanes)
