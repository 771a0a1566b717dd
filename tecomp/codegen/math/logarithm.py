"""log, log2, log10 and log1p.

`x = 2**k (1 + f)` with f in [-1/3, 1/3], so that k is 0 around 1 and nothing cancels. The
coefficients are the best in their type that `fpminimax` of Sollya 8.0 finds on these intervals.
"""

from __future__ import annotations

from tecomp.codegen.math.lanes import Coefficients, Real, Whole, fma, polynomial

_TWO_THIRDS = {"float": 0x3F2AAAAB, "double": 0x3FE5555555555555}
_THREE_QUARTERS = {"float": 0x3F400000, "double": 0x3FE8000000000000}

_IN_DOUBLE = (
    *(-0.49999999999999956, 0.33333333333333126, -0.2500000000002994, 0.20000000000085155),
    *(-0.16666666660825363, 0.14285714273300432, -0.1250000051897048, 0.11111112016037879),
    *(-0.0999997477290688, 0.09090871051064688, -0.08334066971683136, 0.0769329650348879),
    *(-0.07129569898823733, 0.06650297924738569, -0.06400384097745145, 0.06054364117547678),
    *(-0.04532897806049521, 0.04164876235962555, -0.086986802721701, 0.08517987591112064),
)
# Each in two parts; of the first of log(2) and log10(2), k times it is exact.
_LN2 = {
    "float": (0.693145751953125, 1.4286068e-06),
    "double": (0.6931471803691238, 1.9082149292705877e-10),
}
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
# (log(1 + f) - f) / f**2, also in base 2 and 10, and on [-1/4, 1/2].
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


def log(x: Real) -> Real:
    """-inf at 0 and NaN below."""
    k, f = _split(x)
    high, low = _LN2[x.scalar]
    tail = fma(polynomial(f, _LOG[x.scalar]) * f, f, k * low)
    return _with_limits(x, fma(k, high, tail + f))


def log2(x: Real) -> Real:
    """Exact for powers of two."""
    k, f = _split(x)
    return _with_limits(x, k + _scaled(f, _LOG2[x.scalar], _LOG2_E[x.scalar]))


def log10(x: Real) -> Real:
    """As `log`, in base 10."""
    k, f = _split(x)
    high, low = _LG2[x.scalar]
    tail = fma(k, low, _scaled(f, _LOG10[x.scalar], _LOG10_E[x.scalar]))
    return _with_limits(x, fma(k, high, tail))


def log1p(x: Real) -> Real:
    """`1 + x = 2**k (1 + f)` with f = `2**-k x + (2**-k - 1)`, which loses nothing of a small x."""
    held = x.format
    exponent = ((x + 1.0).bits() - _THREE_QUARTERS[x.scalar]) & -(1 << held.mantissa)
    # 4 / 2**k, as 1 / 2**k can be subnormal.
    quarter = ((held.bias + 2 << held.mantissa) - exponent).real()
    f = (x.bits() - exponent).real() + fma(quarter, 0.25, -1.0)
    k = exponent_number(exponent, x, 0.0)
    high, low = _LN2[x.scalar]
    tail = fma(polynomial(f, _LOG1P[x.scalar]) * f, f, k * low)
    result = fma(k, high, tail + f).with_bits(x.sign())
    return _with_limits(x + 1.0, result)


def exponent_number(exponent: Whole, x: Real, plus: Real | float) -> Real:
    """The number of which `exponent` is the part of the bits of `x`, and `plus`.

    Few machines convert vectors of 64-bit integers: there it is written into a number's mantissa.
    """
    held = x.format
    if x.scalar == "float":
        return fma(exponent.number(), 2.0**-held.mantissa, plus)
    biased = (exponent + (held.bias << held.mantissa)).unsigned_shift(held.mantissa)
    raised = biased | (held.bias + held.mantissa << held.mantissa)
    return raised.real() - (2.0**held.mantissa + held.bias) + plus


def _split(x: Real) -> tuple[Real, Real]:
    held = x.format
    small = x < held.tiny
    normal = small.select(x * 2.0**held.mantissa, x)
    bits = normal.bits()
    exponent = bits - _TWO_THIRDS[x.scalar] & -(1 << held.mantissa)
    raised = small.select(x.constant(-held.mantissa), 0.0)
    return exponent_number(exponent, x, raised), (bits - exponent).real() - 1.0


def _scaled(f: Real, coefficients: Coefficients, unit: tuple[float, float]) -> Real:
    high, low = unit
    return fma(f, high, fma(polynomial(f, coefficients) * f, f, f * low))


def _with_limits(x: Real, result: Real) -> Real:
    """`result`, where the logarithm of `x` is a number."""
    infinity = float("inf")
    known = (x < infinity).select(result, x)
    return (x > 0.0).select(known, x.is_equal(0.0).select(x.constant(-infinity), float("nan")))
