"""Trigonometric functions and their inverses.

The range reduction is `x = n pi/2 + r` with r in [-pi/4, pi/4]. For |x| up to 12800 (float64: one
million), n times pi/2 is subtracted in four parts (Cody-Waite); the first three have so few bits
that their products with n are exact. For larger float32 angles, x is multiplied by the required
bits of 2/pi (Payne-Hanek); larger float64 angles are passed to the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tecomp.codegen.llvm.ir_builder import splat, suffix, vector_of
from tecomp.codegen.math.vector_values import (
    BoolVector,
    FloatVector,
    IntVector,
    call_libm_per_lane,
    fix_special_lanes,
    fma,
    polynomial,
)

_TWO_OVER_PI = 0.63661977236758134308
# pi/2 in four parts, and the bound on |x| below which n times the first three parts is exact.
_HALF_PI = {
    "float": (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
    "double": (
        *(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21),
        8.4784276603689e-32,
    ),
}
_FAR = {"float": 12800.0, "double": 1.0e6}

# The fraction bits of 2/pi after 16 zero bits; the table has the 32 bits from each byte on.
_TABLE = "@tecomp.two_over_pi"
_DIGITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041
_WORDS = 23

# (sin(r) - r) / r**3, (cos(r) - 1 + r**2 / 2) / r**4, (tan(r) - r) / r**3 on [0, pi/4],
# (atan(r) - r) / r**3 on [0, 1], (asin(r) - r) / r**3 on [0, 1/2], all in r**2.
_SIN = {
    "float": (-0.16666667, 0.008333372, -0.00019849907, 2.8004583e-06),
    "double": (
        *(-0.16666666666666666, 0.0083333333333331, -0.00019841269841057126),
        *(2.7557319129292577e-06, -2.5052085976482222e-08, 1.6056249611103326e-10),
        -7.484908692011863e-13,
    ),
}
_COS = {
    "float": (0.041666646, -0.0013887311, 2.443255e-05),
    "double": (
        *(0.041666666666666664, -0.0013888888888888447, 2.4801587301259415e-05),
        *(-2.755731910072121e-07, 2.087673178244432e-09, -1.1468013517562362e-11),
        4.645394503793061e-14,
    ),
}
_TAN = {
    "float": (
        *(0.3333335, 0.13332675, 0.05405895, 0.021285793),
        *(0.010829082, 9.550667e-05, 0.0043743495),
    ),
    "double": (
        *(0.33333333333333376, 0.13333333333326097, 0.053968253972524236, 0.0218694884091739),
        *(0.008863237768282805, 0.0035921024522806142, 0.0014560345764782676),
        *(0.0005889185859974962, 0.0002435607792264362, 8.404111569913173e-05),
        *(6.635049363382067e-05, -2.4538217199836944e-05, 4.772570386273836e-05),
        *(-2.3824783604188848e-05, 9.699394600139837e-06),
    ),
}
_ATAN = {
    "float": (
        *(-0.333333, 0.19998536, -0.14264126, 0.109516546, -0.08402056),
        *(0.0579358, -0.031157766, 0.010904537, -0.001791502),
    ),
    "double": (
        *(-0.3333333333333307, 0.19999999999951756, -0.1428571428258855, 0.1111111100735493),
        *(-0.09090907008003227, 0.07692279891000552, -0.06666404438129865),
        *(0.058805298846729526, -0.052535270812955864, 0.047223492737180406),
        *(-0.042192457555029254, 0.036643201134804834, -0.0299058087635479),
        *(0.021987149042429332, -0.013902640588944897, 0.00719792575897647),
        *(-0.002885627889651036, 0.0008315652318609962, -0.00015221219870193814),
        1.3230091772371405e-05,
    ),
}
_ASIN = {
    "float": (0.16666752, 0.07495307, 0.045469638, 0.024181534, 0.042165037),
    "double": (
        *(0.1666666666666676, 0.07499999999970867, 0.04464285717455937, 0.030381942709939623),
        *(0.022372214933962416, 0.017351612884603268, 0.013980810971389734),
        *(0.011398984890791528, 0.010779871868343047, 0.0037077635317693423),
        *(0.02170432555336977, -0.02099485893090953, 0.0326261117857431),
    ),
}
_PI_HALVES = {
    "float": (1.5707964, -4.371139e-08),
    "double": (1.5707963267948966, 6.123233995736766e-17),
}


@dataclass(frozen=True, slots=True)
class ReducedAngle:
    """Reduced angle `n pi/2 + rest`; only the two lowest bits of `n` are significant."""

    n: IntVector
    remainder: FloatVector


def sin(x: FloatVector) -> FloatVector:
    """Emit the sine of angles of any magnitude."""
    return _of_any_size("sin", _sin, x)


def cos(x: FloatVector) -> FloatVector:
    """Emit the cosine of angles of any magnitude."""
    return _of_any_size("cos", _cos, x)


def tan(x: FloatVector) -> FloatVector:
    """Emit the tangent of angles of any magnitude."""
    return _of_any_size("tan", _tan, x)


def asin(x: FloatVector) -> FloatVector:
    """Emit the inverse sine; above 1/2 as pi/2 minus twice its value at `sqrt((1 - x) / 2)`."""
    size = abs(x)
    is_large, angle = _arc(size)
    high, low = _PI_HALVES[x.scalar]
    large_angle = high - (angle + angle - low)
    return is_large.select(large_angle, angle).with_bits(x.sign())


def acos(x: FloatVector) -> FloatVector:
    """Emit the inverse cosine as `pi/2 - asin(x)`; for |x| > 1/2 with asin of a half angle."""
    sign = x.sign()
    is_large, angle = _arc(abs(x))
    double = angle + angle
    high, low = _PI_HALVES[x.scalar]
    outer_angle = sign.is_not(0).select(2.0 * high - (double - 2.0 * low), double)
    mid_angle = high - (angle.flipped(sign) - low)
    return is_large.select(outer_angle, mid_angle)


def atan(x: FloatVector) -> FloatVector:
    """Emit the inverse tangent; above 1 as pi/2 minus its value at `1 / x`."""
    size = abs(x)
    is_large = size > 1.0
    inner = is_large.select(1.0 / size, size)
    angle = _arc_tangent(inner)
    return is_large.select(_from_half_pi(angle), angle).with_bits(x.sign())


def atan2(y: FloatVector, x: FloatVector) -> FloatVector:
    """Emit the angle of the point (x, y) from atan of the quotient in [0, 1] and the octant."""
    width, height = abs(x), abs(y)
    is_steep = height > width
    smaller = is_steep.select(width, height)
    larger = is_steep.select(height, width)
    # Define 0 / 0 as 0 and inf / inf as 1; NaN propagates.
    ratio = larger.is_equal(0.0).select(larger, smaller / larger)
    ratio = smaller.is_equal(float("inf")).select(x.constant(1.0), ratio)
    ratio = width.is_nan().select(width, height.is_nan().select(height, ratio))
    angle = _arc_tangent(ratio)
    angle = is_steep.select(_from_half_pi(angle), angle)
    high, low = _PI_HALVES[x.scalar]
    left_angle = 2.0 * high - (angle - 2.0 * low)
    return x.sign().is_not(0).select(left_angle, angle).with_bits(y.sign())


def _sin(angle: ReducedAngle) -> FloatVector:
    return _wave(angle.n, angle.remainder)


def _cos(angle: ReducedAngle) -> FloatVector:
    return _wave(angle.n + 1, angle.remainder)


def _wave(n: IntVector, r: FloatVector) -> FloatVector:
    """Emit sin(n pi/2 + r), which is sin(r) or cos(r) with either sign."""
    square = r * r
    # Adding 0 turns -0 into +0 here, so that sin(-0) is -0.
    sine = fma(fma(polynomial(square, _SIN[square.scalar]), square, 0.0), r, r)
    cosine = fma(polynomial(square, _COS[square.scalar]) * square, square, fma(square, -0.5, 1.0))
    return (n & 1).is_not(0).select(cosine, sine).flipped((n & 2) << r.sign_place - 1)


def _tan(angle: ReducedAngle) -> FloatVector:
    r = angle.remainder
    square = r * r
    tangent = fma(polynomial(square, _TAN[square.scalar]) * square, r, r)
    return (angle.n & 1).is_not(0).select(-1.0 / tangent, tangent)


def _of_any_size(
    name: str, formula: Callable[[ReducedAngle], FloatVector], x: FloatVector
) -> FloatVector:
    """Emit a formula with the fast reduction, and again with the slow one if an angle is large."""
    is_special = abs(x) > _FAR[x.scalar]
    fast = formula(_reduce_small(x))

    def far(angle: FloatVector) -> FloatVector:
        return formula(_reduce_large(angle)) if angle.scalar == "float" else call_libm_per_lane(
            name, angle)

    return fix_special_lanes(fast, is_special, f"{name}.far", far, (x,))


def _reduce_small(x: FloatVector) -> ReducedAngle:
    shifted = fma(x, _TWO_OVER_PI, x.format.rounder)
    n = shifted - x.format.rounder
    a, b, c, d = _HALF_PI[x.scalar]
    coarse = fma(n, -b, fma(n, -a, x))
    remainder = fma(n, -c, coarse)
    excess = fma(n, c, remainder - coarse)  # exact rounding error of `remainder`
    return ReducedAngle(shifted.bits(), remainder - fma(n, d, excess))


def _reduce_large(x: FloatVector) -> ReducedAngle:
    """Reduce a large float32: 24 bits of x times 96 bits of 2/pi, modulo 4, in units of 2**-62.

    Source:
        `reduce_large` of the Optimized Routines of Arm (math/sinf.h), which do it for one number.
    """
    threshold = _FAR["float"]
    # Small and infinite lanes are replaced by a large number within the range of the table.
    size = (abs(x) > threshold).select(abs(x), threshold)
    bits = (abs(x) < float("inf")).select(size, threshold).bits()
    bit_position = bits.unsigned_shift(23) - 136
    mantissa = ((bits & 0x7FFFFF) | 0x800000) << (bit_position & 7)
    factor = mantissa.cast("zext", "i64")
    high, middle, low = (factor * _digits(bit_position >> 3, offset) for offset in (0, 4, 8))
    product = (high << 32) + middle + low.unsigned_shift(32)
    quarters = (product + (1 << 61)).unsigned_shift(62)
    angle = (product - (quarters << 62)).number() * (math.pi * 2.0**-63)
    n = quarters.cast("trunc", "i32")
    remainder = angle.cast("fptrunc", "float") + (x - x)  # NaN for infinite x
    negative = x.bits() >> 31
    return ReducedAngle((n ^ negative) - negative, remainder.flipped(x.sign()))


def _digits(byte: IntVector, offset: int) -> IntVector:
    """Load 32 bits of 2/pi from a byte position on, as 64-bit integers."""
    code, lanes = byte.code, byte.lanes
    code.module.constants.setdefault(
        _TABLE, f"internal unnamed_addr constant {_two_over_pi_table()}"
    )
    positions = (byte + offset).cast("sext", "i64")
    pointers = code.op(f"getelementptr i32, ptr {_TABLE}, {positions.kind} {positions.operand}")
    if lanes == 1:
        return IntVector(code, code.op(f"load i32, ptr {pointers}"), "i32", 1).cast("zext", "i64")
    kind = vector_of("i32", lanes)
    words = code.call(
        kind,
        f"llvm.masked.gather.{suffix(kind)}.v{lanes}p0",
        [
            (f"<{lanes} x ptr> align 4", pointers),
            (vector_of("i1", lanes), splat("true", "i1", lanes)),
            (kind, "zeroinitializer"),
        ],
    )
    return IntVector(code, words, "i32", lanes).cast("zext", "i64")


def _two_over_pi_table() -> str:
    """Return the table of 2/pi as an LLVM constant: the 32 bits from each byte on."""
    size = 32 + 8 * (_WORDS - 1)
    words = [_DIGITS >> size - 32 - 8 * k & 0xFFFFFFFF for k in range(_WORDS)]
    return f"[{_WORDS} x i32] [{', '.join(f'i32 {word}' for word in words)}]"


def _arc(size: FloatVector) -> tuple[BoolVector, FloatVector]:
    """Return whether `size` > 1/2, and asin of `size` or, above, of `sqrt((1 - size) / 2)`."""
    is_large = size > 0.5
    half_arg = fma(size, -0.5, 0.5)
    square = is_large.select(half_arg, size * size)
    root = is_large.select(half_arg.intrinsic("sqrt"), size)
    return is_large, fma(polynomial(square, _ASIN[square.scalar]) * square, root, root)


def _arc_tangent(ratio: FloatVector) -> FloatVector:
    """Emit atan of a number in [0, 1]."""
    square = ratio * ratio
    return fma(polynomial(square, _ATAN[square.scalar]) * square, ratio, ratio)


def _from_half_pi(angle: FloatVector) -> FloatVector:
    high, low = _PI_HALVES[angle.scalar]
    return high - (angle - low)
