"""Cumulative sums and products, and differences."""

from __future__ import annotations

from typing import Any, SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.functions.row_functions import number_of
from tecomp.array.graph.node import record
from tecomp.array.validation import check_bool, dtype_name, integer
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import Cumulative, Diff
from tecomp.ptensor.types import axis_of


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative sum along an axis.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis along which to accumulate. Default: the only axis of a one-dimensional array.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        include_initial: If True, the result begins with the initial value, 0 for sums and 1 for
            products.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """
    return _apply_cumulative("sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative product along an axis.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis along which to accumulate. Default: the only axis of a one-dimensional array.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        include_initial: If True, the result begins with the initial value, 0 for sums and 1 for
            products.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> cumulative_prod(xp.asarray([1, 2, 3]))
    Array([1, 2, 6], dtype=int64)
    """
    return _apply_cumulative("prod", x, axis, dtype, include_initial)


def _apply_cumulative(
    kind: str, x: object, axis: SupportsIndex | None, dtype: Any, include_initial: bool
) -> Array:
    where = f"cumulative_{kind}"
    node = node_of(x, where)
    rank = node.type.rank
    if rank == 0:
        raise ArrayValueError(
            "{where}: x must have at least 1 axis, got 0; reshape it: xp.reshape(x, (1,))",
            kind="array-shapes", where=where,
        )
    if axis is None and rank > 1:
        raise ArrayValueError(
            "{where}: axis must be specified, because x has shape {shape} with {rank} axes; for "
            "example, pass axis=0",
            kind="array-shapes", where=where, shape=node.type.shape, rank=rank,
        )
    dim = 0 if axis is None else axis_of(axis, rank, where)
    requested = None if dtype is None else dtype_name(dtype, where)
    initial = check_bool(include_initial, where, "include_initial")
    return from_node(record(Cumulative(kind, dim, initial, requested), number_of(node, requested)))


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
