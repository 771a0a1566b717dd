"""Parts of arrays that lie beside what a process has: one halo for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from tecomp.array.graph.reads import Box, Span
from tecomp.array.teams.partitions import cuts_of
from tecomp.dist.partition.halo import Halo, halo
from tecomp.dist.partition.partition import Partition


class Window(NamedTuple):
    """Consecutive elements of an array, by a partition of their own.

    Attributes:
        starts: the index of the first of them along each axis of the array; below 0 on an axis
            whose ends meet.
        periodic: the axes whose ends meet.
        target: who gets which of the elements.
    """

    starts: tuple[int, ...]
    periodic: tuple[bool, ...]
    target: Partition

    def wanted(self, rank: int) -> tuple[Span, ...]:
        """Which indices of the array a process gets, from first to end along each axis."""
        return tuple([
            (at.start + start, at.stop + start) if at.stop > at.start else (0, 0)
            for start, at in zip(self.starts, self.target.local_index(rank), strict=True)
            if isinstance(at, slice)
        ])


class Windows(NamedTuple):
    """Several windows of one array.

    Attributes:
        halo: around the parts of the array, in which all of them are.
        windows: these.
    """

    halo: Halo
    windows: tuple[Window, ...]

    def indices(self, rank: int) -> list[tuple[slice, ...]]:
        """Where each window is in the part of a process with its halo."""
        return _indices(self, rank)

    def inner(self, rank: int) -> list[Box]:
        """Which elements of each window a process has without its halo."""
        return _inner(self, rank)


@lru_cache(maxsize=4096)
def _indices(windows: Windows, rank: int) -> list[tuple[slice, ...]]:
    core = windows.halo.core(rank)
    own = _owned(windows.halo.partition, rank)
    made = []
    for window in windows.windows:
        made.append(tuple([
            slice(inside.start + low - first, inside.start + high - first)
            if high > low else slice(0, 0)
            for (low, high), (first, _), inside in zip(
                window.wanted(rank), own, core, strict=True)
        ]))
    return made


@lru_cache(maxsize=4096)
def _inner(windows: Windows, rank: int) -> list[Box]:
    core = windows.halo.core(rank)
    return [
        tuple([
            (min(max(own.start - at.start, 0), at.stop - at.start),
             min(max(own.stop - at.start, 0), at.stop - at.start))
            for own, at in zip(core, index, strict=True)
        ])
        for index in windows.indices(rank)
    ]


@lru_cache(maxsize=4096)
def windows_of(base: Partition, windows: tuple[Window, ...]) -> Windows:
    """Windows of an array with this partition, all of which fit."""
    widths = [[0, 0] for _ in base.shape]
    corners = False
    for window in windows:
        found = _widths(base, window)
        assert found is not None
        corners |= sum(map(any, found)) > 1
        for width, more in zip(widths, found, strict=True):
            width[:] = [max(a, b) for a, b in zip(width, more, strict=True)]
    periodic = [any(flags) for flags in zip(*[window.periodic for window in windows], strict=True)]
    return Windows(halo(base, [tuple(width) for width in widths], periodic=periodic,
                        corners=corners), windows)


@lru_cache(maxsize=4096)
def fits(base: Partition, window: Window) -> bool:
    """Whether what a window has more than the parts of the array is less than these."""
    if base.mesh.shape != window.target.mesh.shape:
        return False
    if cuts_of(base) is None or cuts_of(window.target) is None:
        return False
    widths = _widths(base, window)
    if widths is None:
        return False
    largest = [max(high - low for low, high in spans) for spans in zip(
        *[_owned(base, rank) for rank in range(base.mesh.size)], strict=True)]
    grown = [n + sum(width) for n, width in zip(largest, widths, strict=True)]
    return bool(prod(grown) <= 2 * prod(largest))


@lru_cache(maxsize=4096)
def _widths(base: Partition, window: Window) -> tuple[tuple[int, int], ...] | None:
    """How much of it is before and after the parts; None if one without elements wants some."""
    widths = [[0, 0] for _ in base.shape]
    for rank in range(base.mesh.size):
        wanted, own = window.wanted(rank), _owned(base, rank)
        if any(high == low for low, high in wanted):
            continue
        if any(high == low for low, high in own):
            return None
        for width, (low, high), (first, end) in zip(widths, wanted, own, strict=True):
            if low >= end or high <= first:
                return None
            width[:] = [max(width[0], first - low), max(width[1], high - end)]
    return tuple([(a, b) for a, b in widths])


def _owned(base: Partition, rank: int) -> Sequence[Span]:
    return [
        (at.start, at.stop) for at in base.local_index(rank) if isinstance(at, slice)
    ]
