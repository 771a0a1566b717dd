"""The steps of TVM's tutorial "How to optimize GEMM on CPU", written as in the tutorial."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tecomp import te
from tecomp.driver import ScheduledKernel

Agrees = Callable[..., ScheduledKernel]
M, K, N = 12, 12, 32
BLOCK = 8


def declare() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    k = te.reduce_axis((0, K), "k")
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    return A, B, C


def check(
    agrees: Agrees, s: te.Schedule, A: te.Tensor, B: te.Tensor, C: te.Tensor
) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((M, K)).astype("float32")
    b = random.standard_normal((K, N)).astype("float32")
    agrees(s, [A, B, C], {A: a, B: b, C: a @ b}, rtol=1e-5)


def test_baseline(agrees: Agrees) -> None:
    A, B, C = declare()
    check(agrees, te.create_schedule(C.op), A, B, C)


def test_blocking_vectorization_and_loop_permutation(agrees: Agrees) -> None:
    A, B, C = declare()
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    (kaxis,) = s[C].op.reduce_axis
    ko, ki = s[C].split(kaxis, factor=4)
    s[C].reorder(mo, no, ko, mi, ki, ni)
    s[C].vectorize(ni)

    check(agrees, s, A, B, C)


def test_array_packing_by_a_stage(agrees: Agrees) -> None:
    """As in the tutorial, packing is a stage of its own, and the computation reads that stage."""
    bn = BLOCK
    A, B, _ = declare()
    k = te.reduce_axis((0, K), "k")
    packedB = te.compute(
        (N // bn, K, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB"
    )
    C = te.compute(
        (M, N),
        lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, te.indexmod(n, bn)], axis=k),
        name="C",
    )
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)

    check(agrees, s, A, B, C)


def test_array_packing_by_a_layout(agrees: Agrees) -> None:
    """Packing by a layout leaves the computation unchanged."""
    bn = BLOCK
    A, B, C = declare()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    packedB = s.cache_read(B, "global", [CC])
    bigN, _, littleN = s[packedB].transform_layout(lambda k, n: [n // bn, k, n % bn])
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    mo, no, _, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 4, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, ki, mc, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(mc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    s[C].vectorize(ni)

    check(agrees, s, A, B, C)
