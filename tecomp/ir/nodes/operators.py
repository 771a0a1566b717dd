"""Operator and intrinsic tables."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.dtype import BOOL, FLOAT32, INT32, DType
from tecomp.ir.nodes.printer import Precedence


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function that a `Call` may name.

    Attributes:
        arguments: how many it takes.
        takes: what they are: `float` (all of one floating type), `int` (of one type of integers),
            `number` (of one type of either), `groups` (see `dot_type`), `bits` (as many bits as the
            result), `alike` (of one type), or `special` (the two that are no arithmetic, which the
            verifier knows by name).
        gives: the argument whose type is the type of the result, `bool`, `sums` (see `dot_type`),
            `joined` (as many lanes as all arguments have), or None where each call says it.
    """

    arguments: int
    takes: Literal["float", "int", "number", "groups", "bits", "alike", "special"]
    gives: int | Literal["bool", "sums", "joined"] | None = 0


_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh sigmoid erf sin cos tan asin acos atan "
    "sinh cosh asinh acosh atanh floor ceil round nearbyint trunc fabs"
)
INTRINSICS: MappingProxyType[str, Intrinsic] = MappingProxyType(
    {
        **{name: Intrinsic(1, "float") for name in _UNARY.split()},
        **{name: Intrinsic(2, "float") for name in ("atan2", "hypot", "fmod")},
        "pow": Intrinsic(2, "number"),
        **{name: Intrinsic(1, "float", "bool") for name in ("isnan", "isinf", "isfinite")},
        **{name: Intrinsic(1, "int") for name in ("popcount", "abs")},
        "dot": Intrinsic(2, "groups", "sums"),
        "join": Intrinsic(2, "alike", "joined"),
        "reinterpret": Intrinsic(1, "bits", None),
        "if_then_else": Intrinsic(3, "special", 1),
        "check_index": Intrinsic(3, "special", "bool"),
    }
)

_OUTSIDE = "outside."
"""How the names of calls begin that give the value of a C function of numbers."""


def outside_call(function: str) -> str:
    """The name of a `Call` of a C function that was registered: its value, and no effect."""
    return f"{_OUTSIDE}{function}"


def outside_function(name: str) -> str | None:
    """The C function that a `Call` of this name is of; None if it is of a function of ours."""
    return name.removeprefix(_OUTSIDE) if name.startswith(_OUTSIDE) else None


def result_type(name: str, arguments: Sequence[DType]) -> DType | None:
    """The type of a call; None if there is no such function of so many, or the call says it."""
    kind = INTRINSICS.get(name)
    if kind is None or kind.gives is None or kind.arguments != len(arguments):
        return None
    if kind.gives == "bool":
        return BOOL.with_lanes(arguments[0].lanes)
    if kind.gives == "sums":
        return dot_type(*arguments)
    if kind.gives == "joined":
        return arguments[0].with_lanes(sum(dtype.lanes for dtype in arguments))
    return arguments[kind.gives]


def dot_type(a: DType, b: DType) -> DType | None:
    """The type of `dot(a, b)`: for each 32 bits of either, the sum of the products in them.

    Both are int8 or uint8, one or each; or both int16; or both bfloat16. None if they are not, or
    do not fill lanes of 32 bits.

    >>> dot_type(DType("uint8x4"), DType("int8x4")), dot_type(DType("bfloat16x16"),
    ...     DType("bfloat16x16"))
    ('int32', 'float32x8')
    """
    group = 32 // a.bits
    if a.lanes != b.lanes or a.bits != b.bits or group < 2 or a.lanes % group:
        return None
    scalars = {str(a.scalar), str(b.scalar)}
    if scalars == {"bfloat16"}:
        return FLOAT32.with_lanes(a.lanes // group)
    known = scalars <= {"int8", "uint8"} or scalars == {"int16"}
    return INT32.with_lanes(a.lanes // group) if known else None


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
