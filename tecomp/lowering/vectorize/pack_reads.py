"""Combine adjacent reads into vector loads.

A `reinterpret` of joined elements as one scalar also accepts computed elements and elements that
are not adjacent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BinOp, BufferLoad, Call, Const, Expr, Var, binary, cast, is_const
from tecomp.ir.nodes.stmt import Allocate, Buffer, DeclBuffer, PrimFunc, Stmt
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, fold, nodes_of, top_down

Views = dict[tuple[Var, int], Buffer]


def pack_reads(func: PrimFunc) -> PrimFunc:
    """Replace each `join` of elements by a load from a view with a vector dtype.

    A `reinterpret` of a join as one scalar is assembled by shifts if no such load is possible.

    The n elements must be adjacent, and the index of the first must be a multiple of n. Layouts
    with an innermost `% n`, such as `% 4`, guarantee this.

    Raises:
        LowerError: If the elements are not adjacent or not aligned, belong to several buffers or
            to a buffer with strides, are computed, or are read under different predicates.
    """
    if not any(call.name == "join" for call in nodes_of(Call, func.body)):
        return func
    views: Views = {}

    def rule(node: object) -> Expr | None:
        if isinstance(node, Call) and _is_word(node):
            (join,) = node.args
            return _put_together(node) if _problem(join, _parts(join)) else None
        return _read_packed(node, views) if isinstance(node, Call) and _is_join(node) else None

    body = top_down(func.body, rule)
    return replace(func, body=_declare_views(body, func, views))


def _is_join(node: object) -> bool:
    return isinstance(node, Call) and node.name == "join"


def _is_word(node: Call) -> bool:
    """Return whether a call reinterprets the bits of a join as one scalar."""
    return node.name == "reinterpret" and node.dtype.lanes == 1 and _is_join(node.args[0])


def _put_together(call: Call) -> Expr:
    """Assemble a scalar from the bits of non-adjacent or computed elements with shifts."""
    parts = _parts(call.args[0])
    width = parts[0].dtype.bits
    kind = DType(f"uint{call.dtype.bits}")
    joined: Expr = Const(0, kind)
    for k, part in enumerate(parts):
        raw = cast(kind, Call("reinterpret", (part,), DType(f"uint{width}")))
        shifted = binary(BinOp.SHL, raw, Const(width * k, kind)) if k else raw
        joined = binary(BinOp.BITOR, joined, shifted) if k else shifted
    return Call("reinterpret", (joined,), call.dtype)


def _read_packed(join: Call, views: Views) -> BufferLoad:
    parts = _parts(join)
    if problem := _problem(join, parts):
        raise LowerError("pack_reads: {problem}", problem=problem)
    first, count = parts[0], len(parts)
    assert isinstance(first, BufferLoad)
    *outer, last = first.indices
    key = first.buffer.data, count
    if key not in views:
        views[key] = _view(first.buffer, count)
    index = simplify(binary(BinOp.FLOORDIV, last, count))
    return BufferLoad(views[key], (*outer, index), first.predicate)


def _parts(join: Expr) -> list[Expr]:
    """Return the elements of nested joins, in order."""

    def ends(node: Expr, parts: list[list[Expr]]) -> list[Expr]:
        return [end for part in parts for end in part] if _is_join(node) else [node]

    return fold(join, ends, lambda node: node.args if _is_join(node) else ())


def _problem(join: Expr, parts: Sequence[Expr]) -> str:
    """Return why the joined elements cannot be one vector load, or an empty string."""
    loads = [part for part in parts if isinstance(part, BufferLoad)]
    if len(loads) < len(parts):
        other = next(part for part in parts if not isinstance(part, BufferLoad))
        return (
            f"`{join}` joins `{other}`, which is not a memory load; join elements of one operand"
        )
    first = loads[0]
    if first.buffer.flat:
        return (
            f"`{first}` and the next {len(loads) - 1} are read together, and {first.buffer.name} "
            "has strides; remove it from binds, or read a copy of it"
        )
    for k, part in enumerate(loads):
        if part.buffer.data is not first.buffer.data:
            return f"`{join}` joins elements of several buffers; join elements of one"
        if not _is_same(part.predicate, first.predicate):
            return (
                f"`{first}` and `{part}` are read together, but under "
                "different conditions; give the tensor a layout with whole groups and a pad_value"
            )
        step = simplify(binary(BinOp.SUB, part.indices[-1], first.indices[-1]))
        outer = zip(part.indices[:-1], first.indices[:-1], strict=True)
        if not is_const(step, k) or not all(structural_equal(a, b) for a, b in outer):
            return (
                f"`{first}` and `{part}` are read together, but are not contiguous; "
                f"give {first.buffer.name} a layout whose last axis holds these elements"
            )
    if not is_const(simplify(binary(BinOp.MOD, first.indices[-1], len(loads))), 0):
        return (
            f"`{first}` and the next {len(loads) - 1} are read together, but the "
            f"first may not be at a multiple of {len(loads)}; give {first.buffer.name} a layout "
            f"with an innermost `% {len(loads)}`"
        )
    return ""


def _is_same(a: Expr | None, b: Expr | None) -> bool:
    return a is b or (a is not None and b is not None and structural_equal(a, b))


def _view(buffer: Buffer, count: int) -> Buffer:
    *outer, last = buffer.shape
    groups = last // count if isinstance(last, int) else simplify(
        binary(BinOp.FLOORDIV, last, count))
    kind = buffer.dtype.with_lanes(count)
    name = f"{buffer.name}_x{count}"
    return replace(buffer, name=name, shape=(*outer, groups), dtype=kind, elem_offset=0)


def _declare_views(body: Stmt, func: PrimFunc, views: Views) -> Stmt:
    """Declare each view at the allocation of its memory, or at the top for parameters."""

    def rule(node: Any) -> Any:
        if not isinstance(node, Allocate):
            return None
        inner = node.body
        for (data, _), view in views.items():
            if data is node.buffer.data:
                inner = DeclBuffer(view, inner)
        return None if inner is node.body else Allocate(node.buffer, inner)

    body = bottom_up(body, rule)
    param_data = {param.data for param in func.params if isinstance(param, Buffer)}
    for (data, _), view in views.items():
        if data in param_data:
            body = DeclBuffer(view, body)
    return body
