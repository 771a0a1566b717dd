"""Elements in order."""

from __future__ import annotations

from typing import SupportsIndex

from tecomp.array.arguments import flag
from tecomp.array.arrays import Array, made, node_of
from tecomp.array.library import library_call
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operations.sorting import Argsort, Sort


def sort(
    x: Array, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True
) -> Array:
    """The elements along an axis in order; NaN is greater than all others.

    Args:
        x: the array, of real numbers.
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements, as 0.0 and -0.0, stay in the order in which they are.

    Returns:
        The same shape.

    Raises:
        ArrayTypeError: `x` is of other elements.
        ArrayIndexError: there is no such axis.

    >>> import tecomp.array as xp
    >>> sort(xp.asarray([2, 1, 3]), descending=True)
    Array([3, 2, 1], dtype=int64)
    """
    node = node_of(x, "sort")
    along = axis_of(axis, node.type.rank, "sort")
    down, keeps = flag(descending, "sort", "descending"), flag(stable, "sort", "stable")
    (result,) = library_call(Sort(along, down, keeps), node)
    return made(result)


def argsort(
    x: Array, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True
) -> Array:
    """Where the elements along an axis are that `sort` gives.

    Args:
        x: the array, of real numbers.
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements stay in the order in which they are.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: `x` is of other elements.
        ArrayIndexError: there is no such axis.

    >>> import tecomp.array as xp
    >>> argsort(xp.asarray([2, 1, 2]), descending=True)
    Array([0, 2, 1], dtype=int64)
    """
    node = node_of(x, "argsort")
    along = axis_of(axis, node.type.rank, "argsort")
    down, keeps = flag(descending, "argsort", "descending"), flag(stable, "argsort", "stable")
    (result,) = library_call(Argsort(along, down, keeps), node)
    return made(result)
