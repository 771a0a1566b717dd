"""Formulas of functions, shared by NumPy arrays, IR expressions and the code generator.

A formula takes an algebra, which supplies the functions that are not Python operators, and the
operands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np


class Algebra(ABC):
    """Functions that formulas use beside Python operators, for values of float32 or float64."""

    @abstractmethod
    def is_double(self, x: Any) -> bool:
        """Return whether a value has dtype float64."""

    def is_complex(self, x: Any) -> bool:
        """Return whether a value has a complex dtype."""
        return False

    @abstractmethod
    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Select `a` where the condition holds, and `b` elsewhere."""

    @abstractmethod
    def equal(self, a: Any, b: Any) -> Any:
        """Compare for equality; vectors of the code generator have no operator `==`."""

    @abstractmethod
    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Compute the sum of `coefficients[k] * x**k`."""

    @abstractmethod
    def constant(self, value: float, x: Any) -> Any:
        """Return a number in the dtype of `x`."""

    @abstractmethod
    def wide(self, x: Any) -> Any:
        """Convert to float64."""

    @abstractmethod
    def narrow(self, value: Any, x: Any) -> Any:
        """Convert a value of dtype float64 to the dtype of `x`."""

    @abstractmethod
    def maximum(self, a: Any, b: Any) -> Any:
        """Return the larger value; NaN propagates."""

    @abstractmethod
    def minimum(self, a: Any, b: Any) -> Any:
        """Return the smaller value; NaN propagates."""

    @abstractmethod
    def function(self, name: str, *operands: Any) -> Any:
        """Compute the intrinsic function of a row."""

    def round(self, x: Any) -> Any:
        """Round to the nearest integer, with ties to even."""
        return self.function("nearbyint", x)

    def exp(self, x: Any) -> Any:
        """Compute the exponential."""
        return self.function("exp", x)

    def log(self, x: Any) -> Any:
        """Compute the natural logarithm."""
        return self.function("log", x)

    def log1p(self, x: Any) -> Any:
        """Compute the natural logarithm of `1 + x`."""
        return self.function("log1p", x)

    def sqrt(self, x: Any) -> Any:
        """Compute the square root."""
        return self.function("sqrt", x)


class NumpyAlgebra(Algebra):
    """Functions of NumPy arrays.

    >>> float(NumpyAlgebra().polynomial(np.array(2.0), (1.0, 0.0, 3.0)))
    13.0
    """

    def is_double(self, x: Any) -> bool:
        """Return whether an array has dtype float64."""
        return bool(np.asarray(x).dtype == np.float64)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Select elements of `a` where the condition holds, and of `b` elsewhere."""
        return np.where(condition, a, b)

    def equal(self, a: Any, b: Any) -> Any:
        """Compare for equality."""
        return a == b

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Compute a polynomial by Horner's rule."""
        total = np.full_like(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + np.asarray(coefficient, total.dtype)
        return total

    def constant(self, value: float, x: Any) -> Any:
        """Return a number in the dtype of an array."""
        return np.asarray(value, x.dtype)

    def wide(self, x: Any) -> Any:
        """Convert to float64."""
        return np.asarray(x, np.float64)

    def narrow(self, value: Any, x: Any) -> Any:
        """Convert a value of dtype float64 to the dtype of an array."""
        return np.asarray(value).astype(np.asarray(x).dtype)

    def maximum(self, a: Any, b: Any) -> Any:
        """Return the larger value; NaN propagates."""
        return np.maximum(a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        """Return the smaller value; NaN propagates."""
        return np.minimum(a, b)

    def function(self, name: str, *operands: Any) -> Any:
        """Compute the function of NumPy with the name of an intrinsic."""
        return getattr(np, "rint" if name == "nearbyint" else name)(*operands)


# Coefficients from the lowest degree, of polynomials in w - 2.5 and sqrt(w) - 3 (float32), and in
# w - 3.125, sqrt(w) - 3.25 and sqrt(w) - 5 (float64), with w = -log(1 - x**2).
_NEAR_FLOAT32 = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
    -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
)
_FAR_FLOAT32 = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
    0.00134934322, 0.000100950558, -0.000200214257,
)
_NEAR_FLOAT64 = (
    1.6536545626831027, 0.24015818242558962, -0.006033670871430149, -0.000740702534166267,
    0.00018673420803405714, -1.3882523362786469e-05, -1.3654692000834679e-06,
    4.2347877827932404e-07, -2.9070369957882005e-08, -4.112633980346984e-09,
    1.051212273321532e-09, -5.415412054294628e-11, -1.2975133253453532e-11,
    2.6335093153082323e-12, -8.151934197605472e-14, -4.054566272975207e-14, 6.637638134358324e-15,
    2.0972767875968562e-17, -1.333171662854621e-16, 1.115787767802518e-17, 1.28584807152564e-18,
    -1.6850591381820166e-19, -3.64441206401782e-21,
)
_MIDDLE_FLOAT64 = (
    3.0838856104922208, 1.0052589676941592, 0.005370914553590064, -0.003751208507569241,
    0.002491442096107851, -0.0016882755560235047, 0.0009532893797373805, -0.0003550375203628475,
    2.4031110387097894e-05, 6.828485145957318e-05, -4.731822900905575e-05, 1.2475304481671779e-05,
    2.9234449089955446e-06, -4.013867526981546e-06, 1.5027403968909828e-06,
    1.8239629214389228e-08, -2.7517406297064545e-07, 9.07565619388854e-08, 2.2137376921775787e-09,
)
_FAR_FLOAT64 = (
    4.849906401408584, 1.0103004648645344, -0.00013871931833623122, -0.00021503011930044477,
    7.599527703001776e-05, -1.968177810553167e-05, 4.526062597223154e-06, -9.9298272942317e-07,
    2.2900482228026655e-07, -6.771199775845234e-08, 2.914795345090108e-08, -1.496002662714924e-08,
    7.61570120807834e-09, -3.789465440126737e-09, 1.5076572693500548e-09, -2.555641816996525e-10,
    -2.7109920616438573e-11,
)


