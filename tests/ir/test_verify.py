"""The verifier accepts lowered functions and names the rule that a malformed function violates."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tecomp.errors import InternalError
from tecomp.ir import (
    BOOL,
    FLOAT32,
    HANDLE,
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
    Prefetch,
    PrimFunc,
    Ramp,
    Range,
    Select,
    SeqStmt,
    Stmt,
    TensorOp,
    Var,
    const,
    parse,
    verify,
)
from tests.messages import Diagnostic, diagnostic

A = Buffer("A", (8, 4))
P, X, N, I = Var("p", BOOL), Var("x", FLOAT32), Var("n"), Var("i")  # noqa: E741
NONE = SeqStmt(())
ONE = const(1.0, "float32")
ZERO = Const(0)
LANES = Ramp(ZERO, Const(1), 4)


def refusal(body: Stmt | PrimFunc, *, flat: bool = False) -> Diagnostic:
    func = body if isinstance(body, PrimFunc) else PrimFunc("f", (A, P, X, N), body)
    with pytest.raises(InternalError) as error:
        verify(func, flat=flat)
    return diagnostic(error.value)


def test_well_formed_functions_verify() -> None:
    func = parse("""
@layout_transform_map(T=[lambda i: [i // 4, i % 4]])
@pad_value(T=lambda i, j: A[0, 0])
@sites("here")
def f(A: Buffer("float32", (n, m * 4)), p: "bool", *, n: "int64", m: "int64"):
    for i in vectorized(n):
        with BufferRealize(Buffer("float32", (8,)), bounds=((0, 8),)) as T:
            T[0] = if_then_else(p, A.load(i, 0, where=check_index(i, 3, 0)), exp(A[0, 0]))
    for i in range(n):
        with Let(ramp(i, 1, 4)) as v:
            with Allocate(Buffer("float32x2", (8,))) as T:
                T[v] = broadcast(A[0, 0], 8)
                T[0] = A[0, cast("int8x2", ramp(0, 1, 2))]
                with DeclBuffer(Buffer("int8", (8,), data=T.data)) as U:
                    U[0] = abs(U[1])
""")
    verify(func)

    assert parse(str(func)) == func


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (I + X, Diagnostic(
            "internal", function="f", node="i",
            problem="variable is not bound where it is used",
        )),
        (BufferLoad(Buffer("B", (4,)), (ZERO,)),
         Diagnostic("internal", function="f", node="B[0]")),
        (BufferLoad(Buffer("A", (32,), data=A.data), (ZERO,)),
         Diagnostic("internal", function="f", node="A[0]")),
        (BufferLoad(A, (ZERO,)), Diagnostic(
            "internal", function="f", node="A[0]", index_count=1, expected=2,
        )),
        (BufferLoad(A, (ZERO, Const(0, INT32))), Diagnostic(
            "internal", function="f", node="A[0, int32(0)]", dtype="int32",
        )),
        (BufferLoad(A, (ZERO, X)), Diagnostic(
            "internal", function="f", node="A[0, x]", dtype="float32",
        )),
        (BufferLoad(A, (LANES, LANES)),
         Diagnostic("internal", function="f", node="A[ramp(0, 1, 4), ramp(0, 1, 4)]")),
        (BufferLoad(A, (ZERO, ZERO), X),
         Diagnostic(
             "internal", function="f", node="A.load(0, 0, where=x)", found="float32", lane=1,
         )),
        (BufferLoad(A, (ZERO, LANES), P),
         Diagnostic(
             "internal", function="f", node="A.load(0, ramp(0, 1, 4), where=p)", found="bool",
             lane=4,
         )),
        (Const(1.0, DType("float32x4")), Diagnostic(
            "internal", function="f", node="float32x4(1.0)", problem="a literal must be a scalar",
        )),
        (Cast(DType("float32x4"), N), Diagnostic(
            "internal", function="f", node='cast("float32x4", n)',
            problem="float32x4 and int64 have different lanes",
        )),
        (Binary(BinOp.ADD, X, N), Diagnostic(
            "internal", function="f", node="x + n",
            problem="operands of float32 and int64 have different dtypes",
        )),
        (Binary(BinOp.DIV, N, N), Diagnostic(
            "internal", function="f", node="n / n", problem="`/` is not defined for int64",
        )),
        (Binary(BinOp.AND, X, X), Diagnostic(
            "internal", function="f", node="x and x", problem="`and` is not defined for float32",
        )),
        (Compare(CmpOp.LT, X, N), Diagnostic(
            "internal", function="f", node="x < n",
            problem="operands of float32 and int64 have different dtypes",
        )),
        (Not(X), Diagnostic(
            "internal", function="f", node="not x", problem="`not` is not defined for float32",
        )),
        (Select(X, X, X), Diagnostic(
            "internal", function="f", node="select(x, x, x)", problem="the condition is float32",
        )),
        (Select(P, X, N), Diagnostic(
            "internal", function="f", node="select(p, x, n)",
            problem="operands of float32 and int64 have different dtypes",
        )),
        (Select(P, Broadcast(X, 4), Broadcast(X, 4)),
         Diagnostic(
             "internal", function="f", node="select(p, broadcast(x, 4), broadcast(x, 4))",
             problem="bool and float32x4 have different lanes",
         )),
        (Call("mma", (X,), FLOAT32),
         Diagnostic(
             "internal", function="f", node='call("mma", x, dtype="float32")',
             problem="unknown function mma of 1 arguments",
         )),
        (Call("exp", (X,), INT64),
         Diagnostic(
             "internal", function="f", node='exp(x, dtype="int64")',
             problem="the call of exp has the type int64",
         )),
        (Call("exp", (N,), INT64), Diagnostic(
            "internal", function="f", node="exp(n)", problem="exp does not take int64",
        )),
        (Call("pow", (X, Const(1.0, DType("float64"))), FLOAT32),
         Diagnostic(
             "internal", function="f", node="pow(x, float64(1.0))",
             problem="pow does not take float32, float64",
         )),
        (Call("pow", (X, N), FLOAT32), Diagnostic(
            "internal", function="f", node="pow(x, n)",
            problem="pow does not take float32, int64",
        )),
        (Call("pow", (P, P), BOOL), Diagnostic(
            "internal", function="f", node="pow(p, p)", problem="pow does not take bool, bool",
        )),
        (Call("if_then_else", (N, X, X), FLOAT32),
         Diagnostic(
             "internal", function="f", node="if_then_else(n, x, x)",
             problem="if_then_else does not take int64, float32, float32",
         )),
        (Call("check_index", (N, N, ZERO), BOOL),
         Diagnostic(
             "internal", function="f", node="check_index(n, n, 0)",
             problem="a site is a literal below 0",
         )),
        (Ramp(N, Const(1), 1), Diagnostic(
            "internal", function="f", node="ramp(n, 1, 1)",
            problem="a ramp of 1 lanes from int64 by int64",
        )),
        (Ramp(X, X, 4), Diagnostic(
            "internal", function="f", node="ramp(x, x, 4)",
            problem="a ramp of 4 lanes from float32 by float32",
        )),
        (Broadcast(X, 1), Diagnostic(
            "internal", function="f", node="broadcast(x, 1)", problem="a broadcast to 1 lanes",
        )),
    ],
)
def test_malformed_expressions(value: Expr, expected: Diagnostic) -> None:
    assert refusal(Let(Var("t", value.dtype), value, NONE)) == expected


LOCAL = Buffer("T", (4,))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (Prefetch(X), Diagnostic("internal", function="f", node="prefetch(x)")),
        (Prefetch(BufferLoad(A, (ZERO, LANES))),
         Diagnostic("internal", function="f", node="prefetch(A[0, ramp(0, 1, 4)])")),
        (OperandTransfer(X), Diagnostic("internal", function="f", node="reads(x)")),
        (TensorOp("t", BufferStore(A, ONE, (ZERO, ZERO)), NONE),
         Diagnostic("internal", function="f", node='with TensorOp("t", tile=()):')),
        (TensorOp("t", NONE, BufferStore(A, ONE, (ZERO, I))),
         Diagnostic(
             "internal", function="f", node="i",
             problem="variable is not bound where it is used",
         )),
        (Prefetch(BufferLoad(A, (ZERO,))), Diagnostic(
            "internal", function="f", node="A[0]", index_count=1, expected=2,
        )),
        (BufferStore(A, N, (ZERO, ZERO)), Diagnostic(
            "internal", function="f", node="A[0, 0] = n", dtype="int64", expected="float32",
        )),
        (BufferStore(A, ONE, (ZERO, LANES)),
         Diagnostic(
             "internal", function="f", node="A[0, ramp(0, 1, 4)] = float32(1.0)", dtype="float32",
             expected="float32x4",
         )),
        (BufferStore(A, ONE, (ZERO, I)), Diagnostic(
            "internal", function="f", node="i",
            problem="variable is not bound where it is used",
        )),
        (BufferStore(A, ONE, (ZERO, ZERO), I < 3),
         Diagnostic(
             "internal", function="f", node="i",
             problem="variable is not bound where it is used",
         )),
        (IfThenElse(N, NONE), Diagnostic(
            "internal", function="f", node="if n:", dtype="int64", expected_dtype="bool",
        )),
        (For(I, ZERO, Const(4, INT32), ForKind.SERIAL, NONE),
         Diagnostic(
             "internal", function="f", node='for i in range(0, extent=int32(4), dtype="int64"):',
             var="i", dtype="int64", value_dtype="int32",
         )),
        (For(Var("k", INT32), Const(0, INT32), Const(4, INT32), ForKind.SERIAL, NONE),
         Diagnostic(
             "internal", function="f", node="for k in range(int32(4)):", var="k", dtype="int32",
         )),
        (For(I, ZERO, N, ForKind.SERIAL, For(I, ZERO, N, ForKind.SERIAL, NONE)),
         Diagnostic("internal", function="f", node="i")),
        (SeqStmt((Let(I, N, NONE), BufferStore(A, ONE, (ZERO, I)))),
         Diagnostic(
             "internal", function="f", node="i",
             problem="variable is not bound where it is used",
         )),
        (SeqStmt((Allocate(LOCAL, NONE), BufferStore(LOCAL, ONE, (ZERO,)))),
         Diagnostic("internal", function="f", node="T[0] = float32(1.0)")),
        (DeclBuffer(LOCAL, NONE),
         Diagnostic(
             "internal", function="f",
             node='with DeclBuffer(Buffer("float32", (4,), data=T.data)) as T_1:',
         )),
        (Allocate(Buffer("T", (N, -1)), NONE),
         Diagnostic("internal", function="f", node='T: Buffer("float32", (n, -1))')),
        (Allocate(Buffer("T", (X,)), NONE),
         Diagnostic("internal", function="f", node='T: Buffer("float32", (x,))')),
        (Allocate(Buffer("T", (4,), strides=(1, 1)), NONE),
         Diagnostic("internal", function="f", node='T: Buffer("float32", (4,), strides=(1, 1))')),
        (Allocate(Buffer("T", (4,), elem_offset=-1), NONE),
         Diagnostic("internal", function="f", node='T: Buffer("float32", (4,), elem_offset=-1)')),
        (Allocate(Buffer("T", (4,), elem_offset=1), NONE), Diagnostic(
            "internal", function="f",
            node='with Allocate(Buffer("float32", (4,), elem_offset=1)) as T:',
        )),
        (DeclBuffer(Buffer("T", (4,), data=A.data, elem_offset=29), NONE), Diagnostic(
            "internal", function="f",
            node='with DeclBuffer(Buffer("float32", (4,), elem_offset=29, data=A.data)) as T:',
            problem="`T` takes 132 bytes from the start of its memory, and `A` takes 128",
        )),
        (Allocate(Buffer("T", (4,), data=Var("T")), NONE),
         Diagnostic("internal", function="f", node='T: Buffer("float32", (4,))')),
        (BufferRealize(LOCAL, (), NONE),
         Diagnostic(
             "internal", function="f",
             node='with BufferRealize(Buffer("float32", (4,)), bounds=()) as T:',
         )),
        (BufferRealize(LOCAL, (Range(ZERO, X),), NONE),
         Diagnostic(
             "internal", function="f",
             node='with BufferRealize(Buffer("float32", (4,)), bounds=((0, x),)) as T:',
             dtype="float32", expected_dtype="int64",
         )),
    ],
)
def test_malformed_statements(body: Stmt, expected: Diagnostic) -> None:
    assert refusal(body) == expected


def test_siblings_may_bind_the_same_variable() -> None:
    loop = For(I, ZERO, N, ForKind.SERIAL, Allocate(LOCAL, BufferStore(LOCAL, ONE, (I,))))
    func = PrimFunc("f", (N,), SeqStmt((loop, loop)))
    verify(func)

    assert parse(str(func)) == func


def test_flat_code_has_one_index_for_each_physical_axis() -> None:
    logical = parse('def f(A: Buffer("float32", (4, 4))):\n    A[0, 0] = float32(1.0)')
    texture = parse('def f(A: Buffer("float32", (4, 4), axis_separators=(0,))):\n'
                    "    A[0, 0] = float32(1.0)")
    realized = BufferRealize(LOCAL, (Range(ZERO, Const(4)),), NONE)
    i = Var("i")
    mapped = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMapNode((i,), (i,)),)),))
    verify(logical)
    verify(texture, flat=True)

    assert refusal(logical, flat=True) == Diagnostic(
        "internal", function="f", node="A[0, 0] = float32(1.0)", index_count=2, expected=1,
    )
    assert refusal(PrimFunc("f", (), realized), flat=True) == (
        Diagnostic(
            "internal", function="f",
            node='with BufferRealize(Buffer("float32", (4,)), bounds=((0, 4),)) as T:',
        )
    )
    assert refusal(mapped, flat=True) == (
        Diagnostic("internal", function="f", node="f")
    )


def test_maps_are_for_memory_of_the_function() -> None:
    i, removed = Var("i"), Var("gone", HANDLE)
    map_of_nothing = PrimFunc("f", (), NONE, (), ((removed, (IndexMapNode((i,), (i,)),)),))
    to_floats = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMapNode((i,), (ONE,)),)),))
    place = PadValue((i,), ONE, i)
    padded = PrimFunc("f", (A,), NONE, (), (), ((A.data, place),))
    free = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMapNode((i,), (N,)),)),))

    assert refusal(map_of_nothing) == (
        Diagnostic("internal", function="f", node="gone.data")
    )
    assert refusal(to_floats) == Diagnostic(
        "internal", function="f", node="lambda i: [float32(1.0)]",
    )
    assert refusal(padded) == (
        Diagnostic(
            "internal", function="f", node="lambda i: float32(1.0) if i else None", dtype="int64",
            expected_dtype="bool",
        )
    )
    assert refusal(free) == Diagnostic(
        "internal", function="f", node="n", problem="variable is not bound where it is used",
    )


ROWS = Buffer("R", (8, 8), axis_separators=(0,))


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (Buffer("V", (64,), data=ROWS.data), "`V` is 1-d after flattening, and its memory `R` is 2-d"),
        (Buffer("V", (8, N), axis_separators=(0,), data=ROWS.data), ""),
        (Buffer("V", (N, 9), axis_separators=(0,), data=ROWS.data),
         "a row of `V` takes 36 bytes, and one of its memory `R` takes 32"),
        (Buffer("V", (3, 3, 8), axis_separators=(1,), data=ROWS.data),
         "`V` has 9 rows, and its memory `R` has 8"),
        (Buffer("V", (8, 2), DType("float32x4"), axis_separators=(0,), data=ROWS.data), ""),
        (Buffer("V", (40,), data=A.data), "`V` takes 160 bytes, and its memory `A` takes 128"),
    ],
)
def test_views_have_the_rank_of_their_memory(view: Buffer, why: str) -> None:
    func = PrimFunc("f", (A, ROWS, N), DeclBuffer(view, NONE))
    if not why:
        verify(func)
        return
    node = next(iter(str(func.body).splitlines()))
    assert refusal(func) == Diagnostic("internal", function="f", node=node, problem=why)


def test_extents_of_views_are_compared_by_their_factors() -> None:
    memory = Buffer("S", (4, N * 2))
    longer, shorter = Buffer("V", (N, 9), data=memory.data), Buffer("V", (N * 8,), data=memory.data)

    verify(PrimFunc("f", (memory, N), DeclBuffer(shorter, NONE)))
    assert refusal(PrimFunc("f", (memory, N), DeclBuffer(longer, NONE))) == Diagnostic(
        "internal", function="f",
        node='with DeclBuffer(Buffer("float32", (n, 9), data=S.data)) as V:',
        problem="`V` takes 36 * n bytes, and its memory `S` takes 32 * n",
    )


def test_a_map_changes_the_extents_that_views_are_compared_by() -> None:
    """Separators count axes after the layout map, so only ranks are compared before the map."""
    verify(parse("""
@layout_transform_map(A=[lambda i: [i // 4, AXIS_SEPARATOR, i % 4]])
def f(A: Buffer("float32", (8,), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", (2, 4), axis_separators=(0,), data=A.data)) as V:
        V[1, 2] = float32(1.0)
"""))


def test_nodes_of_another_language_are_refused() -> None:
    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Reduce(Expr):
        dtype: DType

        def print_tokens(self) -> tuple[str, ...]:
            return ("sum(...)",)

    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Prefetch(Stmt):
        def print_tokens(self) -> tuple[str, ...]:
            return ("prefetch",)

    value = Reduce(FLOAT32)

    assert refusal(BufferStore(A, value, (ZERO, ZERO))) == (
        Diagnostic("internal", function="f", node="sum(...)", type="Reduce")
    )
    assert refusal(Prefetch()) == Diagnostic(
        "internal", function="f", node="prefetch", type="Prefetch",
    )
