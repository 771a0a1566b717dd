"""Elements that arrays of indices say."""

from __future__ import annotations

from tecomp.array.arrays import Array, made, node_of
from tecomp.array.elements.indexing import counted, taken
from tecomp.array.graph.node import record
from tecomp.array.graph.views import moved
from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operations.indexing import TakeAlongAxis, check_integers
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.types import check_together


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The elements at indices along an axis.

    Args:
        x: the array.
        indices: integers; those below 0 count from the end.
        axis: along which; None for arrays of one axis, or for the elements as one row.

    Returns:
        The shape of `x`, with that of the indices in place of the axis.

    Raises:
        ArrayIndexError: there is no such axis, or an index is out of bounds.
        ArrayTypeError: the indices are no integers.
        DeviceMismatchError: arrays live on different devices.

    >>> import tecomp.array as xp
    >>> take(xp.asarray([5, 6, 7]), xp.asarray([2, 0]))
    Array([7, 5], dtype=int64)
    """
    where = "take"
    node, index = node_of(x, where), node_of(indices, where, "indices")
    check_together([node.type, index.type], where)
    check_integers(index.type, where)
    if axis is None:
        node = moved(Reshape((node.type.size,)), node)
    along = axis_of(0 if axis is None else axis, node.type.rank, where)
    places = counted(index, node.type.shape[along], along, where)
    return made(taken(node, [places], (along,), along))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """The elements at indices along an axis, at the same places of all others.

    Args:
        x: the array.
        indices: integers, with as many axes; all but one broadcast with those of `x`. Those below
            0 count from the end.
        axis: along which.

    Raises:
        ArrayIndexError: there is no such axis, or an index is out of bounds.
        ArrayTypeError: the indices are no integers.
        ArrayValueError: shapes do not fit.
        DeviceMismatchError: arrays live on different devices.

    >>> import tecomp.array as xp
    >>> take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]))
    Array([[6],
           [7]], dtype=int64)
    """
    where = "take_along_axis"
    node, index = node_of(x, where), node_of(indices, where, "indices")
    check_together([node.type, index.type], where)
    check_integers(index.type, where)
    along = axis_of(axis, node.type.rank, where)
    if index.type.rank != node.type.rank:
        raise ArrayValueError(
            f"{where}: x has shape {node.type.shape} and indices {index.type.shape}; give indices "
            "with as many axes",
            kind="array-shapes",
        )
    places = counted(index, node.type.shape[along], along, where)
    return made(record(TakeAlongAxis(along), node, places))
