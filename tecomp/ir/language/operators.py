"""The operators of expressions: symbols, how tightly they hold, and their results for literals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from tecomp.errors import TypeMismatchError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.text import Precedence

Scalar: TypeAlias = "int | float | bool"


class BinOp(Enum):
    """Symbol of a binary operator; `min(a, b)` and `max(a, b)` are written as calls."""

    # Each is one object, and looked up all the time.
    __hash__ = object.__hash__

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"
    SHL = "<<"
    SHR = ">>"


class CmpOp(Enum):
    """Symbol of a comparison."""

    __hash__ = object.__hash__

    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


COMPARISONS: dict[CmpOp, Callable[[Any, Any], Any]] = {
    CmpOp.EQ: operator.eq,
    CmpOp.NE: operator.ne,
    CmpOp.LT: operator.lt,
    CmpOp.LE: operator.le,
    CmpOp.GT: operator.gt,
    CmpOp.GE: operator.ge,
}
"""The comparisons of numbers and of arrays."""

MIRRORED = {
    CmpOp.EQ: CmpOp.EQ,
    CmpOp.NE: CmpOp.NE,
    CmpOp.LT: CmpOp.GT,
    CmpOp.GT: CmpOp.LT,
    CmpOp.LE: CmpOp.GE,
    CmpOp.GE: CmpOp.LE,
}
"""`a op b` as `b op a`."""

OPPOSITE = {
    CmpOp.EQ: CmpOp.NE,
    CmpOp.NE: CmpOp.EQ,
    CmpOp.LT: CmpOp.GE,
    CmpOp.GE: CmpOp.LT,
    CmpOp.LE: CmpOp.GT,
    CmpOp.GT: CmpOp.LE,
}
"""What holds of numbers where `a op b` does not; of NaN neither may."""

LOGIC = (BinOp.AND, BinOp.OR)
BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR)

LEVELS = {
    BinOp.ADD: Precedence.SUM,
    BinOp.SUB: Precedence.SUM,
    BinOp.MUL: Precedence.PRODUCT,
    BinOp.DIV: Precedence.PRODUCT,
    BinOp.FLOORDIV: Precedence.PRODUCT,
    BinOp.MOD: Precedence.PRODUCT,
    BinOp.MIN: Precedence.ATOM,
    BinOp.MAX: Precedence.ATOM,
    BinOp.AND: Precedence.AND,
    BinOp.OR: Precedence.OR,
    BinOp.BITAND: Precedence.BITAND,
    BinOp.BITOR: Precedence.BITOR,
    BinOp.BITXOR: Precedence.BITXOR,
    BinOp.SHL: Precedence.SHIFT,
    BinOp.SHR: Precedence.SHIFT,
}

_INTEGER_OPS: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda a, b: a + b,
    BinOp.SUB: lambda a, b: a - b,
    BinOp.MUL: lambda a, b: a * b,
    BinOp.FLOORDIV: lambda a, b: a // b,
    BinOp.MOD: lambda a, b: a % b,
    BinOp.MIN: min,
    BinOp.MAX: max,
    BinOp.BITAND: lambda a, b: a & b,
    BinOp.BITOR: lambda a, b: a | b,
    BinOp.BITXOR: lambda a, b: a ^ b,
    BinOp.SHL: lambda a, b: a << b,
    BinOp.SHR: lambda a, b: a >> b,
}


def integer_result(op: BinOp, a: int, b: int, dtype: DType) -> int | None:
    """`a op b` for literals of an integer type; None where it is not plain or leaves the range."""
    if not dtype.is_integer or op not in _INTEGER_OPS:
        return None
    if op in (BinOp.FLOORDIV, BinOp.MOD) and b == 0:
        return None
    if op in (BinOp.SHL, BinOp.SHR) and not 0 <= b < dtype.bits:
        return None
    value = _INTEGER_OPS[op](a, b)
    low, high = integer_range(dtype)
    return value if low <= value <= high else None


def literal(value: Scalar, dtype: DType) -> Scalar:
    """`value` as the Python number that a literal of a type holds.

    Raises:
        TypeMismatchError: the type cannot hold it.
    """
    if not isinstance(value, int | float | np.generic):
        raise TypeMismatchError(
            f"{value!r} is no number; a literal of {dtype} is made from one", kind="literal"
        )
    if not holds(dtype, value):
        if dtype.is_float:
            raise TypeMismatchError(f"{value} does not fit into {dtype}", kind="literal")
        if dtype.is_bool or not _is_whole(value):
            raise TypeMismatchError(
                f"{value} is no {dtype}; give a number that it has, or another type", kind="literal"
            )
        low, high = integer_range(dtype)
        raise TypeMismatchError(
            f"{value} does not fit into {dtype}, which holds {low} to {high}", kind="literal"
        )
    if dtype.is_float:
        return float(value)
    return bool(value) if dtype.is_bool else int(value)


FLOAT_FORMATS = {
    "float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023),
}
"""Of each floating-point type the bits of the fraction, and the exponent of the largest number."""


def holds(dtype: DType, value: Scalar) -> bool:
    """Whether a literal is the same number in `dtype`, but for a float's rounding.

    This is the rule for every constant that becomes one of another type where nobody wrote a
    conversion; what it refuses is refused.

    >>> holds(DType("uint8"), -1), holds(DType("float16"), 0.1), holds(DType("float16"), 65520)
    (False, True, False)
    >>> holds(DType("int32"), 0.5), holds(DType("int32"), float("nan")), holds(DType("bool"), 2)
    (False, False, False)
    """
    if dtype.is_float:
        fraction, exponent = FLOAT_FORMATS[dtype.scalar]
        # From half a step above the largest number on, it rounds to infinity.
        limit = (2.0 - 2.0 ** -(fraction + 1)) * 2.0**exponent
        return (isinstance(value, float) and not math.isfinite(value)) or abs(value) < limit
    low, high = (0, 1) if dtype.is_bool else integer_range(dtype)
    return _is_whole(value) and low <= value <= high


def _is_whole(value: Scalar) -> bool:
    """Whether it is an integer."""
    return isinstance(value, int | np.integer | np.bool_) or (
        math.isfinite(value) and value == int(value)
    )


def integer_range(dtype: DType) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
