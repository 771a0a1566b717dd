"""Substitute buffers and variables, and rename duplicate definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import Ranges, simplify
from tecomp.ir.nodes.expr import BinOp, BufferLoad, Expr, Var, binary, index_value, is_const
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    Let,
    PrimFunc,
    Stmt,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.analyses import nonnegative_variables
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    children,
    free_variables,
    map_body,
    rebuild,
    run_trampoline,
    substitute,
    walk,
)

N = TypeVar("N")
V = TypeVar("V", bound=Var)


def with_buffer(node: Any, buffer: Buffer) -> Any:
    """Return `node`, a statement or load with a buffer, with `buffer` instead."""
    match node:
        case BufferLoad(_, indices, predicate):
            return BufferLoad(buffer, indices, predicate)
        case BufferStore(_, value, indices, predicate):
            return BufferStore(buffer, value, indices, predicate)
        case Allocate(_, body):
            return Allocate(buffer, body)
        case DeclBuffer(_, body):
            return DeclBuffer(buffer, body)
        case BufferRealize():
            return replace(node, buffer=buffer)
    return node


def map_buffers(root: N, f: Callable[[Buffer], Buffer]) -> N:
    """Replace every buffer in `root` by the result of `f`."""
    done: dict[int, tuple[Buffer, Buffer]] = {}

    def rule(node: Any) -> Any:
        buffer = getattr(node, "buffer", None)
        if buffer is None:
            return None
        if id(buffer) not in done:
            done[id(buffer)] = buffer, f(buffer)
        new = done[id(buffer)][1]
        return None if new is buffer else with_buffer(node, new)

    return bottom_up(root, rule)


def replace_variables(root: N, values: Mapping[V, Expr]) -> N:
    """Substitute variables also in buffers: in their entries (simplified) and their data."""
    if not values:
        return root
    return map_buffers(
        substitute(root, values), lambda buffer: replace_in_buffer(buffer, values))


def replace_in_buffer(buffer: Buffer, values: Mapping[V, Expr]) -> Buffer:
    """Substitute variables in `buffer`; return the same object if it contains none of them.

    The replacement of a data variable must be a variable.
    """
    known: Mapping[Any, Expr] = values

    def extent(value: Extent) -> Extent:
        return value if isinstance(value, int) else simplify(substitute(value, values))

    data = known.get(buffer.data, buffer.data)
    assert isinstance(data, Var)
    if data is buffer.data and not any(var in known for var in extent_variables(buffer)):
        return buffer
    return replace(buffer.with_entries(tuple(map(extent, buffer.entries))), data=data)


def extent_variables(buffer: Buffer) -> dict[Var, None]:
    """Return the variables in the shape, strides and offset of a buffer."""
    found: dict[Var, None] = {}
    for value in buffer.entries:
        if isinstance(value, Expr):
            found.update(free_variables(value))
    return found


def buffers_in(root: Any) -> dict[Buffer, None]:
    """Return the distinct buffers in `root`, including views of one memory."""
    return {node.buffer: None for node in walk(root) if getattr(node, "buffer", None) is not None}


def memories_of(func: PrimFunc) -> dict[Var, Buffer]:
    """Return the parameter, allocation or realization of each memory, which is not a view."""
    found = {p.data: p for p in func.params if isinstance(p, Buffer)}
    for node in walk(func.body):
        if isinstance(node, Allocate | BufferRealize):
            found.setdefault(node.buffer.data, node.buffer)
    return found


def check_whole(node: BufferRealize, view: Buffer, step: str) -> None:
    """Raise if a memory with a view is realized only partially or with aligned rows.

    Raises:
        LowerError: If `bounds` are not the whole buffer, or if `aligns` are given.
    """
    is_whole = not node.aligns and all(
        is_const(part.min, 0) and structural_equal(part.extent, index_value(extent))
        for part, extent in zip(node.bounds, node.buffer.shape, strict=True)
    )
    if not is_whole:
        raise LowerError(
            "{step}: `{view}` is a view of `{buffer}`, of which only a region is realized; realize "
            "the whole buffer without aligns, or access it without the view",
            step=step, view=view.name, buffer=node.buffer.name,
        )


Rule: TypeAlias = "Callable[[Stmt, Ranges], Stmt | None]"


def rewrite_statements(root: Stmt, rule: Rule, ranges: Ranges) -> Stmt:
    """Apply `rule` once to every statement in post-order; None leaves a statement unchanged.

    Args:
        root: Statement to rewrite.
        rule: Function of a statement and the ranges (minimum, maximum) of the variables in scope.
        ranges: Ranges of the variables around `root`.
    """
    result: Stmt = run_trampoline(_statement(root, rule, ranges))
    return result


def _statement(node: Stmt, rule: Rule, ranges: Ranges) -> Task:
    inner = {**ranges, node.loop_var: range_of(node)} if isinstance(node, For) else ranges
    done: dict[int, Any] = {}
    for child in children(node):
        if isinstance(child, Stmt):
            done[id(child)] = yield _statement(child, rule, inner)
    rebuilt = rebuild(node, lambda child: done.get(id(child), child))
    result = rule(rebuilt, ranges)
    return rebuilt if result is None else result


def range_of(loop: For) -> tuple[Expr, Expr]:
    """Return the minimum and maximum of a loop variable."""
    end = binary(BinOp.ADD, loop.min, loop.extent)
    return loop.min, binary(BinOp.SUB, end, index_value(1))


def size_ranges(func: PrimFunc) -> Ranges:
    """Return the ranges of size variables, which are nonnegative."""
    return {size: (0, None) for size in nonnegative_variables(func)}


_Names: TypeAlias = "Mapping[Var, Var]"


def rename_duplicates(func: PrimFunc) -> PrimFunc:
    """Copy shared statements and rename variables, so that every variable is bound once.

    The first occurrence keeps its object and variables; further occurrences are copies with fresh
    variables. Expressions may still be shared.
    """
    bound = set(func.bound())
    visited: set[int] = set()

    def statement(node: Any, names: _Names) -> Task:
        binders: tuple[Var, ...] = getattr(node, "bound", tuple)()
        renamed = {var: Var(var.name, var.dtype) for var in binders if var in bound}
        bound.update(binders)
        is_repeated = id(node) in visited
        visited.add(id(node))
        inside = {**names, **renamed} if renamed else names
        inner = []
        for child in children(node):
            if isinstance(child, Stmt):
                inner.append((yield statement(child, inside)))
        rebuilt = _rename_variables(node, inner, names, inside)
        return replace(rebuilt) if is_repeated and rebuilt is node else rebuilt

    return map_body(func, lambda body: run_trampoline(statement(body, {})))


def _rename_variables(node: Any, inner: Sequence[Stmt], names: _Names, inside: _Names) -> Any:
    """Rebuild `node` with new inner statements and variables.

    Args:
        node: Statement to copy.
        inner: New child statements, in order.
        names: New variables in scope around `node`.
        inside: `names` and the new variables that `node` binds.
    """
    pending = iter(inner)
    rebuilt = rebuild(node, lambda child: (
        next(pending) if isinstance(child, Stmt) else replace_variables(child, names)))
    if not inside:
        return rebuilt
    match rebuilt:
        case For(var):
            return replace(rebuilt, loop_var=inside.get(var, var))
        case Let(var):
            return replace(rebuilt, var=inside.get(var, var))
    buffer = getattr(rebuilt, "buffer", None)
    return rebuilt if buffer is None else with_buffer(rebuilt, replace_in_buffer(buffer, inside))
