"""`rename_duplicates` renames variables and buffers that unrolled copies declare repeatedly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import (
    INT64,
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    PrimFunc,
    Stmt,
    Var,
    evaluate,
    seq,
    statements_in,
    verify,
)
from tecomp.ir.traversal import fold
from tecomp.lowering import rename_duplicates

n = Var("n", INT64)
A = Buffer("A", (n,))


def over(var: Var, extent: Any, body: Stmt) -> Stmt:
    start = Const(0, INT64)
    stop = extent if isinstance(extent, Var) else Const(extent, INT64)
    return For(var, start, stop, ForKind.SERIAL, body)


def add_one() -> Stmt:
    """Build `A[i] += 1` through a temporary buffer of `i + 1` elements."""
    i, j, last = Var("i", INT64), Var("j", INT64), Var("last", INT64)
    T = Buffer("T", (i + 1,))
    view = Buffer("V", (i + 1,), data=T.data)
    into = BufferStore(T, BufferLoad(A, (j,)) + 1.0, (j,))
    back = BufferStore(A, BufferLoad(view, (last,)), (i,))
    inner = seq(over(j, n, IfThenElse(j < i + 1, into)), Let(last, i, DeclBuffer(view, back)))
    return over(i, n, Allocate(T, inner))


def statements(func: PrimFunc) -> list[Any]:
    """Return all nodes of a function; a shared node occurs once for each use."""
    def listed(node: Any, inside: list[list[Any]]) -> list[Any]:
        return [node, *(item for part in inside for item in part)]

    return fold(func.body, listed, statements_in)


def bound(func: PrimFunc) -> list[Var]:
    inside = (var for node in statements(func) for var in getattr(node, "bound", tuple)())
    return [*func.bound(), *inside]


def assert_distinct(func: PrimFunc) -> None:
    assert len(set(map(id, statements(func)))) == len(statements(func))
    assert len(set(bound(func))) == len(bound(func))


def test_repeated_statements_get_new_variables() -> None:
    body = add_one()
    func = PrimFunc("f", (A,), seq(body, body, IfThenElse(n > 2, body, body)), (n,))

    found = rename_duplicates(func)

    assert found == func
    assert_distinct(found)
    assert len(statements(found)) == len(statements(func)) == 2 + 4 * 9
    first: Any = found.body
    assert first.stmts[0] is body
    verify(found, flat=True)
    values = np.zeros(3, "float32")
    evaluate(found, [values])
    np.testing.assert_array_equal(values, [3, 3, 3])


def test_loops_inside_loops_over_the_same_variable() -> None:
    i = Var("i", INT64)
    store = BufferStore(A, BufferLoad(A, (i,)) + 1.0, (i,))
    func = PrimFunc("f", (A,), over(i, 2, seq(store, over(i, 3, store), store)), (n,))

    found = rename_duplicates(func)

    assert_distinct(found)
    assert str(found) == str(func)


def test_a_function_in_which_nothing_repeats_is_the_same_object() -> None:
    func = PrimFunc("f", (A,), add_one(), (n,))

    assert rename_duplicates(func) is func


@pytest.mark.exhaustive
def test_depth_has_no_limit() -> None:
    body = add_one()
    for k in range(3000):
        body = Allocate(Buffer(f"T{k}", (1,)), body)
    func = PrimFunc("f", (A,), seq(body, body), (n,))

    assert_distinct(rename_duplicates(func))


def test_a_report_of_more_stages_than_python_nests() -> None:
    first = last = te.placeholder((64,), name="X")
    for k in range(120):
        last = te.compute((64,), lambda i, last=last: last[i] + 1.0, name=f"T{k}")

    report = tecomp.build(te.create_schedule(last), [first, last]).report()

    assert report.operations == {"add float32": 120 * 64}
