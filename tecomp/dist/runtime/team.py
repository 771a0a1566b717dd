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
from tecomp.dist.runtime.call_tracking import Calls, alone, waits, watch
from tecomp.dist.runtime.mpi import mpi, survives
from tecomp.errors import TeamError
from tecomp.source_locations import DEBUG

Array = np.ndarray[Any, np.dtype[np.uint8]]

_MOST = 1 << 26
"""Bytes that are kept for later messages, all together."""


class Buffers:
    """Memory that messages have given back."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._kept = 0

    def take(self, nbytes: int) -> Array:
        """Bytes that nobody else has; they hold anything."""
        found = self._free.get(nbytes)
        if not found:
            return np.empty(nbytes, np.uint8)
        self._kept -= nbytes
        return found.pop()

    def give(self, buffer: Array) -> None:
        """Bytes that are not needed any more; the oldest sizes go first where they are many."""
        self._kept += buffer.nbytes
        self._free.setdefault(buffer.nbytes, []).append(buffer)
        while self._kept > _MOST:
            oldest = next(iter(self._free))
            self._kept -= oldest * len(self._free.pop(oldest))


COMPARES_ALL = os.environ.get(DEBUG, "0") != "0"
"""Whether processes compare every operation that they record, and not only calls with messages."""
_NAMED = 145
"""Characters of a call that are kept, before the number that all calls so far give."""

_GRACE = 5
"""Seconds that a process waits for being ended by another that failed."""

_TEAMS: dict[int, Team] = {}


class Team:
    """Processes that make the same calls in the same order.

    Teams are made by `world()` and `split`, on all their processes at once.

    Attributes:
        id: its number, the same on all processes.
        comm: its communicator, which nobody else uses.
        size: how many processes there are.
        rank: which of them this one is.
        buffers: memory for messages.
        n_tensors: how many distributed tensors it has made.

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
        self._along: dict[tuple[tuple[int, ...], int], Any] = {}
        self._calls: Calls | None = None
        self.buffers = Buffers()
        self._started: list[Sequence[Any]] = []
        self._history = 0
        if self.size > 1 and not survives():
            self._calls = Calls(self.comm, library)
            watch(number, self._calls, self.rank)
        _TEAMS[number] = self

    def __repr__(self) -> str:
        return f"Team({self.id}, rank {self.rank} of {self.size})"

    def split(self, color: int) -> Team:
        """The team of those processes that give the same number; all of them have to call it.

        Args:
            color: a number from 0 on.

        >>> team = world()
        >>> team.split(team.rank % 2).size
        1
        """
        with self.call("split"):
            told = self.comm.allgather((max(_TEAMS), color))
            colors = sorted({each for _, each in told})
            number = max(highest for highest, _ in told) + 1 + colors.index(color)
            return Team(self.comm.Split(color, self.rank), number)

    def check_mesh(self, mesh: Mesh) -> None:
        """Refuse a mesh of another number of processes.

        Raises:
            TeamError: it has more or fewer.
        """
        if mesh.size != self.size:
            raise TeamError(
                f"{mesh} has {mesh.size} processes, and team {self.id} has {self.size}; give a mesh "
                f"whose extents multiply to {self.size}"
            )

    def along(self, mesh: Mesh, axis: int) -> Any:
        """The communicator of the processes in line with this one along an axis of a mesh.

        All processes have to call it, the first time for a mesh and an axis.
        """
        key = mesh.shape, axis
        if key not in self._along:
            at = list(mesh.coordinates(self.rank))
            at[axis] = 0
            self._along[key] = self.comm.Split(mesh.rank(at), self.rank)
        return self._along[key]

    def wait_all(self, requests: Sequence[Any]) -> None:
        """Wait for messages; what they write to is kept as long as they may do so."""
        self._started.append(requests)
        mpi().Request.Waitall(requests)
        self._started.remove(requests)

    def revoke(self) -> None:
        """Let every message of the team fail, on all processes, since one of them was lost."""
        for comm in (self.comm, *self._along.values()):
            comm.Revoke()

    def call(self, name: str) -> AbstractContextManager[None]:
        """A call that all processes make, from its first message to its last.

        Args:
            name: what it is, with all that has to be the same on all processes.

        Raises:
            TeamError: the processes make different calls.
        """
        self.began(name)
        return self.waiting(name)

    def began(self, name: str) -> None:
        """Note a call that ends later, in `waiting`.

        Raises:
            TeamError: another process makes another call in its place.
        """
        alone.check(name)
        if COMPARES_ALL and self._calls is not None:
            # A call far back is compared too: names of later ones follow from it.
            self._history = crc32(name.encode(), self._history)
            name = f"{name[:_NAMED]} #{self._history:08x}"
        if self._calls is not None and not self._calls.began(name):
            complaint = self._calls.complaint()
            if complaint is None and self._calls.failed:
                time.sleep(_GRACE)  # the error of another process ends this one
            raise TeamError(f"team {self.id}: {complaint or name}")

    def waiting(self, name: str) -> AbstractContextManager[None]:
        """While this process waits in a call that it made.

        Raises:
            TeamError: MPI noticed that the processes make different calls.
        """
        return _ALONE if self.size == 1 else _Waiting(self.id, self._calls, name)


_ALONE = nullcontext()


class _Waiting:
    """While a process waits in a call; written out, since each call of a program goes through it."""

    __slots__ = ("_calls", "_name", "_start", "_team")

    def __init__(self, team: int, calls: Calls | None, name: str) -> None:
        self._team, self._calls, self._name = team, calls, name
        self._start = 0.0

    def __enter__(self) -> None:
        if self._calls is not None:
            self._calls.waits(self._name)
        self._start = perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        waits.note(self._name, self._start)
        if self._calls is None:
            return
        if error is not None and isinstance(error, mpi().Exception):
            if self._calls.failed:
                time.sleep(_GRACE)  # the error of that process ends this one
            raise TeamError(f"team {self._team}: {self._calls.complaint() or error}") from error
        self._calls.waits("")


AnyTeam: TypeAlias = "Team | int"


def world() -> Team:
    """The team of all processes, number 1; MPI starts when it is first asked for.

    Without a launcher that is one process.

    Raises:
        MissingLibraryError: there is no MPI.

    >>> world()
    Team(1, rank 0 of 1)
    """
    return _TEAMS[1] if 1 in _TEAMS else Team(mpi().COMM_WORLD.Dup(), 1)


def team_of(team: AnyTeam) -> Team:
    """The team with a number; number 1 is that of all processes.

    Raises:
        TeamError: there is no such team.

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
            f"there is no team {team!r}; give one of {known}, or the team that split() gave"
        )
    return _TEAMS[team]
