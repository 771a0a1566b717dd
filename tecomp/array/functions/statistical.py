"""Statistical functions, `all`, `any` and `diff`."""

from __future__ import annotations

import builtins
from typing import Any, SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.graph.node import Node, record
from tecomp.array.validation import check_bool, dtype_name, float64_of, integer
from tecomp.caches import memoize
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import CountNonzero, Cumulative, Diff, ReduceOp, TruthTest
from tecomp.ptensor.types import Axes, axes_of, axis_of

_reduce = memoize("array.reductions", typed=True)(ReduceOp)
"""Cached `ReduceOp` operations: lookups keyed by an identical object are faster."""


def sum(
    x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Array:
    """Compute the sum along the given axes; an empty reduction gives 0.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of sums.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    >>> sum(x), sum(x, axis=0)
    (Array(21, dtype=int64), Array([5, 7, 9], dtype=int64))
    """
    return _apply_reduction("sum", x, axis, keepdims, dtype=dtype)


def prod(
    x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Array:
    """Compute the product along the given axes; an empty reduction gives 1.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of products.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> prod(xp.asarray([1.5, 2.0, 4.0]))
    Array(12., dtype=float64)
    """
    return _apply_reduction("prod", x, axis, keepdims, dtype=dtype)


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the maximum along the given axes; NaN propagates.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes of nonzero size along which to compute. Negative values count from the
            last axis. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of maxima.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis has size 0, or `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> max(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([5, 6], dtype=int64)
    """
    return _apply_reduction("max", x, axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the minimum along the given axes; NaN propagates.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes of nonzero size along which to compute. Negative values count from the
            last axis. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of minima.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis has size 0, or `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> min(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """
    return _apply_reduction("min", x, axis, keepdims)


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the arithmetic mean along the given axes; an empty reduction gives NaN.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of means.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> mean(xp.asarray([1.0, 2.0, 6.0]))
    Array(3., dtype=float64)
    """
    return _apply_reduction("mean", x, axis, keepdims)


def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the variance along the given axes: the mean squared deviation from the mean.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the
            sample estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Variances of real dtype; NaN where the count of elements does not exceed `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> var(xp.asarray([1.0, 2.0, 6.0]), correction=1)
    Array(7., dtype=float64)
    """
    return _apply_reduction("var", x, axis, keepdims, correction=correction)


def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation along the given axes: the square root of `var`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the
            sample estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Standard deviations of real dtype; NaN where the count of elements does not exceed
        `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> std(xp.asarray([1.0, 1.0, 5.0, 5.0]))
    Array(2., dtype=float64)
    """
    return _apply_reduction("std", x, axis, keepdims, correction=correction)


def _apply_reduction(
    kind: str, x: object, axis: Axes, keepdims: bool, *, correction: float = 0, dtype: Any = None
) -> Array:
    node = node_of(x, kind)
    if not isinstance(correction, int | float):
        raise ArrayTypeError(
            "{form}: correction must be a Python number, got {correction!r}",
            form=kind, correction=correction,
        )
    float64_of(correction, kind, "correction")
    axes = axes_of(axis, node.type.rank, kind)
    wanted = None if dtype is None else dtype_name(dtype, kind)
    keeps = check_bool(keepdims, kind, "keepdims")
    if kind in ("sum", "prod"):
        if kind == "sum" and wanted is None and node.type.dtype == "bool":
            return from_node(record(CountNonzero(axes, keeps), node))
        node = _numeric(node, wanted)
    return from_node(record(_reduce(kind, axes, keeps, correction, wanted), node))


def _numeric(node: Node, dtype: str | None) -> Node:
    """Cast booleans to the dtype of their sum: `dtype`, or the default integer dtype if None."""
    if node.type.dtype != "bool" or dtype == "bool":
        return node
    return record(CastOp(dtype or default_dtype("int64", node.type.device)), node)


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
    along = 0 if axis is None else axis_of(axis, rank, where)
    wanted = None if dtype is None else dtype_name(dtype, where)
    initial = check_bool(include_initial, where, "include_initial")
    return from_node(record(Cumulative(kind, along, initial, wanted), _numeric(node, wanted)))


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Test whether all elements along the given axes are true; nonzero numbers are true.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of dtype bool; an empty reduction gives True.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _test_elements("all", x, axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Test whether any element along the given axes is true; nonzero numbers are true.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of dtype bool; an empty reduction gives False.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _test_elements("any", x, axis, keepdims)


def _test_elements(kind: str, x: object, axis: Axes, keepdims: bool) -> Array:
    node = node_of(x, kind)
    axes = axes_of(axis, node.type.rank, kind)
    return from_node(record(TruthTest(kind, axes, check_bool(keepdims, kind, "keepdims")), node))


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
    along = axis_of(axis, node.type.rank, "diff")
    times = integer(n, "diff", "n")
    if times < 0:
        raise ArrayValueError("diff: n must be nonnegative, got {times!r}", times=times)
    before = () if prepend is None else (node_of(prepend, "diff", "prepend"),)
    behind = () if append is None else (node_of(append, "diff", "append"),)
    if before or behind:
        node = record(Combine("concat", along), *before, node, *behind)
    for _ in range(builtins.min(times, node.type.shape[along])):
        node = record(Diff(along), node)
    return from_node(node)
