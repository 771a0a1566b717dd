"""float64 pow (in double-double arithmetic), hypot and inverse hyperbolic functions.

`pow` represents the logarithm, and its product with the exponent, as unevaluated sums of two
numbers. The rounding error of a product is computed by an FMA, or by splitting both factors into
halves (Dekker).
"""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.math.exp_log import exponent_number, log1p, power_of_2
from tecomp.codegen.math.power_float32 import with_limits_of_power
from tecomp.codegen.math.vector_values import (
    BoolVector,
    FloatVector,
    fix_special_lanes,
    fma,
    polynomial,
)

_TWO_THIRDS = 0x3FE5555555555555
_EXPONENT = -(1 << 52)
_BIAS = 1023 << 52
_UPPER = -(1 << 27)  # mask of 26 significant bits: the product of two such numbers is exact
_MANTISSA = 52
_INFINITY = float("inf")
_LN2 = 0.6931471805599453
_ROUNDER = 1.5 * 2.0**52
_NORMAL = 1021.0  # results 2**e with |e| below this are normal numbers

# (3 log((1 + s) / (1 - s)) / (2 s) - 3 - s**2) / s**4 on [0, 1/5], in s**2.
_LOG = (
    *(0.6, 0.42857142857142916, 0.33333333333315585, 0.2727272727564533),
    *(0.2307692278787762, 0.2000001829137236, 0.17646302108288905, 0.15809821620623132),
    *(0.13944430647217673, 0.16245314102049366),
)
_UNIT = (0.9617966939259756, 5.0577616648125907e-17)  # 2 / (3 ln 2) in double-double


@dataclass(frozen=True, slots=True)
class DoubleDouble:
    """Double-double number `high + low`; `low` is at most about two ulp of `high`."""

    high: FloatVector
    low: FloatVector


