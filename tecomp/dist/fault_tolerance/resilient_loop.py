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

from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial
from tecomp.dist.fault_tolerance.buddy_checkpoint import (
    Copies,
    exchanged,
    holders,
    on_fewer,
    rebuilt,
)
from tecomp.dist.fault_tolerance.buddy_checkpoint import agreed, check_survival, is_loss
from tecomp.dist.runtime.mpi import end_all, let_pass
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.dtensor import gather
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]

_GRACE = 5
"""Seconds that a process waits for being ended by another."""

_FORMER: list[Team] = []
"""Teams that have lost processes: messages that they have started may still write into memory."""


class Field:
    """An array of a protected loop: after a loss it has other parts on fewer processes.

    Attributes:
        partition: who has what now.
        local: what this process has; written, or replaced by an array of the same shape.
        whole: all of it, on all processes, when the loop has ended; None if that was not asked for.

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
    """Steps of a loop that go on when processes are lost; made by `protect`.

    Attributes:
        team: the processes that are left.
        losses: how often processes were lost.

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
        self._copies: list[Copies] = []
        self._at = 0
        self._is_open = False

    def field(self, partition: Partition, local: Array, *, gather: bool = False) -> Field:
        """An array that the steps change; to be named before the first one.

        Args:
            partition: who has what.
            local: what this process has, of `partition.local_shape(rank)`; copied.
            gather: whether all processes have all of it in the end. What is gathered after the
                loop is not protected.

        Returns:
            The array; its `local` is what the steps change.

        Raises:
            TeamError: the array does not fit, or has partial values.

        >>> from tecomp.dist import Mesh, Shard
        >>> rows = Partition((4,), "float64", Mesh((1,)), [Shard(0)])
        >>> protect(3, every=2).field(rows, np.zeros(4)).local
        array([0., 0., 0., 0.])
        """
        self.team.check_mesh(partition.mesh)
        shape = partition.local_shape(self.team.rank)
        given = np.shape(local), np.asarray(local).dtype
        if given != (shape, partition.dtype) or partition.mesh_axes(Partial):
            raise TeamError(
                f"protect: an array of {given[1].name}{list(given[0])} for a part of "
                f"{partition.dtype.name}{list(shape)}, placed as {list(partition.placements)}; "
                "give what this process has, and no partial values"
            )
        self._fields.append(Field(partition, np.array(local), gather=gather))
        return self._fields[-1]

    def __iter__(self) -> Iterator[int]:
        """The numbers of the steps; after a loss those since the last copy come again.

        Raises:
            TeamError: the body of the loop is no step.
        """
        while not self._has_ended():
            if not self._has_copies():
                continue
            self._is_open = True
            yield self._at
            if self._is_open:
                raise TeamError(
                    "protect: the body of the loop made no step; put all of it into "
                    "`with loop.step():`"
                )

    @contextmanager
    def step(self) -> Iterator[None]:
        """The body of the loop; if a process is lost in it, arrays become those of the last copy.

        Errors of other causes leave it as they are.

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
        self._at += 1

    def _has_ended(self) -> bool:
        """Whether all steps are done, and all processes have what they shall have in the end."""
        if self._at < self._steps:
            return False
        whole: list[Array] = []
        if not self._together(lambda: whole.extend(map(self._gathered, self._fields))):
            return False
        for field, array in zip(self._fields, whole, strict=True):
            field.whole = array if field.gather else None
        return True

    def _has_copies(self) -> bool:
        """Whether there are copies of this step, if there shall be."""
        is_due = self._at % self._every == 0
        if not is_due or (self._copies and self._copies[-1].step == self._at):
            return True
        made: list[Copies] = []
        if not self._together(lambda: made.append(self._copied(self.team, self._at))):
            return False
        # Those before stay: others may not know yet that all have the new ones.
        self._copies = [*self._copies[-1:], *made]
        return True

    def _together(self, act: Callable[[], None]) -> bool:
        """Do what all processes do, or else recover: the same on all of them."""
        is_well = True
        try:
            act()
        except Exception as error:
            if not is_loss(error, self.team):
                raise
            is_well = False
        if agreed(self.team, is_well=is_well):
            return True
        self._recover()
        return False

    def _copied(self, team: Team, step: int) -> Copies:
        partitions = [field.partition for field in self._fields]
        return exchanged(team, step, partitions, [field.local for field in self._fields])

    def _gathered(self, field: Field) -> Array:
        if not field.gather:
            return field.local
        return gather(self.team, field.partition, field.local)

    def _recover(self) -> None:
        """Go on with those who are left, from the last copies that all of them have."""
        if not self.losses:
            atexit.register(_leave, self)
        self.losses += 1
        try:
            while not self._is_rebuilt():
                pass
        except TeamError as error:
            if self.team.rank:
                time.sleep(_GRACE)  # the first one says it for all, and ends them
            end_all(f"tecomp.TeamError: {error.message}\n")
        except BaseException:
            end_all(traceback.format_exc())

    def _is_rebuilt(self) -> bool:
        """Whether nobody else was lost while everything was rebuilt."""
        former = self.team
        former.revoke()
        _FORMER.append(former)
        self.team = Team(former.comm.Shrink(), former.id)
        try:
            copies = self._last_of_all()
            held = holders(self.team.comm, copies)
            targets = [on_fewer(each, self.team.size) for each in copies.partitions]
            arrays = rebuilt(self.team, copies, held, targets)
            fresh = exchanged(self.team, copies.step, targets, arrays)
        except mpi().Exception:
            agreed(self.team, is_well=False)
            return False
        if not agreed(self.team, is_well=True):
            return False
        for field, target, array in zip(self._fields, targets, arrays, strict=True):
            field.partition, field.local = target, array
        self._at, self._copies = copies.step, [fresh]
        return True

    def _last_of_all(self) -> Copies:
        """The copies of the last step of which all have some."""
        newest = self._copies[-1].step if self._copies else -1
        step = min(self.team.comm.allgather(newest))
        found = [copies for copies in self._copies if copies.step == step]
        if not found:
            raise TeamError(
                "protect: a rank was lost before there were copies of what it had; start again",
                kind="lost-process",
            )
        return found[0]


def protect(steps: int, *, every: int, team: AnyTeam = 1) -> ProtectedLoop:
    """A loop that goes on, with the same result, when processes are lost.

    Every so many steps each process keeps what it has, and so does the one after it. If a process
    is lost, the others share what it had and do the steps since then again. If one and the one
    after it are lost between two copies, all end with an error.

    Args:
        steps: how many there are.
        every: how many of them lie between two copies.
        team: the processes, all of them at first.

    Raises:
        TeamError: a number is not positive.
        MissingLibraryError: this MPI ends all processes with one.

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
            f"protect: {steps} steps with copies every {every}; give 0 or more steps, and 1 or more"
        )
    check_survival()
    return ProtectedLoop(team_of(team), steps, every)


def _leave(loop: ProtectedLoop) -> None:
    """End a process whose MPI has lost others, and might wait for them when it is ended itself."""
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
