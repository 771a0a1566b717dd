"""Reduction conditions that are ranges become loop bounds."""

from __future__ import annotations

import numpy as np

import tecomp
from tecomp import te
from tests.numerics import assert_close


def test_a_triangular_reduction_ends_at_the_diagonal() -> None:
    A = te.placeholder((5, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k, where=k <= i), name="B")
    s = te.create_schedule(B)

    assert str(tecomp.lower(s, [A, B])) == '''\
def main(A: Buffer("float32", (25,)), B: Buffer("float32", (5,))):
    for i in range(5):
        B[i] = float32(0.0)
        for k in range(i + 1):
            B[i] = B[i] + A[i * 5 + k]'''
    a, b = np.random.default_rng(0).random((5, 5), np.float32), np.empty(5, np.float32)
    tecomp.build(s, [A, B])(a, b)
    assert_close(b, np.tril(a).sum(1), rtol=1e-6)


def test_partial_sums_end_where_the_sum_does() -> None:
    A = te.placeholder((40,), name="A")
    k = te.reduce_axis((0, 40), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B)
    outer, _ = s[B].split(s[B].op.reduce_axis[0], factor=16)
    s.rfactor(B, outer)

    text = str(tecomp.lower(s, [A, B]))

    assert "range(min(16, 40 - k_outer * 16))" in text
    assert "if " not in text


def test_a_condition_of_several_pieces_is_tested_in_the_loop() -> None:
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k, where=k != 3), name="B")
    s = te.create_schedule(B)

    text = str(tecomp.lower(s, [A, B]))

    assert "for k in range(8)" in text
    assert "if k != 3" in text
    b = np.empty((), np.float32)
    tecomp.build(s, [A, B])(np.arange(8, dtype=np.float32), b)
    assert b == 25


def test_symbolic_loop_bounds_need_no_guard() -> None:
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k, where=k % 7 < n // 3), name="B")
    s = te.create_schedule(B)
    _, inner = s[B].split(s[B].op.reduce_axis[0], factor=16)
    parts = s.rfactor(B, inner)
    assert isinstance(parts, te.Tensor)
    s[parts].vectorize(s[parts].op.axis[0])

    nest = str(tecomp.lower(s, [A, B], stop_after="nest"))

    assert "< n" not in nest
    kernel = tecomp.build(s, [A, B])
    for size in (0, 1, 15, 16, 17, 40):
        a, b = np.arange(size, dtype=np.float32), np.empty((), np.float32)
        kernel(a, b)
        assert b == a[np.arange(size) % 7 < size // 3].sum()
