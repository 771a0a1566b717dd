"""pow, hypot, asinh, acosh and atanh of float64, which has no wider type to be computed in.

`pow` keeps the logarithm, and its product with the exponent, as sums of two numbers. Numbers are
split by their bits, so that products of the upper parts are exact with fused operations or without.
"""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.math.lanes import Real, Truth, fma, polynomial
from tecomp.codegen.math.logarithm import exponent_number, log1p
from tecomp.codegen.math.power import with_limits_of_power

_TWO_THIRDS = 0x3FE5555555555555
_EXPONENT = -(1 << 52)
_BIAS = 1023 << 52
_UPPER = -(1 << 32)  # 21 bits of the mantissa: the product of two such numbers is exact
_INFINITY = float("inf")
_LN2 = 0.6931471805599453
_ROUNDER = 1.5 * 2.0**52

# (3 log((1 + s) / (1 - s)) / (2 s) - 3 - s**2) / s**4 on [0, 1/5], in s**2.
_LOG = (
    *(0.6, 0.42857142857142916, 0.33333333333315585, 0.2727272727564533),
    *(0.2307692278787762, 0.2000001829137236, 0.17646302108288905, 0.15809821620623132),
    *(0.13944430647217673, 0.16245314102049366),
)
# 2 / (3 ln 2) as the sum of two numbers, the first of 21 bits.
_UNIT = (0.9617962837219238, 4.1020405177678164e-07)
# exp(r) - 1 - r on [-ln 2 / 2, ln 2 / 2], divided by r**2.
_EXP = (
    *(0.5000000000000011, 0.16666666666666424, 0.04166666666652707, 0.008333333333487052),
    *(0.0013888888944304327, 0.00019841269522449082, 2.480149249563142e-05),
    *(2.7557572329116758e-06, 2.763043895943975e-07, 2.5004469510469975e-08),
)
# ln 2 as the sum of two numbers, the first of 21 bits.
_LN2_PARTS = (0.6931467056274414, 4.7493250390316726e-07)


@dataclass(frozen=True, slots=True)
class Pair:
    """A number as the sum of two, of which `high` has 21 bits."""

    high: Real
    low: Real


def power(x: Real, y: Real) -> Real:
    """`2**(y log2|x|)`; of negative x, whole powers only.

    Source:
        `e_pow.c` of FreeBSD's msun, for the order in which parts are added.
    """
    # Beyond, the result is 0, 1 or infinite anyway, and no product overflows.
    bounded = y.at_most(2.0**66).at_least(-(2.0**66))
    size = abs(x)
    base = _log2(size)
    upper = _upper(bounded)
    low = fma(bounded - upper, base.high, bounded * base.low)
    result = _exp2(upper * base.high, low)
    is_zero, is_infinite = size.is_equal(0.0), size.is_equal(_INFINITY)
    limit = ((y > 0.0) ^ is_zero).select(x.constant(_INFINITY), 0.0)
    result = (is_zero | is_infinite).select(limit, result)
    result = size.is_nan().select(size, y.is_nan().select(y, result))
    return with_limits_of_power(x, y, result)


def _upper(x: Real) -> Real:
    return (x.bits() & _UPPER).real()


