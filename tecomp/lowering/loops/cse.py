"""Common subexpression elimination within a statement.

Condition-aware passes treat a subexpression separately under each path condition. Binding it to a
name before the statement makes it one value. The binding must not read anything that the statement
would not read: a subexpression that is only evaluated under conditions is hoisted if it contains
no read, or is guarded by these conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tecomp.ir.nodes.dtype import BOOL, INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Const,
    Expr,
    Not,
    Ramp,
    Var,
    cast,
    if_then_else,
    is_const,
    logical_and,
    logical_or,
)
from tecomp.ir.traversal.analyses import Arms, PathCondition, PathConditions, arms
from tecomp.ir.traversal.rewrite import children, contains, post_order, replace_children, walk

_PLAIN = (Const, Var, BufferLoad, Ramp, Broadcast)

Lets = list[tuple[Var, Expr]]


def eliminate_common_subexpressions(values: Sequence[Expr]) -> tuple[Lets, list[Expr]]:
    """Return let bindings of the subexpressions that the values share, and the rewritten values.

    Index arithmetic is not named, because bounds analysis depends on its form. Data that is
    gathered within an index has no known form and is treated as any other subexpression.
    """
    nodes = list(post_order(*values, parts=_computed_operands))
    uses = Counter(map(id, values))
    for node in nodes:
        uses.update(map(id, _computed_operands(node)))
    shared = {id(node) for node in nodes if uses[id(node)] > 1 and not isinstance(node, _PLAIN)}
    if not shared:
        return [], list(values)
    namer = _Namer(values)
    for node in post_order(*values):
        namer.visit(node, is_shared=id(node) in shared)
    return namer.lets, [namer.rewritten[id(value)] for value in values]


def _computed_operands(node: Expr) -> Sequence[Expr]:
    """Return the operands that are computed from data; of a load, gathered data in indices."""
    if not isinstance(node, BufferLoad):
        return children(node)
    if all(isinstance(index, (Var, Const)) for index in node.indices):
        return ()
    if not contains((BufferLoad, Call), *node.indices):
        return ()
    inside = walk(*node.indices, parts=lambda part: () if _is_gathered(part) else children(part))
    return [part for part in inside if _is_gathered(part)]


def _is_gathered(node: Expr) -> bool:
    """Return whether a part of an index is data: a load, or a non-int64 value with a load."""
    return isinstance(node, BufferLoad) or (
        node.dtype not in (INT64, BOOL) and any(map(_reads, walk(node))))


def _arms(node: Any) -> Arms:
    """Return the guarded operands of a node; an `and` guards its right operand by the left."""
    match node:
        case Binary(BinOp.AND, a, b):
            return (a, None, True), (b, a, True)
    return arms(node)


class _Namer:
    """Visitor that names shared subexpressions of values in post-order.

    Attributes:
        lets: Bindings so far.
        rewritten: Rewritten nodes by the id of the original node.
    """

    def __init__(self, values: Sequence[Expr]) -> None:
        self.lets: Lets = []
        self.rewritten: dict[int, Expr] = {}
        self._guards = PathConditions(values, _arms)
        # Whether nodes contain no read, and whether they can be computed before the statement.
        self._reads_nothing: dict[int, bool] = {}
        self._is_safe: dict[int, bool] = {}
        for node in post_order(*values):
            self._reads_nothing[id(node)] = not _reads(node) and all(
                self._reads_nothing[id(part)] for part in children(node))

    def visit(self, node: Expr, *, is_shared: bool) -> None:
        rewritten = replace_children(node, self.rewritten)
        guard = self._guards.of(node)
        self._is_safe[id(node)] = guard is None or (
            not _reads(node) and all(self._is_safe[id(part)] for part in _computed_operands(node)))
        value = self._before(node, rewritten, guard) if is_shared and self._is_data(node) else None
        if value is not None:
            rewritten = Var(f"t{len(self.lets) + 1}", value.dtype)
            self.lets.append((rewritten, value))
            self._is_safe[id(node)] = True
        self.rewritten[id(node)] = rewritten

    def _is_data(self, node: Expr) -> bool:
        """Return whether a node is a scalar that is neither an index nor a condition on indices."""
        is_number = node.dtype.lanes == 1 and node.dtype.kind != "handle"
        return is_number and (
            node.dtype not in (INT64, BOOL) or not self._reads_nothing[id(node)])

    def _before(self, node: Expr, expr: Expr, guard: PathCondition | None) -> Expr | None:
        """Return the value to bind before the statement in place of `expr`, or None."""
        if guard is None:
            return expr
        if self._guards.num_conditions(node) == 1:
            return None  # all uses are on one side of one condition
        if self._is_safe[id(node)]:
            return expr
        if any(_may_fail(part) for part in walk(expr)):
            return None
        test = _on_indices(guard.expr())
        return expr if is_const(test, True) else if_then_else(test, expr, cast(expr.dtype, 0))


def _on_indices(condition: Expr) -> Expr:
    """Return a condition on indices that `condition` implies: terms with reads become True.

    The result suffices to prove that indices are in bounds.
    """
    found: dict[tuple[int, bool], Expr] = {}
    for node, negated in post_order((condition, False), parts=_signed_parts, key=_name_of):
        parts = [found[_name_of(part)] for part in _signed_parts((node, negated))]
        match node:
            case Not():
                result = parts[0]
            case Binary(BinOp.AND | BinOp.OR as op):
                is_and = (op is BinOp.AND) != negated
                result = _conjunction(*parts) if is_and else _either(*parts)
            case _ if any(map(_reads, walk(node))):
                result = Const(True, BOOL)
            case _:
                result = Not(node) if negated else node
        found[id(node), negated] = result
    return found[id(condition), False]


_Signed = tuple[Expr, bool]


def _name_of(item: _Signed) -> tuple[int, bool]:
    return id(item[0]), item[1]


def _signed_parts(item: _Signed) -> list[_Signed]:
    node, negated = item
    match node:
        case Not(a):
            return [(a, not negated)]
        case Binary(BinOp.AND | BinOp.OR, a, b) if node.dtype == BOOL:
            return [(a, negated), (b, negated)]
    return []


def _conjunction(a: Expr, b: Expr) -> Expr:
    return b if is_const(a, True) else a if is_const(b, True) else logical_and(a, b)


def _either(a: Expr, b: Expr) -> Expr:
    return Const(True, BOOL) if is_const(a, True) or is_const(b, True) else logical_or(a, b)


def _reads(node: Any) -> bool:
    return isinstance(node, BufferLoad) or _is_check(node)


def _is_check(node: Any) -> bool:
    return isinstance(node, Call) and node.name == "check_index"


def _may_fail(node: Any) -> bool:
    """Return whether a node is an index check or a load whose index is itself loaded."""
    return _is_check(node) or (
        isinstance(node, BufferLoad) and any(map(_reads, walk(*node.indices))))
