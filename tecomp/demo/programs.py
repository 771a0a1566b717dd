"""The filter programs for CPUs and scratchpad targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tecomp import te
from tecomp.errors import CapacityError
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import HOST, Placement, number, placement_of
from tecomp.schedules.tiling.register_blocking import balanced, ceil_div

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