def power(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit pow as `2**(y log2|x|)`; negative x require an integer y, else NaN.

    An out-of-line function handles arguments and results that are not positive normal numbers. It
    is called only if a lane requires it.

    Source:
        `e_pow.c` of FreeBSD's msun, for the series of the logarithm.
    """
    exponent = _times(y, _log2(x, 0.0))
    fast, shifted = _exp2(exponent)
    fast = (fast.bits() + (shifted.bits() << _MANTISSA)).real()
    is_normal = (x.constant(x.format.tiny) <= x) & (x < _INFINITY)
    is_special = ~(is_normal & (abs(exponent.high) < _NORMAL))
    return fix_special_lanes(fast, is_special, "pow.far", _power_of_any, (x, y))


def _power_of_any(x: FloatVector, y: FloatVector) -> FloatVector:
    # For larger |y|, the result is 0, 1 or infinity in any case; the bound prevents overflow.
    bounded = y.at_most(2.0**66).at_least(-(2.0**66))
    size = abs(x)
    small = size < size.format.tiny
    normal = small.select(size * 2.0**53, size)
    exponent = _times(bounded, _log2(normal, small.select(size.constant(-53.0), 0.0)))
    is_clamped = abs(exponent.high) > 1100.0
    value, shifted = _exp2(DoubleDouble(
        is_clamped.select(exponent.high.at_most(1100.0).at_least(-1100.0), exponent.high),
        is_clamped.select(size.constant(0.0), exponent.low)))
    n = shifted.bits() << _MANTISSA
    half = n >> 1 & _EXPONENT
    result = value * (half + _BIAS).real() * (n - half + _BIAS).real()
    is_zero, is_infinite = size.is_equal(0.0), size.is_equal(_INFINITY)
    limit = ((y > 0.0) ^ is_zero).select(x.constant(_INFINITY), 0.0)
    result = (is_zero | is_infinite).select(limit, result)
    result = size.is_nan().select(size, y.is_nan().select(y, result))
    return with_limits_of_power(x, y, result)


def _times(y: FloatVector, x: DoubleDouble) -> DoubleDouble:
    product = _product(y, x.high)
    return DoubleDouble(product.high, fma(y, x.low, product.low))


def _log2(x: FloatVector, plus: FloatVector | float) -> DoubleDouble:
    """Emit log2(x) + `plus` to about 65 bits for positive normal x; else some finite value."""
    bits = x.bits()
    exponent = bits - _TWO_THIRDS & _EXPONENT
    k = exponent_number(exponent, x, plus)
    m = (bits - exponent).real()
    # s = (m - 1) / (m + 1) in double-double.
    m_minus_1, m_plus_1 = m - 1.0, m + 1.0
    inverse = 1.0 / m_plus_1
    s = m_minus_1 * inverse
    product = _product(s, m_plus_1)
    s_low = inverse * fma(s, (m_plus_1 - 1.0) - m, (m_minus_1 - product.high) - product.low)
    # log(m) = 2/3 s (3 + s**2 + tail)
    square = _product(s, s)
    tail = square.high * square.high * polynomial(square.high, _LOG)
    series = _sum(square.high, fma(s + s, s_low, tail + square.low))
    terms = _sum(x.constant(3.0), series.high)
    total = _product(s, terms.high)
    low_terms = fma(s_low, terms.high, fma(s, terms.low + series.low, total.low))
    unit_high, unit_low = _UNIT
    scaled = _product(total.high, x.constant(unit_high))
    low = fma(total.high, unit_low, fma(low_terms, unit_high, scaled.low))
    result = _sum(k, scaled.high)
    return DoubleDouble(result.high, result.low + low)


def _exp2(x: DoubleDouble) -> tuple[FloatVector, FloatVector]:
    """Return 2**(x - n) for the nearest integer n, and a number with n in its lowest bits."""
    shifted = x.high + _ROUNDER
    remainder = (x.high - (shifted - _ROUNDER)) + x.low
    return power_of_2(remainder), shifted


def _sum(a: FloatVector, b: FloatVector) -> DoubleDouble:
    """Return the exact sum of two numbers; |a| must be at least |b|, or a = 0 (Fast2Sum)."""
    total = a + b
    return DoubleDouble(total, (a - total) + b)


def _product(a: FloatVector, b: FloatVector) -> DoubleDouble:
    """Return the product of two numbers in double-double; exact with FMA."""
    product = a * b
    if a.code.module.has_fma():
        return DoubleDouble(product, a.intrinsic("fma", b, -product))
    a_high, b_high = _upper(a), _upper(b)
    a_low, b_low = a - a_high, b - b_high
    error = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    return DoubleDouble(product, error + a_low * b_low)


def _upper(x: FloatVector) -> FloatVector:
    return (x.bits() & _UPPER).real()


def hypot(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit hypot with both operands scaled by a power of two; infinity dominates NaN."""
    a, b = abs(x), abs(y)
    larger = (a < b).select(b, a)
    exponent = larger.at_most(2.0**1022).at_least(2.0**-1021).bits() & _EXPONENT
    scale = ((2046 << 52) - exponent).real()
    a, b = a * scale, b * scale
    result = fma(a, a, b * b).intrinsic("sqrt") * exponent.real()
    infinite = abs(x).is_equal(_INFINITY) | abs(y).is_equal(_INFINITY)
    return infinite.select(x.constant(_INFINITY), result)


def asinh(x: FloatVector) -> FloatVector:
    """Emit asinh as `log1p(|x| + x**2 / (1 + sqrt(1 + x**2)))`; for large x as `log(2|x|)`."""
    size = abs(x)
    is_large = size > 2.0**60
    small = is_large.select(x.constant(1.0), size)
    square = small * small
    grown = small + square / ((square + 1.0).intrinsic("sqrt") + 1.0)
    return _of_large(is_large, size, grown).with_bits(x.sign())


def acosh(x: FloatVector) -> FloatVector:
    """Emit acosh as `log1p(t + sqrt(2 t + t**2))` with t = x - 1; for large x as `log(2 x)`."""
    is_large = x > 2.0**60
    t = is_large.select(x.constant(2.0), x) - 1.0
    grown = t + fma(t, t, t + t).intrinsic("sqrt")
    result = _of_large(is_large, x, grown)
    return (x < 1.0).select(x.constant(float("nan")), result)


def atanh(x: FloatVector) -> FloatVector:
    """Emit atanh as `log1p(2|x| / (1 - |x|)) / 2`."""
    size = abs(x)
    return (log1p((size + size) / (1.0 - size)) * 0.5).with_bits(x.sign())


def _of_large(is_large: BoolVector, size: FloatVector, grown: FloatVector) -> FloatVector:
    """Emit `log1p(grown)`, or `log(2 size)` (as `log1p(size) + ln 2`) for large `size`."""
    result = log1p(is_large.select(size, grown))
    return is_large.select(result + _LN2, result)
