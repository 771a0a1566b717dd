"""Controller and worker loops, and `tecomp run --controller`."""

from __future__ import annotations

import atexit
import json
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path
from runpy import run_module, run_path
from typing import Any, TypeVar
from weakref import ref

from tecomp.array.graph.node import Shared
from tecomp.array.single_controller.protocol import (
    FUNCTIONS,
    Call,
    End,
    Failed,
    Handle,
    Message,
    coded,
    decoded,
    made_by,
    packed,
    send_by,
    unpacked,
)
from tecomp.dist.runtime.call_tracking import alone
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.team import world
from tecomp.fork_gate import WorkLock

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
        self._lock = WorkLock()
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


_BUSY = 0.01
"""Seconds in which the next message is waited for without a pause."""

_PAUSE = 0.0005
_LONGEST = 0.01

_GRACE = 2
"""Seconds in which the process with the script fails too, if it does."""


def work(comm: Any) -> None:
    """Do what the first process of a communicator sends, to its end.

    Raises:
        Exception: what a call raises here, and not on the process with the script.
    """
    arrays: dict[Handle, Shared] = {}
    while True:
        message = _received(comm)
        if isinstance(message, End):
            return
        assert isinstance(message, Call), "what failed is told behind the call"
        try:
            _do(message, arrays)
        except Exception:
            answer = _received(comm, _GRACE)
            if answer != Failed(message.number):
                raise


def _do(call: Call, arrays: dict[Handle, Shared]) -> None:
    for handle in call.free:
        del arrays[handle]
    result = FUNCTIONS[call.name](*decoded(call.arguments, arrays.__getitem__))
    for k, node in enumerate(made_by(result)):
        arrays[call.number, k] = node


def _received(comm: Any, most: float | None = None) -> Message | None:
    """The next message; None if none comes in so many seconds."""
    status = mpi().Status()
    begin = time.monotonic()
    pause = _PAUSE
    while not comm.Iprobe(0, status=status):
        waited = time.monotonic() - begin
        if most is not None and waited > most:
            return None
        if waited > _BUSY:
            time.sleep(pause)
            pause = min(pause * 1.2, _LONGEST)
    data = bytearray(status.Get_count(mpi().BYTE))
    comm.Recv([data, mpi().BYTE], 0)
    return unpacked(data)


# Known by its name, as an entry point has it: what arrays of teams do is above messages about it.
_ARRAYS = EntryPoint("arrays", "tecomp.array.distributed.creation", "tecomp.controlled")


def main(words: list[str]) -> None:
    """Run a script, and what it asks for on all processes.

    Args:
        words: the script and its arguments; `-m` before the name of a module.
    """
    team = world()
    comm = mpi().COMM_WORLD.Dup()
    _ARRAYS.load()
    if team.rank:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one with the script says when all end
        work(comm)
        return
    controller = Controller(comm)
    atexit.register(controller.end)  # behind threads that the script has started
    send_by(controller)
    alone.waits = True
    _run(words)


def _run(words: list[str]) -> None:
    is_module = words[0] == "-m"
    sys.argv[:] = words[is_module:]
    name = sys.argv[0]
    if is_module:
        run_module(name, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(name).resolve().parent)
    if Path(name).suffix == ".ipynb":
        _run_cells(name)
    else:
        run_path(name, run_name="__main__")


def _run_cells(name: str) -> None:
    """The cells of a notebook with code, one after the other."""
    values: dict[str, Any] = {"__name__": "__main__", "__file__": name}
    cells = json.loads(Path(name).read_text("utf-8"))["cells"]
    for k, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {k}", "exec"), values)


if __name__ == "__main__":
    main(sys.argv[1:])
