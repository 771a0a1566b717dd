"""Differences of adjacent elements, and statistics beside the standard, in its conventions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.functions import table_functions as red
from tecomp.array.functions.data_types import astype, isdtype
from tecomp.array.functions.linear_algebra import matmul, matrix_transpose
from tecomp.array.functions.manipulation import reshape
from tecomp.array.functions.numerical import call_on_host
from tecomp.array.functions.searching import clip, where
from tecomp.array.functions.table_functions import conj, isnan, real, sqrt
from tecomp.array.graph.node import record
from tecomp.array.validation import integer
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import Diff
from tecomp.ptensor.types import Axes, axis_of


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


def _host(name: str, *arguments: Any, **options: Any) -> Array:
    """Call a function of NumPy with the options that are given, and return its result."""
    found: Array = call_on_host(
        name, *arguments, **{k: v for k, v in options.items() if v is not None})
    return found


def quantile(
    x: Array, q: Any, /, *, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Array:
    """Compute quantiles along the given axes.

    Args:
        x: Input array of real-valued dtype.
        q: Array or sequence of probabilities from 0 to 1, or a number.
        axis: Axis or axes along which to compute. Default: all axes.
        method: Method of interpolation, as in `numpy.quantile`.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array whose first axes are those of `q`.

    Raises:
        ValueError: If a probability is out of range, or the method is unknown.

    >>> import tecomp.array as xp
    >>> quantile(xp.asarray([1.0, 2.0, 4.0]), [0.5, 0.75])
    Array([2., 3.], dtype=float64)
    """
    return _host("quantile", x, q, axis=axis, method=method, keepdims=keepdims)


def percentile(
    x: Array, q: Any, /, *, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Array:
    """Compute percentiles along the given axes.

    Args:
        x: Input array of real-valued dtype.
        q: Array or sequence of percentages from 0 to 100, or a number.
        axis: Axis or axes along which to compute. Default: all axes.
        method: Method of interpolation, as in `numpy.percentile`.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array whose first axes are those of `q`.

    Raises:
        ValueError: If a percentage is out of range, or the method is unknown.

    >>> import tecomp.array as xp
    >>> percentile(xp.asarray([1.0, 2.0, 4.0]), 50)
    Array(2., dtype=float64)
    """
    return _host("percentile", x, q, axis=axis, method=method, keepdims=keepdims)


def median(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the median along the given axes.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> median(xp.asarray([1.0, 4.0, 2.0, 3.0]))
    Array(2.5, dtype=float64)
    """
    return _host("median", x, axis=axis, keepdims=keepdims)


def histogram(
    x: Array, /, bins: Any = 10, *, range: tuple[float, float] | None = None,
    density: bool | None = None, weights: Array | None = None,
) -> tuple[Array, Array]:
    """Count elements in intervals.

    Args:
        x: Input array.
        bins: Number of intervals of equal length, their edges, or a method of `numpy.histogram`.
        range: Lowest and highest edge. Default: the extreme elements.
        density: If True, return the density of probability instead of counts.
        weights: Weight of each element. Default: 1.

    Returns:
        Counts and edges.

    Raises:
        ValueError: If the edges do not increase, or the range is not finite.

    >>> import tecomp.array as xp
    >>> histogram(xp.asarray([1, 2, 1]), [0, 1, 2, 3])
    (Array([0, 2, 1], dtype=int64), Array([0, 1, 2, 3], dtype=int64))
    """
    counts, edges = _host("histogram", x, bins, range=range, density=density, weights=weights)
    return counts, edges


