"""Smallest and largest values of dtypes."""

from __future__ import annotations

import math

from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, const, integer_range
from tecomp.ir.nodes.operators import holds
from tecomp.operations.element_types import ElementType, element_type


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
    return const(-_float_format(kind, "min_value").largest, kind)


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
