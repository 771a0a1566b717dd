"""Smallest and largest values of dtypes."""

from __future__ import annotations

from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, const, integer_range
from tecomp.operations.element_types import element_type


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
    fraction, exponent = _float_format(kind, "max_value")
    return const((2.0 - 2.0**-fraction) * 2.0**exponent, kind)


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
    fraction, exponent = _float_format(kind, "min_value")
    return const(-(2.0 - 2.0**-fraction) * 2.0**exponent, kind)


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


def _float_format(dtype: DType, who: str) -> tuple[int, int]:
    if dtype.is_float:
        row = element_type(dtype.scalar)
        return row.fraction_bits, row.largest_exponent
    raise TypeMismatchError("te.{who}: not defined for {dtype}", who=who, dtype=dtype)
