"""Image filters: data, references in NumPy and SciPy, and programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tecomp import te
from tecomp.errors import CapacityError
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import HOST, Placement, number, placement_of
from tecomp.schedules.tiling.register_blocking import balanced_block_size, ceil_div

Array = NDArray[np.float32]

LUMA = np.array([0.299, 0.587, 0.114])  # Rec. ITU-R BT.601, weights of red, green and blue


@dataclass(frozen=True, slots=True)
class Bank:
    """Filters `weights[5, 5, 3, k]`, with a `bias[k]` and a name per filter."""

    names: tuple[str, ...]
    weights: Array
    bias: Array


def photograph() -> Array:
    """Return a portrait of shape `[1, height, width, 3]` with values from 0 to 1.

    Source:
        `grace_hopper.jpg` of Matplotlib's sample data: Grace Hopper, by James S. Davis, U.S. Navy;
        public domain.
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))
    return np.ascontiguousarray(pixels[None], dtype=np.float32) / np.float32(255)


def _gabor(angle: float, phase: float) -> NDArray[np.float64]:
    """Return a wave of 4 pixels under a Gaussian window, with no response to a flat image."""
    y, x = np.mgrid[-2:3, -2:3]
    distance = x * math.cos(angle) + y * math.sin(angle)
    window = np.exp(-(x**2 + y**2) / (2 * 1.4**2))
    wave = window * np.cos(2 * math.pi * distance / 4 + phase)
    return np.asarray(wave - window * (wave.sum() / window.sum()))


def _gaussian(sigma: float) -> NDArray[np.float64]:
    y, x = np.mgrid[-2:3, -2:3]
    bell = np.exp(-(x**2 + y**2) / (2 * sigma**2))
    return np.asarray(bell / bell.sum())


def _grey_filters() -> dict[str, NDArray[np.float64]]:
    """Return the luminance filters, 5x5 each."""
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
    """Return 32 filters: 28 of the luminance, and 4 of color opponency."""
    filters = {
        name: grey[:, :, None] * LUMA for name, grey in _grey_filters().items()
    }
    narrow, wide = _gaussian(0.8), _gaussian(1.6)
    red, green, blue = np.eye(3)
    colours = {"red": red, "green": green, "blue": blue, "yellow": (red + green) / 2}
    for centre, surround in (("red", "green"), ("green", "red"), ("blue", "yellow"),
                             ("yellow", "blue")):
        filters[f"{centre}-{surround}"] = (
            narrow[:, :, None] * colours[centre] - wide[:, :, None] * colours[surround]
        )
    stacked = np.stack([weights / np.abs(weights).sum() for weights in filters.values()], axis=-1)
    # Filters with a response to flat regions have no threshold; the others have one.
    bias = np.where(stacked.sum(axis=(0, 1, 2)) > 0.1, 0.0, -0.01)
    return Bank(tuple(filters), stacked.astype(np.float32), bias.astype(np.float32))


