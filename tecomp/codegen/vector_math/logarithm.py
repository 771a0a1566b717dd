"""log, log2, log10 and log1p.

`x = 2**k (1 + f)` with f in [-1/3, 1/3], so that k is 0 around 1 and nothing cancels. The
coefficients are the best in float32 that `fpminimax` of Sollya 8.0 finds on these intervals.
"""

from __future__ import annotations

from tecomp.codegen.vector_math.lanes import Coefficients, Real, fma, polynomial

_TINY = 2.0**-126  # below it numbers are subnormal
_EXPONENT = -(1 << 23)
_TWO_THIRDS = 0x3F2AAAAB
_THREE_QUARTERS = 0x3F400000
_FOUR = 0x40800000

# (log(1 + f) - f) / f**2, also in base 2 and 10, and on [-1/4, 1/2].
_LOG = (
    *(-0.5, 0.33333215, -0.24999797, 0.2001045, -0.16680509),
    *(0.14005183, -0.12183892, 0.139877, -0.12893544),
)
_LOG2 = (
    *(-0.7213475, 0.48089653, -0.36067203, 0.28869468, -0.2406115),
    *(0.20198469, -0.17621009, 0.20209008, -0.18432984),
)
_LOG10 = (
    *(-0.21714725, 0.14476429, -0.108572416, 0.08690538, -0.072449625),
    *(0.06080869, -0.052849513, 0.060812388, -0.05620474),
)
_LOG1P = (
    *(-0.5, 0.3333345, -0.25000098, 0.19990802, -0.16647148),
    *(0.14478889, -0.13163348, 0.10464938, -0.045073908),
)
# Each in two parts; of the first of log(2) and log10(2), k times it is exact.
_LN2 = (0.693145751953125, 1.4286068e-06)
_LG2 = (0.301025390625, 4.605039e-06)
_LOG2_E = (1.442695, 1.925963e-08)
_LOG10_E = (0.4342945, -1.010305e-08)


def log(x: Real) -> Real:
    """-inf at 0 and NaN below."""
    k, f = _split(x)
    tail = fma(polynomial(f, _LOG) * f, f, k * _LN2[1])
    return _with_limits(x, fma(k, _LN2[0], tail + f))


def log2(x: Real) -> Real:
    """Exact for powers of two."""
    k, f = _split(x)
    return _with_limits(x, k + _scaled(f, _LOG2, _LOG2_E))


def log10(x: Real) -> Real:
    """As `log`, in base 10."""
    k, f = _split(x)
    tail = fma(k, _LG2[1], _scaled(f, _LOG10, _LOG10_E))
    return _with_limits(x, fma(k, _LG2[0], tail))


def log1p(x: Real) -> Real:
    """`1 + x = 2**k (1 + f)` with f = `2**-k x + (2**-k - 1)`, which loses nothing of a small x."""
    exponent = ((x + 1.0).bits() - _THREE_QUARTERS) & _EXPONENT
    quarter = (_FOUR - exponent).real()  # 4 / 2**k, as 1 / 2**k can be subnormal
    f = (x.bits() - exponent).real() + fma(quarter, 0.25, -1.0)
    k = exponent.number() * 2.0**-23
    tail = fma(polynomial(f, _LOG1P) * f, f, k * _LN2[1])
    result = fma(k, _LN2[0], tail + f).with_bits(x.sign())
    return _with_limits(x + 1.0, result)


def _split(x: Real) -> tuple[Real, Real]:
    small = x < _TINY
    normal = small.select(x * 2.0**23, x)
    bits = normal.bits()
    exponent = bits - _TWO_THIRDS & _EXPONENT
    k = fma(exponent.number(), 2.0**-23, small.select(x.constant(-23.0), 0.0))
    return k, (bits - exponent).real() - 1.0


def _scaled(f: Real, coefficients: Coefficients, unit: tuple[float, float]) -> Real:
    high, low = unit
    return fma(f, high, fma(polynomial(f, coefficients) * f, f, f * low))


def _with_limits(x: Real, result: Real) -> Real:
    """`result`, where the logarithm of `x` is a number."""
    infinity = float("inf")
    known = (x < infinity).select(result, x)
    return (x > 0.0).select(known, x.is_equal(0.0).select(x.constant(-infinity), float("nan")))
