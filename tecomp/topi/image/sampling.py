"""Grid sampling, upsampling and morphological dilation of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, equal, times
from tecomp.topi.image.resize import Tap, interpolate_taps, resize2d, resize3d
from tecomp.topi.validation import check_rank, integers_of, tensor_of, validate_choice
from tecomp.topi.windows import SPATIAL, images_of, windows_of

Numbers = Any


def dilation2d_nchw(
    input: te.Tensor, filter: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute grayscale morphological dilation, layouts NCHW and CHW.

    Each result element is the maximum over a window of the image element plus the filter element.

    Args:
        input: Images (n, c, h, w).
        filter: Structuring element (c, h, w), one per channel.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilations: Distance between adjacent elements of a window: one number, or one per axis.
        out_dtype: Result dtype, in which the sums are computed. Default: the dtype of `input`.

    Raises:
        DefinitionError: If the numbers of channels differ, if a window exceeds the padded images,
            or if a number is too small.

    >>> X, W = te.placeholder((1, 3, 8, 8), name="X"), te.placeholder((3, 3, 3), name="W")
    >>> dilation2d_nchw(X, W, 1, 1, 1).shape
    (1, 3, 8, 8)
    """
    return _dilate_window(
        input, filter, stride, padding, dilations, out_dtype, "NCHW", "CHW", "nchw"
    )


