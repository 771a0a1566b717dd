"""Teams (process groups) and their message buffers."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from tecomp.dist.partition.placements import Mesh
from tecomp.dist.runtime.call_tracking import CollectiveLog, alone, waits, watch
from tecomp.dist.runtime.mpi import mpi, survives
from tecomp.errors import TeamError
from tecomp.source_locations import DEBUG

Array = np.ndarray[Any, np.dtype[np.uint8]]

_MAX_POOL_BYTES = 1 << 26
"""Maximum number of bytes retained for reuse by later messages, over all buffers."""


class BufferPool:
    """Pool of message buffers."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._free_buffers = 0

    def take(self, nbytes: int) -> Array:
        """Return a buffer of `nbytes` uninitialized bytes."""
        found = self._free.get(nbytes)
        if not found:
            return np.empty(nbytes, np.uint8)
        self._free_buffers -= nbytes
        return found.pop()

    def give(self, buffer: Array) -> None:
        """Return a buffer to the pool; above the limit, the sizes pooled first are dropped."""
        self._free_buffers += buffer.nbytes
        self._free.setdefault(buffer.nbytes, []).append(buffer)
        while self._free_buffers > _MAX_POOL_BYTES:
            oldest = next(iter(self._free))
            self._free_buffers -= oldest * len(self._free.pop(oldest))


COMPARES_ALL = os.environ.get(DEBUG, "0") != "0"
"""Whether ranks compare every recorded operation, and not only calls that send messages."""
_NAMED = 145
"""Characters of a call's name that are kept before the checksum of all calls so far."""

_GRACE_SECONDS = 5
"""Seconds that a rank waits for a failed rank to abort all ranks."""

_TEAMS: dict[int, Team] = {}


