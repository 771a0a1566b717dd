"""NumPy protocol hooks of expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from threading import local
from types import FrameType
from typing import Any

import numpy as np

from tecomp.errors import TecompError, TypeMismatchError
from tecomp.operations.elementwise import elementwise_in

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "left_shift": operator.lshift, "right_shift": operator.rshift, "equal": operator.eq,
    "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "negative": operator.neg,
    "positive": operator.pos, "invert": operator.invert,
}
_SAME_NAME = ("power", "copysign", "nextafter", "ldexp", "logical_not")
_IN_TE = {
    **{
        row.numpy_name: f"te.{name}"
        for name, row in elementwise_in("te").items() if row.numpy_name
    },
    **{name: f"te.{name}" for name in _SAME_NAME},
    "arctan2": "te.atan2", "absolute": "te.abs", "float_power": "te.power",
    "bitwise_count": "te.popcount", "maximum": "te.max", "minimum": "te.min", "fmax": "te.max",
    "fmin": "te.min", "logical_and": "te.all", "logical_or": "te.any", "square": "x * x",
    "reciprocal": "1 / x",
}


def operator_of_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the Python operator that corresponds to a ufunc call on expressions.

    Raises:
        TypeMismatchError: If no operator corresponds; the message names the replacement.
    """
    name = ufunc.__name__
    if method == "__call__" and not options and name in _OPERATORS:
        return _OPERATORS[name]
    called = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
    if method != "__call__":
        instead = "reduce with te.sum, te.prod, te.min or te.max over a te.reduce_axis"
    elif name in _IN_TE:
        instead = f"write {_IN_TE[name]}"
    elif name in _OPERATORS:
        instead = "use the operator, without further arguments"
    else:
        instead = "use the operators and functions of te"
    numbers = (np.ndarray, np.generic, int, float)
    value = next(x for x in inputs if not isinstance(x, numbers))
    raise TypeMismatchError(
        "{where} of `{value}`: NumPy requires concrete values, but this has a value only when the "
        "kernel runs; {instead}",
        kind="symbolic-value", where=called, value=value, instead=instead,
    )


def apply_numpy_function(
    function: Callable[..., Any], value: object, args: Any, options: Mapping[str, Any]
) -> Any:
    """Apply a NumPy function that is not a ufunc to expressions as generic Python objects.

    Raises:
        TypeMismatchError: If the function fails.
    """
    try:
        # Pass no types, so that NumPy runs its own implementation without further dispatch.
        return np.empty(0).__array_function__(function, (), args, options)
    except TecompError:
        raise
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise TypeMismatchError(
            "{function} of `{value}`: NumPy requires concrete values, but this has a value only "
            "when the kernel runs; use the operators and functions of te",
            kind="symbolic-value", function=numpy_name(function), value=value,
        ) from error


def numpy_name(function: Callable[..., Any]) -> str:
    """Return the conventional qualified name of a NumPy function, such as `np.linalg.det`."""
    return f"{function.__module__}.{function.__name__}".replace("numpy.", "np.", 1)


class _Refused(local):
    """Thread-local record of the last expression for which `__index__` failed.

    Attributes:
        frame_key: Id of the expression, id of the frame and its instruction offset; None if there
            is no record.
    """

    frame_key: tuple[int, int, int] | None = None


_REFUSED = _Refused()


def record_refused_index(value: object, frame: FrameType) -> None:
    """Record that code in `frame` called `__index__` of `value` and received an error."""
    _REFUSED.frame_key = (id(value), id(frame), frame.f_lasti)


def indexes_array(value: object, frame: FrameType) -> bool:
    """Return whether `value` is converted to an array because it indexes a NumPy array in `frame`.

    NumPy does not pass the purpose of a conversion to `__array__`. Only for an index, however, it
    calls `__index__` first and suppresses the error; so the conversion is an index if a failed
    `__index__` call of the same object at the same instruction was recorded. The record is cleared.
    """
    key, _REFUSED.frame_key = _REFUSED.frame_key, None
    return key == (id(value), id(frame), frame.f_lasti)
