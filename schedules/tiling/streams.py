"""Walks through memory in order, a vector at a time."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from tecomp import Target, te
from tecomp.schedules.structure.chains import (
    are_counted,
    longest_path,
    repeated_work,
    work_of_chain,
)
from tecomp.schedules.structure.sizes import product
from tecomp.schedules.tiling.tiles import balanced, core_of, elements_at_hand, lanes_of, width_of

_STREAM = "global.stream"

_LINE = 64
"""Bytes that go to memory at once."""
_LONG = 32
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

_FEW = 4
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


def is_short(axis: te.IterVar, lanes: int, few: int = _FEW) -> bool:
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
    if row % _LINE and row < _LONG * _LINE:
        return
    if prod(sizes) * width_of(output) >= core_of(target).cache_bytes[-1]:
        s[output].set_scope(_STREAM)
