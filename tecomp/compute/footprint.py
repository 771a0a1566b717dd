"""How far an index reaches while axes run through a few values in a row, wherever these begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tecomp.compute.axis import IterVar
from tecomp.compute.tensor import TensorLoad
from tecomp.ir.language.expr import Binary, BinOp, Cast, Const, Expr, Var
from tecomp.ir.traversal.rewrite import fold


def reach(index: Expr, sizes: Mapping[IterVar, int]) -> int | None:
    """The greatest value less the least one, at most.

    Args:
        index: of whole numbers.
        sizes: how many values each axis runs through; the others have one.

    Returns:
        It; None if that cannot be said, as of what is read from a tensor.

    >>> from tecomp.compute.axis import make_axis, IterKind
    >>> i, j = (make_axis(name, 0, 100, IterKind.DATA) for name in "ij")
    >>> reach(i * 3 + j, {i: 4, j: 2}), reach(i // 8, {i: 8}), reach(i % 8, {j: 5})
    (10, 1, 0)
    """
    def own(node: Any, parts: list[int | None]) -> int | None:
        if isinstance(node, IterVar):
            return sizes.get(node, 1) - 1
        if isinstance(node, Const | Var):
            return 0
        if isinstance(node, Binary) and None not in parts:
            return _of_both(node, [part for part in parts if part is not None])
        if isinstance(node, Cast) and node.dtype.is_integer and node.value.dtype.is_integer:
            return parts[0]
        return None if any(part != 0 for part in parts) else 0

    return fold(index, own)


def _of_both(node: Binary, parts: list[int]) -> int | None:
    a, b = parts
    if node.op in (BinOp.ADD, BinOp.SUB):
        return a + b
    if a == b == 0:
        return 0
    # What changes no value of the other is a number, or the same for all.
    if node.op is BinOp.MUL and isinstance(node.b, Const):
        return a * abs(int(node.b.value))
    if node.op is BinOp.MUL and isinstance(node.a, Const):
        return b * abs(int(node.a.value))
    if isinstance(node.b, Const) and node.b.value > 0:
        if node.op is BinOp.FLOORDIV:
            return -(-a // int(node.b.value))
        if node.op is BinOp.MOD:
            return int(node.b.value) - 1
    return max(a, b) if node.op in (BinOp.MIN, BinOp.MAX) and min(a, b) == 0 else None


def reads_tensors(index: Expr) -> bool:
    """Whether an index depends on elements of tensors."""
    return bool(fold(index, lambda node, parts: isinstance(node, TensorLoad) or any(parts)))
