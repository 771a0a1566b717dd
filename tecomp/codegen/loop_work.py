"""Whether LLVM's loop passes have anything to do in a function.

Most of what is generated is vectors in SSA form already, and those passes are then most of the
compile time and gain nothing. They are needed where a loop has something to move out of it: a sum
in memory, a load, a condition or a call that stays the same in each round.

Source:
    docs/decisions/0008, which has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tecomp.ir.expr import Binary, BinOp, Broadcast, BufferLoad, Call, Compare, Const, Ramp, Var
from tecomp.ir.rewrite import children
from tecomp.ir.stmt import Allocate, BufferStore, For, ForKind, Stmt

_CONSTANT, _SAME, _CHANGES = range(3)


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
    for loop, statement in _statements(root, is_outlined):
        if isinstance(statement, Allocate):
            made.add(statement.buffer.data)
        for node, level in _levels(statement, loop):
            if isinstance(node, BufferLoad | BufferStore):
                data = node.buffer.data
                if not all(_is_constant(index) for index in node.indices):
                    moving.add(data)
                if level < _CHANGES and loop is not None:
                    staying.add(data)
            elif loop is not None and _is_work(node, level):
                return True
    return bool(staying - (made - moving))


def _statements(root: Stmt, is_outlined: bool) -> Iterator[tuple[For | None, Stmt]]:
    """Every statement, with the loop around it if that is an innermost one."""
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


def _levels(statement: Stmt, loop: For | None) -> Iterator[tuple[Any, int]]:
    """The expressions of a statement, and how they change in a loop; a store as its place does."""
    levels: dict[int, int] = {}
    todo: list[tuple[Any, list[Any] | None]] = [
        (part, None) for part in children(statement) if not isinstance(part, Stmt)
    ]
    while todo:
        node, parts = todo.pop()
        if parts is None:
            if id(node) in levels:
                continue
            parts = children(node)
            if parts:
                todo.append((node, parts))
                todo += [(part, None) for part in parts]
                continue
        if isinstance(node, Var):
            levels[id(node)] = _CHANGES if loop is None or node is loop.loop_var else _SAME
        else:
            levels[id(node)] = max([levels[id(part)] for part in parts], default=_CONSTANT)
        yield node, levels[id(node)]
    if isinstance(statement, BufferStore):
        yield statement, max([levels[id(index)] for index in statement.indices], default=_CONSTANT)


def _is_constant(index: Any) -> bool:
    match index:
        case Ramp(base, stride):
            return isinstance(base, Const) and isinstance(stride, Const)
        case Broadcast(value):
            return isinstance(value, Const)
    return isinstance(index, Const)


def _is_work(node: Any, level: int) -> bool:
    if isinstance(node, Compare | Call):
        return level == _SAME
    divides = isinstance(node, Binary) and node.op in (BinOp.FLOORDIV, BinOp.MOD)
    return divides and level > _CONSTANT
