"""Recognises vectors of indices in arithmetic progression, however they are written."""

from __future__ import annotations

from typing import Any

from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    Cast,
    Const,
    Expr,
    Ramp,
    binary,
    cast,
    is_const,
)
from tecomp.ir.traversal.rewrite import bottom_up

_LINEAR = (BinOp.ADD, BinOp.SUB)


def as_ramp(index: Expr) -> Ramp | None:
    """`index` as one `Ramp`, or None if it is no arithmetic progression.

    `ramp(a, s) + broadcast(b)` is `ramp(a + b, s)`, and so on; a broadcast is a ramp of stride 0.
    """
    found = index if isinstance(index, Ramp | Broadcast) else bottom_up(index, _rule)
    if isinstance(found, Ramp):
        return found
    if isinstance(found, Broadcast) and found.value.dtype.lanes == 1:
        return Ramp(found.value, Const(0, found.value.dtype), found.lanes)
    return None


def _rule(node: Any) -> Expr | None:
    if isinstance(node, Cast) and isinstance(node.value, Broadcast):
        inner = node.value
        return Broadcast(cast(node.dtype.scalar, inner.value), inner.lanes) if (
            inner.value.dtype.lanes == 1) else None
    if not isinstance(node, Binary) or not node.dtype.is_integer:
        return None
    a, b = _progression(node.a), _progression(node.b)
    if a is None or b is None:
        return None
    lanes = node.dtype.lanes
    if node.op in _LINEAR:
        return _made(binary(node.op, a[0], b[0]), binary(node.op, a[1], b[1]), lanes)
    if node.op is BinOp.MUL and is_const(b[1], 0):
        return _made(a[0] * b[0], a[1] * b[0], lanes)
    if node.op is BinOp.MUL and is_const(a[1], 0):
        return _made(a[0] * b[0], a[0] * b[1], lanes)
    return None


def _progression(node: Expr) -> tuple[Expr, Expr] | None:
    """First value and step."""
    if isinstance(node, Ramp):
        return node.base, node.stride
    if isinstance(node, Broadcast) and node.value.dtype.lanes == 1:
        return node.value, Const(0, node.value.dtype)
    return None


def _made(base: Expr, stride: Expr, lanes: int) -> Expr:
    return Broadcast(base, lanes) if is_const(stride, 0) else Ramp(base, stride, lanes)


