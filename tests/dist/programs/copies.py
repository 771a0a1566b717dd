"""Copy between random partitions, views and partial values; each process checks its result."""

from __future__ import annotations

from random import Random

import numpy as np

from tecomp import dist
from tests.strategies.partitions import drawn_partition, drawn_slices, taken

team = dist.world()
COUNT = 60


def operand(partition: dist.Partition, array: np.ndarray, dice: Random) -> np.ndarray:
    """Return the local array; partial values are split into summands whose sum is the value."""
    local: np.ndarray = array[taken(partition, team.rank)]
    at = partition.mesh.coordinates(team.rank)
    for axis in partition.mesh_axes(dist.Partial):
        count = partition.mesh.shape[axis]
        local = local - (count - 1) if at[axis] == 0 else np.ones_like(local)
        local = np.asarray(local, array.dtype)
    return local


for seed in range(COUNT):
    dice = Random(seed)
    dtype = dice.choice(["float64", "float32", "int8", "complex128", "bool"])
    source = drawn_partition(dice, size=team.size, partial=dtype in ("float64", "complex128"))
    array = np.asarray(np.arange(int(np.prod(source.shape))) % 90, dtype).reshape(source.shape)
    given = dist.init_dtensor(team, array.shape, dtype, source.mesh, source.placements)
    if dice.random() < 0.3:
        slices = drawn_slices(dice, array.shape)
        base, array = given, array[slices]
        given = dist.init_view(team, base, slices)
        dist.fini_dtensor(team, base)
    shown = dist.partition_of(team, given)
    target = drawn_partition(dice, shape=array.shape, size=team.size)
    wanted = dist.init_dtensor(team, array.shape, dtype, target.mesh, target.placements)

    local = operand(shown, array, dice)
    assert local.shape == dist.local_shape(team, given)
    made = np.zeros(dist.local_shape(team, wanted), dtype)
    dist.copy(team, given, wanted, local, made)
    np.testing.assert_array_equal(made, array[taken(target, team.rank)])

    target = dist.partition_of(team, wanted)
    np.testing.assert_array_equal(dist.redistribute(team, shown, target, local), made)
    np.testing.assert_array_equal(dist.gather(team, shown, local), array)
    if made.ndim and len({target.local_shape(rank)[1:] for rank in range(team.size)}) == 1:
        parts = dist.partition_of_parts(team, made)
        assert parts.local_shape(team.rank) == made.shape
        whole = dist.gather(team, parts, made)
        assert whole.shape[0] == dist.allreduce(team, made.shape[0])
        np.testing.assert_array_equal(whole[parts.local_slice(team.rank)[0]], made)

    if shown.op is not None:
        dist.finalize_reduce(team, given, local)
        np.testing.assert_array_equal(local, array[taken(shown, team.rank)])
        assert dist.partition_of(team, given).op is None
    dist.fini_dtensor(team, wanted)
    dist.fini_dtensor(team, given)

ids = dist.allgather(team, np.array([given]))
assert (ids == given).all()
if team.rank == 0:
    print("copied", COUNT)
