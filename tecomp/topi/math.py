"""Functions of the elements of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from tecomp import te
from tecomp.topi import tag
from tecomp.topi.validation import Operand, check_integer, constant_of, integer_of, tensor_of


def each(x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
    """A function of each element.

    >>> each(te.placeholder((4, 8), name="A"), te.exp, "exp").op.tag
    'elemwise'
    """
    x = tensor_of(x, f"topi.{name}", "x")
    return te.compute(x.shape, lambda *i: function(x(*i)), name=f"T_{name}", tag=tag.ELEMWISE)


def identity(x: te.Tensor) -> te.Tensor:
    """A copy of `x`.

    >>> identity(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, lambda value: value, "identity")


def negative(x: te.Tensor) -> te.Tensor:
    """`-x`; that of a bool is an int32.

    >>> negative(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, lambda value: -value, "negative")


def exp(x: te.Tensor) -> te.Tensor:
    """Euler's number to the power of each element.

    >>> exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.exp, "exp")


def fast_exp(x: te.Tensor) -> te.Tensor:
    """`exp`, which is as fast as one of fewer digits would be.

    >>> fast_exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return exp(x)


def log(x: te.Tensor) -> te.Tensor:
    """The natural logarithm of each element.

    >>> log(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.log, "log")


def log2(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 2 of each element.

    >>> log2(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.log2, "log2")


def log10(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 10 of each element.

    >>> log10(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.log10, "log10")


def sqrt(x: te.Tensor) -> te.Tensor:
    """The square root of each element.

    >>> sqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.sqrt, "sqrt")


def rsqrt(x: te.Tensor) -> te.Tensor:
    """1 divided by the square root of each element.

    >>> rsqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.rsqrt, "rsqrt")


def erf(x: te.Tensor) -> te.Tensor:
    """The error function of each element.

    >>> erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.erf, "erf")


def fast_erf(x: te.Tensor) -> te.Tensor:
    """`erf`, which is as fast as one of fewer digits would be.

    >>> fast_erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return erf(x)


def sigmoid(x: te.Tensor) -> te.Tensor:
    """`1 / (1 + exp(-x))` of each element.

    >>> sigmoid(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.sigmoid, "sigmoid")


def sin(x: te.Tensor) -> te.Tensor:
    """The sine of each element, an angle in radians.

    >>> sin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.sin, "sin")


def cos(x: te.Tensor) -> te.Tensor:
    """The cosine of each element, an angle in radians.

    >>> cos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.cos, "cos")


def tan(x: te.Tensor) -> te.Tensor:
    """The tangent of each element, an angle in radians.

    >>> tan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.tan, "tan")


def sinh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic sine of each element.

    >>> sinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.sinh, "sinh")


def cosh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic cosine of each element.

    >>> cosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.cosh, "cosh")


def tanh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic tangent of each element.

    >>> tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.tanh, "tanh")


def fast_tanh(x: te.Tensor) -> te.Tensor:
    """`tanh`, which is as fast as one of fewer digits would be.

    >>> fast_tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return tanh(x)


def asin(x: te.Tensor) -> te.Tensor:
    """The angle in [-pi/2, pi/2] whose sine is the element.

    >>> asin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.asin, "asin")


def acos(x: te.Tensor) -> te.Tensor:
    """The angle in [0, pi] whose cosine is the element.

    >>> acos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.acos, "acos")


def atan(x: te.Tensor) -> te.Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is the element.

    >>> atan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.atan, "atan")


def asinh(x: te.Tensor) -> te.Tensor:
    """The inverse of `sinh` of each element.

    >>> asinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.asinh, "asinh")


def acosh(x: te.Tensor) -> te.Tensor:
    """The inverse of `cosh` of each element, at least 0.

    >>> acosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.acosh, "acosh")


def atanh(x: te.Tensor) -> te.Tensor:
    """The inverse of `tanh` of each element.

    >>> atanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return each(x, te.atanh, "atanh")


