"""Distributed tensors and their operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tecomp.dist.partition.halo import Halo
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Placement, Places, Replicate, Shard
from tecomp.dist.partition.redistribution import Redistribution, redistribution
from tecomp.dist.runtime.collectives import combined_along
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.dist.runtime.transfers import Job, Transfer
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class DTensor:
    """A distributed tensor.

    Attributes:
        gid: its number.
        partition: who has which elements.
    """

    gid: int
    partition: Partition


_TENSORS: dict[int, DTensor] = {}
_PER_TEAM = 1 << 32


def init_dtensor(
    team: AnyTeam, shape: Sequence[int], dtype: npt.DTypeLike = "float64",
    mesh: Mesh | None = None, placements: Sequence[Placement] | None = None,
) -> int:
    """A new distributed tensor; no message is sent.

    Args:
        team: the processes; all of them have to make it.
        shape: its extents.
        dtype: type of its elements.
        mesh: how the processes are numbered; in a row if not given.
        placements: what they have along each axis of the mesh. If not given, the first axis is cut
            along the first axis of the mesh.

    Returns:
        Its number, the same on all processes.

    Raises:
        TeamError: the mesh has another number of processes.
        LayoutError: the placements do not fit.

    >>> number = init_dtensor(1, (4, 6), "float32")
    >>> local_shape(1, number)
    (4, 6)
    """
    found = team_of(team)
    mesh = Mesh((found.size,)) if mesh is None else mesh
    found.check_mesh(mesh)
    if placements is None:
        first: Placement = Shard(0) if len(shape) else Replicate()
        placements = [first, *([Replicate()] * (mesh.ndim - 1))]
    return _kept(found, Partition(shape, dtype, mesh, placements))


def fini_dtensor(team: AnyTeam, dtensor_id: int) -> None:
    """End a tensor; its number is not used again.

    Args:
        team: the processes.
        dtensor_id: the tensor.

    Raises:
        TeamError: there is no such tensor, or it was ended before.

    >>> number = init_dtensor(1, (4, 6))
    >>> fini_dtensor(1, number)
    """
    _tensor(team, dtensor_id, "fini_dtensor")
    del _TENSORS[dtensor_id]


def init_view(team: AnyTeam, dtensor_id: int, slice: Sequence[slice]) -> int:
    """A view of a tensor: its elements stay where they are, and parts may be uneven or empty.

    Args:
        team: the processes.
        dtensor_id: the tensor.
        slice: one slice for each axis, as NumPy takes them.

    Returns:
        The number of the view, which lives until it is ended itself.

    Raises:
        TeamError: there is no such tensor.
        LayoutError: they are not one slice for each axis.

    >>> number = init_dtensor(1, (4, 6))
    >>> local_shape(1, init_view(1, number, [slice(1, 3), slice(None, None, 2)]))
    (2, 3)
    """
    base = _tensor(team, dtensor_id, "init_view")
    return _kept(team_of(team), base.partition.view(slice))


def partition_of(team: AnyTeam, dtensor_id: int) -> Partition:
    """Who has which elements of a tensor.

    Args:
        team: the processes.
        dtensor_id: the tensor.

    Raises:
        TeamError: there is no such tensor.

    >>> print(partition_of(1, init_dtensor(1, (4, 6))))
    float64[4, 6] as [Shard(0)] on Mesh(m0=1)
    """
    return _tensor(team, dtensor_id, "partition_of").partition


def local_shape(team: AnyTeam, dtensor_id: int) -> Shape:
    """The extents of what this process has of a tensor.

    Args:
        team: the processes.
        dtensor_id: the tensor.

    Raises:
        TeamError: there is no such tensor.

    >>> local_shape(1, init_dtensor(1, (4, 6)))
    (4, 6)
    """
    return _tensor(team, dtensor_id, "local_shape").partition.local_shape(team_of(team).rank)


def local_slice(team: AnyTeam, dtensor_id: int) -> tuple[Places, ...]:
    """What indices this process has of a tensor: for each axis a slice, or a list.

    Args:
        team: the processes.
        dtensor_id: the tensor.

    Raises:
        TeamError: there is no such tensor.

    >>> local_slice(1, init_dtensor(1, (4, 6)))
    (slice(0, 4, 1), slice(0, 6, 1))
    """
    return _tensor(team, dtensor_id, "local_slice").partition.local_slice(team_of(team).rank)


def copy(
    team: AnyTeam, from_id: int, to_id: int, from_ltensor: Array, to_ltensor: Array
) -> None:
    """The elements of one tensor as those of another, however both are distributed.

    Args:
        team: the processes; all of them have to call it.
        from_id: the tensor with the elements. Partial values are combined on the way.
        to_id: the other one, of the same shape and type.
        from_ltensor: what this process has of the first.
        to_ltensor: what it has of the second; written.

    Raises:
        TeamError: there is no such tensor, or a local array does not fit.
        LayoutError: there is no way from the one to the other.

    >>> rows = init_dtensor(1, (2, 3), "int64", Mesh((1,)), [Shard(0)])
    >>> columns = init_dtensor(1, (2, 3), "int64", Mesh((1,)), [Shard(1)])
    >>> given, made = np.arange(6).reshape(local_shape(1, rows)), np.zeros((2, 3), "int64")
    >>> copy(1, rows, columns, given, made)
    >>> made
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    start_copy(team, from_id, to_id, from_ltensor, to_ltensor).wait()


