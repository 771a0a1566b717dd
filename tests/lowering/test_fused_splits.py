"""Fused axes split by factors that do not divide: correct results in few isl steps."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.ir import evaluate
from tecomp.lowering import lower_all
from tecomp.poly import isl_work

# The budget is a few times the required number of steps.
STEPS = 1_000_000


def stencil(shape: tuple[int, ...]) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Build the sum of each point of a computed tensor and its next neighbour along every axis."""
    padded = tuple(extent + 1 for extent in shape)
    A = te.placeholder(padded, name="A")
    B = te.compute(padded, lambda *i: A(*i) * 2.0, name="B")

    def near(*axes: te.Expr) -> te.Expr:
        total = B(*axes)
        for k in range(len(axes)):
            total = total + B(*(axis + int(n == k) for n, axis in enumerate(axes)))
        return te.cast(total, "float32")

    return A, B, te.compute(shape, near, name="C")


def wanted(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Compute the stencil with NumPy."""
    inner = tuple(slice(0, n - 1) for n in a.shape)
    total = a[inner] * 2
    for k in range(a.ndim):
        moved = tuple(slice(int(n == k), size - 1 + (n == k)) for n, size in enumerate(a.shape))
        total = total + a[moved] * 2
    return total


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("attached", [False, True])
@pytest.mark.parametrize("factors", [(7,), (7, 3), (64, 5)])
@pytest.mark.parametrize("shape", [(37, 53), (5, 11, 13), (1, 37, 53), (1, 1, 1)])
def test_fused_and_split(shape: tuple[int, ...], factors: tuple[int, ...], attached: bool) -> None:
    A, B, C = stencil(shape)
    s = te.create_schedule(C)
    inner = s[C].fuse(*s[C].op.axis)
    loops = []
    for factor in factors:
        outer, inner = s[C].split(inner, factor=factor)
        loops.append(outer)
    s[C].vectorize(inner)
    if attached:
        s[B].compute_at(s[C], loops[0])
    with isl_work("test", budget=STEPS):
        lowered = lower_all(s, [A, C])
    size = [extent + 1 for extent in shape]
    a = np.arange(prod(size), dtype=np.float32).reshape(size)
    c = np.full(shape, np.nan, np.float32)
    evaluate(lowered.functions["nest"], [a, c])
    np.testing.assert_array_equal(c, wanted(a))
    repeated = np.full(shape, np.nan, np.float32)
    flat = repeated.reshape(-1)
    evaluate(lowered.final, [a.reshape(-1), flat])
    np.testing.assert_array_equal(repeated, wanted(a))


@pytest.mark.parametrize("factors", [(7,), (7, 3), (64, 3)])
def test_three_axes_take_few_steps(factors: tuple[int, ...]) -> None:
    A, _, C = stencil((5, 37, 53))
    s = te.create_schedule(C)
    inner = s[C].fuse(*s[C].op.axis)
    for factor in factors:
        _, inner = s[C].split(inner, factor=factor)
    # Nested quotients would take more than a hundred times as many steps.
    with isl_work("test", budget=100_000):
        func = lower_all(s, [A, C], stop_after="nest").final
    assert "C[" in str(func)


def test_parts_of_splits_are_fused() -> None:
    A, _, C = stencil((10, 21))
    s = te.create_schedule(C)
    i, j = s[C].op.axis
    io, ii = s[C].split(i, factor=4)
    fused, last = s[C].split(s[C].fuse(ii, j), factor=6)
    s[C].reorder(fused, io, last)
    with isl_work("test", budget=STEPS):
        func = lower_all(s, [A, C], stop_after="nest").functions["nest"]
    a = np.arange(11 * 22, dtype=np.float32).reshape(11, 22)
    c = np.full((10, 21), np.nan, np.float32)
    evaluate(func, [a, c])
    np.testing.assert_array_equal(c, wanted(a))


def test_tiles_around_the_loop_that_walks() -> None:
    """The parts of the inner loop, except the vector lanes, are outside of the loop over tiles."""
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    outer, inner = s[B].split(s[B].fuse(*s[B].op.axis), factor=16)
    four, _, lanes, _ = s[B].tile(inner, outer, 4, 1)
    s[B].split(four, factor=3)
    s[B].vectorize(lanes)
    final = lower_all(s, [n, A, B]).final
    for size in (1, 4, 5, 9):
        a = np.arange(size * size, dtype=np.float32)
        b = np.full(size * size, np.nan, np.float32)
        evaluate(final, [size, a, b])
        np.testing.assert_array_equal(b, a + 1)
