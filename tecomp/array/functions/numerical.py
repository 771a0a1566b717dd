"""Numerical functions beside the standard, in its conventions."""

from __future__ import annotations

from math import inf
from typing import Any, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, nodes_of_pair
from tecomp.array.functions import table_functions as ew
from tecomp.array.functions import table_functions as red
from tecomp.array.functions.creation import ones, tril, zeros
from tecomp.array.functions.data_types import asarray, astype, isdtype, result_type
from tecomp.array.functions.manipulation import (
    concat,
    expand_dims,
    flip,
    reshape,
    take,
)
from tecomp.array.functions.searching import where
from tecomp.array.graph.node import Node
from tecomp.array.library_fallback import call_numpy
from tecomp.array.validation import check_choice, diagonal_of, integer
from tecomp.array.weak_scalars import Scalar
from tecomp.errors import ArrayValueError
from tecomp.ptensor.types import axis_of, check_same_device_and_team


def call_on_host(name: str, /, *arguments: Any, **options: Any) -> Any:
    """Call a NumPy function with the elements of arrays, and return arrays.

    Args:
        name: Name of the function, such as `linalg.lstsq`.
        arguments: Positional arguments; arrays also within lists and tuples.
        options: Keyword arguments.

    Raises:
        DataDependentShapeError: If a function is being recorded.
        DeviceMismatchError: If the operands are on different devices.

    >>> import tecomp.array as xp
    >>> call_on_host("polyval", [1, 0, 2], xp.asarray([3.0]))
    Array([11.], dtype=float64)
    """
    found = call_numpy(
        name, _replace(arguments, Array, _node), {k: _replace(v, Array, _node)
                                                  for k, v in options.items()})
    return _replace(found, Node, from_node)


def _node(array: Array) -> Node:
    return array._node


def _replace(value: Any, kind: type, convert: Any) -> Any:
    """Replace the objects of a class in nested lists and tuples."""
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_replace(part, kind, convert) for part in value])
    if isinstance(value, list | tuple):
        return type(value)([_replace(part, kind, convert) for part in value])
    return value


def pad(
    x: Array, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0, **options: Any
) -> Array:
    """Extend an array at both ends of its axes.

    Args:
        x: Input array.
        pad_width: Number of elements before and after each axis: a number, a pair, or a pair for
            each axis.
        mode: `constant`, `edge`, `reflect`, `symmetric`, `wrap`, or another mode of `numpy.pad`,
            which NumPy computes.
        constant_values: Value of new elements in the mode `constant`.
        options: Further options of `numpy.pad`.

    Raises:
        ArrayTypeError: If the dtype cannot represent the value.
        ArrayValueError: If a width is negative or does not match the axes.

    >>> import tecomp.array as xp
    >>> pad(xp.asarray([1, 2, 3]), (1, 2)), pad(xp.asarray([1, 2, 3]), 2, "reflect")
    (Array([0, 1, 2, 3, 0, 0], dtype=int64), Array([3, 2, 1, 2, 3, 2, 1], dtype=int64))
    """
    where_ = "pad"
    node = node_of(x, where_)
    try:
        widths = np.broadcast_to(np.asarray(pad_width, np.int64), (node.type.rank, 2)).tolist()
    except (TypeError, ValueError):
        widths = [(-1, -1)]
    if any(count < 0 for pair in widths for count in pair):
        raise ArrayValueError(
            "pad: pad_width must have a nonnegative number, a pair, or a pair for each of {rank} "
            "axes, got {width!r}",
            kind="array-shapes", rank=node.type.rank, width=pad_width,
        )
    if mode == "constant" and isinstance(constant_values, Scalar | np.generic):
        shape = [a + n + b for n, (a, b) in zip(x.shape, widths, strict=True)]
        result = zeros(shape, dtype=x.dtype, device=x.device)
        if constant_values:
            result[...] = constant_values
        result[tuple([
            slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True)])] = x
        return result
    if mode not in ("edge", "reflect", "symmetric", "wrap") or options:
        values = {"constant_values": constant_values} if mode == "constant" else {}
        padded: Array = call_on_host("pad", x, widths, mode, **values, **options)
        return padded
    for axis, pair in enumerate(widths):
        if any(pair):
            numbers = np.arange(x.shape[axis])
            positions = np.pad(numbers, pair, mode)  # type: ignore[call-overload]
            x = take(x, asarray(positions, device=x.device), axis=axis)
    return x


