"""Statements: loops, branches, laziness, order of effects, and trees too deep for recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel, compile_function
from tecomp.errors import CallError, InternalError, LowerError
from tecomp.ir import (
    FLOAT32,
    INT32,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Const,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    Var,
    if_then_else,
    parse,
    seq,
)
from tests.messages import Diagnostic, diagnostic

Both = Callable[..., Kernel]


def ramp(count: int, name: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(count).astype(name)


@pytest.mark.parametrize("kind", ["range", "unrolled", "vectorized"])
@pytest.mark.parametrize("bounds", ["5", "2, extent=5", "0, extent=0", "0, extent=-2", "n - 1"])
def test_loops(both: Both, kind: str, bounds: str) -> None:
    both(f'''def f(O: Buffer("int64", (20,)), n: "int64"):
    for i in {kind}({bounds}):
        for j in range(i, extent=3):
            O[i + j] = O[i + j] + i * j
''', ramp(20, "int64"), 4)


def test_branches(both: Both) -> None:
    both('''def f(O: Buffer("int64", (20,))):
    for i in range(20):
        if i % 2 == 0:
            if i > 7:
                O[i] = i
        else:
            O[i] = 0 - i
            pass
''', ramp(20, "int64"))


def test_the_other_value_is_not_computed(both: Both) -> None:
    text = '''def f(A: Buffer("float32", (4,)), O: Buffer("float32", (9,))):
    for i in range(9):
        O[i] = if_then_else(i < 4, A[i], if_then_else(i == 8, float32(2.0), A[7 - i])) + \
if_then_else(i == 4, A[0], float32(1.0))
'''
    both(text.replace("A[7 - i]", "A.load(7 - i, where=i >= 4 and i < 8)"), ramp(4), ramp(9))


def test_values_are_read_again_after_a_store(both: Both) -> None:
    n, place = Buffer("N", (2,), FLOAT32), Const(0)
    repeated = BufferLoad(n, (place,))
    store = BufferStore(n, repeated + repeated, (place,))
    both(PrimFunc("f", (n,), seq(store, store, store)), ramp(2) + 1)


def test_let_is_computed_once(both: Both) -> None:
    both('''def f(O: Buffer("float32", (4,)), A: Buffer("float32", (4,))):
    with Let(O[0] + float32(1.0)) as t:
        O[0] = t
        O[1] = t + O[0]
        with Let(A[ramp(0, 1, 4)] * broadcast(t, 4)) as v:
            O[ramp(0, 1, 4)] = v
''', ramp(4), ramp(4))


def test_names_do_not_clash(both: Both) -> None:
    a, b = Buffer("t", (3,)), Buffer("t.1", (3,))
    i, j = Var("record"), Var("größe")
    inner = BufferStore(b, BufferLoad(a, (i,)) + BufferLoad(b, (j,)), (j,))
    body: Stmt = For(j, Const(0), Const(3), ForKind.SERIAL, inner)
    func = PrimFunc("exp", (a, b), For(i, Const(0), Const(3), ForKind.PARALLEL, body))
    kernel = Kernel(func)
    out = ramp(3)

    kernel(ramp(3), out)

    assert (out == [3, 4, 5]).all()
    both(PrimFunc("memset", (a, b), For(i, Const(0), Const(3), ForKind.SERIAL, body)),
         ramp(3), ramp(3))


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int32", "uint64", "float16",
                                  "bfloat16", "float32", "float64"])
def test_numbers_as_arguments(name: str) -> None:
    kernel = Kernel(parse(f'''def f(O: Buffer("{name}", (2,)), x: "{name}"):
    O[1] = x
'''))
    out = np.zeros(2, kernel.func.params[0].dtype.numpy)
    value = {"bool": True, "int8": -128, "int32": -(2**31), "uint64": 2**64 - 1}.get(
        name, 200 if name == "uint8" else -0.1)

    kernel(out, value)

    assert out[0] == 0
    assert out[1] == np.array(value, out.dtype)


@pytest.mark.exhaustive
def test_deep_expression(both: Both) -> None:
    o = Buffer("O", (1,))
    total: Expr = BufferLoad(o, (Const(0),))
    for _ in range(20_000):
        total = total + 1.0
    kernel = Kernel(PrimFunc("f", (o,), BufferStore(o, total, (Const(0),))))
    out = np.zeros(1, np.float32)

    kernel(out)

    assert out[0] == 20_000


def test_deep_guards() -> None:
    o, x = Buffer("O", (1,), INT32), Var("x")
    value: Expr = Const(0, INT32)
    for k in range(2000):
        value = if_then_else(x == k, Const(k + 1, INT32), value)
    kernel = Kernel(PrimFunc("f", (o, x), BufferStore(o, value, (Const(0),))))
    out = np.zeros(1, np.int32)

    kernel(out, 1234)

    assert out[0] == 1235


def test_deep_statements() -> None:
    o, x = Buffer("O", (1,), INT32), Var("x", INT32)
    body: Stmt = BufferStore(o, x, (Const(0),))
    for k in range(2000):
        inner = Var("x", INT32)
        body = IfThenElse(x > k, Let(inner, x + 0, body))
    kernel = Kernel(PrimFunc("f", (o, x), body))
    out = np.zeros(1, np.int32)

    kernel(out, 5000)

    assert out[0] == 5000


def test_shared_parts_are_emitted_once() -> None:
    o = Buffer("O", (1,))
    value: Expr = BufferLoad(o, (Const(0),))
    for _ in range(60):
        value = value + value
    func = PrimFunc("f", (o,), For(Var("i"), Const(0), Const(1), ForKind.PARALLEL,
                                   BufferStore(o, value, (Const(0),))))
    out = np.ones(1, np.float32)

    Kernel(func)(out)

    assert out[0] == 2.0**60


def test_statements_that_should_have_been_lowered() -> None:
    o = Buffer("O", (1,))
    realize = BufferRealize(o, (Range(Const(0), Const(1)),), SeqStmt(()))

    with pytest.raises(LowerError) as error:
        compile_function(PrimFunc("f", (), realize))

    assert diagnostic(error.value) == (
        Diagnostic("lower", func="f", buffer="O")
    )


def test_unbound_variables() -> None:
    o = Buffer("O", (1,))

    with pytest.raises(InternalError) as error:
        compile_function(PrimFunc("f", (o,), BufferStore(o, Var("x", FLOAT32), (Const(0),))))

    assert diagnostic(error.value) == Diagnostic("internal", var="x")


GATHER = '''@sites("a.py:3: A[I[i]] (axis 0 of A[4])", "a.py:4: A[I[i]] (axis 0 of B[4])")
def f(I: Buffer("int32", (8,)), A: Buffer("float32", (4,)), O: Buffer("float32", (8,))):
    {loop}
'''
SCALAR = '''for i in {kind}(8):
        O[i] = A.load(cast("int64", I[i]), where={guard}check_index(\
cast("int64", I[i]), 4, 1)) + float32(1.0)'''
VECTOR = '''O[ramp(0, 1, 8)] = A.load(cast("int64x8", I[ramp(0, 1, 8)]), where={guard}check_index(\
cast("int64x8", I[ramp(0, 1, 8)]), broadcast(4, 8), broadcast(1, 8)))'''


@pytest.mark.parametrize("loop", [
    SCALAR.format(kind="range", guard=""),
    SCALAR.format(kind="parallel", guard=""),
    VECTOR.format(guard=""),
])
@pytest.mark.parametrize("bad", [4, -1, 2**31 - 1])
def test_index_from_data(both: Both, loop: str, bad: int) -> None:
    text = GATHER.format(loop=loop)
    places = np.array([0, 1, 2, 3, 3, 2, 1, 0], np.int32)
    kernel = both(text, places, ramp(4), ramp(8))
    places[5] = bad
    out = ramp(8)

    with pytest.raises(CallError) as error:
        kernel(places, ramp(4), out)

    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", value=bad, text="a.py:4: A[I[i]] (axis 0 of B[4])")
    )
    assert out[5] in (0, 1)
    kernel(np.zeros(8, np.int32), ramp(4), out)


@pytest.mark.parametrize("loop", [
    SCALAR.format(kind="range", guard="i != 5 and "),
    VECTOR.format(guard="ramp(0, 1, 8) != broadcast(5, 8) and "),
])
def test_unused_indices_are_not_checked(both: Both, loop: str) -> None:
    places = np.array([0, 1, 2, 3, 3, 99, 1, 0], np.int32)
    both(GATHER.format(loop=loop), places, ramp(4), ramp(8))


def test_the_first_bad_index_is_the_one_reported() -> None:
    kernel = Kernel(parse(GATHER.format(loop=VECTOR.format(guard=""))))

    with pytest.raises(CallError) as error:
        kernel(np.array([0, 9, 2, 3, -3, 99, 1, 0], np.int32), ramp(4), ramp(8))

    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", value=9, text="a.py:4: A[I[i]] (axis 0 of B[4])",
    )
