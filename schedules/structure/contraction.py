"""What the axes of a sum of products are to a unit that multiplies tiles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tecomp import te
from tecomp.schedules.structure.convolutions import Convolution
from tecomp.schedules.structure.products import Product
from tecomp.schedules.structure.sizes import ceil_div
from tecomp.schedules.structure.stages import unconverted

Sizes = Mapping[te.IterVar, int]
"""Extents of parts of axes."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products, and what its axes are to a unit that multiplies matrices.

    Attributes:
        total: the sum.
        reads: what is multiplied.
        factors: the same before it is converted: tensors of the caller, or copies of those with
            zeros around.
        rows: the axis of the result that is the rows of a tile.
        columns: the axis that is its columns.
        depth: the axis of the reduction that runs through a tile.
        roles: for each of the factors and the result, which of its dimensions are `m`, `n`, `k`.
        read: extents of the parts of the factors that are read for parts of the axes.
        is_product: whether a tile is a product of matrices; of grouped channels it is several.
        padded: factors with zeros around that are computed where they are needed; the others are
            there before.
    """

    total: te.Tensor
    reads: tuple[te.Tensor, te.Tensor]
    factors: tuple[te.Tensor, te.Tensor]
    rows: te.IterVar
    columns: te.IterVar
    depth: te.IterVar
    roles: tuple[Mapping[int, str], Mapping[int, str], Mapping[int, str]]
    read: Callable[[Sizes], tuple[tuple[int, ...], tuple[int, ...]]]
    is_product: bool = True
    padded: Collection[te.Tensor] = ()

    @property
    def axes(self) -> tuple[te.IterVar, ...]:
        """Of the result."""
        return tuple(self.total.op.axis)

    @property
    def taps(self) -> list[te.IterVar]:
        """The axes of the reduction but the depth."""
        return [axis for axis in self.total.op.reduce_axis if axis is not self.depth]


def of_matrices(d: Product) -> Contraction:
    """What the axes of a product are to a unit that multiplies tiles."""
    letters = {d.row: "m", d.column: "n", d.depth[-1]: "k"}
    factors = (d.rows, d.columns)

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        first, second = (tuple(sizes[axis] for axis in factor.axes) for factor in factors)
        return first, second

    def roles(axes: Sequence[te.IterVar]) -> dict[int, str]:
        return {dim: letters[axis] for dim, axis in enumerate(axes) if axis in letters}

    return Contraction(
        d.total, (d.rows.tensor, d.columns.tensor),
        (unconverted(d.rows.tensor), unconverted(d.columns.tensor)), d.row, d.column,
        d.depth[-1], (roles(d.rows.axes), roles(d.columns.axes), roles(d.total.op.axis)), read,
    )


def of_images(d: Convolution, padded: Collection[te.Tensor] = ()) -> Contraction:
    """What the axes of a convolution are to a unit: pixels of a row by channels, for each tap.

    Args:
        d: the convolution.
        padded: its factors that are computed where they are needed.
    """
    b, y, x, k = d.axes_of(d.total)
    r, s, channel = d.taps_of(d.total)
    per_group: int = max(k.extent // d.groups, 1) if isinstance(k.extent, int) else 1

    def seen(count: int, taps: int, along: int) -> int:
        return int((count - 1) * d.steps[along] + (taps - 1) * d.apart[along] + 1)

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rows, columns = seen(sizes[y], sizes[r], 0), seen(sizes[x], sizes[s], 1)
        depth, out = sizes[channel], sizes[k]
        # Neighbouring outputs may begin in the middle of a group.
        source = depth if d.groups == 1 else depth * min(ceil_div(out, per_group) + 1, d.groups)
        own = dict(zip(d.order, (sizes[r], sizes[s], depth, out), strict=True))
        weights = tuple(own[dim] for dim in range(4))
        if d.first:
            return (sizes[b], source, rows, columns), weights
        return (sizes[b], rows, columns, source), weights

    filters = {d.order[2]: "k", d.order[3]: "n"}
    roles = (
        ({3: "m", 1: "k"}, filters, {3: "m", 1: "n"})
        if d.first
        else ({2: "m", 3: "k"}, filters, {2: "m", 3: "n"})
    )
    factors = d.image, d.weights
    return Contraction(d.total, factors, factors, x, k, channel, roles, read, d.groups == 1, padded)
