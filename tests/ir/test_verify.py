"""The verifier accepts what lowering makes, and names the rule that malformed code breaks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tecomp.errors import InternalError
from tecomp.ir.nodes.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    IndexMap,
    Let,
    PadValue,
    Prefetch,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    TensorOp,
    Touch,
)
from tecomp.ir.parser.func_parser import parse
from tecomp.ir.traversal.verify import verify

A = Buffer("A", (8, 4))
P, X, N, I = Var("p", BOOL), Var("x", FLOAT32), Var("n"), Var("i")  # noqa: E741
NONE = SeqStmt(())
ONE = const(1.0, "float32")
ZERO = Const(0)
LANES = Ramp(ZERO, Const(1), 4)


def message(body: Stmt | PrimFunc, *, flat: bool = False) -> str:
    func = body if isinstance(body, PrimFunc) else PrimFunc("f", (A, P, X, N), body)
    with pytest.raises(InternalError) as error:
        verify(func, flat=flat)
    return error.value.message


def test_what_is_well_formed_passes() -> None:
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
    ("value", "why"),
    [
        (I + X, "this variable is not bound where it is used: `i`"),
        (BufferLoad(Buffer("B", (4,)), (ZERO,)),
         "this buffer is not declared where it is used: `B[0]`"),
        (BufferLoad(Buffer("A", (32,), data=A.data), (ZERO,)),
         "this buffer is not declared where it is used: `A[0]`"),
        (BufferLoad(A, (ZERO,)), "1 indices instead of 2: `A[0]`"),
        (BufferLoad(A, (ZERO, Const(0, INT32))), "an index is int64, not int32: `A[0, int32(0)]`"),
        (BufferLoad(A, (ZERO, X)), "an index is int64, not float32: `A[0, x]`"),
        (BufferLoad(A, (LANES, LANES)),
         "only the last index may have lanes: `A[ramp(0, 1, 4), ramp(0, 1, 4)]`"),
        (BufferLoad(A, (ZERO, ZERO), X),
         "the predicate is float32 for 1 lanes: `A.load(0, 0, where=x)`"),
        (BufferLoad(A, (ZERO, LANES), P),
         "the predicate is bool for 4 lanes: `A.load(0, ramp(0, 1, 4), where=p)`"),
        (Const(1.0, DType("float32x4")), "a literal is a scalar: `float32x4(1.0)`"),
        (Cast(DType("float32x4"), N), "float32x4 and int64 have different lanes: "
                                      '`cast("float32x4", n)`'),
        (Binary(BinOp.ADD, X, N), "operands of float32 and int64 do not go together: `x + n`"),
        (Binary(BinOp.DIV, N, N), "`/` is not defined for int64: `n / n`"),
        (Binary(BinOp.AND, X, X), "`and` is not defined for float32: `x and x`"),
        (Compare(CmpOp.LT, X, N), "operands of float32 and int64 do not go together: `x < n`"),
        (Not(X), "`not` is not defined for float32: `not x`"),
        (Select(X, X, X), "the condition is float32: `select(x, x, x)`"),
        (Select(P, X, N), "operands of float32 and int64 do not go together: `select(p, x, n)`"),
        (Select(P, Broadcast(X, 4), Broadcast(X, 4)),
         "bool and float32x4 have different lanes: "
         "`select(p, broadcast(x, 4), broadcast(x, 4))`"),
        (Call("mma", (X,), FLOAT32),
         'there is no function mma of 1 arguments: `call("mma", x, dtype="float32")`'),
        (Call("exp", (X,), INT64),
         'the call of exp has the type int64: `exp(x, dtype="int64")`'),
        (Call("exp", (N,), INT64), "exp does not take int64: `exp(n)`"),
        (Call("pow", (X, Const(1.0, DType("float64"))), FLOAT32),
         "pow does not take float32, float64: `pow(x, float64(1.0))`"),
        (Call("pow", (X, N), FLOAT32), "pow does not take float32, int64: `pow(x, n)`"),
        (Call("pow", (P, P), BOOL), "pow does not take bool, bool: `pow(p, p)`"),
        (Call("if_then_else", (N, X, X), FLOAT32),
         "if_then_else does not take int64, float32, float32: `if_then_else(n, x, x)`"),
        (Call("check_index", (N, N, ZERO), BOOL),
         "a site is a literal below 0: `check_index(n, n, 0)`"),
        (Ramp(N, Const(1), 1), "a ramp of 1 lanes from int64 by int64: `ramp(n, 1, 1)`"),
        (Ramp(X, X, 4), "a ramp of 4 lanes from float32 by float32: `ramp(x, x, 4)`"),
        (Broadcast(X, 1), "a broadcast to 1 lanes: `broadcast(x, 1)`"),
    ],
)
def test_malformed_expressions(value: Expr, why: str) -> None:
    assert message(Let(Var("t", value.dtype), value, NONE)) == f"f: {why}"


LOCAL = Buffer("T", (4,))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (Prefetch(X), "what is fetched or moved is the place of one element: `prefetch(x)`"),
        (Prefetch(BufferLoad(A, (ZERO, LANES))),
         "what is fetched or moved is the place of one element: `prefetch(A[0, ramp(0, 1, 4)])`"),
        (Touch(X), "what is fetched or moved is the place of one element: `reads(x)`"),
        (TensorOp("t", BufferStore(A, ONE, (ZERO, ZERO)), NONE),
         "its operands are loops of reads() and writes(): `with TensorOp(\"t\", tile=()):`"),
        (TensorOp("t", NONE, BufferStore(A, ONE, (ZERO, I))),
         "this variable is not bound where it is used: `i`"),
        (Prefetch(BufferLoad(A, (ZERO,))), "1 indices instead of 2: `A[0]`"),
        (BufferStore(A, N, (ZERO, ZERO)), "stores int64 where float32 belongs: `A[0, 0] = n`"),
        (BufferStore(A, ONE, (ZERO, LANES)),
         "stores float32 where float32x4 belongs: `A[0, ramp(0, 1, 4)] = float32(1.0)`"),
        (BufferStore(A, ONE, (ZERO, I)), "this variable is not bound where it is used: `i`"),
        (BufferStore(A, ONE, (ZERO, ZERO), I < 3),
         "this variable is not bound where it is used: `i`"),
        (IfThenElse(N, NONE), "int64 where bool belongs: `if n:`"),
        (For(I, ZERO, Const(4, INT32), ForKind.SERIAL, NONE),
         "i is int64, but gets int32: `for i in range(0, extent=int32(4), dtype=\"int64\"):`"),
        (For(Var("k", INT32), Const(0, INT32), Const(4, INT32), ForKind.SERIAL, NONE),
         "loop variables are int64, but k is int32: `for k in range(int32(4)):`"),
        (For(I, ZERO, N, ForKind.SERIAL, For(I, ZERO, N, ForKind.SERIAL, NONE)),
         "this variable is bound already where it is bound again: `i`"),
        (SeqStmt((Let(I, N, NONE), BufferStore(A, ONE, (ZERO, I)))),
         "this variable is not bound where it is used: `i`"),
        (SeqStmt((Allocate(LOCAL, NONE), BufferStore(LOCAL, ONE, (ZERO,)))),
         "this buffer is not declared where it is used: `T[0] = float32(1.0)`"),
        (DeclBuffer(LOCAL, NONE),
         "a view needs memory that exists: "
         "`with DeclBuffer(Buffer(\"float32\", (4,), data=T.data)) as T_1:`"),
        (Allocate(Buffer("T", (N, -1)), NONE),
         'extents, strides and offsets are not negative: `T: Buffer("float32", (n, -1))`'),
        (Allocate(Buffer("T", (X,)), NONE),
         'extents, strides and offsets are integers: `T: Buffer("float32", (x,))`'),
        (Allocate(Buffer("T", (4,), strides=(1, 1)), NONE),
         'a buffer has one stride for each axis: `T: Buffer("float32", (4,), strides=(1, 1))`'),
        (Allocate(Buffer("T", (4,), elem_offset=-1), NONE),
         'extents, strides and offsets are not negative: '
         '`T: Buffer("float32", (4,), elem_offset=-1)`'),
        (Allocate(Buffer("T", (4,), elem_offset=1), NONE),
         "only arguments have an elem_offset, and views before flattening: "
         "`with Allocate(Buffer(\"float32\", (4,), elem_offset=1)) as T:`"),
        (DeclBuffer(Buffer("T", (4,), data=A.data, elem_offset=29), NONE),
         "`T` takes 132 bytes from the start of its memory, and `A` takes 128: "
         "`with DeclBuffer(Buffer(\"float32\", (4,), elem_offset=29, data=A.data)) as T:`"),
        (Allocate(Buffer("T", (4,), data=Var("T")), NONE),
         'the memory of a buffer is an address: `T: Buffer("float32", (4,))`'),
        (BufferRealize(LOCAL, (), NONE),
         "there is one range for each axis: "
         "`with BufferRealize(Buffer(\"float32\", (4,)), bounds=()) as T:`"),
        (BufferRealize(LOCAL, (Range(ZERO, X),), NONE),
         "float32 where int64 belongs: "
         "`with BufferRealize(Buffer(\"float32\", (4,)), bounds=((0, x),)) as T:`"),
    ],
)
def test_malformed_statements(body: Stmt, why: str) -> None:
    assert message(body) == f"f: {why}"


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
    mapped = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMap((i,), (i,)),)),))
    verify(logical)
    verify(texture, flat=True)

    assert message(logical, flat=True) == "f: 2 indices instead of 1: `A[0, 0] = float32(1.0)`"
    assert message(PrimFunc("f", (), realized), flat=True) == (
        "f: BufferRealize must be gone after flattening: "
        '`with BufferRealize(Buffer("float32", (4,)), bounds=((0, 4),)) as T:`'
    )
    assert message(mapped, flat=True) == (
        "f: layout maps and pad values must be gone after flattening: `f`"
    )


def test_maps_are_for_memory_of_the_function() -> None:
    i, gone = Var("i"), Var("gone", HANDLE)
    map_of_nothing = PrimFunc("f", (), NONE, (), ((gone, (IndexMap((i,), (i,)),)),))
    to_floats = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMap((i,), (ONE,)),)),))
    place = PadValue((i,), ONE, i)
    padded = PrimFunc("f", (A,), NONE, (), (), ((A.data, place),))
    free = PrimFunc("f", (A,), NONE, (), ((A.data, (IndexMap((i,), (N,)),)),))

    assert message(map_of_nothing) == (
        "f: no buffer has the memory that a layout map or pad value is for: `gone.data`"
    )
    assert message(to_floats) == "f: this is no map to scalar values: `lambda i: [float32(1.0)]`"
    assert message(padded) == (
        "f: int64 where bool belongs: `lambda i: float32(1.0) if i else None`"
    )
    assert message(free) == "f: this variable is not bound where it is used: `n`"


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
    assert message(func).partition(": `with DeclBuffer(")[0] == f"f: {why}"


def test_extents_of_views_are_compared_by_their_factors() -> None:
    memory = Buffer("S", (4, N * 2))
    longer, shorter = Buffer("V", (N, 9), data=memory.data), Buffer("V", (N * 8,), data=memory.data)

    verify(PrimFunc("f", (memory, N), DeclBuffer(shorter, NONE)))
    assert message(PrimFunc("f", (memory, N), DeclBuffer(longer, NONE))).startswith(
        "f: `V` takes 36 * n bytes, and its memory `S` takes 32 * n: `with DeclBuffer("
    )


def test_a_map_changes_the_extents_that_views_are_compared_by() -> None:
    """The separators count the axes after the map: only the ranks are compared before it."""
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

        def pieces(self) -> tuple[str, ...]:
            return ("sum(...)",)

    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Prefetch(Stmt):
        def pieces(self) -> tuple[str, ...]:
            return ("prefetch",)

    value = Reduce(FLOAT32)

    assert message(BufferStore(A, value, (ZERO, ZERO))) == (
        "f: a Reduce is no expression of the language: `sum(...)`"
    )
    assert message(Prefetch()) == "f: a Prefetch is no statement of the language: `prefetch`"
