"""Distributed tensors and their operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Placement, Places, Replicate, Shard
from tecomp.dist.partition.redistribution import Halo, Redistribution, redistribution
from tecomp.dist.runtime.collectives import combine_along_mesh
from tecomp.dist.runtime.point_to_point import Transfer, TransferJob
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class DTensor:
    """Distributed tensor.

    Attributes:
        gid: Number of the tensor.
        partition: Partition of the elements over the ranks.
    """

    gid: int
    partition: Partition


_TENSORS: dict[int, DTensor] = {}
_PER_TEAM = 1 << 32
"""Tensor numbers reserved for each team."""


def init_dtensor(
    team: AnyTeam, shape: Sequence[int], dtype: npt.DTypeLike = "float64",
    mesh: Mesh | None = None, placements: Sequence[Placement] | None = None,
) -> int:
    """Create a distributed tensor; no message is sent.

    Args:
        team: Team, or its number. Every rank must make this call.
        shape: Shape of the tensor.
        dtype: Dtype of the elements. Default: float64.
        mesh: Mesh of the ranks. Default: one-dimensional.
        placements: Placement along each mesh axis. Default: the first axis of the tensor is sharded
            along the first mesh axis, and replicated along the others.

    Returns:
        The number of the tensor, equal on all ranks.

    Raises:
        TeamError: If the size of the mesh differs from the size of the team.
        LayoutError: If the placements do not match the mesh or the tensor.

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
    return _register(found, Partition(shape, dtype, mesh, placements))


def fini_dtensor(team: AnyTeam, dtensor_id: int) -> None:
    """Delete a distributed tensor; its number is not reused.

    Args:
        team: Team of the tensor, or its number.
        dtensor_id: Number of the tensor.

    Raises:
        TeamError: If there is no such tensor, or it was deleted before.

    >>> number = init_dtensor(1, (4, 6))
    >>> fini_dtensor(1, number)
    """
    _tensor(team, dtensor_id, "fini_dtensor")
    del _TENSORS[dtensor_id]


def init_view(team: AnyTeam, dtensor_id: int, slice: Sequence[slice]) -> int:
    """Create a view of a tensor; elements stay on their ranks, so shards may be uneven or empty.

    Args:
        team: Team of the tensor, or its number.
        dtensor_id: Number of the tensor.
        slice: One slice for each axis, as in NumPy.

    Returns:
        The number of the view, which is valid until the view itself is deleted.

    Raises:
        TeamError: If there is no such tensor.
        LayoutError: If `slice` is not one slice for each axis.

    >>> number = init_dtensor(1, (4, 6))
    >>> local_shape(1, init_view(1, number, [slice(1, 3), slice(None, None, 2)]))
    (2, 3)
    """
    base = _tensor(team, dtensor_id, "init_view")
    return _register(team_of(team), base.partition.view(slice))


def partition_of(team: AnyTeam, dtensor_id: int) -> Partition:
    """Return the partition of a tensor.

    Args:
        team: Team of the tensor, or its number.
        dtensor_id: Number of the tensor.

    Raises:
        TeamError: If there is no such tensor.

    >>> print(partition_of(1, init_dtensor(1, (4, 6))))
    float64[4, 6] as [Shard(0)] on Mesh(m0=1)
    """
    return _tensor(team, dtensor_id, "partition_of").partition


def local_shape(team: AnyTeam, dtensor_id: int) -> Shape:
    """Return the shape of this rank's local array.

    Args:
        team: Team of the tensor, or its number.
        dtensor_id: Number of the tensor.

    Raises:
        TeamError: If there is no such tensor.

    >>> local_shape(1, init_dtensor(1, (4, 6)))
    (4, 6)
    """
    return _tensor(team, dtensor_id, "local_shape").partition.local_shape(team_of(team).rank)


def local_slice(team: AnyTeam, dtensor_id: int) -> tuple[Places, ...]:
    """Return the global indices of this rank's local array: for each axis a slice or an array.

    Args:
        team: Team of the tensor, or its number.
        dtensor_id: Number of the tensor.

    Raises:
        TeamError: If there is no such tensor.

    >>> local_slice(1, init_dtensor(1, (4, 6)))
    (slice(0, 4, 1), slice(0, 6, 1))
    """
    return _tensor(team, dtensor_id, "local_slice").partition.local_slice(team_of(team).rank)


