"""The remainder of division towards zero, exact as in C.

The quotient q of what has been rounded is the whole one or the next greater, and `x - q y` is a
number of the type in both cases: it needs a product without error, and a fused operation is one.
"""

from __future__ import annotations

from tecomp.codegen.math.helper import each_lane, mend_lanes
from tecomp.codegen.math.lanes import Real

_INFINITY = float("inf")


def fmod(x: Real, y: Real) -> Real:
    """`x - trunc(x / y) y`, with the sign of `x`; NaN of infinite x, and of y = 0.

    Longer quotients than a float32 has are left to float64, and its own to the C library.
    """
    a, b = abs(x), abs(y)
    ratio = a / b
    rest = (-ratio.intrinsic("trunc")).intrinsic("fma", b, a)
    rest = (rest < 0.0).select(rest + b, rest)
    # Infinity times 0 is no number.
    near = (b.is_equal(_INFINITY) & (a < _INFINITY)).select(a, rest)
    is_far = (ratio > 2.0**x.format.mantissa) & (a < _INFINITY) & (b > 0.0)
    formula = _wider if x.scalar == "float" else _by_library
    return abs(mend_lanes(near, is_far, "fmod.far", formula, (a, b))).with_bits(x.sign())


def _wider(a: Real, b: Real) -> Real:
    wide = fmod(a.cast("fpext", "double"), b.cast("fpext", "double"))
    return wide.cast("fptrunc", "float")


def _by_library(a: Real, b: Real) -> Real:
    return each_lane("fmod", a, b)
