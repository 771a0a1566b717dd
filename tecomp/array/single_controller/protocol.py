"""Messages of the single-controller protocol and the `collective` decorator."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, Shared, leaf
from tecomp.dist.runtime.team import Team
from tecomp.errors import TeamError
from tecomp.ptensor.types import PTensorType

Handle: TypeAlias = "tuple[int, int]"
"""The number of a call, and which of its results."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that all processes call.

    Attributes:
        number: how many calls came before.
        name: of the function.
        arguments: what it is called with, as `coded` has it.
        free: arrays that nobody needs any more.
    """

    number: int
    name: str
    arguments: Any
    free: tuple[Handle, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A call did not end well, for a reason that all processes find.

    Attributes:
        number: of the call.
    """

    number: int


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows."""


Message: TypeAlias = "Call | Failed | End"


@dataclass(frozen=True, slots=True)
class _Known:
    """An array of a team, by its handle."""

    handle: Handle


@dataclass(frozen=True, slots=True)
class _Elements:
    """An array that one process has, or a number."""

    data: Buffer
    type: PTensorType


@dataclass(frozen=True, slots=True)
class _Number:
    """A team."""

    team: int


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse what other processes do not find: they have not run the script."""
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise TeamError(
                f"controller: {value.__qualname__} is of the script, which other processes do not "
                "run; give what a module has that all of them import"
            )
        return NotImplemented


def packed(message: Message) -> bytes:
    """A message as it is sent.

    Raises:
        TeamError: something in it is of the script itself, or cannot be sent at all.
    """
    into = BytesIO()
    try:
        _Pickler(into, protocol=5).dump(message)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TeamError(
            f"controller: what other processes need cannot be sent to them ({error}); give values "
            "that can be pickled"
        ) from error
    return into.getvalue()


def unpacked(data: bytes | bytearray) -> Message:
    """A message that was sent."""
    found: Message = pickle.loads(data)
    return found


def coded(value: Any) -> Any:
    """A value with handles and elements in place of the arrays in it."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([coded(each) for each in value])
    if isinstance(value, Shared):
        assert value.handle is not None, "made by a call that was not sent"
        return _Known(value.handle)
    if isinstance(value, Node):
        return _Elements(data_of(value), value.type)
    return _Number(value.id) if isinstance(value, Team) else value


def decoded(value: Any, array: Callable[[Handle], Shared]) -> Any:
    """The value, with the arrays of this process."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([decoded(each, array) for each in value])
    if isinstance(value, _Known):
        return array(value.handle)
    if isinstance(value, _Elements):
        return leaf(value.data, value.type)
    return value.team if isinstance(value, _Number) else value


def made_by(value: Any) -> list[Shared]:
    """The arrays of teams in a result, in order."""
    if type(value) is tuple:
        return [each for part in value for each in made_by(part)]
    return [value] if isinstance(value, Shared) else []


P = ParamSpec("P")
R = TypeVar("R")

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What processes can be asked for, by name."""


class Sender(Protocol):
    """What has other processes call a function too."""

    def call(self, name: str, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function that all processes call."""


_senders: list[Sender] = []


def send_by(sender: Sender) -> None:
    """From now on this process calls such functions for all."""
    _senders[:] = [sender]


def together(
    function: Callable[P, R], *, others: Callable[..., Any] | None = None
) -> Callable[P, R]:
    """A function that all processes of a team call with the same arguments, and their own parts.

    Args:
        function: the function.
        others: what other processes do, if one runs the script: the same and more.
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
    """Whether this process calls for all others."""
    return bool(_senders)
