"""Powers of integers, which wrap as products do."""

from __future__ import annotations

from tecomp import te
from tecomp.ir.language.dtype import DType
from tecomp.ptensor.formulas.numbers import like


def power(x: te.Expr, y: te.Expr) -> te.Expr:
    """`x` to the power `y`, modulo 2 to the number of bits.

    A negative power is the reciprocal rounded towards zero: 0 but for 1 and -1, and 0 of 0.
    """
    dtype = DType(x.dtype)
    zero, one = like(0, x), like(1, x)
    result, square = one, x
    bits = dtype.bits - (dtype.kind == "int")
    for place in range(bits):
        if place:
            square = square * square
        is_set = (y & like(1 << place, y)) != zero
        result = result * te.select(is_set, square, one)
    if dtype.kind == "uint":
        return result
    is_unit = te.any(x == one, x == like(-1, x))
    # The bits of a negative power have its parity, which is all that units need.
    return te.select(te.all(y < zero, te.logical_not(is_unit)), zero, result)
