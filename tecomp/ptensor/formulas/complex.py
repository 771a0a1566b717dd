"""Arithmetic of complex numbers, given as pairs of real ones, and the table of their functions.

Source:
    The Python array API standard, which takes special values from C99, annex G.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tecomp import te
from tecomp.ptensor.formulas.exponentials import exp, expm1, log, log1p, log2, log10, power
from tecomp.ptensor.formulas.hyperbolic import cos, cosh, sin, sinh, tan, tanh
from tecomp.ptensor.formulas.inverses import acos, acosh, asin, asinh, atan, atanh
from tecomp.ptensor.formulas.numbers import like
from tecomp.ptensor.formulas.roots import sqrt, unit
from tecomp.ptensor.values import Complex, Element


def _conj(z: Complex) -> Complex:
    return Complex(z.re, -z.im)


def _round(z: Complex) -> Complex:
    return Complex(te.nearbyint(z.re), te.nearbyint(z.im))


def _divide(z: Complex, w: Complex) -> Complex:
    """The quotient, without overflow of the divisor's square.

    Source:
        R. L. Smith, "Algorithm 116: complex division", CACM 5(8), 1962.
    """
    zero = like(0, w.re)
    is_wide = te.abs(w.re) >= te.abs(w.im)
    most, least = te.select(is_wide, w.re, w.im), te.select(is_wide, w.im, w.re)
    # A divisor 0 divides both parts.
    is_none = te.all(w.re == zero, w.im == zero)
    ratio = te.select(is_none, zero, least / most)
    below = te.select(is_none, te.abs(most), most + least * ratio)
    re = te.select(is_wide, z.re, z.im) + te.select(is_wide, z.im, z.re) * ratio
    im = te.select(is_wide, z.im, -z.re) + te.select(is_wide, -z.re, z.im) * ratio
    return Complex(re / below, im / below)


def _reciprocal(z: Complex) -> Complex:
    return _divide(Complex(like(1, z.re), like(0, z.re)), z)


def _equal(z: Complex, w: Complex) -> te.Expr:
    return te.all(z.re == w.re, z.im == w.im)


def _not_equal(z: Complex, w: Complex) -> te.Expr:
    return te.any(z.re != w.re, z.im != w.im)


UNARY: Mapping[str, Callable[[Complex], Element]] = {
    "abs": lambda z: te.hypot(z.re, z.im),
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "conj": _conj,
    "cos": cos,
    "cosh": cosh,
    "exp": exp,
    "expm1": expm1,
    "imag": lambda z: z.im,
    "isfinite": lambda z: te.all(te.isfinite(z.re), te.isfinite(z.im)),
    "isinf": lambda z: te.any(te.isinf(z.re), te.isinf(z.im)),
    "isnan": lambda z: te.any(te.isnan(z.re), te.isnan(z.im)),
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "negative": lambda z: -z,
    "positive": lambda z: z,
    "real": lambda z: z.re,
    "reciprocal": _reciprocal,
    "round": _round,
    "sign": unit,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": lambda z: z * z,
    "tan": tan,
    "tanh": tanh,
}
"""The functions of one number."""

BINARY: Mapping[str, Callable[[Complex, Complex], Element]] = {
    "add": lambda z, w: z + w,
    "divide": _divide,
    "equal": _equal,
    "multiply": lambda z, w: z * w,
    "not_equal": _not_equal,
    "pow": power,
    "subtract": lambda z, w: z - w,
}
"""The functions of two numbers of one type."""

NARROW = frozenset((
    *("abs", "add", "conj", "equal", "imag", "isfinite", "isinf", "isnan", "multiply", "negative"),
    *("not_equal", "positive", "real", "round", "square", "subtract"),
))
"""The functions that are computed in the type of the parts; all others in float64."""
