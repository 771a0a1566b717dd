"""Controller and worker loops, and `tecomp run --controller`."""

from __future__ import annotations

import atexit
import json
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from runpy import run_module, run_path
from typing import Any, TypeVar
from weakref import ref

from tecomp.array.graph.node import ShardedNode
from tecomp.array.single_controller.protocol import (
    FUNCTIONS,
    EndOfScript,
    Handle,
    Message,
    RemoteCall,
    RemoteFailure,
    decode_message,
    distributed_arrays_in,
    encode_value,
    pack_message,
    send_by,
    unpack_message,
)
from tecomp.dist.runtime.call_tracking import alone
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.team import world
from tecomp.fork_gate import WorkLock
from tecomp.lazy_imports import load_upward

R = TypeVar("R")

_MAX_CALLS_AHEAD = 256
"""Number of calls after which the controller waits for all workers, to bound message buffers."""


class Controller:
    """Sender of calls to all worker processes.

    Attributes:
        comm: Private communicator in which this process has rank 0.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self._lock = WorkLock()
        self._count = 0
        self._failure: list[Handle] = []
        self._known_ids: dict[Handle, ref[Any]] = {}

    def call(self, name: str, function: Callable[..., R], *arguments: Any) -> R:
        """Run a function on all processes and return its result; nested calls are not sent.

        Raises:
            Exception: If the function raises an error, which then occurs on all processes.
        """
        with self._lock:
            if not alone.is_serving:
                return function(*arguments)
            encoded = encode_value(arguments)
            number, self._count = self._count, self._count + 1
            self._send(RemoteCall(number, name, encoded, self._freed()))
            try:
                with alone:
                    result = function(*arguments)
            except Exception:
                self._send(RemoteFailure(number))
                raise
            named: R = self._named(result, (number, count()))
            return named

    def end(self) -> None:
        """End the workers after the script has ended without an error."""
        self._send(EndOfScript())

    def _named(self, result: Any, names: tuple[int, count[int]]) -> Any:
        """Assign handles to the distributed arrays of a result, equal on all processes."""
        if type(result) is tuple:
            return tuple([self._named(item, names) for item in result])
        if not isinstance(result, ShardedNode):
            return result
        handle = names[0], next(names[1])
        if result.handle is not None:  # an operand, which has a handle already
            self._failure.append(handle)
            return result
        result.handle = handle
        self._known_ids[handle] = ref(result, partial(self._let_go, handle))
        return result

    def _let_go(self, handle: Handle, _: object) -> None:
        self._failure.append(handle)

    def _freed(self) -> tuple[Handle, ...]:
        found = []
        while self._failure:
            found.append(self._failure.pop())
            self._known_ids.pop(found[-1], None)
        return tuple(found)

    def _send(self, message: Message) -> None:
        data = pack_message(message)
        is_sync = isinstance(message,
            RemoteCall) and message.number % _MAX_CALLS_AHEAD == _MAX_CALLS_AHEAD - 1
        send = self.comm.Ssend if is_sync else self.comm.Send
        for rank in range(1, self.comm.size):
            send([data, mpi().BYTE], rank)


_POLL_SECONDS = 0.01
"""Seconds of polling for the next message without a pause."""

_MIN_PAUSE_SECONDS = 0.0005
_MAX_PAUSE_SECONDS = 0.01

_GRACE_SECONDS = 2
"""Seconds to wait for the controller to report the same failure."""


def work(comm: Any) -> None:
    """Execute the calls of rank 0 of a communicator until it ends.

    Raises:
        Exception: If a call fails on this process but not on the controller.
    """
    arrays: dict[Handle, ShardedNode] = {}
    while True:
        message = _receive(comm)
        if isinstance(message, EndOfScript):
            return
        assert isinstance(message, RemoteCall), "a failure is reported after the call"
        try:
            _do(message, arrays)
        except Exception:
            answer = _receive(comm, _GRACE_SECONDS)
            if answer != RemoteFailure(message.number):
                raise


def _do(call: RemoteCall, arrays: dict[Handle, ShardedNode]) -> None:
    for handle in call.free:
        del arrays[handle]
    result = FUNCTIONS[call.name](*decode_message(call.arguments, arrays.__getitem__))
    for k, node in enumerate(distributed_arrays_in(result)):
        arrays[call.number, k] = node


def _receive(comm: Any, timeout: float | None = None) -> Message | None:
    """Return the next message, or None if none arrives within `timeout` seconds."""
    status = mpi().Status()
    begin = time.monotonic()
    pause = _MIN_PAUSE_SECONDS
    while not comm.Iprobe(0, status=status):
        waited = time.monotonic() - begin
        if timeout is not None and waited > timeout:
            return None
        if waited > _POLL_SECONDS:
            time.sleep(pause)
            pause = min(pause * 1.2, _MAX_PAUSE_SECONDS)
    data = bytearray(status.Get_count(mpi().BYTE))
    comm.Recv([data, mpi().BYTE], 0)
    return unpack_message(data)


def main(argv: list[str]) -> None:
    """Run a script on this process, with its collective operations on all processes.

    Args:
        argv: Script and its arguments, with `-m` before a module name.
    """
    team = world()
    comm = mpi().COMM_WORLD.Dup()
    load_upward("array.controlled")
    if team.rank:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller ends all processes
        work(comm)
        return
    controller = Controller(comm)
    atexit.register(controller.end)  # runs after the threads of the script have ended
    send_by(controller)
    alone.is_serving = True
    _run(argv)


def _run(argv: list[str]) -> None:
    is_module = argv[0] == "-m"
    sys.argv[:] = argv[is_module:]
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
    """Run the code cells of a notebook in order."""
    values: dict[str, Any] = {"__name__": "__main__", "__file__": name}
    cells = json.loads(Path(name).read_text("utf-8"))["cells"]
    for k, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {k}", "exec"), values)


if __name__ == "__main__":
    main(sys.argv[1:])
