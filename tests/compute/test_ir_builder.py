"""Statements of TVM's `ir_builder`: results and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, tir
from tecomp.compute import LOOP_KINDS
from tecomp.errors import DefinitionError
from tests.messages import Diagnostic, diagnostic

N = 12
A = te.placeholder((N,), name="A")
M = te.placeholder((3, 4), "int32", name="M")


def built(fcompute: Any, inputs: Any = A, shape: Any = (N,), dtype: Any = "float32") -> Any:
    return te.extern(shape, inputs, fcompute, name="E", dtype=dtype)


def run(E: Any, *arrays: Any) -> Any:
    """Return the result of the compiled code, which must equal that of the interpreter."""
    X = E.op.input_tensors
    found = []
    for _ in range(2):
        found.append(np.zeros([int(n) for n in E.shape], E.dtype.numpy))
    s = te.create_schedule(E)
    tecomp.build(s, [*X, E], check_bounds=True)(*arrays, found[0])
    tecomp.evaluate(tecomp.lower(s, [*X, E], stop_after="nest"), [*arrays, found[1]])
    np.testing.assert_array_equal(found[0], found[1])
    return found[0]


def everything(ins: Any, outs: Any) -> Any:
    ib = tir.ir_builder.create()
    a, e = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    total = ib.allocate("float32", (1,), name="total", scope="local")
    total[0] = 0.0
    with ib.for_range(0, N, name="i") as i:
        half = ib.let("half", a[i] * 0.5)
        with ib.if_scope(ib.likely(i % 3 == 0)):
            e[i] = half
            total[0] = total[0] + half
        with ib.else_scope():
            e[i] = total[0]
    e[0] = e[0] + 100
    return ib.get()


def test_everything_at_once() -> None:
    E = built(everything)
    a = np.arange(N, dtype="float32")
    expected, total = np.zeros(N, "float32"), 0.0
    for i in range(N):
        expected[i] = a[i] / 2 if i % 3 == 0 else total
        total += a[i] / 2 if i % 3 == 0 else 0.0
    expected[0] += 100

    np.testing.assert_array_equal(run(E, a), expected)
    assert str(E.op.statement) == """\
