"""Replace buffers, or the variables in their shapes, in every statement and access that has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import BufferLoad, Expr, Var
from tecomp.ir.language.stmt import Allocate, Buffer, BufferRealize, BufferStore, DeclBuffer, Extent
from tecomp.ir.traversal.rewrite import bottom_up, free_variables, substitute, walk

N = TypeVar("N")
V = TypeVar("V", bound=Var)


def with_buffer(node: Any, buffer: Buffer) -> Any:
    """`node`, a statement or a read that has a buffer, with another one."""
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
    """`root` with every buffer replaced by what `f` makes of it."""
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
    """As `substitute`, in buffers too: their shapes and strides, which stay simple, and memory."""
    if not values:
        return root
    return map_buffers(
        substitute(root, values), lambda buffer: replace_in_buffer(buffer, values))


def replace_in_buffer(buffer: Buffer, values: Mapping[V, Expr]) -> Buffer:
    """`buffer` with variables replaced; the same object if it has none of them.

    Its memory is replaced by other memory only: by a variable.
    """
    known: Mapping[Any, Expr] = values

    def extent(value: Extent) -> Extent:
        return value if isinstance(value, int) else simplify(substitute(value, values))

    data = known.get(buffer.data, buffer.data)
    assert isinstance(data, Var)
    if data is buffer.data and not any(var in known for var in extent_variables(buffer)):
        return buffer
    strides = None if buffer.strides is None else tuple(map(extent, buffer.strides))
    return replace(buffer, shape=tuple(map(extent, buffer.shape)), strides=strides, data=data)


def extent_variables(buffer: Buffer) -> dict[Var, None]:
    """Variables in the shape and the strides of a buffer."""
    found: dict[Var, None] = {}
    for value in (*buffer.shape, *(buffer.strides or ())):
        if isinstance(value, Expr):
            found.update(free_variables(value))
    return found


def buffers_in(root: Any) -> dict[Buffer, None]:
    """Every buffer that occurs, once for each memory and form."""
    return {node.buffer: None for node in walk(root) if getattr(node, "buffer", None) is not None}
