"""Image operators: resizing, cropping, grid sampling and morphological dilation."""

from __future__ import annotations

from tecomp.topi.image.resize import crop_and_resize, resize1d, resize2d, resize3d
from tecomp.topi.image.sampling import affine_grid, dilation2d_nchw, dilation2d_nhwc, grid_sample

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d_nchw",
    "dilation2d_nhwc",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
