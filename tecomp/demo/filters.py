"""The image filters: their data, references in NumPy and SciPy, and programs."""

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
from tecomp.schedules.tiling.register_blocking import balanced, ceil_div

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


LANES = 16  # channels in one block of the layout
COLUMNS = 8  # pixels that one register tile covers


@dataclass(frozen=True, slots=True)
class Program:
    """The tensors of one computation and its schedule."""

    schedule: te.Schedule
    args: list[te.Tensor]


@dataclass(frozen=True, slots=True)
class Tensors:
    """The filters over a photograph, written with `te`.

    Attributes:
        image: `[1, height, width, 3]`.
        weights: `[5, 5, 3, k]`.
        bias: `[k]`.
        padded: the image with a black border of two pixels.
        response: its products with the weights.
        features: those with the bias, and above zero.
    """

    image: te.Tensor
    weights: te.Tensor
    bias: te.Tensor
    padded: te.Tensor
    response: te.Tensor
    features: te.Tensor

    @property
    def args(self) -> list[te.Tensor]:
        """What a kernel takes."""
        return [self.image, self.weights, self.bias, self.features]


def written(height: int, width: int, n_filters: int) -> Tensors:
    """The filters over a photograph of this size."""
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


def filtered(height: int, width: int, n_filters: int) -> Program:
    """When, where and in which order a processor computes the filters."""
    made = written(height, width, n_filters)
    weights, padded, response, features = (
        made.weights, made.padded, made.response, made.features
    )
    s = te.create_schedule(features.op)
    total = s.cache_write(response, "local")
    packed = s.cache_read(weights, "global", [total])
    s[response].compute_inline()

    # The padded picture is a texture: one physical axis of rows, one of pixels.
    s[padded].set_scope("global.texture")
    _, row, _, _ = s[padded].transform_layout(
        lambda n, y, x, c: [n, y, te.AXIS_SEPARATOR, x, c]
    )
    s[padded].parallel(row)

    # Sixteen filters lie side by side, as the vectors of `total` want them.
    *_, lane = s[packed].transform_layout(lambda y, x, c, k: [k // LANES, y, x, c, k % LANES])
    s[packed].vectorize(lane)

    # NHWC in blocks of sixteen channels, one row of blocks after the other.
    n, y, block, x, lane = s[features].transform_layout(
        lambda n, y, x, k: [n, y, k // LANES, x, k % LANES]
    )
    x_outer, x_inner = s[features].split(x, factor=COLUMNS)
    s[features].reorder(n, y, block, x_outer, x_inner, lane)
    s[features].parallel(y)
    s[features].vectorize(lane)

    # One tile of sums stays in registers while all 75 products are added.
    s[total].compute_at(s[features], x_outer)
    n, y, x, k = s[total].op.axis
    ry, rx, rc = s[total].op.reduce_axis
    s[total].reorder(n, y, ry, rx, rc, x, k)
    s[total].unroll(x)
    s[total].vectorize(k)
    return Program(s, made.args)


FLOAT = "float32"
BORDER = 4  # pixels that a window reaches beyond the part that it is for


@dataclass(frozen=True, slots=True)
class Tile:
    """Pixels that a core computes at one time."""

    rows: int
    columns: int


def filtered_on(target: Target, height: int, width: int, n_filters: int) -> Program | None:
    """The filters, scheduled for the memories and cores of a target; None if it has no scratchpads.

    The padded picture, the weights and the bias are copied to the memory of the device, in its
    sticks or tiles, where the features come to lie, too. Each core brings the window of a part of
    the picture to its scratchpad, computes the features there, and writes them back.
    """
    where = placement_of(target)
    if where is None:
        return None
    made = written(height, width, n_filters)
    return Program(_Device(where, made).schedule(), made.args)


class _Device:
    """The schedule as it is made."""

    def __init__(self, where: Placement, made: Tensors) -> None:
        self.where, self.made = where, made
        self.s = te.create_schedule(made.features.op)
        _, self.height, self.width, self.filters = (
            number(extent, made.features) for extent in made.features.shape
        )
        self.part = self._tile()

    def schedule(self) -> te.Schedule:
        """All of it."""
        s, made, where = self.s, self.made, self.where
        s[made.padded].set_scope(where.device)
        self._lay_planes(made.padded, where.device)
        weights = self._copied_in(made.weights, made.response, self._table(where.device))
        one_each = (self.filters,)
        bias = self._copied_in(made.bias, made.features, self._layout(one_each, where.device))
        whole = self._copied_out()
        result = s.cache_write(whole, where.scratchpad)
        window = s.cache_read(made.padded, where.scratchpad, [made.response])
        weights = s.cache_read(weights, where.scratchpad, [made.response])
        bias = s.cache_read(bias, where.scratchpad, [result])
        s[made.response].set_scope(where.scratchpad)

        step = self._share(whole)
        features = self._features(where.scratchpad)
        self._lay_planes(window, where.scratchpad)
        self._lay(weights, self._table(where.scratchpad))
        self._lay(bias, self._layout(one_each, where.scratchpad))
        self._lay(made.response, features)
        self._lay(result, features)
        for x in (window, weights, bias, made.response, result):
            s[x].compute_at(s[whole], step)
        # All products of a pixel, one after the other, for the filters side by side.
        *pixel, filters = s[made.response].op.axis
        s[made.response].reorder(*pixel, *s[made.response].op.reduce_axis, filters)
        return s

    def _tile(self) -> Tile:
        """As many rows as there is room for, evenly; parts of rows if there is none for one."""
        columns, unit = self.width, self.where.unit(FLOAT)[0]
        rows = self.where.largest(self.height, 1, lambda part: self._need(part, columns))
        if self._need(rows, columns) > self.where.room:
            most = self.where.largest(columns, unit, lambda part: self._need(1, part))
            columns = balanced(columns, most, unit)
            if self._need(1, columns) > self.where.room:
                raise CapacityError(
                    f"filters: a part of {columns} pixels takes {self._need(1, columns)} bytes of "
                    f"memory `{self.where.scratchpad}`, a core of target {self.where.target.name} "
                    f"has {self.where.room}; take a target with larger scratchpads"
                )
        strips = ceil_div(self.width, columns)
        even = ceil_div(self.height * strips, self.where.target.cores)
        return Tile(balanced(min(even, self.height), rows), columns)

    def _need(self, rows: int, columns: int) -> int:
        """Bytes of the scratchpad for a part: its window, the weights, sums and features."""
        where, k = self.where, self.filters
        window = where.bytes((3 * (rows + BORDER), columns + BORDER), FLOAT)
        pixels = where.bytes((rows, columns, k), FLOAT)
        if where.target.memory(where.scratchpad).rank == 2:
            pixels = where.bytes((rows, columns * k), FLOAT)
        return int(window + 2 * pixels + where.bytes((75, k), FLOAT) + where.bytes((k,), FLOAT))

    def _copied_in(self, x: te.Tensor, reader: te.Tensor, layout: Any) -> te.Tensor:
        """A tensor of the host in the memory of the device."""
        if self.where.device == HOST:
            return x
        copy = self.s.cache_read(x, self.where.device, [reader])
        self._lay(copy, layout)
        return copy

    def _copied_out(self) -> te.Tensor:
        """The features in the memory of the device, from where they are copied to the host."""
        s, features = self.s, self.made.features
        if self.where.device == HOST:
            return features
        whole = s.cache_write(features, self.where.device)
        s[whole].transform_layout(self._features(self.where.device), loops="logical")
        s[features].vectorize(s[features].op.axis[-1])
        return whole

    def _share(self, whole: te.Tensor) -> te.IterVar:
        """Parts of the picture, shared among the cores; returns the loop over those of one."""
        s = self.s
        n, y, x, k = s[whole].op.axis
        y_outer, x_outer, y, x = s[whole].tile(y, x, self.part.rows, self.part.columns)
        step: te.IterVar = self.where.share(s, whole, s[whole].fuse(n, y_outer, x_outer))
        s[whole].vectorize(k)
        return step

    def _lay(self, x: te.Tensor, layout: Any) -> None:
        """Give a tensor its layout, and compute all that has the last index at once."""
        self.s[x].transform_layout(layout, loops="logical")
        self.s[x].vectorize(self.s[x].op.axis[-1])

    def _lay_planes(self, x: te.Tensor, memory: str) -> None:
        """Fill a picture plane by plane, as it lies in memory, in vectors of lanes."""
        self.s[x].transform_layout(self._picture(memory), loops="logical")
        n, row, column, c = self.s[x].op.axis
        column, lane = self.s[x].split(column, factor=self.where.lanes(FLOAT))
        self.s[x].reorder(n, c, row, column, lane)
        self.s[x].vectorize(lane)

    def _layout(self, shape: tuple[int, ...], memory: str) -> Any:
        return self.where.layout(shape, FLOAT, memory)

    def _is_of_rows(self, memory: str) -> bool:
        return bool(self.where.target.memory(memory).rank == 2)

    def _picture(self, memory: str) -> Callable[..., list[object]]:
        """One plane for each colour, row by row, each row in whole lanes."""
        if self._is_of_rows(memory):
            return lambda n, y, x, c: [n, c, y, te.AXIS_SEPARATOR, x]
        lanes = self.where.lanes(FLOAT)
        return lambda n, y, x, c: [n, c, y, x // lanes, x % lanes]

    def _features(self, memory: str) -> Any:
        """Filters side by side."""
        if self._is_of_rows(memory):
            return lambda n, y, x, k: [n, y, te.AXIS_SEPARATOR, x, k]
        return self._layout((1, self.height, self.width, self.filters), memory)

    def _table(self, memory: str) -> Callable[..., list[object]]:
        """The weights as a matrix: places of a window by filters."""
        if self._is_of_rows(memory):
            return lambda y, x, c, k: [y, te.AXIS_SEPARATOR, x, c, k]
        table = self._layout((75, self.filters), memory)
        return lambda y, x, c, k: table(15 * y + 3 * x + c, k)
