"""Strided arguments: the strides that `binds` declares, and the strides that calls compare."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, tir
from tecomp.codegen import Kernel
from tecomp.driver import ScheduledKernel
from tecomp.errors import CallError, LowerError
from tecomp.ir import Binary, BinOp, BufferLoad, BufferStore, walk
from tecomp.schedules import auto
from tests.messages import Diagnostic, diagnostic

n, s = te.var("n"), te.var("s")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")


def strided(x: te.Tensor, *strides: Any, **other: Any) -> Any:
    source = {"shape": x.shape, "dtype": x.dtype, **other}
    return tir.decl_buffer(**source, name=x.name, strides=list(strides))


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


class Exporter:
    """Memory that is shared through DLPack only."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def refused(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(tecomp.TecompError) as error:
        call()
    return diagnostic(error.value)


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the calls that take the checked path."""
    notes: list[object] = []
    run = Kernel._careful

    def noted(self: Kernel, block: Any, arguments: Any) -> list[Any]:
        notes.append(arguments)
        return run(self, block, arguments)

    monkeypatch.setattr(Kernel, "_careful", noted)
    return notes


def test_repr_shows_strides() -> None:
    func = tecomp.lower(te.create_schedule(B), [A, B], binds={A: strided(A, s), B: strided(B, -2)})

    assert str(func) == (
        'def main(A: Buffer("float32", (n,), strides=(s,), flat=True), '
        'B: Buffer("float32", (n,), strides=(-2,), flat=True), *, n: "int64", s: "int64"):\n'
        "    for i in range(n):\n"
        "        B[0 - i * 2] = A[i * s] + float32(1.0)"
    )
    assert tecomp.parse(str(func)) == func


def test_strides_without_gaps_are_none() -> None:
    m = te.var("m")
    X = te.placeholder((m, n), name="X")
    Y = te.compute((m, n), lambda i, j: X[i, j] + 1.0, name="Y")

    plain = tecomp.lower(te.create_schedule(Y), [X, Y])

    assert plain == tecomp.lower(te.create_schedule(Y), [X, Y], binds={X: strided(X, n, 1)})


def test_plain_calls_take_strides(careful: list[object]) -> None:
    m = te.var("m")
    X, Y = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="Y")
    Z = te.compute((m, n), lambda i, j: X[i, j] * 10.0 + Y[i, j], name="Z")
    kernel = tecomp.build(Z, [X, Y, Z], binds={
        X: strided(X, te.var("x0"), te.var("x1")), Y: strided(Y, te.var("y0"), 1),
        Z: strided(Z, te.var("z0"), te.var("z1")),
    })
    base = f32(8, 12)
    kernel(base, base, f32(8, 12))  # the first parallel kernel of a process requests threads
    careful.clear()
    for x, y in (
        (base[:4, :6], base[4:, 6:]), (base[::-2, ::2], base[::2, 1:7]),
        (base[:6, :4].T, np.broadcast_to(base[0, :6], (4, 6))), (base[:1, :1], base[:1, :1]),
        (base[:0], base[:0]), (base[:3, :0], base[:3, :0]),
        (np.broadcast_to(np.float32(3), (4, 6)), base[:4, ::-1][:, 6:][:, ::-1]),
    ):
        for z in (np.zeros(x.shape, np.float32), np.zeros((2 * x.shape[1], x.shape[0], 3),
                  np.float32)[::-2, :, 1].T):
            kernel(x, y, z)

            np.testing.assert_array_equal(z, x * 10 + y)
    assert not careful


def test_one_variable_for_several_strides(careful: list[object]) -> None:
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    kernel = tecomp.build(C, [A, C], binds={A: strided(A, s), C: strided(C, s)})
    out = f32(24)
    kernel(f32(1), out[:1])
    careful.clear()
    for count in (0, 1, 4):
        kernel(f32(8)[::2][:count], out[::2][:count])
    assert not careful
    # The stride of an axis with a single element is irrelevant.
    kernel(f32(8)[::2][:1], out[::3][:1])
    assert not careful

    assert refused(lambda: kernel(f32(8)[::2], out[:12:3])) == (
        Diagnostic("unsupported-memory", where="argument 1 (C) of main", expected=(2,), got=(3,))
    )


def test_strides_of_axes_of_size_1_are_ignored() -> None:
    m = te.var("m")
    X = te.placeholder((m,), name="X")
    C = te.compute((n,), lambda i: A[i] + X[0], name="C")
    kernel = tecomp.build(C, [X, A, C], binds={X: strided(X, s), A: strided(A, s)})
    out = f32(4)

    kernel(f32(9)[5:6], f32(8)[::2], out)

    assert list(out) == [5, 7, 9, 11]


REFUSED: dict[str, tuple[Callable[[], tuple[Any, Any]], Diagnostic]] = {
    "bytes": (
        lambda: (np.ndarray((3,), np.float32, bytes(64), 0, (6,)), f32(3)),
        Diagnostic(
            "unsupported-memory", where="argument 0 (A) of main", axis=0, step=6, size=4,
            scalar="float32",
        )),
    "type": (
        lambda: (np.zeros(8)[::2], f32(4)),
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of main", parameter="float32[n]",
            shape="float64[4]", scalar="np.float32",
        )),
    "repeated": (
        lambda: (f32(4), np.lib.stride_tricks.as_strided(f32(1), (4,), (0,))),
        Diagnostic("unsupported-memory", where="argument 1 (B) of main", got=(0,), shape="float32[4]")),
    "read-only": (
        lambda: (f32(4), np.broadcast_to(f32(1), (4,))),
        Diagnostic(
            "unsupported-memory", where="argument 1 (B) of main", reason="the array is read-only",
            advice="pass a copy of it",
        )),
    "extent": (
        lambda: (f32(8)[::2], f32(9)[::3]),
        Diagnostic(
            "argument-mismatch", where="argument 1 (B) of main",
            problem="axis 0 is 3, but n is 4 from axis 0 of A; pass an array of float32[4]",
        )),
    "rank": (
        lambda: (f32(4, 4), f32(4)),
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of main", rank=1, parameter="float32[n]",
            got_count=2, got="float32[4, 4]", remedy="reshape it",
        )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_call_arguments(name: str) -> None:
    make, expected = REFUSED[name]
    kernel = tecomp.build(B, [A, B], binds={A: strided(A, s), B: strided(B, te.var("t"))})

    assert refused(lambda: kernel(*make())) == expected


def test_an_array_that_begins_between_elements() -> None:
    kernel = tecomp.build(B, [A, B], binds={A: strided(A, s)})
    odd = np.ndarray((3,), np.float32, bytes(64), 1, (8,))

    assert refused(lambda: kernel(odd, f32(3))) == Diagnostic(
        "unsupported-memory", where="argument 0 (A) of main", address=odd.ctypes.data, bytes=4,
        scalar="float32",
    )


def test_outputs_that_meet_other_arguments() -> None:
    kernel = tecomp.build(B, [A, B], binds={A: strided(A, s), B: strided(B, te.var("t"))})
    both = f32(8)

    kernel(both[::2], both[1::2])

    assert list(both) == [0, 1, 2, 3, 4, 5, 6, 7]
    shared = (
        Diagnostic("unsupported-memory", where="argument 1 (B) of main", position=0, buffer="A")
    )
    assert refused(lambda: kernel(both[::2], both[::2])) == shared
    assert refused(lambda: kernel(both[::-1][:5], both[:5])) == shared
    assert refused(lambda: kernel(np.broadcast_to(both[2:3], (3,)), both[:3])) == shared


def test_arrays_of_other_libraries() -> None:
    kernel = tecomp.build(B, [A, B], binds={A: strided(A, s), B: strided(B, te.var("t"))})
    out = np.zeros(8, np.float32)

    kernel(Exporter(f32(8)[::-2]), Exporter(out[1::2]))

    assert list(out) == [0, 8, 0, 6, 0, 4, 0, 2]


X = te.placeholder((3,), name="X")
V = te.placeholder((4,), "float32x4", name="V")
WRONG: dict[str, tuple[Any, Diagnostic]] = {
    "number": (3, Diagnostic(
        "invalid-type", where="build: binds", value=3,
        remedy="pass a dict from tensors to te.decl_buffer",
    )),
    "stranger": ({X: strided(X, 1)}, Diagnostic("argument-list", where="build", tensor="X")),
    "shape": ({A: strided(A, 1, shape=(3,))},
              Diagnostic(
                  "conflicting-options", where="build: binds: A",
                  buffer='A: Buffer("float32", (3,), scope="", strides=(1,))',
                  tensor="Tensor(A, shape=(n,), dtype=float32)",
              )),
    "type": ({A: strided(A, 1, dtype="int8")},
             Diagnostic(
                 "conflicting-options", where="build: binds: A",
                 buffer='A: Buffer("int8", (n,), scope="", strides=(1,))',
                 tensor="Tensor(A, shape=(n,), dtype=float32)",
             )),
    "sum": ({A: strided(A, s + 1)},
            Diagnostic("unbound-size", func="main", var="s")),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_binds(name: str) -> None:
    binds, expected = WRONG[name]

    assert refused(lambda: tecomp.build(B, [A, B], binds=binds)) == expected


def test_vectors_and_layouts_have_no_strides() -> None:
    W = te.compute((4,), lambda i: V[i], name="W")
    assert refused(lambda: tecomp.build(W, [V, W], binds={V: strided(V, s)})) == (
        Diagnostic("lower", where="build: binds: V", dtype="float32x4", scalar="float32")
    )
    stored = te.create_schedule(B)
    stored[A].transform_layout(lambda i: [i // 4, i % 4])
    assert refused(lambda: tecomp.build(stored, [A, B], binds={A: strided(A, s)})) == (
        Diagnostic("conflicting-options", memory="A", strides="(s,)")
    )


o = te.var("o")


def moved(x: te.Tensor, offset: Any, **other: Any) -> Any:
    return te.decl_buffer(x.shape, x.dtype, x.name, elem_offset=offset, **other)


def test_tensors_that_begin_inside_of_an_array() -> None:
    binds = {A: moved(A, o), B: moved(B, 8)}
    kernel = tecomp.build(B, [A, B, o, n], binds=binds)
    func = tecomp.lower(te.create_schedule(B), [A, B, o, n], binds=binds)
    memory = f32(12)

    kernel(memory, memory, 2, 3)

    assert list(memory) == [0, 1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 11]
    assert str(func) == (
        'def main(A: Buffer("float32", (n,), elem_offset=o), '
        'B: Buffer("float32", (n,), elem_offset=8), o: "int64", n: "int64"):\n'
        "    for i in range(n):\n"
        "        B[i] = A[i] + float32(1.0)"
    )
    assert tecomp.parse(str(func)) == func
    assert repr(kernel) == (
        "<Kernel main(A: float32[n] at element o of an array, B: float32[n] at element 8 of an "
        "array, o: int32, n: int32), writes B>"
    )


@pytest.mark.parametrize("scope", ["global", "global.texture"])
def test_a_packed_tensor_begins_inside_of_an_array(scope: str) -> None:
    stored = te.create_schedule(C := te.compute((8,), lambda i: X8[i] + 1.0, name="C"))
    cut = [te.AXIS_SEPARATOR] if scope == "global.texture" else []
    stored[X8].transform_layout(lambda i: [i % 4, *cut, i // 4])
    stored[X8].set_scope(scope)
    kernel = tecomp.build(stored, [X8, C], binds={X8: moved(X8, 3)})
    memory, out = f32(12), np.zeros(8, np.float32)
    memory[3:11] = f32(8).reshape(2, 4).T.reshape(-1)

    kernel(memory, out)

    assert list(out) == [1, 2, 3, 4, 5, 6, 7, 8]


X8 = te.placeholder((8,), name="X8")
OUTSIDE: dict[str, tuple[tuple[Any, ...], Diagnostic]] = {
    "behind": ((f32(12), 10, 3), Diagnostic(
        "argument-mismatch", where="argument 0 (A) of main", shape="float32[3]", first=10, last=12,
        got="float32[12]",
    )),
    "before": ((f32(12), -1, 3), Diagnostic(
        "argument-mismatch", where="argument 0 (A) of main", shape="float32[3]", first=-1, last=1,
        got="float32[12]",
    )),
    "negative": ((f32(12), 1, -3), Diagnostic(
        "argument-mismatch", where="argument 0 (A) of main", shape="float32[-3]",
    )),
    "axes": ((f32(3, 4), 1, 3), Diagnostic(
        "argument-mismatch", where="argument 0 (A) of main",
        parameter="float32[n] at element o of an array", got="float32[3, 4]",
    )),
    "gaps": ((f32(12)[::2], 1, 3), Diagnostic(
        "unsupported-memory", where="argument 0 (A) of main",
        parameter="float32[n] at element o of an array", strides=(2,),
        remedy="pass np.ascontiguousarray(...) of it",
    )),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_elements_outside_of_an_array(name: str) -> None:
    (memory, offset, size), message = OUTSIDE[name]
    binds = {A: moved(A, o)}
    kernel = tecomp.build(B, [A, B, o, n], binds=binds)
    func = tecomp.lower(te.create_schedule(B), [A, B, o, n], binds=binds)
    out = np.zeros(max(size, 0), np.float32)

    assert refused(lambda: kernel(memory, out, offset, size)) == message
    if name in ("behind", "before"):
        assert refused(lambda: tecomp.evaluate(func, [memory, out, offset, size])) == (
            Diagnostic("out-of-bounds", name="A", shape=(3,), offset=offset, array_count=12)
        )


def test_parts_of_one_array_that_overlap() -> None:
    kernel = tecomp.build(B, [A, B, n], binds={A: moved(A, 2), B: moved(B, 4)})
    memory = f32(12)

    kernel(memory, memory, 2)

    assert list(memory[:7]) == [0, 1, 2, 3, 3, 4, 6]
    assert refused(lambda: kernel(memory, memory, 3)) == (
        Diagnostic("unsupported-memory", where="argument 1 (B) of main", position=0, buffer="A")
    )


def test_offsets_that_no_argument_tells() -> None:
    assert refused(lambda: tecomp.build(B, [A, B], binds={A: moved(A, o + 1)})) == (
        Diagnostic("argument-list", var="o")
    )
    both = {A: moved(A, 2), B: moved(B, 4)}
    assert refused(lambda: tecomp.build(B, [A, B], binds=both)) == (
        Diagnostic("unbound-size", func="main", var="n")
    )
    W = te.compute((4,), lambda i: V[i], name="W")
    assert refused(lambda: tecomp.build(W, [V, W], binds={V: moved(V, 1)})) == (
        Diagnostic("lower", where="build: binds: V", dtype="float32x4", scalar="float32")
    )


def test_strides_that_are_a_number_of_the_caller() -> None:
    C = te.compute((n,), lambda i: A[i], name="C")
    kernel = tecomp.build(C, [A, s, C], binds={A: strided(A, s + 1)})
    out = np.zeros(4, np.float32)

    kernel(f32(12)[::3], 2, out)

    assert list(out) == [0, 3, 6, 9]
    assert refused(lambda: kernel(f32(8)[::2], 2, out)) == (
        Diagnostic("unsupported-memory", where="argument 0 (A) of main", expected=(3,), got=(2,))
    )


def test_formulas_may_use_a_stride() -> None:
    C = te.compute((n,), lambda i: A[i] * s, name="C")
    kernel = tecomp.build(C, [A, C], binds={A: strided(A, s)})
    out = np.zeros(3, np.float32)

    kernel(f32(3)[::-1], out)

    assert list(out) == [-2, -1, 0]


def test_functions_outside_get_the_strides() -> None:
    seen: list[tuple[int, ...]] = []

    def copied(source: Any, target: Any) -> None:
        seen.append(source.strides)
        target[:] = source

    tecomp.register_func("test.binds.copied", copied, override=True)
    C = te.extern((3,), [X], lambda ins, outs: te.call_packed("test.binds.copied", *ins, *outs),
                  name="C")
    kernel = tecomp.build(te.create_schedule(C), [X, C], binds={X: strided(X, s)})
    inputs = [f32(6)[::2], f32(3)[::-1], np.broadcast_to(np.float32(2), (3,))]
    runs: list[Callable[[list[Any]], None]] = [
        lambda item: kernel(*item), lambda item: tecomp.evaluate(kernel.lowered.final, item)]
    for run in runs:
        for x in inputs:
            out = np.zeros(3, np.float32)
            run([x, out])

            np.testing.assert_array_equal(out, x)
    assert seen == [(8,), (-4,), (0,)] * 2
    tecomp.remove_global_func("test.binds.copied")


def test_kernels_keep_their_strides(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    plain = tecomp.build(B, [A, B])
    for _ in range(2):
        kernel = tecomp.build(B, [A, B], binds={A: strided(A, s)})
        for item in (kernel, pickle.loads(pickle.dumps(kernel))):
            out = np.zeros(4, np.float32)
            item(f32(8)[::2], out)
            item(f32(8)[::2], out, layouts="logical")

            assert list(out) == [1, 3, 5, 7]
    with pytest.raises(CallError):
        plain(f32(8)[::2], out)
    assert kernel.report(n=100, s=2).traffic


def test_reading_together_needs_elements_side_by_side() -> None:
    P, Q = (te.placeholder((64,), "int8", name=name) for name in "PQ")
    k = te.reduce_axis((0, 4), name="k")
    D = te.compute((16,), lambda i: te.sum(
        P[i * 4 + k].astype("int32") * Q[i * 4 + k].astype("int32"), axis=k), name="D")
    for x in (P, Q):
        kernel = tecomp.build(D, [P, Q, D], binds={x: strided(x, te.var("t"))})
        p, q = (np.arange(64, dtype=np.int8)[::-1] % 7 for _ in range(2))
        p, q = p.copy(), q.copy()
        out = np.zeros(16, np.int32)
        if x is P:
            p = p[::-1]
        else:
            q = q[::-1]
        kernel(p, q, out)

        np.testing.assert_array_equal(
            out, (p.astype(np.int32) * q).reshape(16, 4).sum(1))


def indices(kernel: ScheduledKernel) -> set[BinOp]:
    """Return the operators that occur in the vector indices of a kernel."""
    accesses = (
        node for node in walk(kernel.func.body) if isinstance(node, BufferStore | BufferLoad))
    return {
        part.op for node in accesses for part in walk(node.indices[-1])
        if isinstance(part, Binary) and part.dtype.lanes > 1
    }


def test_rows_with_gaps_are_not_fused() -> None:
    m = te.var("m")
    P, Q = te.placeholder((m, n), name="P"), te.placeholder((m, n), name="Q")
    R = te.compute((m, n), lambda i, j: P[i, j] + Q[i, j], name="R")
    rows, column, row = [te.var("p"), 1], [1, 0], [0, 1]
    for binds in (
        {P: strided(P, *rows)}, {R: strided(R, *rows)}, {P: strided(P, *column)},
        {P: strided(P, *row), Q: strided(Q, *column)}, {Q: strided(Q, te.var("q"), te.var("t"))},
    ):
        assert indices(tecomp.build(R, [P, Q, R], binds=binds)) == set()
    # A schedule that ignores the gaps fuses the rows and needs quotients in indices.
    blind = tecomp.build(auto(R, "cpu"), [P, Q, R], binds={P: strided(P, *rows)})
    assert BinOp.FLOORDIV in indices(blind)
    # With strides 0, P has the same element in all rows, so the axes are fused.
    one = tecomp.build(R, [P, Q, R], binds={P: strided(P, 0, 0)})
    assert str(one.func.body).startswith("if n > 0:\n    for i_j_fused_outer in parallel(")


def test_vectors_are_short_where_lanes_are_read_one_by_one() -> None:
    P = te.placeholder((n,), "int8", "P")
    lanes = [
        max(node.value.dtype.lanes for node in walk(tecomp.build(Q, [P, Q], binds=binds).func.body)
            if isinstance(node, BufferStore))
        for Q in [te.compute((n,), lambda i: P[i] + P[i], name="Q")]
        for binds in ({P: strided(P, te.var("p"))}, {Q: strided(Q, 2)}, {P: strided(P, 0)})
    ]

    assert lanes[:2] == [8, 8]
    assert lanes[2] > 8


def test_column_major_arguments_are_transposed_in_squares() -> None:
    P, Q = te.placeholder((64, 64), name="P"), te.placeholder((64, 64), name="Q")
    R = te.compute((64, 64), lambda i, j: P[i, j] + Q[i, j], name="R")
    kernel = tecomp.build(R, [P, Q, R], binds={P: strided(P, 1, te.var("p"))})

    assert "gather" not in kernel.source("llvm")
    p, q, r = f32(64, 70)[:, :64].T, f32(64, 64), np.empty((64, 64), np.float32)
    kernel(p, q, r)
    np.testing.assert_array_equal(r, p + q)


def test_lower_refuses_as_build_does() -> None:
    with pytest.raises(LowerError) as error:
        tecomp.lower(te.create_schedule(B), [A, B], binds={X: strided(X, 1)})
    assert diagnostic(error.value) == (
        Diagnostic("argument-list", where="lower", tensor="X")
    )
