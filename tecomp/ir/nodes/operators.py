"""Operator and intrinsic tables, and the declared values of size variables."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.dtype import BOOL, FLOAT32, INT32, DType
from tecomp.ir.nodes.printer import Precedence
from tecomp.operations.element_types import element_type
from tecomp.operations.elementwise import ELEMENTWISE
from tecomp.operations.rows import TO_BOOL


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """Signature of an intrinsic function that a `Call` may name.

    Attributes:
        arguments: Number of arguments.
        takes: Constraint on the argument dtypes: `float` (one floating-point dtype), `int` (one
            integer dtype), `number` (one floating-point or integer dtype), `groups` (see
            `dot_type`), `bits` (the same number of bits as the result), `alike` (one dtype), or
            `special` (`if_then_else` and `check_index`, which the verifier handles by name).
        result_rule: Result dtype: the index of the argument with the same dtype, `bool`, `sums`
            (see `dot_type`), `joined` (the lanes of all arguments together), or None if each call
            specifies the dtype.
    """

    arguments: int
    takes: Literal["float", "int", "number", "groups", "bits", "alike", "special"]
    result_rule: int | Literal["bool", "sums", "joined"] | None = 0


INTRINSICS: MappingProxyType[str, Intrinsic] = MappingProxyType(
    {
        **{
            row.call: Intrinsic(row.arity, "float", "bool" if row.gives == TO_BOOL else 0)
            for row in ELEMENTWISE if row.call
        },
        "pow": Intrinsic(2, "number"),
        **{name: Intrinsic(1, "int") for name in ("popcount", "abs")},
        "dot": Intrinsic(2, "groups", "sums"),
        "join": Intrinsic(2, "alike", "joined"),
        "reinterpret": Intrinsic(1, "bits", None),
        "if_then_else": Intrinsic(3, "special", 1),
        "check_index": Intrinsic(3, "special", "bool"),
    }
)

_OUTSIDE = "outside."
"""Prefix of `Call` names that denote registered scalar C functions."""


def outside_call(function: str) -> str:
    """Return the `Call` name of a registered C function, which must have no side effects."""
    return f"{_OUTSIDE}{function}"


def outside_function(name: str) -> str | None:
    """Return the C function that a `Call` name denotes, or None if it denotes an intrinsic."""
    return name.removeprefix(_OUTSIDE) if name.startswith(_OUTSIDE) else None


def result_type(name: str, arguments: Sequence[DType]) -> DType | None:
    """Return the result dtype of an intrinsic call.

    Returns:
        The dtype, or None if the intrinsic or argument count is unknown, the dtypes do not fit, or
        each call specifies the dtype.
    """
    kind = INTRINSICS.get(name)
    if kind is None or kind.result_rule is None or kind.arguments != len(arguments):
        return None
    if kind.result_rule == "bool":
        return BOOL.with_lanes(arguments[0].lanes)
    if kind.result_rule == "sums":
        return dot_type(*arguments)
    if kind.result_rule == "joined":
        return arguments[0].with_lanes(sum(dtype.lanes for dtype in arguments))
    return arguments[kind.result_rule]


def dot_type(a: DType, b: DType) -> DType | None:
    """Return the dtype of `dot(a, b)`, which sums the products within each group of 32 bits.

    Returns:
        int32 lanes if each operand is int8 or uint8, or both are int16; float32 lanes if both are
        bfloat16. None for other dtypes or if the operands do not fill 32-bit groups.

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
    """Symbol of a binary operator; `min(a, b)` and `max(a, b)` are printed as calls."""

    # Members are singletons and frequent dict keys; identity hashing is faster than Enum's.
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
"""Python function of each comparison, for scalars and arrays."""

MIRRORED = {
    CmpOp.EQ: CmpOp.EQ,
    CmpOp.NE: CmpOp.NE,
    CmpOp.LT: CmpOp.GT,
    CmpOp.GT: CmpOp.LT,
    CmpOp.LE: CmpOp.GE,
    CmpOp.GE: CmpOp.LE,
}
"""Operator of `b op a` that is equivalent to `a op b`."""

