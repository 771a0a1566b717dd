"""Questions about all elements, and differences of neighbours."""

from __future__ import annotations

from typing import SupportsIndex

from tecomp.array.arguments import flag, integer
from tecomp.array.arrays import Array, made, node_of
from tecomp.array.graph.node import record
from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import Axes, axes_of, axis_of
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import Diff, TruthTest


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
    """Whether an element along axes is true; numbers are true unless they are 0.

    Args:
        x: the array.
        axis: one axis or several; all of them if None.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        Truth; false of no element.

    Raises:
        ArrayIndexError: there is no such axis.
        ArrayValueError: an axis is named twice.

    >>> import tecomp.array as xp
    >>> any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _tested("any", x, axis, keepdims)


def _tested(kind: str, x: object, axis: Axes, keepdims: bool) -> Array:
    node = node_of(x, kind)
    axes = axes_of(axis, node.type.rank, kind)
    return made(record(TruthTest(kind, axes, flag(keepdims, kind, "keepdims")), node))


def diff(
    x: Array,
    /,
    *,
    axis: SupportsIndex = -1,
    n: SupportsIndex = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """What each element is more than the one before it along an axis.

    Args:
        x: the array, of numbers.
        axis: along which.
        n: how often: of the differences again.
        prepend: what stands before `x` along the axis.
        append: what stands behind it.

    Returns:
        `n` elements less along the axis.

    Raises:
        ArrayTypeError: `x` is of other elements, or `n` is no integer.
        ArrayIndexError: there is no such axis.
        ArrayValueError: shapes do not fit, or `n` is below 0.
        DeviceMismatchError: the operands live on different devices.
        TeamMismatchError: they belong to different teams.

    >>> import tecomp.array as xp
    >>> diff(xp.asarray([1, 4, 9, 16])), diff(xp.asarray([1, 4, 9, 16]), n=2)
    (Array([3, 5, 7], dtype=int64), Array([2, 2], dtype=int64))
    """
    node = node_of(x, "diff")
    along = axis_of(axis, node.type.rank, "diff")
    times = integer(n, "diff", "n")
    if times < 0:
        raise ArrayValueError(f"diff: n is {times}; give 0 or more")
    before = () if prepend is None else (node_of(prepend, "diff", "prepend"),)
    behind = () if append is None else (node_of(append, "diff", "append"),)
    if before or behind:
        node = record(Combine("concat", along), *before, node, *behind)
    for _ in range(min(times, node.type.shape[along])):
        node = record(Diff(along), node)
    return made(node)
