"""Messages on their way: packed, sent and received, while the process does something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.mpi import COMBINED
from tecomp.dist.runtime.team import Team

Array = np.ndarray[Any, np.dtype[Any]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Parts: TypeAlias = "list[tuple[Message, Job]]"


class Moves(Protocol):
    """What is sent: a redistribution, or a halo."""

    def received_by(self, rank: int) -> Sequence[Message]:
        """The messages to a process, its own included."""

    def sent_by(self, rank: int) -> Sequence[Message]:
        """The messages from a process, its own included."""


@dataclass(frozen=True)
class Job:
    """Elements of one array that are to be moved.

    Attributes:
        moves: the messages.
        source: the local array of this process.
        target: where elements go.
        op: what combines those of several messages for one place.
    """

    moves: Moves
    source: Array
    target: Array
    op: str | None = None


class Transfer:
    """Messages between the processes of a team that have been started; `wait` ends them.

    Until then nobody may write into the arrays, nor read what is received. However many arrays
    there are, each process sends each other at most one message.

    Attributes:
        name: what they do, as all processes say it.
        n_sent: messages that this process sends to others.
        n_received: those that it gets from others.

    >>> from tecomp import dist
    >>> rows = dist.Partition((4,), "float64", dist.Mesh((1,)), [dist.Shard(0)])
    >>> moves = dist.redistribution(rows, rows)
    >>> sent = dist.start_redistribution(1, moves, np.arange(4.0), np.empty(4))
    >>> sent.n_sent, sent.n_received
    (0, 0)
    >>> sent.wait()
    """

    def __init__(self, team: Team, name: str, jobs: Sequence[Job]) -> None:
        """Send and receive what concerns this process.

        Args:
            team: the processes; all of them have to start it.
            name: what they do, with all that has to be the same on all of them.
            jobs: what is moved.
        """
        self._team, self.name = team, name
        self.n_sent = self.n_received = 0
        self._requests: list[Any] = []
        self._received: list[tuple[Message, Job, Bytes | None]] = []
        self._packed: list[Bytes] = []
        team.began(name)
        rank = team.rank
        arriving = [(m, job) for job in jobs for m in job.moves.received_by(rank)]
        leaving = [(m, job) for job in jobs for m in job.moves.sent_by(rank) if m.target != rank]
        for peer, parts in _by(arriving, lambda message: message.source):
            self._receive(peer, parts)
            self.n_received += peer != rank
        for peer, parts in _by(leaving, lambda message: message.target):
            self._send(peer, parts)
            self.n_sent += 1

    def wait(self) -> None:
        """Go on when all elements have come.

        Raises:
            TeamError: the processes make different calls, and MPI notices.

        >>> from tecomp import dist
        >>> rows = dist.Partition((4,), "float64", dist.Mesh((1,)), [dist.Shard(0)])
        >>> target = np.empty(4)
        >>> dist.start_redistribution(
        ...     1, dist.redistribution(rows, rows), np.arange(4.0), target).wait()
        >>> target
        array([0., 1., 2., 3.])
        """
        with self._team.waiting(self.name):
            self._team.wait_all(self._requests)
        seen: set[tuple[int, int]] = set()
        for message, job, data in self._received:
            for box, part in _parts(message, job, data):
                place = id(job), id(box)  # arrays of one partition are moved by the same boxes
                _store(job, box, part, is_first=place not in seen)
                seen.add(place)
        for buffer in self._packed:
            self._team.buffers.give(buffer)
        self._requests, self._received, self._packed = [], [], []

    def _send(self, peer: int, parts: Parts) -> None:
        data = _piece(parts)
        if data is None:
            data = self._buffer(parts)
            start = 0
            for message, job in parts:
                start = _pack(message, job, data, start)
        self._requests.append(self._team.comm.Isend([data, mpi().BYTE], peer))

    def _receive(self, peer: int, parts: Parts) -> None:
        if peer == self._team.rank:
            self._received += [(message, job, None) for message, job in parts]
            return
        data = _place(parts)
        if data is None:
            data = self._buffer(parts)
            start = 0
            for message, job in parts:
                self._received.append((message, job, data[start : start + message.nbytes]))
                start += message.nbytes
        self._requests.append(self._team.comm.Irecv([data, mpi().BYTE], peer))

    def _buffer(self, parts: Parts) -> Bytes:
        """Memory for elements, one after the other."""
        buffer = self._team.buffers.take(sum(message.nbytes for message, _ in parts))
        self._packed.append(buffer)
        return buffer


def _by(
    parts: Parts, peer_of: Callable[[Message], int]
) -> Iterator[tuple[int, Parts]]:
    """What goes to one process or comes from it, in the order of ranks and then of jobs."""
    found: dict[int, Parts] = {}
    for message, job in parts:
        found.setdefault(peer_of(message), []).append((message, job))
    return iter(sorted(found.items()))


def _piece(parts: Parts) -> Bytes | None:
    """The bytes that are sent, if they are one piece of memory."""
    message, job = parts[0]
    if len(parts) > 1 or len(message.boxes) > 1:
        return None
    data: Array = job.source[message.boxes[0].sent_index]
    return _bytes(data) if data.flags.c_contiguous else None


def _place(parts: Parts) -> Bytes | None:
    """The place where elements go, if that is one piece of memory."""
    message, job = parts[0]
    if len(parts) > 1 or len(message.boxes) > 1 or job.op is not None:
        return None
    (box,) = message.boxes
    if not all(isinstance(each, slice) for each in box.received):
        return None
    data: Array = job.target[box.received_index]
    return _bytes(data) if data.flags.c_contiguous else None


def _pack(message: Message, job: Job, data: Bytes, start: int) -> int:
    """Put the elements of a message after those before it; where they end."""
    for box in message.boxes:
        end = start + box.size * message.itemsize
        np.copyto(_elements(data[start:end], job, box), job.source[box.sent_index])
        start = end
    return start


def _parts(message: Message, job: Job, data: Bytes | None) -> Iterator[tuple[Box, Array]]:
    """The elements of each box: out of what came, or of what was here all the time."""
    start = 0
    for box in message.boxes:
        if data is None:
            yield box, job.source[box.sent_index]
            continue
        end = start + box.size * message.itemsize
        yield box, _elements(data[start:end], job, box)
        start = end


def _elements(data: Bytes, job: Job, box: Box) -> Array:
    return data.view(job.target.dtype).reshape(box.shape)


def _store(job: Job, box: Box, part: Array, *, is_first: bool) -> None:
    """Put elements in their place; operands for one place come in boxes that are one object."""
    if job.op is None or is_first:
        job.target[box.received_index] = part
        return
    before = job.target[box.received_index]
    job.target[box.received_index] = COMBINED[job.op](before, part)


def _bytes(array: Array) -> Bytes:
    return array.reshape(-1).view(np.uint8)
