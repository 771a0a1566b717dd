"""Printed functions parse back unchanged, and invalid text is rejected with its position."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tecomp.errors import ParseError
from tecomp.ir import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    SCALARS,
    Allocate,
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    DType,
    Expr,
    For,
    ForKind,
    IndexMapNode,
    Let,
    Not,
    PadValue,
    PrimFunc,
    Scalar,
    Select,
    SeqStmt,
    Stmt,
    Var,
    const,
    parse,
    seq,
)
from tests.messages import Diagnostic, diagnostic


def storing(value: Expr, *params: Var) -> PrimFunc:
    """Build a function that stores one value."""
    out = Buffer("out", (1,), value.dtype)
    return PrimFunc("f", (*params, out), BufferStore(out, value, (Const(0),)))


def survives(func: PrimFunc) -> bool:
    repeated = parse(str(func))
    return repeated == func and str(repeated) == str(func)


LITERALS: list[tuple[Scalar, str]] = [
    (math.nan, "float32"),
    (math.inf, "float64"),
    (-math.inf, "float16"),
    (-0.0, "float32"),
    (5e-324, "float64"),
    (0.1, "float32"),
    (1e300, "bfloat16"),
    (-(2**63), "int64"),
    (2**63 - 1, "int64"),
    (2**64 - 1, "uint64"),
    (-128, "int8"),
    (True, "bool"),
    (False, "bool"),
]


@pytest.mark.parametrize(("value", "dtype"), LITERALS)
def test_literals(value: Scalar, dtype: str) -> None:
    assert survives(storing(Const(value, DType(dtype))))


@pytest.mark.parametrize("dtype", SCALARS)
def test_every_type(dtype: str) -> None:
    kind = DType(dtype)
    x = Var("x", kind)

    assert survives(storing(Cast(kind, Const(1)), x))
    assert survives(storing(Select(Const(True, BOOL), x, Const(1, kind)), x))
    assert survives(storing(const(1, kind.with_lanes(4))))


@pytest.mark.exhaustive(keep=144)
@pytest.mark.parametrize("op", BinOp)
@pytest.mark.parametrize("other", BinOp)
def test_every_nesting_of_two_operators(op: BinOp, other: BinOp) -> None:
    # The parser checks dtypes only for mismatched operands.
    a, b, c = (Var(name) for name in "abc")

    assert survives(storing(Binary(op, Binary(other, a, b), c), a, b, c))
    assert survives(storing(Binary(op, a, Binary(other, b, c)), a, b, c))


@pytest.mark.parametrize("op", CmpOp)
def test_comparisons(op: CmpOp) -> None:
    p, q, r = (Var(name, BOOL) for name in "pqr")

    assert survives(storing(Compare(op, Compare(op, p, q), r), p, q, r))
    assert survives(storing(Compare(op, p, Compare(op, q, Not(r))), p, q, r))
    assert survives(storing(Not(Compare(op, p, Binary(BinOp.AND, q, r))), p, q, r))


def test_calls_without_an_inferable_dtype() -> None:
    x = Var("x", FLOAT32)

    assert survives(storing(Call("exp", (x,), DType("float64")), x))
    assert survives(storing(Call("some thing", (x, x), INT64), x))
    assert survives(storing(Call("exp", (x, x), FLOAT32), x))


def test_names_that_are_no_identifiers_or_words_of_the_language() -> None:
    names = ("for", "1", "", "a b", "min", "exp", "Buffer", "store", "é", "a b")
    odd = [Var(name) for name in names]
    total: Expr = Const(0)
    for var in odd:
        total = Binary(BinOp.ADD, total, var)

    assert survives(storing(total, *odd))


def test_shadowed_names() -> None:
    out = Buffer("i", (8,), INT64)
    body: Stmt = SeqStmt(())
    names = [Var("i") for _ in range(4)]
    for var in names:
        body = Let(var, Const(3), seq(body, BufferStore(out, var, (var,))))

    assert survives(PrimFunc("i", (out,), body))


def test_loops_of_other_types_and_bounds() -> None:
    out = Buffer("out", (8,), INT32)
    i, j, k = Var("i", INT32), Var("j"), Var("k", INT32)
    inner = For(k, Const(1, INT32), Const(2, INT32), ForKind.UNROLLED, BufferStore(out, k, (j,)))
    body = For(j, Const(0), Const(8), ForKind.SERIAL, inner)
    odd = For(i, Const(0), Const(8), ForKind.PARALLEL, body)

    assert survives(PrimFunc("f", (out,), odd))
    assert survives(PrimFunc("f", (out,), Let(i, Const(8), odd)))


def test_symbolic_shapes_strides_and_views() -> None:
    n, m = Var("n"), Var("m", INT32)
    a = Buffer("A", (n * 4, (n + 3) // 4, 5), FLOAT32, "global", (0,), (n * 5, 5, 1))
    alias = Buffer("B", (n,), DType("float32x4"), data=a.data)
    local = Buffer("L", (), scope='l"ocal')
    body = Allocate(local, BufferStore(local, BufferLoad(a, (n, n, n)), ()))

    assert survives(PrimFunc("f", (a, m, alias), body, (n,)))


def test_sites_with_quotes_and_lines() -> None:
    sites = ("it's \"quoted\"", "two\nlines", "back\\slash", "tab\t\0", "é\u2028")

    assert parse(str(PrimFunc("f", (), SeqStmt(()), (), (), (), sites))).sites == sites


def test_maps_with_typed_arguments_and_without_any() -> None:
    a, n = Buffer("A", ()), Var("n")
    i, j = Var("i", INT32), Var("j")
    maps = (IndexMapNode((i, j), (j, j + n)), IndexMapNode((), (Const(0), Const(0)), (0,)))
    pad = PadValue((), BufferLoad(a, ()))

    assert survives(PrimFunc("f", (a, n), SeqStmt(()), (), ((a.data, maps),), ((a.data, pad),)))


def test_a_chain_of_several_hundred_operators() -> None:
    i = Var("i")
    chain: Expr = i
    for _ in range(900):
        chain = Binary(BinOp.ADD, chain, i)

    assert survives(storing(chain, i))


@pytest.mark.exhaustive
def test_deep_nesting_is_a_parse_error() -> None:
    i = Var("i")
    chain: Expr = i
    for _ in range(100_000):
        chain = Binary(BinOp.ADD, chain, i)
    text = str(storing(chain, i))

    with pytest.raises(ParseError) as error:
        parse(text)

    assert diagnostic(error.value) == Diagnostic("text")


HEAD = 'def f(A: Buffer("float32", (4,)), n: "int64"):\n    '


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Diagnostic("text", text=None)),
        ("def f(", Diagnostic(
            "text", where="line 1, column 6", reason="'(' was never closed", source="def f(",
        )),
        ("", Diagnostic("text")),
        ("x = 1", Diagnostic("text")),
        ("a\0b", Diagnostic(
            "text", where="line 1, column 1",
            reason="source code string cannot contain null bytes",
        )),
        ("def f(a):\n    pass", Diagnostic("text", line=1, column=7, source="a")),
        ("def f(a: 'int32', *, a: 'int64'):\n    pass",
         Diagnostic("text", line=1, column=22, source="a: 'int64'")),
        ("def f(a: 3):\n    pass", Diagnostic("text", line=1, column=10, source="3")),
        ("def f(*, a: Buffer('bool', ())):\n    pass",
         Diagnostic("text", line=1, column=10, source="a: Buffer('bool', ())")),
        ("def f(a: 'int64' = 3):\n    pass",
         Diagnostic("text", line=1, column=1, source="def f(a: 'int64' = 3):\n    pass")),
        ('def f(a: "float31"):\n    pass',
         Diagnostic(
             "text", line=1, column=10, source='"float31"',
             reason="`float31` is not a valid dtype; valid dtypes are " + ", ".join(SCALARS),
         )),
        ("@fast\ndef f():\n    pass", Diagnostic("text", line=1, column=2, source="fast")),
        ("@pad_value(A=3)\ndef f():\n    pass", Diagnostic("text", line=1, column=14, source="3")),
        ('def f(A: Buffer("bool", (4, 4), axis_separators=(1, 1))):\n    pass',
         Diagnostic(
             "text", line=1, column=10, source='Buffer("bool", (4, 4), axis_separators=(1, 1))',
             reason="axis separators [1, 1] do not split 2 axes into groups of at least one axis; they must be ascending, each the last axis of its group; write a constant 0 in the map for a group without axes",
         )),
        (HEAD + "A[0] = 1 + float32(1.0)",
         Diagnostic("text", line=2, column=12, source="1 + float32(1.0)", types="int64 and float32")),
        (HEAD + "A[j] = float32(1.0)",
         Diagnostic("text", line=2, column=7, source="j")),
        (HEAD + "A[0] = 1.0",
         Diagnostic("text", line=2, column=12, source="1.0")),
        (HEAD + "A[0] = 'é' + foo(n)",
         Diagnostic("text", line=2, column=12, source="'é'")),
        (HEAD + "n[0] = 1", Diagnostic("text", line=2, column=5, source="n")),
        (HEAD + "A[0] = A", Diagnostic("text", line=2, column=12, source="A")),
        (HEAD + "A[0] = A.size", Diagnostic("text", line=2, column=12, source="A.size")),
        (HEAD + "A[0] = -n", Diagnostic("text", line=2, column=12, source="-n")),
        (HEAD + "A[0] = n ** 2",
         Diagnostic("text", line=2, column=12, source="n ** 2")),
        (HEAD + "A[0] = ~n", Diagnostic("text", line=2, column=12, source="~n")),
        (HEAD + "A[0] = 0 < n < 3",
         Diagnostic("text", line=2, column=12, source="0 < n < 3")),
        (HEAD + "A[0] = foo(n)", Diagnostic("text", line=2, column=12, source="foo")),
        (HEAD + "A[0] = call('foo', n)",
         Diagnostic("text", line=2, column=12, source="call('foo', n)")),
        (HEAD + "A[0] = min(n)", Diagnostic(
            "text", line=2, column=12, source="min(n)", minimum=2, arg_count=1,
        )),
        (HEAD + "A[0] = cast('int8', n, x=1)",
         Diagnostic("text", line=2, column=12, source="cast('int8', n, x=1)", arg="x")),
        (HEAD + "A[0] = A.load(0)", Diagnostic("text", line=2, column=12, source="A.load(0)")),
        (HEAD + "A[0] = int8(300)",
         Diagnostic(
             "text", line=2, column=17, source="300",
             reason="300 is out of range for int8 (-128 to 127)",
         )),
        (HEAD + "A[0] = 9223372036854775808",
         Diagnostic(
             "text", line=2, column=12, source="9223372036854775808",
             reason="9223372036854775808 is out of range for int64 (-9223372036854775808 to 9223372036854775807)",
         )),
        (HEAD + "A[0] = [n]",
         Diagnostic("text", line=2, column=12, source="[n]")),
        (HEAD + "n = 3", Diagnostic("text", line=2, column=5, source="n = 3")),
        (HEAD + "t = 3\n    t = 4", Diagnostic("text", line=3, column=5, source="t = 4")),
        (HEAD + "n += 3", Diagnostic("text", line=2, column=5, source="n += 3")),
        (HEAD + "return", Diagnostic("text", line=2, column=5, source="return")),
        (HEAD + "for i in steps(4):\n        pass",
         Diagnostic(
             "text", line=2, column=14, source="steps(4)",
             loops="range, parallel, vectorized, unrolled",
         )),
        (HEAD + "with Open(n) as x:\n        pass",
         Diagnostic("text", line=2, column=10, source="Open(n)")),
        (HEAD + "with Allocate(n) as x:\n        pass",
         Diagnostic("text", line=2, column=19, source="n")),
        (HEAD + "with DeclBuffer(Buffer('bool', (), data=n + 1)) as x:\n        pass",
         Diagnostic("text", line=2, column=21, source="Buffer('bool', (), data=n + 1)")),
        (HEAD + "with BufferRealize(Buffer('bool', (4,)), bounds=((0,),)) as x:\n        pass",
         Diagnostic("text", line=2, column=54, source="(0,)")),
        (HEAD + "with BufferRealize(Buffer('bool', (4,)), aligns=((0, 1),)) as x:\n        pass",
         Diagnostic("text", line=2, column=54, source="(0, 1)")),
        (HEAD + "prefetch(n)", Diagnostic("text", line=2, column=14, source="n")),
        (HEAD + "store(n, n)", Diagnostic("text", line=2, column=11, source="n")),
    ],
)
def test_syntax_errors_have_positions(text: Any, expected: Diagnostic) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)

    assert diagnostic(error.value) == expected