def start_copy(
    team: AnyTeam, from_id: int, to_id: int, from_ltensor: Array, to_ltensor: Array
) -> Transfer:
    """The elements of one tensor as those of another, as `copy`, but only started.

    Until `wait()` of the result nobody may write into the arrays, nor read what is received.

    Args:
        team: the processes; all of them have to call it.
        from_id: the tensor with the elements. Partial values are combined on the way.
        to_id: the other one, of the same shape and type.
        from_ltensor: what this process has of the first.
        to_ltensor: what it has of the second; written.

    Returns:
        The messages on their way.

    Raises:
        TeamError: there is no such tensor, or a local array does not fit.
        LayoutError: there is no way from the one to the other.

    >>> number = init_dtensor(1, (4,), "float64")
    >>> made = np.zeros(4)
    >>> sent = start_copy(1, number, number, np.arange(4.0), made)
    >>> sent.wait()
    >>> made
    array([0., 1., 2., 3.])
    """
    found = team_of(team)
    source = _tensor(team, from_id, "copy").partition
    target = _tensor(team, to_id, "copy").partition
    check_local(found, source, from_ltensor, "copy: from_ltensor")
    check_local(found, target, to_ltensor, "copy: to_ltensor")
    return start_redistribution(
        found, redistribution(source, target), from_ltensor, to_ltensor
    )


def start_redistribution(
    team: AnyTeam, moves: Redistribution, source: Array, target: Array
) -> Transfer:
    """Send what a redistribution sends; `wait()` of what it returns ends it.

    Args:
        team: the processes; all of them have to call it.
        moves: what is sent.
        source: the local array that is there, of any strides.
        target: the local array that is filled, which has no memory in common with it.

    Returns:
        The messages on their way.

    Raises:
        TeamError: the processes make different calls.

    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> target = np.empty(4)
    >>> start_redistribution(1, redistribution(rows, rows), np.arange(4.0), target).wait()
    >>> target
    array([0., 1., 2., 3.])
    """
    found = team_of(team)
    before = moves.source
    name = str(moves)
    if moves.reduced:
        op, is_all = before.op or "sum", moves.combined == moves.target
        with found.call(f"all_reduce {name}"):
            source = combined_along(
                found, before.mesh, moves.reduced, source, op, target if is_all else None
            )
        if source is target:
            return Transfer(found, name, [])
    elif np.may_share_memory(source, target):
        source = source.copy()
    return Transfer(found, name, [Job(moves, source, target, moves.op)])


def finalize_reduce(team: AnyTeam, dtensor_id: int, ltensor: Array) -> None:
    """Combine the partial values of a tensor, in place: from now on all processes have the result.

    Args:
        team: the processes; all of them have to call it.
        dtensor_id: the tensor.
        ltensor: what this process has of it; written.

    Raises:
        TeamError: there is no such tensor, it has no partial values, or the array does not fit.

    >>> sums = init_dtensor(1, (3,), "float64", Mesh((1,)), [Partial("sum")])
    >>> local = np.arange(3.0)
    >>> finalize_reduce(1, sums, local)
    >>> local, partition_of(1, sums).placements
    (array([0., 1., 2.]), (Replicate(),))
    """
    found = team_of(team)
    tensor = _tensor(team, dtensor_id, "finalize_reduce")
    partition, op = tensor.partition, tensor.partition.op
    if op is None:
        raise TeamError(
            f"finalize_reduce: tensor {dtensor_id}, {partition}, has no partial values; give "
            "Partial(op) to init_dtensor"
        )
    check_local(found, partition, ltensor, "finalize_reduce: ltensor")
    axes = partition.mesh_axes(Partial)
    with found.call(f"finalize_reduce {partition}"):
        ltensor[...] = combined_along(found, partition.mesh, axes, ltensor, op)
    placements = [
        Replicate() if isinstance(placed, Partial) else placed for placed in partition.placements
    ]
    whole = Partition(
        partition.shape, partition.dtype, partition.mesh, placements, partition.windows
    )
    _TENSORS[dtensor_id] = DTensor(dtensor_id, whole)


