"""Stages that would read out of bounds in unneeded elements: only needed elements are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LowerError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

A = te.placeholder((9, 4), name="A")
DATA = np.random.default_rng(4).random((9, 4)).astype("float32")
P = te.compute((10, 4), lambda t, i: A[t - 1, i] * 2.0, name="P")
Q = te.compute((10, 4), lambda t, i: P[t, i] + 1.0, name="Q")
C = te.compute((9, 4), lambda t, i: Q[t + 1, i], name="C")


def vectors(s: te.Schedule) -> None:
    for stage in (P, Q, C):
        s[stage].vectorize(s[stage].split(stage.op.axis[1], factor=3)[1])


def layouts(s: te.Schedule) -> None:
    s[P].transform_layout(lambda t, i: [i, t // 4, t % 4])
    s[Q].transform_layout(lambda t, i: [i, t], loops="logical")


def split(s: te.Schedule) -> None:
    s[P].parallel(s[P].split(P.op.axis[0], factor=4)[0])
    s[Q].fuse(*Q.op.axis)


def inlined(s: te.Schedule) -> None:
    s[P].compute_inline()


def cached(s: te.Schedule) -> None:
    s.cache_write(P, "local")
    s.cache_read(Q, "local", C)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("decide", [lambda s: None, vectors, layouts, split, inlined, cached])
def test_numbers(agrees: Any, decide: Callable[[te.Schedule], None]) -> None:
    s = te.create_schedule(C)
    decide(s)

    agrees(s, [A, C], {A: DATA, C: DATA * 2 + 1}, rtol=1e-6)


def test_computed_elements() -> None:
    s = te.create_schedule(C)
    s[Q].compute_inline()

    assert str(tecomp.lower(s, [A, C], stop_after="nest").body) == (
        'with BufferRealize(Buffer("float32", (10, 4)), bounds=((0, 10), (0, 4))) as P:\n'
        "    for t in range(9):\n"
        "        for i in range(4):\n"
        "            P[t + 1, i] = A[t, i] * float32(2.0)\n"
        "    for t in range(9):\n"
        "        for i in range(4):\n"
        "            C[t, i] = P[t + 1, i] + float32(1.0)"
    )


def scanned(first: te.Tensor) -> te.Tensor:
    """Build a scan whose steps read a stage from the second row on."""
    state = te.placeholder((10, 4), name="state")
    init = te.compute((1, 4), lambda t, i: 0.0, name="init")
    update = te.compute((10, 4), lambda t, i: state[t - 1, i] + first[t, i], name="update")
    result: te.Tensor = te.scan(init, update, state, name="S")
    return result


STEPS = np.concatenate([np.zeros((1, 4), "float32"), (DATA * 2 + 1).cumsum(0)])


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("decide", [lambda s: None, vectors, split, inlined])
def test_before_a_scan(agrees: Any, decide: Callable[[Any], None]) -> None:
    S = scanned(Q)
    s = te.create_schedule(S)
    if decide is vectors:
        s[P].vectorize(P.op.axis[1])
    else:
        decide(s)

    agrees(s, [A, S], {A: DATA, S: STEPS}, rtol=1e-5)


def test_reductions_before_a_scan(agrees: Any) -> None:
    k = te.reduce_axis((0, 4), name="k")
    R = te.compute((10, 4), lambda t, i: te.sum(A[t - 1, k], axis=k), name="R")
    S = scanned(R)
    s = te.create_schedule(S)
    s[R].split(k, factor=3)
    sums = np.repeat(DATA.sum(1), 4).reshape(9, 4)

    agrees(s, [A, S], {A: DATA, S: np.concatenate([np.zeros((1, 4), "float32"), sums.cumsum(0)])},
           rtol=1e-5)


def test_programs_and_open_sizes() -> None:
    S = scanned(Q)
    assert_close(tecomp.compile([S], [A])(DATA), STEPS, rtol=1e-5)

    n = te.var("n")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n + 1,), lambda i: X[i - 1] * 2.0, name="Y")
    Z = te.compute((n,), lambda i: Y[i + 1], name="Z")
    x, out = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    tecomp.build(te.create_schedule(Z), [X, Z], check_bounds=True)(x, out)
    np.testing.assert_array_equal(out, 2 * x)


OUTSIDE = (
    Diagnostic(
        "out-of-bounds-read", stage="P", load="A[t - 1, i]", tensor="A", shape="9, 4", axis=0,
        index="t - 1", value=-1, point=" at t = 0, i = 0",
    )
)


@pytest.mark.parametrize("inputs", [[A, P, C], [A, C]])
def test_needed_elements_are_read(inputs: list[te.Tensor]) -> None:
    """All elements of an argument, and of a stage that is read completely, are computed."""
    last = C if P in inputs else te.compute((10, 4), lambda t, i: Q[t, i], name="D")
    with pytest.raises(tecomp.LowerError) as error:
        tecomp.lower(te.create_schedule(last), [*inputs[:-1], last])
    assert diagnostic(error.value) == OUTSIDE


@pytest.mark.parametrize("decide", [lambda s, k: None, lambda s, k: s[s.outputs[0]].split(k, 2)])
@pytest.mark.parametrize("is_open", [False, True])
def test_reductions_that_need_a_part(agrees: Any, is_open: bool, decide: Callable[..., Any]) -> None:
    """Windows of a shifted stage: no window reads the elements after the last window."""
    n = te.var("n") if is_open else 10
    X = te.placeholder((n,), name="X")
    shifted = te.compute((n,), lambda i: X[i + 2] * 2.0, name="shifted")
    k = te.reduce_axis((-1, 2), name="k")
    W = te.compute((n - 4,), lambda i: te.sum(shifted[i + k + 1], axis=k), name="W")
    s = te.create_schedule(W)
    decide(s, k)
    x = np.arange(10, dtype=np.float32)

    agrees(s, [X, W], {X: x, W: 2 * (x[2:-2] + x[3:-1] + x[4:])})


def test_reductions_that_read_outside() -> None:
    X, k = te.placeholder((10,), name="X"), te.reduce_axis((0, 3), name="k")
    shifted = te.compute((10,), lambda i: X[i + 2], name="shifted")
    W = te.compute((8,), lambda i: te.sum(shifted[i + k], axis=k), name="W")

    with pytest.raises(LowerError) as refused:
        tecomp.lower(te.create_schedule(W), [X, W])

    assert diagnostic(refused.value) == (
        Diagnostic(
            "out-of-bounds-read", stage="shifted", load="X[i + 2]", tensor="X", shape="10", axis=0,
            index="i + 2", value=10, point=" at i = 8",
        )
    )
