"""Messages on their way: packed, sent and received, while the process does something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.runtime.library import mpi
from tecomp.dist.runtime.reductions import COMBINED
from tecomp.dist.runtime.team import Team

Array = np.ndarray[Any, np.dtype[Any]]


class Moves(Protocol):
    """What is sent: a redistribution, or a halo."""

    def received_by(self, rank: int) -> Sequence[Message]:
        """The messages to a process, its own included."""

    def sent_by(self, rank: int) -> Sequence[Message]:
        """The messages from a process, its own included."""


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
        self._team, self._name, self._target, self._op = team, name, target, op
        self._requests: list[Any] = []
        self._received: list[tuple[Message, Array]] = []
        self._kept: list[Array] = []
        team.began(name)
        for message in moves.received_by(team.rank):
            self._receive(message, source)
        for message in moves.sent_by(team.rank):
            if message.target != team.rank:
                self._send(message, source)

    def wait(self) -> None:
        """Go on when all elements have come.

        Raises:
            TeamError: the processes make different calls, and MPI notices.
        """
        with self._team.waiting(self._name):
            self._team.wait_all(self._requests)
        seen: set[int] = set()
        for message, data in self._received:
            self._unpack(message, data, seen)
        self._requests, self._received, self._kept = [], [], []

    def _send(self, message: Message, source: Array) -> None:
        data = _packed(message, source)
        self._kept.append(data)
        self._requests.append(self._team.comm.Isend([_bytes(data), mpi().BYTE], message.target))

    def _receive(self, message: Message, source: Array) -> None:
        if message.source == self._team.rank:
            self._received.append((message, _packed(message, source)))
            return
        data = self._in_place(message)
        is_there = data is not None
        if data is None:
            data = np.empty(message.size, self._target.dtype)
        self._kept.append(data)
        self._requests.append(self._team.comm.Irecv([_bytes(data), mpi().BYTE], message.source))
        if not is_there:
            self._received.append((message, data))

    def _in_place(self, message: Message) -> Array | None:
        """The place where elements go, if that is one piece of memory."""
        if self._op is not None or len(message.boxes) > 1:
            return None
        (box,) = message.boxes
        if not all(isinstance(each, slice) for each in box.received):
            return None
        part: Array = self._target[box.received_index]
        return part if part.flags.c_contiguous else None

    def _unpack(self, message: Message, data: Array, seen: set[int]) -> None:
        start = 0
        for box in message.boxes:
            part = data.reshape(-1)[start : start + box.size].reshape(box.shape)
            self._store(box, part, is_first=id(box) not in seen)
            seen.add(id(box))
            start += box.size

    def _store(self, box: Box, part: Array, *, is_first: bool) -> None:
        """Put elements in their place; operands for one place come in boxes that are one object."""
        if self._op is None or is_first:
            self._target[box.received_index] = part
            return
        before = self._target[box.received_index]
        self._target[box.received_index] = COMBINED[self._op](before, part)


def _packed(message: Message, source: Array) -> Array:
    """The elements of a message one after the other; of one piece of memory they are a view."""
    parts = [source[box.sent_index] for box in message.boxes]
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.concatenate([part.reshape(-1) for part in parts])


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
