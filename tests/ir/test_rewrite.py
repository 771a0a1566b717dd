"""Traversals visit each node once, in order, without recursion, and rebuild only changed nodes."""

from __future__ import annotations

from typing import Any

from tecomp.ir import (
    FLOAT32,
    INT32,
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    DType,
    Expr,
    For,
    ForKind,
    Let,
    PrimFunc,
    Ramp,
    SeqStmt,
    Var,
    bottom_up,
    children,
    const,
    free_variables,
    map_body,
    rebuild,
    seq,
    substitute,
    top_down,
    walk,
)

A = Buffer("A", (8,))
I, J, N = Var("i"), Var("j"), Var("n")  # noqa: E741


def deep(levels: int) -> Expr:
    tree: Expr = I
    for _ in range(levels):
        tree = Binary(BinOp.ADD, tree, J)
    return tree


def test_children_are_in_order_without_bound_variables() -> None:
    store = BufferStore(A, const(1.0, "float32"), (I,), J < N)
    loop = For(I, Const(0), N, ForKind.SERIAL, store)

    assert [str(child) for child in children(store)] == ["float32(1.0)", "i", "j < n"]
    assert list(children(loop)) == [loop.min, loop.extent, store]
    assert [str(node) for node in walk(I * 2 + J)] == ["i * 2 + j", "i * 2", "i", "2", "j"]


def test_unchanged_nodes_are_not_rebuilt() -> None:
    store = BufferStore(A, const(1.0, "float32"), (I + 1,))
    func = PrimFunc("f", (A,), store)

    assert rebuild(store, lambda node: node) is store
    assert bottom_up(store, lambda node: None) is store
    assert top_down(store, lambda node: None) is store
    assert substitute(store, {}) is store
    assert substitute(store, {N: Const(3)}) is store
    assert map_body(func, lambda body: body) is func
    assert map_body(func, lambda body: SeqStmt(())).body == SeqStmt(())


def test_rules_see_children_first_or_parents_first() -> None:
    def halve(node: Any) -> Any:
        return Const(node.value // 2) if isinstance(node, Const) else None

    def cut(node: Any) -> Any:
        return N if isinstance(node, Binary) and node.op is BinOp.MUL else None

    def fold(node: Any) -> Any:
        both = isinstance(node, Binary) and isinstance(node.a, Const) and isinstance(node.b, Const)
        return node.a if both else None

    assert str(bottom_up(I * 8 + 4, halve)) == "i * 4 + 2"
    assert str(top_down((I * 8 + 4) * 2 + I * 8, cut)) == "n + n"
    chain = Binary(BinOp.ADD, Binary(BinOp.ADD, Const(1), Const(2)), Const(3))
    assert str(bottom_up(chain, fold)) == "1"


def test_deep_and_shared_trees() -> None:
    shared: Expr = I
    for _ in range(100):
        shared = Binary(BinOp.ADD, shared, shared)

    assert sum(1 for _ in walk(deep(20_000))) == 20_002
    assert sum(1 for _ in walk(shared)) == 101
    assert free_variables(substitute(deep(20_000), {J: N})) == {I: None, N: None}
    assert isinstance(bottom_up(shared, lambda node: J if node is I else None), Binary)
    assert isinstance(top_down(shared, lambda node: J if node is I else None), Binary)


def test_substitution_keeps_types_and_binding_places() -> None:
    n32 = Var("m", INT32)
    loop = For(I, Const(0), N, ForKind.SERIAL, BufferStore(A, const(0.0, "float32"), (I,)))
    vector = Ramp(Const(0), Const(1), 4)

    assert str(substitute(n32 + 1, {n32: N})) == 'cast("int32", n) + int32(1)'
    assert str(substitute(I, {I: vector})) == "ramp(0, 1, 4)"
    assert substitute(loop, {N: Const(3)}) == For(
        J, Const(0), Const(3), ForKind.SERIAL, BufferStore(A, const(0.0, "float32"), (J,))
    )
    four = Var("v", DType("int64x4"))
    assert str(substitute(four, {four: I})) == "broadcast(i, 4)"


def test_free_variables() -> None:
    x = Var("x", FLOAT32)
    value = BufferLoad(A, (J,))
    stmt = seq(
        For(I, Const(0), N, ForKind.SERIAL, Let(x, value, BufferStore(A, x, (I,)))),
        BufferStore(A, const(0.0, "float32"), (J,)),
    )

    assert list(free_variables(stmt)) == [N, J]
