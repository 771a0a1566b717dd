"""Resizing and cropping of images by interpolation between adjacent pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, equal, minus, times
from tecomp.topi.validation import (
    as_bool,
    check_float,
    check_integer,
    check_rank,
    extents_of,
    integers_of,
    tensor_of,
    validate_choice,
)
from tecomp.topi.windows import SPATIAL, Images, images_of

MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
         "tf_half_pixel_for_nn", "tf_crop_and_resize")  # fmt: skip
METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "bilinear": "linear",
           "trilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}  # fmt: skip
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
_INTEGER_TOLERANCE = 1e-5
"""Distance in pixels within which a coordinate counts as an integer, to absorb rounding errors."""

Tap = tuple[te.Expr, te.Expr | None]
"""Index of a pixel along an axis, and its weight; None is the weight 1."""


@dataclass(frozen=True)
class ResizeMethod:
    """Coordinate transformation and interpolation of a resize operator.

    Attributes:
        method: Interpolation: "nearest", "linear" or "cubic".
        mode: Coordinate transformation mode, from result positions to image coordinates.
        rounding: Rounding of coordinates for "nearest"; empty for the default of the mode.
        alpha: Coefficient of the cubic kernel.
        exclude: If True, out-of-bounds pixels have weight 0 in the cubic kernel. Otherwise, and for
            other methods, the nearest edge pixels replace them.
    """

    method: str
    mode: str
    rounding: str
    alpha: float
    exclude: bool


def _real(value: Any) -> te.Expr:
    """Convert a number or an expression to float32."""
    return te.const(value, "float32") if isinstance(value, int | float) else te.cast(
        value, "float32")


def _ratio(numerator: Size, denominator: Size) -> te.Expr:
    if isinstance(numerator, int) and isinstance(denominator, int):
        return te.const(numerator / denominator if denominator else 0.0, "float32")
    return _real(numerator) / _real(denominator)


@dataclass(frozen=True)
class RationalCoordinate:
    """Rational coordinate `number / under` in pixels, of integers, which avoids rounding errors."""

    number: Any
    under: Size

    def below(self) -> Any:
        """Return the index of the pixel at or before the coordinate."""
        return self._floor(self.number)

    def fraction(self) -> te.Expr:
        """Return the distance of the coordinate from the pixel at or before it, in float32."""
        if equal(self.under, 1):
            return te.const(0.0, "float32")
        return te.cast(self.number % self.under, "float32") / _real(self.under)

    def nearest(self, rounding: str) -> Any:
        """Return the index of the nearest pixel; "round" rounds ties up.

        For "round", ties up and ties away from zero differ only at negative coordinates, whose
        indices are clamped to 0 by the caller.
        """
        if rounding == "floor":
            return self.below()
        if rounding == "ceil":
            return -self._floor(-self.number)
        doubled = RationalCoordinate(self.number * 2, times(self.under, 2))
        if rounding == "round_prefer_floor":
            return -doubled._floor(-(doubled.number - self.under))
        return doubled._floor(doubled.number + self.under)

    def _floor(self, number: Any) -> Any:
        return number if equal(self.under, 1) else number // self.under


@dataclass(frozen=True)
class FloatCoordinate:
    """Floating-point coordinate in pixels, for crop bounds that are not integers."""

    value: te.Expr

    def below(self) -> te.Expr:
        """Return the index of the pixel at or before the coordinate."""
        return te.cast(te.floor(self.value), "int32")

    def fraction(self) -> te.Expr:
        """Return the distance of the coordinate from the pixel at or before it."""
        return self.value - te.floor(self.value)

    def nearest(self, rounding: str) -> te.Expr:
        """Return the index of the nearest pixel."""
        half, tolerance = te.const(0.5, "float32"), te.const(_INTEGER_TOLERANCE, "float32")
        rounded = {
            "round": lambda: te.round(self.value),
            "floor": lambda: te.floor(self.value + tolerance),
            "ceil": lambda: te.ceil(self.value - tolerance),
            "round_prefer_floor": lambda: te.ceil(self.value - half),
            "round_prefer_ceil": lambda: te.floor(self.value + half),
        }[rounding]()
        return te.cast(rounded, "int32")


def _place(x: te.Expr, extent: Size, size: Size, mode: str) -> RationalCoordinate:
    """Return the image coordinate of a result position: `(factor * x + first) / under`."""
    if equal(size, 0):
        return RationalCoordinate(te.const(0), 1)  # The result is empty.
    factor, first, denominator = {
        "half_pixel": (times(extent, 2), minus(extent, size), times(size, 2)),
        "tf_half_pixel_for_nn": (times(extent, 2), extent, times(size, 2)),
        "asymmetric": (extent, 0, size),
        "align_corners": (minus(extent, 1), 0, minus(size, 1)),
    }[mode.removeprefix("pytorch_")]
    if mode in ("pytorch_half_pixel", "align_corners") and equal(size, 1):
        return RationalCoordinate(te.const(0), 1)
    if isinstance(factor, int) and isinstance(first, int) and isinstance(denominator, int):
        divisor = math.gcd(factor, first, denominator) or 1
        factor, first, denominator = factor // divisor, first // divisor, denominator // divisor
    number = x if equal(factor, 1) else x * factor
    return RationalCoordinate(number if equal(first, 0) else number + first, denominator)


def _cut_place(x: te.Expr, extent: Size, size: Size, first: Any, last: Any) -> FloatCoordinate:
    """Return the image coordinate of a position in a crop; bounds are fractions of the extent."""
    widest = _real(extent) - _real(1)
    low, high = _real(first), _real(last)
    if equal(size, 1):
        return FloatCoordinate((low + high) * te.const(0.5, "float32") * widest)
    share = (high - low) * _ratio(minus(extent, 1), minus(size, 1))
    return FloatCoordinate(low * widest + te.cast(x, "float32") * share)


def _taps(coord: RationalCoordinate | FloatCoordinate, extent: Size, spec: ResizeMethod) -> list[
        Tap]:
    """Return the pixels along an axis, with weights, that interpolate a coordinate."""
    if spec.method == "nearest":
        kind = spec.rounding or ("round" if spec.mode == "align_corners" else "floor")
        return [(_inside(coord.nearest(kind), extent), None)]
    fraction, base = coord.fraction(), coord.below()
    one = te.const(1.0, "float32")
    if spec.method == "linear":
        return [(_inside(base, extent), one - fraction), (_inside(base + 1, extent), fraction)]
    weights = _cubic(fraction, spec.alpha)
    pixels = [base + (k - 1) for k in range(4)]
    if spec.exclude:
        zero = te.const(0.0, "float32")
        weights = [
            te.Select(te.all(p >= 0, p < extent), w, zero)
            for p, w in zip(pixels, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [weight / total for weight in weights]
    return [(_inside(p, extent), w) for p, w in zip(pixels, weights, strict=True)]


def _cubic(t: te.Expr, alpha: float) -> list[te.Expr]:
    """Return the cubic weights of four pixels; the coordinate is between the second and third.

    Source:
        R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE
        Transactions on Acoustics, Speech, and Signal Processing 29(6), 1981.
    """
    def real(number: float) -> te.Expr:
        return te.const(number, "float32")

    def far(x: te.Expr) -> te.Expr:
        return ((real(alpha) * x - real(5 * alpha)) * x + real(8 * alpha)) * x - real(4 * alpha)

    def near(x: te.Expr) -> te.Expr:
        return (real(alpha + 2) * x - real(alpha + 3)) * x * x + real(1.0)

    one, two = real(1.0), real(2.0)
    return [far(t + one), near(t), near(one - t), far(two - t)]


def _inside(index: te.Expr, extent: Size) -> te.Expr:
    return te.max(te.min(index, extent - 1), 0)


def interpolate_taps(read: Callable[..., te.Expr], taps: Sequence[Sequence[Tap]]) -> te.Expr:
    """Return the weighted sum of the pixels at all combinations of taps.

    float64 pixels are summed in float64, others in float32. Pixels without weights keep their
    dtype.
    """
    total: te.Expr | None = None
    for chosen in product(*taps):
        value = read(*(pixel for pixel, _ in chosen))
        weights = [weight for _, weight in chosen if weight is not None]
        if not weights:
            return value
        value = te.cast(value, "float64" if value.dtype == "float64" else "float32")
        for weight in weights:
            value = value * te.cast(weight, value.dtype)
        total = value if total is None else total + value
    assert total is not None
    return total


def _resize(
    data: te.Tensor, roi: Sequence[float], size: Any, layout: str, space: str, spec: ResizeMethod,
    extrapolation: float, out_dtype: str | None, output_shape: Sequence[Size] | None, where: str,
) -> te.Tensor:
    images = images_of(data, layout, f"NC{space}", where)
    validate_choice(spec.mode, MODES, where, "coordinate_transformation_mode")
    validate_choice(spec.rounding, ROUNDINGS, where, "rounding_method")
    count = len(space)
    sizes = _asked_sizes(data, images, size, output_shape, where)
    shape = list(data.shape)
    for axis, extent in zip(images.spatial, sizes, strict=True):
        shape[axis] = extent
        if equal(data.shape[axis], 0) and not equal(extent, 0):
            raise DefinitionError(
                "{where}: {data} of shape {shape} as {layout} has no pixels; pass at least one "
                "pixel",
                kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
                layout=layout,
            )
    is_crop = spec.mode == "tf_crop_and_resize"
    if is_crop and len(roi) != 2 * count:
        raise DefinitionError(
            "{where}: roi has {roi_count} numbers, expected {expected}; pass the start along each "
            "axis, then the end along each axis",
            kind="count-mismatch", where=where, roi_count=len(roi), expected=2 * count,
        )
    starts, ends = (list(roi[:count]), list(roi[count:])) if is_crop else ([0.0] * count,) * 2
    kind = out_dtype or data.dtype

    def value(*i: te.Expr) -> te.Expr:
        if not is_crop:
            exact = [
                _place(i[axis], data.shape[axis], sizes[k], spec.mode)
                for k, axis in enumerate(images.spatial)]
            return te.cast(_mixed_at(images, i, exact, spec), kind)
        coords = [
            _cut_place(i[axis], data.shape[axis], sizes[k], starts[k], ends[k])
            for k, axis in enumerate(images.spatial)]
        return _cut_value(images, i, coords, spec, te.const(extrapolation, kind))

    return te.compute(tuple(shape), value, name="resize", tag=tag.INJECTIVE)


def _asked_sizes(
    data: te.Tensor, images: Images, size: Any, output_shape: Sequence[Size] | None, where: str
) -> Sequence[Size]:
    """Return the spatial extents of the result."""
    if output_shape is None:
        return _sizes(size, len(images.spatial), where)
    full = extents_of(output_shape, where, "output_shape")
    if len(full) != data.ndim:
        raise DefinitionError(
            "{where}: output_shape {output_shape} does not match {data}, which has {ndim} axes; "
            "pass one extent per axis",
            kind="shapes", where=where, output_shape=shape_text(full), data=data.name,
            ndim=data.ndim,
        )
    return [full[k] for k in images.spatial]


def _mixed_at(
    images: Images, index: Sequence[te.Expr],
    coords: Sequence[RationalCoordinate | FloatCoordinate], spec: ResizeMethod
) -> te.Expr:
    """Interpolate the images at coordinates, one per spatial axis."""
    taps = [
        _taps(coord, images.tensor.shape[axis], spec)
        for coord, axis in zip(coords, images.spatial, strict=True)]
    return interpolate_taps(_reader(images, index), taps)


def _cut_value(
    images: Images, index: Sequence[te.Expr], coords: Sequence[FloatCoordinate], spec: ResizeMethod,
    outside: te.Expr
) -> te.Expr:
    """Interpolate the images at coordinates, or return `outside` for coordinates out of bounds."""
    inside = [
        condition for coord, axis in zip(coords, images.spatial, strict=True)
        for condition in (
            coord.value >= 0.0,
            coord.value <= _real(images.tensor.shape[axis]) - _real(1))]
    value = te.cast(_mixed_at(images, index, coords, spec), outside.dtype)
    return te.Select(te.all(*inside), value, outside)


def _sizes(size: Any, count: int, where: str) -> list[Size]:
    if isinstance(size, list | tuple) and any(isinstance(n, te.Expr) for n in size):
        return list(size)
    return list(integers_of(size, count, where, "size", least=0))


def _reader(images: Images, index: Sequence[te.Expr]) -> Callable[..., te.Expr]:
    """Return a function that reads pixels by spatial index, at the image and channel of `index`."""

    def read(*pixels: te.Expr) -> te.Expr:
        full_index = list(index)
        for axis, pixel in zip(images.spatial, pixels, strict=True):
            full_index[axis] = pixel
        return images.tensor(*full_index)

    return read


def _way(
    method: str, mode: str, rounding: str, alpha: float, exclude: int, where: str
) -> ResizeMethod:
    validate_choice(method, tuple(METHODS), where, "method")
    return ResizeMethod(
        METHODS[method], mode, rounding, alpha, as_bool(exclude, where, "bicubic_exclude")
    )


def resize1d(
    data: te.Tensor, roi: Sequence[float], size: Any, layout: str = "NCW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    bicubic_alpha: float = -0.75, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: str | None = None, output_shape: Sequence[Size] | None = None,
) -> te.Tensor:
    """Resize sequences by interpolation.

    Args:
        data: Sequences.
        roi: Crop bounds for "tf_crop_and_resize" as fractions of the extents: the starts of all
            axes, then the ends.
        size: Spatial extents of the result: one number, or one per axis.
        layout: Layout of the data with the letters N, C and W in any order.
        method: "nearest_neighbor", "linear" or "cubic", with "bilinear", "trilinear" and "bicubic"
            as synonyms.
        coordinate_transformation_mode: "half_pixel", "align_corners", "asymmetric",
            "pytorch_half_pixel", "tf_half_pixel_for_nn" or "tf_crop_and_resize".
        rounding_method: Rounding of the nearest neighbor: "round", "floor", "ceil",
            "round_prefer_floor" or "round_prefer_ceil". Default: "round" for "align_corners", else
            "floor".
        bicubic_alpha: Coefficient of the cubic kernel.
        bicubic_exclude: If True, out-of-bounds pixels have weight 0 in the cubic kernel; else the
            nearest edge pixels replace them.
        extrapolation_value: Value outside of the images for "tf_crop_and_resize".
        out_dtype: Result dtype. Default: the dtype of `data`.
        output_shape: Full result shape, which overrides `size`.

    Raises:
        DefinitionError: If `method`, the mode or `layout` is unknown, if the numbers do not match
            the axes, or if an axis without pixels gets a nonzero extent.

    >>> resize1d(te.placeholder((1, 3, 5), name="A"), [0.0, 0.0], [10]).shape
    (1, 3, 10)
    """
    where = "topi.image.resize1d"
    spec = _way(method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
               bicubic_exclude, where)
    return _resize(
        data, roi, size, layout, "W", spec, extrapolation_value, out_dtype, output_shape, where)


def resize2d(
    data: te.Tensor, roi: Sequence[float], size: Any, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    bicubic_alpha: float = -0.75, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: str | None = None, output_shape: Sequence[Size] | None = None,
) -> te.Tensor:
    """Resize images by interpolation.

    Args:
        data: Images.
        roi: Crop bounds for "tf_crop_and_resize" as fractions of the extents: the starts of all
            axes, then the ends.
        size: Spatial extents of the result: one number, or one per axis.
        layout: Layout of the images with the letters N, C, H and W in any order.
        method: "nearest_neighbor", "linear" or "cubic", with "bilinear", "trilinear" and "bicubic"
            as synonyms.
        coordinate_transformation_mode: "half_pixel", "align_corners", "asymmetric",
            "pytorch_half_pixel", "tf_half_pixel_for_nn" or "tf_crop_and_resize".
        rounding_method: Rounding of the nearest neighbor: "round", "floor", "ceil",
            "round_prefer_floor" or "round_prefer_ceil". Default: "round" for "align_corners", else
            "floor".
        bicubic_alpha: Coefficient of the cubic kernel.
        bicubic_exclude: If True, out-of-bounds pixels have weight 0 in the cubic kernel; else the
            nearest edge pixels replace them.
        extrapolation_value: Value outside of the images for "tf_crop_and_resize".
        out_dtype: Result dtype. Default: the dtype of `data`.
        output_shape: Full result shape, which overrides `size`.

    Raises:
        DefinitionError: If `method`, the mode or `layout` is unknown, if the numbers do not match
            the axes, or if an axis without pixels gets a nonzero extent.

    >>> resize2d(te.placeholder((1, 3, 5, 5), name="A"), [0.0] * 4, (10, 8)).shape
    (1, 3, 10, 8)
    """
    where = "topi.image.resize2d"
    spec = _way(method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
               bicubic_exclude, where)
    return _resize(
        data, roi, size, layout, "HW", spec, extrapolation_value, out_dtype, output_shape, where)


def resize3d(
    data: te.Tensor, roi: Sequence[float], size: Any, layout: str = "NCDHW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "", bicubic_alpha: float = -0.75, bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0, out_dtype: str | None = None,
    output_shape: Sequence[Size] | None = None,
) -> te.Tensor:
    """Resize volumes by interpolation.

    Args:
        data: Volumes.
        roi: Crop bounds for "tf_crop_and_resize" as fractions of the extents: the starts of all
            axes, then the ends.
        size: Spatial extents of the result: one number, or one per axis.
        layout: Layout of the volumes with the letters N, C, D, H and W in any order.
        method: "nearest_neighbor", "linear" or "cubic", with "bilinear", "trilinear" and "bicubic"
            as synonyms.
        coordinate_transformation_mode: "half_pixel", "align_corners", "asymmetric",
            "pytorch_half_pixel", "tf_half_pixel_for_nn" or "tf_crop_and_resize".
        rounding_method: Rounding of the nearest neighbor: "round", "floor", "ceil",
            "round_prefer_floor" or "round_prefer_ceil". Default: "round" for "align_corners", else
            "floor".
        bicubic_alpha: Coefficient of the cubic kernel.
        bicubic_exclude: If True, out-of-bounds pixels have weight 0 in the cubic kernel; else the
            nearest edge pixels replace them.
        extrapolation_value: Value outside of the images for "tf_crop_and_resize".
        out_dtype: Result dtype. Default: the dtype of `data`.
        output_shape: Full result shape, which overrides `size`.

    Raises:
        DefinitionError: If `method`, the mode or `layout` is unknown, if the numbers do not match
            the axes, or if an axis without pixels gets a nonzero extent.

    >>> X = te.placeholder((1, 3, 4, 8, 8), name="X")
    >>> resize3d(X, (), (8, 4, 4)).shape
    (1, 3, 8, 4, 4)
    """
    where = "topi.image.resize3d"
    spec = _way(method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
               bicubic_exclude, where)
    return _resize(
        data, roi, size, layout, SPATIAL, spec, extrapolation_value, out_dtype, output_shape, where)


def crop_and_resize(
    data: te.Tensor, boxes: te.Tensor, box_indices: te.Tensor, crop_size: Any,
    layout: str = "NCHW", method: str = "bilinear", extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Crop boxes from images and resize each to the same size.

    Args:
        data: Images.
        boxes: Crop bounds, floating-point, shape (count, 4): first row, first column, last row and
            last column, as fractions of the extents.
        box_indices: Integer index of the image of each box, shape (count,).
        crop_size: Rows and columns of the result.
        layout: Layout of the images with the letters N, C, H and W in any order.
        method: "bilinear" or "nearest_neighbor".
        extrapolation_value: Value outside of the images. Default: 0.
        out_dtype: Result dtype. Default: the dtype of `data`.

    Raises:
        DefinitionError: If `method` or `layout` is unknown, or if the shapes do not match.
        TypeMismatchError: If `boxes` is not floating-point, or if `box_indices` does not have an
            integer dtype.

    >>> A, b = te.placeholder((2, 3, 9, 9), name="A"), te.placeholder((5, 4), name="b")
    >>> crop_and_resize(A, b, te.placeholder((5,), "int32", name="i"), (4, 4)).shape
    (5, 3, 4, 4)
    """
    where = "topi.image.crop_and_resize"
    images = images_of(data, layout, "NCHW", where)
    validate_choice(method, ("bilinear", "nearest_neighbor"), where, "method")
    boxes, indices = tensor_of(boxes, where, "boxes"), tensor_of(box_indices, where, "box_indices")
    check_float(boxes, where)
    check_integer(indices, where, "box_indices")
    check_rank(boxes, 2, where, "boxes", "boxes and four numbers of each")
    check_rank(indices, 1, where, "box_indices")
    if differ(boxes.shape[1], 4) or differ(boxes.shape[0], indices.shape[0]):
        raise DefinitionError(
            "{where}: boxes has shape {shape} and box_indices has shape {indices_shape}; pass "
            "four numbers and one image index per box",
            kind="shapes", where=where, shape=shape_text(boxes.shape),
            indices_shape=shape_text(indices.shape),
        )
    sizes = _sizes(crop_size, 2, where)
    shape = list(data.shape)
    shape[images.axis("N")] = boxes.shape[0]
    for axis, extent in zip(images.spatial, sizes, strict=True):
        shape[axis] = extent
    kind = out_dtype or data.dtype
    spec = ResizeMethod(METHODS[method], "tf_crop_and_resize", "round", -0.75, False)
    outside = te.const(extrapolation_value or 0.0, kind)

    def value(*i: te.Expr) -> te.Expr:
        box, source_index = i[images.axis("N")], list(i)
        source_index[images.axis("N")] = te.cast(indices(box), "int32")
        coords = [
            _cut_place(i[axis], data.shape[axis], sizes[k], boxes(box, k), boxes(box, k + 2))
            for k, axis in enumerate(images.spatial)]
        return _cut_value(images, source_index, coords, spec, outside)

    return te.compute(tuple(shape), value, name="crop_and_resize", tag=tag.INJECTIVE)
