"""Differences of adjacent elements."""

from __future__ import annotations

from typing import SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.graph.node import record
from tecomp.array.validation import integer
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import Diff
from tecomp.ptensor.types import axis_of


def diff(
    x: Array,
    /,
    n: SupportsIndex = 1,
    *,
    axis: SupportsIndex = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Compute differences of adjacent elements along an axis.

    Args:
        x: Input array of numeric dtype.
        n: Number of times to compute differences, repeatedly. The standard makes `n` keyword-only;
            SciPy and scikit-learn pass it by position, as NumPy's `diff` accepts it.
        axis: Axis along which to compute. Negative values count from the last axis. Default: -1.
        prepend: Array to join before `x` along the axis.
        append: Array to join after `x` along the axis.

    Returns:
        Array with `n` fewer elements along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype, or `n` is not an integer.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the shapes do not match, or `n` is negative.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> diff(xp.asarray([1, 4, 9, 16])), diff(xp.asarray([1, 4, 9, 16]), n=2)
    (Array([3, 5, 7], dtype=int64), Array([2, 2], dtype=int64))
    """
    node = node_of(x, "diff")
    dim = axis_of(axis, node.type.rank, "diff")
    times = integer(n, "diff", "n")
    if times < 0:
        raise ArrayValueError("diff: n must be nonnegative, got {times!r}", times=times)
    before = () if prepend is None else (node_of(prepend, "diff", "prepend"),)
    after = () if append is None else (node_of(append, "diff", "append"),)
    if before or after:
        node = record(Combine("concat", dim), *before, node, *after)
    for _ in range(min(times, node.type.shape[dim])):
        node = record(Diff(dim), node)
    return from_node(node)
