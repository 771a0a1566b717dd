"""Activation functions, applied element-wise to a result."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

from tecomp import te

# Coefficients of P and Q: the cumulative normal distribution from 0 to x is x P(x**2) / Q(x**2),
# with minimal maximum error for |x| up to 5, which is 4e-9; fitted by iteratively reweighted least
# squares.
_NUMERATOR = (0.39894226, 0.031899996, 0.004586511, 0.00015206696, 6.5593285e-06, 2.658565e-08)
_DENOMINATOR = (1.0, 0.24662781, 0.027601833, 0.0017915529, 6.984059e-05, 1.3227956e-06)
_MAX_ARGUMENT = 5.7
"""Bound of |x| where the quotient exceeds 1/2 by more than rounding; `gelu` clips there."""


def relu(x: te.Expr) -> te.Expr:
    """Compute `max(x, 0)`."""
    return te.max(x, te.const(0, x.dtype))


def gelu(x: te.Expr) -> te.Expr:
    """Compute GELU: `x` times the cumulative normal distribution at `x`.

    In float32 the distribution is a quotient of polynomials with an error of at most 3e-7. That
    takes half of the operations of `erf`, whose precision for small values would be lost in the sum
    with 1/2.

    Source:
        D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, section 2.
    """
    half, one, scale = (te.const(v, x.dtype) for v in (0.5, 1.0, 1 / sqrt(2)))
    if x.dtype != "float32":
        return half * x * (one + te.erf(x * scale))
    bounded = te.clip(x, -_MAX_ARGUMENT, _MAX_ARGUMENT)
    square = bounded * bounded
    share = bounded * _polynomial(square, _NUMERATOR) / _polynomial(square, _DENOMINATOR)
    return x * (half + te.clip(share, -0.5, 0.5))


def _polynomial(x: te.Expr, coefficients: Sequence[float]) -> te.Expr:
    *rest, total = (te.const(value, x.dtype) for value in coefficients)
    for coefficient in reversed(rest):
        total = total * x + coefficient
    return total


def gelu_tanh(x: te.Expr) -> te.Expr:
    """Compute the tanh approximation of GELU.

    Source:
        As for `gelu`.
    """
    half, one, cubed, scale = (
        te.const(v, x.dtype) for v in (0.5, 1.0, 0.044715, sqrt(2 / pi))
    )
    return half * x * (one + te.tanh(scale * (x + cubed * x * x * x)))


def silu(x: te.Expr) -> te.Expr:
    """Compute `x * sigmoid(x)`."""
    return x * te.sigmoid(x)
