"""Sorting functions and set functions."""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

from tecomp.array.array_object import Array, made, node_of, nodes_of_pair
from tecomp.array.library_fallback import library_call
from tecomp.array.validation import Scalar, flag
from tecomp.ptensor.operations.sorting import (
    Argsort,
    IsIn,
    Sort,
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    UniqueValues,
)
from tecomp.ptensor.types import axis_of


class UniqueAllResult(NamedTuple):
    """What `unique_all` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` gives."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` gives."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> UniqueAllResult:
    """The elements that are different, in order, and all about them.

    NaN is different from every other; 0.0 and -0.0 are one.

    Args:
        x: Input array.

    Returns:
        `values`; `indices`: where in `x`, as a row, the first of each is; `inverse_indices`: which
        of them each element of `x` is; and `counts`: how many there are of each.

    >>> import tecomp.array as xp
    >>> unique_all(xp.asarray([3, 1, 3])).indices
    Array([1, 0], dtype=int64)
    """
    return UniqueAllResult(*map(made, library_call(UniqueAll(), node_of(x, "unique_all"))))


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """The elements that are different, in order, and how many there are of each.

    Args:
        x: Input array.

    Returns:
        `values` and `counts`; NaN is different from every other.

    >>> import tecomp.array as xp
    >>> unique_counts(xp.asarray([3, 1, 3])).counts
    Array([1, 2], dtype=int64)
    """
    return UniqueCountsResult(*map(made, library_call(UniqueCounts(), node_of(x, "unique_counts"))))


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """The elements that are different, in order, and which of them each element is.

    Args:
        x: Input array.

    Returns:
        `values` and `inverse_indices`, in the shape of `x`; NaN is different from every other.

    >>> import tecomp.array as xp
    >>> unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int64)
    """
    found = library_call(UniqueInverse(), node_of(x, "unique_inverse"))
    return UniqueInverseResult(*map(made, found))


def unique_values(x: Array, /) -> Array:
    """The elements that are different, in order.

    Args:
        x: Input array.

    Returns:
        A row; NaN is different from every other.

    >>> import tecomp.array as xp
    >>> unique_values(xp.asarray([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    (values,) = library_call(UniqueValues(), node_of(x, "unique_values"))
    return made(values)


def isin(x1: Array | Scalar, x2: Array | Scalar, /, *, invert: bool = False) -> Array:
    """Whether each element is one of others.

    Args:
        x1: the elements, or a number of Python.
        x2: the others, or a number of Python.
        invert: whether it is asked if it is none of them.

    Returns:
        Truth, in the shape of `x1`; NaN is equal to nothing.

    Raises:
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> isin(xp.asarray([3, 1, 2]), xp.asarray([1, 3]))
    Array([ True,  True, False], dtype=bool)
    """
    (result,) = library_call(IsIn(flag(invert, "isin", "invert")), *nodes_of_pair(x1, x2, "isin"))
    return made(result)


def sort(
    x: Array, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True
) -> Array:
    """The elements along an axis in order; NaN is greater than all others.

    Args:
        x: Input array of real-valued dtype.
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements, as 0.0 and -0.0, stay in the order in which they are.

    Returns:
        The same shape.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.

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
        x: Input array of real-valued dtype.
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements stay in the order in which they are.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.

    >>> import tecomp.array as xp
    >>> argsort(xp.asarray([2, 1, 2]), descending=True)
    Array([0, 2, 1], dtype=int64)
    """
    node = node_of(x, "argsort")
    along = axis_of(axis, node.type.rank, "argsort")
    down, keeps = flag(descending, "argsort", "descending"), flag(stable, "argsort", "stable")
    (result,) = library_call(Argsort(along, down, keeps), node)
    return made(result)
