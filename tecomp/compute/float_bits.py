"""Bit-level functions, and the smallest and largest values of dtypes."""

from __future__ import annotations

import math

from tecomp.compute.expr_like import Value, value_of
from tecomp.compute.intrinsics import clip, popcount, power, reinterpret
from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.dtype import FLOAT32, INT32, DType
from tecomp.ir.nodes.expr import (
    BinOp,
    CmpOp,
    Expr,
    binary,
    cast,
    compare,
    const,
    integer_range,
    match_types,
    select,
)
from tecomp.ir.nodes.operators import holds
from tecomp.operations.element_types import ElementType, element_type


def exp10(x: Value) -> Expr:
    """Compute 10 to the power `x`, the same as `te.power(10, x)`.

    Raises:
        TypeMismatchError: If `x` is not a float.

    >>> from tecomp import te
    >>> te.exp10(te.var("x", "float32"))
    pow(float32(10.0), x)
    """
    node = _float(x, "exp10")
    return power(const(10.0, node.dtype), node)


def copysign(x1: Value, x2: Value) -> Expr:
    """Combine the magnitude of `x1` with the sign bit of `x2`, also for zeros and NaN.

    Raises:
        TypeMismatchError: If an operand is not a float.

    >>> from tecomp import te
    >>> te.copysign(te.var("x", "float32"), te.var("y", "float32")).dtype
    'float32'
    """
    a, b = _floats(x1, x2, "copysign")
    if "-0" not in element_type(a.dtype.scalar).special_values:
        wide = FLOAT32.with_lanes(a.dtype.lanes)
        return cast(a.dtype.scalar, copysign(cast(wide.scalar, a), cast(wide.scalar, b)))
    sign, magnitude = _sign_bit(a.dtype)
    bits = binary(BinOp.BITOR, binary(BinOp.BITAND, _bits(a), magnitude),
                  binary(BinOp.BITAND, _bits(b), sign))
    return reinterpret(a.dtype, bits)


def nextafter(x1: Value, x2: Value) -> Expr:
    """Return the next representable value after `x1` towards `x2`; `x2` if both are equal.

    Raises:
        TypeMismatchError: If an operand is not a float.

    >>> from tecomp import te
    >>> te.nextafter(te.var("x", "float32"), te.var("y", "float32")).dtype
    'float32'
    """
    a, b = _floats(x1, x2, "nextafter")
    bits = _bits(a)
    one = const(1, bits.dtype)
    numbers = binary(BinOp.AND, compare(CmpOp.EQ, a, a), compare(CmpOp.EQ, b, b))
    special_values = element_type(a.dtype.scalar).special_values
    if "0" not in special_values:
        steps = select(compare(CmpOp.LT, a, b), one, _number(0, bits)), select(
            compare(CmpOp.GT, a, b), one, _number(0, bits))
        neighbor = binary(BinOp.SUB, binary(BinOp.ADD, bits, steps[0]), steps[1])
        return select(numbers, reinterpret(a.dtype, neighbor), binary(BinOp.ADD, a, b))
    zero = const(0.0, a.dtype)
    # For floats of one sign, the order of the bit patterns is the order of the magnitudes.
    grows = compare(CmpOp.EQ, compare(CmpOp.LT, a, b), compare(CmpOp.GT, a, zero))
    stepped = select(grows, binary(BinOp.ADD, bits, one), binary(BinOp.SUB, bits, one))
    sign, _ = _sign_bit(a.dtype)
    if "-0" not in special_values:
        stepped = select(compare(CmpOp.EQ, stepped, sign), _number(0, bits), stepped)
    smallest = binary(BinOp.BITOR, binary(BinOp.BITAND, _bits(b), sign), one)
    neighbor = reinterpret(a.dtype, select(compare(CmpOp.EQ, a, zero), smallest, stepped))
    either = select(compare(CmpOp.EQ, a, b), b, neighbor)
    return select(numbers, either, binary(BinOp.ADD, a, b))


def ldexp(x1: Value, x2: Value) -> Expr:
    """Compute `x1` times 2 to the integer power `x2`; a subnormal result is rounded once.

    Raises:
        TypeMismatchError: If `x1` is not a float, or `x2` is not an integer.

    Source:
        scalbn of musl 1.2, which scales in three steps.

    >>> from tecomp import te
    >>> te.ldexp(te.var("x", "float32"), te.var("e")).dtype
    'float32'
    """
    a, exponent = _float(x1, "ldexp"), value_of(x2)
    if not exponent.dtype.is_integer:
        raise TypeMismatchError(
            "te.ldexp expects an integer exponent, got {dtype}; convert it, or multiply by te.exp2 "
            "of it",
            dtype=exponent.dtype,
        )
    wide_type = a.dtype if a.dtype.bits >= 32 else DType("float32").with_lanes(a.dtype.lanes)
    row = element_type(wide_type.scalar)
    fraction, max_exp = row.fraction_bits, row.largest_exponent
    # Three steps cover the whole range from the smallest subnormal to the largest float.
    bound = 4 * max_exp + fraction
    if exponent.dtype.bits > 16:
        low = 0 if exponent.dtype.kind == "uint" else -bound
        exponent = clip(exponent, low, bound)
    remaining = cast(INT32, exponent)
    total = cast(wide_type, a)
    # The first two steps stay in the normal range, so that only the last step can round.
    down_step = 1 - max_exp + fraction + 1
    for _ in range(2):
        is_above = compare(CmpOp.GT, remaining, _number(max_exp, remaining))
        is_below = compare(CmpOp.LT, remaining, _number(1 - max_exp, remaining))
        step = select(is_above, _number(max_exp, remaining), select(
            is_below, _number(down_step, remaining), _number(0, remaining)))
        total = binary(BinOp.MUL, total, _power_of_2(step, wide_type))
        remaining = binary(BinOp.SUB, remaining, step)
    total = binary(BinOp.MUL, total, _power_of_2(clip(remaining, 1 - max_exp, max_exp), wide_type))
    return cast(a.dtype.scalar, total)


