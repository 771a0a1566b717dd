"""Reducers that take one of two tuples whole, as an argmax does."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.reduce import CommReducer
from tecomp.ir.language.expr import Call, CmpOp, Expr, Select, Var, compare, select
from tecomp.ir.traversal.rewrite import substitute


def is_selection(combiner: CommReducer) -> bool:
    """Whether the result is one of both tuples, by one condition for all of their values."""
    parts = [_parts(value) for value in combiner.result]
    if len(parts) < 2 or len({str(part[0]) for part in parts if part}) != 1 or None in parts:
        return False
    chosen = [(part[1], part[2]) for part in parts if part]
    ends = list(zip(combiner.lhs, combiner.rhs, strict=True))
    return chosen in (ends, [(b, a) for a, b in ends])


def in_order(combiner: CommReducer, k: int) -> CommReducer:
    """The same of partial results in any order: the one with the lesser value `k` comes first."""
    swapped: dict[Var, Expr] = dict(zip(
        (*combiner.lhs, *combiner.rhs), (*combiner.rhs, *combiner.lhs), strict=True
    ))
    is_first = compare(CmpOp.LE, combiner.lhs[k], combiner.rhs[k])
    result = tuple(
        select(is_first, value, substitute(value, swapped)) for value in combiner.result
    )
    return replace(combiner, result=result)


def _parts(value: Expr) -> tuple[Expr, Expr, Expr] | None:
    """A condition, and what it chooses; None if it is no such value."""
    if isinstance(value, Select):
        return value.condition, value.a, value.b
    if isinstance(value, Call) and value.name == "if_then_else":
        condition, a, b = value.args
        return condition, a, b
    return None
