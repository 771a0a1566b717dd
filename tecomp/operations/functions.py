"""Functions defined from rows of tables."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def with_name(function: Any, name: str, module: str, docstring: str) -> Any:
    """Give a function a name, a module and a docstring.

    The function gets its own code object, so that tracebacks and profiles show the name and the
    interpreter specializes each function by itself.
    """
    assert isinstance(function, FunctionType)
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, docstring
    return function
