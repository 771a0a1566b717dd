"""Calls of functions with values: what the interpreter does where code calls them directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tecomp.ir.language.outside_call import Convention
from tecomp.ir.outside.arrays import passed
from tecomp.ir.outside.callee import ArrayType, Callee, NumberType, function_of


def invoker(callee: Callee) -> Callable[[Sequence[Any]], None]:
    """What calls the function of a callee with arrays, numbers and texts.

    Raises:
        DefinitionError: there is none, or it takes something else.
    """
    function = function_of(callee)
    kinds = callee.arguments
    if callee.convention is Convention.C:
        return lambda values: function(*(
            value.ctypes.data if isinstance(value, np.ndarray) else value for value in values
        ))

    def call(values: Sequence[Any]) -> None:
        function(*map(_given, kinds, values))

    return call


def _given(kind: ArrayType | NumberType | str, value: Any) -> Any:
    if isinstance(kind, ArrayType):
        return passed(value, is_written=kind.is_written)
    if isinstance(kind, str):
        return kind
    return number(value, kind)


def number(value: Any, kind: NumberType) -> bool | int | float:
    """A number as Python functions get it."""
    if kind.dtype.is_bool:
        return bool(value)
    return float(value) if kind.dtype.is_float else int(value)
