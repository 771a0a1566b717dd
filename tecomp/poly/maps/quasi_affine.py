"""Which expressions an index map may have."""

from __future__ import annotations

from tecomp.errors import LayoutError
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
)
from tecomp.ir.traversal.rewrite import walk

_SUMS = (BinOp.ADD, BinOp.SUB, BinOp.MIN, BinOp.MAX)
_DIVISIONS = (BinOp.FLOORDIV, BinOp.MOD)
_BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR)
_LOGIC = (BinOp.AND, BinOp.OR)


def check(root: Expr) -> Expr:
    """`root`, if it may be a result of an index map.

    Raises:
        LayoutError: a part of it is none of the operations that layouts are decided for.
    """
    for node in walk(root):
        if not _may_be(node):
            raise LayoutError(
                f"`{node}` is not quasi-affine; an index map may add indices, multiply, divide or "
                "take remainders by constants, take min and max, and combine bits with ^ & | << >>",
                kind="map-function",
            )
    return root


def _may_be(node: Expr) -> bool:
    if node.dtype.lanes != 1 or not (node.dtype.is_integer or node.dtype.is_bool):
        return False
    match node:
        case Var() | Const() | Cast() | Compare() | Not() | Select():
            return True
        case Call(name):
            return name in ("if_then_else", "abs")
        case Binary(op, a, b):
            if op is BinOp.MUL:
                return isinstance(_stripped(a), Const) or isinstance(_stripped(b), Const)
            if op in _DIVISIONS:
                divisor = _stripped(b)
                return isinstance(divisor, Const) and divisor.value != 0
            return op in (*_SUMS, *_BITS, *_LOGIC)
    return False


def _stripped(node: Expr) -> Expr:
    while isinstance(node, Cast):
        node = node.value
    return node
