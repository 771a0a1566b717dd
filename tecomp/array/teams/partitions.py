"""Partitions of arrays of a team, as rules of operations ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from tecomp.dist.partition.mesh import Mesh
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Placement, Replicate, Shard
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.types import PTensorType, Shape, numpy_dtype


class Cut(NamedTuple):
    """An axis of an array in consecutive pieces, one for each process along an axis of a mesh.

    Attributes:
        axis: of the array.
        mesh_axis: of the mesh.
        ends: the first index of each piece, and the end of the last.
    """

    axis: int
    mesh_axis: int
    ends: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many indices each piece has."""
        return tuple([b - a for a, b in zip(self.ends, self.ends[1:], strict=False)])


def blocks(extent: int, count: int) -> tuple[int, ...]:
    """The ends of blocks of an axis, as `Shard(axis)` cuts it."""
    block = -(-extent // count)
    return tuple([min(k * block, extent) for k in range(count + 1)])


@lru_cache(maxsize=4096)
def partition(shape: Shape, dtype: str, mesh: Mesh, placements: tuple[Placement, ...]) -> Partition:
    """A partition as equal ones are: with sizes only where they are not those of blocks."""
    placed = tuple([_shortest(p, shape, mesh.shape[k]) for k, p in enumerate(placements)])
    return Partition(shape, numpy_dtype(dtype), mesh, placed)


def _shortest(placed: Placement, shape: Shape, count: int) -> Placement:
    if not isinstance(placed, Shard) or placed.sizes is None:
        return placed
    ends = (0, *accumulate(placed.sizes))
    return Shard(placed.axis) if ends == blocks(shape[placed.axis], count) else placed


def row_of(team: int) -> Mesh:
    """The processes of a team in a row."""
    return Mesh((team_of(team).size,))


def usual(type: PTensorType) -> Partition:
    """The partition of an array where nothing else is said: its first axis in blocks."""
    assert type.team is not None
    placed: Placement = Shard(0) if type.shape else Replicate()
    return partition(type.shape, type.dtype, row_of(type.team), (placed,))


def everywhere(type: PTensorType, mesh: Mesh) -> Partition:
    """All elements on all processes."""
    return partition(type.shape, type.dtype, mesh, (Replicate(),) * mesh.ndim)


@lru_cache(maxsize=4096)
def cuts_of(given: Partition) -> tuple[Cut, ...] | None:
    """How axes are cut, each once and into consecutive pieces; None if it is another partition."""
    made: list[Cut] = []
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
        made.append(Cut(placed.axis, k, ends))
    return tuple(made)


def of_cuts(type: PTensorType, mesh: Mesh, cuts: Sequence[Cut]) -> Partition:
    """The partition of an array by cuts of its axes."""
    placed: list[Placement] = [Replicate()] * mesh.ndim
    for cut in cuts:
        placed[cut.mesh_axis] = Shard(cut.axis, sizes=cut.sizes)
    return partition(type.shape, type.dtype, mesh, tuple(placed))


def is_same(one: Partition, other: Partition) -> bool:
    """Whether processes have the same places by both."""
    return (one.shape, one.mesh.shape, one.placements, one.windows) == (
        other.shape, other.mesh.shape, other.placements, other.windows)
