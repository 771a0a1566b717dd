"""Stages in layouts with non-affine loop indices, computed for a part of their elements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.strategies.pairwise import pairwise

Agrees = Callable[..., Any]
MAPS: dict[str, Any] = {
    "rows exchanged": lambda i, j: [i ^ (j % 4), j],
    "columns exchanged": lambda i, j: [i, j ^ (i % 4)],
    "in blocks": lambda i, j: [j // 2, i ^ (j % 2), j % 2],
    "around and exchanged": lambda i, j: [(i + 3) % 8, j ^ (i % 2)],
}


@pytest.mark.exhaustive(keep=4)
@pairwise(
    layout=list(MAPS), shape=[(8, 1), (8, 3), (6, 5), (1, 4)], kind=["plain", "sum", "window"],
    position=[0, 1],
)
def test_a_part_is_computed_and_no_more(
    agrees: Agrees, layout: str, shape: tuple[int, int], position: int, kind: str
) -> None:
    """Memory covers only the part; elements between its addresses must not be stored."""
    rows, columns = shape
    A = te.placeholder((rows, columns), "int32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    a = np.arange(rows * columns, dtype=np.int32).reshape(shape)
    if kind == "sum":
        P = te.compute(shape, lambda i, j: te.sum(A[i, j] * (k + 1), axis=k), name="P")
    else:
        P = te.compute(shape, lambda i, j: A[i, j] * 6, name="P")
    p, last = a * 6, rows - 1
    if kind == "window":
        C = te.compute(shape, lambda i, j: P[i, j] + P[te.min(i + 1, last), j], name="C")
        c = p + p[np.minimum(np.arange(rows) + 1, last)]
    else:
        C, c = te.compute(shape, lambda i, j: P[i, j] + 1, name="C"), p + 1
    s = te.create_schedule(C)
    s[P].transform_layout(MAPS[layout])
    s[P].compute_at(s[C], C.op.axis[position])
    s[C].parallel(C.op.axis[0])

    agrees(s, [A, C], {A: a, C: c})


def test_loops_that_isl_would_take_minutes_for_are_boxes() -> None:
    """Two physical indices of an element and a reduction are fused into one loop and split by 3."""
    A = te.placeholder((5, 17), "int32", name="A")
    k = te.reduce_axis((0, 2), name="k")
    T = te.compute((5, 17), lambda i, j: te.sum(A[i, j] * (k + 1), axis=k), name="T")
    s = te.create_schedule(T)
    x, y = s[T].transform_layout(lambda i, j: [i * 17 + j, i * 17 + j])
    s[T].split(s[T].fuse(x, y, k), factor=3)
    begin = time.thread_time()

    kernel = tecomp.build(s, [A, T])

    assert time.thread_time() - begin < 10
    a, t = np.arange(85, dtype=np.int32).reshape(5, 17), np.zeros((85, 85), np.int32)
    kernel(a, t)
    np.testing.assert_array_equal(np.diag(t).reshape(5, 17), a * 3)
