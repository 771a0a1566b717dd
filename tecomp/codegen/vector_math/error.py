"""erf, the error function."""

from __future__ import annotations

from tecomp.codegen.vector_math.exponential import power_of_e, reduced
from tecomp.codegen.vector_math.lanes import Real, fma, polynomial

# (erf(x) - x) / x in x**2 up to 0.9375, and log(1 - erf(x)) from there to 4, where it is 1. The
# first by `fpminimax` of Sollya 8.0, the second by its `remez` with the weight 1 - erf(x).
_NEAR = (
    *(0.12837917, -0.37612632, 0.112836756, -0.026858453),
    *(0.0051988703, -0.0008119326, 8.274312e-05),
)
_FAR = (
    *(-0.00022279067, -1.1275628, -0.63737386, -0.10376221),
    *(0.02214471, -0.0030224647, 0.0001938096),
)


def erf(x: Real) -> Real:
    """A polynomial for small x, for large x `1 - exp` of another."""
    size = abs(x)
    near = fma(polynomial(x * x, _NEAR), size, size)
    parts = reduced(polynomial(size.at_most(4.0), _FAR))
    far = 1.0 - power_of_e(parts.rest) * parts.power()
    return (size < 0.9375).select(near, far).with_bits(x.sign())
