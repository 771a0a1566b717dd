"""How a sum is written: the first positive term first, the constant last."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Binary, BinOp, Const, Expr

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
    head, rest = _in_order(terms)
    total = Const(const, INT64) if head is None else _scaled(*head, numbers_first)
    for expr, n in rest:
        part = _scaled(expr, abs(n), numbers_first)
        total = Binary(BinOp.ADD if n > 0 else BinOp.SUB, total, part)
    if head is None or not const:
        return total
    return Binary(BinOp.ADD if const > 0 else BinOp.SUB, total, Const(abs(const), INT64))


def is_written(terms: Sequence[tuple[Expr, int]], const: int, text: Expr) -> bool:
    """Whether `text` is what `written` makes, of the same expressions."""
    head, rest = _in_order(terms)
    if head is not None and const:
        op = BinOp.ADD if const > 0 else BinOp.SUB
        match text:
            case Binary(found, inner, Const(value)) if found is op and value == abs(const):
                text = inner
            case _:
                return False
    for expr, n in reversed(rest):
        match text:
            case Binary(op, inner, part) if op is (BinOp.ADD if n > 0 else BinOp.SUB):
                if not _is_scaled(expr, abs(n), part):
                    return False
                text = inner
            case _:
                return False
    if head is not None:
        return _is_scaled(*head, text)
    return isinstance(text, Const) and text.value == const


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


def _in_order(
    terms: Sequence[tuple[Expr, int]],
) -> tuple[tuple[Expr, int] | None, list[tuple[Expr, int]]]:
    """The term that stands first, without a sign, if there is any, and the others."""
    rest = list(terms)
    head = next((k for k, (_, n) in enumerate(rest) if n > 0), None)
    return (None if head is None else rest.pop(head)), rest


def _scaled(expr: Expr, coefficient: int, number_first: bool) -> Expr:
    if coefficient == 1:
        return expr
    number = Const(coefficient, INT64)
    return Binary(BinOp.MUL, number, expr) if number_first else Binary(BinOp.MUL, expr, number)


def _is_scaled(expr: Expr, coefficient: int, text: Expr) -> bool:
    if coefficient == 1:
        return spelled_alike(expr, text)
    match text:
        case Binary(BinOp.MUL, inner, Const(value)):
            return value == coefficient and spelled_alike(expr, inner)
    return False
