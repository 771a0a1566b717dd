"""Square roots of complex numbers, and their directions, of any size without overflow."""

from __future__ import annotations

from tecomp import te
from tecomp.ptensor.formulas.numbers import like
from tecomp.ptensor.values import Complex

# Parts beyond these are scaled, by powers of 4 so that their roots are exact.
_FAR, _NEAR = 2.0**1000, 2.0**-900
_DOWN, _UP = 2.0**-10, 2.0**120


def sqrt(z: Complex) -> Complex:
    """The square root with a real part that is not negative.

    Source:
        W. Kahan, "Branch cuts for complex elementary functions", 1987, CSQRT.
    """
    x, y = z.re, z.im
    scale = _scale(z)
    width, height = te.abs(x) * scale, te.abs(y) * scale
    root_scale = te.select(
        scale == like(_DOWN, x), like(2.0**5, x),
        te.select(scale == like(_UP, x), like(2.0**-60, x), like(1, x)),
    )
    root = te.sqrt((width + te.hypot(width, height)) * like(0.5, x))
    other = te.select(root == like(0, x), height, height / (root + root))
    root, other = root * root_scale, other * root_scale
    is_behind = x < like(0, x)
    re = te.select(is_behind, other, root)
    im = te.select(is_behind, root, other)
    # Infinite parts: of y both are infinite, of x the one or the other.
    infinity, rest = like(float("inf"), x), te.select(te.isnan(y), y, like(0, x))
    far_x = te.isinf(x)
    re = te.select(far_x, te.select(is_behind, rest, infinity), re)
    im = te.select(far_x, te.select(is_behind, infinity, rest), im)
    far_y = te.isinf(y)
    re = te.select(far_y, infinity, re)
    im = te.select(far_y, infinity, im)
    return Complex(re, te.copysign(im, y))


def unit(z: Complex) -> Complex:
    """The direction: the number divided by its size; 0 of 0, and NaN if a part is NaN."""
    x, y = z.re, z.im
    zero = like(0, x)
    scale = _scale(z)
    width, height = x * scale, y * scale
    size = te.hypot(width, height)
    size = te.select(size == zero, like(1, x), size)
    either = te.any(te.isnan(x), te.isnan(y))
    nan = x + y
    far_x, far_y = te.isinf(x), te.isinf(y)
    one = like(1, x)
    re = te.select(far_x, te.copysign(one, x), te.select(far_y, zero, width / size))
    im = te.select(far_y, te.copysign(one, y), te.select(far_x, zero, height / size))
    both = te.any(either, te.all(far_x, far_y))
    undefined = te.select(either, nan, like(float("nan"), x))
    is_none = te.all(x == zero, y == zero)
    re = te.select(both, undefined, te.select(is_none, zero, re))
    im = te.select(both, undefined, te.select(is_none, zero, im))
    return Complex(re, im)


def _scale(z: Complex) -> te.Expr:
    """A power of 4 that keeps sums of squares and quotients of a number in range."""
    most = te.max(te.abs(z.re), te.abs(z.im))
    small = te.select(most < like(_NEAR, most), like(_UP, most), like(1, most))
    return te.select(most > like(_FAR, most), like(_DOWN, most), small)
