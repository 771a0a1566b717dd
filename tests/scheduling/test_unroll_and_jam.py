"""`unroll_and_jam` against NumPy, with other annotations, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import ScheduleError, te
from tests.messages import Diagnostic, diagnostic


def product(m: int, n: int, r: int) -> tuple[te.Schedule, te.Tensor, te.Tensor, te.Tensor]:
    """Return a schedule of a matrix product, its operands and its result."""
    A, B = te.placeholder((m, r), name="A"), te.placeholder((r, n), name="B")
    k = te.reduce_axis((0, r), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_schedule(C.op), A, B, C


def check(s: te.Schedule, A: te.Tensor, B: te.Tensor, C: te.Tensor) -> str:
    """Run a product of small integers, which is exact, and return the lowered loops."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 10, [int(n) for n in x.shape]).astype("float32") for x in (A, B))
    c = np.empty([int(n) for n in C.shape], "float32")
    tecomp.build(s, [A, B, C])(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    return str(tecomp.lower(s, [A, B, C]).body)


@pytest.mark.exhaustive(keep=12, most=48)
@pytest.mark.parametrize("factor", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("size", [(8, 5, 6), (7, 9, 3), (1, 1, 1), (13, 4, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_products(size: tuple[int, int, int], factor: int, axis: int) -> None:
    """All factors, those that do not divide the extent or exceed it included."""
    s, A, B, C = product(*size)
    outer, inner = s[C].unroll_and_jam(C.op.axis[axis], factor)

    check(s, A, B, C)

    assert s[C].leaf_iter_vars[-1] is inner
    assert s[C].leaf_iter_vars[axis] is outer


def test_the_copies_share_the_inner_loop() -> None:
    s, A, B, C = product(8, 4, 6)
    s[C].unroll_and_jam(C.op.axis[0], 4)

    text = check(s, A, B, C)

    assert text.count("for k in") == 1
    assert text.count("B[") == 4  # one row of B for four rows of C


def test_vectorized_loops_stay_innermost() -> None:
    s, A, B, C = product(8, 16, 6)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    _, lanes = s[C].split(j, factor=8)
    s[C].reorder(k, lanes)
    s[C].vectorize(lanes)
    _, inner = s[C].unroll_and_jam(i, 4)

    check(s, A, B, C)

    assert s[C].leaf_iter_vars[-2:] == (inner, lanes)


def test_shifted_tails_have_no_guard() -> None:
    A = te.placeholder((10, 3), name="A")
    B = te.compute((10, 3), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[B].unroll_and_jam(B.op.axis[0], 4, tail="shift_inwards")
    a, b = np.arange(30, dtype="float32").reshape(10, 3), np.empty((10, 3), "float32")

    tecomp.build(s, [A, B])(a, b)

    np.testing.assert_array_equal(b, a * 2)
    assert "if " not in str(tecomp.lower(s, [A, B]).body)


def test_attached_stages_are_computed_for_all_copies() -> None:
    A = te.placeholder((12, 6), name="A")
    P = te.compute((12, 6), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.compute((12, 6), lambda i, j: P[i, j] * P[i, 5 - j], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].unroll_and_jam(C.op.axis[0], 5)
    s[P].compute_at(s[C], outer)
    a = np.random.default_rng(1).integers(0, 9, (12, 6)).astype("float32")
    c = np.empty((12, 6), "float32")

    tecomp.build(s, [A, C])(a, c)

    np.testing.assert_array_equal(c, (a + 1) * (a + 1)[:, ::-1])


def test_innermost_reduction_loops() -> None:
    s, A, B, C = product(4, 4, 10)
    (k,) = C.op.reduce_axis
    s[C].reorder(k, *C.op.axis)
    s[C].unroll_and_jam(k, 4)

    check(s, A, B, C)


def test_a_trace_replays_the_call() -> None:
    s, A, B, C = product(9, 4, 6)
    s[C].unroll_and_jam(C.op.axis[0], 4)

    replayed = tecomp.replay(s.trace.to_json(), C)

    assert str(replayed.trace) == str(s.trace)
    assert str(tecomp.lower(replayed, [A, B, C])) == str(tecomp.lower(s, [A, B, C]))


def _scan() -> Any:
    X, state = te.placeholder((5, 4), name="X"), te.placeholder((5, 4), name="state")
    first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    step = te.compute((5, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    sums = te.scan(first, step, state, inputs=[X], name="sums")
    return te.create_schedule(sums.op)[sums].unroll_and_jam(sums.op.axis[0], 2)


def _product(call: Callable[[te.Schedule, te.Tensor], object]) -> Callable[[], object]:
    def run() -> object:
        s, _, _, C = product(4, 4, 10)
        return call(s, C)

    return run


def _split_reduction(s: te.Schedule, C: te.Tensor) -> object:
    outer, _ = s[C].split(C.op.reduce_axis[0], factor=5)
    return s[C].unroll_and_jam(outer, 2)


WHERE = "s[C].unroll_and_jam(i)"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (_scan, Diagnostic(
            "not-parallelizable", where="s[sums].unroll_and_jam(t)", axis="t")),
        (_product(_split_reduction), Diagnostic(
            "not-parallelizable", where="s[C].unroll_and_jam(k.outer)", axis="k.outer",
            inner="k.inner")),
        (_product(lambda s, C: s[C].unroll_and_jam(C.op.axis[0], 0)),
         Diagnostic("invalid-value", where=WHERE, subject="factor", number=0)),
        (_product(lambda s, C: s[C].unroll_and_jam(C.op.axis[0], 2.5)),  # type: ignore[arg-type]
         Diagnostic("invalid-value", where=WHERE, subject="factor", value=2.5)),
        (_product(lambda s, C: s[C].unroll_and_jam(C.op.axis[0], te.size_var("n"))),  # type: ignore[arg-type]
         Diagnostic("invalid-value", where=WHERE, factor="n")),
        (_product(lambda s, C: s[C].unroll_and_jam(C.op.axis[0], 2, tail="shift_inwards")),
         Diagnostic("not-parallelizable", where="s[C].split(i)", option="tail='shift_inwards'",
                    stage="C")),
    ],
)
def test_refusals(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(ScheduleError) as error:
        call()

    assert diagnostic(error.value) == expected
