"""Sorting functions and set functions."""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of, nodes_of_pair
from tecomp.array.library_fallback import call_library
from tecomp.array.validation import check_bool
from tecomp.array.weak_scalars import Scalar
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
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> UniqueAllResult:
    """Return the unique values in ascending order with indices, inverse indices and counts.

    Each NaN is unique; 0.0 and -0.0 are equal.

    Args:
        x: Input array.

    Returns:
        Named tuple of `values`, `indices` (index of the first occurrence of each value in the
        flattened `x`), `inverse_indices` (index into `values` for each element of `x`) and `counts`
        (number of occurrences of each value).

    >>> import tecomp.array as xp
    >>> unique_all(xp.asarray([3, 1, 3])).indices
    Array([1, 0], dtype=int64)
    """
    return UniqueAllResult(*map(from_node, call_library(UniqueAll(), node_of(x, "unique_all"))))


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Return the unique values in ascending order with their counts.

    Args:
        x: Input array.

    Returns:
        `values` and `counts`. Each NaN is unique.

    >>> import tecomp.array as xp
    >>> unique_counts(xp.asarray([3, 1, 3])).counts
    Array([1, 2], dtype=int64)
    """
    return UniqueCountsResult(
        *map(from_node, call_library(UniqueCounts(), node_of(x, "unique_counts"))))


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Return the unique values in ascending order with the inverse indices.

    Args:
        x: Input array.

    Returns:
        `values` and `inverse_indices`, the index into `values` for each element, in the shape of
        `x`. Each NaN is unique.

    >>> import tecomp.array as xp
    >>> unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int64)
    """
    found = call_library(UniqueInverse(), node_of(x, "unique_inverse"))
    return UniqueInverseResult(*map(from_node, found))


def unique_values(x: Array, /) -> Array:
    """Return the unique values in ascending order.

    Args:
        x: Input array.

    Returns:
        One-dimensional array. Each NaN is unique.

    >>> import tecomp.array as xp
    >>> unique_values(xp.asarray([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    (values,) = call_library(UniqueValues(), node_of(x, "unique_values"))
    return from_node(values)


def isin(x1: Array | Scalar, x2: Array | Scalar, /, *, invert: bool = False) -> Array:
    """Test element-wise for membership in `x2`.

    Args:
        x1: Array of elements to test, or a Python scalar.
        x2: Array of test values, or a Python scalar.
        invert: If True, test for absence from `x2`.

    Returns:
        Array of dtype bool in the shape of `x1`. NaN is equal to no value.

    Raises:
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> isin(xp.asarray([3, 1, 2]), xp.asarray([1, 3]))
    Array([ True,  True, False], dtype=bool)
    """
    (result,) = call_library(
        IsIn(check_bool(invert, "isin", "invert")), *nodes_of_pair(x1, x2, "isin")
    )
    return from_node(result)


def sort(
    x: Array, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True
) -> Array:
    """Return a sorted copy along an axis; NaN sorts as the greatest value.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis along which to compute. Negative values count from the last axis.
        descending: If True, sort in descending order. Default: ascending.
        stable: If True, equal elements, such as 0.0 and -0.0, keep their relative order.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.

    >>> import tecomp.array as xp
    >>> sort(xp.asarray([2, 1, 3]), descending=True)
    Array([3, 2, 1], dtype=int64)
    """
    node = node_of(x, "sort")
    dim = axis_of(axis, node.type.rank, "sort")
    desc, keep = check_bool(descending, "sort", "descending"), check_bool(stable, "sort", "stable")
    (result,) = call_library(Sort(dim, desc, keep), node)
    return from_node(result)


def argsort(
    x: Array, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True
) -> Array:
    """Return the indices that sort the array along an axis; NaN sorts as the greatest value.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis along which to compute. Negative values count from the last axis.
        descending: If True, sort in descending order. Default: ascending.
        stable: If True, equal elements keep their relative order.

    Returns:
        Indices of dtype int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.

    >>> import tecomp.array as xp
    >>> argsort(xp.asarray([2, 1, 2]), descending=True)
    Array([0, 2, 1], dtype=int64)
    """
    node = node_of(x, "argsort")
    dim = axis_of(axis, node.type.rank, "argsort")
    desc, keep = (
        check_bool(descending, "argsort", "descending"),
        check_bool(stable, "argsort", "stable"),
    )
    (result,) = call_library(Argsort(dim, desc, keep), node)
    return from_node(result)
