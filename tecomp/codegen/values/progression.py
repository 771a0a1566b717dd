"""Vectors of indices in arithmetic progression, in the narrowest lanes that tell the same.

An index has 64 bits, and a vector of eight takes two registers; what is computed with it is often
narrower: a mask for values of 32 bits, or the index as a value.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from tecomp.codegen.llvm.emit import Code, broadcast
from tecomp.codegen.llvm.types import lane_numbers, vector_of
from tecomp.codegen.values.ramp import as_ramp
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import (
    BufferLoad,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Var,
    integer_range,
    is_const,
)
from tecomp.ir.language.expr import cast as cast_expr
from tecomp.ir.traversal.rewrite import walk

Rule: TypeAlias = "Generator[Expr, str, str]"

_WORDS = {CmpOp.LT: "slt", CmpOp.LE: "sle", CmpOp.GT: "sgt", CmpOp.GE: "sge"}
_WIDTH = 32


def narrowed(node: Cast) -> Ramp | None:
    """A cast of a progression to a narrower integer, as a progression of that type, or None.

    The lower bits of a sum are the sum of the lower bits.
    """
    source, target = node.value.dtype, node.dtype
    if source.scalar != INT64 or source.lanes == 1 or not target.is_integer or target.is_bool:
        return None
    ramp = as_ramp(node.value) if target.bits < source.bits else None
    if ramp is None or not isinstance(ramp.stride, Const):
        return None
    least, most = integer_range(target.scalar)
    step = int(ramp.stride.value)
    if not least <= step <= most:
        return None
    return Ramp(cast_expr(target.scalar, ramp.base), Const(step, target.scalar), ramp.lanes)


def compared(code: Code, node: Compare) -> Rule | None:
    """The comparison of two progressions: lanes `0, s, 2 s, ...` with one number, or None.

    The number is as large as matters, so that it fits 32 bits.
    """
    a, b = node.a, node.b
    if a.dtype.scalar != INT64 or a.dtype.lanes == 1 or node.op not in _WORDS:
        return None
    x, y = as_ramp(a), as_ramp(b)
    if x is None or y is None or not isinstance(x.stride, Const) or not isinstance(y.stride, Const):
        return None
    step = int(x.stride.value) - int(y.stride.value)
    reach = abs(step) * (x.lanes - 1) + 1
    if step == 0 or reach >= 1 << (_WIDTH - 1) or _may_wrap(code, x) or _may_wrap(code, y):
        return None
    return _compared(code, node.op, x, y, step, reach)


def _compared(code: Code, op: CmpOp, x: Ramp, y: Ramp, step: int, reach: int) -> Rule:
    start = yield x.base
    end = yield y.base
    if start != "0":
        end = code.call("i64", "llvm.ssub.sat.i64", [("i64", end), ("i64", start)])
    below = code.call("i64", "llvm.smin.i64", [("i64", end), ("i64", str(reach))])
    near = code.call("i64", "llvm.smax.i64", [("i64", below), ("i64", str(-reach))])
    scalar = f"i{_WIDTH}"
    bound = broadcast(code, code.op(f"trunc i64 {near} to {scalar}"), scalar, x.lanes)
    lanes = lane_numbers(x.lanes, scalar, step)
    return code.op(f"icmp {_WORDS[op]} {vector_of(scalar, x.lanes)} {lanes}, {bound}")


def _may_wrap(code: Code, ramp: Ramp) -> bool:
    """Whether lanes may pass the end of 64 bits; an index never does, data may."""
    if is_const(ramp.stride, 0):
        return False
    return any(
        isinstance(node, BufferLoad) or (isinstance(node, Var) and node in code.loaded)
        for node in walk(ramp.base)
    )