def copy(
    team: AnyTeam, from_id: int, to_id: int, from_ltensor: Array, to_ltensor: Array
) -> None:
    """Copy the elements of one tensor to another tensor with any partition.

    Args:
        team: Team of the tensors, or its number. Collective call: every rank must make it.
        from_id: Number of the source tensor. Partial values are combined.
        to_id: Number of the target tensor, with the same shape and dtype.
        from_ltensor: Local array of the source tensor.
        to_ltensor: Local array of the target tensor, which is written.

    Raises:
        TeamError: If there is no such tensor, or a local array has another shape or dtype.
        LayoutError: If the source cannot be redistributed to the target partition.

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
    """Start to copy the elements of one tensor to another, without waiting for completion.

    Until `wait()` of the result returns, the arrays must not be written, and received elements must
    not be read.

    Args:
        team: Team of the tensors, or its number. Collective call: every rank must make it.
        from_id: Number of the source tensor. Partial values are combined.
        to_id: Number of the target tensor, with the same shape and dtype.
        from_ltensor: Local array of the source tensor.
        to_ltensor: Local array of the target tensor, which is written.

    Returns:
        The pending transfer.

    Raises:
        TeamError: If there is no such tensor, or a local array has another shape or dtype.
        LayoutError: If the source cannot be redistributed to the target partition.

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
    """Start the messages of a redistribution; `wait()` of the result completes them.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        moves: Redistribution to perform.
        source: Local array of the source partition, with any strides.
        target: Local array of the target partition, which is written. It must not overlap `source`
            if partial values are combined; otherwise an overlapping `source` is copied first.

    Returns:
        The pending transfer.

    Raises:
        TeamError: If the ranks make different calls.

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
            source = combine_along_mesh(
                found, before.mesh, moves.reduced, source, op, target if is_all else None
            )
        if source is target:
            return Transfer(found, name, [])
    elif np.may_share_memory(source, target):
        source = source.copy()
    return Transfer(found, name, [TransferJob(moves, source, target, moves.op)])


def finalize_reduce(team: AnyTeam, dtensor_id: int, ltensor: Array) -> None:
    """Combine the partial values of a tensor in place, so that all ranks have the result.

    Args:
        team: Team of the tensor, or its number. Collective call: every rank must make it.
        dtensor_id: Number of the tensor.
        ltensor: Local array of the tensor, which is written.

    Raises:
        TeamError: If there is no such tensor, it has no partial values, or `ltensor` has another
            shape or dtype.

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
            "finalize_reduce: tensor {dtensor_id}, {partition}, has no Partial placement; pass "
            "Partial(op) to init_dtensor",
            dtensor_id=dtensor_id, partition=partition,
        )
    check_local(found, partition, ltensor, "finalize_reduce: ltensor")
    axes = partition.mesh_axes(Partial)
    with found.call(f"finalize_reduce {partition}"):
        ltensor[...] = combine_along_mesh(found, partition.mesh, axes, ltensor, op)
    placements = [
        Replicate() if isinstance(entry, Partial) else entry for entry in partition.placements
    ]
    combined = Partition(
        partition.shape, partition.dtype, partition.mesh, placements, partition.windows
    )
    _TENSORS[dtensor_id] = DTensor(dtensor_id, combined)


def start_halo(team: AnyTeam, halo: Halo, padded: Array) -> Transfer:
    """Start to fetch the halo of this rank's part; `wait()` of the result completes the transfer.

    Until then the array must not be written; the part itself may be read.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        halo: Halo to fetch.
        padded: Local array with halo, of shape `halo.shape(rank)`, with the part at
            `halo.core(rank)`.

    Returns:
        The pending transfer.

    Raises:
        TeamError: If `padded` has another shape or dtype.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((4,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> padded = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    >>> sent = start_halo(1, ring, padded)
    >>> sent.wait()
    >>> padded
    array([4., 1., 2., 3., 4., 1.])
    """
    return _start_halos(team, [(halo, padded)], "start_halo")


def start_halos(team: AnyTeam, requests: Sequence[tuple[Halo, Array]]) -> Transfer:
    """Start to fetch the halos of several arrays, with one message per neighbour for all of them.

    Until `wait()` of the result returns, the arrays must not be written; their parts may be read.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        requests: For each array its halo, and the local array with halo, of shape
            `halo.shape(rank)`, with the part at `halo.core(rank)`.

    Returns:
        The pending transfer.

    Raises:
        TeamError: If an array has another shape or dtype.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((2,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> first, second = np.array([0.0, 1.0, 2.0, 0.0]), np.array([0.0, 3.0, 4.0, 0.0])
    >>> start_halos(1, [(ring, first), (ring, second)]).wait()
    >>> first, second
    (array([2., 1., 2., 1.]), array([4., 3., 4., 3.]))
    """
    return _start_halos(team, requests, "start_halos")


def _start_halos(
    team: AnyTeam, requests: Sequence[tuple[Halo, Array]], where: str
) -> Transfer:
    found = team_of(team)
    jobs = []
    for halo, padded in requests:
        found.check_mesh(halo.partition.mesh)
        _check_shape(halo.shape(found.rank), halo.partition, padded, f"{where}: padded")
        jobs.append(TransferJob(halo, padded[halo.core(found.rank)], padded))
    return Transfer(found, " and ".join(str(halo) for halo, _ in requests), jobs)


