"""Write out the loops that are marked to be unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import (
    Binary,
    BinOp,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    index_value,
)
from tecomp.ir.rewrite import bottom_up, map_body, walk
from tecomp.ir.simplify import constant_upper_bound
from tecomp.ir.stmt import (
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.tasks import Task, run
from tecomp.lowering.buffers import buffers_in, extent_variables, replace_variables

LIMIT = 4096
_MOST_GUARDED = 16


def unroll_loops(func: PrimFunc, limit: int = LIMIT) -> PrimFunc:
    """Replace each `unrolled` loop by one copy of its body for each turn, in order.

    A loop whose extent is known only up to a small bound, such as `min(8, n - 8*io)`, becomes as
    many copies as the bound says, each under a condition, and in a second form, for rounds that
    reach the bound, under none. A loop stays, as a serial one, if it has no such bound or its
    copies were more than `limit` statements; loops inside it may still be unrolled.

    A condition that is all of a loop's body, and the same in all its rounds, is asked once, unless
    the loop is parallel.

    Args:
        func: any function.
        limit: the most statements that one loop may become.
    """

    def rule(node: Any) -> Stmt | None:
        made: Stmt | None = run(_loop(node, limit)) if isinstance(node, For) else None
        return made

    return map_body(func, lambda body: bottom_up(body, rule))


def _loop(loop: For, limit: int) -> Task:
    """A loop whose body is done: conditions that stay the same outside of it, and written out."""
    if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return loop
    match loop.body:
        case IfThenElse(condition, then, other) if _stays_the_same(condition, loop):
            first = yield _loop(replace(loop, body=then), limit)
            second = None if other is None else (yield _loop(replace(loop, body=other), limit))
            return IfThenElse(condition, first, second)
    return loop if loop.kind is ForKind.SERIAL else _unrolled(loop, limit)


def _stays_the_same(condition: Expr, loop: For) -> bool:
    parts = walk(condition)
    return not any(part is loop.loop_var or isinstance(part, BufferLoad | Call) for part in parts)


def _unrolled(loop: For, limit: int) -> Stmt:
    turns = _turns(loop)
    statements = sum(isinstance(part, BufferStore | Let) for part in walk(loop.body))
    forms = 1 if isinstance(loop.extent, Const) else 2
    if turns is None or forms * turns * statements > limit:
        return replace(loop, kind=ForKind.SERIAL)
    in_shapes = any(loop.loop_var in extent_variables(b) for b in buffers_in(loop.body))
    copies = tuple(_copy(loop, turn, in_shapes=in_shapes) for turn in range(turns))
    whole = SeqStmt(copies).stands_for
    if isinstance(loop.extent, Const):
        return whole
    rest = _remainder(loop.extent, turns)
    some = _some(loop.extent, copies)
    return some if rest is None else IfThenElse(
        Compare(CmpOp.GE, rest, index_value(turns)), whole, some)


def _turns(loop: For) -> int | None:
    """How many copies to make."""
    if isinstance(loop.extent, Const):
        return max(int(loop.extent.value), 0)
    most = constant_upper_bound(loop.extent)
    return max(most, 0) if most is not None and most <= _MOST_GUARDED else None


def _remainder(extent: Expr, turns: int) -> Expr | None:
    """What is left, if the extent is that or `turns`, whichever is less."""
    match extent:
        case Binary(BinOp.MIN, Const(most), rest) if most == turns:
            return rest
    return None


def _some(extent: Expr, copies: Sequence[Stmt]) -> Stmt:
    """The copies, each if the loop gets that far."""
    return seq(*(
        IfThenElse(Compare(CmpOp.GT, extent, index_value(turn)), seq(copy))
        for turn, copy in enumerate(copies)
    ))


def _copy(loop: For, turn: int, *, in_shapes: bool) -> Stmt:
    """The body at one turn; `in_shapes` says whether the shape of a buffer depends on it."""
    value = binary(BinOp.ADD, loop.min, index_value(turn)) if turn else loop.min
    body = replace_variables(loop.body, {loop.loop_var: value}) if in_shapes else loop.body
    return _with_value(body, loop.loop_var, value)


def _with_value(body: Stmt, var: Var, value: Expr) -> Stmt:
    """`body` with `value` for `var`; what becomes constant is computed at once."""

    def rule(node: Any) -> Expr | None:
        if node is var:
            return value
        if not isinstance(node, Binary) or node.dtype != INT64:
            return None
        match node:
            case Binary(op, Const() as a, Const() as b):
                return binary(op, a, b)
            case Binary(BinOp.ADD, Const(0), x) | Binary(BinOp.ADD | BinOp.SUB, x, Const(0)):
                return x
            case Binary(BinOp.MUL, Const(1), x) | Binary(BinOp.MUL, x, Const(1)):
                return x
        return None

    return bottom_up(body, rule)
