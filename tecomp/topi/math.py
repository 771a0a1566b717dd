"""Element-wise functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from tecomp import te
from tecomp.topi import tag
from tecomp.topi.validation import Operand, check_integer, constant_of, integer_of, tensor_of


def define_elementwise(
    x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str
) -> te.Tensor:
    """Apply a function element-wise.

    >>> define_elementwise(te.placeholder((4, 8), name="A"), te.exp, "exp").op.tag
    'elemwise'
    """
    x = tensor_of(x, f"topi.{name}", "x")
    return te.compute(x.shape, lambda *i: function(x(*i)), name=f"T_{name}", tag=tag.ELEMWISE)


def identity(x: te.Tensor) -> te.Tensor:
    """Return a copy of `x`.

    >>> identity(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, lambda value: value, "identity")


def negative(x: te.Tensor) -> te.Tensor:
    """Negate element-wise; bool gives int32.

    >>> negative(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, lambda value: -value, "negative")


def exp(x: te.Tensor) -> te.Tensor:
    """Compute the exponential element-wise.

    >>> exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.exp, "exp")


def fast_exp(x: te.Tensor) -> te.Tensor:
    """Compute `exp(x)` element-wise; `exp` is as fast as a less accurate version.

    >>> fast_exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return exp(x)


def log(x: te.Tensor) -> te.Tensor:
    """Compute the natural logarithm element-wise.

    >>> log(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.log, "log")


def log2(x: te.Tensor) -> te.Tensor:
    """Compute the base-2 logarithm element-wise.

    >>> log2(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.log2, "log2")


def log10(x: te.Tensor) -> te.Tensor:
    """Compute the base-10 logarithm element-wise.

    >>> log10(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.log10, "log10")


def sqrt(x: te.Tensor) -> te.Tensor:
    """Compute the square root element-wise.

    >>> sqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.sqrt, "sqrt")


def rsqrt(x: te.Tensor) -> te.Tensor:
    """Compute the reciprocal square root element-wise.

    >>> rsqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.rsqrt, "rsqrt")


def erf(x: te.Tensor) -> te.Tensor:
    """Compute the error function element-wise.

    >>> erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.erf, "erf")


def fast_erf(x: te.Tensor) -> te.Tensor:
    """Compute `erf(x)` element-wise; `erf` is as fast as a less accurate version.

    >>> fast_erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return erf(x)


def sigmoid(x: te.Tensor) -> te.Tensor:
    """Compute `1 / (1 + exp(-x))` element-wise.

    >>> sigmoid(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.sigmoid, "sigmoid")


def sin(x: te.Tensor) -> te.Tensor:
    """Compute the sine of angles in radians element-wise.

    >>> sin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.sin, "sin")


def cos(x: te.Tensor) -> te.Tensor:
    """Compute the cosine of angles in radians element-wise.

    >>> cos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.cos, "cos")


def tan(x: te.Tensor) -> te.Tensor:
    """Compute the tangent of angles in radians element-wise.

    >>> tan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.tan, "tan")


def sinh(x: te.Tensor) -> te.Tensor:
    """Compute the hyperbolic sine element-wise.

    >>> sinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.sinh, "sinh")


def cosh(x: te.Tensor) -> te.Tensor:
    """Compute the hyperbolic cosine element-wise.

    >>> cosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.cosh, "cosh")


def tanh(x: te.Tensor) -> te.Tensor:
    """Compute the hyperbolic tangent element-wise.

    >>> tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.tanh, "tanh")


def fast_tanh(x: te.Tensor) -> te.Tensor:
    """Compute `tanh(x)` element-wise; `tanh` is as fast as a less accurate version.

    >>> fast_tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return tanh(x)


def asin(x: te.Tensor) -> te.Tensor:
    """Compute the inverse sine element-wise, in radians in [-pi/2, pi/2].

    >>> asin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.asin, "asin")


def acos(x: te.Tensor) -> te.Tensor:
    """Compute the inverse cosine element-wise, in radians in [0, pi].

    >>> acos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.acos, "acos")


def atan(x: te.Tensor) -> te.Tensor:
    """Compute the inverse tangent element-wise, in radians in [-pi/2, pi/2].

    >>> atan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.atan, "atan")


def asinh(x: te.Tensor) -> te.Tensor:
    """Compute the inverse hyperbolic sine element-wise.

    >>> asinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.asinh, "asinh")


def acosh(x: te.Tensor) -> te.Tensor:
    """Compute the inverse hyperbolic cosine element-wise; the result is non-negative.

    >>> acosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.acosh, "acosh")


def atanh(x: te.Tensor) -> te.Tensor:
    """Compute the inverse hyperbolic tangent element-wise.

    >>> atanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.atanh, "atanh")


