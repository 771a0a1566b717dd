"""Functions that are applied to each element of a result."""

from __future__ import annotations

from math import pi, sqrt

from tecomp import te


def relu(x: te.Expr) -> te.Expr:
    """The positive part."""
    return te.max(x, te.const(0, x.dtype))


def gelu(x: te.Expr) -> te.Expr:
    """`x` times the share of the normal distribution below `x`.

    Source:
        D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, section 2.
    """
    half, one, scale = (te.const(v, x.dtype) for v in (0.5, 1.0, 1 / sqrt(2)))
    return half * x * (one + te.erf(x * scale))


def gelu_tanh(x: te.Expr) -> te.Expr:
    """The approximation of `gelu` by tanh.

    Source:
        As for `gelu`.
    """
    half, one, cubed, scale = (
        te.const(v, x.dtype) for v in (0.5, 1.0, 0.044715, sqrt(2 / pi))
    )
    return half * x * (one + te.tanh(scale * (x + cubed * x * x * x)))


def silu(x: te.Expr) -> te.Expr:
    """`x` times its sigmoid."""
    return x * te.sigmoid(x)