class Team:
    """Group of processes (ranks) that make the same calls in the same order.

    Teams are created collectively by `world()` and `split`.

    Attributes:
        id: Number of the team, equal on all ranks.
        comm: MPI communicator, private to the team.
        size: Number of ranks.
        rank: Rank of this process.
        buffers: Pool of message buffers.
        n_tensors: Number of distributed tensors created so far.

    >>> team = world()
    >>> team, team.id, team.size, team.rank
    (Team(1, rank 0 of 1), 1, 1, 0)
    >>> team.comm.size, team.buffers is not None, team.n_tensors >= 0
    (1, True, True)
    """

    def __init__(self, comm: Any, number: int) -> None:
        library = mpi()
        self.id = number
        self.comm = comm
        self.comm.Set_errhandler(library.ERRORS_RETURN)
        self.size: int = self.comm.size
        self.rank: int = self.comm.rank
        self.n_tensors = 0
        self._axis_communicators: dict[tuple[tuple[int, ...], int], Any] = {}
        self._calls: CollectiveLog | None = None
        self.buffers = BufferPool()
        self._started: list[Sequence[Any]] = []
        self._history = 0
        if self.size > 1 and not survives():
            self._calls = CollectiveLog(self.comm, library)
            watch(number, self._calls, self.rank)
        _TEAMS[number] = self

    def __repr__(self) -> str:
        return f"Team({self.id}, rank {self.rank} of {self.size})"

    def split(self, color: int) -> Team:
        """Return the team of all ranks with the same color.

        This is a collective call: every rank must make it.

        Args:
            color: Nonnegative integer.

        >>> team = world()
        >>> team.split(team.rank % 2).size
        1
        """
        with self.call("split"):
            reported = self.comm.allgather((max(_TEAMS), color))
            colors = sorted({value for _, value in reported})
            number = max(highest for highest, _ in reported) + 1 + colors.index(color)
            return Team(self.comm.Split(color, self.rank), number)

    def check_mesh(self, mesh: Mesh) -> None:
        """Raise if the number of ranks of a mesh differs from the team's.

        Raises:
            TeamError: If `mesh.size` differs from the size of the team.
        """
        if mesh.size != self.size:
            raise TeamError(
                "{mesh} has {size} processes, but team {id} has {subject_size}; pass a mesh whose "
                "size is {subject_size}",
                mesh=mesh, size=mesh.size, id=self.id, subject_size=self.size,
            )

    def along(self, mesh: Mesh, axis: int) -> Any:
        """Return the communicator of the ranks that differ from this rank along one mesh axis only.

        The first call for a mesh and an axis is collective.
        """
        key = mesh.shape, axis
        if key not in self._axis_communicators:
            coords = list(mesh.coordinates(self.rank))
            coords[axis] = 0
            self._axis_communicators[key] = self.comm.Split(mesh.rank(coords), self.rank)
        return self._axis_communicators[key]

    def wait_all(self, requests: Sequence[Any]) -> None:
        """Wait for requests; they and their buffers are referenced until completion."""
        self._started.append(requests)
        mpi().Request.Waitall(requests)
        self._started.remove(requests)

    def revoke(self) -> None:
        """Revoke all communicators after a rank failure, so that messages fail on all ranks."""
        for comm in (self.comm, *self._axis_communicators.values()):
            comm.Revoke()

    def call(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager for a collective call, from its first message to its last.

        Args:
            name: Name of the call, including all arguments that must agree on all ranks.

        Raises:
            TeamError: If the ranks make different calls.
        """
        self.began(name)
        return self.waiting(name)

    def began(self, name: str) -> None:
        """Record the start of a call that is completed later inside `waiting`.

        Raises:
            TeamError: If another rank makes a different call instead.
        """
        alone.check(name)
        if COMPARES_ALL and self._calls is not None:
            # The checksum covers earlier calls too, so that a mismatch far back is still detected.
            self._history = crc32(name.encode(), self._history)
            name = f"{name[:_NAMED]} #{self._history:08x}"
        if self._calls is not None and not self._calls.began(name):
            complaint = self._calls.complaint()
            if complaint is None and self._calls.failed:
                time.sleep(_GRACE_SECONDS)  # the failed process aborts this one
            raise TeamError(
                "team {id}: {complaint}",
                id=self.id, complaint=complaint or self._calls.last_call(),
            )

    def waiting(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager for the time in which this rank waits in a call.

        Raises:
            TeamError: If MPI reports an error, as it may if the ranks make different calls.
        """
        return _NO_LOCK if self.size == 1 else _Waiting(self.id, self._calls, name)


_NO_LOCK = nullcontext()


class _Waiting:
    """Context manager of `Team.waiting`; a class, because every call of a program enters it."""

    __slots__ = ("_calls", "_name", "_start", "_team")

    def __init__(self, team: int, calls: CollectiveLog | None, name: str) -> None:
        self._team, self._calls, self._name = team, calls, name
        self._start = 0.0

    def __enter__(self) -> None:
        if self._calls is not None:
            self._calls.record_wait(self._name)
        self._start = perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        waits.note(self._name, self._start)
        if self._calls is None:
            return
        if error is not None and isinstance(error, mpi().Exception):
            if self._calls.failed:
                time.sleep(_GRACE_SECONDS)  # the failed process aborts this one
            raise TeamError(
                "team {team}: {reason}",
                team=self._team, reason=self._calls.complaint() or error,
            ) from error
        self._calls.record_wait("")


AnyTeam: TypeAlias = "Team | int"


def world() -> Team:
    """Return the team of all processes, number 1; the first call initializes MPI.

    Without a launcher, the team has one process.

    Raises:
        MissingLibraryError: If MPI is not available.

    >>> world()
    Team(1, rank 0 of 1)
    """
    return _TEAMS[1] if 1 in _TEAMS else Team(mpi().COMM_WORLD.Dup(), 1)


def team_of(team: AnyTeam) -> Team:
    """Return the team with a given number; number 1 is the team of all processes.

    Raises:
        TeamError: If there is no team with this number.

    >>> team_of(1) is world()
    True
    """
    if isinstance(team, Team):
        return team
    if team == 1:
        return world()
    if team not in _TEAMS:
        known = ", ".join(map(str, sorted(_TEAMS))) or "1"
        raise TeamError(
            "unknown team {team!r}; pass one of {known}, or the team that split() returned",
            team=team, known=known,
        )
    return _TEAMS[team]