def interp(
    x: Array, points: Array, values: Array, /, *, left: float | None = None,
    right: float | None = None, period: float | None = None,
) -> Array:
    """Interpolate a piecewise linear function.

    Args:
        x: Points at which to evaluate.
        points: Points of the function, in ascending order.
        values: Values of the function at these points.
        left: Value below the first point. Default: the first value.
        right: Value above the last point. Default: the last value.
        period: Period of the points; they need not be in ascending order then.

    Raises:
        DeviceMismatchError: If the operands are on different devices.
        ValueError: If the points and the values do not match.

    >>> import tecomp.array as xp
    >>> points = xp.asarray([0.0, 1.0, 2.0])
    >>> interp(xp.asarray([0.5, 3.0]), points, points * 10)
    Array([ 5., 20.], dtype=float64)
    """
    found: Array = call_on_host("interp", x, points, values, left, right, period)
    return found


def gradient(
    x: Array, /, *spacing: Any, axis: int | tuple[int, ...] | None = None, edge_order: int = 1
) -> Any:
    """Compute differences of second order inside, and of first order at the ends of an axis.

    Args:
        x: Input array.
        spacing: Distance of the samples: one number for all axes, or a number or the coordinates
            for each axis. Default: 1.
        axis: Axis or axes along which to differentiate. Default: all axes.
        edge_order: Order of the differences at the ends, 1 or 2.

    Returns:
        Array of the shape of `x`; a tuple of arrays for several axes.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis has fewer than 2 elements.

    >>> import tecomp.array as xp
    >>> gradient(xp.asarray([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float64)
    """
    places = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [axis_of(k, x.ndim, "gradient") for k in places]
    if edge_order != 1 or not all(isinstance(step, int | float | np.number) for step in spacing):
        return call_on_host("gradient", x, *spacing, axis=axis, edge_order=edge_order)
    steps = spacing if len(spacing) == len(axes) else spacing * len(axes) or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise ArrayValueError(
            "gradient: got {steps} distances for {axes} axes; pass one for all axes, or one per "
            "axis",
            kind="array-shapes", steps=len(spacing), axes=len(axes),
        )
    values = x if isdtype(x.dtype, ("real floating", "complex floating")) else astype(x, np.float64)
    found = tuple([
        _differences(values, k, float(step)) for k, step in zip(axes, steps, strict=True)])
    return found[0] if len(found) == 1 else found


def _differences(x: Array, axis: int, step: float) -> Array:
    if x.shape[axis] < 2:
        raise ArrayValueError(
            "gradient: axis {axis} of shape {shape} has fewer than 2 elements",
            kind="array-shapes", axis=axis, shape=x.shape,
        )

    def at(start: int | None, stop: int | None) -> Array:
        return x[(*(slice(None),) * axis, slice(start, stop))]

    return concat([
        (at(1, 2) - at(0, 1)) / step,
        (at(2, None) - at(None, -2)) / (2 * step),
        (at(-1, None) - at(-2, -1)) / step,
    ], axis=axis)


def trapezoid(
    y: Array, /, x: Array | None = None, *, dx: float = 1.0, axis: SupportsIndex = -1
) -> Array:
    """Integrate samples along an axis by the trapezoidal rule.

    Args:
        y: Samples.
        x: Coordinates of the samples. Default: samples at distance `dx`.
        dx: Distance of the samples.
        axis: Axis along which to integrate. Default: -1.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> trapezoid(xp.asarray([1.0, 2.0, 3.0]), dx=2.0)
    Array(8., dtype=float64)
    """
    dim = axis_of(axis, y.ndim, "trapezoid")
    if x is not None:
        check_same_device_and_team([node_of(y, "trapezoid").type, node_of(x, "trapezoid").type],
                                   "trapezoid")
    before = (*(slice(None),) * dim, slice(None, -1))
    after = (*(slice(None),) * dim, slice(1, None))
    step: Any = dx
    if x is not None:
        along = x if x.ndim > 1 else reshape(x, (-1, *(1,) * (y.ndim - dim - 1)))
        step = along[after] - along[before] if x.ndim > 1 else along[1:] - along[:-1]
    return red.sum((y[after] + y[before]) * step / 2.0, axis=dim)


