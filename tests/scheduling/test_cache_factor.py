"""cache_factor computes a factor of the terms of a reduction in its own stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.scheduling.replay import replay
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_product


def product() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    A, B, d = (te.placeholder(s, name=n) for s, n in (((4, 5), "A"), ((5, 6), "B"), ((5,), "d")))
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute(
        (4, 6), lambda i, j: te.sum(te.tanh(A[i, k]) * B[k, j] * 0.5 / d[k], axis=k), name="C")
    return A, B, d, C


def test_factor_stages_have_the_order_of_their_operands() -> None:
    A, B, d, C = product()
    s = te.create_schedule(C)

    first = s.cache_factor(C, [0, 3], "global")
    second = s.cache_factor(C, [1, 2], "local")

    assert str(s[first].op) == "C_factor[i, k] = tanh(A[i, k]) / d[k]"
    assert str(s[second].op) == 'C_factor[k, j] = B[k, j] * float32(0.5)'
    assert str(s[C].op) == "C[i, j] = sum(C_factor[i, k] * C_factor_1[k, j], axis=[k])"
    assert (s[first].scope, s[second].scope) == ("global", "local")
    numbers = np.random.default_rng(0)
    a, b, e = (numbers.uniform(1, 2, x.shape).astype(np.float32) for x in (A, B, d))
    out = np.empty((4, 6), np.float32)
    tecomp.build(s, [A, B, d, C])(a, b, e, out)
    assert_product(out, np.tanh(a) / e, b * 0.5)


def test_windows_that_overlap_become_one_axis() -> None:
    X, W = te.placeholder((1, 9, 3), name="X"), te.placeholder((3, 3, 2), name="W")
    r, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="c")

    def term(n: te.Expr, y: te.Expr, k: te.Expr) -> te.Expr:
        inside = te.all(y * 2 + r >= 1, y * 2 + r < 10)
        padded = te.if_then_else(inside, X[n, y * 2 + r - 1, c], 0.0)
        return te.sum(padded * W[r, c, k], axis=[r, c])

    Y = te.compute((1, 5, 2), term, name="Y")
    s = te.create_schedule(Y)

    padded = s.cache_factor(Y, 0, "global")

    assert str(s[padded].op) == (
        "Y_factor[n, r, c] = if_then_else(r >= int32(1) and r < int32(10), "
        "X[n, r + int32(-1), c], float32(0.0))"
    )
    assert padded.shape == (1, 11, 3)
    assert str(s[Y].op) == (
        "Y[n, y, k] = sum(Y_factor[n, y * int32(2) + r, c] * W[r, c, k], axis=[r, c])"
    )


def test_separately_used_axes_stay_separate() -> None:
    X, W = te.placeholder((9,), name="X"), te.placeholder((3, 2), name="W")
    r = te.reduce_axis((0, 3), name="r")
    Y = te.compute(
        (7, 2),
        lambda y, k: te.sum(te.if_then_else(y > 1, X[y + r], 0.0) * W[r, k], axis=r), name="Y")
    s = te.create_schedule(Y)

    assert s.cache_factor(Y, 0, "global").shape == (7, 3)


def test_readers_follow_the_rewritten_sum() -> None:
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((5, 6), name="B")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((4, 6), lambda i, j: te.sum(te.exp(A[i, k]) * B[k, j], axis=k), name="C")
    D = te.compute((4, 6), lambda i, j: C[i, j] + 1.0, name="D")
    state = te.placeholder((4, 6), name="state")
    start = te.compute((1, 6), lambda t, j: D[t, j], name="start")
    step = te.compute((4, 6), lambda t, j: state[t - 1, j] + D[t, j], name="step")
    E = te.scan(start, step, state, name="E")
    s = te.create_schedule(E)

    s.cache_factor(C, [0], "global")

    ops = [stage.op for stage in s.stages]
    assert all(x.op in ops for op in ops for x in op.input_tensors)
    assert s[C].op in [x.op for x in s[D].op.input_tensors]


def test_a_trace_has_the_call() -> None:
    *_, C = product()
    s = te.create_schedule(C)
    s.cache_factor(C, [0], "global")

    replayed = replay(s.trace.to_json(), C)

    assert str(replayed.trace) == str(s.trace)
    assert "C_factor = s.cache_factor(C, [0], 'global')" in str(s.trace)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda s, C: s.cache_factor(C, 4, "global"),
         Diagnostic("unknown-loop", where="s.cache_factor(C, [4], 'global')", every_count=4, last=3)),
        (lambda s, C: s.cache_factor(C, [], "global"),
         Diagnostic("unknown-loop", where="s.cache_factor(C, [], 'global')", every_count=4, last=3)),
        (lambda s, C: s.cache_factor(C, [0, 1, 2, 3], "global"),
         Diagnostic(
             "unknown-loop", where="s.cache_factor(C, [0, 1, 2, 3], 'global')", every_count=4,
             last=3,
         )),
        (lambda s, C: s.cache_factor(C, 2, "global"),
         Diagnostic("pattern-mismatch", where="s.cache_factor(C, [2], 'global')", value="float32(0.5)")),
        (lambda s, C: s.cache_factor(C, "0", "global"),
         Diagnostic(
             "invalid-type", where="s.cache_factor: factors", value=['0'],
             remedy="pass integers >= 0",
         )),
        (lambda s, C: s.cache_factor(C, 0, ""),
         Diagnostic("invalid-type", where="s.cache_factor(C, [0], '')", scope="")),
    ],
)
def test_refused(call: Callable[[te.Schedule, te.Tensor], object], expected: Diagnostic) -> None:
    *_, C = product()
    s = te.create_schedule(C)

    with pytest.raises(tecomp.ScheduleError) as caught:
        call(s, C)

    assert diagnostic(caught.value) == expected
    assert str(s.trace).count("cache_factor") == 0


def test_unsupported_reductions_are_rejected() -> None:
    A = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((1,), lambda _: te.sum(A[k] * 2.0, axis=k, where=k > 1), name="C")
    s = te.create_schedule([B, C])

    for x in (B, C):
        with pytest.raises(tecomp.ScheduleError) as caught:
            s.cache_factor(x, 0, "global")
        assert diagnostic(caught.value) == Diagnostic(
            "pattern-mismatch", where=f"s.cache_factor({x.name}, [0], 'global')", stage=x.name,
            reason="only the factors of unconditionally computed terms can be cached",
        )
