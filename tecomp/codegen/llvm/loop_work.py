"""Whether LLVM's loop passes have anything to do in a function.

Most of what is generated is vectors in SSA form already, and those passes are then most of the
compile time and gain nothing. They are needed where a loop has something to move out of it: a sum
in memory, a load or a call that stays the same in each iteration. Conditions that stay the same are
moved out by the code generator itself, as most loops over edges have some. Numbers that stay the
same in a loop which makes vectors of others are operands in memory, and cost as little there.

Source:
    docs/decisions/0008, which has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Var,
)
from tecomp.ir.language.stmt import Allocate, BufferStore, For, ForKind, Let, Stmt
from tecomp.ir.traversal.rewrite import children, post_order, walk

_DECIDING = (BufferLoad, Binary, Call)
_CONDITIONS = (Binary, Compare, Not)
_MAY_CHANGE = (BufferLoad, Call)


def has_loop_work(root: Stmt, *, is_outlined: bool = False) -> bool:
    """Whether an innermost loop of `root` has something to move out, or divides indices.

    Memory that is accessed at constant places only does not count: it becomes registers anyway.

    Args:
        root: what becomes a function.
        is_outlined: whether it includes parallel loops, which are functions of their own otherwise.
    """
    made: set[Var] = set()
    moving: set[Var] = set()
    staying: set[Var] = set()
    statements = list(innermost(root, is_outlined))
    named = {part.var: part.value for _, part in statements if isinstance(part, Let)}
    maps = _vector_maps(statements)
    for loop, statement in statements:
        if isinstance(statement, Allocate):
            made.add(statement.buffer.data)
        for node in _deciding(statement):
            if isinstance(node, BufferLoad | BufferStore):
                data = node.buffer.data
                if not all(map(_is_constant, node.indices)):
                    moving.add(data)
                if id(loop) in maps and isinstance(node, BufferLoad) and node.dtype.lanes == 1:
                    continue
                if loop is not None and data not in staying:
                    # A value that is stored may change; what counts is where it goes.
                    parts = node.indices if isinstance(node, BufferStore) else (node,)
                    if not any(mentions(part, loop.loop_var, named) for part in parts):
                        staying.add(data)
            elif loop is not None and _is_work(node, loop.loop_var, named):
                return True
    return bool(staying - (made - moving))


def innermost(root: Stmt, is_outlined: bool) -> Iterator[tuple[For | None, Stmt]]:
    """Every statement, with the loop around it if that is an innermost one.

    Args:
        root: what becomes a function.
        is_outlined: whether it includes parallel loops, which are functions of their own otherwise.
    """
    found: list[tuple[For | None, Stmt]] = []
    outer: set[int] = set()
    todo: list[tuple[For | None, Stmt]] = [(None, root)]
    while todo:
        loop, node = todo.pop()
        if isinstance(node, For):
            if node.kind is ForKind.PARALLEL and not is_outlined:
                continue
            outer.add(id(loop))
            loop = node
        else:
            found.append((loop, node))
        todo += [(loop, part) for part in children(node) if isinstance(part, Stmt)]
    return ((None if id(loop) in outer else loop, node) for loop, node in found)


def _vector_maps(statements: Sequence[tuple[For | None, Stmt]]) -> set[int]:
    """The innermost loops, by id, that store vectors alone, and read nothing that they store."""
    written: dict[int, set[Var]] = {}
    read: dict[int, set[Var]] = {}
    others: set[int] = set()
    for loop, statement in statements:
        if loop is None:
            continue
        for node in _deciding(statement):
            if isinstance(node, BufferStore):
                written.setdefault(id(loop), set()).add(node.buffer.data)
                if node.value.dtype.lanes == 1:
                    others.add(id(loop))
            elif isinstance(node, BufferLoad):
                read.setdefault(id(loop), set()).add(node.buffer.data)
    return {
        loop for loop, data in written.items()
        if loop not in others and not data & read.get(loop, set())
    }


def _deciding(statement: Stmt) -> Iterator[Any]:
    """The parts of a statement that could be moved out of a loop, each once."""
    if isinstance(statement, BufferStore):
        yield statement
    own = [part for part in children(statement) if not isinstance(part, Stmt)]
    yield from (node for node in walk(*own) if type(node) in _DECIDING)


def mentions(root: Any, var: Var, named: Mapping[Var, Expr] = MappingProxyType({})) -> bool:
    """Whether the value of `root` changes with `var`, by the values that have names too."""

    def parts(node: Any) -> Sequence[Any]:
        return (named[node],) if isinstance(node, Var) and node in named else children(node)

    return any(node is var for node in walk(root, parts=parts))


def _is_constant(index: Any) -> bool:
    match index:
        case Ramp(base, stride):
            return isinstance(base, Const) and isinstance(stride, Const)
        case Broadcast(value):
            return isinstance(value, Const)
    return isinstance(index, Const)


def _is_work(node: Any, var: Var, named: Mapping[Var, Expr]) -> bool:
    if isinstance(node, Call):
        return not mentions(node, var, named)
    if node.op not in (BinOp.FLOORDIV, BinOp.MOD):
        return False
    # What no iteration changes, the code generator moves out, if it is not a division to it.
    return not isinstance(node.b, Const) or mentions(node, var, named)


def staying_conditions(loop: For) -> list[Expr]:
    """The conditions that no iteration of an innermost loop changes, as large as they get.

    They read no memory and cannot fail, so they can be computed before the loop.
    """
    changing: set[Var] = {loop.loop_var}
    conditions: list[Expr] = []
    for node in walk(loop.body, parts=lambda node: () if _is_condition(node) else children(node)):
        if type(node) is For:
            return []
        if type(node) is Let:
            changing.add(node.var)
        if _is_condition(node):
            conditions.append(node)
    return _staying(conditions, changing)


def _is_condition(node: Any) -> bool:
    return type(node) in _CONDITIONS and bool(node.dtype.is_bool)


def _staying(conditions: list[Expr], changing: set[Var]) -> list[Expr]:
    """Those of the conditions, or of the terms joined in them, that stay while others change."""
    stay: dict[int, bool] = {}
    for node in post_order(*conditions):
        own = node in changing if isinstance(node, Var) else isinstance(node, _MAY_CHANGE)
        stay[id(node)] = not own and all(stay[id(part)] for part in children(node))

    def terms(node: Expr) -> Sequence[Expr]:
        joins = isinstance(node, Binary) and node.op in (BinOp.AND, BinOp.OR)
        return children(node) if joins and not stay[id(node)] else ()

    return [node for node in walk(*conditions, parts=terms) if stay[id(node)]]
