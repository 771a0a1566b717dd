"""Sums, differences and products as functions, of elements or of whole tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tecomp.compute.arithmetic import Arithmetic, Value, is_whole, value_of


def add(lhs: Value, rhs: Value) -> Any:
    """`lhs + rhs`.

    >>> add(3, 4)
    int32(7)
    """
    return _operated(operator.add, lhs, rhs)


def subtract(lhs: Value, rhs: Value) -> Any:
    """`lhs - rhs`.

    >>> subtract(3, 4)
    int32(-1)
    """
    return _operated(operator.sub, lhs, rhs)


def multiply(lhs: Value, rhs: Value) -> Any:
    """`lhs * rhs`.

    >>> multiply(3, 4)
    int32(12)
    """
    return _operated(operator.mul, lhs, rhs)


def _operated(function: Callable[[Any, Any], Any], lhs: Value, rhs: Value) -> Any:
    tensor: Any = next((each for each in (lhs, rhs) if is_whole(each)), lhs)
    for each in (tensor, lhs, rhs):
        if isinstance(each, Arithmetic):
            return each.operated(function, lhs, rhs)
    return function(value_of(lhs), value_of(rhs))
