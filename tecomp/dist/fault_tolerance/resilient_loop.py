"""Loops that restart from an in-memory checkpoint after a rank failure."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from tecomp.dist.fault_tolerance.buddy_checkpoint import (
    BuddyCheckpoint,
    agree_all_alive,
    check_survival,
    exchange_checkpoints,
    holders,
    is_loss,
    rebuild_lost_shards,
    shrink_partition,
)
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial
from tecomp.dist.runtime.dtensor import gather
from tecomp.dist.runtime.mpi import abort_all, let_pass, mpi
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]

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
