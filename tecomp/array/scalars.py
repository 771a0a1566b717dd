"""Numbers of Python beside arrays: they take the type of the array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tecomp.array.graph.devices import default_dtype, dtypes_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.promotion import PART, of_scalar
from tecomp.ptensor.types import PTensorType, float_limits, numpy_dtype

Scalar = bool | int | float | complex
"""The numbers of Python that stand beside arrays, in the type of these."""


class _Kind(NamedTuple):
    """What numbers of one class become beside arrays of one type.

    Attributes:
        type: of a number.
        dtype: the same for NumPy.
        least: of the numbers that need no further look; None if all are such.
        most: of these.
    """

    type: PTensorType
    dtype: np.dtype[Any]
    least: float | None
    most: float | None


_kinds: dict[tuple[PTensorType, type], _Kind] = {}
_MOST = float(np.finfo("float64").max)


def beside(type: PTensorType, value: object, where: str) -> Node | None:
    """A number of Python as an array beside another; None if it is something else.

    Args:
        type: of the other array.
        value: the number, or one of NumPy's.
        where: the function, for messages.

    Raises:
        ArrayTypeError: an int is out of the range of the array's type.
    """
    kind = _kinds.get((type, value.__class__))
    if kind is not None and (
        kind.least is None or kind.least <= value <= kind.most  # type: ignore[operator]
    ):
        return leaf(np.array(value, kind.dtype), kind.type)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, Scalar):
        return None
    return _looked_at(type, value, where)


def _looked_at(type: PTensorType, value: Scalar, where: str) -> Node:
    name = of_scalar(value, type.dtype, where)
    if name not in dtypes_of(type.device):
        name = default_dtype(name, type.device)
    dtype = numpy_dtype(name)
    scalar = PTensorType((), name, type.device, type.team)
    if name != "complex64" or not isinstance(value, complex):
        if len(_kinds) > 20_000:
            _kinds.clear()
        _kinds[type, value.__class__] = _Kind(scalar, dtype, *_range(name, value))
    return leaf(_made(value, dtype, where), scalar)


def _range(dtype: str, value: Scalar) -> tuple[float | None, float | None]:
    """Numbers of a class that NumPy turns into one of the type without a word."""
    if isinstance(value, complex):
        return None, None
    part = numpy_dtype(PART.get(dtype, dtype))
    if isinstance(value, int) and part.kind == "V":  # bfloat16 takes ints of a machine
        return np.iinfo("int64").min, np.iinfo("int64").max
    if part.kind == "b":
        return False, True
    limits = np.iinfo(part) if part.kind in "iu" else float_limits(part)
    kind = int if part.kind in "iu" else float
    return kind(limits.min), kind(limits.max)


def _made(value: Scalar, dtype: np.dtype[Any], where: str) -> Buffer:
    if isinstance(value, int) and dtype.kind not in "biu" and abs(value) > _MOST:
        raise ArrayTypeError(
            f"{where}: an int of {value.bit_length()} bits is no {dtype.name}; give float('inf'), "
            "or a number that a float holds"
        )
    if isinstance(value, int) and dtype.kind == "V":
        value = float(value)
    # A number beyond the type becomes infinite, as results do.
    with np.errstate(over="ignore"):
        return np.array(value, dtype)
