"""Nonblocking transfers: packing, sending and receiving the messages of a redistribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.runtime.mpi import COMBINED, mpi
from tecomp.dist.runtime.team import Team

Array = np.ndarray[Any, np.dtype[Any]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Parts: TypeAlias = "list[tuple[Message, TransferJob]]"


class TransferPlan(Protocol):
    """Interface of a redistribution or a halo as a set of messages."""

    def received_by(self, rank: int) -> Sequence[Message]:
        """Return the messages to a rank, including messages from the rank itself."""

    def sent_by(self, rank: int) -> Sequence[Message]:
        """Return the messages from a rank, including messages to the rank itself."""


@dataclass(frozen=True)
class TransferJob:
    """Elements of one array to be moved.

    Attributes:
        moves: Messages.
        source: Local array of this rank.
        target: Array that receives the elements.
        op: Reduction of elements from several messages at one place; None if there are none.
    """

    moves: TransferPlan
    source: Array
    target: Array
    op: str | None = None


class Transfer:
    """Started messages between the ranks of a team; `wait` completes them.

    Until completion, the arrays must not be written, and received elements must not be read. Each
    rank sends at most one message to each other rank, for any number of arrays.

    Attributes:
        name: Name of the transfer, equal on all ranks.
        n_sent: Number of messages that this rank sends to other ranks.
        n_received: Number of messages that this rank receives from other ranks.

    >>> from tecomp import dist
    >>> rows = dist.Partition((4,), "float64", dist.Mesh((1,)), [dist.Shard(0)])
    >>> moves = dist.redistribution(rows, rows)
    >>> sent = dist.start_redistribution(1, moves, np.arange(4.0), np.empty(4))
    >>> sent.n_sent, sent.n_received
    (0, 0)
    >>> sent.wait()
    """

    def __init__(self, team: Team, name: str, jobs: Sequence[TransferJob]) -> None:
        """Start the sends and receives of this rank.

        Args:
            team: Team. Collective call: every rank must make it.
            name: Name of the transfer, including all arguments that must agree on all ranks.
            jobs: Elements to be moved.
        """
        self._team, self.name = team, name
        self.n_sent = self.n_received = 0
        self._requests: list[Any] = []
        self._received: list[tuple[Message, TransferJob, Bytes | None]] = []
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
        """Wait until all elements are sent, received and stored.

        Raises:
            TeamError: If MPI reports an error, as it may if the ranks make different calls.

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
                key = id(job), id(box)  # arrays of one partition share boxes
                _store(job, box, part, is_first=key not in seen)
                seen.add(key)
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
        """Return a buffer for the packed elements of all messages in `parts`."""
        buffer = self._team.buffers.take(sum(message.nbytes for message, _ in parts))
        self._packed.append(buffer)
        return buffer


def _by(
    parts: Parts, peer_of: Callable[[Message], int]
) -> Iterator[tuple[int, Parts]]:
    """Group messages by peer, in the order of ranks and then of jobs."""
    found: dict[int, Parts] = {}
    for message, job in parts:
        found.setdefault(peer_of(message), []).append((message, job))
    return iter(sorted(found.items()))


def _piece(parts: Parts) -> Bytes | None:
    """Return the bytes to send without a copy if they are contiguous, otherwise None."""
    message, job = parts[0]
    if len(parts) > 1 or len(message.boxes) > 1:
        return None
    data: Array = job.source[message.boxes[0].sent_index]
    return _bytes(data) if data.flags.c_contiguous else None


def _place(parts: Parts) -> Bytes | None:
    """Return the memory to receive into without a copy if it is contiguous, otherwise None."""
    message, job = parts[0]
    if len(parts) > 1 or len(message.boxes) > 1 or job.op is not None:
        return None
    (box,) = message.boxes
    if not all(isinstance(indices, slice) for indices in box.received):
        return None
    data: Array = job.target[box.received_index]
    return _bytes(data) if data.flags.c_contiguous else None


def _pack(message: Message, job: TransferJob, data: Bytes, start: int) -> int:
    """Pack the elements of a message at `start` and return the end of the packed data."""
    for box in message.boxes:
        end = start + box.size * message.itemsize
        np.copyto(_elements(data[start:end], job, box), job.source[box.sent_index])
        start = end
    return start


def _parts(message: Message, job: TransferJob, data: Bytes | None) -> Iterator[tuple[Box, Array]]:
    """Yield the elements of each box, from received data or from the local array if it is None."""
    start = 0
    for box in message.boxes:
        if data is None:
            yield box, job.source[box.sent_index]
            continue
        end = start + box.size * message.itemsize
        yield box, _elements(data[start:end], job, box)
        start = end


def _elements(data: Bytes, job: TransferJob, box: Box) -> Array:
    return data.view(job.target.dtype).reshape(box.shape)


def _store(job: TransferJob, box: Box, part: Array, *, is_first: bool) -> None:
    """Store or combine elements; operands for one place come in boxes that are one object."""
    if job.op is None or is_first:
        job.target[box.received_index] = part
        return
    before = job.target[box.received_index]
    job.target[box.received_index] = COMBINED[job.op](before, part)


def _bytes(array: Array) -> Bytes:
    return array.reshape(-1).view(np.uint8)
