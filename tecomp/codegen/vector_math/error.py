"""erf, the error function."""

from __future__ import annotations

from tecomp.codegen.vector_math.exponential import power_of_e_less_1, reduced
from tecomp.codegen.vector_math.lanes import Real, fma, polynomial

# log(1 - erf(x)) / x + 1 on [0, 4], where erf is 1 in float32; by `remez` of Sollya 8.0 with the
# weight x erfc(x) / erf(x), so that the relative error of erf is the least.
_LOG_ERFC = (
    *(-0.12837917, -0.6366194, -0.102777846, 0.019153127, 0.00016028888),
    *(-0.0016669271, 0.00063278485, -0.000117627365, 9.2547725e-06),
)


def erf(x: Real) -> Real:
    """`-expm1(p(|x|))`, which is as exact for small x as for large."""
    size = abs(x).at_most(4.0)
    parts = reduced(fma(polynomial(size, _LOG_ERFC), size, -size))
    scale = parts.power()
    result = fma(-scale, power_of_e_less_1(parts.rest), 1.0 - scale)
    return result.with_bits(x.sign())
