"""Expressions of physical axes: digits of an index, with the places that they declare."""

from __future__ import annotations

from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Binary, BinOp, Expr, Var, binary, index_value

_NAMES = "ijklmn"


def index_names(rank: int) -> tuple[Var, ...]:
    """A variable for each index: `i, j, k`, or `d0, d1, ...` if there are many."""
    names = _NAMES[:rank] if rank <= len(_NAMES) else [f"d{k}" for k in range(rank)]
    return tuple(Var(name, INT64) for name in names)


def remainder(x: Expr, size: int) -> Expr:
    """`x % size`: an axis of `size` places, also where `x` is a number."""
    return Binary(BinOp.MOD, x, index_value(size))


def quotient(x: Expr, low: int) -> Expr:
    """`x // low`."""
    return x if low == 1 else binary(BinOp.FLOORDIV, x, index_value(low))


def digit(x: Expr, low: int, size: int) -> Expr:
    """`(x // low) % size`: an axis of `size` places."""
    return remainder(quotient(x, low), size)