def histogram2d(
    x1: Array, x2: Array, /, bins: Any = 10, *, range: Any = None, density: bool | None = None,
    weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Count pairs of elements in rectangles.

    Args:
        x1: Coordinates along the first axis.
        x2: Coordinates along the second axis.
        bins: Number of intervals or edges, for both axes or a pair of them.
        range: Lowest and highest edge of each axis. Default: the extreme elements.
        density: If True, return the density of probability instead of counts.
        weights: Weight of each pair. Default: 1.

    Returns:
        Counts, and edges of both axes.

    >>> import tecomp.array as xp
    >>> histogram2d(xp.asarray([0.0, 1.0]), xp.asarray([0.0, 1.0]), 2)[0]
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    counts, first, second = _host(
        "histogram2d", x1, x2, bins, range=range, density=density, weights=weights)
    return counts, first, second


def bincount(
    x: Array, /, weights: Array | None = None, *, minlength: SupportsIndex = 0
) -> Array:
    """Count the occurrences of nonnegative integers.

    Args:
        x: Vector of nonnegative integers.
        weights: Numbers to add instead of 1 for each element.
        minlength: Minimum size of the result.

    Returns:
        Vector of counts: the element at `n` is the number of occurrences of `n`.

    Raises:
        ValueError: If an element is negative.

    >>> import tecomp.array as xp
    >>> bincount(xp.asarray([1, 3, 1]), minlength=5)
    Array([0, 2, 0, 1, 0], dtype=int64)
    """
    return _host("bincount", x, weights=weights, minlength=minlength)


def digitize(x: Array, bins: Array, /, *, right: bool = False) -> Array:
    """Return the number of the interval of each element.

    Args:
        x: Input array.
        bins: Edges, in ascending or descending order.
        right: If True, intervals include their upper edge instead of the lower one.

    Raises:
        ValueError: If the edges are not monotonic.

    >>> import tecomp.array as xp
    >>> digitize(xp.asarray([0.5, 1.0, 3.0]), xp.asarray([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int64)
    """
    return _host("digitize", x, bins, right=right)


def cov(x: Array, /, *, rowvar: bool = True, correction: float = 1) -> Array:
    """Compute the covariance matrix of variables.

    Args:
        x: Matrix with the observations of each variable as a row, or a vector of one variable.
        rowvar: If False, the variables are the columns.
        correction: Number that is subtracted from the number of observations in the divisor.

    >>> import tecomp.array as xp
    >>> cov(xp.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    matrix = reshape(x, (1, -1)) if x.ndim < 2 else x if rowvar else matrix_transpose(x)
    if not isdtype(matrix.dtype, ("real floating", "complex floating")):
        matrix = astype(matrix, np.float64)
    centered = matrix - red.mean(matrix, axis=1, keepdims=True)
    product = matmul(centered, conj(matrix_transpose(centered)))
    found = product / max(matrix.shape[1] - correction, 0)
    return found if found.shape != (1, 1) else reshape(found, ())


def corrcoef(x: Array, /, *, rowvar: bool = True) -> Array:
    """Compute the correlation coefficients of variables.

    Args:
        x: Matrix with the observations of each variable as a row, or a vector of one variable.
        rowvar: If False, the variables are the columns.

    >>> import tecomp.array as xp
    >>> corrcoef(xp.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    found = cov(x, rowvar=rowvar)
    if not found.ndim:
        return found / found
    deviation = sqrt(real(reshape(found, (-1,))[:: found.shape[0] + 1]))
    scaled = found / deviation[:, None] / deviation[None, :]
    return scaled if isdtype(x.dtype, "complex floating") else clip(scaled, -1.0, 1.0)


def _without_nan(x: Array, value: float) -> Array:
    has_nan = isdtype(x.dtype, ("real floating", "complex floating"))
    return where(isnan(x), value, x) if has_nan else x


def nansum(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Compute the sum along the given axes of all elements except NaN.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Default: all axes.
        dtype: Result dtype.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nansum(xp.asarray([1.0, float("nan"), 2.0]))
    Array(3., dtype=float64)
    """
    return red.sum(_without_nan(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanmean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the mean along the given axes of all elements except NaN; NaN if there is none.

    Args:
        x: Input array of floating-point dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nanmean(xp.asarray([1.0, float("nan"), 2.0]))
    Array(1.5, dtype=float64)
    """
    total = red.sum(_without_nan(x, 0), axis=axis, keepdims=keepdims)
    count = red.sum(astype(~isnan(x), total.dtype), axis=axis, keepdims=keepdims)
    return total / count


def nanvar(
    x: Array, /, *, axis: Axes = None, correction: float = 0, keepdims: bool = False
) -> Array:
    """Compute the variance along the given axes of all elements except NaN.

    Args:
        x: Input array of floating-point dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        correction: Number that is subtracted from the number of elements in the divisor.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nanvar(xp.asarray([1.0, float("nan"), 2.0]))
    Array(0.25, dtype=float64)
    """
    deviation = x - nanmean(x, axis=axis, keepdims=True)
    squares = real(deviation * conj(deviation))
    total = nansum(squares, axis=axis, keepdims=keepdims)
    count = red.sum(astype(~isnan(x), total.dtype), axis=axis, keepdims=keepdims) - correction
    return where(count > 0, total / count, float("nan"))


def nanstd(
    x: Array, /, *, axis: Axes = None, correction: float = 0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation along the given axes of all elements except NaN.

    Args:
        x: Input array of floating-point dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        correction: Number that is subtracted from the number of elements in the divisor.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nanstd(xp.asarray([1.0, float("nan"), 2.0]))
    Array(0.5, dtype=float64)
    """
    return sqrt(nanvar(x, axis=axis, correction=correction, keepdims=keepdims))


def nanmax(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the maximum along the given axes of all elements except NaN; NaN if there is none.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nanmax(xp.asarray([1.0, float("nan"), 2.0]))
    Array(2., dtype=float64)
    """
    return _extreme(x, red.max, float("-inf"), axis, keepdims)


def nanmin(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the minimum along the given axes of all elements except NaN; NaN if there is none.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes along which to compute. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    >>> import tecomp.array as xp
    >>> nanmin(xp.asarray([1.0, float("nan"), 2.0]))
    Array(1., dtype=float64)
    """
    return _extreme(x, red.min, float("inf"), axis, keepdims)


def _extreme(
    x: Array, reduce: Callable[..., Array], neutral: float, axis: Axes, keepdims: bool
) -> Array:
    found = reduce(_without_nan(x, neutral), axis=axis, keepdims=keepdims)
    if not isdtype(x.dtype, "real floating"):
        return found
    return where(red.all(isnan(x), axis=axis, keepdims=keepdims), float("nan"), found)
