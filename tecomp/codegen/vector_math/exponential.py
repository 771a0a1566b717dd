"""exp and what is made of it: exp2, expm1, sinh, cosh, tanh, sigmoid.

`x = n ln 2 + r` with a whole n and r in [-ln 2 / 2, ln 2 / 2], so `exp(x) = 2**n exp(r)`. The
coefficients are the best in float32 that `fpminimax` of Sollya 8.0 finds on these intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.vector_math.lanes import Real, Whole, fma, polynomial

# Adding it leaves the nearest integer in the lowest bits.
_ROUNDER = 1.5 * 2.0**23
_LOG2_E = 1.44269504088896340736
# ln 2 in two parts, of which the first has 9 zeros at its end: times n it is exact.
_LN2_HIGH = 0.693145751953125
_LN2_LOW = 1.4286068e-06

# (exp(r) - 1 - r) / r**2, less and more exactly, and (2**r - 1) / r.
_EXP = (0.49999994, 0.1666652, 0.041668233, 0.008368818, 0.0013823851)
_EXPM1 = (0.5, 0.16666666, 0.041666478, 0.008333567, 0.0013933701, 0.00019743363)
_EXP2 = (0.6931472, 0.24022645, 0.05550359, 0.009618834, 0.0013391302, 0.00015241285)
# (sinh(x) - x) / x**3 on [0, 1], in x**2.
_SINH = (0.16666667, 0.008333315, 0.0001984166, 2.790056e-06)


@dataclass(frozen=True, slots=True)
class Reduced:
    """`x` as `n * unit + rest`; `shifted` has n in its lowest bits."""

    shifted: Whole
    rest: Real

    def power(self, less: int = 0) -> Real:
        """2 to the power `n - less`, where that is a normal number."""
        return ((self.shifted << 23) + (127 - less << 23)).real()

    def scaled(self, value: Real, less: int = 0) -> Real:
        """`value` times 2 to the power `n - less`, in two steps, for results of any size."""
        exponent = self.shifted << 23
        half = exponent >> 1 & -(1 << 23)
        first = (half + (127 << 23)).real()
        second = (exponent - half + (127 - less << 23)).real()
        return value * first * second


def reduced(x: Real) -> Reduced:
    """`x = n ln 2 + r`, for |x| below 2**21."""
    shifted = fma(x, _LOG2_E, _ROUNDER)
    n = shifted - _ROUNDER
    return Reduced(shifted.bits(), fma(n, -_LN2_LOW, fma(n, -_LN2_HIGH, x)))


def power_of_e(r: Real) -> Real:
    """The power of a number in [-ln 2 / 2, ln 2 / 2]."""
    return fma(fma(polynomial(r, _EXP), r, 1.0), r, 1.0)


def power_of_e_less_1(r: Real) -> Real:
    """The power of a number in [-ln 2 / 2, ln 2 / 2], less 1."""
    return fma(polynomial(r, _EXPM1) * r, r, r)


def exp(x: Real) -> Real:
    """Subnormal results are right too."""
    parts = reduced(x.at_most(89.0).at_least(-104.5))
    return parts.scaled(power_of_e(parts.rest))


def exp2(x: Real) -> Real:
    """The reduction is exact."""
    bounded = x.at_most(129.0).at_least(-151.0)
    shifted = bounded + _ROUNDER
    rest = bounded - (shifted - _ROUNDER)
    return Reduced(shifted.bits(), rest).scaled(fma(polynomial(rest, _EXP2), rest, 1.0))


def expm1(x: Real) -> Real:
    """`2**n (exp(r) - 1) + (2**n - 1)`, halved and doubled so that 2**n has no overflow."""
    parts = reduced(x.at_most(89.0).at_least(-20.0))
    less = power_of_e_less_1(parts.rest)
    scale = parts.power(less=1)
    half = fma(scale, less, scale - 0.5)
    return (half + half).with_bits(x.sign())


def sigmoid(x: Real) -> Real:
    """`1 / (1 + e)` or `e / (1 + e)` with e = exp(-|x|), which does not overflow."""
    parts = reduced((-abs(x)).at_least(-104.5))
    e = parts.scaled(power_of_e(parts.rest))
    return (x < 0.0).select(e, 1.0) / (e + 1.0)


def tanh(x: Real) -> Real:
    """`m / (m + 2)` with m = expm1(2|x|)."""
    size = abs(x)
    parts = reduced((size + size).at_most(20.0))
    scale = parts.power()
    m = fma(scale, power_of_e_less_1(parts.rest), scale - 1.0)
    return (m / (m + 2.0)).with_bits(x.sign())


def sinh(x: Real) -> Real:
    """A polynomial up to 1, from there `h - 1 / (4 h)` with h = exp(|x|) / 2."""
    size = abs(x)
    square = x * x
    near = fma(polynomial(square, _SINH) * square, size, size)
    h = _half_power(size)
    return (size < 1.0).select(near, h - 0.25 / h).with_bits(x.sign())


def cosh(x: Real) -> Real:
    """`h + 1 / (4 h)` with h = exp(|x|) / 2."""
    h = _half_power(abs(x))
    return h + 0.25 / h


def _half_power(size: Real) -> Real:
    parts = reduced(size.at_most(90.0))
    return parts.scaled(power_of_e(parts.rest), less=1)