def dilation2d_nhwc(
    input: te.Tensor, filter: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute grayscale morphological dilation, layouts NHWC and HWC.

    Each result element is the maximum over a window of the image element plus the filter element.

    Args:
        input: Images (n, h, w, c).
        filter: Structuring element (h, w, c), one per channel.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilations: Distance between adjacent elements of a window: one number, or one per axis.
        out_dtype: Result dtype, in which the sums are computed. Default: the dtype of `input`.

    Raises:
        DefinitionError: If the numbers of channels differ, if a window exceeds the padded images,
            or if a number is too small.

    >>> X, W = te.placeholder((1, 8, 8, 3), name="X"), te.placeholder((3, 3, 3), name="W")
    >>> dilation2d_nhwc(X, W, 1, "VALID", 2).shape
    (1, 4, 4, 3)
    """
    return _dilate_window(
        input, filter, stride, padding, dilations, out_dtype, "NHWC", "HWC", "nhwc"
    )


def _dilate_window(
    data: te.Tensor, relief: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None, layout: str, relief_layout: str, order: str,
) -> te.Tensor:
    name = f"dilation2d_{order}"
    where = f"topi.image.{name}"
    images = images_of(data, layout, layout, where, "input")
    filters = images_of(relief, relief_layout, relief_layout, where, "filter")
    channel, of_relief = images.axis("C"), filters.axis("C")
    image_c, relief_c = images.tensor.shape[channel], filters.tensor.shape[of_relief]
    if not equal(image_c, relief_c):
        raise DefinitionError(
            "{where}: {data}, shape {shape} as {layout}, has {channel_count} channels, but "
            "{relief}, shape {relief_shape} as {relief_layout}, has {relief_count}; make them "
            "equal",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            layout=layout, channel_count=image_c, relief=relief.name,
            relief_shape=shape_text(relief.shape),
            relief_layout=relief_layout, relief_count=relief_c,
        )
    windows = windows_of(images, filters.extents, stride, dilations, padding, where)
    taps, dtype = windows.taps(), out_dtype or data.dtype

    def value(*i: te.Expr) -> te.Expr:
        data_index, relief_index = windows.element(i, taps), [*i[: relief.ndim]]
        inside: list[te.Expr] = []
        for k, axis in enumerate(images.spatial):
            relief_index[filters.spatial[k]] = taps[k]
            if windows.before[k] or windows.after[k]:
                data_index[axis] = data_index[axis] - windows.before[k]
                inside += [data_index[axis] >= 0, data_index[axis] < images.extents[k]]
        relief_index[of_relief] = i[channel]
        element = te.cast(data(*data_index), dtype)
        if inside:
            element = te.if_then_else(te.all(*inside), element, te.const(0, dtype))
        return te.max(element + te.cast(relief(*relief_index), dtype), axis=list(taps))

    return te.compute(tuple(windows.shape(where)), value, name=name, tag=name)


def affine_grid(
    data: te.Tensor, target_shape: Any, align_corners: bool = True
) -> te.Tensor:
    """Apply affine maps to the pixel coordinates of an image, normalized to [-1, 1] per axis.

    Args:
        data: Affine maps, shape (batch, 2, 3).
        target_shape: Rows and columns of the result.
        align_corners: If True, -1 and 1 are the centers of the corner pixels, else their outer
            edges.

    Returns:
        Coordinates of shape (batch, 2, rows, columns), first x, the position along a row, then y,
        the position along a column.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> affine_grid(te.placeholder((4, 2, 3), name="M"), (8, 9)).shape
    (4, 2, 8, 9)
    """
    where = "topi.image.affine_grid"
    data = tensor_of(data, where)
    check_rank(data, 3, where, data.name, "(batch, 2, 3)")
    rows, columns = integers_of(target_shape, 2, where, "target_shape", least=1)
    if differ(data.shape[1], 2) or differ(data.shape[2], 3):
        raise DefinitionError(
            "{where}: {data} has shape {shape}, expected (batch, 2, 3)",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
        )

    def coordinate(index: te.Expr, extent: int) -> te.Expr:
        if not align_corners:
            step = te.const(2.0 / extent, data.dtype)
            return te.cast(index, data.dtype) * step + te.const(1.0 / extent - 1, data.dtype)
        step = te.const(2.0 / max(extent - 1, 1), data.dtype)
        return te.cast(index, data.dtype) * step - te.const(1.0, data.dtype)

    def value(n: te.Expr, which: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        x, y = coordinate(j, columns), coordinate(i, rows)
        return data(n, which, 0) * x + data(n, which, 1) * y + data(n, which, 2)

    return te.compute(
        (data.shape[0], 2, rows, columns), value, name="affine_grid", tag=tag.INJECTIVE)


def grid_sample(
    data: te.Tensor, grid: te.Tensor, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> te.Tensor:
    """Sample images at coordinates in [-1, 1] per axis.

    Args:
        data: Images (n, c, h, w).
        grid: Coordinates, shape (n, 2, rows, columns), in the form that `affine_grid` returns.
        method: "bilinear" or "nearest".
        layout: "NCHW".
        padding_mode: Value outside of the images: "zeros", or the nearest edge pixel for "border".
        align_corners: If True, -1 and 1 are the centers of the corner pixels, else their outer
            edges.

    Raises:
        DefinitionError: If `method`, `layout` or `padding_mode` is unknown, or if the shapes do not
            match.

    >>> A, g = te.placeholder((2, 3, 5, 5), name="A"), te.placeholder((2, 2, 8, 9), name="g")
    >>> grid_sample(A, g).shape
    (2, 3, 8, 9)
    """
    where = "topi.image.grid_sample"
    data, grid = tensor_of(data, where), tensor_of(grid, where, "grid")
    validate_choice(layout, ("NCHW",), where, "layout")
    validate_choice(method, ("bilinear", "nearest"), where, "method")
    validate_choice(padding_mode, ("zeros", "border"), where, "padding_mode")
    check_rank(data, 4, where, data.name, layout)
    check_rank(grid, 4, where, "grid", "(n, 2, rows, columns)")
    if differ(grid.shape[1], 2) or differ(grid.shape[0], data.shape[0]):
        raise DefinitionError(
            "{where}: {data} has shape {shape} and grid has shape {grid_shape}; pass two "
            "coordinates per output pixel, and one grid per image",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            grid_shape=shape_text(grid.shape),
        )

    def place(n: te.Expr, axis: int, y: te.Expr, x: te.Expr) -> te.Expr:
        coord, extent = grid(n, 1 - axis, y, x), data.shape[2 + axis]
        return _pixel(coord, extent, padding_mode == "border", align_corners)

    def value(n: te.Expr, c: te.Expr, y: te.Expr, x: te.Expr) -> te.Expr:
        taps = [_taps(place(n, axis, y, x), method) for axis in (0, 1)]

        def read(row: te.Expr, column: te.Expr) -> te.Expr:
            inside = te.all(
                row >= 0, row < data.shape[2], column >= 0, column < data.shape[3])
            return te.if_then_else(
                inside, data(n, c, row, column), te.const(0, data.dtype))

        return te.cast(interpolate_taps(read, taps), data.dtype)

    shape = (data.shape[0], data.shape[1], *grid.shape[2:])
    return te.compute(shape, value, name="grid_sample", tag=tag.INJECTIVE)


def _pixel(coord: te.Expr, extent: Size, is_border: bool, align_corners: bool) -> te.Expr:
    """Convert a coordinate in [-1, 1] to a fractional pixel index, clamped for border padding."""
    x, size = te.cast(coord, "float32"), te.cast(extent, "float32")
    one, half = te.const(1.0, "float32"), te.const(0.5, "float32")
    last = size - one
    found = (x + one) * half * last if align_corners else ((x + one) * size - one) * half
    return te.max(te.min(found, last), te.const(0.0, "float32")) if is_border else found


def _taps(coord: te.Expr, method: str) -> list[Tap]:
    """Return the pixels along an axis, with weights, that interpolate a coordinate.

    Indices may be out of bounds.
    """
    if method == "nearest":
        return [(te.cast(te.nearbyint(coord), "int32"), None)]
    floor = te.floor(coord)
    fraction, base = coord - floor, te.cast(floor, "int32")
    return [(base, te.const(1.0, "float32") - fraction), (base + 1, fraction)]


def upsampling(
    data: te.Tensor, scale_h: float, scale_w: float, layout: str = "NCHW",
    method: str = "nearest_neighbor", align_corners: bool = False,
    output_shape: Sequence[Size] | None = None,
) -> te.Tensor:
    """Resize images by scale factors for height and width.

    Args:
        data: Images.
        scale_h: Scale factor of the height; the new height is rounded.
        scale_w: Scale factor of the width; the new width is rounded.
        layout: Layout of the images with the letters N, C, H and W in any order.
        method: "nearest_neighbor", "bilinear" or "bicubic".
        align_corners: If True, the centers of the corner pixels are kept.
        output_shape: Full result shape, which overrides the scale factors.

    Raises:
        DefinitionError: If `method` or `layout` is unknown, if a scale factor is not a positive
            number, or if a symbolic extent has a fractional scale factor.

    >>> upsampling(te.placeholder((1, 3, 5, 5), name="A"), 2, 3).shape
    (1, 3, 10, 15)
    """
    where = "topi.nn.upsampling"
    validate_choice(method, ("nearest_neighbor", "bilinear", "bicubic"), where, "method")
    sizes = _sizes(data, layout, "HW", (scale_h, scale_w), where)
    mode = "align_corners" if align_corners else "asymmetric"
    return resize2d(
        data, [0.0] * 4, sizes, layout, method, mode, output_shape=output_shape)


def upsampling3d(
    data: te.Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "half_pixel",
    output_shape: Sequence[Size] | None = None,
) -> te.Tensor:
    """Resize volumes by scale factors for depth, height and width.

    Args:
        data: Volumes.
        scale_d: Scale factor of the depth; the new depth is rounded.
        scale_h: Scale factor of the height; the new height is rounded.
        scale_w: Scale factor of the width; the new width is rounded.
        layout: Layout of the volumes with the letters N, C, D, H and W in any order.
        method: "nearest_neighbor" or "trilinear".
        coordinate_transformation_mode: "half_pixel", "align_corners", "asymmetric",
            "pytorch_half_pixel", "tf_half_pixel_for_nn" or "tf_crop_and_resize".
        output_shape: Full result shape, which overrides the scale factors.

    Raises:
        DefinitionError: If `method`, the mode or `layout` is unknown, if a scale factor is not a
            positive number, or if a symbolic extent has a fractional scale factor.

    >>> upsampling3d(te.placeholder((1, 3, 5, 5, 5), name="A"), 2, 3, 1).shape
    (1, 3, 10, 15, 5)
    """
    where = "topi.nn.upsampling3d"
    validate_choice(method, ("nearest_neighbor", "trilinear"), where, "method")
    sizes = _sizes(data, layout, SPATIAL, (scale_d, scale_h, scale_w), where)
    return resize3d(
        data, [0.0] * 6, sizes, layout, method, coordinate_transformation_mode,
        output_shape=output_shape)


def _sizes(
    data: te.Tensor, layout: str, space: str, scales: Sequence[float], where: str
) -> list[Size]:
    images = images_of(data, layout, f"NC{space}", where)
    sizes: list[Size] = []
    for extent, scale in zip(images.extents, scales, strict=True):
        if not isinstance(scale, int | float) or not 0 < scale < math.inf:
            raise DefinitionError(
                "{where}: scale must be a positive number, got {scale!r}",
                kind="invalid-value", where=where, scale=scale,
            )
        if isinstance(extent, int):
            sizes.append(round(extent * scale))
            continue
        if not float(scale).is_integer():
            raise DefinitionError(
                "{where}: scale {scale} is not an integer and extent {extent} is dynamic; pass an "
                "integer scale for dynamic sizes",
                kind="shapes", where=where, scale=scale, extent=extent,
            )
        sizes.append(times(extent, int(scale)))
    return sizes
