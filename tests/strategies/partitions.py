"""Random partitions: meshes of one and two axes, blocks of several sizes, uneven sizes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from tecomp.dist import Mesh, Partial, Partition, Placement, Replicate, Shard
from tecomp.dist.partition import indices_as_array

MESHES = [(1,), (2,), (3,), (4,), (2, 2), (2, 3), (3, 2)]


def drawn_partition(
    dice: Random, *, shape: Sequence[int] | None = None, size: int | None = None,
    partial: bool = False,
) -> Partition:
    """Draw a partition of a small array, over `size` processes if `size` is given."""
    if shape is None:
        shape = [dice.choice([0, 1, 2, 5, 7, 8, 12]) for _ in range(dice.randint(1, 3))]
    meshes = [mesh for mesh in MESHES if size in (None, int(np.prod(mesh)))]
    mesh = Mesh(dice.choice(meshes))
    placements: list[Placement] = []
    for count in mesh.shape:
        kind = dice.random()
        if kind < 0.2 or not shape:
            placements.append(Replicate())
        elif kind < 0.35 and partial:
            placements.append(Partial("sum"))
        else:
            axis = dice.randrange(len(shape))
            placements.append(Shard(axis, block=dice.choice([None, None, None, 1, 2, 3])))
            if dice.random() < 0.2:
                placements[-1] = Shard(axis, sizes=drawn_sizes(dice, shape[axis], count))
    axes = [placed.axis for placed in placements if isinstance(placed, Shard)]
    if len(set(axes)) < len(axes):  # an axis that is sharded twice cannot have explicit sizes
        placements = [
            Shard(placed.axis, placed.block) if isinstance(placed, Shard) else placed
            for placed in placements
        ]
    return Partition(shape, "float64", mesh, placements)


def drawn_sizes(dice: Random, extent: int, count: int) -> tuple[int, ...]:
    """Draw `count` sizes whose sum is `extent`."""
    ends = sorted(dice.randint(0, extent) for _ in range(count - 1))
    return tuple(int(n) for n in np.diff([0, *ends, extent]))


def drawn_slices(dice: Random, shape: Sequence[int]) -> tuple[slice, ...]:
    """Draw one slice per axis with a positive or negative step."""
    results = []
    for extent in shape:
        low, high = sorted(dice.randint(0, extent) for _ in range(2))
        step = dice.choice([1, 1, 2, 3, -1, -2])
        results.append(slice(low, high, step) if step > 0 else slice(high, low, step))
    return tuple(results)


def taken(partition: Partition, rank: int) -> tuple[Any, ...]:
    """Return the NumPy index that selects the shard of a rank from the global array."""
    return np.ix_(*(indices_as_array(places) for places in partition.local_index(rank)))
