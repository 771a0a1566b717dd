"""Stages attached to fused loops: factors that do not divide the extents, and tails."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.numerics import assert_close


def blocks(shape: tuple[int, int, int], size: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build differences of adjacent elements of a stage that is computed per block of a row."""
    a, b, n = shape
    A = te.placeholder((a, b, n + 1), name="A")
    D = te.compute((a, b, n + 1), lambda *x: A(*x) * 2.0, name="D")
    C = te.compute(shape, lambda i, j, k: D[i, j, k + 1] - D[i, j, k], name="C")
    s = te.create_schedule(C)
    block, _ = s[C].split(C.op.axis[2], factor=size)
    block = s[C].fuse(*C.op.axis[:2], block)
    s[C].parallel(block)
    s[D].compute_at(s[C], block)
    return s, [A, C]


@pytest.mark.parametrize("shape", [(2, 3, 14), (1, 1, 5), (3, 1, 9), (2, 5, 3), (1, 7, 8)])
def test_parts_of_any_extent(shape: tuple[int, int, int]) -> None:
    s, args = blocks(shape, 4)
    a, c = np.random.default_rng(0).standard_normal((*shape[:2], shape[2] + 1)), np.zeros(shape)
    a, c = a.astype(np.float32), c.astype(np.float32)
    tecomp.build(s, args, check_bounds=True)(a, c)

    assert_close(c, 2 * np.diff(a), rtol=1e-5, atol=1e-5)


def test_footprint_within_fused_loops() -> None:
    s, args = blocks((2, 3, 14), 4)
    text = str(tecomp.lower(s, args, stop_after="nest"))

    fused = "i_j_fused_k_outer_fused"
    assert f"for {fused} in parallel(24):" in text
    assert f"for i2 in range(min(5, 15 - {fused} % 4 * 4)):" in text
    assert f"D[{fused} // 12, {fused} // 4 % 3, {fused} % 4 * 4 + i2] = " in text


def test_a_loop_of_one_round_is_no_loop() -> None:
    s, args = blocks((1, 1, 3), 4)

    assert "parallel" not in str(tecomp.lower(s, args))


@pytest.mark.parametrize("rows", [8, 5, 3, 1, 0])
def test_a_part_that_is_not_needed_in_the_last_rounds_is_not_computed_there(rows: int) -> None:
    n = te.var("n")
    A = te.placeholder((n, n + n), "int32", name="A")
    C = te.compute(
        ((n + 3) // 4 * 4, n), lambda i, j: te.if_then_else(i + 1 < n, A[i + 1, j + 1], 0), name="C"
    )
    s = te.create_schedule(C)
    cached = s.cache_read(A, "local", [C])
    s[cached].compute_at(s[C], C.op.axis[0])
    s[cached].fuse(*s[cached].op.axis)
    a = np.random.default_rng(0).integers(-100, 100, (rows, 2 * rows), np.int32)
    c = np.zeros(((rows + 3) // 4 * 4, rows), np.int32)

    tecomp.build(s, [n, A, C], check_bounds=True)(rows, a, c)

    expected = np.zeros_like(c)
    expected[: max(rows - 1, 0)] = a[1:, 1 : rows + 1]
    np.testing.assert_array_equal(c, expected)


def test_axes_of_extent_1_do_not_constrain_fused_axes() -> None:
    """In loops fused over a plane of one row, the step of a cached scan is known."""
    n = te.var("n")
    state = te.placeholder((n,), name="state")
    start = te.compute((2,), lambda t: te.cast(t + 1, "float32"), name="start")
    step = te.compute((n,), lambda t: state[t - 2] * 2.0, name="step")
    S = te.scan(start, step, state, name="S")
    s = te.create_schedule(S.op)
    s[step].fuse(*s[step].transform_layout(lambda t: [0, te.AXIS_SEPARATOR, t]))
    s[step].set_scope("global.texture")
    cached = s.cache_write(step, "global")
    (t,) = S.op.axis
    s[step].compute_at(s[S], t)
    s[cached].compute_at(s[S], t)
    kernel = tecomp.build(s, [n, S])

    assert "%" not in str(kernel.lowered.final)
    for size in (1, 2, 3, 10):
        found = np.zeros(size, np.float32)
        kernel(size, found)
        np.testing.assert_array_equal(found, [(t % 2 + 1) * 2.0 ** (t // 2) for t in range(size)])
