"""The complete printed form, which goldens, messages and tutorials show."""

from __future__ import annotations

import pytest

from tecomp.ir import (
    BOOL,
    FLOAT32,
    INT32,
    Allocate,
    Binary,
    BinOp,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
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
    PadValue,
    PrimFunc,
    Ramp,
    Range,
    SeqStmt,
    Var,
    binary,
    const,
    identifier,
    if_then_else,
    logical_and,
    logical_or,
    parse,
    parse_pad_value,
    seq,
)

I, J, P = Var("i"), Var("j"), Var("p", BOOL)  # noqa: E741
A = Buffer("A", (8, 8))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (I - (J - 1), "i - (j - 1)"),
        (I - J - 1, "i - j - 1"),
        (I * (J + 1) // 4, "i * (j + 1) // 4"),
        (I * J % 3 + 1, "i * j % 3 + 1"),
        (I // (J * 2), "i // (j * 2)"),
        ((I & 3) == J, "i & 3 == j"),
        ((I << 2) + 1, "(i << 2) + 1"),
        (I << (J + 1), "i << j + 1"),
        (I | J ^ I & 7, "i | j ^ i & 7"),
        ((I | J) & I, "(i | j) & i"),
        (I - -3, "i - -3"),
        (logical_and(P, logical_or(P, I < J)), "p and (p or i < j)"),
        (logical_or(logical_and(P, P), P), "p and p or p"),
        (logical_and(P, logical_and(P, P)), "p and (p and p)"),
        (logical_and(Not(P), Not(I.equal(J))), "not p and not (i == j)"),
        (Not(Not(P)), "not (not p)"),
        ((I < J).equal(P), "(i < j) == p"),
        (if_then_else(P, I, J), "if_then_else(p, i, j)"),
        (Call("exp", (Var("x", FLOAT32),), FLOAT32), "exp(x)"),
        (Call("exp", (Var("x", FLOAT32),), DType("float64")), 'exp(x, dtype="float64")'),
        (Call("mma", (I, J), FLOAT32), 'call("mma", i, j, dtype="float32")'),
        (Call("clock", (), FLOAT32), 'call("clock", dtype="float32")'),
        (Call("isnan", (Var("x", FLOAT32),), BOOL), "isnan(x)"),
        (Ramp(I * 8, Const(1), 8), "ramp(i * 8, 1, 8)"),
        (Broadcast(I, 4), "broadcast(i, 4)"),
        (BufferLoad(A, (I, J)), "A[i, j]"),
        (BufferLoad(A, (I, J), P), "A.load(i, j, where=p)"),
        (BufferLoad(Buffer("B", ()), ()), "B[()]"),
        (BufferLoad(Buffer("B", ()), (), P), "B.load(where=p)"),
        (A.data, "A.data"),
        (const(True), "True"),
        (const(3), "int32(3)"),
        (const(7, "uint8"), "uint8(7)"),
        (binary(BinOp.MAX, I, J) + 1, "max(i, j) + 1"),
    ],
)
def test_expressions(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_free_variables_of_equal_name_are_distinguished() -> None:
    i, j = Var("i"), Var("i")

    assert str(i + j * i) == "i + i_1 * i"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("C.local", "C_local"),
        ("2d", "_2d"),
        ("", "_"),
        ("lambda", "lambda_"),
        ("a b\nc", "a_b_c"),
        ("é", "é"),
        ("ﬁ", "fi"),
        ("x²", "x2"),
        ("_", "_"),
    ],
)
def test_names_become_identifiers(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_a_long_chain_prints_without_recursion() -> None:
    chain: Expr = I
    for _ in range(10_000):
        chain = Binary(BinOp.ADD, chain, J)
    nested: Expr = I
    for _ in range(10_000):
        nested = Binary(BinOp.SUB, J, nested)

    assert str(chain) == "i" + " + j" * 10_000
    assert str(nested) == "j - (" * 9_999 + "j - i" + ")" * 9_999


def test_maps_ranges_and_buffers() -> None:
    n, h, w, c = (Var(name) for name in "nhwc")
    nchwc = IndexMapNode((n, h, w, c), (n, c // 4, h, w, c % 4))
    split = IndexMapNode((n, h, w, c), (n, c // 4, h, w, c % 4), (2,))
    typed = IndexMapNode((Var("i", INT32),), (Const(0),))
    texture = Buffer("T", (n, 64), DType("float16x4"), "global.texture", (0,), (64, 1))

    assert str(nchwc) == repr(nchwc) == "lambda n, h, w, c: [n, c // 4, h, w, c % 4]"
    assert str(split) == "lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]"
    assert str(typed) == 'lambda i="int32": [0]'
    assert str(PadValue((n, h), const(0.0, "float32"))) == "lambda n, h: float32(0.0)"
    assert repr(PadValue((), const(0.0, "float32"))) == "lambda: float32(0.0)"
    padded = PadValue((n, h), const(0.0, "float32"), n * 4 + h >= 14)
    assert str(padded) == "lambda n, h: float32(0.0) if n * 4 + h >= 14 else None"
    assert parse_pad_value(str(padded)) == padded
    assert str(Range(I, J + 1)) == repr(Range(I, J + 1)) == "(i, j + 1)"
    assert repr(texture) == (
        'T: Buffer("float16x4", (n, 64), scope="global.texture", axis_separators=(0,), '
        "strides=(64, 1))"
    )


def everything() -> PrimFunc:
    """Build a function with every kind of statement."""
    n, m = Var("n"), Var("m", INT32)
    a, b = Buffer("A", (n, 64)), Buffer("B.cache", (8,))
    i, j, t = Var("i"), Var("i"), Var("t")
    x = Buffer("X", (16, 2), DType("int32"))
    view = Buffer("A4", (16,), DType("float32x4"), data=a.data)
    lanes = Ramp(Const(0), Const(1), 8)
    mask = Binary(BinOp.AND, Broadcast(i < n, 8), lanes < Broadcast(j, 8))
    body = For(i, Const(0), n, ForKind.PARALLEL, seq(
        For(j, Binary(BinOp.MUL, Const(8), i), binary(BinOp.MIN, n - i, 8), ForKind.VECTORIZED,
            Allocate(b, seq(
                BufferStore(b, BufferLoad(a, (i, lanes), mask), (lanes,)),
                BufferStore(a, BufferLoad(b, (lanes,)), (i, lanes), mask)))),
        IfThenElse(i < 3, SeqStmt(()), DeclBuffer(view, BufferStore(
            view, const(1.0, "float32x4"), (Const(0),)))),
        IfThenElse(i.equal(0), Let(t, i + 1, For(Var("i"), Const(0), t, ForKind.UNROLLED,
                                                 SeqStmt(()))))))
    realize = BufferRealize(x, (Range(Const(0), Const(4)), Range(n, Const(2))),
                            BufferStore(x, const(7, "int32"), (Const(1), n)), ((0, 4, 1),))
    h, c = Var("h"), Var("c")
    layout = IndexMapNode((h, c), (h, c // 4, c % 4), (0,))
    return PrimFunc("every", (a, m), seq(body, realize), (n,),
                    ((a.data, (layout, layout)), (x.data, (layout,))),
                    ((a.data, PadValue((h, c), const(-0.0, "float32"))),), ("f.py:1: A[\"x\"]",))


EVERYTHING = """\
@layout_transform_map(A=[lambda h, c: [h, AXIS_SEPARATOR, c // 4, c % 4], \
lambda h, c: [h, AXIS_SEPARATOR, c // 4, c % 4]], \
X=[lambda h, c: [h, AXIS_SEPARATOR, c // 4, c % 4]])
@pad_value(A=lambda h, c: float32(-0.0))
@sites('f.py:1: A["x"]')
def every(A: Buffer("float32", (n, 64)), m: "int32", *, n: "int64"):
    for i in parallel(n):
        for i_1 in vectorized(8 * i, extent=min(n - i, 8)):
            with Allocate(Buffer("float32", (8,))) as B_cache:
                B_cache[ramp(0, 1, 8)] = A.load(i, ramp(0, 1, 8), \
where=broadcast(i < n, 8) and ramp(0, 1, 8) < broadcast(i_1, 8))
                store(A[i, ramp(0, 1, 8)], B_cache[ramp(0, 1, 8)], \
where=broadcast(i < n, 8) and ramp(0, 1, 8) < broadcast(i_1, 8))
        if i < 3:
            pass
        else:
            with DeclBuffer(Buffer("float32x4", (16,), data=A.data)) as A4:
                A4[0] = broadcast(float32(1.0), 4)
        if i == 0:
            t = i + 1
            for i_1 in unrolled(t):
                pass
    with BufferRealize(Buffer("int32", (16, 2)), bounds=((0, 4), (n, 2)), aligns=((0, 4, 1),)) as X:
        X[1, n] = int32(7)"""


def test_every_statement() -> None:
    func = everything()

    assert str(func) == repr(func) == EVERYTHING
    assert parse(EVERYTHING) == func


def test_decorator_names_do_not_shadow_buffers() -> None:
    def local() -> Buffer:
        return Buffer("T", (4,))

    i, first, second = Var("i"), local(), local()
    layout = IndexMapNode((i,), (i // 2, i % 2))
    body = seq(*(Allocate(b, BufferStore(b, const(0.0, "float32"), (Const(0),)))
                 for b in (first, second)))
    func = PrimFunc("f", (), body, (), ((second.data, (layout,)),))

    assert str(func) == (
        "@layout_transform_map(T=[lambda i: [i // 2, i % 2]])\n"
        "def f():\n"
        '    with Allocate(Buffer("float32", (4,))) as T_1:\n'
        "        T_1[0] = float32(0.0)\n"
        '    with Allocate(Buffer("float32", (4,))) as T:\n'
        "        T[0] = float32(0.0)"
    )
    assert parse(str(func)) == func
