"""Structural equality ignores the names of bound variables and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tecomp.ir import (
    BOOL,
    FLOAT32,
    INT32,
    Allocate,
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    DeclBuffer,
    DType,
    Expr,
    For,
    ForKind,
    IndexMapNode,
    Let,
    PadValue,
    PrimFunc,
    Ramp,
    Range,
    SeqStmt,
    Stmt,
    Var,
    const,
    seq,
    structural_equal,
)

A = Buffer("A", (8,))


def loop(name: str, *, buffer: Buffer = A, extent: int = 8) -> For:
    i = Var(name)
    body = BufferStore(buffer, const(1.0, "float32"), (i,))
    return For(i, Const(0), Const(extent), ForKind.SERIAL, body)


def test_names_of_bound_variables_do_not_count() -> None:
    assert loop("i") == loop("j")
    assert loop("i") != loop("i", extent=7)
    assert loop("i") != loop("i", buffer=Buffer("A", (8,)))
    assert loop("i") != "loop"


def test_a_free_variable_is_itself_only() -> None:
    i, j = Var("i"), Var("i")

    assert structural_equal(i, i)
    assert not structural_equal(i, j)
    assert not structural_equal(i + 1, j + 1)


def test_two_bound_variables_stay_apart() -> None:
    def nest(swap: bool) -> Stmt:
        i, j = Var("i"), Var("j")
        value = BufferLoad(A, (j if swap else i,))
        store = BufferStore(A, value, (i,))
        inner = For(j, Const(0), Const(8), ForKind.SERIAL, store)
        return For(i, Const(0), Const(8), ForKind.SERIAL, inner)

    assert nest(False) == nest(False)
    assert nest(False) != nest(True)


def test_a_variable_is_not_both_bound_and_free() -> None:
    i, j = Var("i"), Var("j")
    over_i = For(i, Const(0), Const(8), ForKind.SERIAL, BufferStore(A, BufferLoad(A, (i,)), (j,)))
    over_j = For(j, Const(0), Const(8), ForKind.SERIAL, BufferStore(A, BufferLoad(A, (j,)), (j,)))

    assert over_i != over_j


def test_types_operators_and_lanes_count() -> None:
    i = Var("i")

    assert not structural_equal(Const(1), Const(1, INT32))
    assert not structural_equal(Const(1, BOOL), Const(1, DType("int8")))
    assert not structural_equal(Binary(BinOp.ADD, i, i), Binary(BinOp.SUB, i, i))
    assert not structural_equal(Ramp(i, Const(1), 4), Ramp(i, Const(1), 8))
    assert not structural_equal((i, i), (i,))


def test_floats_are_compared_as_bits_but_for_nan() -> None:
    assert structural_equal(Const(math.nan, FLOAT32), Const(math.nan, FLOAT32))
    assert not structural_equal(Const(0.0, FLOAT32), Const(-0.0, FLOAT32))


def test_a_sequence_of_one_is_the_one() -> None:
    one = loop("i")

    assert SeqStmt((one,)) == one
    assert SeqStmt((SeqStmt((one, one)), SeqStmt(()), one)) == SeqStmt((one, one, one))
    assert seq(one) is one
    assert seq(SeqStmt(()), one) is one
    assert SeqStmt((one, one)) != one


def test_buffers_are_the_same_memory_seen_the_same_way() -> None:
    assert Buffer("B", (8,), data=A.data) == A
    assert Buffer("A", (4,), DType("float32x2"), data=A.data) != A
    assert hash(Buffer("B", (4,), data=A.data)) == hash(A)
    assert Buffer("A", (8,)) != A


def test_scopes_bind_memory_and_values() -> None:
    def scoped(name: str) -> Stmt:
        local, t = Buffer(name, (8,)), Var(name)
        view = Buffer("V", (2,), DType("float32x4"), data=local.data)
        store = BufferStore(view, const(0.0, "float32x4"), (t,))
        return Allocate(local, DeclBuffer(view, Let(t, Const(1), store)))

    assert scoped("a") == scoped("b")


def test_maps_and_functions() -> None:
    def function(name: str, factor: int) -> PrimFunc:
        n, i = Var(name), Var(name)
        buffer = Buffer(name, (n,))
        layout = IndexMapNode((i,), (i // Const(factor), i % Const(factor)), (0,))
        pad = PadValue((i,), const(0.0, "float32"))
        body = BufferStore(buffer, const(1.0, "float32"), (n - 1,))
        return PrimFunc("f", (buffer,), body, (n,), ((buffer.data, (layout,)),),
                        ((buffer.data, pad),), ("here",))

    assert function("a", 4) == function("b", 4)
    assert function("a", 4) != function("a", 8)
    assert function("a", 4).layout_maps[0][1] == function("b", 4).layout_maps[0][1]
    assert function("a", 4).attrs.keys() == {"layout_transform_map"}


def test_a_refined_index_map_is_compared_as_an_index_map() -> None:
    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Refined(IndexMapNode):
        pass

    i, j = Var("i"), Var("j")

    assert Refined((i,), (i + 1,)) == IndexMapNode((j,), (j + 1,))
    assert IndexMapNode((j,), (j + 1,)) == Refined((i,), (i + 1,))
    assert Refined((i,), (i + 1,)) != IndexMapNode((j,), (j + 2,))


def test_ranges_compare() -> None:
    assert Range(Const(0), Const(4)) == Range(Const(0), Const(4))
    assert Range(Const(0), Const(4)) != Range(Const(0), Const(5))


def test_deep_and_shared_trees_are_compared_without_recursion() -> None:
    def deep(start: Expr) -> Expr:
        tree = start
        for _ in range(20_000):
            tree = Binary(BinOp.ADD, tree, start)
        return tree

    def shared(start: Expr) -> Expr:
        tree = start
        for _ in range(200):
            tree = Binary(BinOp.ADD, tree, tree)
        return tree

    i = Var("i")
    doubled = shared(i)

    assert structural_equal(deep(i), deep(i))
    assert not structural_equal(deep(i), deep(Var("i")))
    assert structural_equal(doubled, doubled)
