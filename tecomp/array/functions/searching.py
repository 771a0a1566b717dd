"""Searching functions, `where` and `clip`."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, node_or_weak_scalar, nodes_of_pair
from tecomp.array.graph.node import Node, record
from tecomp.array.indexing.getitem import places_in, truth_of
from tecomp.array.library_fallback import call_library
from tecomp.array.validation import check_choice
from tecomp.array.weak_scalars import Scalar
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp, WhereOp
from tecomp.ptensor.operations.sorting import SearchSorted
from tecomp.ptensor.types import (
    FLOATS,
    INTEGERS,
    REAL,
    PTensorType,
    broadcast_shapes,
    check_same_device_and_team,
    need_dtype,
)


@overload
def where(condition: Array, x1: Array | Scalar, x2: Array | Scalar, /) -> Array: ...


@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...


def where(
    condition: Array, x1: Array | Scalar | None = None, x2: Array | Scalar | None = None, /
) -> Array | tuple[Array, ...]:
    """Select elements from `x1` where the condition is True and from `x2` elsewhere.

    With the condition alone, return the indices of its True elements, as `nonzero` does. The
    standard lacks this call, which scikit-learn makes.

    Args:
        condition: Array of any dtype. Nonzero numbers count as True.
        x1: Array, or a Python scalar, which is converted to the dtype of `x2`.
        x2: Array, or a Python scalar, which is converted to the dtype of `x1`.

    Raises:
        ArrayTypeError: If an operand is neither an array nor a number.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1.0, 2.0]), 0)
    Array([1., 0.], dtype=float64)
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    test = truth_of(node_of(condition, "where", "condition"))
    if isinstance(x1, Array):
        true_node = node_of(x1, "where")
        false_node = node_or_weak_scalar(true_node.type, x2, "where", "x2")
    elif isinstance(x2, Array):
        false_node = node_of(x2, "where")
        true_node = node_or_weak_scalar(false_node.type, x1, "where", "x1")
    else:
        true_node, false_node = _numbers(test.type, x1, x2)  # type: ignore[arg-type]
    return from_node(record(WhereOp(), test, true_node, false_node))


def _numbers(template: PTensorType, x1: Scalar, x2: Scalar) -> tuple[Node, Node]:
    """Convert two Python scalars to nodes of the default dtypes of their types."""
    types = [
        next(
            (
                template.like((), default_dtype(name, template.device))
                for kind, name in _DEFAULT if isinstance(x, kind)
            ),
            template,
        )
        for x in (x1, x2)
    ]
    first = node_or_weak_scalar(types[0], x1, "where", "x1")
    return first, node_or_weak_scalar(types[1], x2, "where", "x2")


_DEFAULT = ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"))


def clip(
    x: Array, /, min: Array | int | float | None = None, max: Array | int | float | None = None
) -> Array:
    """Limit the values to the interval [min, max] element-wise; the dtype is kept, NaN propagates.

    Args:
        x: Input array of real-valued dtype.
        min: Lower bound, an array or a number; integers for an integer array. None: no lower bound.
        max: Upper bound, an array or a number; integers for an integer array. None: no upper bound.
            Where `max` is below `min`, the result is `max`.

    Raises:
        ArrayTypeError: If `x` is complex or boolean, or a bound has a dtype of another kind.
        ArrayValueError: If the shapes are not broadcast-compatible.
        DeviceMismatchError: If a bound is on another device.
        TeamMismatchError: If a bound belongs to another team.

    >>> import tecomp.array as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, xp.asarray([4, 6, 8]))
    Array([2, 5, 8], dtype=int64)
    """
    node = node_of(x, "clip")
    need_dtype(node.type.dtype, REAL, "clip")
    low, high = _clip_bound(node.type, min, "min"), _clip_bound(node.type, max, "max")
    operands = [part.type for part in (node, low, high) if part is not None]
    check_same_device_and_team(operands, "clip")
    broadcast_shapes([part.shape for part in operands], "clip")
    if low is not None:
        node = record(FUNCTIONS["maximum"], node, low)
    if high is not None:
        node = record(FUNCTIONS["minimum"], node, high)
    return from_node(node)


