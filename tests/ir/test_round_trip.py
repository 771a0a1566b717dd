"""Random functions parse back from their printed form and compute the same results."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    Allocate,
    Binary,
    BinOp,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    DeclBuffer,
    DType,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IndexMapNode,
    Let,
    Not,
    OperandTransfer,
    PadValue,
    PrimFunc,
    Ramp,
    Range,
    Select,
    Stmt,
    TensorOp,
    Var,
    bottom_up,
    evaluate,
    parse,
    seq,
    structural_equal,
    verify,
)

TYPES = [FLOAT32, INT64, INT32, BOOL, DType("uint8"), DType("float64"), DType("bfloat16")]
EXTENT = 6


class Maker:
    """Build random well-formed functions; a modulo keeps each index in bounds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[Var] = []
        self.buffers: list[Buffer] = []

    def name(self) -> str:
        return self.random.choice(["i", "i", "j", "A", "B.local", "for", "", "é"])

    def dtype(self) -> DType:
        return self.random.choice(TYPES)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def literal(self, dtype: DType) -> Expr:
        if dtype.is_float:
            values = [0.0, -0.0, 1.5, -2.25, float("inf"), float("nan"), 1e-3]
            return Const(self.random.choice(values), dtype)
        return Const(self.random.choice([0, 1, 3, 7, *([-1, -8] if dtype.kind == "int" else [])])
                     if dtype.is_integer else self.chance(50), dtype)

    def index(self, depth: int) -> Expr:
        return Binary(BinOp.MOD, self.expr(INT64, depth - 1), Const(EXTENT))

    def load(self, dtype: DType, depth: int) -> Expr | None:
        fitting = [b for b in self.buffers if b.dtype == dtype]
        if not fitting:
            return None
        buffer = self.random.choice(fitting)
        indices = tuple(self.index(depth) for _ in buffer.shape)
        return BufferLoad(buffer, indices, self.expr(BOOL, depth - 1) if self.chance(30) else None)

    def expr(self, dtype: DType, depth: int) -> Expr:
        fitting = [v for v in self.variables if v.dtype == dtype]
        if fitting and self.chance(40):
            return self.random.choice(fitting)
        if depth <= 0:
            return self.literal(dtype)
        if self.chance(25) and (load := self.load(dtype, depth)) is not None:
            return load
        if dtype.is_bool and self.chance(70):
            return self.condition(depth)
        a, b = self.expr(dtype, depth - 1), self.expr(dtype, depth - 1)
        kind = self.random.randrange(6)
        if kind == 0:
            return Cast(dtype, self.expr(self.dtype(), depth - 1))
        if kind == 1:
            return Select(self.expr(BOOL, depth - 1), a, b)
        if kind == 2:
            return Call("if_then_else", (self.expr(BOOL, depth - 1), a, b), dtype)
        if kind == 3 and dtype.is_float:
            return Call(self.random.choice(["tanh", "fabs", "round"]), (a,), dtype)
        return Binary(self.random.choice(self.operators(dtype)), a, b)

    def operators(self, dtype: DType) -> list[BinOp]:
        if dtype.is_bool:
            return [BinOp.AND, BinOp.OR, BinOp.BITXOR, BinOp.MIN]
        common = [BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.MIN, BinOp.MAX, BinOp.FLOORDIV, BinOp.MOD]
        return [*common, *([BinOp.DIV] if dtype.is_float else [BinOp.SHL, BinOp.SHR, BinOp.BITAND])]

    def condition(self, depth: int) -> Expr:
        if self.chance(20):
            return Not(self.expr(BOOL, depth - 1))
        dtype = self.dtype()
        a, b = self.expr(dtype, depth - 1), self.expr(dtype, depth - 1)
        return Compare(self.random.choice(list(CmpOp)), a, b)

    def store(self) -> Stmt:
        buffer = self.random.choice(self.buffers)
        outer = tuple(self.index(2) for _ in buffer.shape[:-1])
        if buffer.shape and self.chance(30):
            at = Ramp(Const(self.random.randrange(3)), Const(1), 4)
            value = Broadcast(self.expr(buffer.dtype, 2), 4)
            mask = Compare(CmpOp.LT, at, Broadcast(self.expr(INT64, 2), 4))
            return BufferStore(buffer, value, (*outer, at), mask if self.chance(50) else None)
        last = (self.index(2),) if buffer.shape else ()
        mask_of_one = self.expr(BOOL, 2) if self.chance(20) else None
        return BufferStore(buffer, self.expr(buffer.dtype, 4), (*outer, *last), mask_of_one)

    def stmt(self, depth: int) -> Stmt:
        kind = self.random.randrange(10) if depth > 0 else 9
        if kind == 0:
            return seq(*(self.stmt(depth - 1) for _ in range(self.random.randrange(4))))
        if kind == 1:
            other = self.stmt(depth - 1) if self.chance(50) else None
            return IfThenElse(self.expr(BOOL, 3), self.stmt(depth - 1), other)
        if kind in (2, 3):
            var = Var(self.name())
            bounds = (Const(self.random.randrange(-1, 2)), self.index(1))
            loop = self.random.choice(list(ForKind))
            return For(var, *bounds, loop, self.inside(var, depth))
        if kind == 4:
            value = self.expr(self.dtype(), 3)
            bound = Var(self.name(), value.dtype)
            return Let(bound, value, self.inside(bound, depth))
        if kind == 5:
            local = Buffer(self.name(), (EXTENT,) * self.random.randrange(3), self.dtype())
            return Allocate(local, self.inside(local, depth))
        if kind == 6:
            region = Buffer(self.name(), (EXTENT, 9), self.dtype())
            ranges = tuple(Range(Const(0), Const(EXTENT)) for _ in region.shape)
            aligns = ((0, 4, self.random.randrange(3)),) if self.chance(30) else ()
            ahead = self.index(1) if self.chance(20) else None
            carried = self.index(1) if self.chance(20) else None
            return BufferRealize(region, ranges, self.inside(region, depth), aligns, ahead, carried)
        if kind == 7 and (owners := [b for b in self.buffers if len(b.shape) == 2]):
            owner = self.random.choice(owners)
            # A view has as many physical axes as its memory.
            cuts = owner.axis_separators
            shape = (EXTENT,) * (len(cuts) + 1)
            view = Buffer(
                self.name(), shape, owner.dtype, axis_separators=cuts, data=owner.data)
            return DeclBuffer(view, self.inside(view, depth))
        if kind == 8:
            return TensorOp(
                "t", self.touches(), self.stmt(depth - 1), (4, EXTENT)[: self.random.randrange(3)],
                self.random.choice(["", "matmul"]), self.random.choice(["", '"fast"']),
            )
        return self.store()

    def touches(self) -> Stmt:
        """Build a loop over operand transfers of loads from the buffers in scope."""
        loads = [self.load(buffer.dtype, 2) for buffer in self.buffers]
        var = Var(self.name())
        touched = (OperandTransfer(load, self.chance(50)) for load in loads if load is not None)
        return For(var, Const(0), Const(EXTENT), ForKind.SERIAL, seq(*touched))

    def inside(self, bound: Var | Buffer, depth: int) -> Stmt:
        """Build a statement with `bound` in scope."""
        known: list[Any] = self.variables if isinstance(bound, Var) else self.buffers
        known.append(bound)
        body = self.stmt(depth - 1)
        known.pop()
        return body

    def function(self) -> PrimFunc:
        n, m = Var(self.name()), Var(self.name(), INT32)
        a = Buffer(self.name(), (n, EXTENT), FLOAT32)
        b = Buffer(self.name(), (EXTENT,), self.dtype())
        out = Buffer("", (EXTENT, EXTENT), INT64, axis_separators=(0,))
        self.variables, self.buffers = [n, m], [a, b, out]
        body = seq(*(self.stmt(4) for _ in range(3)))
        i, j = Var(self.name()), Var(self.name())
        layout = IndexMapNode((i, j), (Binary(BinOp.FLOORDIV, i, Const(4)), j, i), (0,))
        pad = PadValue((i, j), Const(0.0, FLOAT32), Compare(CmpOp.LT, i, j))
        maps = ((out.data, (layout, layout)),) if self.chance(50) else ()
        pads = ((a.data, pad),) if self.chance(50) else ()
        return PrimFunc("f", (a, m, b, out), body, (n,), maps, pads, ('"a"\n',))


def arguments(func: PrimFunc) -> list[Any]:
    generator = np.random.default_rng(0)
    shapes = {0: (EXTENT, EXTENT), 2: (EXTENT,), 3: (EXTENT, EXTENT)}
    results: list[Any] = [3] * 4
    for position, shape in shapes.items():
        param = func.params[position]
        results[position] = generator.integers(0, 9, shape).astype(param.dtype.numpy)
    return results


@given(st.integers(0, 2**32))
def test_printed_functions_parse_and_run_equally(seed: int) -> None:
    func = Maker(seed).function()
    verify(func)
    text = str(func)
    repeated = parse(text)
    verify(repeated)

    assert repeated == func
    assert str(repeated) == text

    first, second = arguments(func), arguments(repeated)
    evaluate(func, first)
    evaluate(repeated, second)

    for a, b in zip(first, second, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@given(st.integers(0, 2**32))
def test_a_changed_leaf_makes_another_function(seed: int) -> None:
    func = Maker(seed).function()
    changed = bottom_up(func.body, lambda node: Const(4) if structural_equal(node, Const(EXTENT)) else None)

    assert (changed is func.body) == (changed == func.body)
