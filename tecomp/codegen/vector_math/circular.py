"""sin, cos, tan and their inverses.

`x = n pi/2 + r` with r in [-pi/4, pi/4]. Up to some thousand, n times pi/2 is subtracted in four
parts, the first three of which have so few bits that n times them is exact. Beyond, the product of
x and 2/pi is formed from as many bits of 2/pi as x calls for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tecomp.codegen.emit import close_guard, open_guard
from tecomp.codegen.types import splat, suffix, vector_of
from tecomp.codegen.vector_math.helper import call_helper, define_once
from tecomp.codegen.vector_math.lanes import Real, Truth, Whole, fma, polynomial

_ROUNDER = 1.5 * 2.0**23
_TWO_OVER_PI = 0.63661977236758134308
_HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
_FAR = 12800.0  # n has 13 bits up to here

# The fraction of 2 / pi after 16 bits of zeros, 32 bits from every byte on.
_TABLE = "@tecomp.two_over_pi"
_DIGITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041
_WORDS = 23

# (sin(r) - r) / r**3, (cos(r) - 1 + r**2 / 2) / r**4, (tan(r) - r) / r**3 on [0, pi/4],
# (atan(r) - r) / r**3 on [0, 1], (asin(r) - r) / r**3 on [0, 1/2], all in r**2.
_SIN = (-0.16666667, 0.008333372, -0.00019849907, 2.8004583e-06)
_COS = (0.041666646, -0.0013887311, 2.443255e-05)
_TAN = (
    *(0.3333335, 0.13332675, 0.05405895, 0.021285793),
    *(0.010829082, 9.550667e-05, 0.0043743495),
)
_ATAN = (
    *(-0.333333, 0.19998536, -0.14264126, 0.109516546, -0.08402056),
    *(0.0579358, -0.031157766, 0.010904537, -0.001791502),
)
_ASIN = (0.16666752, 0.07495307, 0.045469638, 0.024181534, 0.042165037)
_PI_HALVES = (1.5707964, -4.371139e-08)


@dataclass(frozen=True, slots=True)
class Quadrant:
    """An angle as `n pi/2 + rest`; the two lowest bits of `n` count."""

    n: Whole
    rest: Real


def sin(x: Real) -> Real:
    """Of angles of any size."""
    return _of_any_size("sin", _sin, x)


def cos(x: Real) -> Real:
    """Of angles of any size."""
    return _of_any_size("cos", _cos, x)


def tan(x: Real) -> Real:
    """Of angles of any size."""
    return _of_any_size("tan", _tan, x)


def asin(x: Real) -> Real:
    """The inverse of `sin`: above 1/2 as pi/2 less twice that of `sqrt((1 - x) / 2)`."""
    size = abs(x)
    is_far, angle = _arc(size)
    beyond = _PI_HALVES[0] - (angle + angle - _PI_HALVES[1])
    return is_far.select(beyond, angle).with_bits(x.sign())


def acos(x: Real) -> Real:
    """The inverse of `cos`: pi/2 less asin, but above 1/2 twice asin of `sqrt((1 - x) / 2)`."""
    sign = x.sign()
    is_far, angle = _arc(abs(x))
    double = angle + angle
    turned = sign.is_not(0).select(2.0 * _PI_HALVES[0] - (double - 2.0 * _PI_HALVES[1]), double)
    middle = _PI_HALVES[0] - (angle.flipped(sign) - _PI_HALVES[1])
    return is_far.select(turned, middle)


def atan(x: Real) -> Real:
    """The inverse of `tan`: above 1 as pi/2 less that of `1 / x`."""
    size = abs(x)
    is_far = size > 1.0
    inner = is_far.select(1.0 / size, size)
    angle = _arc_tangent(inner)
    return is_far.select(_from_half_pi(angle), angle).with_bits(x.sign())


def atan2(y: Real, x: Real) -> Real:
    """The angle of the point (x, y): atan of the quotient below 1, and its octant."""
    width, height = abs(x), abs(y)
    is_steep = height > width
    least = is_steep.select(width, height)
    most = is_steep.select(height, width)
    # 0 / 0 stands for 0 and inf / inf for 1; NaN in either stays.
    ratio = most.is_equal(0.0).select(most, least / most)
    ratio = least.is_equal(float("inf")).select(x.constant(1.0), ratio)
    ratio = width.is_nan().select(width, height.is_nan().select(height, ratio))
    angle = _arc_tangent(ratio)
    angle = is_steep.select(_from_half_pi(angle), angle)
    behind = 2.0 * _PI_HALVES[0] - (angle - 2.0 * _PI_HALVES[1])
    return x.sign().is_not(0).select(behind, angle).with_bits(y.sign())


def _sin(angle: Quadrant) -> Real:
    return _wave(angle.n, angle.rest)


def _cos(angle: Quadrant) -> Real:
    return _wave(angle.n + 1, angle.rest)


def _wave(n: Whole, r: Real) -> Real:
    """sin(n pi/2 + r): of r sine, cosine, or one of them negative."""
    square = r * r
    # Adding 0 makes a positive 0 of a negative one; with that, -0 gives -0.
    sine = fma(fma(polynomial(square, _SIN), square, 0.0), r, r)
    cosine = fma(polynomial(square, _COS) * square, square, fma(square, -0.5, 1.0))
    return (n & 1).is_not(0).select(cosine, sine).flipped((n & 2) << 30)


def _tan(angle: Quadrant) -> Real:
    r = angle.rest
    square = r * r
    tangent = fma(polynomial(square, _TAN) * square, r, r)
    return (angle.n & 1).is_not(0).select(-1.0 / tangent, tangent)


def _of_any_size(name: str, formula: Callable[[Quadrant], Real], x: Real) -> Real:
    """The formula on all lanes as if no angle were far, and on all once more if one is."""
    code = x.code
    is_far = abs(x) > _FAR
    near = formula(_near(x))
    guard = open_guard(code, is_far.any())
    far = call_helper(f"{name}.far", lambda v: formula(_far(v)), (x,), "noinline cold")
    mixed = is_far.select(far, near)
    joined = close_guard(code, guard, mixed.operand, x.kind, near.operand)
    return Real(code, joined, x.scalar, x.lanes)


def _near(x: Real) -> Quadrant:
    shifted = fma(x, _TWO_OVER_PI, _ROUNDER)
    n = shifted - _ROUNDER
    a, b, c, d = _HALF_PI
    coarse = fma(n, -b, fma(n, -a, x))
    rest = fma(n, -c, coarse)
    excess = fma(n, c, rest - coarse)  # what the rounding of `rest` has added, exactly
    return Quadrant(shifted.bits(), rest - fma(n, d, excess))


def _far(x: Real) -> Quadrant:
    """The 24 bits of x times 96 bits of 2/pi, a multiple of 2**-62 modulo 4.

    Source:
        `reduce_large` of the Optimized Routines of Arm (math/sinf.h), which do it for one number.
    """
    # Lanes that are not far, or infinite, become some number that is: the table has its digits.
    size = (abs(x) > _FAR).select(abs(x), _FAR)
    bits = (abs(x) < float("inf")).select(size, _FAR).bits()
    place = bits.unsigned_shift(23) - 136
    mantissa = ((bits & 0x7FFFFF) | 0x800000) << (place & 7)
    factor = mantissa.cast("zext", "i64")
    high, middle, low = (factor * _digits(place >> 3, offset) for offset in (0, 4, 8))
    product = (high << 32) + middle + low.unsigned_shift(32)
    quarters = (product + (1 << 61)).unsigned_shift(62)
    angle = (product - (quarters << 62)).number() * (math.pi * 2.0**-63)
    n = quarters.cast("trunc", "i32")
    rest = angle.cast("fptrunc", "float") + (x - x)  # NaN for what is infinite
    negative = x.bits() >> 31
    return Quadrant((n ^ negative) - negative, rest.flipped(x.sign()))


def _digits(byte: Whole, offset: int) -> Whole:
    """32 bits of 2/pi from a byte on, as 64-bit numbers."""
    code, lanes = byte.code, byte.lanes
    head = f"{_TABLE} = internal unnamed_addr constant"
    define_once(code.module, head, lambda: f"{head} {_listed()}\n")
    places = (byte + offset).cast("sext", "i64")
    pointers = code.op(f"getelementptr i32, ptr {_TABLE}, {places.kind} {places.operand}")
    if lanes == 1:
        return Whole(code, code.op(f"load i32, ptr {pointers}"), "i32", 1).cast("zext", "i64")
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
    return Whole(code, words, "i32", lanes).cast("zext", "i64")


def _listed() -> str:
    """The table: 32 bits from every byte on."""
    size = 32 + 8 * (_WORDS - 1)
    words = [_DIGITS >> size - 32 - 8 * k & 0xFFFFFFFF for k in range(_WORDS)]
    return f"[{_WORDS} x i32] [{', '.join(f'i32 {word}' for word in words)}]"


def _arc(size: Real) -> tuple[Truth, Real]:
    """Where `size` is above 1/2, and asin of it, or there of `sqrt((1 - size) / 2)`."""
    is_far = size > 0.5
    rest = fma(size, -0.5, 0.5)
    square = is_far.select(rest, size * size)
    root = is_far.select(rest.intrinsic("sqrt"), size)
    return is_far, fma(polynomial(square, _ASIN) * square, root, root)


def _arc_tangent(ratio: Real) -> Real:
    """The angle of a tangent in [0, 1]."""
    square = ratio * ratio
    return fma(polynomial(square, _ATAN) * square, ratio, ratio)


def _from_half_pi(angle: Real) -> Real:
    return _PI_HALVES[0] - (angle - _PI_HALVES[1])