def clz(x: Value) -> Expr:
    """Count the leading zero bits of an integer, as an int32; the bit width for 0.

    Raises:
        TypeMismatchError: If `x` is not an integer.

    >>> from tecomp import te
    >>> te.clz(te.var("x", "uint8")).dtype
    'int32'
    """
    node = value_of(x)
    if not node.dtype.is_integer:
        raise TypeMismatchError(
            "te.clz expects an integer, got {dtype}; convert it, or read its bits with "
            "te.reinterpret",
            dtype=node.dtype,
        )
    kind = DType(f"uint{node.dtype.bits}").with_lanes(node.dtype.lanes)
    filled = reinterpret(kind, node) if kind != node.dtype else node
    shift = 1
    while shift < kind.bits:
        filled = binary(BinOp.BITOR, filled, binary(BinOp.SHR, filled, const(shift, kind)))
        shift *= 2
    ones = cast(INT32, popcount(filled))
    return binary(BinOp.SUB, const(kind.bits, ones.dtype), ones)


def _float(x: Value, name: str) -> Expr:
    node = value_of(x)
    if not node.dtype.is_float:
        raise TypeMismatchError(
            "te.{caller} expects a float, got {dtype}; convert it, for example with "
            '.astype("float32")',
            caller=name, dtype=node.dtype,
        )
    return node


def _floats(x1: Value, x2: Value, name: str) -> tuple[Expr, Expr]:
    a, b = match_types(value_of(x1), value_of(x2), f"te.{name}")
    return _float(a, name), _float(b, name)


def _bits(x: Expr) -> Expr:
    return reinterpret(_uint_of_width(x.dtype), x)


def _uint_of_width(dtype: DType) -> DType:
    """Return the unsigned integer dtype of the same width and lanes."""
    return DType(f"uint{dtype.bits}").with_lanes(dtype.lanes)


def _sign_bit(dtype: DType) -> tuple[Expr, Expr]:
    """Return the mask of the sign bit of a dtype, and the mask of all other bits."""
    sign = 1 << (dtype.bits - 1)
    return const(sign, _uint_of_width(dtype)), const(sign - 1, _uint_of_width(dtype))


def _number(value: int, template: Expr) -> Expr:
    return const(value, template.dtype)


def _power_of_2(exponent: Expr, dtype: DType) -> Expr:
    """Return 2 to an integer power, which must be a normal number of `dtype`."""
    row = element_type(dtype.scalar)
    kind = _uint_of_width(dtype.scalar.with_lanes(exponent.dtype.lanes))
    biased = cast(kind.scalar, binary(BinOp.ADD, exponent, _number(row.largest_exponent, exponent)))
    shifted = binary(BinOp.SHL, biased, const(row.fraction_bits, biased.dtype))
    return reinterpret(dtype.scalar.with_lanes(exponent.dtype.lanes), shifted)


def max_value(dtype: str) -> Expr:
    """Return the largest finite value of `dtype`; True for bool.

    >>> from tecomp import te
    >>> te.max_value("int8")
    int8(127)
    """
    kind = DType(dtype)
    if kind.is_bool:
        return const(True, kind)
    if kind.is_integer:
        return const(integer_range(kind)[1], kind)
    return const(_float_format(kind, "max_value").largest, kind)


def min_value(dtype: str) -> Expr:
    """Return the smallest finite value of `dtype`; False for bool.

    >>> from tecomp import te
    >>> te.min_value("int8")
    int8(-128)
    """
    kind = DType(dtype)
    if kind.is_bool:
        return const(False, kind)
    if kind.is_integer:
        return const(integer_range(kind)[0], kind)
    return const(_float_format(kind, "min_value").lowest, kind)


def infinity(dtype: str = "float32") -> Expr:
    """Return positive infinity of `dtype`.

    Raises:
        TypeMismatchError: If `dtype` is not a floating-point dtype.

    >>> from tecomp import te
    >>> te.infinity("float32")
    float32("inf")
    """
    kind = DType(dtype)
    _float_format(kind, "infinity")
    return const(float("inf"), kind)


def upper_bound(dtype: str) -> Expr:
    """Return the identity of a minimum: infinity if `dtype` has it, else `max_value`.

    >>> from tecomp import te
    >>> te.upper_bound("float32"), te.upper_bound("int8")
    (float32("inf"), int8(127))
    """
    return infinity(dtype) if holds(DType(dtype), math.inf) else max_value(dtype)


def lower_bound(dtype: str) -> Expr:
    """Return the identity of a maximum: negative infinity if `dtype` has it, else `min_value`.

    >>> from tecomp import te
    >>> te.lower_bound("float32"), te.lower_bound("int8")
    (float32("-inf"), int8(-128))
    """
    return const(-math.inf, dtype) if holds(DType(dtype), -math.inf) else min_value(dtype)


def _float_format(dtype: DType, name: str) -> ElementType:
    if dtype.is_float:
        return element_type(dtype.scalar)
    raise TypeMismatchError("te.{caller}: not defined for {dtype}", caller=name, dtype=dtype)
