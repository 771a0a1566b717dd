"""Messages of the single-controller protocol, and the decorator of collective functions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, ShardedNode, materialized_node
from tecomp.dist.runtime.team import Team
from tecomp.errors import TeamError
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
