"""erf, the error function."""

from __future__ import annotations

from tecomp.codegen.math.exponential import power_of_e_less_1, reduced_roughly
from tecomp.codegen.math.lanes import Real, fma, polynomial

# log(1 - erf(x)) / x + 1 up to where erf is 1 in this type, with the weight x erfc(x) / erf(x), so
# that the relative error of erf is the least: of float32 by `remez` of Sollya 8.0, of float64 by
# least squares, weighted anew until the greatest error is the least.
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


def erf(x: Real) -> Real:
    """`-expm1(p(|x|))`, which is as exact for small x as for large."""
    size = abs(x).at_most(_ONE_FROM[x.scalar])
    shape = polynomial(size, _LOG_ERFC[x.scalar], by=4)
    parts = reduced_roughly(fma(shape, size, -size))
    scale = parts.power()
    result = fma(-scale, power_of_e_less_1(parts.rest), 1.0 - scale)
    return result.with_bits(x.sign())
