"""Images of another size, and seen through grids."""

from __future__ import annotations

from tecomp.topi.image.grid import affine_grid, grid_sample
from tecomp.topi.image.resize import crop_and_resize, resize1d, resize2d, resize3d

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
