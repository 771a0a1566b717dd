"""Short rows transposed, so that a vector has one element of each of several."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.schedules.structure.sizes import Size, product
from tecomp.schedules.tiling.tiles import transpose_squares

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
