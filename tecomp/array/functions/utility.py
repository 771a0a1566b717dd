"""Questions about all elements, and differences of neighbours."""

from __future__ import annotations

from tecomp.array.array import Array, made, node_of
from tecomp.array.node import record
from tecomp.ptensor.axes import Axes, axes_of
from tecomp.ptensor.operations.reduction import TruthTest


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all elements along axes are true; numbers are true unless they are 0.

    Args:
        x: the array.
        axis: one axis or several; all of them if None.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        Truth; true of no element.

    Raises:
        ArrayIndexError: there is no such axis.
        ArrayValueError: an axis is named twice.

    >>> import tecomp.array as xp
    >>> all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _tested("all", x, axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether an element along axes is true, as `all`; false of no element.

    >>> import tecomp.array as xp
    >>> any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _tested("any", x, axis, keepdims)


def _tested(kind: str, x: object, axis: Axes, keepdims: bool) -> Array:
    node = node_of(x, kind)
    axes = axes_of(axis, node.type.rank, kind)
    return made(record(TruthTest(kind, axes, bool(keepdims)), node))
