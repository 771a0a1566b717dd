"""Random loops over symbolic extents with conditions, and the sequence of their stores."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tecomp.ir import (
    Binary,
    BinOp,
    Buffer,
    BufferStore,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Not,
    Select,
    SeqStmt,
    Stmt,
    Var,
    binary,
    const,
    if_then_else,
    index_value,
    seq,
)
from tests.strategies.index_algebra import Algebra

_BUFFER = Buffer("A", (64,))


class Programs(Algebra):
    """Generator of loop nests in the non-negative sizes `n` and `m`."""

    def program(self) -> Stmt:
        """Draw a loop nest with conditional stores."""
        return self.nest(self.number(1, 2))

    def nest(self, depth: int) -> Stmt:
        """Draw `depth` nested loops with their body."""
        var = Var(f"i{len(self.axes)}")
        extent = self.extent()
        if self.axes and self.chance(40):
            # Tail of a tile: the part of the extent from the start of the tile.
            step = self.number(2, 4)
            extent = binary(BinOp.MIN, step, extent - self.pick(self.axes) * step)
        elif self.chance(30):
            extent = extent * self.extent()
        elif self.chance(30):
            step = self.number(2, 4)
            extent = (extent + (step - 1)) // step
        start = index_value(self.pick((0, 0, 0, 1))) if self.chance(80) else self.extent()
        self.axes.append(var)
        body = self.guarded(self.nest(depth - 1) if depth > 1 else self.stores())
        if self.chance(20):
            body = seq(self.stores(), body)
        self.axes.pop()
        return For(var, start, extent, ForKind.SERIAL, body)

    def guarded(self, body: Stmt) -> Stmt:
        """Return `body`, sometimes under a condition."""
        if self.chance(40):
            other = self.stores() if self.chance(30) else None
            return IfThenElse(self.condition(self.number(0, 1)), body, other)
        return body

    def stores(self) -> Stmt:
        """Draw a store, sometimes under a condition or inside a `Let`."""
        if self.chance(20):
            var = Var(f"t{len(self.axes)}")
            value = self.index(self.number(0, 2))
            self.axes.append(var)
            inner = self.store()
            self.axes.pop()
            return Let(var, value, inner)
        return self.guarded(self.store()) if self.chance(40) else self.store()

    def store(self) -> Stmt:
        """Draw a store to a random index."""
        index = self.index(self.number(1, 2))
        if self.chance(30):
            index = if_then_else(self.condition(1), index, self.digits(index))
        return BufferStore(_BUFFER, const(1.0), (index,))


@st.composite
def programs(draw: Any) -> tuple[Stmt, tuple[Var, Var]]:
    """Draw loops and return them with their size variables."""
    drawn = Programs(draw)
    return drawn.program(), (drawn.n, drawn.m)


def places(stmt: Stmt, sizes: dict[Var, int]) -> list[int]:
    """Return the indices that a program stores to, in order, computed by Python."""
    writer = _Writer()
    lines = writer.statement(stmt, "    ")
    head = ", ".join(writer.name(var) for var in sizes)
    text = "\n".join([f"def run(store, {head}):", *lines])
    names: dict[str, Any] = {"floor": _floor, "rest": _rest}
    exec(text, names)
    found: list[int] = []
    names["run"](found.append, *sizes.values())
    return found


def _floor(a: int, b: int) -> int:
    return a // b if b else 0


def _rest(a: int, b: int) -> int:
    return a % b if b else 0


class _Writer:
    def __init__(self) -> None:
        self.names: dict[Var, str] = {}

    def name(self, var: Var) -> str:
        return self.names.setdefault(var, f"v{len(self.names)}")

    def statement(self, stmt: Stmt, gap: str) -> list[str]:
        match stmt:
            case For(var, start, extent, _, body):
                first, count = self.expr(start), self.expr(extent)
                head = f"{gap}for {self.name(var)} in range({first}, {first} + {count}):"
                return [head, *self.statement(body, gap + "    ")]
            case IfThenElse(condition, yes, no):
                lines = [f"{gap}if {self.expr(condition)}:", *self.statement(yes, gap + "    ")]
                if no is not None:
                    lines += [f"{gap}else:", *self.statement(no, gap + "    ")]
                return lines
            case Let(var, value, body):
                return [f"{gap}{self.name(var)} = {self.expr(value)}", *self.statement(body, gap)]
            case SeqStmt(parts):
                lines = [line for part in parts for line in self.statement(part, gap)]
                return lines or [f"{gap}pass"]
            case BufferStore(_, _, (index,)):
                return [f"{gap}store({self.expr(index)})"]
        raise AssertionError(stmt)

    def expr(self, expr: Expr) -> str:
        match expr:
            case Var():
                return self.name(expr)
            case Const(value):
                return f"({value})"
            case Binary(op, a, b):
                return _BINARY[op].format(self.expr(a), self.expr(b))
            case Compare(op, a, b):
                return f"({self.expr(a)} {_COMPARE[op]} {self.expr(b)})"
            case Not(a):
                return f"(not {self.expr(a)})"
            case Select(c, a, b) | Call("if_then_else", (c, a, b)):
                return f"({self.expr(a)} if {self.expr(c)} else {self.expr(b)})"
            case Cast(_, a):
                return f"int({self.expr(a)})"
        raise AssertionError(expr)


_BINARY = {
    BinOp.ADD: "({} + {})", BinOp.SUB: "({} - {})", BinOp.MUL: "({} * {})",
    BinOp.FLOORDIV: "floor({}, {})", BinOp.MOD: "rest({}, {})",
    BinOp.MIN: "min({}, {})", BinOp.MAX: "max({}, {})",
    BinOp.AND: "({} and {})", BinOp.OR: "({} or {})",
}
_COMPARE = {
    CmpOp.EQ: "==", CmpOp.NE: "!=", CmpOp.LT: "<", CmpOp.LE: "<=", CmpOp.GT: ">", CmpOp.GE: ">=",
}
