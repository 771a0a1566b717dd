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
    small = te.expm1(x) * cosine - (half + half) * half
    large = size * cosine * factor - one
    is_large = te.any(te.abs(x) > constant_like(1, x), te.logical_not(te.isfinite(y)))
    zero = constant_like(0, y)
    im = te.select(y == zero, y, size * sine * factor)
    re = te.select(y == zero, te.expm1(x), te.select(is_large, large, small))
    return Complex(re, im)


def _exp_parts(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """Return `exp(z)` as a magnitude, a factor for the magnitude, a cosine and a sine."""
    x, y = z.re, z.im
    zero, one = constant_like(0, x), constant_like(1, x)
    limit, growth = constant_like(_FAR_EXP, x), constant_like(math.exp(_FAR_EXP), x)
    is_large, is_huge = x > limit, x > limit + limit
    size = te.exp(te.select(is_huge, x - (limit + limit), te.select(is_large, x - limit, x)))
    factor, second_factor = te.select(is_large, growth, one), te.select(is_huge, growth, one)
    # For infinite x and non-finite y, the angle is unknown: a zero has none, an infinity is real.
    is_undefined = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    is_vanishing = x < zero
    cosine = te.select(is_undefined, te.select(is_vanishing, zero, one), te.cos(y)) * second_factor
    sine = te.select(te.all(is_undefined, is_vanishing), zero, te.sin(y)) * second_factor
    return size, factor, cosine, sine


def log(z: Complex) -> Complex:
    """Compute the natural logarithm, with an imaginary part in [-pi, pi]."""
    width, height = te.abs(z.re), te.abs(z.im)
    one = constant_like(1, z.re)
    larger, smaller = te.max(width, height), te.min(width, height)
    # Near the unit circle, the accuracy depends on the distance from the circle.
    near_circle = te.all(larger > constant_like(0.5, larger), larger < constant_like(2, larger))
    size = te.select(near_circle, _log_beside_1(larger - one, smaller), _log_of_size(width, height))
    return Complex(size, te.atan2(z.im, z.re))


def log1p(z: Complex) -> Complex:
    """Compute `log(1 + z)`, accurately near zero."""
    one, half = constant_like(1, z.re), constant_like(0.5, z.re)
    x, y = z.re + one, z.im
    width, height = te.abs(x), te.abs(y)
    larger, smaller = te.max(width, height), te.min(width, height)
    # Below -1/2, 1 + x is exact; above, x itself is more accurate.
    is_small = te.all(z.re > -half, height < one)
    excess, minor = te.select(is_small, z.re, larger - one), te.select(is_small, height, smaller)
    near_circle = te.all(larger > half, larger < constant_like(2, larger))
    size = te.select(near_circle, _log_beside_1(excess, minor), _log_of_size(width, height))
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
    is_large = te.max(te.abs(x), te.abs(y)) > constant_like(2.0**1000, x)
    scale = te.select(is_large, constant_like(2.0**-10, x), constant_like(1, x))
    correction = te.select(is_large, constant_like(10 * math.log(2), x), constant_like(0, x))
    return te.log(te.hypot(x * scale, y * scale)) + correction


def _log_beside_1(x: te.Expr, y: te.Expr) -> te.Expr:
    """Return `log(hypot(1 + x, y))` as half of log1p of `2 x + x**2 + y**2`, which may cancel."""
    square, x_error = two_square(x)
    y_square, y_error = two_square(y)
    total, error1 = two_sum(x + x, square)
    total, error2 = two_sum(total, y_square)
    exact = total + (error1 + error2 + x_error + y_error)
    return te.log1p(exact) * constant_like(0.5, x)


def power(z: Complex, w: Complex) -> Complex:
    """Compute the principal value of `z` to the power `w`."""
    zero, one = constant_like(0, z.re), constant_like(1, z.re)
    size, angle = te.hypot(z.re, z.im), te.atan2(z.im, z.re)
    is_real = w.im == zero
    growth = te.select(is_real, one, te.exp(-w.im * angle))
    rotation = w.im * te.log(size)
    length = te.pow(size, w.re) * growth
    phase = te.select(is_real, w.re * angle, w.re * angle + rotation)
    re, im = length * te.cos(phase), length * te.sin(phase)
    is_zero = te.all(z.re == zero, z.im == zero)
    zero_power = te.select(te.all(w.re > zero, is_real), zero, constant_like(float("nan"), zero))
    re, im = te.select(is_zero, zero_power, re), te.select(is_zero, zero_power, im)
    is_one = te.all(w.re == zero, is_real)
    return Complex(te.select(is_one, one, re), te.select(is_one, zero, im))


# Beyond `_FAR_HYPERBOLIC`, hyperbolic functions behave as exponentials: f(x) = f(x - s) * exp(s),
# applied once or twice; a small sine can bring the product back into range.
_FAR_HYPERBOLIC, _STEP = 700.0, 400.0


def sinh(z: Complex) -> Complex:
    """Compute the hyperbolic sine."""
    x, y = z.re, z.im
    reduced, scale1, scale2, is_undefined = _prepare_hyperbolic(z)
    re = te.sinh(reduced) * (te.cos(y) * scale2) * scale1
    im = te.cosh(reduced) * (te.sin(y) * scale2) * scale1
    re = te.select(is_undefined, x, re)
    return Complex(re, te.select(y == constant_like(0, y), y, im))


def cosh(z: Complex) -> Complex:
    """Compute the hyperbolic cosine."""
    x, y = z.re, z.im
    zero = constant_like(0, x)
    reduced, scale1, scale2, is_undefined = _prepare_hyperbolic(z)
    re = te.cosh(reduced) * (te.cos(y) * scale2) * scale1
    im = te.sinh(reduced) * (te.sin(y) * scale2) * scale1
    is_at_0 = te.all(is_undefined, x == zero)
    re = te.select(is_at_0, constant_like(float("nan"), x), te.select(is_undefined, te.abs(x), re))
    # The sign of the zero is the product of the signs of both parts.
    signed_zero = te.copysign(zero, te.copysign(constant_like(1, x), x)
        * te.copysign(constant_like(1, y), y))
    return Complex(re, te.select(te.any(y == zero, is_at_0), signed_zero, im))


def _prepare_hyperbolic(z: Complex) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """Return the reduced real part, two factors, and whether the angle is undefined.

    The angle is undefined if the imaginary part is not finite and the real part is 0 or infinite.
    """
    x = z.re
    size = te.abs(x)
    limit, step = constant_like(_FAR_HYPERBOLIC, x), constant_like(_STEP, x)
    is_large, is_huge = size > limit, size > limit + step
    reduction = te.select(is_huge, step + step, te.select(is_large, step, constant_like(0, x)))
    growth, one = constant_like(math.exp(_STEP), x), constant_like(1, x)
    scale1, scale2 = te.select(is_large, growth, one), te.select(is_huge, growth, one)
    has_ends = te.any(x == constant_like(0, x), te.isinf(x))
    is_undefined = te.all(has_ends, te.logical_not(te.isfinite(z.im)))
    return te.copysign(size - reduction, x), scale1, scale2, is_undefined


def tanh(z: Complex) -> Complex:
    """Compute the hyperbolic tangent from `exp(-2 |x|)`, which cannot overflow.

    With E = exp(-2 |x|), sinh(x) cosh(x) is (1 - E**2) / (4 E), and sinh(x)**2 is (1 - E)**2 / (4
    E).
    """
    x, y = z.re, z.im
    zero, one = constant_like(0, x), constant_like(1, x)
    exponent = te.abs(x) * constant_like(-2, x)
    decay_m1, decay = te.expm1(exponent), te.exp(exponent)
    is_undefined = te.all(te.isinf(x), te.logical_not(te.isfinite(y)))
    cosine = te.select(is_undefined, one, te.cos(y))
    sine = te.select(is_undefined, zero, te.sin(y))
    four = decay * constant_like(4, x)
    denominator = decay_m1 * decay_m1 + four * cosine * cosine
    re = te.copysign(te.abs(decay_m1) * (one + decay) / denominator, x)
    im = four * sine * cosine / denominator
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
    rotated = function(Complex(-z.im, z.re))
    return Complex(rotated.im, -rotated.re)


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
    is_negative = x < constant_like(0, x)
    re = te.select(is_negative, other, root)
    im = te.select(is_negative, root, other)
    # Infinite y makes both parts infinite; infinite x makes one part infinite, by its sign.
    infinity, rest = constant_like(float("inf"), x), te.select(te.isnan(y), y, constant_like(0, x))
    x_infinite = te.isinf(x)
    re = te.select(x_infinite, te.select(is_negative, rest, infinity), re)
    im = te.select(x_infinite, te.select(is_negative, infinity, rest), im)
    y_infinite = te.isinf(y)
    re = te.select(y_infinite, infinity, re)
    im = te.select(y_infinite, infinity, im)
    return Complex(re, te.copysign(im, y))


def unit(z: Complex) -> Complex:
    """Return the number divided by its magnitude; 0 for 0, and NaN if a part is NaN."""
    x, y = z.re, z.im
    zero = constant_like(0, x)
    scale = _scale(z)
    width, height = x * scale, y * scale
    size = te.hypot(width, height)
    size = te.select(size == zero, constant_like(1, x), size)
    has_nan = te.any(te.isnan(x), te.isnan(y))
    nan = x + y
    x_infinite, y_infinite = te.isinf(x), te.isinf(y)
    one = constant_like(1, x)
    re = te.select(x_infinite, te.copysign(one, x), te.select(y_infinite, zero, width / size))
    im = te.select(y_infinite, te.copysign(one, y), te.select(x_infinite, zero, height / size))
    is_undefined = te.any(has_nan, te.all(x_infinite, y_infinite))
    undefined = te.select(has_nan, nan, constant_like(float("nan"), x))
    is_zero = te.all(x == zero, y == zero)
    re = te.select(is_undefined, undefined, te.select(is_zero, zero, re))
    im = te.select(is_undefined, undefined, te.select(is_zero, zero, im))
    return Complex(re, im)


def _scale(z: Complex) -> te.Expr:
    """Return a power of 4 that keeps sums of squares and quotients of a number in range."""
    size = te.max(te.abs(z.re), te.abs(z.im))
    small = te.select(
        size < constant_like(_NEAR_ROOTS, size), constant_like(_UP, size), constant_like(1, size)
    )
    return te.select(size > constant_like(_FAR_ROOTS, size), constant_like(_DOWN, size), small)


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
    root_minus, root_plus = sqrt(Complex(one + y, -x)), sqrt(Complex(one - y, x))
    angle = te.atan2(y, root_minus.re * root_plus.re - root_minus.im * root_plus.im)
    size = _arsinh_of_product(root_plus.re, root_minus.im, -root_minus.re, root_plus.im)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, constant_like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(y == constant_like(0, y), y, angle)
    return Complex(te.copysign(size, z.re), te.copysign(angle, z.im))


def acos(z: Complex) -> Complex:
    """Compute the inverse cosine, with a real part in [0, pi]."""
    x, y = z.re, te.abs(z.im)
    one, zero = constant_like(1, x), constant_like(0, x)
    root_minus, root_plus = sqrt(Complex(one - x, -y)), sqrt(Complex(one + x, y))
    angle = constant_like(2, x) * te.atan2(root_minus.re, root_plus.re)
    size = _arsinh_of_product(root_plus.re, root_minus.im, -root_plus.im, root_minus.re)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, constant_like(float("inf"), x), size)
    angle = te.select(infinite, te.atan2(y, x), angle)
    angle = te.select(te.all(x == zero, te.isnan(y)), constant_like(_HALF_PI, x), angle)
    return Complex(angle, te.copysign(size, -z.im))