def floor(x: te.Tensor) -> te.Tensor:
    """The greatest integer not above each element, in its type.

    >>> floor(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _rounded(x, te.floor, "floor")


def ceil(x: te.Tensor) -> te.Tensor:
    """The least integer not below each element, in its type.

    >>> ceil(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _rounded(x, te.ceil, "ceil")


def trunc(x: te.Tensor) -> te.Tensor:
    """Each element without its fraction, in its type.

    >>> trunc(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _rounded(x, te.trunc, "trunc")


def round(x: te.Tensor) -> te.Tensor:
    """The integer nearest to each element, of two the one away from 0, in its type.

    >>> round(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _rounded(x, te.round, "round")


def abs(x: te.Tensor) -> te.Tensor:
    """The absolute value of each element.

    >>> abs(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return _rounded(x, te.abs, "abs")


def _rounded(x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
    """A function that leaves False and True as they are."""
    return each(x, lambda value: value if value.dtype.is_bool else function(value), name)


def isnan(x: te.Tensor) -> te.Tensor:
    """Whether each element is no number.

    >>> isnan(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _tested(x, te.isnan, "isnan", of_bool=False)


def isinf(x: te.Tensor) -> te.Tensor:
    """Whether each element is infinite, of either sign.

    >>> isinf(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _tested(x, te.isinf, "isinf", of_bool=False)


def isfinite(x: te.Tensor) -> te.Tensor:
    """Whether each element is neither infinite nor NaN.

    >>> isfinite(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """
    return _tested(x, te.isfinite, "isfinite", of_bool=True)


def _tested(
    x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str, *, of_bool: bool
) -> te.Tensor:
    return each(
        x, lambda value: te.const(of_bool, "bool") if value.dtype.is_bool else function(value), name
    )


def sign(x: te.Tensor) -> te.Tensor:
    """1, 0 or -1, as each element is greater than 0, 0, or less; NaN of NaN.

    >>> sign(te.placeholder((4,), "int8", name="A")).dtype
    'int8'
    """

    def of(value: te.Expr) -> te.Expr:
        if value.dtype.kind in ("uint", "bool"):
            return te.cast(value != te.const(0, value.dtype), value.dtype)
        zero, one = te.const(0, value.dtype), te.const(1, value.dtype)
        return te.Select(value > zero, one, te.Select(value < zero, -one, value))

    return each(x, of, "sign")


def clip(x: te.Tensor, a_min: Operand, a_max: Operand) -> te.Tensor:
    """Each element brought into [a_min, a_max]; NaN stays.

    Raises:
        TypeMismatchError: the type of an element cannot hold a bound.

    >>> clip(te.placeholder((4,), "uint8", name="A"), 16, 235).dtype
    'uint8'
    """
    x = tensor_of(x, "topi.clip", "x")
    low, high = (constant_of(bound, x.dtype, "topi.clip", what)
                 for bound, what in ((a_min, "a_min"), (a_max, "a_max")))  # fmt: skip
    return each(x, lambda value: te.clip(value, low, high), "clip")


@overload
def cast(x: te.Tensor, dtype: str, span: None = None) -> te.Tensor: ...


@overload
def cast(x: te.Expr | float, dtype: str, span: None = None) -> te.Expr: ...


def cast(x: Operand, dtype: str, span: None = None) -> te.Tensor | te.Expr:
    """Each element converted; as `te.cast`, which it is for an expression.

    Args:
        x: a tensor, or an expression.
        dtype: the type.
        span: not used.

    >>> cast(te.placeholder((4,), name="A"), "int8").dtype
    'int8'
    """
    if isinstance(x, te.Tensor):
        return each(x, lambda value: te.cast(value, dtype), "cast")
    return te.cast(x, dtype)


def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """The bits of each element, read as a value of another type of as many.

    Raises:
        TypeMismatchError: it has fewer bits, or more.

    >>> reinterpret(te.placeholder((4, 8), name="A"), "int32").dtype
    'int32'
    """
    return each(x, lambda value: te.reinterpret(dtype, value), "reinterpret")


def ceil_log2(x: te.Tensor) -> te.Tensor:
    """The least power of 2 that is not below each element, as its exponent; of at least 1.

    >>> ceil_log2(te.placeholder((4,), "int32", name="A")).dtype
    'int32'
    """

    def of(value: te.Expr) -> te.Expr:
        if value.dtype.is_float:
            return te.ceil(te.log2(value))
        # float64 knows powers of two, and on which side of them an integer below 2**53 is.
        return te.cast(te.ceil(te.log2(te.cast(value, "float64"))), value.dtype)

    return each(x, of, "ceil_log2")


def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """`x * multiplier * 2**(shift - 31)`, rounded to the nearest, of two the greater.

    Args:
        x: integers of 32 bits.
        multiplier: a factor in units of 2**-31.
        shift: bits to the left; to the right if negative.

    Raises:
        TypeMismatchError: `x` is no integer.

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

    return each(x, of, "fixed_point_multiply")
