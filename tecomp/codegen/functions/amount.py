"""How much memory a buffer of symbolic size takes, as a number that does not wrap."""

from __future__ import annotations

from typing import Any

from tecomp.codegen.functions.expr import emit
from tecomp.codegen.llvm.emit import Code
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import Binary, BinOp, Cast, CmpOp, Compare, Const, Expr, Select, binary
from tecomp.ir.language.stmt import Buffer
from tecomp.ir.traversal.rewrite import fold

_DOUBLE = DType("float64")
_EXACT_ENOUGH = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.MIN, BinOp.MAX)


def bytes_of(code: Code, buffer: Buffer, most: int) -> tuple[str, str]:
    """The bytes of a buffer with symbolic extents, about, and whether that is no more than `most`.

    Sizes are whole numbers of 64 bits: their products wrap, and seem to fit into memory then.
    """
    total: Expr = Const(float(buffer.dtype.bytes), _DOUBLE)
    for extent in buffer.shape:
        factor = Const(float(extent), _DOUBLE) if isinstance(extent, int) else _estimate(extent)
        total = binary(BinOp.MUL, total, binary(BinOp.MAX, factor, Const(0.0, _DOUBLE)))
    fits = emit(code, Compare(CmpOp.LE, total, Const(float(most), _DOUBLE)))
    size = code.call("i64", "llvm.fptosi.sat.i64.f64", [("double", emit(code, total))])
    return size, fits


def _estimate(extent: Expr) -> Expr:
    """An integer expression, computed in a type that does not wrap."""
    return fold(extent, _in_floats, _operands)


def _operands(node: Any) -> tuple[Expr, ...]:
    match node:
        case Binary(op, a, b) if op in _EXACT_ENOUGH:
            return a, b
        case Binary(BinOp.FLOORDIV, a, Const(value)) if value > 0:
            return a, node.b
        case Select(_, a, b):
            return a, b
    return ()


def _in_floats(node: Any, parts: list[Expr]) -> Expr:
    match node:
        case Const(value):
            return Const(float(value), _DOUBLE)
        case Binary(BinOp.FLOORDIV) if parts:
            return binary(BinOp.DIV, *parts)
        case Binary(op) if parts:
            return binary(op, *parts)
        case Select(condition):
            return Select(condition, *parts)
    return Cast(_DOUBLE, node)