def acosh(z: Complex) -> Complex:
    """Compute the inverse hyperbolic cosine, with nonnegative real part."""
    angle = acos(z)
    return Complex(te.abs(angle.im), te.copysign(angle.re, z.im))


def _arsinh_of_product(a: te.Expr, b: te.Expr, c: te.Expr, d: te.Expr) -> te.Expr:
    """Return `asinh(a b + c d)` without overflow of the sum."""
    half_sum = constant_like(0.5, a) * a * b + constant_like(0.5, a) * c * d
    is_large = te.abs(half_sum) > constant_like(_FAR_INVERSES, a)
    correction = te.select(is_large, constant_like(LOG_2, a), constant_like(0, a))
    return te.asinh(te.abs(te.select(is_large, half_sum, half_sum + half_sum))) + correction


def atan(z: Complex) -> Complex:
    """Compute the inverse tangent."""
    return apply_rotated(atanh, z)


def atanh(z: Complex) -> Complex:
    """Compute the inverse hyperbolic tangent."""
    x, y = z.re, z.im
    one, zero, half = constant_like(1, x), constant_like(0, x), constant_like(0.5, x)
    width = te.abs(x)
    is_large = te.max(width, te.abs(y)) > constant_like(_FAR_INVERSES, x)
    # Halve large values, because the distance itself may overflow.
    scale = te.select(is_large, half, one)
    distance = te.hypot((one - width) * scale, y * scale)
    is_close = distance < constant_like(_NEAR_INVERSES, x)
    # At small distances, the square underflows; its logarithm is twice that of the distance.
    close_ratio = constant_like(2.0**-63, x) / distance
    ratio = te.select(is_close, close_ratio, constant_like(4, x) * scale
        * (width * scale / distance / distance))
    factor = te.select(is_close, half, constant_like(0.25, x))
    correction = te.select(is_close, constant_like(32 * LOG_2, x), zero)
    size = te.log1p(ratio) * factor + correction
    angle = half * te.atan2(y + y, (one - width) * (one + width) - y * y)
    angle = te.select(is_large, te.copysign(constant_like(_HALF_PI, x), y), angle)
    infinite = te.any(te.isinf(x), te.isinf(y))
    size = te.select(infinite, zero, size)
    of_infinite = te.select(te.isnan(y), y, te.copysign(constant_like(_HALF_PI, x), y))
    angle = te.select(infinite, of_infinite, angle)
    size = te.select(x == zero, zero, size)
    return Complex(te.copysign(size, x), angle)