with Allocate(Buffer("float32", (1,), scope="local")) as total:
    total[0] = float32(0.0)
    for i in range(12):
        half = A[i] * float32(0.5)
        if i % 3 == 0:
            E[i] = half
            total[0] = total[0] + half
        else:
            E[i] = total[0]
    E[0] = E[0] + float32(100.0)"""


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_kinds_of_loops(kind: str) -> None:
    def twice(ins: Any, outs: Any) -> Any:
        ib = te.ir_builder.create()
        a, e = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, N, name="i", dtype="int32", kind=kind) as i:
            e[i] = a[i] + a[i]
        return ib.get()

    a = np.arange(N, dtype="float32")
    np.testing.assert_array_equal(run(built(twice), a), 2 * a)


def test_one_index_counts_in_row_major_order() -> None:
    def turned(ins: Any, outs: Any) -> Any:
        ib = te.ir_builder.create()
        m, e = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3, name="i") as i, ib.for_range(0, 4, name="j") as j:
            e[j * 3 + i] = m[i, j] + m[i * 4 + j]
        return ib.get()

    m = np.arange(12, dtype="int32").reshape(3, 4)
    E = built(turned, M, (4, 3), "int32")
    np.testing.assert_array_equal(run(E, m), 2 * m.T)


def test_calls_and_threads() -> None:
    seen: list[int] = []
    tecomp.register_func("test.ir_builder", lambda a, i, e: seen.append(i), override=True)

    def called(ins: Any, outs: Any) -> Any:
        ib = te.ir_builder.create()
        a, e = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        tx = te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", 3)
        ib.scope_attr(tx, "pragma_unroll", 1)
        e[tx] = a[tx] + 1
        ib.emit(te.call_packed("test.ir_builder", a, tx, e.asobject()))
        return ib.get()

    a = np.arange(N, dtype="float32")
    try:
        np.testing.assert_array_equal(run(built(called), a)[:3], a[:3] + 1)
    finally:
        tecomp.remove_global_func("test.ir_builder")
    assert seen == [0, 1, 2, 0, 1, 2]


def test_intrinsics_too() -> None:
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] * 3.0, name="y")

    def triple(ins: Any, outs: Any) -> Any:
        ib = te.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i:
            b[i] = a[i] + a[i] + a[i]
        return ib.get()

    assert te.decl_tensor_intrin(y.op, triple, name="triple").name == "triple"


def refused(write: Any) -> Diagnostic:
    def statements(ins: Any, outs: Any) -> Any:
        ib = te.ir_builder.create()
        write(ib, ins[0], outs[0])
        return ib.get()

    with pytest.raises(DefinitionError) as error:
        built(statements)
    return diagnostic(error.value)


def left_open(ib: Any, a: Any, e: Any) -> None:
    with ib.for_range(0, 3):
        ib.get()


def after_another(ib: Any, a: Any, e: Any) -> None:
    with ib.if_scope(te.const(True)):
        ib.buffer_ptr(e)[0] = 1.0
    ib.buffer_ptr(e)[1] = 1.0
    with ib.else_scope():
        pass


def of_a_number(ib: Any, a: Any, e: Any) -> None:
    with ib.if_scope(te.const(1)):
        pass


def by_halves(ib: Any, a: Any, e: Any) -> None:
    with ib.for_range(0, 3, kind="half"):
        pass


def test_invalid_arguments_are_rejected() -> None:
    assert refused(left_open) == (
        Diagnostic("statements")
    )
    assert refused(after_another) == (
        Diagnostic("statements")
    )
    assert refused(of_a_number) == (
        Diagnostic("dtype", condition="int32(1)", dtype="int32")
    )
    assert refused(by_halves) == (
        Diagnostic("unknown-choice", where="ir_builder.for_range", form="half")
    )
    assert refused(lambda ib, a, e: ib.emit(3)) == (
        Diagnostic(
            "invalid-type", where="ir_builder.emit: the statement", value=3,
            remedy="pass a statement, such as te.call_extern(...)",
        )
    )
    assert refused(lambda ib, a, e: ib.buffer_ptr(A)) == (
        Diagnostic(
            "invalid-type", where="ir_builder.buffer_ptr: the buffer",
            value="Tensor(A, shape=(12,), dtype=float32)",
            remedy="pass an operand, such as outs[0]",
        )
    )
    assert refused(lambda ib, a, e: ib.pointer("float32", name="p")) == (
        Diagnostic("statements", name="p")
    )
    assert refused(lambda ib, a, e: ib.while_loop(True)) == (
        Diagnostic("statements")
    )
    assert refused(lambda ib, a, e: ib.scope_attr(None, "storage_scope", "local")) == (
        Diagnostic("statements", attr_key="storage_scope")
    )
    assert refused(lambda ib, a, e: ib.allocate("float32", 4, axis_separators=[1])) == (
        Diagnostic("statements", where="ir_builder.allocate buf")
    )


@pytest.mark.parametrize("attr_key", ["thread_extent", "virtual_thread"])
def test_scopes_of_a_builder(attr_key: str) -> None:
    def doubled(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        ib.scope_attr(None, "extern_scope", 0)
        ib.scope_attr(None, "compute_scope", "main")
        thread = te.thread_axis("vthread")
        with ib.new_scope():
            ib.scope_attr(thread, attr_key, 4)
            x = ib.allocate("float32", (1,), name="x")
            x[0] = a[thread.var] * 2.0
            b[thread.var] = x[0]
        with ib.new_scope():
            x = ib.allocate("float32", (1,), name="x")
            x[0] = b[0] + 1.0
            b[0] = x[0]
        stmt: Any = ib.get()
        assert [str(stmt[k]).split("(")[0] for k in (0, -1)] == ["for vthread in range", "with Allocate"]
        assert len(stmt) == 2
        assert list(stmt) == [stmt[0], stmt[1]]
        with pytest.raises(IndexError):
            stmt[2]
        return stmt

    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], doubled, name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B])
    found, data = np.zeros(4, "float32"), np.arange(4, dtype="float32")
    kernel(data, found)
    np.testing.assert_array_equal(found, data * 2 + [1, 0, 0, 0])


def test_an_error_preserves_the_builder() -> None:
    ib = te.ir_builder.create()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), ib.for_range(0, 3):
            raise ZeroDivisionError

    assert str(ib.get()) == "pass"
