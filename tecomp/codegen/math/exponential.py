"""exp and what is made of it: exp2, expm1, sinh, cosh, tanh, sigmoid.

`x = n ln 2 + r` with a whole n and r in [-ln 2 / 2, ln 2 / 2], so `exp(x) = 2**n exp(r)`. The
coefficients are the best in their type that `fpminimax` of Sollya 8.0 finds on these intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tecomp.codegen.math.lanes import Real, Whole, fma, polynomial

_LOG2_E = 1.44269504088896340736
# ln 2 in two parts, of which the first has zeros at its end: times n it is exact.
_LN2 = {
    "float": (0.693145751953125, 1.4286068e-06),
    "double": (0.6931471803691238, 1.9082149292705877e-10),
}
# Where exp overflows, where it is 0, and where exp(x) - 1 and tanh(-x / 2) are -1.
_MOST = {"float": 89.0, "double": 710.0}
_LEAST = {"float": -104.5, "double": -746.0}
_SATURATED = {"float": 20.0, "double": 40.0}
# The same of exp2.
_MOST_2 = {"float": 129.0, "double": 1025.0}
_LEAST_2 = {"float": -151.0, "double": -1076.0}

# (exp(r) - 1 - r) / r**2, less and more exactly, and (2**r - 1) / r.
_EXP = {
    "float": (0.49999994, 0.1666652, 0.041668233, 0.008368818, 0.0013823851),
    "double": (
        *(0.5000000000000011, 0.16666666666666424, 0.04166666666652707, 0.008333333333487052),
        *(0.0013888888944304327, 0.00019841269522449082, 2.480149249563142e-05),
        *(2.7557572329116758e-06, 2.763043895943975e-07, 2.5004469510469975e-08),
    ),
}
_EXPM1 = {
    "float": (0.5, 0.16666666, 0.041666478, 0.008333567, 0.0013933701, 0.00019743363),
    "double": (
        *(0.5, 0.16666666666666677, 0.04166666666666659, 0.008333333333321464),
        *(0.0013888888888935926, 0.00019841269886473797, 2.4801587213006232e-05),
        *(2.755724391213931e-06, 2.7557373723523214e-07, 2.5109126657557577e-08),
        2.0883152515079344e-09,
    ),
}
_EXP2 = {
    "float": (0.6931472, 0.24022645, 0.05550359, 0.009618834, 0.0013391302, 0.00015241285),
    "double": (
        *(0.6931471805599453, 0.24022650695910136, 0.05550410866482233, 0.009618129107592587),
        *(0.0013333558146358634, 0.00015403530458754544, 1.5252733828893382e-05),
        *(1.3215434563166104e-06, 1.0178076598318694e-07, 7.0738941805687345e-09),
        4.451517988099611e-10,
    ),
}
# (sinh(x) - x) / x**3 on [0, 1], in x**2.
_SINH = {
    "float": (0.16666667, 0.008333315, 0.0001984166, 2.790056e-06),
    "double": (
        *(0.16666666666666666, 0.008333333333333519, 0.00019841269841133232),
        *(2.755731927390287e-06, 2.5052098350165263e-08, 1.6060174315015305e-10),
        *(7.580157504091655e-13, 4.448995073979302e-15),
    ),
}


@dataclass(frozen=True, slots=True)
class Reduced:
    """`x` as `n * unit + rest`; `shifted` has n in its lowest bits."""

    shifted: Whole
    rest: Real

    def power(self, less: int = 0) -> Real:
        """2 to the power `n - less`, where that is a normal number."""
        held = self.rest.format
        return ((self.shifted << held.mantissa) + (held.bias - less << held.mantissa)).real()

    def scaled(self, value: Real, less: int = 0) -> Real:
        """`value` times 2 to the power `n - less`, in two steps, for results of any size."""
        held = self.rest.format
        exponent = self.shifted << held.mantissa
        half = exponent >> 1 & -(1 << held.mantissa)
        first = (half + (held.bias << held.mantissa)).real()
        second = (exponent - half + (held.bias - less << held.mantissa)).real()
        return value * first * second


def reduced(x: Real) -> Reduced:
    """`x = n ln 2 + r`, for |x| below 2**21."""
    shifted = fma(x, _LOG2_E, x.format.rounder)
    n = shifted - x.format.rounder
    high, low = _LN2[x.scalar]
    return Reduced(shifted.bits(), fma(n, -low, fma(n, -high, x)))


def reduced_roughly(x: Real) -> Reduced:
    """As `reduced`, with an error of |n| units: for negative x, and powers that are added to 1."""
    shifted = fma(x, _LOG2_E, x.format.rounder)
    n = shifted - x.format.rounder
    return Reduced(shifted.bits(), fma(n, -math.log(2.0), x))


def power_of_e(r: Real) -> Real:
    """The power of a number in [-ln 2 / 2, ln 2 / 2]."""
    return fma(fma(polynomial(r, _EXP[r.scalar]), r, 1.0), r, 1.0)


def power_of_e_less_1(r: Real) -> Real:
    """The power of a number in [-ln 2 / 2, ln 2 / 2], less 1."""
    return fma(polynomial(r, _EXPM1[r.scalar]), r * r, r)


def exp(x: Real) -> Real:
    """Subnormal results are right too."""
    parts = reduced(x.at_most(_MOST[x.scalar]).at_least(_LEAST[x.scalar]))
    return parts.scaled(power_of_e(parts.rest))


def power_of_2(r: Real) -> Real:
    """2 to the power of a number in [-1/2, 1/2]."""
    return fma(polynomial(r, _EXP2[r.scalar]), r, 1.0)


def exp2(x: Real) -> Real:
    """The reduction is exact."""
    bounded = x.at_most(_MOST_2[x.scalar]).at_least(_LEAST_2[x.scalar])
    shifted = bounded + x.format.rounder
    rest = bounded - (shifted - x.format.rounder)
    return Reduced(shifted.bits(), rest).scaled(power_of_2(rest))


def expm1(x: Real) -> Real:
    """`2**n (exp(r) - 1) + (2**n - 1)`, halved and doubled so that 2**n has no overflow."""
    parts = reduced(x.at_most(_MOST[x.scalar]).at_least(-_SATURATED[x.scalar]))
    less = power_of_e_less_1(parts.rest)
    scale = parts.power(less=1)
    half = fma(scale, less, scale - 0.5)
    return (half + half).with_bits(x.sign())


def sigmoid(x: Real) -> Real:
    """`1 / (1 + e)` or `e / (1 + e)` with e = exp(-|x|), which does not overflow."""
    parts = reduced((-abs(x)).at_least(_LEAST[x.scalar]))
    e = parts.scaled(power_of_e(parts.rest))
    return (x < 0.0).select(e, 1.0) / (e + 1.0)


def tanh(x: Real) -> Real:
    """`m / (m + 2)` with m = expm1(2|x|)."""
    size = abs(x)
    parts = reduced((size + size).at_most(_SATURATED[x.scalar]))
    scale = parts.power()
    m = fma(scale, power_of_e_less_1(parts.rest), scale - 1.0)
    return (m / (m + 2.0)).with_bits(x.sign())


def sinh(x: Real) -> Real:
    """A polynomial up to 1, from there `h - 1 / (4 h)` with h = exp(|x|) / 2."""
    size = abs(x)
    square = x * x
    near = fma(polynomial(square, _SINH[x.scalar]) * square, size, size)
    h = _half_power(size)
    return (size < 1.0).select(near, h - 0.25 / h).with_bits(x.sign())


def cosh(x: Real) -> Real:
    """`h + 1 / (4 h)` with h = exp(|x|) / 2."""
    h = _half_power(abs(x))
    return h + 0.25 / h


def _half_power(size: Real) -> Real:
    parts = reduced(size.at_most(_MOST[size.scalar] + 1.0))
    return parts.scaled(power_of_e(parts.rest), less=1)
