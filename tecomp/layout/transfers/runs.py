"""How long the contiguous pieces of a copy are, and how many transactions it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import ClassVar

import numpy as np

from tecomp.drawing.pictured import Pictured
from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.algebra.intervals import Box
from tecomp.ir.language.given import check_kind
from tecomp.layout.placement.places import row_major
from tecomp.layout.placement.stored import StoredTensor, check_layout
from tecomp.layout.transfers.dma import checked_box, host_side
from tecomp.poly.transfers.nests import Side
from tecomp.poly.transfers.runs import Found, Method, find_runs


@dataclass(frozen=True, slots=True)
class Runs(Pictured):
    """The maximal runs of a copy: elements that follow each other in both memories.

    No run goes from the memory of one core into that of another.

    Attributes:
        lengths: how many runs there are of each length, shortest first.
        elements: how many elements these runs have.
        total: how many are copied.
        method: `sets` if the count was decided by integer sets; `counted` if it was made over
            runs or elements, one by one; `part` if that was done for some of the elements only,
            the first of the outermost indices, and runs may be cut at the end of that part.

    >>> from tecomp import Layout
    >>> runs = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).runs()
    >>> runs.lengths, runs.elements, runs.total, runs.method
    (((8, 1000), (64, 3000)), 200000, 200000, 'sets')
    >>> runs.count, runs.shortest, runs.longest, runs.median, runs.factor
    (4000, 8, 64, 64, 8)
    """

    _drawn_by: ClassVar[str] = "transfers:drawn_runs"

    lengths: tuple[tuple[int, int], ...]
    elements: int
    total: int
    method: Method

    @property
    def count(self) -> int:
        """How many runs there are."""
        return sum(count for _, count in self.lengths)

    @property
    def shortest(self) -> int:
        """Elements of the shortest run; 0 if nothing is copied."""
        return self.lengths[0][0] if self.lengths else 0

    @property
    def longest(self) -> int:
        """Elements of the longest run; 0 if nothing is copied."""
        return self.lengths[-1][0] if self.lengths else 0

    @property
    def median(self) -> int:
        """At least half of the runs are so long or shorter; 0 if nothing is copied."""
        seen = 0
        for length, count in self.lengths:
            seen += count
            if 2 * seen >= self.count:
                return length
        return 0

    @property
    def factor(self) -> int:
        """The greatest length of which all runs are multiples; 0 if nothing is copied.

        Source:
            tt-mlir, `calculateCoalescingFactor`: the greatest common divisor of all runs.
        """
        return gcd(*(length for length, _ in self.lengths))

    def transactions(self, most: int | None = None) -> int:
        """How many transactions copy the runs, if each moves `most` elements at most.

        Raises:
            LayoutError: `most` is no integer from 1 on.

        >>> Runs(((8, 1000), (64, 3000)), 200000, 200000, "sets").transactions(32)
        7000
        """
        if most is None:
            return self.count
        check_kind(
            most, int | np.integer, "runs: what a transaction moves", "give 1 or more", LayoutError
        )
        if most < 1:
            raise LayoutError(
                f"runs: a transaction of {most} elements moves nothing; give 1 or more",
                kind="transfer",
            )
        return sum(ceil_div(length, most) * count for length, count in self.lengths)

    def __str__(self) -> str:
        how = {
            "sets": "by sets",
            "counted": "counted",
            "part": f"counted in {self.elements:,} of {self.total:,} elements",
        }[self.method]
        if self.shortest == self.longest:
            return f"{self.count:,} runs of {self.longest:,} elements, {how}"
        return (
            f"{self.count:,} runs of {self.shortest:,} to {self.longest:,} elements, "
            f"median {self.median:,}, all multiples of {self.factor:,}, {how}"
        )


def host_runs(
    layout: StoredTensor,
    host_strides: Sequence[int] | None,
    start: Sequence[int] | None,
    extents: Sequence[int] | None,
) -> Runs:
    """See `Layout.runs`."""
    box = checked_box(layout, start, extents, "layout.runs")
    host = host_side(layout, host_strides, 0, "layout.runs")
    return _runs(find_runs(
        _core_side(layout, layout), host, layout.index_map.initial_indices, box
    ), box)


def copy_runs(
    source: StoredTensor,
    target: StoredTensor,
    start: Sequence[int] | None,
    extents: Sequence[int] | None,
) -> Runs:
    """See `Layout.runs_to`."""
    check_layout(target, "layout.runs_to")
    if source.shape != target.shape:
        raise LayoutError(
            f"layout.runs_to: {list(source.shape)} and {list(target.shape)} are not one tensor; "
            "give both layouts the same shape, e.g. with maps of the one that they share",
            kind="other-shape",
        )
    box = checked_box(source, start, extents, "layout.runs_to")
    axes = source.index_map.initial_indices
    return _runs(find_runs(
        _core_side(target, source), _core_side(source, source), axes, box
    ), box)


def _core_side(layout: StoredTensor, other: StoredTensor) -> Side:
    """Addresses in a layout, with a gap after the memory of each core; indices as in `other`."""
    shape = layout.physical_shape
    grid = [axis for axis in range(len(shape)) if axis in layout.grid_axes]
    inner = [axis for axis in range(len(shape)) if axis not in layout.grid_axes]
    strides = [0] * len(shape)
    for axis, stride in zip(inner, row_major([shape[k] for k in inner]), strict=True):
        strides[axis] = stride
    each = prod(shape[k] for k in inner) + (1 if grid else 0)
    for axis, stride in zip(grid, row_major([shape[k] for k in grid]), strict=True):
        strides[axis] = stride * each
    exprs = layout.index_map.final_indices
    if layout is not other:
        exprs = tuple(layout.index_map.map_indices(other.index_map.initial_indices))
    return Side(exprs, tuple(strides))


def _runs(found: Found, box: Box[int]) -> Runs:
    lengths = tuple(sorted(found.lengths.items()))
    return Runs(lengths, found.elements, prod(count for _, count in box), found.method)
