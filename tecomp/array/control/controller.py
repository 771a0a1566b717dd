"""The process that runs a script: it sends each operation to the others, and does its own part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, TypeVar
from weakref import ref

from tecomp.array.control.messages import Call, End, Failed, Handle, Message, coded, packed
from tecomp.array.graph.shared import Shared
from tecomp.dist.runtime.alone import alone
from tecomp.dist.runtime.library import mpi

R = TypeVar("R")

_LEAD = 256
"""Calls after which the others have to have come so far too, so that messages do not pile up."""


class Controller:
    """Sends calls to all other processes.

    Attributes:
        comm: a communicator that nobody else uses, in which this process is the first.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self._lock = threading.RLock()
        self._count = 0
        self._dead: list[Handle] = []
        self._known: dict[Handle, ref[Any]] = {}

    def call(self, name: str, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function that all processes call; what it calls itself is not sent.

        Raises:
            Exception: what it raises, on all processes.
        """
        with self._lock:
            if not alone.waits:
                return function(*arguments)
            given = coded(arguments)
            number, self._count = self._count, self._count + 1
            self._send(Call(number, name, given, self._freed()))
            try:
                with alone:
                    result = function(*arguments)
            except Exception:
                self._send(Failed(number))
                raise
            named: R = self._named(result, (number, count()))
            return named

    def end(self) -> None:
        """The script has ended well, and the others do."""
        self._send(End())

    def _named(self, result: Any, names: tuple[int, count[int]]) -> Any:
        """A result whose arrays of teams have the names that all processes give them."""
        if type(result) is tuple:
            return tuple([self._named(each, names) for each in result])
        if not isinstance(result, Shared):
            return result
        handle = names[0], next(names[1])
        if result.handle is not None:  # an operand, on all processes
            self._dead.append(handle)
            return result
        result.handle = handle
        self._known[handle] = ref(result, partial(self._let_go, handle))
        return result

    def _let_go(self, handle: Handle, _: object) -> None:
        self._dead.append(handle)

    def _freed(self) -> tuple[Handle, ...]:
        found = []
        while self._dead:
            found.append(self._dead.pop())
            self._known.pop(found[-1], None)
        return tuple(found)

    def _send(self, message: Message) -> None:
        data = packed(message)
        is_far = isinstance(message, Call) and message.number % _LEAD == _LEAD - 1
        send = self.comm.Ssend if is_far else self.comm.Send
        for rank in range(1, self.comm.size):
            send([data, mpi().BYTE], rank)
