"""Exponential and logarithm families, hyperbolic functions and erf."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tecomp.codegen.math.vector_values import Coefficients, FloatVector, IntVector, fma, polynomial

_LOG2_E_VALUE = 1.44269504088896340736
# ln 2 as a sum of two parts; the first has trailing zero bits, so its product with n is exact.
_LN2 = {
    "float": (0.693145751953125, 1.4286068e-06),
    "double": (0.6931471803691238, 1.9082149292705877e-10),
}
# exp overflows above _MOST and is 0 below _LEAST. Above _SATURATED, expm1(-x) and tanh(-x / 2)
# round to -1.
_MOST = {"float": 89.0, "double": 710.0}
_LEAST = {"float": -104.5, "double": -746.0}
_SATURATED = {"float": 20.0, "double": 40.0}
# Bounds of exp2.
_MOST_2 = {"float": 129.0, "double": 1025.0}
_LEAST_2 = {"float": -151.0, "double": -1076.0}

# (exp(r) - 1 - r) / r**2 with lower (_EXP) and higher (_EXPM1) accuracy, and (2**r - 1) / r.
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
class ReducedArgument:
    """Range reduction of x to `n * unit + rest`; `shifted` holds n in its lowest bits."""

    shifted: IntVector
    remainder: FloatVector

    def power(self, minus: int = 0) -> FloatVector:
        """Return `2**(n - less)`, which must be a normal number."""
        fmt = self.remainder.format
        return ((self.shifted << fmt.mantissa) + (fmt.bias - minus << fmt.mantissa)).real()

    def scaled(self, value: FloatVector, minus: int = 0) -> FloatVector:
        """Return `value * 2**(n - less)` in two steps, for results of any magnitude."""
        fmt = self.remainder.format
        exponent = self.shifted << fmt.mantissa
        half = exponent >> 1 & -(1 << fmt.mantissa)
        first = (half + (fmt.bias << fmt.mantissa)).real()
        second = (exponent - half + (fmt.bias - minus << fmt.mantissa)).real()
        return value * first * second


def reduce_argument(x: FloatVector) -> ReducedArgument:
    """Reduce `x = n ln 2 + r` accurately, for |x| below 2**21."""
    shifted = fma(x, _LOG2_E_VALUE, x.format.rounder)
    n = shifted - x.format.rounder
    high, low = _LN2[x.scalar]
    return ReducedArgument(shifted.bits(), fma(n, -low, fma(n, -high, x)))


def reduce_argument_approx(x: FloatVector) -> ReducedArgument:
    """Reduce with an error of |n| ulp, for negative x whose power is added to 1."""
    shifted = fma(x, _LOG2_E_VALUE, x.format.rounder)
    n = shifted - x.format.rounder
    return ReducedArgument(shifted.bits(), fma(n, -math.log(2.0), x))


def power_of_e(r: FloatVector) -> FloatVector:
    """Emit exp of a number in [-ln 2 / 2, ln 2 / 2]."""
    return fma(fma(polynomial(r, _EXP[r.scalar]), r, 1.0), r, 1.0)


def power_of_e_less_1(r: FloatVector) -> FloatVector:
    """Emit exp(r) - 1 of a number in [-ln 2 / 2, ln 2 / 2]."""
    return fma(polynomial(r, _EXPM1[r.scalar]), r * r, r)


def exp(x: FloatVector) -> FloatVector:
    """Emit exp, with correct subnormal results."""
    parts = reduce_argument(x.at_most(_MOST[x.scalar]).at_least(_LEAST[x.scalar]))
    return parts.scaled(power_of_e(parts.remainder))


def power_of_2(r: FloatVector) -> FloatVector:
    """Emit 2**r of a number in [-1/2, 1/2]."""
    return fma(polynomial(r, _EXP2[r.scalar]), r, 1.0)


def exp2(x: FloatVector) -> FloatVector:
    """Emit exp2; its range reduction is exact."""
    bounded = x.at_most(_MOST_2[x.scalar]).at_least(_LEAST_2[x.scalar])
    shifted = bounded + x.format.rounder
    remainder = bounded - (shifted - x.format.rounder)
    return ReducedArgument(shifted.bits(), remainder).scaled(power_of_2(remainder))


def expm1(x: FloatVector) -> FloatVector:
    """Emit expm1 as `2**n (exp(r) - 1) + (2**n - 1)`, with 2**n halved against overflow."""
    parts = reduce_argument(x.at_most(_MOST[x.scalar]).at_least(-_SATURATED[x.scalar]))
    reduced = power_of_e_less_1(parts.remainder)
    scale = parts.power(minus=1)
    half = fma(scale, reduced, scale - 0.5)
    return (half + half).with_bits(x.sign())


def sigmoid(x: FloatVector) -> FloatVector:
    """Emit the sigmoid as `1 / (1 + e)` or `e / (1 + e)` with e = exp(-|x|), without overflow."""
    parts = reduce_argument((-abs(x)).at_least(_LEAST[x.scalar]))
    e = parts.scaled(power_of_e(parts.remainder))
    return (x < 0.0).select(e, 1.0) / (e + 1.0)


def tanh(x: FloatVector) -> FloatVector:
    """Emit tanh as `m / (m + 2)` with m = expm1(2|x|)."""
    size = abs(x)
    parts = reduce_argument((size + size).at_most(_SATURATED[x.scalar]))
    scale = parts.power()
    m = fma(scale, power_of_e_less_1(parts.remainder), scale - 1.0)
    return (m / (m + 2.0)).with_bits(x.sign())


def sinh(x: FloatVector) -> FloatVector:
    """Emit sinh as a polynomial below 1, and as `h - 1 / (4 h)` with h = exp(|x|) / 2 above."""
    size = abs(x)
    square = x * x
    series = fma(polynomial(square, _SINH[x.scalar]) * square, size, size)
    h = _half_power(size)
    return (size < 1.0).select(series, h - 0.25 / h).with_bits(x.sign())


def cosh(x: FloatVector) -> FloatVector:
    """Emit cosh as `h + 1 / (4 h)` with h = exp(|x|) / 2."""
    h = _half_power(abs(x))
    return h + 0.25 / h


def _half_power(size: FloatVector) -> FloatVector:
    parts = reduce_argument(size.at_most(_MOST[size.scalar] + 1.0))
    return parts.scaled(power_of_e(parts.remainder), minus=1)


_TWO_THIRDS = {"float": 0x3F2AAAAB, "double": 0x3FE5555555555555}
_THREE_QUARTERS = {"float": 0x3F400000, "double": 0x3FE8000000000000}

_IN_DOUBLE = (
    *(-0.49999999999999956, 0.33333333333333126, -0.2500000000002994, 0.20000000000085155),
    *(-0.16666666660825363, 0.14285714273300432, -0.1250000051897048, 0.11111112016037879),
    *(-0.0999997477290688, 0.09090871051064688, -0.08334066971683136, 0.0769329650348879),
    *(-0.07129569898823733, 0.06650297924738569, -0.06400384097745145, 0.06054364117547678),
    *(-0.04532897806049521, 0.04164876235962555, -0.086986802721701, 0.08517987591112064),
)
_LG2 = {
    "float": (0.301025390625, 4.605039e-06),
    "double": (0.30102999566361177, 3.694239077158931e-13),
}
_LOG2_E = {
    "float": (1.442695, 1.925963e-08),
    "double": (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10_E = {
    "float": (0.4342945, -1.010305e-08),
    "double": (0.4342944819032518, 1.098319650216765e-17),
}
# (log(1 + f) - f) / f**2, also in base 2 and 10, and (_LOG1P) on [-1/4, 1/2].
_LOG = {
    "float": (
        *(-0.5, 0.33333215, -0.24999797, 0.2001045, -0.16680509),
        *(0.14005183, -0.12183892, 0.139877, -0.12893544),
    ),
    "double": _IN_DOUBLE,
}
_LOG2 = {
    "float": (
        *(-0.7213475, 0.48089653, -0.36067203, 0.28869468, -0.2406115),
        *(0.20198469, -0.17621009, 0.20209008, -0.18432984),
    ),
    "double": tuple(value * _LOG2_E["double"][0] for value in _IN_DOUBLE),
}
_LOG10 = {
    "float": (
        *(-0.21714725, 0.14476429, -0.108572416, 0.08690538, -0.072449625),
        *(0.06080869, -0.052849513, 0.060812388, -0.05620474),
    ),
    "double": tuple(value * _LOG10_E["double"][0] for value in _IN_DOUBLE),
}
_LOG1P = {
    "float": (
        *(-0.5, 0.3333345, -0.25000098, 0.19990802, -0.16647148),
        *(0.14478889, -0.13163348, 0.10464938, -0.045073908),
    ),
    "double": (
        *(-0.49999999999999994, 0.3333333333333323, -0.2500000000000386, 0.20000000000044185),
        *(-0.1666666666597362, 0.1428571427868746, -0.12500000049674234, 0.11111111664461845),
        *(-0.09999998574960757, 0.09090885328092489, -0.08333330807149547, 0.07692866546749894),
        *(-0.07143985540331846, 0.06660334537342619, -0.06223650931555823, 0.058925044841768415),
        *(-0.05784220449983468, 0.056663467746295174, -0.04718482336548752, 0.02648559486024256),
        -0.007029822229051538,
    ),
}


def log(x: FloatVector) -> FloatVector:
    """Emit the natural logarithm; -inf at 0 and NaN below."""
    k, f = _split(x)
    high, low = _LN2[x.scalar]
    tail = fma(polynomial(f, _LOG[x.scalar]) * f, f, k * low)
    return _with_limits(x, fma(k, high, tail + f))


def log2(x: FloatVector) -> FloatVector:
    """Emit log2, exact for powers of two."""
    k, f = _split(x)
    return _with_limits(x, k + _scale(f, _LOG2[x.scalar], _LOG2_E[x.scalar]))


def log10(x: FloatVector) -> FloatVector:
    """Emit log10; -inf at 0 and NaN below."""
    k, f = _split(x)
    high, low = _LG2[x.scalar]
    tail = fma(k, low, _scale(f, _LOG10[x.scalar], _LOG10_E[x.scalar]))
    return _with_limits(x, fma(k, high, tail))


def log1p(x: FloatVector) -> FloatVector:
    """Emit log1p with `1 + x = 2**k (1 + f)`, f = `2**-k x + (2**-k - 1)`, exact for small x."""
    fmt = x.format
    exponent = ((x + 1.0).bits() - _THREE_QUARTERS[x.scalar]) & -(1 << fmt.mantissa)
    # Use 4 / 2**k, because 1 / 2**k can be subnormal.
    quarter = ((fmt.bias + 2 << fmt.mantissa) - exponent).real()
    f = (x.bits() - exponent).real() + fma(quarter, 0.25, -1.0)
    k = exponent_number(exponent, x, 0.0)
    high, low = _LN2[x.scalar]
    tail = fma(polynomial(f, _LOG1P[x.scalar]) * f, f, k * low)
    result = fma(k, high, tail + f).with_bits(x.sign())
    return _with_limits(x + 1.0, result)


def exponent_number(exponent: IntVector, x: FloatVector, plus: FloatVector | float) -> FloatVector:
    """Convert `exponent`, the exponent bits of `x` in place, to a number and add `plus`.

    Few machines convert vectors of 64-bit integers to float64, so for float64 the exponent is
    placed in the mantissa of a number.
    """
    fmt = x.format
    if x.scalar == "float":
        return fma(exponent.number(), 2.0**-fmt.mantissa, plus)
    biased = (exponent + (fmt.bias << fmt.mantissa)).unsigned_shift(fmt.mantissa)
    raised = biased | (fmt.bias + fmt.mantissa << fmt.mantissa)
    return raised.real() - (2.0**fmt.mantissa + fmt.bias) + plus


def _split(x: FloatVector) -> tuple[FloatVector, FloatVector]:
    fmt = x.format
    small = x < fmt.tiny
    normal = small.select(x * 2.0**fmt.mantissa, x)
    bits = normal.bits()
    exponent = bits - _TWO_THIRDS[x.scalar] & -(1 << fmt.mantissa)
    raised = small.select(x.constant(-fmt.mantissa), 0.0)
    return exponent_number(exponent, x, raised), (bits - exponent).real() - 1.0


def _scale(f: FloatVector, coefficients: Coefficients, unit: tuple[float, float]) -> FloatVector:
    high, low = unit
    return fma(f, high, fma(polynomial(f, coefficients) * f, f, f * low))


def _with_limits(x: FloatVector, result: FloatVector) -> FloatVector:
    """Return `result` with the limits of a logarithm: -inf at 0, NaN below, x for inf and NaN."""
    infinity = float("inf")
    known = (x < infinity).select(result, x)
    return (x > 0.0).select(known, x.is_equal(0.0).select(x.constant(-infinity), float("nan")))


# log(1 - erf(x)) / x + 1, up to the x from which erf rounds to 1. The weight x erfc(x) / erf(x)
# minimizes the relative error of erf: float32 by `remez` of Sollya 8.0, float64 by iteratively
# reweighted least squares, which minimizes the maximum error.
_LOG_ERFC = {
    "float": (
        *(-0.12837917, -0.6366194, -0.102777846, 0.019153127, 0.00016028888),
        *(-0.0016669271, 0.00063278485, -0.000117627365, 9.2547725e-06),
    ),
    "double": (
        *(-0.12837916709551256, -0.6366197723675837, -0.10277260330178524),
        *(0.01912844700499742, 0.00020919469574913886, -0.0016962063928862238),
        *(0.0005901255906379175, -2.587874490056357e-05, -6.449147724937808e-05),
        *(2.972325767005204e-05, -3.4060176108204385e-06, -2.8366856108041845e-06),
        *(1.743062805106644e-06, -3.3755072659361365e-07, -1.3643746223713272e-07),
        *(1.41386317451254e-07, -6.558146726586561e-08, 2.09135362024741e-08),
        *(-4.98515190075849e-09, 9.05722409640814e-10, -1.2446162966439801e-10),
        *(1.2568712978711352e-11, -8.812970706354464e-13, 3.835010134146085e-14),
        -7.799881248017168e-16,
    ),
}
_ONE_FROM = {"float": 4.0, "double": 5.95}


def erf(x: FloatVector) -> FloatVector:
    """Emit erf as `-expm1(p(|x|))`, which is accurate for small and large x."""
    size = abs(x).at_most(_ONE_FROM[x.scalar])
    shape = polynomial(size, _LOG_ERFC[x.scalar], group=4)
    parts = reduce_argument_approx(fma(shape, size, -size))
    scale = parts.power()
    result = fma(-scale, power_of_e_less_1(parts.remainder), 1.0 - scale)
    return result.with_bits(x.sign())
