"""Python scalars as operands of array operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tecomp.array.graph.node import Buffer, Node, materialized_node, record
from tecomp.caches import LRUCache
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.devices import default_dtype, dtypes_of
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.elementwise import FUNCTIONS, POWERS, CastOp, ElementwisePower
from tecomp.ptensor.types import (
    FLOATING,
    FLOATS,
    NUMERIC,
    PART,
    PTensorType,
    float_limits,
    numpy_dtype,
    of_scalar,
)

Scalar = bool | int | float | complex
"""Python scalars that are weakly typed: next to an array, they take its dtype."""


class _Kind(NamedTuple):
    """Conversion of Python scalars of one class next to arrays of one type.

    Attributes:
        type: Array type of a converted number.
        dtype: The same as a NumPy dtype.
        least: Least number that needs no further check; None if no number needs a check.
        most: Greatest number that needs no further check.
    """

    type: PTensorType
    dtype: np.dtype[Any]
    least: float | None
    most: float | None


_kinds: LRUCache[tuple[PTensorType, type], _Kind] = LRUCache("array.scalars")
_MAX_FLOAT64 = float(np.finfo("float64").max)


def weak_scalar(ptype: PTensorType, value: object, where: str) -> Node | None:
    """Convert a Python scalar to a node next to an array; return None for other objects.

    Args:
        ptype: Type of the array.
        value: Python or NumPy scalar.
        where: Function name for error messages.

    Raises:
        ArrayTypeError: If an int is out of range for the dtype of the array.
    """
    key = ptype, value.__class__
    kind = _kinds.recent.get(key) or _kinds.get(key, None)
    if kind is not None and (
        kind.least is None or kind.least <= value <= kind.most  # type: ignore[operator]
    ):
        return materialized_node(np.array(value, kind.dtype), kind.type)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, Scalar):
        return None
    name = of_scalar(value, ptype.dtype, where)
    if name not in dtypes_of(ptype.device):
        name = default_dtype(name, ptype.device)
    dtype = numpy_dtype(name)
    scalar = PTensorType((), name, ptype.device, ptype.team)
    if name != "complex64" or not isinstance(value, complex):
        _kinds.keep((ptype, value.__class__), _Kind(scalar, dtype, *_range(name, value)))
    return materialized_node(_create(value, dtype, where), scalar)


def _range(dtype: str, value: Scalar) -> tuple[float | None, float | None]:
    """Return the range of numbers of a class that NumPy converts without a warning or an error."""
    if isinstance(value, complex):
        return None, None
    part = numpy_dtype(PART.get(dtype, dtype))
    if isinstance(value, int) and part.kind == "V":  # bfloat16 accepts 64-bit ints
        return np.iinfo("int64").min, np.iinfo("int64").max
    if part.kind == "b":
        return False, True
    limits = np.iinfo(part) if part.kind in "iu" else float_limits(part)
    kind = int if part.kind in "iu" else float
    return kind(limits.min), kind(limits.max)


def _create(value: Scalar, dtype: np.dtype[Any], where: str) -> Buffer:
    if isinstance(value, int) and dtype.kind not in "biu" and abs(value) > _MAX_FLOAT64:
        raise ArrayTypeError(
            "{where}: an int of {bits} bits is out of range for {dtype}; pass a float, for "
            "example float('inf')",
            where=where, bits=value.bit_length(), dtype=dtype.name,
        )
    if isinstance(value, int) and dtype.kind == "V":
        value = float(value)
    # Numbers out of range become infinite, like results of operations.
    with np.errstate(over="ignore"):
        return np.array(value, dtype)


_OF_BOOLEANS: Mapping[str, str] = {
    "add": "logical_or", "maximum": "logical_or", "multiply": "logical_and",
    "minimum": "logical_and",
}
"""Operations on numbers, and the equivalent operations on booleans."""


def record_with_booleans(
    op: PTensorOp, first: Node, second: Node, error: ArrayTypeError
) -> Node:
    """Record an operation of numbers on operands of which one or both are boolean, as NumPy does.

    Next to numbers, booleans are the numbers 0 and 1 of their dtype. For two booleans, a sum is a
    disjunction and a product a conjunction, and other operations except the difference take int8.

    Args:
        op: Operation.
        first: First operand.
        second: Second operand.
        error: Error of the operation on these operands.

    Raises:
        ArrayTypeError: If no operand is boolean, or the operation does not support the numbers.
    """
    types = first.type.dtype, second.type.dtype
    if "bool" not in types:
        raise error
    if types == ("bool", "bool"):
        logical = FUNCTIONS.get(_OF_BOOLEANS.get(op.where, ""))
        if logical is not None:
            return record(logical, first, second)
        name = "bool" if op.where == "subtract" else "int8"
    else:
        name = types[0] if types[1] == "bool" else types[1]
    try:
        return record(op, *[
            record(CastOp(name), node) if node.type.dtype == "bool" else node
            for node in (first, second)
        ])
    except ArrayTypeError:
        raise error from None


POWER = FUNCTIONS["pow"]
_ROOTS: Mapping[object, PTensorOp] = {
    power: ElementwisePower(kind) for kind, power in POWERS.items()
}


def record_with_scalar(op: PTensorOp, node: Node, value: object, where: str) -> Node | None:
    """Record an operation on an array and a Python scalar; return None for any other operand."""
    if op is POWER and (simplified := simplify_power(node, value)):
        return simplified
    other = weak_scalar(node.type, value, where)
    return None if other is None else record(op, node, other)


def simplify_power(node: Node, exponent: object) -> Node | None:
    """Replace a power by cheaper products, a quotient or roots; return None for other exponents.

    The error is at most 1.5 ulp, and the result overflows where the power does.
    """
    kind, dtype = exponent.__class__, node.type.dtype
    if kind not in (int, float):
        return None
    if exponent == -1 and dtype in FLOATS:
        return record(FUNCTIONS["reciprocal"], node)
    if dtype in FLOATS and (roots := _ROOTS.get(exponent)) is not None:
        return record(roots, node)
    if exponent not in (2, 3) or dtype not in (NUMERIC if kind is int else FLOATING):
        return None
    square = record(FUNCTIONS["square"], node)
    return square if exponent == 2 else record(FUNCTIONS["multiply"], square, node)
