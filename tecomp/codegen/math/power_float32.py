"""float32 pow, hypot and inverse hyperbolic functions in float64 arithmetic."""

from __future__ import annotations

from tecomp.codegen.math.vector_values import (
    BoolVector,
    FloatVector,
    fix_special_lanes,
    fma,
    polynomial,
)

_ROUNDER = 1.5 * 2.0**52
_EXPONENT = -(1 << 52)
_BIAS = 1023 << 52
_TWO_THIRDS = 0x3FE5555555555555
_NUMBER = 0x4330000000000000  # bits of 2**52, whose unit in the last place is 1
_INFINITY = float("inf")
_BEYOND = 200.0  # 2**200 and 2**-200 round to infinity and 0 in float32

# log2((1 + s) / (1 - s)) / s on [0, 1/5] in s**2, with a relative error of 2**-40; 2**r on
# [-1/2, 1/2], with a relative error of 2**-34.
_LOG2 = (
    *(2.885390081777931, 0.9617966939151691, 0.5770780220656857, 0.4121979409026735),
    *(0.320644379082856, 0.26066318770929076, 0.2510841984495456),
)
_EXP2 = (
    *(0.9999999999616818, 0.6931471807284457, 0.2402265119815795, 0.05550410353452604),
    *(0.009618027253637119, 0.0013333922560042047, 0.00015469290150177511, 1.52019223437943e-05),
)
_LN2 = 0.69314718055994530942


def power(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit pow as `2**(y log2|x|)`; negative x require an integer y, else NaN.

    An out-of-line function handles arguments that are not positive and finite, and results far
    beyond the float32 range. It is called only if a lane requires it.
    """
    exponent = _wide(y) * _log2_of_positive(_wide(x))
    fast = _single(_exp2_of_bounded(exponent))
    is_special = ~((x > 0.0) & (x < _INFINITY) & (abs(exponent) < _BEYOND))
    return fix_special_lanes(fast, is_special, "pow.far", _power_of_any, (x, y))


def _power_of_any(x: FloatVector, y: FloatVector) -> FloatVector:
    exponent = _wide(y) * log2_wide(_wide(abs(x)))
    return with_limits_of_power(x, y, _single(exp2_wide(exponent)))


def with_limits_of_power(x: FloatVector, y: FloatVector, result: FloatVector) -> FloatVector:
    """Derive pow(x, y) from `result`, the power of |x|: sign, NaN and results of exactly 1."""
    is_odd, is_whole = _parity(y)
    result = is_odd.select(result.with_bits(x.sign()), result)
    is_invalid = (x < 0.0) & (x > -_INFINITY) & ~is_whole
    result = is_invalid.select(x.constant(float("nan")), result)
    is_one = x.is_equal(1.0) | y.is_equal(0.0)
    is_one = is_one | (x.is_equal(-1.0) & abs(y).is_equal(_INFINITY))
    return is_one.select(x.constant(1.0), result)


def hypot(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit hypot; float64 squares neither overflow nor underflow; infinity dominates NaN."""
    a, b = _wide(x), _wide(y)
    result = _single(fma(a, a, b * b).intrinsic("sqrt"))
    infinite = abs(x).is_equal(_INFINITY) | abs(y).is_equal(_INFINITY)
    return infinite.select(x.constant(_INFINITY), result)


def asinh(x: FloatVector) -> FloatVector:
    """Emit asinh as `log(|x| + sqrt(x**2 + 1))`; for small x as `x - x**3 / 6`."""
    size = _wide(abs(x))
    grown = size + fma(size, size, 1.0).intrinsic("sqrt")
    small = fma(size * size * (-1 / 6), size, size)
    result = (size < 2.0**-10).select(small, log2_wide(grown) * _LN2)
    return _single(result).with_bits(x.sign())


def acosh(x: FloatVector) -> FloatVector:
    """Emit acosh as `log(x + sqrt(x**2 - 1))`."""
    widened = _wide(x)
    grown = widened + fma(widened, widened, -1.0).intrinsic("sqrt")
    result = _single(log2_wide(grown) * _LN2)
    return (x < 1.0).select(x.constant(float("nan")), result)


def atanh(x: FloatVector) -> FloatVector:
    """Emit atanh as `log((1 + x) / (1 - x)) / 2`; for small x as `x + x**3 / 3`."""
    size = _wide(abs(x))
    grown = (size + 1.0) / (1.0 - size)
    small = fma(size * size * (1 / 3), size, size)
    result = (size < 2.0**-10).select(small, log2_wide(grown) * (_LN2 / 2))
    return _single(result).with_bits(x.sign())


def log2_wide(x: FloatVector) -> FloatVector:
    """Emit log2 in float64 of a number that is not subnormal, accurate to about 40 bits."""
    result = _log2_of_positive(x)
    known = (x < _INFINITY).select(result, x)
    nonpositive = x.is_equal(0.0).select(x.constant(-_INFINITY), float("nan"))
    return (x > 0.0).select(known, nonpositive)


def _log2_of_positive(x: FloatVector) -> FloatVector:
    bits = x.bits()
    exponent = bits - _TWO_THIRDS & _EXPONENT
    k = ((exponent + _BIAS).unsigned_shift(52) | _NUMBER).real() - (2.0**52 + 1023)
    f = (bits - exponent).real() - 1.0
    s = f / (f + 2.0)
    return fma(polynomial(s * s, _LOG2), s, k)


def exp2_wide(x: FloatVector) -> FloatVector:
    """Emit 2**x in float64, accurate to about 34 bits, with x clamped to the float32 range."""
    return _exp2_of_bounded(x.at_most(_BEYOND).at_least(-_BEYOND))


def _exp2_of_bounded(x: FloatVector) -> FloatVector:
    shifted = x + _ROUNDER
    remainder = x - (shifted - _ROUNDER)
    return (polynomial(remainder, _EXP2).bits() + (shifted.bits() << 52)).real()


def _parity(y: FloatVector) -> tuple[BoolVector, BoolVector]:
    """Return where `y` is an odd integer and where `y` is an integer; infinities are even."""
    half = y * 0.5
    is_whole = y.intrinsic("floor").is_equal(y)
    is_even = half.intrinsic("floor").is_equal(half)
    return is_whole & ~is_even, is_whole


def _wide(x: FloatVector) -> FloatVector:
    return x.cast("fpext", "double")


def _single(x: FloatVector) -> FloatVector:
    return x.cast("fptrunc", "float")
