"""Upsampling of images and volumes by scale factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tecomp import DefinitionError, te
from tecomp.topi.extents import Size, times
from tecomp.topi.image.resize import resize2d, resize3d
from tecomp.topi.validation import validate_choice
from tecomp.topi.windows import SPATIAL, images_of


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


