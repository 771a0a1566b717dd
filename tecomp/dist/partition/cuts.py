"""How one axis of an array is cut: blocks of consecutive indices, dealt out to processes in turn.

With `p` processes and blocks of `b`, process `i // b % p` has index i, as its number
`i // (b * p) * b + i % b`. Where every process has one block at most, `b` is n / p rounded up: the
last parts are shorter, or empty. No process has more than by any other rule, and arrays of nearly
the same extent have the same parts in front.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from tecomp.dist.partition.placements import Shard
from tecomp.dist.partition.places import (
    Places,
    chosen,
    count_of,
    gathered,
    steps,
)
from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.expr import Expr, index_value, select


@dataclass(frozen=True)
class Cut:
    """One cut of an axis, or of the parts that earlier cuts have made.

    Attributes:
        mesh_axis: which axis of the mesh counts the parts.
        count: how many parts there are.
        block: how many consecutive indices are dealt out at a time.
        sizes: how many indices each part has, in order, if that is given instead.
    """

    mesh_axis: int
    count: int
    block: int
    sizes: tuple[int, ...] | None

    def part(self, k: int, extent: int) -> Places:
        """The indices of part k of an axis of some extent."""
        if self.sizes is not None:
            start = sum(self.sizes[:k])
            return steps(start, start + self.sizes[k])
        first, period = k * self.block, self.block * self.count
        if period >= extent:
            return steps(first, min(first + self.block, extent))
        if self.block == 1:
            return steps(k, extent, self.count)
        starts = np.arange(first, extent, period)
        numbers = (starts[:, None] + np.arange(self.block)).ravel()
        return gathered(numbers[numbers < extent])

    def place(self, index: int) -> tuple[int, int]:
        """The number of the part that has an index, and its number in there."""
        if self.sizes is None:
            period = self.block * self.count
            inside = index // period * self.block + index % self.block
            return index // self.block % self.count, inside
        k = bisect_right(self._ends, index)
        return k, index - sum(self.sizes[:k])

    def expressed(self, index: Expr) -> tuple[Expr, Expr]:
        """The same as expressions."""
        if self.sizes is None:
            period = self.block * self.count
            inside = index // period * self.block + index % self.block
            return index // self.block % self.count, inside
        part: Expr = index_value(0)
        start: Expr = index_value(0)
        for end in self._ends[:-1]:
            is_after = index >= end
            part = part + select(is_after, 1, 0)
            start = select(is_after, end, start)
        return part, index - start

    def holders(self, low: int, high: int) -> range:
        """Parts that may have an index from `low` below `high`."""
        if high <= low:
            return range(0)
        if self.sizes is None and high - low > self.block * (self.count - 1):
            return range(self.count)
        first, last = self.place(low)[0], self.place(high - 1)[0]
        return range(first, last + 1) if first <= last else range(self.count)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(self.sizes or ()))


@dataclass(frozen=True)
class Cuts:
    """All cuts of one axis, each of the parts that the one before has made.

    Attributes:
        extent: of the axis.
        cuts: in the order of the axes of the mesh.
    """

    extent: int
    cuts: tuple[Cut, ...]

    @classmethod
    def of(cls, extent: int, axis: int, shards: Sequence[tuple[int, int, Shard]]) -> Cuts:
        """The cuts that placements ask for.

        Args:
            extent: of the axis.
            axis: its number, for messages.
            shards: number and extent of the axis of the mesh, and the placement.

        Raises:
            LayoutError: sizes do not add up to the extent.
        """
        made: list[Cut] = []
        rest = extent
        for mesh_axis, count, shard in shards:
            if shard.sizes is not None:
                _check_sizes(shard.sizes, count, extent, axis, len(shards))
            block = shard.block or max(ceil_div(rest, count), 1)
            made.append(Cut(mesh_axis, count, block, shard.sizes))
            rest = min(count_of(made[-1].part(0, rest)), rest) if shard.sizes is None else rest
        return cls(extent, tuple(made))

    def part(self, at: Sequence[int]) -> Places:
        """The indices of the part with these numbers, one for each cut."""
        places: Places = steps(0, self.extent)
        for k, cut in zip(at, self.cuts, strict=True):
            places = chosen(places, cut.part(k, count_of(places)))
        return places

    def owner(self, index: int) -> tuple[int, ...]:
        """The numbers of the part that has an index."""
        found: list[int] = []
        for cut in self.cuts:
            k, index = cut.place(index)
            found.append(k)
        return tuple(found)

    def holders(self, wanted: Places) -> Sequence[range]:
        """For each cut the parts that may have one of the wanted indices."""
        ranges = [range(cut.count) for cut in self.cuts]
        if self.cuts and isinstance(wanted, slice):
            ranges[0] = self.cuts[0].holders(wanted.start, wanted.stop)
        return ranges


def _check_sizes(
    sizes: tuple[int, ...], count: int, extent: int, axis: int, n_shards: int
) -> None:
    if len(sizes) != count or sum(sizes) != extent:
        raise LayoutError(
            f"partition: sizes {list(sizes)} for axis {axis} of extent {extent} on {count} "
            f"processes; give {count} sizes that add up to {extent}",
            kind="partition",
        )
    if n_shards > 1:
        raise LayoutError(
            f"partition: axis {axis} has sizes {list(sizes)} and is cut along {n_shards} axes of "
            "the mesh; give blocks, or cut it along one",
            kind="partition",
        )
