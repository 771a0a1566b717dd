"""Exact fmod and integer powers."""

from __future__ import annotations

from tecomp.codegen.math.vector_values import (
    BoolVector,
    FloatVector,
    IntVector,
    call_libm_per_lane,
    fix_special_lanes,
)


def power_of_signed(x: IntVector, y: IntVector) -> IntVector:
    """Emit the signed power `x**y` with wrap-around.

    A negative exponent gives the reciprocal rounded towards zero: 0 except for bases 1 and -1.
    A base of 0 gives 0.
    """
    below = _compare(y, "slt", 0)
    # The powers of 1 and -1 depend only on the parity of the exponent, its lowest bit.
    result = _power(x, _select(below, y & 1, y))
    is_unit = _compare(x, "eq", 1) | _compare(x, "eq", -1)
    return _select(below & ~is_unit, x.constant(0), result)


def power_of_unsigned(x: IntVector, y: IntVector) -> IntVector:
    """Emit the unsigned power `x**y` with wrap-around."""
    return _power(x, y)


def _power(x: IntVector, y: IntVector) -> IntVector:
    """Emit x**y by binary exponentiation; y is unsigned."""
    code, kind = x.code, x.kind
    before, loop, after = code.block, code.name("loop"), code.name("after")
    total, square, rest = (code.name(hint) for hint in ("total", "square", "rest"))
    code.jump(loop)
    code.label(loop)
    following = [f"%{code.name('next')}" for _ in range(3)]
    first = (x.constant(1), x, y)
    for name, start, behind in zip((total, square, rest), first, following, strict=True):
        code.do(f"%{name} = phi {kind} [ {start.operand}, %{before} ], [ {behind}, %{loop} ]")
    result, factor, bits = (
        IntVector(code, f"%{name}", x.scalar, x.lanes) for name in (total, square, rest)
    )
    product = result * _select((bits & 1).is_not(0), factor, x.constant(1))
    shifted = bits.unsigned_shift(1)
    for name, value in zip(following, (product, factor * factor, shifted), strict=True):
        code.do(f"{name} = add {kind} {value.operand}, {value.like(0)}")
    code.branch(shifted.is_not(0).any(), loop, after)
    code.label(after)
    return product


def _compare(x: IntVector, word: str, number: int) -> BoolVector:
    made = x.code.op(f"icmp {word} {x.kind} {x.operand}, {x.like(number)}")
    return BoolVector(x.code, made, x.lanes)


def _select(where: BoolVector, a: IntVector, b: IntVector) -> IntVector:
    text = f"select {where.kind} {where.operand}, {a.kind} {a.operand}, {b.kind} {b.operand}"
    return a.made(text)


_INFINITY = float("inf")


def fmod(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit `x - trunc(x / y) * y` with the sign of `x`; NaN for infinite x and for y = 0.

    Quotients that exceed the precision of float32 are computed in float64, and those that exceed
    the precision of float64 by the C library.
    """
    a, b = abs(x), abs(y)
    ratio = a / b
    rest = (-ratio.intrinsic("trunc")).intrinsic("fma", b, a)
    rest = (rest < 0.0).select(rest + b, rest)
    # For infinite y, infinity times 0 would give NaN; the remainder of a finite x is x.
    near = (b.is_equal(_INFINITY) & (a < _INFINITY)).select(a, rest)
    is_far = (ratio > 2.0**x.format.mantissa) & (a < _INFINITY) & (b > 0.0)
    formula = _wider if x.scalar == "float" else _by_library
    return abs(fix_special_lanes(near, is_far, "fmod.far", formula, (a, b))).with_bits(x.sign())


def _wider(a: FloatVector, b: FloatVector) -> FloatVector:
    wide = fmod(a.cast("fpext", "double"), b.cast("fpext", "double"))
    return wide.cast("fptrunc", "float")


def _by_library(a: FloatVector, b: FloatVector) -> FloatVector:
    return call_libm_per_lane("fmod", a, b)