def erfinv(m: Algebra, x: Any) -> Any:
    """Compute the inverse error function; NaN outside of [-1, 1].

    Source:
        M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2011.
    """
    w = -m.log((1.0 - x) * (1.0 + x))
    root = m.sqrt(w)
    if m.is_double(x):
        central = m.polynomial(w - 3.125, _NEAR_FLOAT64)
        tail = m.where(
            w < 16.0, m.polynomial(root - 3.25, _MIDDLE_FLOAT64),
            m.polynomial(root - 5.0, _FAR_FLOAT64),
        )
        value = m.where(w < 6.25, central, tail) * x
    else:
        central = m.polynomial(w - 2.5, _NEAR_FLOAT32)
        value = m.where(w < 5.0, central, m.polynomial(root - 3.0, _FAR_FLOAT32)) * x
    return m.where(w < inf, value, x * w)


# Coefficients of lgamma(2 + t) / t on [-3/4, 1/2], of the remainder of Stirling's formula in
# 1 / y**2 for y > 17/2, and of sin(pi f) / (pi f) in f**2 on [-1/2, 1/2], with relative errors of
# 2**-53: Chebyshev interpolation in 400 bits.
_LGAMMA_NEAR = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319819, 0.020580808427788703,
    -0.007385551028663193, 0.002890510330482064, -0.0011927539122376619, 0.0005096695320648715,
    -0.00022315474408602818, 9.945740198894934e-05, -4.4926464931326535e-05, 2.0508175353649692e-05,
    -9.43727020655551e-06, 4.370089307840295e-06, -2.052482416724873e-06, 9.670254916827003e-07,
    -4.018330416059452e-07, 2.0758927598859588e-07, -1.9264000508094273e-07, 6.2426286817793866e-09,
    5.025731736555141e-08, 7.558472696788447e-08,
)
_LGAMMA_FAR = (
    0.08333333333333333, -0.0027777777777777315, 0.0007936507935804795, -0.000595238054286464,
    0.0008417390684787214, -0.0019156731645284487, 0.0062458510679744925, -0.02164244020602092,
)
_SINE = (
    1.0, -1.6449340668482264, 0.8117424252833536, -0.19075182412208255, 0.026147847817611935,
    -0.002346081034815316, 0.0001484287872033628, -6.975840829271595e-06, 2.5300985563134005e-07,
    -7.0931258816238045e-09,
)
_STIRLING = 0.4189385332046727  # (log(2 pi) - 1) / 2


def lgamma(m: Algebra, x: Any) -> Any:
    """Compute the logarithm of the absolute value of the gamma function, in float64 arithmetic.

    Positive arguments up to 17/2 are shifted to [5/4, 5/2] by the recurrence of the gamma function.
    Each positive argument takes a single logarithm: of the argument, or of the product of factors.
    Negative arguments are reflected. Poles and infinities give infinity.
    """
    wide = m.wide(x)
    y = m.where(wide < 0.0, 1.0 - wide, wide)
    factors = m.where(y < 0.5, y * (y + 1.0), y)
    t = m.where(y < 0.5, y, y - 1.0)
    t = m.where(y > 1.25, y - 2.0, t)
    factors = m.where(y > 1.25, m.where(y > 2.5, y - 1.0, m.constant(1.0, y)), factors)
    for shift in range(1, 7):
        t = m.where(shift + 1.5 < y, y - (shift + 2.0), t)
        if shift > 1:
            factors = m.where(shift + 1.5 < y, factors * (y - shift), factors)
    log = m.log(m.where(y > 8.5, y, factors))
    near_zeros = t * m.polynomial(t, _LGAMMA_NEAR) + m.where(y > 1.25, log, -log)
    inverse = 1.0 / y
    rest = _STIRLING + inverse * m.polynomial(inverse * inverse, _LGAMMA_FAR)
    value = m.where(y > 8.5, (y - 0.5) * (log - 1.0) + rest, near_zeros)
    offset = wide - m.round(wide)
    distance = m.where(offset < 0.0, -offset, offset)
    reflected = -m.log(distance * m.polynomial(distance * distance, _SINE)) - value
    reflected = m.where(distance > 0.0, reflected, m.constant(inf, y))
    return m.narrow(m.where(wide < 0.0, reflected, value), x)


