"""Stages that call functions: any layout, memory and attach point, interpreted and compiled."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LowerError
from tecomp.ir import evaluate
from tecomp.lowering import lower_all
from tecomp.scheduling.replay import replay
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close


def matmul(a: Any, b: Any, c: Any) -> None:
    """Compute the matrix product with NumPy."""
    np.matmul(a, b, out=c)


tecomp.register_func("test.lowering.matmul", matmul, override=True)
tecomp.register_func("test.lowering.memcpy", tecomp.CFunction(
    ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"]), override=True)

M, K, N = 6, 10, 8
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
P = te.compute((M, K), lambda i, j: A[i, j] + 1.0, name="P")


def multiply(ins: Any, outs: Any) -> Any:
    """Multiply with a Python function, and copy the first row to the last row with C `memcpy`."""
    return te.stmt_seq(
        te.call_packed("test.lowering.matmul", ins[0], ins[1], outs[0]),
        te.call_extern(
            "handle", "test.lowering.memcpy", outs[0].access_ptr("w", offset=(M - 1) * N),
            outs[0].access_ptr("r", extent=N), 4 * N,
        ),
    )  # fmt: skip


C = te.extern((M, N), [P, B], multiply, name="C")
D = te.compute((M, N), lambda i, j: C[i, j] * 2.0, name="D")


def check(s: te.Schedule, target: str = "cpu") -> Any:
    """Check the interpreter after every pass, the compiled code and a replayed schedule."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 3, shape).astype("float32") for shape in ((M, K), (K, N)))
    expected = 2 * ((a + 1) @ b)
    expected[-1] = expected[0]
    lowered = lower_all(s, [A, B, D])
    for func in lowered.functions.values():
        shapes = [[int(str(n)) for n in getattr(p, "shape", ())] for p in func.params]
        arrays = [x.reshape(n) for x, n in zip((a, b, np.zeros_like(expected)), shapes, strict=True)]
        evaluate(func, arrays)
        np.testing.assert_array_equal(arrays[2].reshape(M, N), expected)
    assert str(lower_all(replay(s.trace.to_json(), s.outputs), [A, B, D]).final) == str(
        lowered.final)
    for check_bounds in (False, True):
        result = np.zeros_like(expected)
        tecomp.build(s, [A, B, D], target, check_bounds=check_bounds)(a, b, result)
        np.testing.assert_array_equal(result, expected)
    return lowered.functions["nest"]


def test_extern_functions_are_called_once() -> None:
    text = str(check(te.create_schedule(D)))

    assert "plain" not in text
    assert (
        'call_packed("test.lowering.matmul", reads(lambda i0, i1: P[i0, i1], (6, 10)), '
        "reads(lambda i0, i1: B[i0, i1], (10, 8)), writes(lambda i0, i1: C[i0, i1], (6, 8)))"
    ) in text


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("scope", ["global", "local", "shared"])
def test_operands_in_layouts_are_copied(scope: str) -> None:
    s = te.create_schedule(D)
    s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])
    s[C].transform_layout(lambda i, j: [j, i])
    s[C].set_scope(scope)
    text = str(check(s))

    assert "P_plain[i0, i1] = P[i0, i1]" in text
    assert "C[i0, i1] = C_plain[i0, i1]" in text


def test_rows_with_gaps_are_views_for_python_and_copied_for_c() -> None:
    s = te.create_schedule(D)
    s[P].storage_align(P.op.axis[0], 16, 3)
    s[C].storage_align(C.op.axis[0], 16, 5)
    nest = str(check(s))
    flat = str(tecomp.lower(s, [A, B, D]))

    assert "P_plain" not in nest
    assert "C_plain" in nest
    assert "reads(lambda i0, i1: P[i0 * 19 + i1], (6, 10))" in flat


def test_operands_in_rows() -> None:
    s = te.create_schedule(D)
    s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    s[P].set_scope("global.texture")

    assert "P_plain" in str(check(s))


def test_extern_functions_are_called_in_loops() -> None:
    s = te.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[0], factor=4)
    s[C].compute_at(s[D], outer)
    s[P].compute_at(s[D], outer)

    assert "for i_outer in range(2):\n        with BufferRealize" in str(check(s))


def test_extern_functions_are_called_by_threads() -> None:
    s = te.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[0], factor=2)
    s[C].compute_at(s[D], outer)
    s[D].parallel(outer)

    check(s)


def test_loops_around_are_unrolled_and_no_vectors() -> None:
    for mark in ("unroll", "vectorize"):
        s = te.create_schedule(D)
        i, _ = s[D].op.axis
        s[C].compute_at(s[D], i)
        s[D].reorder(i)
        getattr(s[D], mark)(i)
        check(s)


def test_caches_and_doubled_memory() -> None:
    s = te.create_schedule(D)
    cache = s.cache_read(P, "local", [C])
    s.cache_read(C, "local", [D])
    s[cache].transform_layout(lambda i, j: [j, i])
    check(s)

    s = te.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[0], factor=3)
    s[C].compute_at(s[D], outer)
    s[C].double_buffer()
    check(s)


@pytest.mark.parametrize(("target", "memory", "cut"), [
    ("stick128", "ddr", lambda i, j: [j // 4, i, j % 4]),
    ("vtcm2d", "global.vtcm", lambda i, j: [j // 4, i, te.AXIS_SEPARATOR, j % 4]),
])
def test_machines_with_scratchpads(target: str, memory: str, cut: Any) -> None:
    s = te.create_schedule(D)
    for stage in (P, C):
        s[stage].transform_layout(cut)
        s[stage].set_scope(memory)

    check(s, target)


def test_sizes_are_known_at_the_call() -> None:
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), "float64", name="X")
    Y = te.extern((n, m), X, lambda ins, outs: te.call_packed(
        "test.lowering.cumsum", ins[0], n, outs[0]), name="Y")
    Z = te.compute((n, m), lambda i, j: Y[i, j] + 1.0, name="Z")
    s = te.create_schedule(Z)
    s[Y].transform_layout(lambda i, j: [j, i])
    seen: list[int] = []

    def cumsum(x: Any, count: int, y: Any) -> None:
        seen.append(count)
        np.cumsum(x, axis=1, out=y)

    tecomp.register_func("test.lowering.cumsum", cumsum)
    try:
        kernel = tecomp.build(s, [X, Z])
    finally:
        tecomp.remove_global_func("test.lowering.cumsum")
    for shape in ((3, 4), (1, 5), (5, 1), (0, 3), (2, 0)):
        x, z = np.random.default_rng(1).random(shape), np.zeros(shape)
        kernel(x, z)
        assert_close(z, np.cumsum(x, axis=1) + 1)
    assert seen == [3, 1, 5, 0, 2]


def test_inputs_of_extern_stages_are_stored() -> None:
    s = te.create_schedule(D)
    s[P].compute_inline()
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, B, D])

    assert diagnostic(error.value) == (
        Diagnostic("requires-storage", stage="P", op="C")
    )
