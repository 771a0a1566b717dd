"""Division and remainder under the names that say how they round."""

from __future__ import annotations

from tecomp.compute.arithmetic import Value, value_of
from tecomp.errors import TypeMismatchError
from tecomp.ir.language.expr import (
    BinOp,
    CmpOp,
    Expr,
    binary,
    cast,
    compare,
    const,
    divided,
    match_types,
    select,
)


def floordiv(a: Value, b: Value) -> Expr:
    """`a // b`, rounded towards minus infinity.

    >>> from tecomp import te
    >>> te.floordiv(te.var("a"), te.var("b"))
    a // b
    """
    return divided(BinOp.FLOORDIV, value_of(a), value_of(b))


def floormod(a: Value, b: Value) -> Expr:
    """`a % b`, with the sign of `b`.

    >>> from tecomp import te
    >>> te.floormod(te.var("a"), te.var("b"))
    a % b
    """
    return divided(BinOp.MOD, value_of(a), value_of(b))


indexdiv = floordiv
indexmod = floormod


def truncdiv(a: Value, b: Value) -> Expr:
    """`a / b` of integers rounded towards zero, as in C; 0 where `b` is 0.

    Raises:
        TypeMismatchError: an operand is no integer.

    >>> from tecomp import te
    >>> te.truncdiv(te.var("a", "uint8"), te.var("b", "uint8"))
    a // b
    """
    x, y = _integers(a, b, "truncdiv")
    floor = divided(BinOp.FLOORDIV, x, y)
    if x.dtype.kind == "uint":
        return floor
    return binary(BinOp.ADD, floor, cast(x.dtype, _rounded_down(x, y)))


def truncmod(a: Value, b: Value) -> Expr:
    """The remainder of `truncdiv`, with the sign of `a`; 0 where `b` is 0.

    Raises:
        TypeMismatchError: an operand is no integer.

    >>> from tecomp import te
    >>> te.truncmod(te.var("a", "uint8"), te.var("b", "uint8"))
    a % b
    """
    x, y = _integers(a, b, "truncmod")
    rest = divided(BinOp.MOD, x, y)
    if x.dtype.kind == "uint":
        return rest
    return binary(BinOp.SUB, rest, select(_rounded_down(x, y), y, const(0, y.dtype)))


def div(a: Value, b: Value) -> Expr:
    """`a / b`: `truncdiv` of two integers, the quotient where one is a float.

    Source:
        tvm.te.div of TVM 0.18, "as in C".

    >>> from tecomp import te
    >>> te.div(te.var("x", "float32"), te.var("y", "float32"))
    x / y
    """
    x, y = match_types(value_of(a), value_of(b), "te.div")
    return binary(BinOp.DIV, x, y) if x.dtype.is_float else truncdiv(x, y)


def _rounded_down(x: Expr, y: Expr) -> Expr:
    """Whether the floor of `x / y` is less than the quotient without its fraction."""
    zero = const(0, x.dtype)
    inexact = compare(CmpOp.NE, binary(BinOp.MOD, x, y), zero)
    opposite = compare(CmpOp.NE, compare(CmpOp.LT, x, zero), compare(CmpOp.LT, y, zero))
    return binary(BinOp.AND, inexact, opposite)


def _integers(a: Value, b: Value, who: str) -> tuple[Expr, Expr]:
    x, y = match_types(value_of(a), value_of(b), f"te.{who}")
    if not x.dtype.is_integer:
        raise TypeMismatchError(f"te.{who} takes integers, not {x.dtype}; write / for a quotient")
    return x, y
