"""What the axes of a sum of products are to a unit that multiplies tiles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tecomp import te
from tecomp.schedules.tiles import ceil_div

CONVERTED = {"is_converted": True}
"""Marks the operands that definitions make of those that they are given."""

Sizes = Mapping[te.IterVar, int]
"""Extents of parts of axes."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products, and what its axes are to a unit that multiplies matrices.

    Attributes:
        total: the sum.
        factors: what is multiplied: tensors of the caller, or copies of those with zeros around.
        rows: the axis of the result that is the rows of a tile.
        columns: the axis that is its columns.
        depth: the axis of the reduction that runs through a tile.
        roles: for each of the factors and the result, which of its dimensions are `m`, `n`, `k`.
        read: extents of the parts of the factors that are read for parts of the axes.
    """

    total: te.Tensor
    factors: tuple[te.Tensor, te.Tensor]
    rows: te.IterVar
    columns: te.IterVar
    depth: te.IterVar
    roles: tuple[Mapping[int, str], Mapping[int, str], Mapping[int, str]]
    read: Callable[[Sizes], tuple[tuple[int, ...], tuple[int, ...]]]

    @property
    def axes(self) -> tuple[te.IterVar, ...]:
        """Of the result."""
        return tuple(self.total.op.axis)

    @property
    def taps(self) -> list[te.IterVar]:
        """The axes of the reduction but the depth."""
        return [axis for axis in self.total.op.reduce_axis if axis is not self.depth]


def of_matrices(total: te.Tensor) -> Contraction:
    """What the axes of a product are to a unit that multiplies tiles."""
    *batch, i, j = total.op.axis
    (k,) = total.op.reduce_axis
    turned = bool(total.op.attrs["transpose_a"]), bool(total.op.attrs["transpose_b"])
    a, b = map(_source, total.op.input_tensors)
    # Of pairs of integers each step of the depth takes two.
    each = ceil_div(a.shape[-2 if turned[0] else -1], max(k.extent, 1))
    last = len(batch) + 1

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        outer = [sizes[axis] for axis in batch]
        m, n, depth = sizes[i], sizes[j], each * sizes[k]
        rows = (depth, m) if turned[0] else (m, depth)
        return (*outer, *rows), (*outer, *((n, depth) if turned[1] else (depth, n)))

    roles = (
        {last - 1: "k", last: "m"} if turned[0] else {last - 1: "m", last: "k"},
        {last - 1: "n", last: "k"} if turned[1] else {last - 1: "k", last: "n"},
        {last - 1: "m", last: "n"},
    )
    return Contraction(total, (a, b), i, j, k, roles, read)


def _source(x: te.Tensor) -> te.Tensor:
    """What was given to `define`, before it was converted."""
    return x.op.input_tensors[0] if x.op.attrs.get("is_converted") else x