def with_numpy(image: Array, bank: Bank) -> Array:
    """Compute the features by one matrix product over all 5x5x3 windows."""
    border = np.pad(image[0], ((2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(border, (5, 5), axis=(0, 1))
    height, width = windows.shape[:2]
    # The axes of a window are (channel, y, x).
    weights = bank.weights.transpose(2, 0, 1, 3).reshape(75, -1)
    response = windows.reshape(height * width, 75) @ weights
    features = np.maximum(response + bank.bias, np.float32(0.0))
    return np.asarray(features.reshape(1, height, width, -1))


def with_scipy(image: NDArray[np.floating], bank: Bank) -> NDArray[np.floating]:
    """Compute the features one plane and one filter at a time, in the dtype of `image`."""
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
    """Write the input and its feature maps as a PNG."""
    from matplotlib.figure import Figure

    columns = len(names) // 4
    figure = Figure(figsize=(4.5 + 1.5 * columns, 7.6), layout="constrained")
    grid = figure.add_gridspec(4, 3 + columns)
    panels = [("input", image[0], grid[:, :3])]
    for k, name in enumerate(names):
        panels.append((name, features[0, :, :, k], grid[k // columns, 3 + k % columns]))
    for title, pixels, cell in panels:
        axes = figure.add_subplot(cell)
        # Clip the brightest 0.5%: scaled to a few strong edges, all else would be black.
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=np.percentile(pixels, 99.5))
        axes.set_title(title, fontsize=7)
        axes.set_axis_off()
    figure.savefig(output, format="png", dpi=120)


LANES = 16  # channels in one block of the layout
COLUMNS = 8  # pixels that one register tile covers


@dataclass(frozen=True, slots=True)
class FilterProgram:
    """Tensors of one computation and its schedule."""

    schedule: te.Schedule
    args: list[te.Tensor]


@dataclass(frozen=True, slots=True)
class Tensors:
    """Filters over a photograph, defined in `te`.

    Attributes:
        image: `[1, height, width, 3]`.
        weights: `[5, 5, 3, k]`.
        bias: `[k]`.
        padded: Image with a black border of two pixels.
        response: Sums of products of the padded image with the weights.
        features: Response with the bias, clamped at zero.
    """

    image: te.Tensor
    weights: te.Tensor
    bias: te.Tensor
    padded: te.Tensor
    response: te.Tensor
    features: te.Tensor

    @property
    def args(self) -> list[te.Tensor]:
        """Kernel arguments."""
        return [self.image, self.weights, self.bias, self.features]


def define_filters(height: int, width: int, n_filters: int) -> Tensors:
    """Define the filters over a photograph of the given size."""
    image = te.placeholder((1, height, width, 3), name="image")
    weights = te.placeholder((5, 5, 3, n_filters), name="weights")
    bias = te.placeholder((n_filters,), name="bias")

    padded = te.compute(
        (1, height + 4, width + 4, 3),
        lambda n, y, x, c: te.if_then_else(
            te.all(y >= 2, y < height + 2, x >= 2, x < width + 2), image[n, y - 2, x - 2, c], 0.0
        ),
        name="padded",
    )
    ry = te.reduce_axis((0, 5), name="ry")
    rx = te.reduce_axis((0, 5), name="rx")
    rc = te.reduce_axis((0, 3), name="rc")
    response = te.compute(
        (1, height, width, n_filters),
        lambda n, y, x, k: te.sum(
            padded[n, y + ry, x + rx, rc] * weights[ry, rx, rc, k], axis=[ry, rx, rc]
        ),
        name="response",
    )
    features = te.compute(
        response.shape,
        lambda n, y, x, k: te.max(response[n, y, x, k] + bias[k], 0.0),
        name="features",
    )

    return Tensors(image, weights, bias, padded, response, features)


def schedule_on_cpu(height: int, width: int, n_filters: int) -> FilterProgram:
    """Schedule the filters for a CPU."""
    tensors = define_filters(height, width, n_filters)
    weights, padded, response, features = (
        tensors.weights, tensors.padded, tensors.response, tensors.features
    )
    s = te.create_schedule(features.op)
    total = s.cache_write(response, "local")
    packed = s.cache_read(weights, "global", [total])
    s[response].compute_inline()

    # The padded image is a texture: one physical axis of rows, one of pixels.
    s[padded].set_scope("global.texture")
    _, row, _, _ = s[padded].transform_layout(
        lambda n, y, x, c: [n, y, te.AXIS_SEPARATOR, x, c]
    )
    s[padded].parallel(row)

    # Blocks of sixteen adjacent filters match the vectors of `total`.
    *_, lane = s[packed].transform_layout(lambda y, x, c, k: [k // LANES, y, x, c, k % LANES])
    s[packed].vectorize(lane)

    # Blocked layout: for each row, the blocks of sixteen channels follow each other.
    n, y, block, x, lane = s[features].transform_layout(
        lambda n, y, x, k: [n, y, k // LANES, x, k % LANES]
    )
    x_outer, x_inner = s[features].split(x, factor=COLUMNS)
    s[features].reorder(n, y, block, x_outer, x_inner, lane)
    s[features].parallel(y)
    s[features].vectorize(lane)

    # One tile of accumulators stays in registers over all 75 products.
    s[total].compute_at(s[features], x_outer)
    n, y, x, k = s[total].op.axis
    ry, rx, rc = s[total].op.reduce_axis
    s[total].reorder(n, y, ry, rx, rc, x, k)
    s[total].unroll(x)
    s[total].vectorize(k)
    return FilterProgram(s, tensors.args)


FLOAT = "float32"
BORDER = 4  # halo of a tile in pixels, both sides together


@dataclass(frozen=True, slots=True)
class FilterTile:
    """Pixels that a core computes at a time."""

    rows: int
    columns: int


def schedule_on_target(
    target: Target, height: int, width: int, n_filters: int
) -> FilterProgram | None:
    """Schedule the filters for the memories and cores of a target; None without scratchpads.

    The padded image, the weights and the bias are copied to device memory, in its sticks or tiles.
    The features are written to device memory too. Each core loads the window of a tile to its
    scratchpad, computes the features there, and stores them.
    """
    where = placement_of(target)
    if where is None:
        return None
    tensors = define_filters(height, width, n_filters)
    return FilterProgram(_Device(where, tensors).schedule(), tensors.args)


class _Device:
    """Builder of the schedule for a target with scratchpads."""

    def __init__(self, where: Placement, tensors: Tensors) -> None:
        self.where, self.made = where, tensors
        self.s = te.create_schedule(tensors.features.op)
        _, self.height, self.width, self.filters = (
            number(extent, tensors.features) for extent in tensors.features.shape
        )
        self.part = self._tile()

    def schedule(self) -> te.Schedule:
        """Build the schedule."""
        s, stages, where = self.s, self.made, self.where
        s[stages.padded].set_scope(where.device)
        self._set_plane_layout(stages.padded, where.device)
        layout = self._weight_layout(where.device)
        weights = self._copy_to_device(stages.weights, stages.response, layout)
        one_each = (self.filters,)
        bias_layout = self._layout(one_each, where.device)
        bias = self._copy_to_device(stages.bias, stages.features, bias_layout)
        full = self._copy_from_device()
        result = s.cache_write(full, where.scratchpad)
        window = s.cache_read(stages.padded, where.scratchpad, [stages.response])
        weights = s.cache_read(weights, where.scratchpad, [stages.response])
        bias = s.cache_read(bias, where.scratchpad, [result])
        s[stages.response].set_scope(where.scratchpad)

        step = self._distribute_tiles(full)
        features = self._feature_layout(where.scratchpad)
        self._set_plane_layout(window, where.scratchpad)
        self._set_layout(weights, self._weight_layout(where.scratchpad))
        self._set_layout(bias, self._layout(one_each, where.scratchpad))
        self._set_layout(stages.response, features)
        self._set_layout(result, features)
        for x in (window, weights, bias, stages.response, result):
            s[x].compute_at(s[full], step)
        # Reduce each pixel in the outer loops, vectorized over adjacent filters.
        *pixel, filters = s[stages.response].op.axis
        s[stages.response].reorder(*pixel, *s[stages.response].op.reduce_axis, filters)
        return s

    def _tile(self) -> FilterTile:
        """Return a balanced tile of as many rows as fit the scratchpad, or of parts of a row."""
        columns, unit = self.width, self.where.unit(FLOAT)[0]
        rows = self.where.largest(self.height, 1, lambda part: self._tile_bytes(part, columns))
        if self._tile_bytes(rows, columns) > self.where.scratchpad_bytes:
            limit = self.where.largest(columns, unit, lambda part: self._tile_bytes(1, part))
            columns = balanced_block_size(columns, limit, unit)
            if self._tile_bytes(1, columns) > self.where.scratchpad_bytes:
                raise CapacityError(
                    "filters: a part of {columns} pixels requires {needed} bytes of memory "
                    "`{scratchpad}`, but a core of target {target} has {capacity_bytes}; use a "
                    "target with larger scratchpads",
                    columns=columns, needed=self._tile_bytes(1, columns),
                    scratchpad=self.where.scratchpad, target=self.where.target.name,
                    capacity_bytes=self.where.scratchpad_bytes,
                )
        strips = ceil_div(self.width, columns)
        even = ceil_div(self.height * strips, self.where.target.cores)
        return FilterTile(balanced_block_size(min(even, self.height), rows), columns)

    def _tile_bytes(self, rows: int, columns: int) -> int:
        """Return the scratchpad bytes of a tile: window, weights, sums and features."""
        where, k = self.where, self.filters
        window = where.bytes_of_part((3, rows + BORDER, columns + BORDER), FLOAT)
        pixels, weights = where.bytes((rows, columns, k), FLOAT), where.bytes((75, k), FLOAT)
        if self._is_of_rows(where.scratchpad):
            pixels = where.bytes_of_part((rows, columns * k), FLOAT)
            weights = where.bytes((5, 15 * k), FLOAT)
        return int(window + 2 * pixels + weights + where.bytes((k,), FLOAT))

    def _copy_to_device(self, x: te.Tensor, reader: te.Tensor, layout: Any) -> te.Tensor:
        """Copy a host tensor to device memory."""
        if self.where.device == HOST:
            return x
        copy = self.s.cache_read(x, self.where.device, [reader])
        self._set_layout(copy, layout)
        return copy

    def _copy_from_device(self) -> te.Tensor:
        """Compute the features in device memory, from where they are copied to the host."""
        s, features = self.s, self.made.features
        if self.where.device == HOST:
            return features
        full = s.cache_write(features, self.where.device)
        s[full].transform_layout(self._feature_layout(self.where.device), loops="logical")
        s[features].vectorize(s[features].op.axis[-1])
        return full

    def _distribute_tiles(self, full: te.Tensor) -> te.IterVar:
        """Distribute tiles among the cores, and return the loop over the tiles of a core."""
        s = self.s
        n, y, x, k = s[full].op.axis
        y_outer, x_outer, y, x = s[full].tile(y, x, self.part.rows, self.part.columns)
        step: te.IterVar = self.where.share(s, full, s[full].fuse(n, y_outer, x_outer))
        s[full].vectorize(k)
        return step

    def _set_layout(self, x: te.Tensor, layout: Any) -> None:
        """Set the layout of a tensor, and vectorize its last axis."""
        self.s[x].transform_layout(layout, loops="logical")
        self.s[x].vectorize(self.s[x].op.axis[-1])

    def _set_plane_layout(self, x: te.Tensor, memory: str) -> None:
        """Set the layout of an image, computed plane by plane and vectorized along the rows."""
        self.s[x].transform_layout(self._image_layout(memory), loops="logical")
        n, row, column, c = self.s[x].op.axis
        column, lane = self.s[x].split(column, factor=self.where.lanes(FLOAT))
        self.s[x].reorder(n, c, row, column, lane)
        self.s[x].vectorize(lane)

    def _layout(self, shape: tuple[int, ...], memory: str) -> Any:
        return self.where.layout(shape, FLOAT, memory)

    def _is_of_rows(self, memory: str) -> bool:
        return bool(self.where.target.memory(memory).rank == 2)

    def _image_layout(self, memory: str) -> Callable[..., list[object]]:
        """Return the layout of an image: a plane per color, with rows padded to whole lanes."""
        if self._is_of_rows(memory):
            return lambda n, y, x, c: self.where.in_rows(memory, [n, c], y, [x])
        lanes = self.where.lanes(FLOAT)
        return lambda n, y, x, c: [n, c, y, x // lanes, x % lanes]

    def _feature_layout(self, memory: str) -> Any:
        """Return the layout of the features, with adjacent filters."""
        if self._is_of_rows(memory):
            return lambda n, y, x, k: self.where.in_rows(memory, [n], y, [x, k])
        return self._layout((1, self.height, self.width, self.filters), memory)

    def _weight_layout(self, memory: str) -> Callable[..., list[object]]:
        """Return the layout of the weights as a matrix: window positions by filters."""
        if self._is_of_rows(memory):
            return lambda y, x, c, k: self.where.in_rows(memory, [], y, [x, c, k])
        table = self._layout((75, self.filters), memory)
        return lambda y, x, c, k: table(15 * y + 3 * x + c, k)
