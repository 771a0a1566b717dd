"""Loops through parts of a loop, of which the last may be cut short: what forms of them pay."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.ir.algebra.facts import Facts
from tecomp.ir.language.expr import Binary, BinOp, BufferLoad, Const, Expr
from tecomp.ir.language.stmt import BufferStore, For
from tecomp.ir.traversal.rewrite import walk

_GLOBAL = "global"


def cut_short(extent: Expr, most: int) -> Expr | None:
    """What is left, if an extent is that or `most`, whichever is less; None if it is another.

    >>> from tecomp.ir.language.expr import Var, binary
    >>> n = Var("n")
    >>> print(cut_short(binary(BinOp.MIN, Const(8), n - 16), 8), cut_short(n - 16, 8))
    n - 16 None
    """
    match extent:
        case Binary(BinOp.MIN, Const(value), rest) if value == most:
            return rest
    return None


def has_whole_form(facts: Facts, others: Sequence[Expr], rest: Expr, most: int) -> bool:
    """Whether one of the conditions in whose other case a loop is says that `most` are left.

    Beside the loop there is a form of it then that no iteration is missing from, and what is cut
    short is this one.
    """
    total = facts.terms.sum_of(rest)
    for condition in others:
        state = facts.enter()
        facts.assume(condition)
        is_whole = facts.at_least(total, most)
        facts.leave(state)
        if is_whole:
            return True
    return False


def indexes_registers(loop: For) -> bool:
    """Whether its iterations have memory of their own other than the global one: maybe registers.

    Registers are named, so each iteration has to be a copy of its own.
    """
    return any(
        isinstance(node, BufferLoad | BufferStore)
        and not node.buffer.scope.startswith(_GLOBAL)
        and any(part is loop.loop_var for part in walk(*node.indices))
        for node in walk(loop.body)
    )
