"""Constants and parts of numbers, in the type of an expression."""

from __future__ import annotations

import math

from tecomp import te
from tecomp.ir.language.dtype import DType

LOG_2 = math.log(2)
LOG2_E = 1 / LOG_2
LOG10_E = 1 / math.log(10)


def like(value: float, x: te.Expr) -> te.Expr:
    """A constant of the type of `x`."""
    return te.const(value, x.dtype)


def is_float(x: te.Expr) -> bool:
    """Whether `x` is a floating-point number."""
    return bool(DType(x.dtype).is_float)


def sign_bit(x: te.Expr) -> te.Expr:
    """Whether the sign of a floating-point number is minus; zeros and NaN have one too."""
    bits = te.reinterpret(f"int{DType(x.dtype).bits}", x)
    return bits < like(0, bits)


def halves(x: te.Expr) -> tuple[te.Expr, te.Expr]:
    """A float64 as the sum of two numbers of 26 and of 27 bits, whose products are exact."""
    mask = te.const((1 << 64) - (1 << 27), "uint64")
    high = te.reinterpret("float64", te.reinterpret("uint64", x) & mask)
    return high, x - high


def squared(x: te.Expr) -> tuple[te.Expr, te.Expr]:
    """The square of a float64 as the nearest number, and what that leaves out.

    Source:
        T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
    """
    high, low = halves(x)
    square = x * x
    return square, ((high * high - square) + (high + high) * low) + low * low


def added(x: te.Expr, y: te.Expr) -> tuple[te.Expr, te.Expr]:
    """The sum of two numbers as the nearest number, and what that leaves out.

    Source:
        D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B.
    """
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)
