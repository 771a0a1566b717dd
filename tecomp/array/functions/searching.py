"""Where elements are, and how many there are."""

from __future__ import annotations

from typing import Literal, SupportsIndex

from tecomp.array.arguments import flag, word
from tecomp.array.arrays import Array, made, node_of, nodes_of_pair
from tecomp.array.elements.masks import places_in, truth_of
from tecomp.array.graph.node import record
from tecomp.array.library import library_call
from tecomp.array.scalars import Scalar
from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import Axes, axes_of, axis_of
from tecomp.ptensor.operations.reduction import CountNonzero
from tecomp.ptensor.operations.searching import FindIndex
from tecomp.ptensor.operations.sorting import SearchSorted


def argmax(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first greatest element along an axis; NaN is greater than all others.

    Args:
        x: the array, of real numbers.
        axis: along which, with an element at least; None to look at all elements as one row.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: `x` is of other elements.
        ArrayIndexError: there is no such axis.
        ArrayValueError: there is no element.

    >>> import tecomp.array as xp
    >>> argmax(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """
    return _found("argmax", x, axis, keepdims)


def argmin(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first least element along an axis; NaN is less than all others.

    Args:
        x: the array, of real numbers.
        axis: along which, with an element at least; None to look at all elements as one row.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: `x` is of other elements.
        ArrayIndexError: there is no such axis.
        ArrayValueError: there is no element.

    >>> import tecomp.array as xp
    >>> argmin(xp.asarray([[1, 5, 3], [4, 2, 6]]))
    Array(0, dtype=int64)
    """
    return _found("argmin", x, axis, keepdims)


def _found(kind: str, x: object, axis: SupportsIndex | None, keepdims: bool) -> Array:
    node = node_of(x, kind)
    along = None if axis is None else axis_of(axis, node.type.rank, kind)
    return made(record(FindIndex(kind, along, flag(keepdims, kind, "keepdims")), node))


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0, in order.

    Args:
        x: the array, of one axis or more.

    Returns:
        Indices along each axis, int64.

    Raises:
        ArrayValueError: there are no axes.

    >>> import tecomp.array as xp
    >>> nonzero(xp.asarray([[0, 1], [2, 3]]))
    (Array([0, 1, 1], dtype=int64), Array([1, 0, 1], dtype=int64))
    """
    node = node_of(x, "nonzero")
    if not node.type.shape:
        raise ArrayValueError("nonzero: x has no axes; give one axis or more", kind="array-shapes")
    return tuple([made(places) for places in places_in(truth_of(node))])


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements along axes are not 0.

    Args:
        x: the array.
        axis: one axis or several; all of them if None.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        Counts, int64.

    Raises:
        ArrayIndexError: there is no such axis.
        ArrayValueError: an axis is named twice.

    >>> import tecomp.array as xp
    >>> count_nonzero(xp.asarray([[1, 0, 3], [0, 0, 6]]), axis=1)
    Array([2, 1], dtype=int64)
    """
    node = node_of(x, "count_nonzero")
    axes = axes_of(axis, node.type.rank, "count_nonzero")
    return made(record(CountNonzero(axes, flag(keepdims, "count_nonzero", "keepdims")), node))


def searchsorted(
    x1: Array,
    x2: Array | Scalar,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Where elements belong in a row that is in order.

    Args:
        x1: the row, of real numbers.
        x2: the elements, or a number of Python.
        side: `left` for the first place where an element can be put in, `right` for the last.
        sorter: where the elements of `x1` are in order, if it is not in order itself.

    Returns:
        Indices, int64, in the shape of `x2`.

    Raises:
        ArrayTypeError: elements are no real numbers, or the sorter does not fit.
        ArrayIndexError: the sorter has indices that are out of bounds.
        ArrayValueError: `x1` is no row, or there is no such side.
        DeviceMismatchError: the operands live on different devices.
        TeamMismatchError: they belong to different teams.

    >>> import tecomp.array as xp
    >>> searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
    Array([1, 2], dtype=int64)
    """
    where = "searchsorted"
    nodes = nodes_of_pair(x1, x2, where)
    more = () if sorter is None else (node_of(sorter, where, "sorter"),)
    op = SearchSorted(word(side, ("left", "right"), where, "side"))
    (result,) = library_call(op, *nodes, *more)
    return made(result)
