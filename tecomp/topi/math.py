"""Element-wise functions of one tensor with parameters or rules of their own."""

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


def fast_exp(x: te.Tensor) -> te.Tensor:
    """Compute `exp(x)` element-wise; `exp` is as fast as a less accurate version.

    >>> fast_exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.exp, "exp")


def fast_erf(x: te.Tensor) -> te.Tensor:
    """Compute `erf(x)` element-wise; `erf` is as fast as a less accurate version.

    >>> fast_erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.erf, "erf")


def fast_tanh(x: te.Tensor) -> te.Tensor:
    """Compute `tanh(x)` element-wise; `tanh` is as fast as a less accurate version.

    >>> fast_tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    return define_elementwise(x, te.tanh, "tanh")


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
    low, high = (constant_of(bound, x.dtype, "topi.clip", name)
                 for bound, name in ((a_min, "a_min"), (a_max, "a_max")))  # fmt: skip
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
        minus_one = value - 1
        return te.cast(minus_one.dtype.bits - te.clz(minus_one), value.dtype)

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
        widened = te.cast(value, "int64") << te.const(left, "int64")
        total = widened * te.const(factor, "int64") + te.const(1 << (right - 1), "int64")
        return te.cast(total >> te.const(right, "int64"), value.dtype)

    return define_elementwise(x, of, "fixed_point_multiply")
