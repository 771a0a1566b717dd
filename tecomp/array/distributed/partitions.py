"""Partitions of axes, and shifted windows served by one halo exchange."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from tecomp.array.graph.access_regions import Box, Span
from tecomp.caches import memoize
from tecomp.dist.partition.halo import Halo, halo
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Placement, Replicate, Shard
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
    placed = tuple([_shortest(p, shape, mesh.shape[k]) for k, p in enumerate(placements)])
    return Partition(shape, numpy_dtype(dtype), mesh, placed)


def _shortest(placed: Placement, shape: Shape, count: int) -> Placement:
    if not isinstance(placed, Shard) or placed.sizes is None:
        return placed
    ends = (0, *accumulate(placed.sizes))
    return Shard(placed.axis) if ends == blocks(shape[placed.axis], count) else placed


def row_of(team: int) -> Mesh:
    """Return the one-dimensional mesh of a team."""
    return Mesh((team_of(team).size,))


def default_partition(type: PTensorType) -> Partition:
    """Return the default partition: the first axis in blocks."""
    assert type.team is not None
    placed: Placement = Shard(0) if type.shape else Replicate()
    return partition(type.shape, type.dtype, row_of(type.team), (placed,))


def replicated_partition(type: PTensorType, mesh: Mesh) -> Partition:
    """Return the replicated partition."""
    return partition(type.shape, type.dtype, mesh, (Replicate(),) * mesh.ndim)


@memoize("dist.axis_blocks")
def blocks_of_partition(given: Partition) -> tuple[AxisBlocks, ...] | None:
    """Return the cuts of a partition; None unless all pieces are consecutive, one cut per axis."""
    made: list[AxisBlocks] = []
    if given.windows is not None:
        return None
    for k, placed in enumerate(given.placements):
        if isinstance(placed, Replicate):
            continue
        if not isinstance(placed, Shard) or placed.block is not None:
            return None
        if any(cut.axis == placed.axis for cut in made):
            return None
        ends = blocks(given.shape[placed.axis], given.mesh.shape[k])
        if placed.sizes is not None:
            ends = (0, *accumulate(placed.sizes))
        made.append(AxisBlocks(placed.axis, k, ends))
    return tuple(made)


def partition_from_blocks(type: PTensorType, mesh: Mesh, cuts: Sequence[AxisBlocks]) -> Partition:
    """Return the partition of an array with the given cuts."""
    placed: list[Placement] = [Replicate()] * mesh.ndim
    for cut in cuts:
        placed[cut.mesh_axis] = Shard(cut.axis, sizes=cut.sizes)
    return partition(type.shape, type.dtype, mesh, tuple(placed))


def is_same(one: Partition, other: Partition) -> bool:
    """Return whether all ranks own the same indices in both partitions."""
    return (one.shape, one.mesh.shape, one.placements, one.windows) == (
        other.shape, other.mesh.shape, other.placements, other.windows)


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
            (at.start + start, at.stop + start) if at.stop > at.start else (0, 0)
            for start, at in zip(self.starts, self.target.local_index(rank), strict=True)
            if isinstance(at, slice)
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
    own = _owned_spans(windows.halo.partition, rank)
    made = []
    for window in windows.windows:
        made.append(tuple([
            slice(inside.start + low - first, inside.start + high - first)
            if high > low else slice(0, 0)
            for (low, high), (first, _), inside in zip(
                window.received_span(rank), own, core, strict=True)
        ]))
    return made


@memoize("dist.window_interiors")
def _inner(windows: WindowSet, rank: int) -> list[Box]:
    core = windows.halo.core(rank)
    return [
        tuple([
            (min(max(own.start - at.start, 0), at.stop - at.start),
             min(max(own.stop - at.start, 0), at.stop - at.start))
            for own, at in zip(core, index, strict=True)
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
        for width, more in zip(widths, found, strict=True):
            width[:] = [max(a, b) for a, b in zip(width, more, strict=True)]
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
        wanted, own = window.received_span(rank), _owned_spans(base, rank)
        if any(high == low for low, high in wanted):
            continue
        if any(high == low for low, high in own):
            return None
        for width, (low, high), (first, end) in zip(widths, wanted, own, strict=True):
            if low >= end or high <= first:
                return None
            width[:] = [max(width[0], first - low), max(width[1], high - end)]
    return tuple([(a, b) for a, b in widths])


def _owned_spans(base: Partition, rank: int) -> Sequence[Span]:
    return [
        (at.start, at.stop) for at in base.local_index(rank) if isinstance(at, slice)
    ]
