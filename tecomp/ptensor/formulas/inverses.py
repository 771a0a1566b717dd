"""Inverses of hyperbolic and circular functions of complex numbers of two float64.

Source:
    W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign
    bit", 1987. His formulas lose no digits, for the parts of the two roots are never subtracted.
"""

from __future__ import annotations

import math

from tecomp import te
from tecomp.ptensor.formulas.hyperbolic import turned_back
from tecomp.ptensor.formulas.numbers import LOG_2, like
from tecomp.ptensor.formulas.roots import sqrt
from tecomp.ptensor.values import Complex

_HALF_PI = math.pi / 2
# Squares of parts beyond `_FAR` have no room, and logarithms of what is below `_NEAR` squared.
_FAR, _NEAR = 2.0**500, 2.0**-500


def asin(z: Complex) -> Complex:
    """The inverse of `sin`."""
    return turned_back(asinh, z)


def asinh(z: Complex) -> Complex:
    """The inverse of `sinh`: its parts are those of asin(i z), turned back."""
    x, y = te.abs(z.re), te.abs(z.im)
    one = like(1, x)
    # The roots of 1 - i z and of 1 + i z.
    less, more = sqrt(Complex(one + y, -x)), sqrt(Complex(one - y, x))
    angle = te.atan2(y, less.re * more.re - less.im * more.im)
    size = _arsinh_of_product(more.re, less.im, -less.re, more.im)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(y == like(0, y), y, angle)
    return Complex(te.copysign(size, z.re), te.copysign(angle, z.im))


def acos(z: Complex) -> Complex:
    """The inverse of `cos`, with a real part in [0, pi]."""
    x, y = z.re, te.abs(z.im)
    one, zero = like(1, x), like(0, x)
    less, more = sqrt(Complex(one - x, -y)), sqrt(Complex(one + x, y))
    angle = like(2, x) * te.atan2(less.re, more.re)
    size = _arsinh_of_product(more.re, less.im, -more.im, less.re)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(te.all(x == zero, te.isnan(y)), like(_HALF_PI, x), angle)
    return Complex(angle, te.copysign(size, -z.im))


def acosh(z: Complex) -> Complex:
    """The inverse of `cosh`, with a real part that is not negative."""
    turned = acos(z)
    return Complex(te.abs(turned.im), te.copysign(turned.re, z.im))


def _arsinh_of_product(a: te.Expr, b: te.Expr, c: te.Expr, d: te.Expr) -> te.Expr:
    """`asinh(a b + c d)`, where the sum may be no number of the type."""
    half = like(0.5, a) * a * b + like(0.5, a) * c * d
    is_far = te.abs(half) > like(_FAR, a)
    rest = te.select(is_far, like(LOG_2, a), like(0, a))
    return te.asinh(te.abs(te.select(is_far, half, half + half))) + rest


def atan(z: Complex) -> Complex:
    """The inverse of `tan`."""
    return turned_back(atanh, z)


def atanh(z: Complex) -> Complex:
    """The inverse of `tanh`."""
    x, y = z.re, z.im
    one, zero, half = like(1, x), like(0, x), like(0.5, x)
    width = te.abs(x)
    is_far = te.max(width, te.abs(y)) > like(_FAR, x)
    # Of what is far, the half: the distance itself may be no number.
    scale = te.select(is_far, half, one)
    distance = te.hypot((one - width) * scale, y * scale)
    is_near = distance < like(_NEAR, x)
    # So near, the square is no number, and its logarithm is twice that of the distance.
    near = like(2.0**-63, x) / distance
    ratio = te.select(is_near, near, like(4, x) * scale * (width * scale / distance / distance))
    factor = te.select(is_near, half, like(0.25, x))
    rest = te.select(is_near, like(32 * LOG_2, x), zero)
    size = te.log1p(ratio) * factor + rest
    angle = half * te.atan2(y + y, (one - width) * (one + width) - y * y)
    angle = te.select(is_far, te.copysign(like(_HALF_PI, x), y), angle)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, zero, size)
    of_infinite = te.select(te.isnan(y), y, te.copysign(like(_HALF_PI, x), y))
    angle = te.select(infinite, of_infinite, angle)
    size = te.select(x == zero, zero, size)
    return Complex(te.copysign(size, x), angle)
