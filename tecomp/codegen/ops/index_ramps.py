"""Recognize affine index vectors (ramps) and compute with them in fewer bits."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

from tecomp.codegen.llvm.ir_builder import FunctionBuilder, broadcast, lane_numbers, vector_of
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Var,
    binary,
    cast,
    integer_range,
    is_const,
)
from tecomp.ir.traversal.rewrite import bottom_up, walk

_LINEAR = (BinOp.ADD, BinOp.SUB)


def as_ramp(index: Expr) -> Ramp | None:
    """Return `index` as a `Ramp`, or None if it is not an arithmetic progression.

    For example, `ramp(a, s) + broadcast(b)` is `ramp(a + b, s)`. A broadcast is a ramp of stride 0.
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
        return _create(binary(node.op, a[0], b[0]), binary(node.op, a[1], b[1]), lanes)
    if node.op is BinOp.MUL and is_const(b[1], 0):
        return _create(a[0] * b[0], a[1] * b[0], lanes)
    if node.op is BinOp.MUL and is_const(a[1], 0):
        return _create(a[0] * b[0], a[0] * b[1], lanes)
    return None


def _progression(node: Expr) -> tuple[Expr, Expr] | None:
    """Return first value and step of a ramp or broadcast, or None."""
    if isinstance(node, Ramp):
        return node.base, node.stride
    if isinstance(node, Broadcast) and node.value.dtype.lanes == 1:
        return node.value, Const(0, node.value.dtype)
    return None


def _create(base: Expr, stride: Expr, lanes: int) -> Expr:
    return Broadcast(base, lanes) if is_const(stride, 0) else Ramp(base, stride, lanes)


Rule: TypeAlias = "Generator[Expr, str, str]"

_WORDS = {CmpOp.LT: "slt", CmpOp.LE: "sle", CmpOp.GT: "sgt", CmpOp.GE: "sge"}
_WIDTHS = (8, 16, 32)
"""Bits of the lanes of compared ramps."""
_NARROW_BITS = 128
"""Bits of compared lanes up to which wider lanes take one instruction as well."""


def narrow_ramp(node: Cast) -> Ramp | None:
    """Return a cast of an int64 ramp to a narrower integer as a narrow ramp, or None.

    This is exact, because truncation commutes with addition.
    """
    source, target = node.value.dtype, node.dtype
    if source.scalar != INT64 or source.lanes == 1 or not target.is_integer or target.is_bool:
        return None
    ramp = as_ramp(node.value) if target.bits < source.bits else None
    if ramp is None or not isinstance(ramp.stride, Const):
        return None
    low, high = integer_range(target.scalar)
    step = int(ramp.stride.value)
    if not low <= step <= high:
        return None
    return Ramp(cast(target.scalar, ramp.base), Const(step, target.scalar), ramp.lanes)


def compare_ramps(code: FunctionBuilder, node: Compare) -> Rule | None:
    """Emit the comparison of two int64 ramps as narrow lanes `0, s, 2 s, ...` with a scalar.

    The scalar is clamped to the range of the lanes, so it fits into a lane. The result is None if
    the operands are not such ramps or may overflow.
    """
    a, b = node.a, node.b
    if a.dtype.scalar != INT64 or a.dtype.lanes == 1 or node.op not in _WORDS:
        return None
    x, y = as_ramp(a), as_ramp(b)
    if x is None or y is None or not isinstance(x.stride, Const) or not isinstance(y.stride, Const):
        return None
    step = int(x.stride.value) - int(y.stride.value)
    limit = abs(step) * (x.lanes - 1) + 1
    width = _lane_bits(x.lanes, limit)
    if step == 0 or width is None or _may_wrap(code, x) or _may_wrap(code, y):
        return None
    return _compare(code, node.op, x, y, step, limit, width)


def _lane_bits(lanes: int, limit: int) -> int | None:
    """Return the bits of a lane that holds `limit`, such that the lanes fill a register.

    Return None if `limit` exceeds all widths.

    >>> _lane_bits(8, 8), _lane_bits(32, 32), _lane_bits(32, 1000), _lane_bits(8, 1 << 40)
    (32, 8, 16, None)
    """
    return next((
        width for width in _WIDTHS if limit < 1 << (width - 1) and
        (width * lanes > _NARROW_BITS or width == _WIDTHS[-1])
    ), None)


def _compare(
    code: FunctionBuilder, op: CmpOp, x: Ramp, y: Ramp, step: int, limit: int, width: int
) -> Rule:
    start = yield x.base
    end = yield y.base
    if start != "0":
        end = code.call("i64", "llvm.ssub.sat.i64", [("i64", end), ("i64", start)])
    limited = code.call("i64", "llvm.smin.i64", [("i64", end), ("i64", str(limit))])
    clamped = code.call("i64", "llvm.smax.i64", [("i64", limited), ("i64", str(-limit))])
    scalar = f"i{width}"
    bound = broadcast(code, code.op(f"trunc i64 {clamped} to {scalar}"), scalar, x.lanes)
    lanes = lane_numbers(x.lanes, scalar, step)
    return code.op(f"icmp {_WORDS[op]} {vector_of(scalar, x.lanes)} {lanes}, {bound}")


def _may_wrap(code: FunctionBuilder, ramp: Ramp) -> bool:
    """Return whether lanes may overflow 64 bits: indices never do, loaded data may."""
    if is_const(ramp.stride, 0):
        return False
    return any(
        isinstance(node, BufferLoad) or (isinstance(node, Var) and node in code.loaded)
        for node in walk(ramp.base)
    )
