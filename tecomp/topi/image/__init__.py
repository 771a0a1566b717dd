"""Images of another size, and seen through grids."""

from __future__ import annotations

from tecomp.topi.image.dilation import dilation2d_nchw, dilation2d_nhwc
from tecomp.topi.image.grid import affine_grid, grid_sample
from tecomp.topi.image.resize import crop_and_resize, resize1d, resize2d, resize3d

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
