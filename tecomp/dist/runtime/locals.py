"""Local arrays without numbers: moved to another partition, gathered, and taken as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.dist.partition.mesh import Mesh
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Replicate, Shard
from tecomp.dist.partition.redistribution import redistribution
from tecomp.dist.runtime.dtensors import check_local, start_redistribution
from tecomp.dist.runtime.team import AnyTeam, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]


def redistribute(team: AnyTeam, source: Partition, target: Partition, local: Array) -> Array:
    """What this process has of an array by another partition.

    Args:
        team: the processes; all of them have to call it.
        source: who has which elements now. Partial values are combined on the way.
        target: who shall have them.
        local: what this process has now, of `source.local_shape(rank)`.

    Returns:
        A new array, of `target.local_shape(rank)`.

    Raises:
        TeamError: the array does not fit.
        LayoutError: there is no way from the one to the other.

    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> dealt = Partition((4,), "float64", Mesh((1,)), [Shard(0, block=1)])
    >>> redistribute(1, rows, dealt, np.arange(4.0))
    array([0., 1., 2., 3.])
    """
    found = team_of(team)
    found.check_mesh(source.mesh)
    check_local(found, source, local, "redistribute: local")
    made = np.empty(target.local_shape(found.rank), target.dtype)
    start_redistribution(found, redistribution(source, target), local, made).wait()
    return made


def gather(team: AnyTeam, partition: Partition, local: Array) -> Array:
    """The whole array, on all processes.

    Args:
        team: the processes; all of them have to call it.
        partition: who has which elements. Partial values are combined.
        local: what this process has, of `partition.local_shape(rank)`.

    Returns:
        A new array, of `partition.shape`.

    Raises:
        TeamError: the array does not fit.

    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> gather(1, rows, np.arange(4.0))
    array([0., 1., 2., 3.])
    """
    mesh = partition.mesh
    whole = Partition(partition.shape, partition.dtype, mesh, [Replicate()] * mesh.ndim)
    return redistribute(team, partition, whole, local)


def partition_of_parts(team: AnyTeam, local: Array, axis: int = 0) -> Partition:
    """The partition of the array that local arrays make up, one after the other along an axis.

    Args:
        team: the processes; all of them have to call it.
        local: what this process has, of any extent along the axis.
        axis: along which the parts lie.

    Raises:
        TeamError: the local arrays are of several types, or differ along another axis; on all
            processes.

    >>> print(partition_of_parts(1, np.zeros((4, 6)), axis=1))
    float64[4, 6] as [Shard(1, sizes=(6,))] on Mesh(m0=1)
    """
    found = team_of(team)
    with found.call(f"partition_of_parts along {axis}"):
        told = found.comm.allgather((local.dtype.name, local.shape))
    name, first = told[0]
    for rank, (other, shape) in enumerate(told):
        if not 0 <= axis < len(first) or (other, _rest(shape, axis)) != (name, _rest(first, axis)):
            raise TeamError(
                f"partition_of_parts: {name}{list(first)} on rank 0 and {other}{list(shape)} on rank "
                f"{rank} are no parts along axis {axis} of one array; give arrays of one type that "
                "have the other extents in common"
            )
    sizes = tuple(shape[axis] for _, shape in told)
    shape = (*first[:axis], sum(sizes), *first[axis + 1 :])
    return Partition(shape, local.dtype, Mesh((found.size,)), [Shard(axis, sizes=sizes)])


def _rest(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])
