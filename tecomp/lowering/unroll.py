"""Write out the loops that are marked to be unrolled."""

from __future__ import annotations

from typing import Any

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Binary, BinOp, CmpOp, Compare, Const, Expr, Var, binary, index_value
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
from tecomp.lowering.buffers import buffers_in, extent_variables, replace_variables

LIMIT = 4096
_MOST_GUARDED = 16


def unroll_loops(func: PrimFunc, limit: int = LIMIT) -> PrimFunc:
    """Replace each `unrolled` loop by one copy of its body for each turn, in order.

    A loop whose extent is known only up to a small bound, such as `min(8, n - 8*io)`, becomes as
    many copies as the bound says, each under a condition. A loop stays, as a serial one, if it
    has no such bound or its copies were more than `limit` statements; loops inside it may still
    be unrolled.

    Args:
        func: any function.
        limit: the most statements that one loop may become.
    """

    def rule(node: Any) -> Stmt | None:
        if not isinstance(node, For) or node.kind is not ForKind.UNROLLED:
            return None
        turns = _turns(node)
        statements = sum(isinstance(part, BufferStore | Let) for part in walk(node.body))
        if turns is None or turns * statements > limit:
            return For(node.loop_var, node.min, node.extent, ForKind.SERIAL, node.body)
        in_shapes = any(node.loop_var in extent_variables(b) for b in buffers_in(node.body))
        copies = tuple(_copy(node, turn, in_shapes=in_shapes) for turn in range(turns))
        return SeqStmt(copies).stands_for

    return map_body(func, lambda body: bottom_up(body, rule))


def _turns(loop: For) -> int | None:
    """How many copies to make."""
    if isinstance(loop.extent, Const):
        return max(int(loop.extent.value), 0)
    most = constant_upper_bound(loop.extent)
    return max(most, 0) if most is not None and most <= _MOST_GUARDED else None


def _copy(loop: For, turn: int, *, in_shapes: bool) -> Stmt:
    """The body at one turn; `in_shapes` says whether the shape of a buffer depends on it."""
    value = binary(BinOp.ADD, loop.min, index_value(turn)) if turn else loop.min
    body = replace_variables(loop.body, {loop.loop_var: value}) if in_shapes else loop.body
    body = _with_value(body, loop.loop_var, value)
    if isinstance(loop.extent, Const):
        return body
    return IfThenElse(Compare(CmpOp.GT, loop.extent, index_value(turn)), seq(body))


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