# Coefficients of digamma(z) / (z - root) in z - 3/2 on [1, 2], of the asymptotic series in 1 / y**2
# for y > 8, and of pi f cot(pi f) / (1 - 4 f**2) in f**2 on [-1/2, 1/2], with relative errors of
# 2**-53. The root is the sum of two numbers.
_DIGAMMA_NEAR = (
    0.951055876031833, -0.4236274212814605, 0.2405424842407742, -0.14840492305390884,
    0.09498872445494122, -0.061922133273064534, 0.04076083381242074, -0.02697579675613825,
    0.0179072524394512, -0.011908218001568644, 0.007926944646403797, -0.005279964873257405,
    0.003519006401502276, -0.002345267632540769, 0.0015566317474486838, -0.0010376374098418604,
    0.0007233266279287554, -0.0004821990530566789, 0.0002272331660987376, -0.00015148586836773365,
    0.00025968482126430747, -0.00017312261802727394,
)
_DIGAMMA_FAR = (
    0.08333333333333333, -0.008333333333333273, 0.003968253968150779, -0.0041666665982644955,
    0.007575734736252119, -0.021088476563015532, 0.08284662584146768, -0.4103919397123186,
    1.7723438848038762,
)
_COTANGENT = (
    0.9999999999999999, 0.7101318663037491, 0.6758809977395456, 0.6688378725294133,
    0.6671964741221933, 0.6668067965065142, 0.6665174871571041, 0.669176225102027,
    0.6428742662889808, 0.824365627198865, -0.05444242253738793, 2.8673076516130376,
    -3.4843231759286044, 4.645764247445849,
)
_DIGAMMA_ROOT = (1.4616321446374059, 3.309564689176888e-10)


def digamma(m: Algebra, x: Any) -> Any:
    """Compute the derivative of the logarithm of the gamma function, in float64 arithmetic.

    Positive arguments up to 8 are shifted to [1, 2]; the sum of the reciprocals of the factors is
    one quotient. Negative arguments are reflected. Zeros give infinities, other poles NaN.
    """
    wide = m.wide(x)
    y = m.where(wide < 0.0, 1.0 - wide, wide)
    one = m.constant(1.0, y)
    rounding = m.where(wide < 0.0, 1.0 - y - wide, m.constant(0.0, y))
    z, below = m.where(y < 1.0, y + 1.0, y), m.where(y < 1.0, y, one)
    above = m.where(y < 1.0, -one, m.constant(0.0, y))
    for shift in range(1, 7):
        factor, is_shifted = y - shift, shift + 1.0 < y
        above = m.where(is_shifted, above * factor + below, above)
        below = m.where(is_shifted, below * factor, below)
        z = m.where(is_shifted, factor, z)
    distance = z - _DIGAMMA_ROOT[0] + (rounding - _DIGAMMA_ROOT[1])
    near_zero = distance * m.polynomial(z - 1.5, _DIGAMMA_NEAR) + above / below
    inverse = 1.0 / y
    square = inverse * inverse
    asymptotic = m.log(y) - (0.5 * inverse + square * m.polynomial(square, _DIGAMMA_FAR))
    value = m.where(y > 8.0, asymptotic, near_zero)
    offset = m.round(wide) - wide
    square = offset * offset
    at_halves = (1.0 - 2.0 * offset) * (1.0 + 2.0 * offset)
    cotangent = at_halves * m.polynomial(square, _COTANGENT) / offset
    is_pole = m.where(offset < 0.0, -offset, offset) <= 0.0
    reflected = m.where(is_pole, m.constant(nan, y), value + cotangent)
    return m.narrow(m.where(wide < 0.0, reflected, value), x)


_LOG_2 = 0.6931471805599453


def logaddexp(m: Algebra, x: Any, y: Any) -> Any:
    """Compute `log(exp(x) + exp(y))` without intermediate overflow."""
    larger = m.maximum(x, y)
    rest = m.log1p(m.exp(m.minimum(x, y) - larger))
    # Equal operands may be infinite, and their difference would be NaN.
    return larger + m.where(m.equal(x, y), m.constant(_LOG_2, larger), rest)