def convolve(x1: Array, x2: Array, /, *, mode: str = "full") -> Array:
    """Compute the discrete convolution of two vectors.

    Args:
        x1: First vector.
        x2: Second vector.
        mode: `full`, `same` or `valid`: all positions at which the vectors overlap, a number of
            them that equals the length of the longer vector, or those of complete overlap.

    Raises:
        ArrayValueError: If the mode is unknown.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> convolve(xp.asarray([1, 2, 3]), xp.asarray([0, 1]))
    Array([0, 1, 2, 3], dtype=int64)
    """
    found: Array = call_on_host(
        "convolve", x1, x2, check_choice(mode, ("full", "same", "valid"), "convolve", "mode"))
    return found


def correlate(x1: Array, x2: Array, /, *, mode: str = "valid") -> Array:
    """Compute the cross-correlation of two vectors; the second one is conjugated.

    Args:
        x1: First vector.
        x2: Second vector.
        mode: `full`, `same` or `valid`, as in `convolve`.

    Raises:
        ArrayValueError: If the mode is unknown.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> correlate(xp.asarray([1, 2, 3]), xp.asarray([0, 1]))
    Array([2, 3], dtype=int64)
    """
    found: Array = call_on_host(
        "correlate", x1, x2, check_choice(mode, ("full", "same", "valid"), "correlate", "mode"))
    return found


def kron(x1: Array, x2: Array, /) -> Array:
    """Compute the Kronecker product: blocks of `x2`, scaled by the elements of `x1`.

    Args:
        x1: First array.
        x2: Second array; axes that one array lacks have size 1.

    >>> import tecomp.array as xp
    >>> kron(xp.asarray([1, 10]), xp.asarray([1, 2, 3]))
    Array([ 1,  2,  3, 10, 20, 30], dtype=int64)
    """
    rank = max(x1.ndim, x2.ndim)
    first, second = ((1,) * (rank - x.ndim) + x.shape for x in (x1, x2))
    left = reshape(x1, [n for extent in first for n in (extent, 1)])
    right = reshape(x2, [n for extent in second for n in (1, extent)])
    return reshape(left * right, [a * b for a, b in zip(first, second, strict=True)])


def diag(x: Array, /, k: SupportsIndex = 0) -> Array:
    """Return a matrix with a vector on a diagonal, or the diagonal of a matrix as a vector.

    Args:
        x: Vector or matrix.
        k: Number of the diagonal: 0 for the main one, positive above it.

    Raises:
        ArrayValueError: If `x` has neither 1 nor 2 axes.

    >>> import tecomp.array as xp
    >>> diag(xp.asarray([1, 2])), diag(xp.asarray([[1, 2], [3, 4]]), 1)
    (Array([[1, 0],
           [0, 2]], dtype=int64), Array([2], dtype=int64))
    """
    offset = integer(k, "diag", "k")
    if x.ndim not in (1, 2):
        raise ArrayValueError(
            "diag: x must have 1 or 2 axes, got shape {shape}", kind="array-shapes", shape=x.shape)
    if x.ndim == 2:
        rows, columns = x.shape
        offset = diagonal_of(offset, x.shape, "diag", "k")
        count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
        start = offset if offset > 0 else -offset * columns
        flat = reshape(x, (-1,))
        return asarray(flat[start : start + count * (columns + 1) : columns + 1][:count], copy=True)
    size = x.shape[0] + abs(offset)
    flat = zeros(size * size, dtype=x.dtype, device=x.device)
    start = offset if offset > 0 else -offset * size
    if x.shape[0]:
        flat[start : start + (x.shape[0] - 1) * (size + 1) + 1 : size + 1] = x
    return reshape(flat, (size, size))


def tri(
    n: SupportsIndex, m: SupportsIndex | None = None, /, *, k: SupportsIndex = 0, dtype: Any = None
) -> Array:
    """Return a matrix with ones on and below a diagonal, and zeros above it.

    Args:
        n: Number of rows.
        m: Number of columns. Default: `n`.
        k: Number of the diagonal.
        dtype: dtype of the array. Default: float64.

    >>> tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float64)
    """
    return tril(ones((integer(n, "tri", "n"), integer(n if m is None else m, "tri", "m")),
                     dtype=dtype), k=integer(k, "tri", "k"))


