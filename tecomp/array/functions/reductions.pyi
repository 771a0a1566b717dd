"""Reductions along axes: one function for each row of the table of reductions.

`reductions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

# Generated: `python -m tests.operations.stubs`.

from typing import Any, SupportsIndex

from tecomp.array.array_object import Array
from tecomp.ptensor.types import Axes

__all__ = [  # noqa: RUF022
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

# tecomp/operations/reductions.py: "all"
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
    >>> xp.all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """

# tecomp/operations/reductions.py: "any"
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
    >>> xp.any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """

# tecomp/operations/reductions.py: "argmax"
def argmax(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first maximum along an axis; NaN counts as the maximum.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis of nonzero size along which to search. Default: search the flattened array.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices of dtype int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no element to search.

    >>> import tecomp.array as xp
    >>> xp.argmax(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """

# tecomp/operations/reductions.py: "argmin"
def argmin(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first minimum along an axis; NaN counts as the minimum.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis of nonzero size along which to search. Default: search the flattened array.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices of dtype int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no element to search.

    >>> import tecomp.array as xp
    >>> xp.argmin(xp.asarray([[1, 5, 3], [4, 2, 6]]))
    Array(0, dtype=int64)
    """

# tecomp/operations/reductions.py: "count_nonzero"
def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count nonzero elements along the given axes.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Counts of dtype int64.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0, 3], [0, 0, 6]]), axis=1)
    Array([2, 1], dtype=int64)
    """

# tecomp/operations/reductions.py: "prod"
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
        include_initial: If True, the result begins with the initial value 1.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "sum"
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
        include_initial: If True, the result begins with the initial value 0.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "logsumexp"
def logsumexp(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute `log(sum(exp(x)))` along the given axes without intermediate overflow.

    Args:
        x: Input array of real floating-point dtype.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of logarithms; an empty reduction gives -infinity.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.logsumexp(xp.asarray([1000.0, 1000.0]))
    Array(1000.69314718, dtype=float64)
    """

# tecomp/operations/reductions.py: "max"
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
    >>> xp.max(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([5, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "mean"
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
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0]))
    Array(3., dtype=float64)
    """

# tecomp/operations/reductions.py: "min"
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
    >>> xp.min(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """

# tecomp/operations/reductions.py: "prod"
def prod(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
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
    >>> xp.prod(xp.asarray([1.5, 2.0, 4.0]))
    Array(12., dtype=float64)
    """

# tecomp/operations/reductions.py: "std"
def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation along the given axes: the square root of `var`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the sample
            estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Standard deviations of real dtype; NaN where the count of elements does not exceed
        `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.std(xp.asarray([1.0, 1.0, 5.0, 5.0]))
    Array(2., dtype=float64)
    """

# tecomp/operations/reductions.py: "sum"
def sum(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
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
    >>> xp.sum(xp.asarray([[1, 2, 3], [4, 5, 6]]), axis=0)
    Array([5, 7, 9], dtype=int64)
    """

# tecomp/operations/reductions.py: "var"
def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the variance along the given axes: the mean squared deviation from the mean.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the sample
            estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Variances of real dtype; NaN where the count of elements does not exceed `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.var(xp.asarray([1.0, 2.0, 6.0]), correction=1)
    Array(7., dtype=float64)
    """