def update_halo(team: AnyTeam, halo: Halo, padded: Array) -> None:
    """Fetch the halo of this rank's part and wait for its completion.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        halo: Halo to fetch.
        padded: Local array with halo, of shape `halo.shape(rank)`, with the part at
            `halo.core(rank)`; the halo is written.

    Raises:
        TeamError: If `padded` has another shape or dtype.

    >>> from tecomp.dist import halo
    >>> ring = halo(Partition((4,), "float64", Mesh((1,)), [Shard(0)]), [1], periodic=True)
    >>> padded = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    >>> update_halo(1, ring, padded)
    >>> padded
    array([4., 1., 2., 3., 4., 1.])
    """
    _start_halos(team, [(halo, padded)], "update_halo").wait()


def _register(team: Team, partition: Partition) -> int:
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
            "{where}: tensor {dtensor_id} was already released by fini_dtensor; call fini_dtensor "
            "once, after the last use",
            where=where, dtensor_id=dtensor_id,
        )
    if dtensor_id in _TENSORS:
        raise TeamError(
            "{where}: tensor {dtensor_id} belongs to team {number}, not to team {id}; pass the "
            "team that it was created with",
            where=where, dtensor_id=dtensor_id, number=number, id=team.id,
        )
    raise TeamError(
        "{where}: unknown tensor {dtensor_id}; pass a number that init_dtensor or init_view "
        "returned",
        where=where, dtensor_id=dtensor_id,
    )


def check_local(team: Team, partition: Partition, array: Array, where: str) -> None:
    """Raise if `array` is not a local array of a partition.

    Raises:
        TeamError: If `array` has another shape or dtype.
    """
    _check_shape(partition.local_shape(team.rank), partition, array, where)


def _check_shape(shape: Shape, partition: Partition, array: Array, where: str) -> None:
    if isinstance(array, np.ndarray) and (array.shape, array.dtype) == (shape, partition.dtype):
        return
    actual = repr(array)
    if isinstance(array, np.ndarray):
        actual = f"{array.dtype.name}{list(array.shape)}"
    raise TeamError(
        "{where} is {value}; pass the local NumPy array of this rank, {dtype}{shape}",
        where=where, value=actual, dtype=partition.dtype.name, shape=list(shape),
    )


def redistribute(team: AnyTeam, source: Partition, target: Partition, local: Array) -> Array:
    """Return this rank's local array after redistribution to another partition.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        source: Current partition. Partial values are combined.
        target: Requested partition.
        local: Local array of `source`, of shape `source.local_shape(rank)`.

    Returns:
        A new array of shape `target.local_shape(rank)`.

    Raises:
        TeamError: If `local` has another shape or dtype.
        LayoutError: If `source` cannot be redistributed to `target`.

    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> dealt = Partition((4,), "float64", Mesh((1,)), [Shard(0, block=1)])
    >>> redistribute(1, rows, dealt, np.arange(4.0))
    array([0., 1., 2., 3.])
    """
    found = team_of(team)
    found.check_mesh(source.mesh)
    check_local(found, source, local, "redistribute: local")
    result = np.empty(target.local_shape(found.rank), target.dtype)
    start_redistribution(found, redistribution(source, target), local, result).wait()
    return result


def gather(team: AnyTeam, partition: Partition, local: Array) -> Array:
    """Return the full array on all ranks.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        partition: Partition of the array. Partial values are combined.
        local: Local array of this rank, of shape `partition.local_shape(rank)`.

    Returns:
        A new array of shape `partition.shape`.

    Raises:
        TeamError: If `local` has another shape or dtype.

    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> gather(1, rows, np.arange(4.0))
    array([0., 1., 2., 3.])
    """
    mesh = partition.mesh
    replicated = Partition(partition.shape, partition.dtype, mesh, [Replicate()] * mesh.ndim)
    return redistribute(team, partition, replicated, local)


def partition_of_parts(team: AnyTeam, local: Array, axis: int = 0) -> Partition:
    """Return the partition of the array that concatenates the local arrays along an axis.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        local: Local array of this rank, with any size along the axis.
        axis: Axis of concatenation. Default: 0.

    Raises:
        TeamError: If the local arrays differ in dtype or in size along another axis; raised on all
            ranks.

    >>> print(partition_of_parts(1, np.zeros((4, 6)), axis=1))
    float64[4, 6] as [Shard(1, sizes=(6,))] on Mesh(m0=1)
    """
    found = team_of(team)
    with found.call(f"partition_of_parts along {axis}"):
        reported = found.comm.allgather((local.dtype.name, local.shape))
    name, first = reported[0]
    for rank, (other, shape) in enumerate(reported):
        if not 0 <= axis < len(first) or (other, _rest(shape, axis)) != (name, _rest(first, axis)):
            raise TeamError(
                "partition_of_parts: {name}{first} on rank 0 and {other}{shape} on rank {rank} "
                "are not parts of one array along axis {axis}; pass arrays of one dtype that have "
                "equal sizes along all other axes",
                name=name, first=list(first), other=other, shape=list(shape), rank=rank,
                axis=axis,
            )
    sizes = tuple(shape[axis] for _, shape in reported)
    shape = (*first[:axis], sum(sizes), *first[axis + 1 :])
    return Partition(shape, local.dtype, Mesh((found.size,)), [Shard(axis, sizes=sizes)])


def _rest(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])
