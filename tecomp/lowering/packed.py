"""Elements that an operation takes together, such as four bytes of a dot product, read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.equal import same
from tecomp.ir.expr import BinOp, BufferLoad, Call, Expr, Var, binary, is_const
from tecomp.ir.rewrite import bottom_up, top_down, walk
from tecomp.ir.simplify import simplify
from tecomp.ir.stmt import Allocate, Buffer, DeclBuffer, PrimFunc, Stmt

Views = dict[tuple[Var, int], Buffer]


def pack_reads(func: PrimFunc) -> PrimFunc:
    """Replace each `join` of elements by a read of a view whose elements are vectors.

    The elements lie side by side, and the first at a multiple of how many there are: what layouts
    with an innermost `% 4` make sure of.

    Raises:
        LowerError: they lie anywhere else, or only some of them are there.
    """
    if not any(_is_join(node) for node in walk(func.body)):
        return func
    views: Views = {}
    body = top_down(func.body, lambda node: _read(node, views) if _is_join(node) else None)
    return replace(func, body=_declared(body, func, views))


def _is_join(node: object) -> bool:
    return isinstance(node, Call) and node.name == "join"


def _read(join: Call, views: Views) -> BufferLoad:
    parts = _elements(join)
    first, count = parts[0], len(parts)
    _check(join, parts)
    *outer, last = first.indices
    key = first.buffer.data, count
    if key not in views:
        views[key] = _view(first.buffer, count)
    index = simplify(binary(BinOp.FLOORDIV, last, count))
    return BufferLoad(views[key], (*outer, index), first.predicate)


def _elements(join: Call) -> list[BufferLoad]:
    """The reads in order."""
    found: list[BufferLoad] = []
    todo: list[Expr] = [join]
    while todo:
        node = todo.pop()
        if isinstance(node, BufferLoad):
            found.append(node)
        elif isinstance(node, Call) and node.name == "join":
            todo += reversed(node.args)
        else:
            raise LowerError(
                f"pack_reads: `{join}` joins `{node}`, which is no element of memory; join "
                "elements of one operand"
            )
    return found


def _check(join: Call, parts: Sequence[BufferLoad]) -> None:
    first = parts[0]
    for k, part in enumerate(parts):
        if part.buffer.data is not first.buffer.data:
            raise LowerError(f"pack_reads: `{join}` joins elements of several buffers; join one's")
        if not _same(part.predicate, first.predicate):
            raise LowerError(
                f"pack_reads: `{first}` and `{part}` are read together, but not under one "
                "condition; give the tensor a layout with whole groups and a pad_value"
            )
        step = simplify(binary(BinOp.SUB, part.indices[-1], first.indices[-1]))
        outer = zip(part.indices[:-1], first.indices[:-1], strict=True)
        if not is_const(step, k) or not all(same(a, b) for a, b in outer):
            raise LowerError(
                f"pack_reads: `{first}` and `{part}` are read together, but do not lie side by "
                f"side; give {first.buffer.name} a layout whose last axis counts these elements"
            )
    if not is_const(simplify(binary(BinOp.MOD, first.indices[-1], len(parts))), 0):
        raise LowerError(
            f"pack_reads: `{first}` and the next {len(parts) - 1} are read together, but the "
            f"first need not be at a multiple of {len(parts)}; give {first.buffer.name} a layout "
            f"with an innermost `% {len(parts)}`"
        )


def _same(a: Expr | None, b: Expr | None) -> bool:
    return a is b or (a is not None and b is not None and same(a, b))


def _view(buffer: Buffer, count: int) -> Buffer:
    *outer, last = buffer.shape
    groups = last // count if isinstance(last, int) else simplify(
        binary(BinOp.FLOORDIV, last, count))
    kind = buffer.dtype.with_lanes(count)
    return replace(buffer, name=f"{buffer.name}_x{count}", shape=(*outer, groups), dtype=kind)


def _declared(body: Stmt, func: PrimFunc, views: Views) -> Stmt:
    """`body` with each view declared where its memory begins."""

    def rule(node: Any) -> Any:
        if not isinstance(node, Allocate):
            return None
        inner = node.body
        for (data, _), view in views.items():
            if data is node.buffer.data:
                inner = DeclBuffer(view, inner)
        return None if inner is node.body else Allocate(node.buffer, inner)

    body = bottom_up(body, rule)
    passed = {param.data for param in func.params if isinstance(param, Buffer)}
    for (data, _), view in views.items():
        if data in passed:
            body = DeclBuffer(view, body)
    return body