def start_halo(team: AnyTeam, halo: Halo, padded: Array) -> Transfer:
    """Fetch what is around the part of this process; `wait()` of what it returns ends it.

    Until then nobody may write into the array; its part may be read.

    Args:
        team: the processes; all of them have to call it.
        halo: what is needed.
        padded: the local array with its halo, of `halo.shape(rank)`, with the part in its place.

    Raises:
        TeamError: the array does not fit.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((4,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> padded = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    >>> sent = start_halo(1, ring, padded)
    >>> sent.wait()
    >>> padded
    array([4., 1., 2., 3., 4., 1.])
    """
    return start_halos(team, [(halo, padded)])


def start_halos(team: AnyTeam, wanted: Sequence[tuple[Halo, Array]]) -> Transfer:
    """Fetch what is around the parts of several arrays: each neighbour sends one message for all.

    Until `wait()` of what it returns nobody may write into the arrays; their parts may be read.

    Args:
        team: the processes; all of them have to call it.
        wanted: for each array what is needed, and the local array with its halo, of
            `halo.shape(rank)`, with the part in its place.

    Returns:
        The messages on their way.

    Raises:
        TeamError: an array does not fit.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((2,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> first, second = np.array([0.0, 1.0, 2.0, 0.0]), np.array([0.0, 3.0, 4.0, 0.0])
    >>> start_halos(1, [(ring, first), (ring, second)]).wait()
    >>> first, second
    (array([2., 1., 2., 1.]), array([4., 3., 4., 3.]))
    """
    found = team_of(team)
    jobs = []
    for halo, padded in wanted:
        found.check_mesh(halo.partition.mesh)
        _check_shape(halo.shape(found.rank), halo.partition, padded, "start_halo: padded")
        jobs.append(Job(halo, padded[halo.core(found.rank)], padded))
    return Transfer(found, " and ".join(str(halo) for halo, _ in wanted), jobs)


def update_halo(team: AnyTeam, halo: Halo, padded: Array) -> None:
    """Fetch what is around the part of this process, and go on when it is there.

    Args:
        team: the processes; all of them have to call it.
        halo: what is needed.
        padded: the local array with its halo, of `halo.shape(rank)`, with the part in its place;
            what is around the part is written.

    Raises:
        TeamError: the array does not fit.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((4,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> padded = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    >>> update_halo(1, ring, padded)
    >>> padded
    array([4., 1., 2., 3., 4., 1.])
    """
    start_halo(team, halo, padded).wait()


def _kept(team: Team, partition: Partition) -> int:
    gid = team.id * _PER_TEAM + team.n_tensors
    team.n_tensors += 1
    _TENSORS[gid] = DTensor(gid, partition)
    return gid


def _tensor(team: AnyTeam, dtensor_id: int, where: str) -> DTensor:
    found = team_of(team)
    tensor = _TENSORS.get(dtensor_id)
    if tensor is None or dtensor_id // _PER_TEAM != found.id:
        _refuse(found, dtensor_id, where)
    return tensor


def _refuse(team: Team, dtensor_id: int, where: str) -> NoReturn:
    number, count = divmod(dtensor_id, _PER_TEAM)
    if number == team.id and 0 <= count < team.n_tensors:
        raise TeamError(
            f"{where}: tensor {dtensor_id} was ended by fini_dtensor before; end it once, after "
            "its last use"
        )
    if dtensor_id in _TENSORS:
        raise TeamError(
            f"{where}: tensor {dtensor_id} is of team {number}, not of team {team.id}; give the "
            "team that it was made with"
        )
    raise TeamError(
        f"{where}: there is no tensor {dtensor_id}; give a number that init_dtensor or init_view "
        "returned"
    )


def check_local(team: Team, partition: Partition, array: Array, where: str) -> None:
    """Refuse what is not the local array of a partition.

    Raises:
        TeamError: it is of another shape or type.
    """
    _check_shape(partition.local_shape(team.rank), partition, array, where)


def _check_shape(shape: Shape, partition: Partition, array: Array, where: str) -> None:
    if isinstance(array, np.ndarray) and (array.shape, array.dtype) == (shape, partition.dtype):
        return
    given = repr(array)
    if isinstance(array, np.ndarray):
        given = f"{array.dtype.name}{list(array.shape)}"
    raise TeamError(
        f"{where} is {given}; give the local array of NumPy, "
        f"{partition.dtype.name}{list(shape)} on this rank"
    )


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
