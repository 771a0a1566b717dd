"""Searching functions, `where` and `clip`."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from tecomp.array.array_object import Array, made, node_beside, node_of, nodes_of_pair
from tecomp.array.graph.node import Node, record
from tecomp.array.indexing.getitem import places_in, truth_of
from tecomp.array.library_fallback import library_call
from tecomp.array.validation import Scalar, flag, word
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operations.elementwise import FUNCTIONS, Cast, Where
from tecomp.ptensor.operations.reduction import CountNonzero, FindIndex
from tecomp.ptensor.operations.sorting import SearchSorted
from tecomp.ptensor.types import (
    FLOATS,
    INTEGERS,
    REAL,
    Axes,
    PTensorType,
    axes_of,
    axis_of,
    broadcast_shapes,
    check_together,
    need_dtype,
)


@overload
def where(condition: Array, x1: Array | Scalar, x2: Array | Scalar, /) -> Array: ...


@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...


def where(
    condition: Array, x1: Array | Scalar | None = None, x2: Array | Scalar | None = None, /
) -> Array | tuple[Array, ...]:
    """Elements of the second operand where the first is True, of the third elsewhere.

    With the condition alone, the indices where it is True, as `nonzero` returns them: the standard
    lacks this call, which scikit-learn makes.

    Args:
        condition: an array; numbers are true unless they are 0.
        x1: an array, or a number, which takes the type of the other one.
        x2: the same.

    Raises:
        ArrayTypeError: an operand is neither an array nor a number.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1.0, 2.0]), 0)
    Array([1., 0.], dtype=float64)
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    test = truth_of(node_of(condition, "where", "condition"))
    if isinstance(x1, Array):
        one = node_of(x1, "where")
        other = node_beside(one.type, x2, "where", "x2")
    elif isinstance(x2, Array):
        other = node_of(x2, "where")
        one = node_beside(other.type, x1, "where", "x1")
    else:
        one, other = _numbers(test.type, x1, x2)  # type: ignore[arg-type]
    return made(record(Where(), test, one, other))


def _numbers(place: PTensorType, x1: Scalar, x2: Scalar) -> tuple[Node, Node]:
    """Two numbers in the type that arrays have which are made of both."""
    types = [
        next(
            (
                place.like((), default_dtype(name, place.device))
                for kind, name in _DEFAULT if isinstance(x, kind)
            ),
            place,
        )
        for x in (x1, x2)
    ]
    first = node_beside(types[0], x1, "where", "x1")
    return first, node_beside(types[1], x2, "where", "x2")


_DEFAULT = ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"))


def clip(
    x: Array, /, min: Array | int | float | None = None, max: Array | int | float | None = None
) -> Array:
    """Each element brought into [min, max], in its type; NaN stays.

    Args:
        x: an array of real numbers.
        min: the least, an array or a number; None for none. Integers for integers.
        max: the greatest, in the same way; what it says counts where it is below `min`.

    Raises:
        ArrayTypeError: elements are complex or truth values, or bounds are of another kind.
        ArrayValueError: If the shapes are not broadcast-compatible.
        DeviceMismatchError: bounds live on another device.
        TeamMismatchError: bounds belong to another team.

    >>> import tecomp.array as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, xp.asarray([4, 6, 8]))
    Array([2, 5, 8], dtype=int64)
    """
    node = node_of(x, "clip")
    need_dtype(node.type.dtype, REAL, "clip")
    low, high = _bound(node.type, min, "min"), _bound(node.type, max, "max")
    operands = [part.type for part in (node, low, high) if part is not None]
    check_together(operands, "clip")
    broadcast_shapes([part.shape for part in operands], "clip")
    if low is not None:
        node = record(FUNCTIONS["maximum"], node, low)
    if high is not None:
        node = record(FUNCTIONS["minimum"], node, high)
    return made(node)


def _bound(type: PTensorType, bound: object, what: str) -> Node | None:
    """A bound in the type of the elements; None if nothing is beyond it."""
    if bound is None or (bound.__class__ is int and _is_beyond(bound, type.dtype, what)):
        return None
    node = node_beside(type, bound, "clip", what)
    dtype = node.type.dtype
    if dtype == type.dtype:
        return node
    if dtype in FLOATS and type.dtype in FLOATS:
        return record(Cast(type.dtype), node)
    if dtype in INTEGERS and type.dtype in INTEGERS:
        return record(Cast(type.dtype), _limited(node, type.dtype))
    raise ArrayTypeError(
        f"clip: {what} is {dtype}, and the elements are {type.dtype}; give "
        f"{'an integer' if type.dtype in INTEGERS else 'a real number'}, or convert the elements, "
        "xp.astype(x, dtype)"
    )


def _is_beyond(bound: Any, dtype: str, what: str) -> bool:
    """Whether a number bounds no element of a type."""
    if dtype not in INTEGERS:
        return False
    info = np.iinfo(dtype)
    return bool(bound <= info.min if what == "min" else bound >= info.max)


def _limited(node: Node, dtype: str) -> Node:
    """Integers brought into what another type of integers holds."""
    own, other = np.iinfo(node.type.dtype), np.iinfo(dtype)
    if own.min < other.min:
        node = record(FUNCTIONS["maximum"], node, _number(node.type, int(other.min)))
    if own.max > other.max:
        node = record(FUNCTIONS["minimum"], node, _number(node.type, int(other.max)))
    return node


def _number(type: PTensorType, value: int) -> Node:
    return node_beside(type, value, "clip", "bound")


def argmax(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first greatest element along an axis; NaN is greater than all others.

    Args:
        x: Input array of real-valued dtype.
        axis: along which, with an element at least; None to look at all elements as one row.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there is no element.

    >>> import tecomp.array as xp
    >>> argmax(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """
    return _found("argmax", x, axis, keepdims)


def argmin(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first least element along an axis; NaN is less than all others.

    Args:
        x: Input array of real-valued dtype.
        axis: along which, with an element at least; None to look at all elements as one row.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices, int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
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
        x: Input array.
        axis: one axis or several; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Counts, int64.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

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
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

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
