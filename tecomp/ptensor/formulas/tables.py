"""Real and complex element-wise functions, by operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tecomp import te
from tecomp.compute.intrinsics import expression_function
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BinOp, binary
from tecomp.operations.elementwise import elementwise_in
from tecomp.ptensor.formulas.complex_functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    constant_like,
    cos,
    cosh,
    exp,
    expm1,
    is_float,
    log,
    log1p,
    log2,
    log10,
    power,
    sign_bit,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    unit,
)
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.elementwise import CastOp, Elementwise, WhereOp
from tecomp.ptensor.types import COMPLEX, PART, promote_types
from tecomp.ptensor.values import Complex, Element


def _conj(z: Complex) -> Complex:
    return Complex(z.re, -z.im)


def _round(z: Complex) -> Complex:
    return Complex(te.nearbyint(z.re), te.nearbyint(z.im))


def _divide(z: Complex, w: Complex) -> Complex:
    """Divide without overflow of the squared divisor.

    Source:
        R. L. Smith, "Algorithm 116: complex division", CACM 5(8), 1962.
    """
    zero = constant_like(0, w.re)
    is_wide = te.abs(w.re) >= te.abs(w.im)
    larger, smaller = te.select(is_wide, w.re, w.im), te.select(is_wide, w.im, w.re)
    # A zero divisor divides both parts separately.
    is_zero = te.all(w.re == zero, w.im == zero)
    ratio = te.select(is_zero, zero, smaller / larger)
    denominator = te.select(is_zero, te.abs(larger), larger + smaller * ratio)
    re = te.select(is_wide, z.re, z.im) + te.select(is_wide, z.im, z.re) * ratio
    im = te.select(is_wide, z.im, -z.re) + te.select(is_wide, -z.re, z.im) * ratio
    return Complex(re / denominator, im / denominator)


def _complex_reciprocal(z: Complex) -> Complex:
    return _divide(Complex(constant_like(1, z.re), constant_like(0, z.re)), z)


def _equal(z: Complex, w: Complex) -> te.Expr:
    return te.all(z.re == w.re, z.im == w.im)


def _not_equal(z: Complex, w: Complex) -> te.Expr:
    return te.any(z.re != w.re, z.im != w.im)


COMPLEX_UNARY: Mapping[str, Callable[[Complex], Element]] = {
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
    "reciprocal": _complex_reciprocal,
    "round": _round,
    "sign": unit,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": lambda z: z * z,
    "tan": tan,
    "tanh": tanh,
}
"""Complex unary functions."""

COMPLEX_BINARY: Mapping[str, Callable[[Complex, Complex], Element]] = {
    "add": lambda z, w: z + w,
    "divide": _divide,
    "equal": _equal,
    "multiply": lambda z, w: z * w,
    "not_equal": _not_equal,
    "pow": power,
    "subtract": lambda z, w: z - w,
}
"""Complex binary functions of operands of one dtype."""

NARROW = frozenset((
    *("abs", "add", "conj", "equal", "imag", "isfinite", "isinf", "isnan", "multiply", "negative"),
    *("not_equal", "positive", "real", "round", "square", "subtract"),
))
"""Functions that are computed in the dtype of the parts; all others are computed in float64."""


def _identity(x: te.Expr) -> te.Expr:
    return x


def _imag(x: te.Expr) -> te.Expr:
    return constant_like(0, x)


def _real_reciprocal(x: te.Expr) -> te.Expr:
    return constant_like(1, x) / x


def _sign(x: te.Expr) -> te.Expr:
    zero, one = constant_like(0, x), constant_like(1, x)
    if x.dtype.kind == "uint":
        return te.select(x == zero, zero, one)
    # NaN propagates, and a zero of either sign gives +0.
    nan_or_zero = te.select(x == zero, zero, x) if is_float(x) else zero
    return te.select(x > zero, one, te.select(x < zero, constant_like(-1, x), nan_or_zero))


def _half_power(x: te.Expr, times: int) -> te.Expr:
    """Raise the square root to the power `times`, with the special values of `pow`.

    No intermediate result overflows earlier than the final result.
    """
    if DType(x.dtype).bits == 16:
        return te.cast(_half_power(te.cast(x, "float32"), times), x.dtype)
    # -0.0 and -inf are treated as 0.0 and inf; other negative numbers give NaN.
    has_none = te.any(x == constant_like(0, x), x == constant_like(float("-inf"), x))
    size = te.select(has_none, te.abs(x), x)
    root = te.sqrt(size)
    part = root if times > 0 else constant_like(1, x) / root
    if abs(times) == 1:
        return part
    return part * size if times > 0 else part / size


def _floor_divide(x: te.Expr, y: te.Expr) -> te.Expr:
    if not is_float(x):
        # The operator `//` rejects a constant zero divisor, which is an error in user code.
        return binary(BinOp.FLOORDIV, x, y)
    # If an operand is infinite or the divisor is 0, the result equals the plain quotient.
    is_regular = te.all(te.isfinite(x), te.isfinite(y), y != constant_like(0, y))
    return te.select(is_regular, x // y, x / y)


def _remainder(x: te.Expr, y: te.Expr) -> te.Expr:
    return binary(BinOp.MOD, x, y)


def _functions_of_rows(arity: int) -> dict[str, Callable[..., te.Expr]]:
    """Return the functions whose rows have an intrinsic that `te` has, or a formula, by name."""
    functions = {name: expression_function(row) for name, row in elementwise_in("array").items()
        if row.arity == arity}
    return {name: function for name, function in functions.items() if function}


REAL_UNARY: Mapping[str, Callable[[te.Expr], te.Expr]] = {
    **_functions_of_rows(1),
    "abs": te.abs,
    "logical_not": te.logical_not,
    **dict.fromkeys(("conj", "real"), _identity),
    "half": partial(_half_power, times=1),
    "imag": _imag,
    "minus_half": partial(_half_power, times=-1),
    "minus_three_halves": partial(_half_power, times=-3),
    "reciprocal": _real_reciprocal,
    "round": te.nearbyint,
    "sign": _sign,
    "signbit": sign_bit,
    "three_halves": partial(_half_power, times=3),
}
"""Real unary functions."""

REAL_BINARY: Mapping[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    **_functions_of_rows(2),
    "copysign": te.copysign,
    "floor_divide": _floor_divide,
    "logical_and": te.all,
    "logical_or": te.any,
    "logical_xor": lambda x, y: x != y,
    "maximum": te.max,
    "minimum": te.min,
    "nextafter": te.nextafter,
    "pow": te.pow,
    "remainder": _remainder,
}
"""Real binary functions of operands of one dtype."""


def convert_element(value: Element, source: str, target: str) -> Element:
    """Convert an element to another dtype."""
    if source == target:
        return value
    if target in COMPLEX:
        part = PART[target]
        if isinstance(value, Complex):
            return Complex(te.cast(value.re, part), te.cast(value.im, part))
        return Complex(te.cast(value, part), te.const(0.0, part))
    if isinstance(value, Complex):
        assert target == "bool", "complex numbers are not ordered"
        return te.any(te.cast(value.re, target), te.cast(value.im, target))
    return te.cast(value, target)


def element(op: PTensorOp, operands: Sequence[Element], dtypes: Sequence[str]) -> Element:
    """Return the element of the result of an element-wise operation.

    Args:
        op: Operation.
        operands: Elements of its operands.
        dtypes: dtypes of the operands.
    """
    if isinstance(op, CastOp):
        return convert_element(operands[0], dtypes[0], op.dtype)
    if isinstance(op, WhereOp):
        return _select_element(operands, dtypes)
    assert isinstance(op, Elementwise)
    dtype = op.computed_in(dtypes)
    values: list[Any] = [convert_element(v, d, dtype) for v, d
        in zip(operands, dtypes, strict=True)]
    if dtype not in COMPLEX:
        return (REAL_UNARY if op.arity == 1 else REAL_BINARY)[op.kind](*values)
    if op.kind in NARROW:
        return _of_complex(op, values)
    # float64 parts avoid overflow of squares and compensate for cancellation.
    widened = [convert_element(v, dtype, "complex128") for v in values]
    return convert_element(_of_complex(op, widened), "complex128", dtype)


def _of_complex(op: Elementwise, values: Sequence[Any]) -> Element:
    return (COMPLEX_UNARY if op.arity == 1 else COMPLEX_BINARY)[op.kind](*values)


def _select_element(operands: Sequence[Element], dtypes: Sequence[str]) -> Element:
    dtype = promote_types(dtypes[1:])
    condition, *cases = operands
    assert not isinstance(condition, Complex)
    one, other = (convert_element(v, d, dtype) for v, d in zip(cases, dtypes[1:], strict=True))
    if isinstance(one, Complex) and isinstance(other, Complex):
        return Complex(
            te.select(condition, one.re, other.re), te.select(condition, one.im, other.im)
        )
    assert not isinstance(one, Complex)
    assert not isinstance(other, Complex)
    return te.select(condition, one, other)


def is_elementwise(op: PTensorOp) -> bool:
    """Return whether an operation is element-wise."""
    return isinstance(op, Elementwise | CastOp | WhereOp)