def _clip_bound(ptype: PTensorType, bound: object, bound_name: str) -> Node | None:
    """Return a bound in the dtype of the array, or None if no element can exceed the bound."""
    if bound is None or (bound.__class__ is int and _is_beyond(bound, ptype.dtype, bound_name)):
        return None
    node = node_or_weak_scalar(ptype, bound, "clip", bound_name)
    dtype = node.type.dtype
    if dtype == ptype.dtype:
        return node
    if dtype in FLOATS and ptype.dtype in FLOATS:
        return record(CastOp(ptype.dtype), node)
    if dtype in INTEGERS and ptype.dtype in INTEGERS:
        return record(CastOp(ptype.dtype), _clamp_to_dtype(node, ptype.dtype))
    raise ArrayTypeError(
        "clip: {subject} has dtype {dtype}, but x has dtype {type_dtype}; pass {allowed}, or "
        "convert x with xp.astype(x, dtype)",
        subject=bound_name, dtype=dtype, type_dtype=ptype.dtype,
        allowed="an integer" if ptype.dtype in INTEGERS else "a real number",
    )


def _is_beyond(bound: Any, dtype: str, bound_name: str) -> bool:
    """Return whether a number limits no value of a dtype."""
    if dtype not in INTEGERS:
        return False
    info = np.iinfo(dtype)
    return bool(bound <= info.min if bound_name == "min" else bound >= info.max)


def _clamp_to_dtype(node: Node, dtype: str) -> Node:
    """Clamp integers to the range of another integer dtype."""
    source, target = np.iinfo(node.type.dtype), np.iinfo(dtype)
    if source.min < target.min:
        node = record(FUNCTIONS["maximum"], node, _number(node.type, int(target.min)))
    if source.max > target.max:
        node = record(FUNCTIONS["minimum"], node, _number(node.type, int(target.max)))
    return node


def _number(ptype: PTensorType, value: int) -> Node:
    return node_or_weak_scalar(ptype, value, "clip", "bound")


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of nonzero elements in row-major order, one array per axis.

    Args:
        x: Input array with at least one axis.

    Returns:
        Tuple of index arrays of dtype int64, one per axis.

    Raises:
        ArrayValueError: If `x` has no axes.

    >>> import tecomp.array as xp
    >>> nonzero(xp.asarray([[0, 1], [2, 3]]))
    (Array([0, 1, 1], dtype=int64), Array([1, 0, 1], dtype=int64))
    """
    node = node_of(x, "nonzero")
    if not node.type.shape:
        raise ArrayValueError("nonzero: x must have at least 1 axis, got 0", kind="array-shapes")
    return tuple([from_node(indices) for indices in places_in(truth_of(node))])


def searchsorted(
    x1: Array,
    x2: Array | Scalar,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Return insertion positions into a sorted array.

    Args:
        x1: Sorted one-dimensional array of real-valued dtype.
        x2: Values to insert, an array or a Python scalar.
        side: `left` for the first valid insertion position, `right` for the last.
        sorter: Index array that sorts `x1`. Default: `x1` is sorted already.

    Returns:
        Indices of dtype int64 in the shape of `x2`.

    Raises:
        ArrayTypeError: If a dtype is not real-valued, or `sorter` does not match `x1`.
        ArrayIndexError: If `sorter` has indices that are out of bounds.
        ArrayValueError: If `x1` is not one-dimensional, or `side` is unknown.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
    Array([1, 2], dtype=int64)
    """
    where = "searchsorted"
    nodes = nodes_of_pair(x1, x2, where)
    sorter_nodes = () if sorter is None else (node_of(sorter, where, "sorter"),)
    op = SearchSorted(check_choice(side, ("left", "right"), where, "side"))
    (result,) = call_library(op, *nodes, *sorter_nodes)
    return from_node(result)
