"""Functions of truth values, integers and real numbers, by the names that the standard has.

Special values of floating point are those of the standard; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tecomp import te
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import BinOp, binary
from tecomp.ptensor.formulas.numbers import LOG_2, is_float, like, sign_bit


def _identity(x: te.Expr) -> te.Expr:
    return x


def _imag(x: te.Expr) -> te.Expr:
    return like(0, x)


def _reciprocal(x: te.Expr) -> te.Expr:
    return like(1, x) / x


def _sign(x: te.Expr) -> te.Expr:
    zero, one = like(0, x), like(1, x)
    if x.dtype.kind == "uint":
        return te.select(x == zero, zero, one)
    # NaN stays, and a zero of either sign becomes the positive one.
    rest = te.select(x == zero, zero, x) if is_float(x) else zero
    return te.select(x > zero, one, te.select(x < zero, like(-1, x), rest))


def _half_power(x: te.Expr, times: int) -> te.Expr:
    """The square root to the power `times`, with the special values of a power.

    Each step is as far from overflow as the result.
    """
    if DType(x.dtype).bits == 16:
        return te.cast(_half_power(te.cast(x, "float32"), times), x.dtype)
    # Signs of zeros and infinities do not count; roots of other negative numbers are none.
    has_none = te.any(x == like(0, x), x == like(float("-inf"), x))
    size = te.select(has_none, te.abs(x), x)
    root = te.sqrt(size)
    part = root if times > 0 else like(1, x) / root
    if abs(times) == 1:
        return part
    return part * size if times > 0 else part / size


def _floor_divide(x: te.Expr, y: te.Expr) -> te.Expr:
    if not is_float(x):
        # An operator would refuse a divisor that is known to be 0, as one that somebody wrote.
        return binary(BinOp.FLOORDIV, x, y)
    # Where an operand is infinite or the divisor is 0, the quotient says all that there is to say.
    is_plain = te.all(te.isfinite(x), te.isfinite(y), y != like(0, y))
    return te.select(is_plain, x // y, x / y)


def _remainder(x: te.Expr, y: te.Expr) -> te.Expr:
    return binary(BinOp.MOD, x, y)


def _logaddexp(x: te.Expr, y: te.Expr) -> te.Expr:
    if DType(x.dtype).bits == 16:
        wide = _logaddexp(te.cast(x, "float32"), te.cast(y, "float32"))
        return te.cast(wide, x.dtype)
    rest = te.log1p(te.exp(-te.abs(x - y)))
    # The difference of equal infinities is no number.
    return te.select(x == y, x + like(LOG_2, x), te.max(x, y) + rest)


UNARY: Mapping[str, Callable[[te.Expr], te.Expr]] = {
    **{
        f.__name__: f
        for f in (
            *(te.abs, te.acos, te.acosh, te.asin, te.asinh, te.atan, te.atanh, te.ceil, te.cos),
            *(te.cosh, te.exp, te.expm1, te.floor, te.isfinite, te.isinf, te.isnan, te.log),
            *(te.log1p, te.log2, te.log10, te.logical_not, te.sin, te.sinh, te.sqrt, te.tan),
            *(te.tanh, te.trunc),
        )
    },
    **dict.fromkeys(("conj", "positive", "real"), _identity),
    "bitwise_invert": lambda x: ~x,
    "half": partial(_half_power, times=1),
    "imag": _imag,
    "minus_half": partial(_half_power, times=-1),
    "minus_three_halves": partial(_half_power, times=-3),
    "negative": lambda x: -x,
    "reciprocal": _reciprocal,
    "round": te.nearbyint,
    "sign": _sign,
    "signbit": sign_bit,
    "square": lambda x: x * x,
    "three_halves": partial(_half_power, times=3),
}
"""The functions of one number."""

BINARY: Mapping[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "add": lambda x, y: x + y,
    "atan2": te.atan2,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_left_shift": lambda x, y: x << y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_right_shift": lambda x, y: x >> y,
    "bitwise_xor": lambda x, y: x ^ y,
    "copysign": te.copysign,
    "divide": lambda x, y: x / y,
    "equal": lambda x, y: x == y,
    "floor_divide": _floor_divide,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "hypot": te.hypot,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "logaddexp": _logaddexp,
    "logical_and": te.all,
    "logical_or": te.any,
    "logical_xor": lambda x, y: x != y,
    "maximum": te.max,
    "minimum": te.min,
    "multiply": lambda x, y: x * y,
    "nextafter": te.nextafter,
    "not_equal": lambda x, y: x != y,
    "pow": te.pow,
    "remainder": _remainder,
    "subtract": lambda x, y: x - y,
}
"""The functions of two numbers of one type."""
