"""Exponential functions, logarithms and powers of complex numbers of two float64."""

from __future__ import annotations

import math

from tecomp import te
from tecomp.ptensor.formulas.numbers import LOG2_E, LOG10_E, added, like, squared
from tecomp.ptensor.values import Complex

# The exponential of a number beyond this is that of the rest times a constant, once or twice, which
# a small sine brings back into range. The difference is exact.
_FAR = 700.0


def exp(z: Complex) -> Complex:
    """Euler's number to the power `z`."""
    size, factor, cosine, sine = _turned(z)
    im = te.select(z.im == like(0, z.im), z.im, size * sine * factor)
    return Complex(size * cosine * factor, im)


def expm1(z: Complex) -> Complex:
    """`exp(z) - 1`, with the digits of small results."""
    x, y = z.re, z.im
    one = like(1, x)
    size, factor, cosine, sine = _turned(z)
    half = te.sin(y * like(0.5, y))
    near = te.expm1(x) * cosine - (half + half) * half
    far = size * cosine * factor - one
    is_far = te.any(te.abs(x) > like(1, x), te.logical_not(te.isfinite(y)))
    zero = like(0, y)
    im = te.select(y == zero, y, size * sine * factor)
    re = te.select(y == zero, te.expm1(x), te.select(is_far, far, near))
    return Complex(re, im)


def _turned(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """`exp(z)` as a size, a factor for it, a cosine and a sine."""
    x, y = z.re, z.im
    zero, one = like(0, x), like(1, x)
    far, growth = like(_FAR, x), like(math.exp(_FAR), x)
    is_far, is_farther = x > far, x > far + far
    size = te.exp(te.select(is_farther, x - (far + far), te.select(is_far, x - far, x)))
    factor, again = te.select(is_far, growth, one), te.select(is_farther, growth, one)
    # 0 has no direction, and infinity without one is real.
    lost = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    nowhere = x < zero
    cosine = te.select(lost, te.select(nowhere, zero, one), te.cos(y)) * again
    sine = te.select(te.all(lost, nowhere), zero, te.sin(y)) * again
    return size, factor, cosine, sine


def log(z: Complex) -> Complex:
    """The natural logarithm, with an imaginary part in [-pi, pi]."""
    width, height = te.abs(z.re), te.abs(z.im)
    one = like(1, z.re)
    most, least = te.max(width, height), te.min(width, height)
    # There, the digits of the result are those of the distance from the unit circle.
    is_near = te.all(most > like(0.5, most), most < like(2, most))
    size = te.select(is_near, _log_beside_1(most - one, least), _log_of_size(width, height))
    return Complex(size, te.atan2(z.im, z.re))


def log1p(z: Complex) -> Complex:
    """`log(1 + z)`, with the digits of small results."""
    one, half = like(1, z.re), like(0.5, z.re)
    x, y = z.re + one, z.im
    width, height = te.abs(x), te.abs(y)
    most, least = te.max(width, height), te.min(width, height)
    # Below -1/2, 1 + x is exact, and above it x itself has more digits.
    is_small = te.all(z.re > -half, height < one)
    above, beside = te.select(is_small, z.re, most - one), te.select(is_small, height, least)
    is_near = te.all(most > half, most < like(2, most))
    size = te.select(is_near, _log_beside_1(above, beside), _log_of_size(width, height))
    return Complex(size, te.atan2(y, x))


def log2(z: Complex) -> Complex:
    """The logarithm to base 2."""
    return _scaled(log(z), LOG2_E)


def log10(z: Complex) -> Complex:
    """The logarithm to base 10."""
    return _scaled(log(z), LOG10_E)


def _scaled(z: Complex, factor: float) -> Complex:
    return Complex(z.re * like(factor, z.re), z.im * like(factor, z.im))


def _log_of_size(x: te.Expr, y: te.Expr) -> te.Expr:
    """The logarithm of the size, also of one that is no number of the type."""
    far = te.max(te.abs(x), te.abs(y)) > like(2.0**1000, x)
    scale = te.select(far, like(2.0**-10, x), like(1, x))
    rest = te.select(far, like(10 * math.log(2), x), like(0, x))
    return te.log(te.hypot(x * scale, y * scale)) + rest


def _log_beside_1(x: te.Expr, y: te.Expr) -> te.Expr:
    """`log(hypot(1 + x, y))`: half of log1p of `2 x + x**2 + y**2`, which may cancel."""
    square, rest = squared(x)
    other, other_rest = squared(y)
    total, lost = added(x + x, square)
    total, lost_then = added(total, other)
    exact = total + (lost + lost_then + rest + other_rest)
    return te.log1p(exact) * like(0.5, x)


def power(z: Complex, w: Complex) -> Complex:
    """`z` to the power `w`: the principal value."""
    zero, one = like(0, z.re), like(1, z.re)
    size, angle = te.hypot(z.re, z.im), te.atan2(z.im, z.re)
    is_real = w.im == zero
    growth = te.select(is_real, one, te.exp(-w.im * angle))
    turn = w.im * te.log(size)
    length = te.pow(size, w.re) * growth
    whole = te.select(is_real, w.re * angle, w.re * angle + turn)
    re, im = length * te.cos(whole), length * te.sin(whole)
    is_none = te.all(z.re == zero, z.im == zero)
    of_none = te.select(te.all(w.re > zero, is_real), zero, like(float("nan"), zero))
    re, im = te.select(is_none, of_none, re), te.select(is_none, of_none, im)
    is_one = te.all(w.re == zero, is_real)
    return Complex(te.select(is_one, one, re), te.select(is_one, zero, im))
