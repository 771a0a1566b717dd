"""Short rows turned, so that a vector has one element of each of several."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.schedules.tiles import Size, product, walk_squares

_MOST = 256
"""Elements of a row up to which a few rows, turned, stay in the first cache."""
_MANY = 8
"""Rows from which on they fill a vector."""


def are_turned(A: te.Tensor) -> bool:
    """Whether what runs along the rows of `A` is to walk through several of them at once."""
    *rows, columns = A.shape
    if not rows or not all(isinstance(extent, int) for extent in rows[1:]):
        return False
    count = product(rows)
    fits = not isinstance(count, int) or count >= _MANY
    return fits and isinstance(columns, int) and columns < _MOST


def turned(A: te.Tensor, dtype: str, name: str) -> te.Tensor:
    """A copy of `A` in which its last axis is the first, and the others are one after it.

    >>> turned(te.placeholder((4, 5, 3), name="A"), "float32", "A_turned").shape
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


def turn_where_used(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, block: te.IterVar, lanes: int
) -> None:
    """Make what `turned` gives for a block of rows of `output`, in squares."""
    s[x].compute_at(s[output], block)
    s[x].set_scope("local")
    walk_squares(s[x], *s[x].op.axis, lanes)
