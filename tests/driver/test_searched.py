"""Reduced programs that the search of `tests/search.py` found, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import te

Agrees = Callable[..., Any]

n, m = te.var("n"), te.var("m")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-4, 5, shape).astype("int32")


Split = Callable[[te.Stage, te.IterVar], te.IterVar]


def split_of_parts(stage: te.Stage, axis: te.IterVar) -> te.IterVar:
    _, inner = stage.split(axis, nparts=3)
    outer, _ = stage.split(inner, factor=5)
    return outer


def more_parts_than_rounds(stage: te.Stage, axis: te.IterVar) -> te.IterVar:
    _, inner = stage.split(axis, factor=3)
    _, inner = stage.split(inner, factor=2)
    outer, _ = stage.split(inner, nparts=16)
    return outer


@pytest.mark.parametrize("split", [split_of_parts, more_parts_than_rounds])
@pytest.mark.parametrize("extent", [17, n])
def test_partial_results_end_where_a_loop_that_was_split_twice_does(
    agrees: Agrees, split: Split, extent: Any
) -> None:
    k = te.reduce_axis((0, extent), name="k")
    A = te.placeholder((extent,), "int32", name="A")
    B = te.compute((3,), lambda i: te.sum(A[k] * i, axis=k), name="B")
    s = te.create_schedule(B.op)

    s.rfactor(B, split(s[B], k))

    a = numbers(17)
    agrees(s, [A, B], {A: a, B: np.arange(3, dtype="int32") * a.sum(dtype="int32")})


@pytest.mark.parametrize("steps", [1, 3])
def test_a_scan_without_further_steps_stores_the_first_ones(agrees: Agrees, steps: int) -> None:
    A = te.placeholder((4,), "int32", name="A")
    state = te.placeholder((steps, 7, 4), "int32", name="state")
    first = te.compute((1, 7, 4), lambda t, i, j: A[j], name="first")
    rule = te.compute((steps, 7, 4), lambda t, i, j: state[t - 1, i, j] + i, name="rule")
    S = te.scan(first, rule, state, name="S")
    s = te.create_schedule(S.op)
    _, i, j = s[S].op.axis

    outer, inner = s[S].split(i, factor=5)
    s[S].fuse(outer, inner, j)

    a = numbers(4)
    grid = np.indices((steps, 7, 4), dtype="int32")
    agrees(s, [A, S], {A: a, S: a[grid[2]] + grid[0] * grid[1]})


def test_a_loop_of_nothing_is_fused_with_a_reduction(agrees: Agrees) -> None:
    k = te.reduce_axis((0, 5), name="k")
    A = te.placeholder((5,), "int32", name="A")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    C = te.compute((n,), lambda i: B[()] + i, name="C")
    s = te.create_schedule(C.op)

    one = s[B].fuse()
    _, inner = s[B].split(k, factor=1)
    *_, one, inner = s[B].tile(one, inner, 4, 2)
    s[B].fuse(one, inner)

    a = numbers(5)
    agrees(s, [A, C], {A: a, C: a.sum(dtype="int32") + np.arange(6, dtype="int32")})


def test_a_layout_of_an_extent_that_is_no_affine_function_of_sizes(agrees: Agrees) -> None:
    A = te.placeholder((n * n, 2), "int32", name="A")
    B = te.compute((n * n, 2), lambda i, j: A[i, j] + 1, name="B")
    s = te.create_schedule(B.op)

    C = s.cache_write(B, "global")
    s[C].transform_layout(lambda i, j: [(i + j) // 3 * 3 + (i + j) % 3, j], pad_value=7)

    a = numbers(9, 2)
    agrees(s, [n, A, B], {n: 3, A: a, B: a + 1})


def test_a_layout_of_a_window_of_as_many_elements_as_a_size(agrees: Agrees) -> None:
    A = te.placeholder((m + n,), "int32", name="A")
    B = te.compute((m, n + 1), lambda i, j: A[i + j], name="B")
    s = te.create_schedule(B.op)

    C = s.cache_read(A, "local", [B])
    s[C].compute_at(s[B], B.op.axis[0])
    s[C].transform_layout(lambda i: [i % 2, i // 2 + 3])

    a = numbers(9)
    agrees(s, [n, m, A, B], {n: 4, m: 5, A: a, B: a[np.add.outer(np.arange(5), np.arange(5))]})


def test_empty_loops_fuse_with_symbolic_extents(agrees: Agrees) -> None:
    k = te.reduce_axis((0, n), name="k")
    A = te.placeholder((3, n), "int32", name="A")
    B = te.compute((3, 0), lambda i, j: te.sum(A[i, k] + j, axis=k), name="B")
    s = te.create_schedule(B.op)
    i, j = s[B].op.axis

    s[B].fuse(s[B].fuse(i, j), k)

    agrees(s, [n, A, B], {n: 4, A: numbers(3, 4), B: np.zeros((3, 0), "int32")})


def test_a_layout_inside_of_a_loop_over_rows_and_blocks_of_them(agrees: Agrees) -> None:
    A = te.placeholder((m, n, 3), "int32", name="A")
    B = te.compute((m, n, 3), lambda i, j, k: A[i, j, k] + 1, name="B")
    s = te.create_schedule(B.op)
    i, j, _ = B.op.axis

    outer, _ = s[B].split(j, factor=4)
    C = s.cache_read(A, "local", [B])
    s[C].compute_at(s[B], s[B].fuse(i, outer))
    s[C].transform_layout(lambda i, j, k: [i, k, j])

    a = numbers(5, 6, 3)
    agrees(s, [m, n, A, B], {m: 5, n: 6, A: a, B: a + 1})


@pytest.mark.parametrize("size", [0, 1, 5])
def test_fused_loops_with_conditional_extents_have_no_extra_iterations(
    agrees: Agrees, size: int
) -> None:
    rest = te.max(n - 2, 0)
    A = te.placeholder((7 + rest,), "int32", name="A")
    B = te.compute((5, n), lambda i, j: i + j, name="B")
    C = te.compute((rest,), lambda i: A[i], name="C")
    s = te.create_schedule([B.op, C.op])

    s[B].fuse(*B.op.axis)

    left = max(size - 2, 0)
    a, grid = numbers(7 + left), np.indices((5, size), dtype="int32")
    agrees(s, [n, A, B, C], {n: size, A: a, B: grid[0] + grid[1], C: a[:left]})


def test_a_loop_of_nothing_is_fused_with_one_of_a_size(agrees: Agrees) -> None:
    A = te.placeholder((n, m), "int32", name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis

    s[B].fuse(s[B].fuse(), i, j)

    a = numbers(5, 6)
    agrees(s, [n, m, A, B], {n: 5, m: 6, A: a, B: a + 1})


@pytest.mark.parametrize("where", ["i // 2 > j % 2", "i >= 0", "j > 2"])
@pytest.mark.parametrize("count", [0, 3])
def test_empty_reductions_give_the_initial_value(
    agrees: Agrees, where: str, count: int
) -> None:
    k = te.reduce_axis((0, count), name="k")
    A = te.placeholder((n,), "int32", name="A")
    T = te.compute((n,), lambda i: A[i] + 1, name="T")
    B = te.compute((2, n), lambda i, j: te.max(
        T[j] * 2 + k, axis=k, where=eval(where, {"i": i, "j": j}), init=T[j]), name="B")
    s = te.create_schedule(B.op)

    s[T].compute_at(s[B], B.op.axis[0])

    a = numbers(6)
    i, j = np.indices((2, 6), dtype="int32")
    reduced = np.where(eval(where, {"i": i, "j": j}) & (count > 0), (a[j] + 1) * 2 + count - 1, -100)
    agrees(s, [A, B], {A: a, B: np.maximum(a[j] + 1, reduced).astype("int32")}, check_bounds=True)
