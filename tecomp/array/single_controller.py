"""Single-controller execution: one process runs the script and sends operations to the others."""

from __future__ import annotations

import atexit
import json
import pickle
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from io import BytesIO
from itertools import count
from pathlib import Path
from runpy import run_module, run_path
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import ref

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, ShardedNode, materialized_node
from tecomp.dist.runtime.call_tracking import alone
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.team import Team, world
from tecomp.errors import TeamError
from tecomp.fork_gate import WorkLock
from tecomp.lazy_imports import load_upward
from tecomp.ptensor.types import PTensorType

Handle: TypeAlias = "tuple[int, int]"
"""Number of a call, and index of the result."""


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """Call of a function on all processes.

    Attributes:
        number: Number of previous calls.
        name: Name of the function.
        arguments: Arguments, encoded by `encode_value`.
        free: Handles of arrays that are no longer needed.
    """

    number: int
    name: str
    arguments: Any
    free: tuple[Handle, ...]


@dataclass(frozen=True, slots=True)
class RemoteFailure:
    """Failure of a call for a reason that all processes detect.

    Attributes:
        number: Number of the call.
    """

    number: int


@dataclass(frozen=True, slots=True)
class EndOfScript:
    """End of the message stream."""


Message: TypeAlias = "RemoteCall | RemoteFailure | EndOfScript"


@dataclass(frozen=True, slots=True)
class _ArrayHandle:
    """Distributed array, referenced by its handle."""

    handle: Handle


@dataclass(frozen=True, slots=True)
class _Elements:
    """Array of one process, or a number, sent with its elements."""

    data: Buffer
    type: PTensorType


@dataclass(frozen=True, slots=True)
class _Number:
    """Team, referenced by its number."""

    team: int


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Reject objects that workers cannot import, because they have not run the script."""
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise TeamError(
                "controller: {qualname} is defined in the script, which workers cannot import; "
                "define it in a module that all workers can import",
                qualname=value.__qualname__,
            )
        return NotImplemented


def pack_message(message: Message) -> bytes:
    """Serialize a message.

    Raises:
        TeamError: If the message contains an object of the script or cannot be pickled.
    """
    buffer = BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(message)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TeamError(
            "controller: the message for the workers cannot be pickled ({reason}); pass values "
            "that can be pickled",
            reason=error,
        ) from error
    return buffer.getvalue()


def unpack_message(data: bytes | bytearray) -> Message:
    """Deserialize a message."""
    found: Message = pickle.loads(data)
    return found


def encode_value(value: Any) -> Any:
    """Replace arrays in a value by handles and elements."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([encode_value(item) for item in value])
    if isinstance(value, ShardedNode):
        assert value.handle is not None, "made by a call that was not sent"
        return _ArrayHandle(value.handle)
    if isinstance(value, Node):
        return _Elements(data_of(value), value.type)
    return _Number(value.id) if isinstance(value, Team) else value


def decode_message(value: Any, array: Callable[[Handle], ShardedNode]) -> Any:
    """Replace handles and elements in a value by the arrays of this process."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([decode_message(item, array) for item in value])
    if isinstance(value, _ArrayHandle):
        return array(value.handle)
    if isinstance(value, _Elements):
        return materialized_node(value.data, value.type)
    return value.team if isinstance(value, _Number) else value


def distributed_arrays_in(value: Any) -> list[ShardedNode]:
    """Return the distributed arrays in a result, in order."""
    if type(value) is tuple:
        return [array for part in value for array in distributed_arrays_in(part)]
    return [value] if isinstance(value, ShardedNode) else []


P = ParamSpec("P")
R = TypeVar("R")

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Functions that workers can execute, by name."""


class CallForwarder(Protocol):
    """Object that runs function calls on all processes."""

    def call(self, name: str, function: Callable[..., R], *arguments: Any) -> R:
        """Run a function on all processes and return its result."""


_senders: list[CallForwarder] = []


def send_by(sender: CallForwarder) -> None:
    """Send collective calls of this process to all others from now on."""
    _senders[:] = [sender]


def collective(
    function: Callable[P, R], *, others: Callable[..., Any] | None = None
) -> Callable[P, R]:
    """Decorate a function that all ranks of a team call with equal arguments and their own shards.

    Args:
        function: Function.
        others: Function that workers execute under single-controller execution, if it differs.
    """
    name = function.__name__
    assert name not in FUNCTIONS, name
    FUNCTIONS[name] = others or function

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _senders:
            return function(*args, **kwargs)
        return _senders[0].call(name, function, *args, *kwargs.values())

    return call


def is_sent() -> bool:
    """Return whether this process is the controller."""
    return bool(_senders)


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
    # The script imports this module by its name, which must share its state with what runs here.
    from tecomp.array.single_controller import main as imported_main

    imported_main(sys.argv[1:])
