"""Complex exponentials, logarithms, powers, trigonometric functions and roots."""

from __future__ import annotations

import math
from collections.abc import Callable

from tecomp import te
from tecomp.ir.nodes.dtype import DType
from tecomp.ptensor.values import Complex

LOG_2 = math.log(2)
LOG2_E = 1 / LOG_2
LOG10_E = 1 / math.log(10)


def constant_like(value: float, x: te.Expr) -> te.Expr:
    """Return a constant of the dtype of `x`."""
    return te.const(value, x.dtype)


def is_float(x: te.Expr) -> bool:
    """Return whether `x` has a floating-point dtype."""
    return bool(DType(x.dtype).is_float)


def sign_bit(x: te.Expr) -> te.Expr:
    """Return whether the sign bit of a floating-point number is set, also for zeros and NaN."""
    bits = te.reinterpret(f"int{DType(x.dtype).bits}", x)
    return bits < constant_like(0, bits)


def halves(x: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Split a float64 into a sum of a 26-bit and a 27-bit number, whose products are exact."""
    mask = te.const((1 << 64) - (1 << 27), "uint64")
    high = te.reinterpret("float64", te.reinterpret("uint64", x) & mask)
    return high, x - high


def two_square(x: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return the rounded square of a float64 and its rounding error.

    Source:
        T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
    """
    high, low = halves(x)
    square = x * x
    return square, ((high * high - square) + (high + high) * low) + low * low


def two_sum(x: te.Expr, y: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return the rounded sum of two numbers and its rounding error.

    Source:
        D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B.
    """
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


# Beyond this, exp(x) = exp(x - _FAR_EXP) * exp(_FAR_EXP), applied once or twice; a small sine can
# bring the product back into range. The difference x - _FAR_EXP is exact.
_FAR_EXP = 700.0


def exp(z: Complex) -> Complex:
    """Compute the exponential."""
    size, factor, cosine, sine = _exp_parts(z)
    im = te.select(z.im == constant_like(0, z.im), z.im, size * sine * factor)
    return Complex(size * cosine * factor, im)


def expm1(z: Complex) -> Complex:
    """Compute `exp(z) - 1`, accurately near zero."""
    x, y = z.re, z.im
    one = constant_like(1, x)
    size, factor, cosine, sine = _exp_parts(z)
    half = te.sin(y * constant_like(0.5, y))
    near = te.expm1(x) * cosine - (half + half) * half
    far = size * cosine * factor - one
    is_far = te.any(te.abs(x) > constant_like(1, x), te.logical_not(te.isfinite(y)))
    zero = constant_like(0, y)
    im = te.select(y == zero, y, size * sine * factor)
    re = te.select(y == zero, te.expm1(x), te.select(is_far, far, near))
    return Complex(re, im)


def _exp_parts(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """Return `exp(z)` as a magnitude, a factor for the magnitude, a cosine and a sine."""
    x, y = z.re, z.im
    zero, one = constant_like(0, x), constant_like(1, x)
    far, growth = constant_like(_FAR_EXP, x), constant_like(math.exp(_FAR_EXP), x)
    is_far, is_farther = x > far, x > far + far
    size = te.exp(te.select(is_farther, x - (far + far), te.select(is_far, x - far, x)))
    factor, again = te.select(is_far, growth, one), te.select(is_farther, growth, one)
    # For infinite x and non-finite y, the angle is unknown: a zero has none, an infinity is real.
    lost = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    nowhere = x < zero
    cosine = te.select(lost, te.select(nowhere, zero, one), te.cos(y)) * again
    sine = te.select(te.all(lost, nowhere), zero, te.sin(y)) * again
    return size, factor, cosine, sine


def log(z: Complex) -> Complex:
    """Compute the natural logarithm, with an imaginary part in [-pi, pi]."""
    width, height = te.abs(z.re), te.abs(z.im)
    one = constant_like(1, z.re)
    most, least = te.max(width, height), te.min(width, height)
    # Near the unit circle, the accuracy depends on the distance from the circle.
    is_near = te.all(most > constant_like(0.5, most), most < constant_like(2, most))
    size = te.select(is_near, _log_beside_1(most - one, least), _log_of_size(width, height))
    return Complex(size, te.atan2(z.im, z.re))


def log1p(z: Complex) -> Complex:
    """Compute `log(1 + z)`, accurately near zero."""
    one, half = constant_like(1, z.re), constant_like(0.5, z.re)
    x, y = z.re + one, z.im
    width, height = te.abs(x), te.abs(y)
    most, least = te.max(width, height), te.min(width, height)
    # Below -1/2, 1 + x is exact; above, x itself is more accurate.
    is_small = te.all(z.re > -half, height < one)
    above, beside = te.select(is_small, z.re, most - one), te.select(is_small, height, least)
    is_near = te.all(most > half, most < constant_like(2, most))
    size = te.select(is_near, _log_beside_1(above, beside), _log_of_size(width, height))
    return Complex(size, te.atan2(y, x))


def log2(z: Complex) -> Complex:
    """Compute the base-2 logarithm."""
    return _scale_complex(log(z), LOG2_E)


def log10(z: Complex) -> Complex:
    """Compute the base-10 logarithm."""
    return _scale_complex(log(z), LOG10_E)


def _scale_complex(z: Complex, factor: float) -> Complex:
    return Complex(z.re * constant_like(factor, z.re), z.im * constant_like(factor, z.im))


def _log_of_size(x: te.Expr, y: te.Expr) -> te.Expr:
    """Return the logarithm of the magnitude, without overflow or underflow of the magnitude."""
    far = te.max(te.abs(x), te.abs(y)) > constant_like(2.0**1000, x)
    scale = te.select(far, constant_like(2.0**-10, x), constant_like(1, x))
    rest = te.select(far, constant_like(10 * math.log(2), x), constant_like(0, x))
    return te.log(te.hypot(x * scale, y * scale)) + rest


def _log_beside_1(x: te.Expr, y: te.Expr) -> te.Expr:
    """Return `log(hypot(1 + x, y))` as half of log1p of `2 x + x**2 + y**2`, which may cancel."""
    square, rest = two_square(x)
    other, other_rest = two_square(y)
    total, lost = two_sum(x + x, square)
    total, lost_then = two_sum(total, other)
    exact = total + (lost + lost_then + rest + other_rest)
    return te.log1p(exact) * constant_like(0.5, x)


def power(z: Complex, w: Complex) -> Complex:
    """Compute the principal value of `z` to the power `w`."""
    zero, one = constant_like(0, z.re), constant_like(1, z.re)
    size, angle = te.hypot(z.re, z.im), te.atan2(z.im, z.re)
    is_real = w.im == zero
    growth = te.select(is_real, one, te.exp(-w.im * angle))
    turn = w.im * te.log(size)
    length = te.pow(size, w.re) * growth
    whole = te.select(is_real, w.re * angle, w.re * angle + turn)
    re, im = length * te.cos(whole), length * te.sin(whole)
    is_none = te.all(z.re == zero, z.im == zero)
    of_none = te.select(te.all(w.re > zero, is_real), zero, constant_like(float("nan"), zero))
    re, im = te.select(is_none, of_none, re), te.select(is_none, of_none, im)
    is_one = te.all(w.re == zero, is_real)
    return Complex(te.select(is_one, one, re), te.select(is_one, zero, im))


# Beyond `_FAR_HYPERBOLIC`, hyperbolic functions behave as exponentials: f(x) = f(x - s) * exp(s),
# applied once or twice; a small sine can bring the product back into range.
_FAR_HYPERBOLIC, _STEP = 700.0, 400.0


def sinh(z: Complex) -> Complex:
    """Compute the hyperbolic sine."""
    x, y = z.re, z.im
    rest, once, twice, is_lost = _prepare_hyperbolic(z)
    re = te.sinh(rest) * (te.cos(y) * twice) * once
    im = te.cosh(rest) * (te.sin(y) * twice) * once
    re = te.select(is_lost, x, re)
    return Complex(re, te.select(y == constant_like(0, y), y, im))


def cosh(z: Complex) -> Complex:
    """Compute the hyperbolic cosine."""
    x, y = z.re, z.im
    zero = constant_like(0, x)
    rest, once, twice, is_lost = _prepare_hyperbolic(z)
    re = te.cosh(rest) * (te.cos(y) * twice) * once
    im = te.sinh(rest) * (te.sin(y) * twice) * once
    is_at_0 = te.all(is_lost, x == zero)
    re = te.select(is_at_0, constant_like(float("nan"), x), te.select(is_lost, te.abs(x), re))
    # The sign of the zero is the product of the signs of both parts.
    none = te.copysign(zero, te.copysign(constant_like(1, x), x)
        * te.copysign(constant_like(1, y), y))
    return Complex(re, te.select(te.any(y == zero, is_at_0), none, im))


def _prepare_hyperbolic(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """Return the reduced real part, two factors, and whether the angle is undefined.

    The angle is undefined if the imaginary part is not finite and the real part is 0 or infinite.
    """
    x = z.re
    size = te.abs(x)
    far, step = constant_like(_FAR_HYPERBOLIC, x), constant_like(_STEP, x)
    is_far, is_farther = size > far, size > far + step
    less = te.select(is_farther, step + step, te.select(is_far, step, constant_like(0, x)))
    growth, one = constant_like(math.exp(_STEP), x), constant_like(1, x)
    once, twice = te.select(is_far, growth, one), te.select(is_farther, growth, one)
    has_ends = te.any(x == constant_like(0, x), te.isinf(x))
    is_lost = te.all(has_ends, te.logical_not(te.isfinite(z.im)))
    return te.copysign(size - less, x), once, twice, is_lost


def tanh(z: Complex) -> Complex:
    """Compute the hyperbolic tangent from `exp(-2 |x|)`, which cannot overflow.

    With E = exp(-2 |x|), sinh(x) cosh(x) is (1 - E**2) / (4 E), and sinh(x)**2 is (1 - E)**2 / (4
    E).
    """
    x, y = z.re, z.im
    zero, one = constant_like(0, x), constant_like(1, x)
    double = te.abs(x) * constant_like(-2, x)
    less, small = te.expm1(double), te.exp(double)
    is_lost = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    cosine = te.select(is_lost, one, te.cos(y))
    sine = te.select(is_lost, zero, te.sin(y))
    four = small * constant_like(4, x)
    below = less * less + four * cosine * cosine
    re = te.copysign(te.abs(less) * (one + small) / below, x)
    im = four * sine * cosine / below
    re = te.select(te.all(x == zero, te.logical_not(te.isfinite(y))), x, re)
    return Complex(re, te.select(y == zero, y, im))


def sin(z: Complex) -> Complex:
    """Compute the sine."""
    return apply_rotated(sinh, z)


def cos(z: Complex) -> Complex:
    """Compute the cosine as cosh(i z)."""
    return cosh(Complex(-z.im, z.re))


def tan(z: Complex) -> Complex:
    """Compute the tangent."""
    return apply_rotated(tanh, z)


def apply_rotated(function: Callable[[Complex], Complex], z: Complex) -> Complex:
    """Return `-i f(i z)`."""
    turned = function(Complex(-z.im, z.re))
    return Complex(turned.im, -turned.re)


# Parts outside this range are scaled by powers of 4, whose roots are exact.
_FAR_ROOTS, _NEAR_ROOTS = 2.0**1000, 2.0**-900
_DOWN, _UP = 2.0**-10, 2.0**120


def sqrt(z: Complex) -> Complex:
    """Compute the square root with nonnegative real part.

    Source:
        W. Kahan, "Branch cuts for complex elementary functions", 1987, CSQRT.
    """
    x, y = z.re, z.im
    scale = _scale(z)
    width, height = te.abs(x) * scale, te.abs(y) * scale
    root_scale = te.select(
        scale == constant_like(_DOWN, x), constant_like(2.0**5, x),
        te.select(scale == constant_like(_UP, x), constant_like(2.0**-60, x), constant_like(1, x)),
    )
    root = te.sqrt((width + te.hypot(width, height)) * constant_like(0.5, x))
    other = te.select(root == constant_like(0, x), height, height / (root + root))
    root, other = root * root_scale, other * root_scale
    is_behind = x < constant_like(0, x)
    re = te.select(is_behind, other, root)
    im = te.select(is_behind, root, other)
    # Infinite y makes both parts infinite; infinite x makes one part infinite, by its sign.
    infinity, rest = constant_like(float("inf"), x), te.select(te.isnan(y), y, constant_like(0, x))
    far_x = te.isinf(x)
    re = te.select(far_x, te.select(is_behind, rest, infinity), re)
    im = te.select(far_x, te.select(is_behind, infinity, rest), im)
    far_y = te.isinf(y)
    re = te.select(far_y, infinity, re)
    im = te.select(far_y, infinity, im)
    return Complex(re, te.copysign(im, y))


def unit(z: Complex) -> Complex:
    """Return the number divided by its magnitude; 0 for 0, and NaN if a part is NaN."""
    x, y = z.re, z.im
    zero = constant_like(0, x)
    scale = _scale(z)
    width, height = x * scale, y * scale
    size = te.hypot(width, height)
    size = te.select(size == zero, constant_like(1, x), size)
    either = te.any(te.isnan(x), te.isnan(y))
    nan = x + y
    far_x, far_y = te.isinf(x), te.isinf(y)
    one = constant_like(1, x)
    re = te.select(far_x, te.copysign(one, x), te.select(far_y, zero, width / size))
    im = te.select(far_y, te.copysign(one, y), te.select(far_x, zero, height / size))
    both = te.any(either, te.all(far_x, far_y))
    undefined = te.select(either, nan, constant_like(float("nan"), x))
    is_none = te.all(x == zero, y == zero)
    re = te.select(both, undefined, te.select(is_none, zero, re))
    im = te.select(both, undefined, te.select(is_none, zero, im))
    return Complex(re, im)


def _scale(z: Complex) -> te.Expr:
    """Return a power of 4 that keeps sums of squares and quotients of a number in range."""
    most = te.max(te.abs(z.re), te.abs(z.im))
    small = te.select(
        most < constant_like(_NEAR_ROOTS, most), constant_like(_UP, most), constant_like(1, most)
    )
    return te.select(most > constant_like(_FAR_ROOTS, most), constant_like(_DOWN, most), small)


_HALF_PI = math.pi / 2
# Squares of parts above `_FAR_INVERSES` overflow, and squares below `_NEAR_INVERSES` underflow.
_FAR_INVERSES, _NEAR_INVERSES = 2.0**500, 2.0**-500


def asin(z: Complex) -> Complex:
    """Compute the inverse sine."""
    return apply_rotated(asinh, z)


def asinh(z: Complex) -> Complex:
    """Compute the inverse hyperbolic sine."""
    x, y = te.abs(z.re), te.abs(z.im)
    one = constant_like(1, x)
    # Square roots of 1 - i z and of 1 + i z.
    less, more = sqrt(Complex(one + y, -x)), sqrt(Complex(one - y, x))
    angle = te.atan2(y, less.re * more.re - less.im * more.im)
    size = _arsinh_of_product(more.re, less.im, -less.re, more.im)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, constant_like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(y == constant_like(0, y), y, angle)
    return Complex(te.copysign(size, z.re), te.copysign(angle, z.im))


def acos(z: Complex) -> Complex:
    """Compute the inverse cosine, with a real part in [0, pi]."""
    x, y = z.re, te.abs(z.im)
    one, zero = constant_like(1, x), constant_like(0, x)
    less, more = sqrt(Complex(one - x, -y)), sqrt(Complex(one + x, y))
    angle = constant_like(2, x) * te.atan2(less.re, more.re)
    size = _arsinh_of_product(more.re, less.im, -more.im, less.re)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, constant_like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(te.all(x == zero, te.isnan(y)), constant_like(_HALF_PI, x), angle)
    return Complex(angle, te.copysign(size, -z.im))


def acosh(z: Complex) -> Complex:
    """Compute the inverse hyperbolic cosine, with nonnegative real part."""
    turned = acos(z)
    return Complex(te.abs(turned.im), te.copysign(turned.re, z.im))


def _arsinh_of_product(a: te.Expr, b: te.Expr, c: te.Expr, d: te.Expr) -> te.Expr:
    """Return `asinh(a b + c d)` without overflow of the sum."""
    half = constant_like(0.5, a) * a * b + constant_like(0.5, a) * c * d
    is_far = te.abs(half) > constant_like(_FAR_INVERSES, a)
    rest = te.select(is_far, constant_like(LOG_2, a), constant_like(0, a))
    return te.asinh(te.abs(te.select(is_far, half, half + half))) + rest


def atan(z: Complex) -> Complex:
    """Compute the inverse tangent."""
    return apply_rotated(atanh, z)


def atanh(z: Complex) -> Complex:
    """Compute the inverse hyperbolic tangent."""
    x, y = z.re, z.im
    one, zero, half = constant_like(1, x), constant_like(0, x), constant_like(0.5, x)
    width = te.abs(x)
    is_far = te.max(width, te.abs(y)) > constant_like(_FAR_INVERSES, x)
    # Halve large values, because the distance itself may overflow.
    scale = te.select(is_far, half, one)
    distance = te.hypot((one - width) * scale, y * scale)
    is_near = distance < constant_like(_NEAR_INVERSES, x)
    # At small distances, the square underflows; its logarithm is twice that of the distance.
    near = constant_like(2.0**-63, x) / distance
    ratio = te.select(is_near, near, constant_like(4, x) * scale
        * (width * scale / distance / distance))
    factor = te.select(is_near, half, constant_like(0.25, x))
    rest = te.select(is_near, constant_like(32 * LOG_2, x), zero)
    size = te.log1p(ratio) * factor + rest
    angle = half * te.atan2(y + y, (one - width) * (one + width) - y * y)
    angle = te.select(is_far, te.copysign(constant_like(_HALF_PI, x), y), angle)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, zero, size)
    of_infinite = te.select(te.isnan(y), y, te.copysign(constant_like(_HALF_PI, x), y))
    angle = te.select(infinite, of_infinite, angle)
    size = te.select(x == zero, zero, size)
    return Complex(te.copysign(size, x), angle)
