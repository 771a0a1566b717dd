"""Messages on their way: packed, sent and received, while the process does something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.runtime.library import mpi
from tecomp.dist.runtime.operations import COMBINED
from tecomp.dist.runtime.team import Team

Array = np.ndarray[Any, np.dtype[Any]]


class Moves(Protocol):
    """What is sent: a redistribution, or a halo."""

    def received_by(self, rank: int) -> Sequence[Message]:
        """The messages to a process, its own included."""

    def sent_by(self, rank: int) -> Sequence[Message]:
        """The messages from a process, its own included."""


class Nothing:
    """Where all is done already."""

    def received_by(self, rank: int) -> Sequence[Message]:
        """None."""
        del rank
        return ()

    sent_by = received_by


class Transfer:
    """Messages between the processes of a team that have been started; `wait` ends them.

    Until then nobody may write into the arrays, nor read what is received.
    """

    def __init__(
        self, team: Team, name: str, moves: Moves, source: Array, target: Array,
        op: str | None = None,
    ) -> None:
        """Send and receive what concerns this process.

        Args:
            team: the processes; all of them have to start it.
            name: what they do, with all that has to be the same on all of them.
            moves: the messages.
            source: its local array.
            target: where elements go.
            op: what combines those of several messages for one place.
        """
        self._team, self._name, self._op = team, name, op
        self._source, self._target = source, target
        self._requests: list[Any] = []
        self._received: list[tuple[Message, Array | None]] = []
        self._packed: list[Array] = []
        team.began(name)
        received = moves.received_by(team.rank)
        for message in received:
            self._receive(message)
        for message in moves.sent_by(team.rank):
            if message.target != team.rank:
                self._send(message)

    def wait(self) -> None:
        """Go on when all elements have come.

        Raises:
            TeamError: the processes make different calls, and MPI notices.
        """
        with self._team.waiting(self._name):
            self._team.wait_all(self._requests)
        seen: set[int] = set()
        for message, data in self._received:
            for box, part in self._parts(message, data):
                self._store(box, part, is_first=id(box) not in seen)
                seen.add(id(box))
        for buffer in self._packed:
            self._team.buffers.give(buffer)
        self._requests, self._received, self._packed = [], [], []

    def _send(self, message: Message) -> None:
        parts = [self._source[box.sent_index] for box in message.boxes]
        data = parts[0]
        if len(parts) > 1 or not data.flags.c_contiguous:
            data = self._buffer(message)
            start = 0
            for box, part in zip(message.boxes, parts, strict=True):
                np.copyto(data[start : start + box.size].reshape(box.shape), part)
                start += box.size
        self._requests.append(self._team.comm.Isend([_bytes(data), mpi().BYTE], message.target))

    def _receive(self, message: Message) -> None:
        if message.source == self._team.rank:
            self._received.append((message, None))
            return
        data = self._in_place(message)
        if data is None:
            data = self._buffer(message)
            self._received.append((message, data))
        self._requests.append(self._team.comm.Irecv([_bytes(data), mpi().BYTE], message.source))

    def _buffer(self, message: Message) -> Array:
        """Memory for the elements of a message, one after the other."""
        buffer = self._team.buffers.take(message.nbytes)
        self._packed.append(buffer)
        return buffer.view(self._target.dtype)

    def _in_place(self, message: Message) -> Array | None:
        """The place where elements go, if that is one piece of memory."""
        if self._op is not None or len(message.boxes) > 1:
            return None
        (box,) = message.boxes
        if not all(isinstance(each, slice) for each in box.received):
            return None
        part: Array = self._target[box.received_index]
        return part if part.flags.c_contiguous else None

    def _parts(self, message: Message, data: Array | None) -> Iterator[tuple[Box, Array]]:
        """The elements of each box: out of what came, or of what was here all the time."""
        start = 0
        for box in message.boxes:
            if data is None:
                yield box, self._source[box.sent_index]
                continue
            yield box, data[start : start + box.size].reshape(box.shape)
            start += box.size

    def _store(self, box: Box, part: Array, *, is_first: bool) -> None:
        """Put elements in their place; operands for one place come in boxes that are one object."""
        if self._op is None or is_first:
            self._target[box.received_index] = part
            return
        before = self._target[box.received_index]
        self._target[box.received_index] = COMBINED[self._op](before, part)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
