"""Element-wise mathematical functions; each returns a `Call` node or simpler expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tecomp.compute.expr_like import ExprLike, Value, value_of
from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes import expr as ir
from tecomp.ir.nodes.dtype import BOOL, DType
from tecomp.ir.nodes.expr import BinOp, Call, Const, Expr, as_expr, binary, const, match_types
from tecomp.ir.nodes.operators import dot_type


def _call(name: str, x: Value) -> Expr:
    node = value_of(x, f"te.{name}: ")
    _require_float(name, node)
    return Call(name, (node,), node.dtype)


def _call2(name: str, x: Value, y: Value) -> Expr:
    where = f"te.{name}"
    a, b = match_types(value_of(x, f"{where}: "), value_of(y, f"{where}: "), where)
    _require_float(name, a)
    return Call(name, (a, b), a.dtype)


def _round(name: str, x: Value) -> Expr:
    """Return a call of a rounding function; integers and booleans are returned unchanged."""
    node = value_of(x, f"te.{name}: ")
    return node if not node.dtype.is_float else _call(name, node)


def _test(name: str, x: Value, *, of_integers: bool) -> Expr:
    node = value_of(x, f"te.{name}: ")
    truth = BOOL.with_lanes(node.dtype.lanes)
    if not node.dtype.is_float:
        return const(of_integers, truth)
    _require_float(name, node)
    return Call(name, (node,), truth)


def _require_float(name: str, node: Expr) -> None:
    if not node.dtype.is_float:
        raise TypeMismatchError(
            "te.{name} expects a float, got {dtype}; convert it, for example with "
            '.astype("float32")',
            name=name, dtype=node.dtype,
        )


def exp(x: Value) -> Expr:
    """Compute the exponential of `x`.

    >>> from tecomp import te
    >>> te.exp(te.var("x", "float32"))
    exp(x)
    """
    return _call("exp", x)


def exp2(x: Value) -> Expr:
    """Compute 2 to the power `x`.

    >>> from tecomp import te
    >>> te.exp2(te.var("x", "float32"))
    exp2(x)
    """
    return _call("exp2", x)


def expm1(x: Value) -> Expr:
    """Compute `exp(x) - 1`, accurately near zero.

    >>> from tecomp import te
    >>> te.expm1(te.var("x", "float32"))
    expm1(x)
    """
    return _call("expm1", x)


def log(x: Value) -> Expr:
    """Compute the natural logarithm of `x`.

    >>> from tecomp import te
    >>> te.log(te.var("x", "float32"))
    log(x)
    """
    return _call("log", x)


def log1p(x: Value) -> Expr:
    """Compute `log(1 + x)`, accurately near zero.

    >>> from tecomp import te
    >>> te.log1p(te.var("x", "float32"))
    log1p(x)
    """
    return _call("log1p", x)


def log2(x: Value) -> Expr:
    """Compute the base-2 logarithm of `x`.

    >>> from tecomp import te
    >>> te.log2(te.var("x", "float32"))
    log2(x)
    """
    return _call("log2", x)


def log10(x: Value) -> Expr:
    """Compute the base-10 logarithm of `x`.

    >>> from tecomp import te
    >>> te.log10(te.var("x", "float32"))
    log10(x)
    """
    return _call("log10", x)


def sqrt(x: Value) -> Expr:
    """Compute the square root of `x`.

    >>> from tecomp import te
    >>> te.sqrt(te.var("x", "float32"))
    sqrt(x)
    """
    return _call("sqrt", x)


def rsqrt(x: Value) -> Expr:
    """Compute the reciprocal square root of `x`.

    >>> from tecomp import te
    >>> te.rsqrt(te.var("x", "float32"))
    rsqrt(x)
    """
    return _call("rsqrt", x)


def tanh(x: Value) -> Expr:
    """Compute the hyperbolic tangent of `x`.

    >>> from tecomp import te
    >>> te.tanh(te.var("x", "float32"))
    tanh(x)
    """
    return _call("tanh", x)


def sigmoid(x: Value) -> Expr:
    """Compute the logistic function `1 / (1 + exp(-x))`.

    >>> from tecomp import te
    >>> te.sigmoid(te.var("x", "float32"))
    sigmoid(x)
    """
    return _call("sigmoid", x)


def erf(x: Value) -> Expr:
    """Compute the error function of `x`.

    >>> from tecomp import te
    >>> te.erf(te.var("x", "float32"))
    erf(x)
    """
    return _call("erf", x)


def sin(x: Value) -> Expr:
    """Compute the sine of an angle in radians.

    >>> from tecomp import te
    >>> te.sin(te.var("x", "float32"))
    sin(x)
    """
    return _call("sin", x)


def cos(x: Value) -> Expr:
    """Compute the cosine of an angle in radians.

    >>> from tecomp import te
    >>> te.cos(te.var("x", "float32"))
    cos(x)
    """
    return _call("cos", x)


def tan(x: Value) -> Expr:
    """Compute the tangent of an angle in radians.

    >>> from tecomp import te
    >>> te.tan(te.var("x", "float32"))
    tan(x)
    """
    return _call("tan", x)


def asin(x: Value) -> Expr:
    """Compute the inverse sine of `x`, in [-pi/2, pi/2] radians.

    >>> from tecomp import te
    >>> te.asin(te.var("x", "float32"))
    asin(x)
    """
    return _call("asin", x)


def acos(x: Value) -> Expr:
    """Compute the inverse cosine of `x`, in [0, pi] radians.

    >>> from tecomp import te
    >>> te.acos(te.var("x", "float32"))
    acos(x)
    """
    return _call("acos", x)


def atan(x: Value) -> Expr:
    """Compute the inverse tangent of `x`, in [-pi/2, pi/2] radians.

    >>> from tecomp import te
    >>> te.atan(te.var("x", "float32"))
    atan(x)
    """
    return _call("atan", x)


def sinh(x: Value) -> Expr:
    """Compute the hyperbolic sine of `x`.

    >>> from tecomp import te
    >>> te.sinh(te.var("x", "float32"))
    sinh(x)
    """
    return _call("sinh", x)


def cosh(x: Value) -> Expr:
    """Compute the hyperbolic cosine of `x`.

    >>> from tecomp import te
    >>> te.cosh(te.var("x", "float32"))
    cosh(x)
    """
    return _call("cosh", x)


def asinh(x: Value) -> Expr:
    """Compute the inverse hyperbolic sine of `x`.

    >>> from tecomp import te
    >>> te.asinh(te.var("x", "float32"))
    asinh(x)
    """
    return _call("asinh", x)


def acosh(x: Value) -> Expr:
    """Compute the non-negative inverse hyperbolic cosine of `x`.

    >>> from tecomp import te
    >>> te.acosh(te.var("x", "float32"))
    acosh(x)
    """
    return _call("acosh", x)


def atanh(x: Value) -> Expr:
    """Compute the inverse hyperbolic tangent of `x`.

    >>> from tecomp import te
    >>> te.atanh(te.var("x", "float32"))
    atanh(x)
    """
    return _call("atanh", x)


def atan2(y: Value, x: Value) -> Expr:
    """Compute the angle of the point (x, y), in [-pi, pi] radians.

    >>> from tecomp import te
    >>> te.atan2(te.var("x", "float32"), te.var("y", "float32"))
    atan2(x, y)
    """
    return _call2("atan2", y, x)


def hypot(x: Value, y: Value) -> Expr:
    """Compute `sqrt(x * x + y * y)` without intermediate overflow.

    >>> from tecomp import te
    >>> te.hypot(te.var("x", "float32"), te.var("y", "float32"))
    hypot(x, y)
    """
    return _call2("hypot", x, y)


def logaddexp(x: Value, y: Value) -> Expr:
    """Compute `log(exp(x) + exp(y))` without intermediate overflow.

    >>> from tecomp import te
    >>> te.logaddexp(te.var("x", "float32"), te.var("y", "float32")).dtype
    'float32'
    """
    a, b = match_types(value_of(x), value_of(y), "te.logaddexp")
    _require_float("logaddexp", a)
    most = binary(BinOp.MAX, a, b)
    beyond = log1p(exp(binary(BinOp.SUB, binary(BinOp.MIN, a, b), most)))
    # Equal operands may be infinite, and their difference would be NaN.
    same = ir.select(ir.compare(ir.CmpOp.EQ, a, b), const(math.log(2), most.dtype), beyond)
    return binary(BinOp.ADD, most, same)


def fmod(x: Value, y: Value) -> Expr:
    """Compute the remainder of `x / y` rounded towards zero, with the sign of `x`, as in C.

    >>> from tecomp import te
    >>> te.fmod(te.var("x", "float32"), te.var("y", "float32"))
    fmod(x, y)
    """
    return _call2("fmod", x, y)


def power(x: Value, y: Value) -> Expr:
    """Compute `x` to the power `y`.

    Integer powers wrap around on overflow. A negative integer power is rounded towards zero, and is
    0 for a base of 0. A constant non-negative integer power is expanded into multiplications.

    >>> from tecomp import te
    >>> te.power(te.var("x", "float32"), te.var("y", "float32"))
    pow(x, y)
    >>> te.power(te.var("n", "int32"), 3)
    n * (n * n)
    """
    a, b = match_types(value_of(x, "te.pow: "), value_of(y, "te.pow: "), "te.pow")
    if not a.dtype.is_integer:
        return _call2("pow", a, b)
    if isinstance(b, Const) and b.value >= 0:
        return _products(a, int(b.value))
    return Call("pow", (a, b), a.dtype)


def _products(x: Expr, power: int) -> Expr:
    """Return x**y by repeated squaring: the product of x**(2**b) over the set bits b of y."""
    total, square = None, x
    for bit in range(power.bit_length()):
        if bit:
            square = binary(BinOp.MUL, square, square)
        if power >> bit & 1:
            total = square if total is None else binary(BinOp.MUL, total, square)
    return const(1, x.dtype) if total is None else total


pow = power


def floor(x: Value) -> Expr:
    """Round `x` down to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.floor(te.var("x", "float32"))
    floor(x)
    """
    return _round("floor", x)


def ceil(x: Value) -> Expr:
    """Round `x` up to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.ceil(te.var("x", "float32"))
    ceil(x)
    """
    return _round("ceil", x)


def trunc(x: Value) -> Expr:
    """Round `x` towards zero to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.trunc(te.var("x", "float32"))
    trunc(x)
    """
    return _round("trunc", x)


def round(x: Value) -> Expr:
    """Round to the nearest integer, ties away from zero, in the dtype of `x`; as in C and TVM.

    `te.nearbyint` rounds ties to the even integer, as `numpy.round` does.

    >>> from tecomp import te
    >>> te.round(te.var("x", "float32"))
    round(x)
    """
    return _round("round", x)


def nearbyint(x: Value) -> Expr:
    """Round to the nearest integer, ties to even, in the dtype of `x`; as `numpy.round`.

    >>> from tecomp import te
    >>> te.nearbyint(te.var("x", "float32"))
    nearbyint(x)
    """
    return _round("nearbyint", x)


def abs(x: Value) -> Expr:
    """Compute the absolute value; the smallest value of a signed integer dtype is unchanged.

    >>> from tecomp import te
    >>> te.abs(te.var("x", "float32"))
    fabs(x)
    """
    node = value_of(x)
    if node.dtype.kind in ("uint", "bool"):
        return node
    if node.dtype.is_integer:
        return Call("abs", (node,), node.dtype)
    return _call("fabs", node)


def fabs(x: Value) -> Expr:
    """Compute the absolute value of a float.

    >>> from tecomp import te
    >>> te.fabs(te.var("x", "float32"))
    fabs(x)
    """
    return _call("fabs", x)


def isnan(x: Value) -> Expr:
    """Return whether `x` is NaN; False for integers.

    >>> from tecomp import te
    >>> te.isnan(te.var("x", "float32"))
    isnan(x)
    """
    return _test("isnan", x, of_integers=False)


def isinf(x: Value) -> Expr:
    """Return whether `x` is positive or negative infinity; False for integers.

    >>> from tecomp import te
    >>> te.isinf(te.var("x", "float32"))
    isinf(x)
    """
    return _test("isinf", x, of_integers=False)


def isfinite(x: Value) -> Expr:
    """Return whether `x` is neither infinite nor NaN; True for integers.

    >>> from tecomp import te
    >>> te.isfinite(te.var("x", "float32"))
    isfinite(x)
    """
    return _test("isfinite", x, of_integers=True)


def popcount(x: Value) -> Expr:
    """Count the set bits of an integer, in the dtype of `x`.

    Raises:
        TypeMismatchError: If `x` is not an integer.

    >>> from tecomp import te
    >>> te.popcount(te.var("x", "uint8"))
    popcount(x)
    """
    node = value_of(x)
    if not node.dtype.is_integer:
        raise TypeMismatchError("te.popcount expects an integer, got {dtype}", dtype=node.dtype)
    return Call("popcount", (node,), node.dtype)


def dot(a: Value, b: Value) -> Expr:
    """Compute the dot product of two 32-bit vectors, which are elements of vector-dtype tensors.

    Four int8 or uint8 lanes, also of mixed signedness, and two int16 lanes give an int32, which
    wraps around on overflow. Two bfloat16 lanes give a float32 with unspecified rounding order.
    Processors have instructions for these dot products; `te.sum(te.dot(...))` accumulates them.

    >>> from tecomp import te
    >>> A = te.placeholder((8, 16), dtype="int16x2", name="A")
    >>> B = te.placeholder((16, 64), dtype="int16x2", name="B")
    >>> k = te.reduce_axis((0, 16), name="k")
    >>> C = te.compute((8, 64), lambda i, j: te.sum(te.dot(A[i, k], B[k, j]), axis=k), name="C")
    >>> C.dtype
    'int32'

    Raises:
        TypeMismatchError: If the operands are not such vectors.
    """
    x, y = value_of(a), value_of(b)
    sum_type = dot_type(x.dtype, y.dtype)
    if sum_type is None or sum_type.lanes > 1:
        raise TypeMismatchError(
            "te.dot expects two packed 32-bit vectors such as int8x4, int16x2 or bfloat16x2, got "
            "{dtype} and {y_dtype}; use such a dtype for the placeholders, the last axis of their "
            "arrays then holds the lanes of a vector",
            dtype=x.dtype, y_dtype=y.dtype,
        )
    return Call("dot", (x, y), sum_type)


def concat_vectors(parts: Sequence[Expr]) -> Expr:
    """Concatenate a power-of-two number of values of one dtype into a vector."""
    values = list(parts)
    while len(values) > 1:
        values = [
            Call("join", (a, b), a.dtype.with_lanes(2 * a.dtype.lanes))
            for a, b in zip(values[::2], values[1::2], strict=True)
        ]
    return values[0]


def reinterpret(dtype: str, x: Value) -> Expr:
    """Reinterpret the bits of `x` in a dtype of the same size; lane 0 has the lowest bits.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> te.reinterpret("int32", A[0]).dtype, te.reinterpret("int16x2", A[0]).dtype
    ('int32', 'int16x2')

    Raises:
        TypeMismatchError: If the dtypes differ in size, or one of them is bool.
    """
    node, target = value_of(x), DType(dtype)
    bits = {kind.bits * kind.lanes for kind in (node.dtype, target)}
    if len(bits) > 1 or target.is_bool or node.dtype.is_bool:
        raise TypeMismatchError(
            "te.reinterpret requires non-bool dtypes of equal size, got {dtype} and {target}; use "
            "te.cast to convert to the nearest value",
            dtype=node.dtype, target=target,
        )
    return Call("reinterpret", (node,), target)


def clip(x: Value, a_min: Value, a_max: Value) -> Expr:
    """Limit `x` to the interval [a_min, a_max]; Python numbers take the dtype of `x`.

    Raises:
        TypeMismatchError: If the dtype of `x` cannot hold a bound.

    >>> from tecomp import te
    >>> te.clip(te.var("x", "float32"), 0, 6)
    min(max(x, float32(0.0)), float32(6.0))
    """
    node = value_of(x)
    low, high = (
        bound if isinstance(bound, Expr | ExprLike) else as_expr(bound, node.dtype)
        for bound in (a_min, a_max)
    )
    raised = binary(BinOp.MAX, node, value_of(low))
    return binary(BinOp.MIN, raised, value_of(high))


def cast(expr: Value, dtype: str) -> Expr:
    """Cast `expr` to `dtype`, the same as `expr.astype(dtype)`.

    A float out of the range of an integer dtype saturates, and NaN becomes 0. Integers wrap around.
    A cast to bool gives True for every value except zero.

    >>> from tecomp import te
    >>> te.cast(te.var("x", "float32"), "int8")
    cast("int8", x)
    """
    return ir.cast(dtype, value_of(expr))
