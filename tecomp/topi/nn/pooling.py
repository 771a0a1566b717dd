"""Maximum and average pooling with fixed, adaptive and global windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import TypeMismatchError, te
from tecomp.errors import safe_str
from tecomp.schedules.common import wide_type
from tecomp.topi import tag
from tecomp.topi.extents import Size, ceil_div, minus, plus, product, quotient
from tecomp.topi.nn.pad import pad_images
from tecomp.topi.reduction import define_reduction
from tecomp.topi.validation import integers_of, validate_choice
from tecomp.topi.windows import SPATIAL, Images, SlidingWindows, images_of, taps_of, windows_of

Numbers = Any


def _define_pool(
    data: te.Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Numbers,
    pool_type: str, ceil_mode: bool, layout: str, count_include_pad: bool, space: str, name: str,
) -> te.Tensor:
    where = f"topi.nn.{name}"
    images, count = _images(data, layout, pool_type, space, where), len(space)
    sizes = integers_of(kernel, count, where, "kernel", least=1)
    windows = windows_of(images, sizes, stride, dilation, padding, where)
    shape, before, high = windows.shape(where), windows.before, list(windows.after)
    for k, axis in enumerate(images.spatial if ceil_mode else ()):
        shape[axis] = _ceil_windows(windows, k)
        high[k] += windows.steps[k] - 1
    image, taps = pad_images(images, before, high, _neutral(data, pool_type)), windows.taps()

    def read(*i: te.Expr) -> te.Expr:
        return image(*windows.element(i, taps))

    def places(k: int, index: te.Expr) -> Any:
        """Return the number of window elements that a mean counts along one spatial axis."""
        if (count_include_pad and not ceil_mode) or not (before[k] or high[k]):
            return sizes[k]
        extent = images.extents[k]
        first, last = (0, windows.padded_extent(k)) if count_include_pad else (
            before[k], extent + before[k])
        return _taps_inside(index * windows.steps[k], sizes[k], windows.dilations[k], first, last)

    return _reduce_windows(images, shape, read, taps, None, places, pool_type, "pool")


def _reduce_windows(
    images: Images, shape: Sequence[Size], read: Callable[..., te.Expr],
    taps: Sequence[te.IterVar], inside: Callable[..., te.Expr] | None,
    tap_count: Callable[[int, te.Expr], Any], pool_type: str, name: str,
) -> te.Tensor:
    """Define the maximum over windows, or the sum divided by the product of the counts per axis."""
    dtype = images.tensor.dtype
    wide_dtype = wide_type(dtype) if pool_type == "avg" else dtype
    reducer = te.max if pool_type == "max" else te.sum

    def total(*i: te.Expr) -> te.Expr:
        where = None if inside is None else inside(*i)
        return reducer(te.cast(read(*i), wide_dtype), axis=list(taps), where=where)

    named = f"{name}_{pool_type}"
    reduced = te.compute(tuple(shape), total, name=named, tag=named)
    if pool_type == "max":
        return reduced

    def mean(*i: te.Expr) -> te.Expr:
        count: Any = 1
        for k, axis in enumerate(images.spatial):
            count = count * tap_count(k, i[axis])
        return te.cast(reduced(*i) / te.cast(count, wide_dtype), dtype)

    return te.compute(tuple(shape), mean, name=f"{named}_div", tag=tag.ELEMWISE)


def _taps_inside(low: te.Expr, size: int, step: int, first: int, last: Any) -> te.Expr:
    """Return how many of `low + apart * t`, 0 <= t < size, are in [first, last), at least 1."""
    before = te.max((first - low + (step - 1)) // step, 0) if first else 0
    stop = te.min((last - low + (step - 1)) // step, size)
    return te.max(stop - before, 1)


def _ceil_windows(windows: SlidingWindows, k: int) -> Size:
    """Return the number of windows along an axis, including a last partial window.

    With constant extents, a partial window counts only if it starts before the end of the data.
    """
    extent, step = windows.images.extents[k], windows.steps[k]
    count = plus(ceil_div(minus(windows.padded_extent(k), windows.reaches[k]), step), 1)
    if isinstance(count, int) and isinstance(extent, int) and (
        (count - 1) * step >= extent + windows.before[k]
    ):
        return count - 1
    return count


def _neutral(data: te.Tensor, pool_type: str) -> te.Expr:
    """Return the padding value that does not change a maximum or a sum."""
    if pool_type != "max":
        return te.const(0, data.dtype)
    return te.lower_bound(data.dtype)


def _images(
    data: te.Tensor, layout: str, pool_type: str, space: str, where: str
) -> Images:
    validate_choice(pool_type, ("max", "avg"), where, "pool_type")
    images = images_of(data, layout, f"NC{space}", where)
    if pool_type == "avg" and not data.dtype.is_float:
        raise TypeMismatchError(
            "{where}: {data} has dtype {dtype}, but average pooling requires a float dtype; "
            'convert it first: topi.cast({data}, "float32")',
            where=where, data=data.name, dtype=data.dtype,
        )
    return images


def pool1d(
    data: te.Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Numbers,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True,
) -> te.Tensor:
    """Compute one-dimensional maximum or average pooling.

    Args:
        data: Sequences.
        kernel: Window extent.
        stride: Distance between adjacent windows, in elements.
        dilation: Distance between adjacent elements of a window.
        padding: Padding: one number, the padding before and after, "VALID" or "SAME". Padding never
            is the maximum and counts as 0 in a mean.
        pool_type: "max" or "avg".
        ceil_mode: If True, also count windows that start before the end of the sequences and end
            outside the padding.
        layout: Layout of the data with the letters N, C and W in any order.
        count_include_pad: If True, the divisor of a mean counts window elements in the padding too.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> pool1d(te.placeholder((1, 3, 9), name="X"), [3], [2], [1], [0, 0], "max").shape
    (1, 3, 4)
    """
    return _define_pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad,
        "W", "pool1d")


def pool2d(
    data: te.Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Numbers,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True,
) -> te.Tensor:
    """Compute two-dimensional maximum or average pooling.

    Args:
        data: Images.
        kernel: Window extents: one number, or one per axis.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        dilation: Distance between adjacent elements of a window: one number, or one per axis.
        padding: Padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME". Padding never is the maximum and counts as 0 in a mean.
        pool_type: "max" or "avg".
        ceil_mode: If True, also count windows that start before the end of the images and end
            outside the padding.
        layout: Layout of the images with the letters N, C, H and W in any order.
        count_include_pad: If True, the divisor of a mean counts window elements in the padding too.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> X = te.placeholder((1, 3, 9, 9), name="X")
    >>> pool2d(X, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "avg").shape
    (1, 3, 5, 5)
    """
    return _define_pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad,
        "HW", "pool2d")


def pool3d(
    data: te.Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Numbers,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True,
) -> te.Tensor:
    """Compute three-dimensional maximum or average pooling.

    Args:
        data: Volumes.
        kernel: Window extents: one number, or one per axis.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        dilation: Distance between adjacent elements of a window: one number, or one per axis.
        padding: Padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME". Padding never is the maximum and counts as 0 in a mean.
        pool_type: "max" or "avg".
        ceil_mode: If True, also count windows that start before the end of the volumes and end
            outside the padding.
        layout: Layout of the volumes with the letters N, C, D, H and W in any order.
        count_include_pad: If True, the divisor of a mean counts window elements in the padding too.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> X = te.placeholder((1, 3, 4, 8, 8), name="X")
    >>> pool3d(X, (2, 2, 2), (2, 2, 2), (1, 1, 1), (0,) * 6, "max").shape
    (1, 3, 2, 4, 4)
    """
    return _define_pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad,
        SPATIAL, "pool3d")


def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """Compute the maximum or mean over all spatial axes, which are kept with extent 1.

    Args:
        data: Images.
        pool_type: "max" or "avg".
        layout: Layout of the images with the letters N and C, and any of D, H and W.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> global_pool(te.placeholder((1, 3, 9, 9), name="X"), "avg").shape
    (1, 3, 1, 1)
    """
    where = "topi.nn.global_pool"
    space = "".join(letter for letter in SPATIAL if letter in safe_str(layout))
    images = _images(data, layout, pool_type, space, where)
    if pool_type == "max":
        return define_reduction(data, list(images.spatial), True, "max", "global_pool_max")
    return _mean(images)


def _mean(images: Images) -> te.Tensor:
    x, wide_dtype = images.tensor, wide_type(images.tensor.dtype)
    runs = {k: te.reduce_axis((0, x.shape[k]), name=f"k{k}") for k in images.spatial}
    shape = tuple(1 if k in runs else n for k, n in enumerate(x.shape))
    total = te.compute(
        shape,
        lambda *i: te.sum(
            te.cast(x(*(runs.get(k, axis) for k, axis in enumerate(i))), wide_dtype),
            axis=list(runs.values())),
        name="global_pool_sum", tag="global_pool_sum",
    )
    count = product(x.shape[k] for k in images.spatial)
    return te.compute(
        shape, lambda *i: te.cast(total(*i) / te.cast(count, wide_dtype), x.dtype),
        name="global_pool_avg", tag=tag.ELEMWISE)


def adaptive_pool(
    data: te.Tensor, output_size: Numbers, pool_type: str, layout: str = "NCHW"
) -> te.Tensor:
    """Compute two-dimensional pooling with windows that divide the image evenly.

    Window k of n covers the interval [floor(k * extent / n), ceil((k + 1) * extent / n)).

    Args:
        data: Images.
        output_size: Result extents: one number, or one per axis.
        pool_type: "max" or "avg".
        layout: Layout of the images with the letters N, C, H and W in any order.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> adaptive_pool(te.placeholder((1, 3, 9, 9), name="X"), (2, 2), "avg").shape
    (1, 3, 2, 2)
    """
    return _adaptive_pool(data, output_size, pool_type, layout, "HW", "adaptive_pool")


def adaptive_pool1d(
    data: te.Tensor, output_size: Numbers, pool_type: str, layout: str = "NCW"
) -> te.Tensor:
    """Compute one-dimensional pooling with windows that divide the sequence evenly.

    Window k of n covers the interval [floor(k * extent / n), ceil((k + 1) * extent / n)).

    Args:
        data: Sequences.
        output_size: Result extent along W.
        pool_type: "max" or "avg".
        layout: Layout of the data with the letters N, C and W in any order.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> adaptive_pool1d(te.placeholder((1, 3, 9), name="X"), 4, "avg").shape
    (1, 3, 4)
    """
    return _adaptive_pool(data, output_size, pool_type, layout, "W", "adaptive_pool1d")


def adaptive_pool3d(
    data: te.Tensor, output_size: Numbers, pool_type: str, layout: str = "NCDHW"
) -> te.Tensor:
    """Compute three-dimensional pooling with windows that divide the volume evenly.

    Window k of n covers the interval [floor(k * extent / n), ceil((k + 1) * extent / n)).

    Args:
        data: Volumes.
        output_size: Result extents: one number, or one per axis.
        pool_type: "max" or "avg".
        layout: Layout of the volumes with the letters N, C, D, H and W in any order.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.
        TypeMismatchError: If `pool_type` is "avg" and the dtype is not floating-point.

    >>> X = te.placeholder((1, 3, 4, 8, 8), name="X")
    >>> adaptive_pool3d(X, (2, 3, 3), "max").shape
    (1, 3, 2, 3, 3)
    """
    return _adaptive_pool(data, output_size, pool_type, layout, SPATIAL, "adaptive_pool3d")


def _adaptive_pool(
    data: te.Tensor, output_size: Numbers, pool_type: str, layout: str, space: str, name: str
) -> te.Tensor:
    where = f"topi.nn.{name}"
    images = _images(data, layout, pool_type, space, where)
    sizes = integers_of(output_size, len(space), where, "output_size", least=1)
    known = [n for n in images.extents if isinstance(n, int)]
    if len(known) == len(sizes) and all(
        n % size == 0 and n for n, size in zip(known, sizes, strict=True)
    ):
        kernel = [n // size for n, size in zip(known, sizes, strict=True)]
        return _define_pool(
            data, kernel, kernel, 1, 0, pool_type, False, layout, True, space, name)
    shape = list(data.shape)
    # A window with fractional bounds covers up to two elements more than `n // size`.
    longest = [plus(quotient(n, size), 2) for n, size in zip(images.extents, sizes, strict=True)]
    taps = taps_of(longest)
    for axis, size in zip(images.spatial, sizes, strict=True):
        shape[axis] = size

    def bounds(k: int, index: te.Expr) -> tuple[te.Expr, te.Expr]:
        extent = images.extents[k]
        first = index * extent // sizes[k]
        return first, ((index + 1) * extent + (sizes[k] - 1)) // sizes[k]

    def read(*i: te.Expr) -> te.Expr:
        position = list(i)
        for k, axis in enumerate(images.spatial):
            position[axis] = te.min(bounds(k, i[axis])[0] + taps[k], images.extents[k] - 1)
        return data(*position)

    def inside(*i: te.Expr) -> te.Expr:
        ends = (bounds(k, i[axis]) for k, axis in enumerate(images.spatial))
        return te.all(*(low + tap < high for (low, high), tap in zip(ends, taps, strict=True)))

    def places(k: int, index: te.Expr) -> te.Expr:
        first, last = bounds(k, index)
        return last - first

    return _reduce_windows(images, shape, read, taps, inside, places, pool_type, "adaptive_pool")
