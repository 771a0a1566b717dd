"""A photograph, the filters, and what they give with NumPy and SciPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

LUMA = np.array([0.299, 0.587, 0.114])  # Rec. ITU-R BT.601, weights of red, green and blue


@dataclass(frozen=True, slots=True)
class Bank:
    """Filters `weights[5, 5, 3, k]`, one `bias[k]` and one name each."""

    names: tuple[str, ...]
    weights: Array
    bias: Array


def photograph() -> Array:
    """A portrait `[1, height, width, 3]`, values from 0 to 1.

    Source:
        `grace_hopper.jpg` of Matplotlib's sample data: Grace Hopper, by James S. Davis, U.S. Navy;
        public domain.
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))
    return np.ascontiguousarray(pixels[None], dtype=np.float32) / np.float32(255)


def _gabor(angle: float, phase: float) -> NDArray[np.float64]:
    """A wave of 4 pixels under a Gaussian window, without response to a flat image."""
    y, x = np.mgrid[-2:3, -2:3]
    along = x * math.cos(angle) + y * math.sin(angle)
    window = np.exp(-(x**2 + y**2) / (2 * 1.4**2))
    wave = window * np.cos(2 * math.pi * along / 4 + phase)
    return np.asarray(wave - window * (wave.sum() / window.sum()))


def _gaussian(sigma: float) -> NDArray[np.float64]:
    y, x = np.mgrid[-2:3, -2:3]
    bell = np.exp(-(x**2 + y**2) / (2 * sigma**2))
    return np.asarray(bell / bell.sum())


def _grey_filters() -> dict[str, NDArray[np.float64]]:
    """Filters of the brightness, 5x5 each."""
    filters = {
        f"Gabor {22.5 * turn:g}° {name}": _gabor(math.pi * turn / 8, phase)
        for name, phase in (("even", 0.0), ("odd", math.pi / 2))
        for turn in range(8)
    }
    sobel = np.outer([1, 4, 6, 4, 1], [-1, -2, 0, 2, 1])
    # Farid and Simoncelli, "Differentiation of Discrete Multidimensional Signals", 5 taps.
    farid = np.outer(
        [0.037659, 0.249153, 0.426375, 0.249153, 0.037659],
        [-0.109604, -0.276691, 0.0, 0.276691, 0.109604],
    )
    dot = np.zeros((5, 5))
    dot[2, 2] = 1.0
    laplacian = np.zeros((5, 5))
    laplacian[1:4, 1:4] = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
    narrow, wide = _gaussian(0.8), _gaussian(1.6)
    log = np.array(
        [[0, 0, 1, 0, 0], [0, 1, 2, 1, 0], [1, 2, -16, 2, 1], [0, 1, 2, 1, 0], [0, 0, 1, 0, 0]]
    )
    return filters | {
        "Sobel x": sobel,
        "Sobel y": sobel.T,
        "Farid x": farid,
        "Farid y": farid.T,
        "Gaussian": _gaussian(1.0),
        "Box": np.full((5, 5), 1 / 25),
        "Sharpen": 2 * dot - wide,
        "Laplacian": laplacian,
        "Laplacian of Gaussian": log,
        "Difference of Gaussians": narrow - wide,
        "Emboss": np.diag([-2.0, -1.0, 0.0, 1.0, 2.0]),
        "Corner": np.outer([-1, -1, 0, 1, 1], [-1, -1, 0, 1, 1]),
    }


def filter_bank() -> Bank:
    """32 filters: 28 of the brightness, and 4 that set one colour against another."""
    filters = {
        name: grey[:, :, None] * LUMA for name, grey in _grey_filters().items()
    }
    narrow, wide = _gaussian(0.8), _gaussian(1.6)
    red, green, blue = np.eye(3)
    colours = {"red": red, "green": green, "blue": blue, "yellow": (red + green) / 2}
    for centre, surround in (("red", "green"), ("green", "red"), ("blue", "yellow"),
                             ("yellow", "blue")):
        filters[f"{centre} against {surround}"] = (
            narrow[:, :, None] * colours[centre] - wide[:, :, None] * colours[surround]
        )
    stacked = np.stack([each / np.abs(each).sum() for each in filters.values()], axis=-1)
    # A filter that answers to flat regions passes; the others have to pass a threshold.
    bias = np.where(stacked.sum(axis=(0, 1, 2)) > 0.1, 0.0, -0.01)
    return Bank(tuple(filters), stacked.astype(np.float32), bias.astype(np.float32))


def with_numpy(image: Array, bank: Bank) -> Array:
    """The same features by one matrix product over all 5x5x3 windows."""
    border = np.pad(image[0], ((2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(border, (5, 5), axis=(0, 1))
    height, width = windows.shape[:2]
    # A window comes as (channel, y, x).
    weights = bank.weights.transpose(2, 0, 1, 3).reshape(75, -1)
    response = windows.reshape(height * width, 75) @ weights
    features = np.maximum(response + bank.bias, np.float32(0.0))
    return np.asarray(features.reshape(1, height, width, -1))


def with_scipy(image: NDArray[np.floating], bank: Bank) -> NDArray[np.floating]:
    """The same features, one plane and one filter at a time, in the type of `image`."""
    from scipy.ndimage import correlate

    weights, bias = bank.weights.astype(image.dtype), bank.bias.astype(image.dtype)
    planes = [np.ascontiguousarray(image[0, :, :, c]) for c in range(3)]
    features = np.empty((*image.shape[:3], bias.size), image.dtype)
    for k in range(bias.size):
        features[0, :, :, k] = sum(
            correlate(plane, weights[:, :, c, k], mode="constant")
            for c, plane in enumerate(planes)
        )
    return np.asarray(np.maximum(features + bias, 0.0))


def picture(image: Array, features: Array, names: tuple[str, ...], output: Path) -> None:
    """Write the input beside its feature maps as a PNG."""
    from matplotlib.figure import Figure

    columns = len(names) // 4
    figure = Figure(figsize=(4.5 + 1.5 * columns, 7.6), layout="constrained")
    grid = figure.add_gridspec(4, 3 + columns)
    panels = [("input", image[0], grid[:, :3])]
    for k, name in enumerate(names):
        panels.append((name, features[0, :, :, k], grid[k // columns, 3 + k % columns]))
    for title, pixels, place in panels:
        axes = figure.add_subplot(place)
        # A few strong edges would leave everything else black.
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=np.percentile(pixels, 99.5))
        axes.set_title(title, fontsize=7)
        axes.set_axis_off()
    figure.savefig(output, format="png", dpi=120)
