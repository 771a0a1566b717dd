"""Discrete Fourier transforms: the `fft` extension of the standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import float_info
from typing import Any, Literal, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.graph.node import Node, materialized_node, no_memory, record
from tecomp.array.library_fallback import call_library
from tecomp.array.statistics import counters
from tecomp.array.validation import check_choice, dtype_at, integer, integers, shape_of
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import device_name
from tecomp.ptensor.operations.library_ops import NORMS, FourierTransformOp
from tecomp.ptensor.operations.manipulation import Roll
from tecomp.ptensor.types import FLOATS, Axes, PTensorType, axes_of, axis_of, numpy_dtype

Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]


def __dir__() -> list[str]:
    """Return the public names of the module."""
    return sorted(__all__)


def _transform_along(
    kind: str, x: object, n: SupportsIndex | None, axis: SupportsIndex, norm: str
) -> Array:
    node = node_of(x, kind)
    dim = axis_of(axis, node.type.rank, kind)
    size = None if n is None else integer(n, kind, "n")
    return _transform(
        FourierTransformOp(kind, (size,), (dim,), check_choice(norm, NORMS, kind, "norm")), node)


def _transform(op: FourierTransformOp, node: Node) -> Array:
    (result,) = op.results(node.type)
    shape_of(result.shape, op.kind, result.dtype)  # reject sizes beyond every machine
    (found,) = call_library(op, node)
    return from_node(found)


def _transform_over(
    kind: str, x: object, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str
) -> Array:
    node = node_of(x, kind)
    rank = node.type.rank
    sizes = None if s is None else integers(s, kind, "s")
    if axes is not None:
        dims = tuple([axis_of(k, rank, kind) for k in integers(axes, kind, "axes")])
    else:
        count = rank if sizes is None else len(sizes)
        dims = tuple(range(max(rank - count, 0), rank))
    lengths = (None,) * len(dims) if sizes is None else sizes
    if not dims:
        raise ArrayValueError(
            "{where}: no axis to transform for x of shape {shape}; pass at least one axis",
            kind="array-shapes", where=kind, shape=node.type.shape,
        )
    return _transform(
        FourierTransformOp(kind, lengths, dims, check_choice(norm, NORMS, kind, "norm")), node)


def fft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the one-dimensional DFT along an axis.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: Length of the transform; the axis is truncated or zero-padded. Default: the size of the
            axis.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales the inverse transform by 1/n, `forward` this transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> fft(xp.asarray([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _transform_along("fft", x, n, axis, norm)


def ifft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the inverse one-dimensional DFT along an axis.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: Length of the transform; the axis is truncated or zero-padded. Default: the size of the
            axis.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales this transform by 1/n, `forward` the forward transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> ifft(fft(xp.asarray([1.0, 0.0, 0.0])))
    Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex128)
    """
    return _transform_along("ifft", x, n, axis, norm)


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Compute the n-dimensional DFT along the given axes.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: Length of the transform along each axis. Default: the sizes of the axes.
        axes: Axes along which to transform. Default: the last `len(s)` axes, or all axes without
            `s`.
        norm: `backward` scales the inverse transform by 1/n, `forward` this transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If a length is less than 1, `norm` is unknown, or `s` and `axes` differ in
            length.

    >>> import tecomp.array as xp
    >>> fftn(xp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _transform_over("fftn", x, s, axes, norm)


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Compute the inverse n-dimensional DFT along the given axes.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: Length of the transform along each axis. Default: the sizes of the axes.
        axes: Axes along which to transform. Default: the last `len(s)` axes, or all axes without
            `s`.
        norm: `backward` scales this transform by 1/n, `forward` the forward transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If a length is less than 1, `norm` is unknown, or `s` and `axes` differ in
            length.

    >>> import tecomp.array as xp
    >>> ifftn(fftn(xp.ones((1, 2))))
    Array([[1.+0.j, 1.+0.j]], dtype=complex128)
    """
    return _transform_over("ifftn", x, s, axes, norm)


def rfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the one-sided DFT of a real-valued array along an axis.

    Args:
        x: Input array of real floating-point dtype.
        n: Length of the transform along the axis. Default: the size of the axis.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales the inverse transform by 1/n, `forward` this transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`, with `n // 2 + 1` elements along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> rfft(xp.asarray([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _transform_along("rfft", x, n, axis, norm)


def irfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the inverse of `rfft`: the real array of a one-sided DFT.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: Length of the result along the axis. Default: the even number 2 * (m - 1) for m input
            elements.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales this transform by 1/n, `forward` the forward transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Real array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> irfft(rfft(xp.asarray([1.0, 0.0, 0.0, 0.0])))
    Array([1., 0., 0., 0.], dtype=float64)
    """
    return _transform_along("irfft", x, n, axis, norm)


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Compute the n-dimensional DFT of a real-valued array, one-sided along the last axis.

    Args:
        x: Input array of real floating-point dtype.
        s: Length of the transform along each axis. Default: the sizes of the axes.
        axes: Axes along which to transform. Default: the last `len(s)` axes, or all axes without
            `s`.
        norm: `backward` scales the inverse transform by 1/n, `forward` this transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`, with `n // 2 + 1` elements along the last of the
        axes.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If a length is less than 1, `norm` is unknown, or `s` and `axes` differ in
            length.

    >>> import tecomp.array as xp
    >>> rfftn(xp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _transform_over("rfftn", x, s, axes, norm)


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Compute the inverse of `rfftn`: the real array of a one-sided n-dimensional DFT.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: Length of the result along each axis. Default: the sizes of the axes; along the last
            axis, the even number 2 * (m - 1) for m input elements.
        axes: Axes along which to transform. Default: the last `len(s)` axes, or all axes without
            `s`.
        norm: `backward` scales this transform by 1/n, `forward` the forward transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Real array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If a length is less than 1, `norm` is unknown, or `s` and `axes` differ in
            length.

    >>> import tecomp.array as xp
    >>> irfftn(rfftn(xp.ones((1, 2))))
    Array([[1., 1.]], dtype=float64)
    """
    return _transform_over("irfftn", x, s, axes, norm)


def hfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the real DFT of a Hermitian-symmetric array, given as its first half.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: Length of the result along the axis. Default: the even number 2 * (m - 1) for m input
            elements.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales the inverse transform by 1/n, `forward` this transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Real array of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> hfft(xp.asarray([1.0, 0.0]))
    Array([1., 1.], dtype=float64)
    """
    return _transform_along("hfft", x, n, axis, norm)


def ihfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """Compute the inverse of `hfft`: one half of a Hermitian-symmetric array.

    Args:
        x: Input array of real floating-point dtype.
        n: Length of the transform; the axis is truncated or zero-padded. Default: the size of the
            axis.
        axis: Axis along which to transform. Negative values count from the last axis. Default: -1.
        norm: `backward` scales this transform by 1/n, `forward` the forward transform by 1/n,
            `ortho` both by 1/sqrt(n). Default: `backward`.

    Returns:
        Complex array of the precision of `x`, with `n // 2 + 1` elements along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the length is less than 1, or `norm` is unknown.

    >>> import tecomp.array as xp
    >>> ihfft(hfft(xp.asarray([1.0, 0.0])))
    Array([1.-0.j, 0.-0.j], dtype=complex128)
    """
    return _transform_along("ihfft", x, n, axis, norm)


def fftfreq(n: SupportsIndex, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the sample frequencies of `fft`.

    Args:
        n: Length of the transform.
        d: Sample spacing. Default: 1.0.
        dtype: Real floating-point dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.

    Returns:
        Array of `n` frequencies, in cycles per unit of `d`.

    Raises:
        ArrayTypeError: If `n` is not an integer, or `dtype` is not a real floating-point dtype.
        ArrayValueError: If `n` is less than 1, `d` is 0, or the device is unknown.

    >>> import tecomp.array as xp
    >>> fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float64)
    """
    return _frequencies("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(
    n: SupportsIndex, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Array:
    """Return the sample frequencies of `rfft`.

    Args:
        n: Length of the transform.
        d: Sample spacing. Default: 1.0.
        dtype: Real floating-point dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.

    Returns:
        Array of `n // 2 + 1` frequencies, in cycles per unit of `d`.

    Raises:
        ArrayTypeError: If `n` is not an integer, or `dtype` is not a real floating-point dtype.
        ArrayValueError: If `n` is less than 1, `d` is 0, or the device is unknown.

    >>> import tecomp.array as xp
    >>> rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float64)
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(
    where: str, function: Callable[..., Any], n: SupportsIndex, d: float, dtype: Any, device: Any
) -> Array:
    count = integer(n, where, "n")
    target_device = device_name(device, where)
    name = dtype_at(dtype, "float64", target_device, where)
    if name not in FLOATS:
        raise ArrayTypeError(
            "{where}: dtype is {name}, expected one of {floats}",
            where=where, name=name, floats=", ".join(FLOATS),
        )
    if not isinstance(d, int | float | np.integer | np.floating):
        raise ArrayTypeError(
            "{where}: d must be a real number, got {d!r} ({type})",
            where=where, d=d, type=type(d).__name__,
        )
    if count < 1 or d == 0:
        raise ArrayValueError(
            "{where}: n must be at least 1 and d must be nonzero, got n={count} and d={d}",
            where=where, count=count, d=d,
        )
    if abs(d) > float_info.max:
        raise ArrayValueError(
            "{where}: d exceeds the range of float64; pass a smaller value",
            where=where,
        )
    counters.libraries[f"numpy.fft.{where}"] += 1
    shape = shape_of(count, where, name)
    try:
        data = function(count, d).astype(numpy_dtype(name))
    except MemoryError:
        raise no_memory(shape, numpy_dtype(name)) from None
    return from_node(materialized_node(data, PTensorType(data.shape, name, target_device)))


def fftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """Move the zero-frequency component of the result of `fft` to the center.

    Args:
        x: Input array.
        axes: Axes along which to shift. Default: all axes.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If `axes` contains duplicates.

    >>> import tecomp.array as xp
    >>> fftshift(fftfreq(4, d=0.5))
    Array([-1. , -0.5,  0. ,  0.5], dtype=float64)
    """
    return _shift("fftshift", x, axes, lambda extent: extent // 2)


def ifftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """Compute the inverse of `fftshift`.

    Args:
        x: Input array.
        axes: Axes along which to shift. Default: all axes.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If `axes` contains duplicates.

    >>> import tecomp.array as xp
    >>> ifftshift(fftshift(fftfreq(3)))
    Array([ 0.        ,  0.33333333, -0.33333333], dtype=float64)
    """
    return _shift("ifftshift", x, axes, lambda extent: -(extent // 2))


def _shift(where: str, x: object, axes: Axes, shift_of: Callable[[int], int]) -> Array:
    node = node_of(x, where)
    dims = axes_of(axes, node.type.rank, where)
    shifts = tuple([shift_of(node.type.shape[k]) for k in dims])
    return from_node(record(Roll(shifts, dims), node) if dims else node)