def _log2(size: Real) -> Pair:
    """log2 of a number, to some 65 bits; finite for 0 and infinity, the result is then replaced."""
    small = size < size.format.tiny
    bits = small.select(size * 2.0**53, size).bits()
    exponent = bits - _TWO_THIRDS & _EXPONENT
    k = exponent_number(exponent, size, small.select(size.constant(-53.0), 0.0))
    m = (bits - exponent).real()
    # s = (m - 1) / (m + 1) in two parts.
    less, more = m - 1.0, m + 1.0
    inverse = 1.0 / more
    s = less * inverse
    s_high = _upper(s)
    more_high = _upper(more)
    more_low = m - (more_high - 1.0)
    s_low = inverse * ((less - s_high * more_high) - s_high * more_low)
    # log(m) = 2/3 s (3 + s**2 + tail)
    square = s * s
    tail = fma(square * square, polynomial(square, _LOG), s_low * (s_high + s))
    high_square = s_high * s_high
    sum_high = _upper(3.0 + high_square + tail)
    sum_low = tail - ((sum_high - 3.0) - high_square)
    product = s_high * sum_high
    rest = fma(s_low, sum_high, sum_low * s)
    high = _upper(product + rest)
    low = rest - (high - product)
    unit_high, unit_low = _UNIT
    z_high = high * unit_high
    z_low = fma(high, unit_low, low * (unit_high + unit_low))
    total = _upper(z_high + z_low + k)
    return Pair(total, z_low - ((total - k) - z_high))


def _exp2(high: Real, low: Real) -> Real:
    """2 to the power `high + low`."""
    z = high + low
    is_far = abs(z) > 1100.0
    high = is_far.select(z.at_most(1100.0).at_least(-1100.0), high)
    low = is_far.select(z.constant(0.0), low)
    shifted = (high + low) + _ROUNDER
    rest = high - (shifted - _ROUNDER)
    upper = _upper(rest + low)
    below = low - (upper - rest)
    ln2_high, ln2_low = _LN2_PARTS
    r_high = upper * ln2_high
    r_low = fma(below, ln2_high + ln2_low, upper * ln2_low)
    r = r_high + r_low
    lost = r_low - (r - r_high)
    grown = fma(polynomial(r, _EXP) * r, r, lost + lost * r)
    value = (r + grown) + 1.0
    missing = grown - ((value - 1.0) - r)
    value = value + missing
    n = shifted.bits() << 52
    half = n >> 1 & _EXPONENT
    return value * (half + _BIAS).real() * (n - half + _BIAS).real()


def hypot(x: Real, y: Real) -> Real:
    """With both scaled by a power of two, the greater to about 1; infinity wins over NaN."""
    a, b = abs(x), abs(y)
    most = (a < b).select(b, a)
    exponent = most.at_most(2.0**1022).at_least(2.0**-1021).bits() & _EXPONENT
    scale = ((2046 << 52) - exponent).real()
    a, b = a * scale, b * scale
    result = fma(a, a, b * b).intrinsic("sqrt") * exponent.real()
    infinite = abs(x).is_equal(_INFINITY) | abs(y).is_equal(_INFINITY)
    return infinite.select(x.constant(_INFINITY), result)


def asinh(x: Real) -> Real:
    """`log1p(|x| + x**2 / (1 + sqrt(1 + x**2)))`; of large x `log(2|x|)`."""
    size = abs(x)
    is_far = size > 2.0**60
    near = is_far.select(x.constant(1.0), size)
    square = near * near
    grown = near + square / ((square + 1.0).intrinsic("sqrt") + 1.0)
    return _of_large(is_far, size, grown).with_bits(x.sign())


def acosh(x: Real) -> Real:
    """`log1p(t + sqrt(2 t + t**2))` with t = x - 1; of large x `log(2 x)`."""
    is_far = x > 2.0**60
    t = is_far.select(x.constant(2.0), x) - 1.0
    grown = t + fma(t, t, t + t).intrinsic("sqrt")
    result = _of_large(is_far, x, grown)
    return (x < 1.0).select(x.constant(float("nan")), result)


def atanh(x: Real) -> Real:
    """`log1p(2|x| / (1 - |x|)) / 2`."""
    size = abs(x)
    return (log1p((size + size) / (1.0 - size)) * 0.5).with_bits(x.sign())


def _of_large(is_far: Truth, size: Real, grown: Real) -> Real:
    """`log1p(grown)`, or `log(2 size)` where that is as good."""
    result = log1p(is_far.select(size, grown))
    return is_far.select(result + _LN2, result)
