"""Conditions and choices between expressions."""

from __future__ import annotations

from typing import Any

from tecomp.compute.arithmetic import Value, value_of
from tecomp.errors import DefinitionError
from tecomp.ir.language import expr as ir
from tecomp.ir.language.expr import Expr, Not, condition_of, logical_and, logical_or


def if_then_else(cond: Value, t: Value, f: Value) -> Expr:
    """`t` if `cond` holds, else `f`; only that one is evaluated, so the condition guards reads.

    Raises:
        TypeMismatchError: `cond` is no condition, or `t` and `f` have no common type.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), A[i - 1], 0.0)).shape
        (6,)
    """
    return ir.if_then_else(value_of(cond), value_of(t), value_of(f))


def select(condition: Value, true_value: Value, false_value: Value) -> Expr:
    """`true_value` where `condition` holds, else `false_value`; both are evaluated.

    Raises:
        TypeMismatchError: the condition is none, or the values have no common type.

    >>> from tecomp import te
    >>> te.select(te.var("i") > 0, 1, 2)
    select(i > int32(0), int32(1), int32(2))
    """
    return ir.select(value_of(condition), value_of(true_value), value_of(false_value))


Select = select


def all(*conditions: Value, axis: Any = None) -> Expr:
    """The condition that all of `conditions` hold.

    Raises:
        DefinitionError: there are none, or an axis is given: this is not a reduction.
        TypeMismatchError: one is a number.

    >>> from tecomp import te
    >>> te.all(te.var("i") > 0, te.var("j") > 0)
    i > int32(0) and j > int32(0)
    """
    return logical_and(*_conditions("all", "te.min", conditions, axis))


def any(*conditions: Value, axis: Any = None) -> Expr:
    """The condition that any of `conditions` holds.

    Raises:
        DefinitionError: there are none, or an axis is given: this is not a reduction.
        TypeMismatchError: one is a number.

    >>> from tecomp import te
    >>> te.any(te.var("i") > 0, te.var("j") > 0)
    i > int32(0) or j > int32(0)
    """
    return logical_or(*_conditions("any", "te.max", conditions, axis))


def likely(cond: Value) -> Expr:
    """`cond`: which branch is taken more often is not told to the processor.

    >>> from tecomp import te
    >>> te.likely(te.var("i") > 0)
    i > int32(0)
    """
    return value_of(cond)


def logical_not(condition: Value) -> Expr:
    """The condition that `condition` does not hold.

    >>> from tecomp import te
    >>> te.logical_not(te.var("i") > 0)
    not (i > int32(0))
    """
    return Not(condition_of(value_of(condition), "te.logical_not"))


def _conditions(who: str, reducer: str, given: tuple[Any, ...], axis: Any) -> list[Expr]:
    if axis is not None:
        raise DefinitionError(
            f"te.{who} joins conditions and takes no axis=; reduce a condition with "
            f"{reducer}(condition, axis=k)",
            kind="reduction",
        )
    if not given:
        raise DefinitionError(f"te.{who} of no conditions; give at least one", kind="nothing-given")
    if isinstance(given[0], list | tuple):
        raise DefinitionError(
            f"te.{who} takes its conditions one by one; write te.{who}(*conditions)",
            kind="reduction",
        )
    return [condition_of(value_of(value), f"te.{who}") for value in given]
