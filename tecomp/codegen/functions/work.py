"""How much an iteration of a parallel loop does, so that no thread is woken for next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.codegen.functions.outside import has_outside_calls
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Const,
    Expr,
    Ramp,
    Var,
)
from tecomp.ir.language.stmt import BufferStore, For, Stmt
from tecomp.ir.traversal.rewrite import children, post_order, statements_in, walk

_WORTH = 1536
"""Operations on vectors that take longer than it takes to hand them to another thread."""
_FUNCTION = 10
"""Operations of a function."""
_VECTOR_BYTES = 64
_FREE = (Var, Const, Ramp, Broadcast, Cast)


def least_iterations(body: Stmt) -> int:
    """How many iterations of a loop with this body are worth a thread, as far as that is known.

    It is 1 where it is not known how much an iteration does.
    """
    each = None if has_outside_calls(body) else _operations(body)
    return 1 if each is None else -(-_WORTH // max(each, 1))


def _operations(body: Stmt) -> int | None:
    """About how many operations a statement does at most; None where only a call says that."""
    total: dict[int, int] = {}
    for node in post_order(body, parts=statements_in):
        inside = sum(total[id(part)] for part in statements_in(node))
        if isinstance(node, For):
            times = _at_most(node.extent)
            if times is None:
                return None
            inside = times * (inside + 1)
        values = [part for part in _parts(node) if not isinstance(part, Stmt)]
        total[id(node)] = inside + sum(map(_own, [node, *walk(*values, parts=_parts)]))
    return total[id(body)]


def _parts(node: Any) -> Sequence[Any]:
    """What is computed for a node; places in memory are part of the instructions that use them."""
    if isinstance(node, BufferLoad):
        return ()
    return (node.value,) if isinstance(node, BufferStore) else children(node)


def _own(node: Any) -> int:
    """Operations of a node without what is inside of it."""
    if isinstance(node, BufferLoad):
        return _accesses(node, node.indices)
    if isinstance(node, BufferStore):
        return _accesses(node.value, node.indices)
    if not isinstance(node, Expr) or isinstance(node, _FREE):
        return 0
    return _registers(node) * (_FUNCTION if isinstance(node, Call) else 1)


def _accesses(value: Expr, indices: tuple[Expr, ...]) -> int:
    """Accesses to memory for a value: what is always at the same place is in a register."""
    if all(map(_is_constant, indices)):
        return 0
    is_apart = any(index.dtype.lanes > 1 and not _is_dense(index) for index in indices)
    return int(value.dtype.lanes) if is_apart else _registers(value)


def _registers(value: Expr) -> int:
    """Vector registers that a value fills."""
    return -(-int(value.dtype.bytes) // _VECTOR_BYTES)


def _is_constant(index: Expr) -> bool:
    if isinstance(index, Ramp):
        return isinstance(index.base, Const) and isinstance(index.stride, Const)
    return isinstance(index.value if isinstance(index, Broadcast) else index, Const)


def _is_dense(index: Expr) -> bool:
    if isinstance(index, Ramp):
        return isinstance(index.stride, Const) and index.stride.value == 1
    return isinstance(index, Broadcast)


def _at_most(extent: Expr) -> int | None:
    """The greatest value of an extent, if it is written down."""
    if isinstance(extent, Const):
        return max(int(extent.value), 0)
    if isinstance(extent, Binary) and extent.op is BinOp.MIN:
        known = [n for n in map(_at_most, (extent.a, extent.b)) if n is not None]
        return min(known, default=None)
    return None
