"""Primitives preserve results at extents that factors do not divide: nest and native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.ir import evaluate
from tecomp.scheduling.schedule import Schedule

SIZES = (1, 2, 3, 7, 127, 1000, 1023)
COMPILED = (1, 7, 127, 1000, 1023)
INTERPRETED = (1, 2, 3, 7, 127)
ROWS = 3

Decide = Callable[[Schedule, Tensor, Tensor, Tensor], object]


def split_factor(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].split(C.op.axis[1], factor=32)


def split_nparts(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].split(C.op.axis[1], nparts=5)
    s[P].split(P.op.axis[1], nparts=4)


def split_twice(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, inner = s[C].split(C.op.axis[1], factor=16)
    s[C].split(outer, factor=3)
    s[C].split(inner, nparts=3)


def split_too_far(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].split(C.op.axis[1], factor=5000)
    s[P].split(P.op.axis[1], nparts=5000)


def tile(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    i, j = C.op.axis
    s[C].tile(i, j, 2, 5)


def fuse(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].fuse(*C.op.axis)


def fuse_and_split(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, _ = s[C].split(s[C].fuse(*C.op.axis), factor=8)
    s[P].compute_at(s[C], outer)


def fuse_of_split(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    i, j = C.op.axis
    outer, _ = s[C].split(j, factor=10)
    fused = s[C].fuse(i, outer)
    s[P].compute_at(s[C], fused)


def reorder(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    i, j = C.op.axis
    outer, inner = s[C].split(j, factor=4)
    s[C].reorder(inner, i, outer)


def vectorize(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    _, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].vectorize(inner)
    s[P].vectorize(P.op.axis[0])


def unroll(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, inner = s[C].split(C.op.axis[1], factor=4)
    s[C].unroll(inner)
    s[P].compute_at(s[C], outer)
    s[P].unroll(P.op.axis[1])


def parallel(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, _ = s[C].split(C.op.axis[1], factor=100)
    s[C].reorder(outer, C.op.axis[0])
    s[C].parallel(outer)
    s[P].compute_at(s[C], outer)


def bind(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, inner = s[C].split(C.op.axis[1], factor=6)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))


def compute_at(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, _ = s[C].split(C.op.axis[1], factor=9)
    s[P].compute_at(s[C], outer)
    s[P].split(P.op.axis[1], factor=4)


def inline(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[P].compute_inline()
    s[C].split(C.op.axis[1], factor=9)


def compute_root(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].compute_root()


def scope(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[P].set_scope("local")
    s[P].storage_align(P.op.axis[0], 8, 1)


def cache_read(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    AA = s.cache_read(A, "local", [P])
    outer, _ = s[P].split(P.op.axis[1], factor=16)
    s[AA].compute_at(s[P], outer)


def cache_write(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    CC = s.cache_write(C, "local")
    outer, _ = s[C].split(C.op.axis[1], factor=16)
    s[CC].compute_at(s[C], outer)
    s[P].compute_at(s[CC], CC.op.axis[0])


def cache_write_in_tiles(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    i, j = C.op.axis
    s[C].tile(i, j, 2, 16)
    CC = s.cache_write(C, "local")
    outer, _ = s[C].split(j, nparts=5)
    s[CC].compute_at(s[C], outer)


def layout(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[A].transform_layout(lambda i, j: [j // 4, i, te.AXIS_SEPARATOR, j % 4])
    s[A].set_scope("global.texture")
    _, _, inner = s[C].transform_layout(lambda i, j: [j // 8, i, j % 8], pad_value=0.0)
    s[C].vectorize(inner)


def layout_twice(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].transform_layout(lambda i, j: [j, i])
    outer, *_ = s[C].transform_layout(lambda j, i: [j // 4, i, j % 4])
    s[P].compute_at(s[C], outer)
    s[P].transform_layout(lambda i, j: [j, i])


def layout_keeps_loops(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].split(C.op.axis[1], factor=4)
    s[C].transform_layout(lambda i, j: [j, i], loops="logical")


ELEMENTWISE: tuple[Decide, ...] = (
    split_factor, split_nparts, split_twice, split_too_far, tile, fuse, fuse_and_split,
    fuse_of_split, reorder, vectorize, unroll, parallel, bind, compute_at, inline, compute_root,
    scope, cache_read, cache_write, cache_write_in_tiles, layout, layout_twice, layout_keeps_loops,
)


def compiled(s: Schedule, A: Tensor, C: Tensor, a: NDArray[Any]) -> NDArray[Any]:
    kernel = tecomp.build(s, [A, C])
    stored = kernel.empty(C)
    kernel(kernel.pack(A, a), stored)
    return kernel.unpack(C, stored)


@pytest.mark.exhaustive(keep=14)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("decide", ELEMENTWISE, ids=lambda f: f.__name__)
def test_elementwise(decide: Decide, size: int, nest: Any) -> None:
    A = te.placeholder((ROWS, size), name="A")
    P = te.compute((ROWS, size), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((ROWS, size), lambda i, j: P[i, j] + P[i, 0], name="C")
    s = te.create_schedule(C)
    decide(s, A, P, C)
    a = np.arange(ROWS * size, dtype=np.float32).reshape(ROWS, size)
    c = np.full((ROWS, size), np.nan, np.float32)
    expected = a * 2 + a[:, :1] * 2

    func = nest(s, [A, C])

    if size in INTERPRETED:
        evaluate(func, [a, c])
        np.testing.assert_array_equal(c, expected)
    if size in COMPILED:
        np.testing.assert_array_equal(compiled(s, A, C, a), expected)


def split_reduction(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, inner = s[C].split(s[C].op.reduce_axis[0], factor=16)
    s[C].reorder(outer, C.op.axis[0], inner)


def unroll_reduction(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    _, inner = s[C].split(s[C].op.reduce_axis[0], factor=4)
    s[C].unroll(inner)


def reduction_nparts(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, _ = s[C].split(s[C].op.reduce_axis[0], nparts=6)
    s[P].compute_at(s[C], outer)


def reduction_outermost(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s[C].reorder(s[C].op.reduce_axis[0], C.op.axis[0])
    s[P].compute_at(s[C], s[C].op.reduce_axis[0])


def fuse_data_and_reduction(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    fused = s[C].fuse(C.op.axis[0], s[C].op.reduce_axis[0])
    outer, _ = s[C].split(fused, factor=10)
    s[P].compute_at(s[C], outer)


def producer_inside(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, inner = s[C].split(s[C].op.reduce_axis[0], factor=10)
    s[P].compute_at(s[C], inner)
    s[C].unroll(outer)


def cached_reduction(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    CC = s.cache_write(C, "local")
    s[CC].compute_at(s[C], C.op.axis[0])
    outer, _ = s[CC].split(s[CC].op.reduce_axis[0], factor=8)
    s[P].compute_at(s[CC], outer)


def rfactor_outer(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    outer, _ = s[C].split(s[C].op.reduce_axis[0], factor=16)
    CF = s.rfactor(C, outer)
    assert isinstance(CF, Tensor)
    s[CF].parallel(s[CF].op.axis[0])


def rfactor_inner(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    _, inner = s[C].split(s[C].op.reduce_axis[0], factor=16)
    CF = s.rfactor(C, inner, factor_axis=1)
    assert isinstance(CF, Tensor)
    s[CF].compute_at(s[C], C.op.axis[0])
    s[CF].vectorize(s[CF].op.axis[1])


def rfactor_whole(s: Schedule, A: Tensor, P: Tensor, C: Tensor) -> None:
    s.rfactor(C, s[C].op.reduce_axis[0], factor_axis=-1)


REDUCTIONS: tuple[Decide, ...] = (
    split_reduction, unroll_reduction, reduction_nparts, reduction_outermost,
    fuse_data_and_reduction, producer_inside, cached_reduction, rfactor_outer, rfactor_inner,
    rfactor_whole,
)


@pytest.mark.exhaustive(keep=11)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("decide", REDUCTIONS, ids=lambda f: f.__name__)
def test_sum_of_many(decide: Decide, size: int, nest: Any) -> None:
    A = te.placeholder((ROWS, size), name="A")
    P = te.compute((ROWS, size), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, size), name="k")
    C = te.compute((ROWS,), lambda i: te.sum(P[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    decide(s, A, P, C)
    a = np.arange(ROWS * size, dtype=np.float32).reshape(ROWS, size)
    c = np.full(ROWS, np.nan, np.float32)
    expected = a.sum(1) * 2

    func = nest(s, [A, C])

    if size in INTERPRETED:
        evaluate(func, [a, c])
        np.testing.assert_array_equal(c, expected)
    if size in COMPILED:
        np.testing.assert_array_equal(compiled(s, A, C, a), expected)


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("decide", REDUCTIONS, ids=lambda f: f.__name__)
def test_many_sums(decide: Decide, size: int, nest: Any) -> None:
    A = te.placeholder((size, ROWS), name="A")
    P = te.compute((size, ROWS), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, ROWS), name="k")
    C = te.compute((size,), lambda i: te.sum(P[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    decide(s, A, P, C)
    a = np.arange(ROWS * size, dtype=np.float32).reshape(size, ROWS)
    c = np.full(size, np.nan, np.float32)
    expected = a.sum(1) * 2

    func = nest(s, [A, C])

    if size in INTERPRETED:
        evaluate(func, [a, c])
        np.testing.assert_array_equal(c, expected)
    if size in COMPILED:
        np.testing.assert_array_equal(compiled(s, A, C, a), expected)