def floor(x: te.Tensor) -> te.Tensor:
    """Round down to an integer element-wise; the dtype is kept.

    >>> floor(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _define_rounding(x, te.floor, "floor")


def ceil(x: te.Tensor) -> te.Tensor:
    """Round up to an integer element-wise; the dtype is kept.

    >>> ceil(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _define_rounding(x, te.ceil, "ceil")


def trunc(x: te.Tensor) -> te.Tensor:
    """Round towards zero to an integer element-wise; the dtype is kept.

    >>> trunc(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _define_rounding(x, te.trunc, "trunc")


def round(x: te.Tensor) -> te.Tensor:
    """Round to the nearest integer element-wise, ties away from zero; the dtype is kept.

    >>> round(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _define_rounding(x, te.round, "round")


def abs(x: te.Tensor) -> te.Tensor:
    """Compute the absolute value element-wise.

    >>> abs(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _define_rounding(x, te.abs, "abs")


def _define_rounding(x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
    """Apply a function element-wise, with the identity for bool."""
    return define_elementwise(
        x, lambda value: value if value.dtype.is_bool else function(value), name
    )


def isnan(x: te.Tensor) -> te.Tensor:
    """Test element-wise for NaN.

    >>> isnan(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _define_test(x, te.isnan, "isnan", of_bool=False)


def isinf(x: te.Tensor) -> te.Tensor:
    """Test element-wise for infinities of either sign.

    >>> isinf(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _define_test(x, te.isinf, "isinf", of_bool=False)


def isfinite(x: te.Tensor) -> te.Tensor:
    """Test element-wise for finite values, which are neither infinite nor NaN.

    >>> isfinite(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _define_test(x, te.isfinite, "isfinite", of_bool=True)


def _define_test(
    x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str, *, of_bool: bool
) -> te.Tensor:
    return define_elementwise(
        x, lambda value: te.const(of_bool, "bool") if value.dtype.is_bool else function(value), name
    )


def sign(x: te.Tensor) -> te.Tensor:
    """Return the sign element-wise: -1, 0 or 1, and NaN for NaN; the dtype is kept.

    >>> sign(te.placeholder((4,), "int8", name="A")).dtype
    'int8'
    """

    def of(value: te.Expr) -> te.Expr:
        if value.dtype.kind in ("uint", "bool"):
            return te.cast(value != te.const(0, value.dtype), value.dtype)
        zero, one = te.const(0, value.dtype), te.const(1, value.dtype)
        return te.Select(value > zero, one, te.Select(value < zero, -one, value))

    return define_elementwise(x, of, "sign")


def clip(x: te.Tensor, a_min: Operand, a_max: Operand) -> te.Tensor:
    """Limit the values to the interval [a_min, a_max] element-wise; NaN is kept.

    Raises:
        TypeMismatchError: If a bound is not representable in the dtype of `x`.

    >>> clip(te.placeholder((4,), "uint8", name="A"), 16, 235).dtype
    'uint8'
    """
    x = tensor_of(x, "topi.clip", "x")
    low, high = (constant_of(bound, x.dtype, "topi.clip", what)
                 for bound, what in ((a_min, "a_min"), (a_max, "a_max")))  # fmt: skip
    return define_elementwise(x, lambda value: te.clip(value, low, high), "clip")


@overload
def cast(x: te.Tensor, dtype: str, span: None = None) -> te.Tensor: ...


@overload
def cast(x: te.Expr | float, dtype: str, span: None = None) -> te.Expr: ...


def cast(x: Operand, dtype: str, span: None = None) -> te.Tensor | te.Expr:
    """Cast a tensor element-wise, or an expression as `te.cast`, to a dtype.

    Args:
        x: Tensor, expression or number.
        dtype: Result dtype.
        span: Ignored.

    >>> cast(te.placeholder((4,), name="A"), "int8").dtype
    'int8'
    """
    if isinstance(x, te.Tensor):
        return define_elementwise(x, lambda value: te.cast(value, dtype), "cast")
    return te.cast(x, dtype)


def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """Reinterpret the bits of each element as a value of another dtype with the same bit width.

    Raises:
        TypeMismatchError: If the bit widths differ, or if one of the dtypes is bool.

    >>> reinterpret(te.placeholder((4, 8), name="A"), "int32").dtype
    'int32'
    """
    return define_elementwise(x, lambda value: te.reinterpret(dtype, value), "reinterpret")


def ceil_log2(x: te.Tensor) -> te.Tensor:
    """Compute `ceil(log2(x))` element-wise for elements of at least 1; the dtype is kept.

    >>> ceil_log2(te.placeholder((4,), "int32", name="A")).dtype
    'int32'
    """

    def of(value: te.Expr) -> te.Expr:
        if value.dtype.is_float:
            return te.ceil(te.log2(value))
        below = value - 1
        return te.cast(below.dtype.bits - te.clz(below), value.dtype)

    return define_elementwise(x, of, "ceil_log2")


def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """Compute `x * multiplier * 2**(shift - 31)`, rounded to nearest, ties towards infinity.

    Args:
        x: Input tensor, int32.
        multiplier: Factor in units of 2**-31.
        shift: Left shift in bits; negative values shift right.

    Raises:
        TypeMismatchError: If `x` does not have an integer dtype.

    >>> fixed_point_multiply(te.placeholder((4,), "int32", name="A"), 2**30, 1).dtype
    'int32'
    """
    where = "topi.fixed_point_multiply"
    check_integer(tensor_of(x, where, "x"), where, "x")
    factor = integer_of(multiplier, where, "multiplier")
    left = max(integer_of(shift, where, "shift"), 0)
    right = 31 + max(-shift, 0)

    def of(value: te.Expr) -> te.Expr:
        wide = te.cast(value, "int64") << te.const(left, "int64")
        total = wide * te.const(factor, "int64") + te.const(1 << (right - 1), "int64")
        return te.cast(total >> te.const(right, "int64"), value.dtype)

    return define_elementwise(x, of, "fixed_point_multiply")
