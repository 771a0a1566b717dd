"""The filters as a program, scheduled for a processor or for a machine with scratchpads."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp import te

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
