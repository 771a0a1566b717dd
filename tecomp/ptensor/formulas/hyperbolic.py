"""Hyperbolic and circular functions of complex numbers of two float64."""

from __future__ import annotations

import math
from collections.abc import Callable

from tecomp import te
from tecomp.ptensor.formulas.numbers import like
from tecomp.ptensor.values import Complex

# Beyond `_FAR` a hyperbolic function is that of the rest times a constant, once or twice, since it
# is an exponential there; a small sine brings the product back into range.
_FAR, _STEP = 700.0, 400.0


def sinh(z: Complex) -> Complex:
    """The hyperbolic sine."""
    x, y = z.re, z.im
    rest, once, twice, is_lost = _prepared(z)
    re = te.sinh(rest) * (te.cos(y) * twice) * once
    im = te.cosh(rest) * (te.sin(y) * twice) * once
    re = te.select(is_lost, x, re)
    return Complex(re, te.select(y == like(0, y), y, im))


def cosh(z: Complex) -> Complex:
    """The hyperbolic cosine."""
    x, y = z.re, z.im
    zero = like(0, x)
    rest, once, twice, is_lost = _prepared(z)
    re = te.cosh(rest) * (te.cos(y) * twice) * once
    im = te.sinh(rest) * (te.sin(y) * twice) * once
    is_at_0 = te.all(is_lost, x == zero)
    re = te.select(is_at_0, like(float("nan"), x), te.select(is_lost, te.abs(x), re))
    # The sign of each part counts.
    none = te.copysign(zero, te.copysign(like(1, x), x) * te.copysign(like(1, y), y))
    return Complex(re, te.select(te.any(y == zero, is_at_0), none, im))


def _prepared(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """The real part brought into range, two factors for that, and whether an angle is lost.

    It is lost where the imaginary part is not finite, and the real part is 0 or infinite.
    """
    x = z.re
    size = te.abs(x)
    far, step = like(_FAR, x), like(_STEP, x)
    is_far, is_farther = size > far, size > far + step
    less = te.select(is_farther, step + step, te.select(is_far, step, like(0, x)))
    growth, one = like(math.exp(_STEP), x), like(1, x)
    once, twice = te.select(is_far, growth, one), te.select(is_farther, growth, one)
    has_ends = te.any(x == like(0, x), te.isinf(x))
    is_lost = te.all(has_ends, te.logical_not(te.isfinite(z.im)))
    return te.copysign(size - less, x), once, twice, is_lost


def tanh(z: Complex) -> Complex:
    """The hyperbolic tangent: all is of `exp(-2 |x|)`, so that nothing overflows.

    Of E = exp(-2 |x|), sinh(x) cosh(x) is (1 - E**2) / (4 E), and sinh(x)**2 is (1 - E)**2 / (4 E).
    """
    x, y = z.re, z.im
    zero, one = like(0, x), like(1, x)
    double = te.abs(x) * like(-2, x)
    less, small = te.expm1(double), te.exp(double)
    is_lost = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    cosine = te.select(is_lost, one, te.cos(y))
    sine = te.select(is_lost, zero, te.sin(y))
    four = small * like(4, x)
    below = less * less + four * cosine * cosine
    re = te.copysign(te.abs(less) * (one + small) / below, x)
    im = four * sine * cosine / below
    re = te.select(te.all(x == zero, te.logical_not(te.isfinite(y))), x, re)
    return Complex(re, te.select(y == zero, y, im))


def sin(z: Complex) -> Complex:
    """The sine."""
    return turned_back(sinh, z)


def cos(z: Complex) -> Complex:
    """The cosine: cosh(i z)."""
    return cosh(Complex(-z.im, z.re))


def tan(z: Complex) -> Complex:
    """The tangent."""
    return turned_back(tanh, z)


def turned_back(function: Callable[[Complex], Complex], z: Complex) -> Complex:
    """`-i f(i z)`."""
    turned = function(Complex(-z.im, z.re))
    return Complex(turned.im, -turned.re)
