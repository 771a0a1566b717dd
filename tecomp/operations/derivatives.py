"""Derivatives of element-wise functions, written once for every algebra.

The first parameters of a derivative are an algebra, the cotangent of the result, the result, and
the operands. It returns the cotangent of the operand, or of each of several operands: the product
of the cotangent of the result with the partial derivative.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

from tecomp.operations.formulas import Algebra


def zero(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of a function that is constant almost everywhere."""
    return m.constant(0.0, x)


def absolute(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `abs`; the derivative at 0 is 0."""
    return g * m.function("conj", m.function("sign", x))


def conj(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `conj`."""
    return m.function("conj", g)


def imag(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `imag`."""
    return -1j * g if m.is_complex(x) else m.constant(0.0, x)


def negative(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `negative`."""
    return -g


def identity(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of a function that returns its real part or itself."""
    return g


def reciprocal(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `reciprocal`."""
    return -g * y * y


def sign(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `sign`, which is `x / abs(x)` if `x` is complex."""
    if not m.is_complex(x):
        return m.constant(0.0, x)
    size = m.function("abs", x)
    inverse = 1.0 / m.where(size == 0.0, m.constant(1.0, size), size)
    return g * inverse - m.function("real", g * y) * m.function("conj", y) * inverse


def square(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `square`."""
    return 2.0 * g * x


def copysign(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `copysign`."""
    signs = m.function("copysign", m.constant(1.0, x), x)
    return g * signs * m.function("copysign", m.constant(1.0, x), y), m.constant(0.0, x)


def logaddexp(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `logaddexp`."""
    return g * m.exp(x - z), g * m.exp(y - z)


def acos(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `acos`."""
    return -g / m.sqrt((1.0 - x) * (1.0 + x))


def acosh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `acosh`."""
    return g / (m.sqrt(x - 1.0) * m.sqrt(x + 1.0))


def asin(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `asin`."""
    return g / m.sqrt((1.0 - x) * (1.0 + x))


def asinh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `asinh`."""
    return g / m.function("hypot", x, m.constant(1.0, x))


def atan(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `atan`."""
    return g / (1.0 + x * x)


def atanh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `atanh`."""
    return g / ((1.0 - x) * (1.0 + x))


def cos(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `cos`."""
    return -g * m.function("sin", x)


def cosh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `cosh`."""
    return g * m.function("sinh", x)


def erf(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `erf`."""
    return g * (2.0 / sqrt(pi)) * m.exp(-x * x)


def erfinv(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `erfinv`."""
    return g * (sqrt(pi) / 2.0) * m.exp(y * y)


def exp(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `exp`."""
    return g * y


def exp2(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `exp2`."""
    return g * log(2.0) * y


def expm1(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `expm1`."""
    return g * m.exp(x)


def fabs(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `fabs`; the derivative at 0 is 1, as in TVM."""
    return m.where(x < 0.0, -g, g)


def lgamma(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `lgamma`."""
    return g * m.function("digamma", x)


def natural_logarithm(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `log`."""
    return g / x


def log2(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `log2`."""
    return g / (x * log(2.0))


def log10(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `log10`."""
    return g / (x * log(10.0))


def log1p(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `log1p`."""
    return g / (1.0 + x)


def rsqrt(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `rsqrt`."""
    return -0.5 * g * y / x


def sigmoid(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `sigmoid`."""
    return g * y * (1.0 - y)


def sin(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `sin`."""
    return g * m.function("cos", x)


def sinh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `sinh`."""
    return g * m.function("cosh", x)


def square_root(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `sqrt`."""
    return 0.5 * g / y


def tan(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `tan`."""
    return g * (1.0 + y * y)


def tanh(m: Algebra, g: Any, y: Any, x: Any) -> Any:
    """Return the cotangent of the operand of `tanh`."""
    return g * (1.0 - y) * (1.0 + y)


def add(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of a sum."""
    return g, g


def subtract(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of a difference."""
    return g, -g


def multiply(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of a product."""
    return g * y, g * x


def divide(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of a quotient."""
    return g / y, -g * z / y


def maximum(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `maximum`; the first of equal operands counts."""
    none = m.constant(0.0, x)
    return m.where(x >= y, g, none), m.where(x >= y, none, g)


def minimum(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `minimum`; the first of equal operands counts."""
    none = m.constant(0.0, x)
    return m.where(x <= y, g, none), m.where(x <= y, none, g)


def atan2(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `atan2`."""
    size = m.function("hypot", x, y)
    scaled = g / size
    return scaled * (y / size), -scaled * (x / size)


def fmod(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `fmod`."""
    return g, -g * m.function("trunc", x / y)


def floor_divide(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of a quotient that is rounded down."""
    none = m.constant(0.0, x)
    return none, none


def remainder(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `remainder`."""
    return g, -g * m.function("floor", x / y)


def hypot(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `hypot`; they are 0 at the origin."""
    none = m.constant(0.0, x)
    return m.where(z <= 0.0, none, g * (x / z)), m.where(z <= 0.0, none, g * (y / z))


def power(m: Algebra, g: Any, z: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the cotangents of the operands of `pow`.

    The derivative by the base is 0 for the exponent 0, and by the exponent 0 for the base 0.
    """
    none = m.constant(0.0, x)
    by_base = m.where(y == 0.0, none, g * y * m.function("pow", x, y - 1.0))
    return by_base, m.where(x == 0.0, none, g * z * m.log(x))
