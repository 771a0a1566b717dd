"""Partitions of axes, and shifted windows served by one halo exchange."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from tecomp.array.graph.access_regions import Box, Span
from tecomp.caches import memoize
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Placement, Replicate, Shard
from tecomp.dist.partition.redistribution import Halo, halo
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.types import PTensorType, Shape, numpy_dtype


class AxisBlocks(NamedTuple):
    """Axis of an array in consecutive pieces, one per position along a mesh axis.

    Attributes:
        axis: Array axis.
        mesh_axis: Mesh axis.
        ends: First index of each piece, followed by the end of the last piece.
    """

    axis: int
    mesh_axis: int
    ends: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of indices of each piece."""
        return tuple([b - a for a, b in zip(self.ends, self.ends[1:], strict=False)])


def blocks(extent: int, count: int) -> tuple[int, ...]:
    """Return the ends of equal blocks of an axis, as `Shard(axis)` defines them."""
    block = -(-extent // count)
    return tuple([min(k * block, extent) for k in range(count + 1)])


@memoize("dist.partitions")
def partition(shape: Shape, dtype: str, mesh: Mesh, placements: tuple[Placement, ...]) -> Partition:
    """Return a canonical partition: explicit sizes only where they differ from equal blocks."""
    shortened = tuple([_shortest(p, shape, mesh.shape[k]) for k, p in enumerate(placements)])
    return Partition(shape, numpy_dtype(dtype), mesh, shortened)


def _shortest(placement: Placement, shape: Shape, count: int) -> Placement:
    if not isinstance(placement, Shard) or placement.sizes is None:
        return placement
    ends = (0, *accumulate(placement.sizes))
    return Shard(placement.axis) if ends == blocks(shape[placement.axis], count) else placement


def row_of(team: int) -> Mesh:
    """Return the one-dimensional mesh of a team."""
    return Mesh((team_of(team).size,))


def default_partition(ptype: PTensorType) -> Partition:
    """Return the default partition: the first axis in blocks."""
    assert ptype.team is not None
    placement: Placement = Shard(0) if ptype.shape else Replicate()
    return partition(ptype.shape, ptype.dtype, row_of(ptype.team), (placement,))


def replicated_partition(ptype: PTensorType, mesh: Mesh) -> Partition:
    """Return the replicated partition."""
    return partition(ptype.shape, ptype.dtype, mesh, (Replicate(),) * mesh.ndim)


@memoize("dist.axis_blocks")
def blocks_of_partition(part: Partition) -> tuple[AxisBlocks, ...] | None:
    """Return the cuts of a partition; None unless all pieces are consecutive, one cut per axis."""
    cuts: list[AxisBlocks] = []
    if part.windows is not None:
        return None
    for k, placement in enumerate(part.placements):
        if isinstance(placement, Replicate):
            continue
        if not isinstance(placement, Shard) or placement.block is not None:
            return None
        if any(cut.axis == placement.axis for cut in cuts):
            return None
        ends = blocks(part.shape[placement.axis], part.mesh.shape[k])
        if placement.sizes is not None:
            ends = (0, *accumulate(placement.sizes))
        cuts.append(AxisBlocks(placement.axis, k, ends))
    return tuple(cuts)


def partition_from_blocks(ptype: PTensorType, mesh: Mesh, cuts: Sequence[AxisBlocks]) -> Partition:
    """Return the partition of an array with the given cuts."""
    placements: list[Placement] = [Replicate()] * mesh.ndim
    for cut in cuts:
        placements[cut.mesh_axis] = Shard(cut.axis, sizes=cut.sizes)
    return partition(ptype.shape, ptype.dtype, mesh, tuple(placements))


def is_same(a: Partition, b: Partition) -> bool:
    """Return whether all ranks own the same indices in both partitions."""
    return (a.shape, a.mesh.shape, a.placements, a.windows) == (
        b.shape, b.mesh.shape, b.placements, b.windows)


class ShiftedWindow(NamedTuple):
    """Consecutive elements of an array with a partition of their own.

    Attributes:
        starts: First index along each axis of the array; may be negative on a periodic axis.
        periodic: Whether each axis is periodic.
        target: Partition of the window.
    """

    starts: tuple[int, ...]
    periodic: tuple[bool, ...]
    target: Partition

    def received_span(self, rank: int) -> tuple[Span, ...]:
        """Return the index span of the array along each axis that a rank receives."""
        return tuple([
            (span.start + start, span.stop + start) if span.stop > span.start else (0, 0)
            for start, span in zip(self.starts, self.target.local_index(rank), strict=True)
            if isinstance(span, slice)
        ])


class WindowSet(NamedTuple):
    """Several windows of one array.

    Attributes:
        halo: Halo of the shards that contains all windows.
        windows: Windows.
    """

    halo: Halo
    windows: tuple[ShiftedWindow, ...]

    def indices(self, rank: int) -> list[tuple[slice, ...]]:
        """Return the position of each window in the shard of a rank with its halo."""
        return _indices(self, rank)

    def inner(self, rank: int) -> list[Box]:
        """Return the box of each window that is in the shard of a rank without its halo."""
        return _inner(self, rank)


@memoize("dist.window_indices")
def _indices(windows: WindowSet, rank: int) -> list[tuple[slice, ...]]:
    core = windows.halo.core(rank)
    owned = _owned_spans(windows.halo.partition, rank)
    indices = []
    for window in windows.windows:
        indices.append(tuple([
            slice(inside.start + low - first, inside.start + high - first)
            if high > low else slice(0, 0)
            for (low, high), (first, _), inside in zip(
                window.received_span(rank), owned, core, strict=True)
        ]))
    return indices


@memoize("dist.window_interiors")
def _inner(windows: WindowSet, rank: int) -> list[Box]:
    core = windows.halo.core(rank)
    return [
        tuple([
            (min(max(owned.start - span.start, 0), span.stop - span.start),
             min(max(owned.stop - span.start, 0), span.stop - span.start))
            for owned, span in zip(core, index, strict=True)
        ])
        for index in windows.indices(rank)
    ]


@memoize("dist.window_sets")
def windows_of(base: Partition, windows: tuple[ShiftedWindow, ...]) -> WindowSet:
    """Return windows that fit an array partition, with their common halo."""
    widths = [[0, 0] for _ in base.shape]
    corners = False
    for window in windows:
        found = _widths(base, window)
        assert found is not None
        corners |= sum(map(any, found)) > 1
        for width, window_width in zip(widths, found, strict=True):
            width[:] = [max(a, b) for a, b in zip(width, window_width, strict=True)]
    periodic = [any(flags) for flags in zip(*[window.periodic for window in windows], strict=True)]
    return WindowSet(halo(base, [tuple(width) for width in widths], periodic=periodic,
                        corners=corners), windows)


@memoize("dist.window_fits")
def fits(base: Partition, window: ShiftedWindow) -> bool:
    """Return whether a window at most doubles the size of the shards."""
    if base.mesh.shape != window.target.mesh.shape:
        return False
    if blocks_of_partition(base) is None or blocks_of_partition(window.target) is None:
        return False
    widths = _widths(base, window)
    if widths is None:
        return False
    largest = [max(high - low for low, high in spans) for spans in zip(
        *[_owned_spans(base, rank) for rank in range(base.mesh.size)], strict=True)]
    grown = [n + sum(width) for n, width in zip(largest, widths, strict=True)]
    return bool(prod(grown) <= 2 * prod(largest))


@memoize("dist.window_widths")
def _widths(base: Partition, window: ShiftedWindow) -> tuple[tuple[int, int], ...] | None:
    """Return the halo widths of a window per axis; None if shards and window do not overlap."""
    widths = [[0, 0] for _ in base.shape]
    for rank in range(base.mesh.size):
        received, owned = window.received_span(rank), _owned_spans(base, rank)
        if any(high == low for low, high in received):
            continue
        if any(high == low for low, high in owned):
            return None
        for width, (low, high), (first, end) in zip(widths, received, owned, strict=True):
            if low >= end or high <= first:
                return None
            width[:] = [max(width[0], first - low), max(width[1], high - end)]
    return tuple([(a, b) for a, b in widths])


def _owned_spans(base: Partition, rank: int) -> Sequence[Span]:
    return [
        (span.start, span.stop) for span in base.local_index(rank) if isinstance(span, slice)
    ]
