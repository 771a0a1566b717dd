"""Arithmetic, division and logical operators as functions."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from tecomp.compute.expr_like import ExprLike, Value, is_whole, value_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes import expr as ir
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    BinOp,
    CmpOp,
    Expr,
    Not,
    binary,
    build_division,
    cast,
    compare,
    condition_of,
    const,
    logical_and,
    logical_or,
    match_types,
)


def floordiv(a: Value, b: Value) -> Expr:
    """Compute `a // b`, rounded towards negative infinity.

    >>> from tecomp import te
    >>> te.floordiv(te.var("a"), te.var("b"))
    a // b
    """
    return build_division(BinOp.FLOORDIV, value_of(a), value_of(b))


def floormod(a: Value, b: Value) -> Expr:
    """Compute `a % b`, with the sign of `b`.

    >>> from tecomp import te
    >>> te.floormod(te.var("a"), te.var("b"))
    a % b
    """
    return build_division(BinOp.MOD, value_of(a), value_of(b))


indexdiv = floordiv
indexmod = floormod


def truncdiv(a: Value, b: Value) -> Expr:
    """Compute the integer quotient `a / b` rounded towards zero, as in C; 0 if `b` is 0.

    Raises:
        TypeMismatchError: If an operand is not an integer.

    >>> from tecomp import te
    >>> te.truncdiv(te.var("a", "uint8"), te.var("b", "uint8"))
    a // b
    """
    x, y = _integers(a, b, "truncdiv")
    floor = build_division(BinOp.FLOORDIV, x, y)
    if x.dtype.kind == "uint":
        return floor
    return binary(BinOp.ADD, floor, cast(x.dtype, _rounded_down(x, y)))


def truncmod(a: Value, b: Value) -> Expr:
    """Compute the remainder of `truncdiv`, with the sign of `a`; 0 if `b` is 0.

    Raises:
        TypeMismatchError: If an operand is not an integer.

    >>> from tecomp import te
    >>> te.truncmod(te.var("a", "uint8"), te.var("b", "uint8"))
    a % b
    """
    x, y = _integers(a, b, "truncmod")
    remainder = build_division(BinOp.MOD, x, y)
    if x.dtype.kind == "uint":
        return remainder
    return binary(BinOp.SUB, remainder, ir.select(_rounded_down(x, y), y, const(0, y.dtype)))


def div(a: Value, b: Value) -> Expr:
    """Compute `a / b`: `truncdiv` for integers, the exact quotient if an operand is a float.

    Source:
        tvm.te.div of TVM 0.18, "as in C".

    >>> from tecomp import te
    >>> te.div(te.var("x", "float32"), te.var("y", "float32"))
    x / y
    """
    x, y = match_types(value_of(a), value_of(b), "te.div")
    return binary(BinOp.DIV, x, y) if x.dtype.is_float else truncdiv(x, y)


def _rounded_down(x: Expr, y: Expr) -> Expr:
    """Return whether the floor of `x / y` is less than the quotient rounded towards zero."""
    zero = const(0, x.dtype)
    inexact = compare(CmpOp.NE, binary(BinOp.MOD, x, y), zero)
    opposite = compare(CmpOp.NE, compare(CmpOp.LT, x, zero), compare(CmpOp.LT, y, zero))
    return binary(BinOp.AND, inexact, opposite)


def _integers(a: Value, b: Value, name: str) -> tuple[Expr, Expr]:
    x, y = match_types(value_of(a), value_of(b), f"te.{name}")
    if not x.dtype.is_integer:
        raise TypeMismatchError(
            "te.{caller} expects integers, got {dtype}; write / for a quotient",
            caller=name, dtype=x.dtype,
        )
    return x, y


def if_then_else(cond: Value, t: Value, f: Value) -> Expr:
    """Return `t` if `cond` holds, else `f`; only the selected branch is evaluated.

    The condition therefore guards loads in the branches against out-of-bounds access.

    Raises:
        TypeMismatchError: If `cond` is not a condition, or `t` and `f` have no common dtype.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), A[i - 1], 0.0)).shape
        (6,)
    """
    return ir.if_then_else(value_of(cond), value_of(t), value_of(f))


def select(condition: Value, true_value: Value, false_value: Value) -> Expr:
    """Return `true_value` if `condition` holds, else `false_value`; both are evaluated.

    Raises:
        TypeMismatchError: If `condition` is not a condition, or the values have no common dtype.

    >>> from tecomp import te
    >>> te.select(te.var("i") > 0, 1, 2)
    select(i > int32(0), int32(1), int32(2))
    """
    return ir.select(value_of(condition), value_of(true_value), value_of(false_value))


Select = select


def all(*conditions: Value, axis: Any = None) -> Expr:
    """Return the logical conjunction of `conditions`.

    Raises:
        DefinitionError: If there are no conditions, a list is given, or `axis` is given; use
            `te.min` to reduce a condition.
        TypeMismatchError: If an operand is a number.

    >>> from tecomp import te
    >>> te.all(te.var("i") > 0, te.var("j") > 0)
    i > int32(0) and j > int32(0)
    """
    return logical_and(*_conditions("all", "te.min", conditions, axis))


def any(*conditions: Value, axis: Any = None) -> Expr:
    """Return the logical disjunction of `conditions`.

    Raises:
        DefinitionError: If there are no conditions, a list is given, or `axis` is given; use
            `te.max` to reduce a condition.
        TypeMismatchError: If an operand is a number.

    >>> from tecomp import te
    >>> te.any(te.var("i") > 0, te.var("j") > 0)
    i > int32(0) or j > int32(0)
    """
    return logical_or(*_conditions("any", "te.max", conditions, axis))


def likely(cond: Value) -> Expr:
    """Return `cond` unchanged; the branch hint of TVM has no effect.

    >>> from tecomp import te
    >>> te.likely(te.var("i") > 0)
    i > int32(0)
    """
    return value_of(cond)


def logical_not(condition: Value) -> Expr:
    """Return the logical negation of `condition`.

    >>> from tecomp import te
    >>> te.logical_not(te.var("i") > 0)
    not (i > int32(0))
    """
    return Not(condition_of(value_of(condition), "te.logical_not"))


def _conditions(name: str, reducer: str, conditions: tuple[Any, ...], axis: Any) -> list[Expr]:
    if axis is not None:
        raise DefinitionError(
            "te.{caller} combines conditions and does not take axis=; reduce a condition with "
            "{reducer}(condition, axis=k)",
            kind="reduction", caller=name, reducer=reducer,
        )
    if not conditions:
        raise DefinitionError(
            "te.{caller}: got no conditions; pass at least one",
            kind="missing-input", caller=name,
        )
    if isinstance(conditions[0], list | tuple):
        raise DefinitionError(
            "te.{caller} takes conditions as separate arguments; write te.{caller}(*conditions)",
            kind="reduction", caller=name,
        )
    return [condition_of(value_of(value), f"te.{name}") for value in conditions]


def add(lhs: Value, rhs: Value) -> Any:
    """Compute `lhs + rhs`.

    >>> add(3, 4)
    int32(7)
    """
    return _apply_operator(operator.add, lhs, rhs)


def subtract(lhs: Value, rhs: Value) -> Any:
    """Compute `lhs - rhs`.

    >>> subtract(3, 4)
    int32(-1)
    """
    return _apply_operator(operator.sub, lhs, rhs)


def multiply(lhs: Value, rhs: Value) -> Any:
    """Compute `lhs * rhs`.

    >>> multiply(3, 4)
    int32(12)
    """
    return _apply_operator(operator.mul, lhs, rhs)


def divide(lhs: Value, rhs: Value) -> Any:
    """Compute `lhs / rhs`; integers are rounded towards zero, as by `te.div`.

    >>> divide(3.0, 4)
    float32(3.0) / float32(4.0)
    """
    if builtins.any(map(_is_float, (lhs, rhs))):
        return _apply_operator(operator.truediv, lhs, rhs)
    return div(lhs, rhs)


def _is_float(value: Value) -> bool:
    dtype: DType | None = getattr(value, "dtype", None)
    return isinstance(value, float) if dtype is None else DType(dtype).is_float


def _apply_operator(function: Callable[[Any, Any], Any], lhs: Value, rhs: Value) -> Any:
    tensor: Any = next((operand for operand in (lhs, rhs) if is_whole(operand)), lhs)
    for operand in (tensor, lhs, rhs):
        if isinstance(operand, ExprLike):
            return operand.operated(function, lhs, rhs)
    return function(value_of(lhs), value_of(rhs))
