"""Functions that all processes of a team call: each by its script, or those that one sends them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

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
