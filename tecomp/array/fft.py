"""Discrete Fourier transforms: the extension `fft` of the standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import float_info
from typing import Any, Literal, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, made, node_of
from tecomp.array.graph.node import Node, leaf, no_memory, record
from tecomp.array.library_fallback import library_call
from tecomp.array.statistics import counters
from tecomp.array.validation import dtype_at, integer, integers, shape_of, word
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import device_name
from tecomp.ptensor.operations.library_ops import NORMS, Transform
from tecomp.ptensor.operations.manipulation import Roll
from tecomp.ptensor.types import FLOATS, Axes, PTensorType, axes_of, axis_of, numpy_dtype

Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]


def __dir__() -> list[str]:
    """What a user types, and nothing that it is made with."""
    return sorted(__all__)


def _along(
    kind: str, x: object, n: SupportsIndex | None, axis: SupportsIndex, norm: str
) -> Array:
    node = node_of(x, kind)
    place = axis_of(axis, node.type.rank, kind)
    size = None if n is None else integer(n, kind, "n")
    return _transformed(Transform(kind, (size,), (place,), word(norm, NORMS, kind, "norm")), node)


def _transformed(op: Transform, node: Node) -> Array:
    (result,) = op.results(node.type)
    shape_of(result.shape, op.kind, result.dtype)  # none that is too large for any machine
    (found,) = library_call(op, node)
    return made(found)


def _over(
    kind: str, x: object, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str
) -> Array:
    node = node_of(x, kind)
    rank = node.type.rank
    sizes = None if s is None else integers(s, kind, "s")
    if axes is not None:
        places = tuple([axis_of(k, rank, kind) for k in integers(axes, kind, "axes")])
    else:
        count = rank if sizes is None else len(sizes)
        places = tuple(range(max(rank - count, 0), rank))
    given = (None,) * len(places) if sizes is None else sizes
    if not places:
        raise ArrayValueError(
            f"{kind}: x has shape {node.type.shape}, and no axis to transform along; give one",
            kind="array-shapes",
        )
    return _transformed(Transform(kind, given, places, word(norm, NORMS, kind, "norm")), node)


def fft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The discrete Fourier transform along an axis.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: how many elements are transformed: others are left out, or 0; all that there are if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale the inverse by 1/n, `forward` to scale this one, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> fft(xp.asarray([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _along("fft", x, n, axis, norm)


def ifft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The inverse of `fft`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: how many elements are transformed: others are left out, or 0; all that there are if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale this one by 1/n, `forward` to scale the other, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> ifft(fft(xp.asarray([1.0, 0.0, 0.0])))
    Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex128)
    """
    return _along("ifft", x, n, axis, norm)


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The discrete Fourier transform along several axes.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: how many elements are transformed along each; all that there are if None.
        axes: along which; the last ones, as many as `s` has, if None, or all of them.
        norm: `backward` to scale the inverse by 1/n, `forward` to scale this one, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, there is no such norm, or no size for each axis.

    >>> import tecomp.array as xp
    >>> fftn(xp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _over("fftn", x, s, axes, norm)


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of `fftn`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: how many elements are transformed along each; all that there are if None.
        axes: along which; the last ones, as many as `s` has, if None, or all of them.
        norm: `backward` to scale this one by 1/n, `forward` to scale the other, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, there is no such norm, or no size for each axis.

    >>> import tecomp.array as xp
    >>> ifftn(fftn(xp.ones((1, 2))))
    Array([[1.+0.j, 1.+0.j]], dtype=complex128)
    """
    return _over("ifftn", x, s, axes, norm)


def rfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The half of `fft` of real numbers from which the other follows.

    Args:
        x: Input array of real floating-point dtype.
        n: how many elements are transformed; all that there are if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale the inverse by 1/n, `forward` to scale this one, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`, `n // 2 + 1` along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> rfft(xp.asarray([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _along("rfft", x, n, axis, norm)


def irfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The inverse of `rfft`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: how many elements the result has; an even number, of which `x` has half, if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale this one by 1/n, `forward` to scale the other, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Real numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> irfft(rfft(xp.asarray([1.0, 0.0, 0.0, 0.0])))
    Array([1., 0., 0., 0.], dtype=float64)
    """
    return _along("irfft", x, n, axis, norm)


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The half of `fftn` of real numbers from which the other follows: half of the last axis.

    Args:
        x: Input array of real floating-point dtype.
        s: how many elements are transformed along each; all that there are if None.
        axes: along which; the last ones, as many as `s` has, if None, or all of them.
        norm: `backward` to scale the inverse by 1/n, `forward` to scale this one, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`, half and one along the last of the axes.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, there is no such norm, or no size for each axis.

    >>> import tecomp.array as xp
    >>> rfftn(xp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _over("rfftn", x, s, axes, norm)


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of `rfftn`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        s: how many elements the result has along each; all that there are if None, and along the
            last axis an even number, of which `x` has half.
        axes: along which; the last ones, as many as `s` has, if None, or all of them.
        norm: `backward` to scale this one by 1/n, `forward` to scale the other, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Real numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, there is no such norm, or no size for each axis.

    >>> import tecomp.array as xp
    >>> irfftn(rfftn(xp.ones((1, 2))))
    Array([[1., 1.]], dtype=float64)
    """
    return _over("irfftn", x, s, axes, norm)


def hfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The real transform of half a row whose other half is its mirror image, conjugated.

    Args:
        x: Input array of floating-point dtype, real or complex.
        n: how many elements the result has; an even number, of which `x` has half, if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale the inverse by 1/n, `forward` to scale this one, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Real numbers of the precision of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> hfft(xp.asarray([1.0, 0.0]))
    Array([1., 1.], dtype=float64)
    """
    return _along("hfft", x, n, axis, norm)


def ihfft(
    x: Array, /, *, n: int | None = None, axis: SupportsIndex = -1, norm: Norm = "backward"
) -> Array:
    """The inverse of `hfft`.

    Args:
        x: Input array of real floating-point dtype.
        n: how many elements are transformed: others are left out, or 0; all that there are if None.
        axis: Axis along which to compute. Negative values count from the last axis.
        norm: `backward` to scale this one by 1/n, `forward` to scale the other, `ortho` to scale
            both by 1/sqrt(n).

    Returns:
        Complex numbers of the precision of `x`, `n // 2 + 1` along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: no element is transformed, or there is no such norm.

    >>> import tecomp.array as xp
    >>> ihfft(hfft(xp.asarray([1.0, 0.0])))
    Array([1.-0.j, 0.-0.j], dtype=complex128)
    """
    return _along("ihfft", x, n, axis, norm)


def fftfreq(n: SupportsIndex, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of what `fft` gives.

    Args:
        n: how many elements were transformed.
        d: from one of them to the next.
        dtype: a real floating-point type; float64 if None.
        device: Device of the array. Default: the default device.

    Returns:
        `n` frequencies, in cycles per unit of `d`.

    Raises:
        ArrayTypeError: `n` is no integer, or the type is another.
        ArrayValueError: `n` is below 1, or `d` is 0; or there is no such device.

    >>> import tecomp.array as xp
    >>> fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float64)
    """
    return _frequencies("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(
    n: SupportsIndex, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Array:
    """The frequencies of what `rfft` gives.

    Args:
        n: how many elements were transformed.
        d: from one of them to the next.
        dtype: a real floating-point type; float64 if None.
        device: Device of the array. Default: the default device.

    Returns:
        `n // 2 + 1` frequencies, in cycles per unit of `d`.

    Raises:
        ArrayTypeError: `n` is no integer, or the type is another.
        ArrayValueError: `n` is below 1, or `d` is 0; or there is no such device.

    >>> import tecomp.array as xp
    >>> rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float64)
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(
    where: str, function: Callable[..., Any], n: SupportsIndex, d: float, dtype: Any, device: Any
) -> Array:
    count = integer(n, where, "n")
    place = device_name(device, where)
    name = dtype_at(dtype, "float64", place, where)
    if name not in FLOATS:
        raise ArrayTypeError(f"{where}: dtype is {name}, and it takes {', '.join(FLOATS)}")
    if not isinstance(d, int | float | np.integer | np.floating):
        raise ArrayTypeError(f"{where}: d is {d!r}, {type(d).__name__}; give a real number")
    if count < 1 or d == 0:
        raise ArrayValueError(f"{where}: n is {count} and d is {d}; give 1 or more, and not 0")
    if abs(d) > float_info.max:
        raise ArrayValueError(f"{where}: d is more than a float holds; give a smaller one")
    counters.libraries[f"numpy.fft.{where}"] += 1
    shape = shape_of(count, where, name)
    try:
        data = function(count, d).astype(numpy_dtype(name))
    except MemoryError:
        raise no_memory(shape, numpy_dtype(name)) from None
    return made(leaf(data, PTensorType(data.shape, name, place)))


def fftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """What `fft` gives with the frequency 0 in the middle.

    Args:
        x: Input array.
        axes: along which; all of them if None.

    Returns:
        The same shape and type.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> fftshift(fftfreq(4, d=0.5))
    Array([-1. , -0.5,  0. ,  0.5], dtype=float64)
    """
    return _shifted("fftshift", x, axes, lambda extent: extent // 2)


def ifftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """The inverse of `fftshift`.

    Args:
        x: Input array.
        axes: which; all if None.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> ifftshift(fftshift(fftfreq(3)))
    Array([ 0.        ,  0.33333333, -0.33333333], dtype=float64)
    """
    return _shifted("ifftshift", x, axes, lambda extent: -(extent // 2))


def _shifted(where: str, x: object, axes: Axes, by: Callable[[int], int]) -> Array:
    node = node_of(x, where)
    places = axes_of(axes, node.type.rank, where)
    shifts = tuple([by(node.type.shape[k]) for k in places])
    return made(record(Roll(shifts, places), node) if places else node)
