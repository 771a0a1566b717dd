"""Sums, differences, products and quotients as functions, of elements or of whole tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tecomp.compute.arithmetic import Arithmetic, Value, is_whole, value_of
from tecomp.compute.division import div
from tecomp.ir.language.dtype import DType


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


def divide(lhs: Value, rhs: Value) -> Any:
    """`lhs / rhs`; of two integers rounded towards zero, as `te.div`.

    >>> divide(3.0, 4)
    float32(3.0) / float32(4.0)
    """
    if any(map(_is_float, (lhs, rhs))):
        return _operated(operator.truediv, lhs, rhs)
    return div(lhs, rhs)


def _is_float(value: Value) -> bool:
    dtype: DType | None = getattr(value, "dtype", None)
    return isinstance(value, float) if dtype is None else DType(dtype).is_float


def _operated(function: Callable[[Any, Any], Any], lhs: Value, rhs: Value) -> Any:
    tensor: Any = next((each for each in (lhs, rhs) if is_whole(each)), lhs)
    for each in (tensor, lhs, rhs):
        if isinstance(each, Arithmetic):
            return each.operated(function, lhs, rhs)
    return function(value_of(lhs), value_of(rhs))