def vander(x: Array, /, n: SupportsIndex | None = None, *, increasing: bool = False) -> Array:
    """Return the Vandermonde matrix: powers of a vector, one power for each column.

    Args:
        x: Vector.
        n: Number of columns. Default: the size of `x`.
        increasing: If True, the powers increase from left to right.

    >>> import tecomp.array as xp
    >>> vander(xp.asarray([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    count = x.shape[0] if n is None else integer(n, "vander", "n")
    dtype = result_type(x.dtype, np.int64) if isdtype(x.dtype, "integral") else x.dtype
    base = expand_dims(astype(x, dtype, copy=False), axis=1)
    powers = asarray(np.arange(count)[None, :], dtype=dtype, device=x.device)
    result: Array = base**powers
    return result if increasing else flip(result, axis=1)


def isclose(
    x1: Array, x2: Array | Scalar, /, *, rtol: float = 1e-5, atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Test element-wise for `abs(x1 - x2) <= atol + rtol * abs(x2)`; equal infinities are close.

    Args:
        x1: Array.
        x2: Array or number of reference.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: If True, NaN is close to NaN.

    Raises:
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> isclose(xp.asarray([1.0, 2.0]), xp.asarray([1.0 + 1e-9, 2.1]))
    Array([ True, False], dtype=bool)
    """
    nodes = nodes_of_pair(x1, x2, "isclose")
    check_same_device_and_team([node.type for node in nodes], "isclose")
    first, second = (_as_float(from_node(node)) for node in nodes)
    bound = atol + rtol * ew.abs(second)
    close: Array = ((ew.abs(first - second) <= bound) & ew.isfinite(second)) | (first == second)
    return close | (ew.isnan(first) & ew.isnan(second)) if equal_nan else close


def _as_float(x: Array) -> Array:
    floats = isdtype(x.dtype, ("real floating", "complex floating"))
    return x if floats else astype(x, np.float64)


def allclose(
    x1: Array, x2: Array | Scalar, /, *, rtol: float = 1e-5, atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Test whether all elements are close, as `isclose` defines it.

    Args:
        x1: Array.
        x2: Array or number of reference.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: If True, NaN is close to NaN.

    Returns:
        Array of dtype bool without axes.

    >>> import tecomp.array as xp
    >>> allclose(xp.asarray([1.0, 2.0]), xp.asarray([1.0 + 1e-9, 2.0]))
    Array(True, dtype=bool)
    """
    return red.all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x1: Array, x2: Array, /, *, equal_nan: bool = False) -> Array:
    """Test whether two arrays have the same shape and equal elements.

    Args:
        x1: Array.
        x2: Array.
        equal_nan: If True, NaN is equal to NaN.

    Returns:
        Array of dtype bool without axes.

    >>> import tecomp.array as xp
    >>> array_equal(xp.asarray([1, 2]), xp.asarray([1, 2])), array_equal(xp.ones(2), xp.ones(3))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    if x1.shape != x2.shape:
        return asarray(False, device=x1.device)
    same = x1 == x2
    return red.all(same | ((x1 != x1) & (x2 != x2)) if equal_nan else same)


def nan_to_num(
    x: Array, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace NaN and infinities by numbers.

    Args:
        x: Input array.
        nan: Value for NaN.
        posinf: Value for positive infinity. Default: the greatest number of the dtype.
        neginf: Value for negative infinity. Default: the least number of the dtype.

    >>> import tecomp.array as xp
    >>> nan_to_num(xp.asarray([float("nan"), float("-inf"), 1.0]), neginf=-9.0)
    Array([ 0., -9.,  1.], dtype=float64)
    """
    if isdtype(x.dtype, "complex floating"):
        real, imag = (
            nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
            for part in (ew.real(x), ew.imag(x))
        )
        return real + 1j * imag
    if not isdtype(x.dtype, "real floating"):
        return asarray(x, copy=True)
    limits = np.finfo(x.dtype)
    low = float(limits.min) if neginf is None else neginf
    high = float(limits.max) if posinf is None else posinf
    found = where(ew.isnan(x), nan, x)
    return where(found == inf, high, where(found == -inf, low, found))
