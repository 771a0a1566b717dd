"""Statements that a machine does at once: which operation, on which operands, and what it means."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.ir.language.expr import Expr
from tecomp.ir.language.stmt import Stmt, block
from tecomp.ir.language.text import DEDENT, INDENT, NEWLINE, Operand, Pieces, quoted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Touch(Stmt):
    """An operand's element, `place`, is moved: to the unit, or, if `is_written`, from it.

    Only stands among the operands of a `TensorOp`, and does nothing by itself.
    """

    place: Expr
    is_written: bool = False

    def pieces(self) -> Pieces:
        """`reads(A[i, j])` or `writes(A[i, j])`."""
        return ("writes(" if self.is_written else "reads(", Operand(self.place), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorOp(Stmt):
    """`body` is one operation of the machine.

    Exists until `expand_tensor_ops`, for who counts; it means the same as its body.

    Attributes:
        name: of the operation.
        operands: loops of `Touch` over all elements of its operands, each once.
        body: what it does.
        tile: extents of its data axes, and then of its reduction axes.
        unit: of the machine's engine, that does it; empty if it is nothing but its body.
        mode: of the unit; empty for the usual one of the operands' type.
    """

    name: str
    operands: Stmt
    body: Stmt
    tile: tuple[int, ...] = ()
    unit: str = ""
    mode: str = ""

    def pieces(self) -> Pieces:
        """`with TensorOp("product", tile=(8, 64, 64), unit="matmul"):`, the operands first."""
        yield f"with TensorOp({quoted(self.name)}, tile={self.tile}"
        yield f", unit={quoted(self.unit)}" if self.unit else ""
        yield f", mode={quoted(self.mode)}" if self.mode else ""
        yield from ("):", INDENT, NEWLINE, "with Operands():")
        yield from (*block(self.operands), NEWLINE, Operand(self.body), DEDENT)