OPPOSITE = {
    CmpOp.EQ: CmpOp.NE,
    CmpOp.NE: CmpOp.EQ,
    CmpOp.LT: CmpOp.GE,
    CmpOp.GE: CmpOp.LT,
    CmpOp.LE: CmpOp.GT,
    CmpOp.GT: CmpOp.LE,
}
"""Negated comparison operator; not valid for NaN operands, for which both may be false."""

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
    """Fold `a op b` for literals of an integer dtype.

    Returns:
        The value, or None if the operator cannot be folded, the divisor is 0, the shift count is
        out of range, or the value overflows the dtype.
    """
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
    """Convert `value` to the Python float, bool or int of a literal of `dtype`.

    Raises:
        TypeMismatchError: If `value` is not a number or not representable in `dtype`.
    """
    if not isinstance(value, int | float | np.generic):
        raise TypeMismatchError(
            "{value!r} is not a number; a literal of {dtype} must be a number",
            kind="literal", value=value, dtype=dtype,
        )
    if not holds(dtype, value):
        if dtype.is_float:
            raise TypeMismatchError(
                "{value} is not representable as {dtype}",
                kind="literal", value=value, dtype=dtype,
            )
        if dtype.is_bool or not _is_whole(value):
            raise TypeMismatchError(
                "{value} is not a valid {dtype}; pass a representable number, or use another dtype",
                kind="literal", value=value, dtype=dtype,
            )
        low, high = integer_range(dtype)
        raise TypeMismatchError(
            "{value} is out of range for {dtype} ({low} to {high})",
            kind="literal", value=value, dtype=dtype, low=low, high=high,
        )
    if dtype.is_float:
        return float(value)
    return bool(value) if dtype.is_bool else int(value)


def holds(dtype: DType, value: Scalar) -> bool:
    """Return whether `dtype` represents a literal exactly, up to rounding of floats.

    This rule applies to every implicit conversion of a constant; constants that violate it are
    rejected.

    >>> holds(DType("uint8"), -1), holds(DType("float16"), 0.1), holds(DType("float16"), 65520)
    (False, True, False)
    >>> holds(DType("int32"), 0.5), holds(DType("int32"), float("nan")), holds(DType("bool"), 2)
    (False, False, False)
    """
    if dtype.is_float:
        row = element_type(dtype.scalar)
        fraction, exponent = row.fraction_bits, row.largest_exponent
        if row.nonfinite != "IEEE754":
            is_finite = isinstance(value, int) or math.isfinite(value)
            # Half a unit above the largest number is a tie, rounded to the even code.
            reach = row.largest + 2.0 ** (exponent - fraction - 1)
            # Without fraction bits, the last bit is the leading one, so that ties are rounded up.
            is_even = row.fraction_bits > 0 and row.largest_code % 2 == 0
            if not is_finite:
                return math.isnan(value) and row.nonfinite != "FiniteOnly"
            is_in_range = row.is_signed or value > 0
            return is_in_range and (abs(value) < reach or (is_even and abs(value) == reach))
        # Values from half a unit in the last place above the largest finite number round to
        # infinity.
        if isinstance(value, int):  # the exact limit: that of float64 is infinite as a float
            return abs(value) < ((1 << fraction + 2) - 1) << (exponent - fraction - 1)
        limit = (2.0 - 2.0 ** -(fraction + 1)) * 2.0**exponent
        return (isinstance(value, float) and not math.isfinite(value)) or abs(value) < limit
    low, high = (0, 1) if dtype.is_bool else integer_range(dtype)
    return (isinstance(value, int) or _is_whole(value)) and low <= value <= high


def _is_whole(value: Scalar) -> bool:
    """Return whether `value` is an integer, of any type."""
    return isinstance(value, int | np.integer | np.bool_) or (
        math.isfinite(value) and value == int(value)
    )


@cache
def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the minimum and maximum of an integer dtype."""
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """Declared values of a size variable.

    >>> bounds = SizeBounds(minimum=1, maximum=4096, multiple=16)
    >>> bounds.admits(32), bounds.admits(24), bounds.admits(8192)
    (True, False, False)

    Attributes:
        minimum: Minimum.
        maximum: Maximum; None if there is none.
        multiple: Divisor of all values.
    """

    minimum: int = 0
    maximum: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        # Entries of the kernel cache are not trusted: native checks divide by `multiple`.
        numbers = (self.minimum, self.multiple, self.minimum if self.maximum is None else
            self.maximum)
        if any(type(number) is not int or abs(number) >= 1 << 63 for number in numbers):
            raise TypeError(f"bounds of sizes are 64-bit integers, got {numbers}")
        if self.multiple < 1:
            raise ValueError(f"sizes are multiples of a positive integer, got {self.multiple}")

    def __str__(self) -> str:
        texts = [f">= {self.minimum}"] if self.minimum else []
        texts += [] if self.maximum is None else [f"<= {self.maximum}"]
        texts += [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        return " and ".join(texts)

    def admits(self, value: int) -> bool:
        """Return whether a value is within the bounds."""
        is_small = self.maximum is None or value <= self.maximum
        return value >= self.minimum and is_small and value % self.multiple == 0
