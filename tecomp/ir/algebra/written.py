"""How a sum is written: the first positive term first, the constant last."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr

_INDEX_OPS = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)


def written(
    terms: Sequence[tuple[Expr, int]], const: int, *, numbers_first: bool = False
) -> Expr:
    """The sum of each expression times its coefficient, none of which is 0, and a constant.

    Args:
        terms: the expressions and their coefficients.
        const: the constant.
        numbers_first: whether to write `4 * x` rather than `x * 4`.
    """
    rest = list(terms)
    head = next((k for k, (_, n) in enumerate(rest) if n > 0), None)
    total = Const(const, INT64) if head is None else _scaled(*rest.pop(head), numbers_first)
    for expr, n in rest:
        part = _scaled(expr, abs(n), numbers_first)
        total = Binary(BinOp.ADD if n > 0 else BinOp.SUB, total, part)
    if head is None or not const:
        return total
    return Binary(BinOp.ADD if const > 0 else BinOp.SUB, total, Const(abs(const), INT64))


def spelled_alike(a: Expr, b: Expr) -> bool:
    """Whether two sums are written in the same way, of the same unknowns."""
    todo = [(a, b)]
    while todo:
        x, y = todo.pop()
        if x is y:
            continue
        match x, y:
            case Binary(op, p, q), Binary(other, r, s) if op is other and op in _INDEX_OPS:
                todo += [(p, r), (q, s)]
            case Const(value), Const(other) if value == other and x.dtype == y.dtype:
                pass
            case _:
                return False
    return True


def _scaled(expr: Expr, coefficient: int, number_first: bool) -> Expr:
    if coefficient == 1:
        return expr
    number = Const(coefficient, INT64)
    return Binary(BinOp.MUL, number, expr) if number_first else Binary(BinOp.MUL, expr, number)
