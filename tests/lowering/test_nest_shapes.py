"""Unusual shapes and accesses: extent 0, rank 0, symbolic sizes, several outputs, inlining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import IterVar, Tensor
from tecomp.errors import LowerError
from tecomp.ir import simplify
from tecomp.lowering import flatten_buffer
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (3, 0, 5)])
@pytest.mark.parametrize("schedule", ["plain", "split", "fuse", "inside", "inline", "layout"])
def test_axes_of_extent_0(shape: tuple[int, ...], schedule: str, run: Any) -> None:
    A = te.placeholder(shape, name="A")
    P = te.compute(shape, lambda *i: A(*i) * 2.0, name="P")
    C = te.compute(shape, lambda *i: P(*i) + 1.0, name="C")
    s = te.create_schedule(C)
    if schedule == "split":
        for axis in C.op.axis:
            s[C].split(axis, factor=3)
    elif schedule == "fuse":
        s[C].split(s[C].fuse(*C.op.axis), nparts=2)
    elif schedule == "inside":
        s[P].compute_at(s[C], C.op.axis[-1])
        s[P].vectorize(P.op.axis[0])
    elif schedule == "inline":
        s[P].compute_inline()
    elif schedule == "layout":
        s[C].transform_layout(lambda *i: list(reversed(i)))

    func = run(s, [A, C], np.zeros(shape, np.float32), np.zeros(shape, np.float32))

    assert "C[" not in str(func)


@pytest.mark.parametrize("schedule", ["plain", "single loop", "inline", "inside", "cache"])
def test_tensors_without_axes(schedule: str, run: Any) -> None:
    A = te.placeholder((), name="A")
    P = te.compute((), lambda: A() * 2.0, name="P")
    C = te.compute((), lambda: P() + A(), name="C")
    s = te.create_schedule(C)
    if schedule == "inline":
        s[P].compute_inline()
    elif schedule == "cache":
        AA = s.cache_read(A, "local", [P, C])
        CC = s.cache_write(C, "local")
        assert isinstance(CC, Tensor)
        assert s[CC].op.input_tensors == (P, AA)
    elif schedule != "plain":
        single = s[C].fuse()
        if schedule == "inside":
            s[P].compute_at(s[C], single)
    c = np.full((), np.nan, np.float32)

    run(s, [A, C], np.array(3, np.float32), c)

    assert c == 9


n, m = te.var("n"), te.var("m")
S = te.placeholder((n, m), name="S")


SP = te.compute((n, m), lambda i, j: S[i, j] * 2.0, name="P")
SC = te.compute((n, m), lambda i, j: SP[i, j] + SP[n - 1 - i, j], name="C")
si, sj = SC.op.axis


def fused_and_split(s: Schedule) -> IterVar:
    return s[SC].split(s[SC].fuse(si, sj), factor=4)[0]


def cached(s: Schedule) -> None:
    CC = s.cache_write(SC, "local")
    assert isinstance(CC, Tensor)
    s[CC].compute_at(s[SC], s[SC].split(sj, factor=4)[0])


def cached_in_tiles(s: Schedule) -> None:
    s[SC].tile(si, sj, 2, 3)
    s.cache_write(SC, "local")


SYMBOLIC: dict[str, Callable[[Schedule], object]] = {
    "plain": lambda s: s[SC],
    "split": lambda s: s[SC].split(sj, factor=4),
    "nparts": lambda s: s[SC].split(sj, nparts=3),
    "tile": lambda s: s[SC].tile(si, sj, 2, 3),
    "fuse": lambda s: s[SC].fuse(si, sj),
    "fuse and split": lambda s: s[SC].parallel(fused_and_split(s)),
    "inside": lambda s: s[SP].compute_at(s[SC], si),
    "inside a tile": lambda s: s[SP].compute_at(s[SC], s[SC].tile(si, sj, 2, 3)[1]),
    "inside a fused loop": lambda s: s[SP].compute_at(s[SC], fused_and_split(s)),
    "inline": lambda s: s[SP].compute_inline(),
    "vectorize": lambda s: s[SC].vectorize(s[SC].split(sj, factor=8)[1]),
    "cache": cached,
    "cache of tiles": cached_in_tiles,
    "layout": lambda s: s[SC].transform_layout(lambda i, j: [j // 4, i, j % 4]),
    "symbolic factor": lambda s: s[SC].split(sj, factor=n + 1),
    "factor that may be 0": lambda s: s[SC].split(sj, factor=n // 2),
    "factor that may be less": lambda s: s[SC].split(sj, factor=n - m),
    "parts of which there may be none": lambda s: s[SC].split(sj, nparts=n // 4),
}


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (4, 8), (3, 0), (0, 3), (2, 17)])
@pytest.mark.parametrize("schedule", SYMBOLIC)
def test_symbolic_sizes(schedule: str, shape: tuple[int, int], run: Any) -> None:
    s = te.create_schedule(SC)
    SYMBOLIC[schedule](s)
    a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    c = np.full(shape, np.nan, np.float32)

    run(s, [S, SC], a, c)

    np.testing.assert_array_equal(c, 2 * a + 2 * a[::-1])


@pytest.mark.parametrize("place", [lambda j: j, lambda j: j ^ 0], ids=["affine", "not affine"])
def test_empty_reductions_in_fused_loops(place: Callable[[Any], Any]) -> None:
    A = te.placeholder((3,), name="A")
    none = te.reduce_axis((2, 2), name="none")
    C = te.compute((3, 5), lambda i, j: te.sum(A[none] * 2.0, axis=none), name="C")
    s = te.create_schedule(C)
    _, inner = s[C].transform_layout(lambda i, j: [i, place(j)])
    s[C].split(s[C].fuse(inner, none), factor=3)
    kernel = tecomp.build(s, [A, C])
    c = kernel.empty(C)
    c[...] = np.nan

    kernel(np.ones(3, np.float32), c)

    assert np.array_equal(kernel.unpack(C, c), np.zeros((3, 5), np.float32))


def test_sizes_of_several_tensors_in_one_shape(run: Any) -> None:
    A = te.placeholder((n,), name="A")
    B = te.placeholder((m,), name="B")
    C = te.compute(
        (n + m,), lambda i: te.if_then_else(i < n, A[i], B[i - n]), name="C"
    )
    s = te.create_schedule(C)
    s[C].split(C.op.axis[0], factor=4)
    a, b = np.arange(5, dtype=np.float32), np.arange(50, 56, dtype=np.float32)
    c = np.full(11, np.nan, np.float32)

    run(s, [A, B, C], a, b, c)

    np.testing.assert_array_equal(c, np.concatenate([a, b]))


def test_a_scalar_argument(run: Any) -> None:
    A = te.placeholder((6,), name="A")
    x = te.var("x", "float32")
    C = te.compute((6,), lambda i: A[i] * x, name="C")
    s = te.create_schedule(C)
    a, c = np.arange(6, dtype=np.float32), np.full(6, np.nan, np.float32)

    run(s, [A, x, C], a, 2.5, c)

    np.testing.assert_array_equal(c, a * 2.5)


def test_a_size_as_a_value(run: Any) -> None:
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] / n.astype("float32"), name="C")
    s = te.create_schedule(C)
    a, c = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, a / 4)


def test_a_reduction_over_a_symbolic_size(run: Any) -> None:
    k = te.reduce_axis((0, m), name="k")
    C = te.compute((n,), lambda i: te.sum(S[i, k], axis=k), name="C")
    for shape in ((3, 10), (3, 0), (1, 4)):
        s = te.create_schedule(C)
        outer, _ = s[C].split(k, factor=4)
        CF = s.rfactor(C, outer)
        assert isinstance(CF, Tensor)
        a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        c = np.full(shape[0], np.nan, np.float32)

        run(s, [S, C], a, c)

        np.testing.assert_array_equal(c, a.sum(1))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_chains_of_inlined_stages(length: int, run: Any) -> None:
    A = te.placeholder((9,), name="A")
    stages = [A]
    for step in range(length):
        previous = stages[-1]
        stages.append(
            te.compute(
                (9 - step - 1,), lambda i, p=previous: p[i] + p[i + 1], name=f"S{step}"
            )
        )
    C = stages[-1]
    s = te.create_schedule(C)
    for stage in stages[1:-1]:
        s[stage].compute_inline()
    a = np.arange(9, dtype=np.float32) ** 2
    c = np.full(9 - length, np.nan, np.float32)

    func = run(s, [A, C], a, c)

    expected = a
    for _ in range(length):
        expected = expected[:-1] + expected[1:]
    np.testing.assert_array_equal(c, expected)
    assert "BufferRealize" not in str(func)


def test_a_stage_inlined_into_a_reduction_and_into_a_guard(run: Any) -> None:
    A = te.placeholder((4, 6), name="A")
    P = te.compute(
        (6, 8),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 5, j >= 1, j < 7), A[i - 1, j - 1], 0.0),
        name="P",
    )
    y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 3), name="x")
    C = te.compute((4, 6), lambda i, j: te.max(P[i + y, j + x], axis=[y, x]), name="C")
    s = te.create_schedule(C)
    s[P].compute_inline()
    a = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    c = np.full((4, 6), np.nan, np.float32)

    func = run(s, [A, C], a, c)

    padded = np.pad(a, 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    np.testing.assert_array_equal(c, windows.max((2, 3)))
    assert func.sites == ()


@pytest.mark.parametrize("schedule", ["plain", "fuse", "tile", "cache", "layout", "parallel"])
def test_several_outputs_of_one_stage(schedule: str, run: Any) -> None:
    A = te.placeholder((5, 6), name="A")
    T, U = te.compute((5, 6), lambda i, j: (A[i, j] + 1.0, (A[i, j] * 3.0).astype("int32")), name="T")
    s = te.create_schedule(T)
    i, j = T.op.axis
    if schedule == "fuse":
        s[T].split(s[U].fuse(i, j), factor=4)
    elif schedule == "tile":
        s[U].tile(i, j, 2, 4)
    elif schedule == "cache":
        first, _ = s.cache_write([T, U], "local")
        s[first].compute_at(s[T], i)
    elif schedule == "layout":
        s[T].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=2.0)
    elif schedule == "parallel":
        s[T].parallel(i)
    a = np.arange(30, dtype=np.float32).reshape(5, 6)
    t, u = np.full((5, 6), np.nan, np.float32), np.full((5, 6), -1, np.int32)

    func = run(s, [A, T, U], a, t, u)

    np.testing.assert_array_equal(t, a + 1)
    np.testing.assert_array_equal(u, a * 3)
    if schedule == "layout":
        assert [str(pad.value) for _, pad in func.pad_values] == ["float32(2.0)", "int32(2)"]


def test_one_output_of_a_stage_is_used_and_none_is_an_argument(run: Any) -> None:
    A = te.placeholder((5,), name="A")
    T, U = te.compute((5,), lambda i: (A[i] + 1.0, A[i] * 3.0), name="T")
    C = te.compute((5,), lambda i: U[i] - 1.0, name="C")
    s = te.create_schedule(C)
    s[T].compute_at(s[C], C.op.axis[0])
    a, c = np.arange(5, dtype=np.float32), np.full(5, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, a * 3 - 1)


def test_two_outputs_of_a_schedule(run: Any) -> None:
    A = te.placeholder((5,), name="A")
    P = te.compute((5,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((5,), lambda i: P[i] * 2.0, name="C")
    D = te.compute((5,), lambda i: P[4 - i] * 3.0, name="D")
    s = te.create_schedule([C, D])
    s[C].split(C.op.axis[0], factor=2)
    a = np.arange(5, dtype=np.float32)
    c, d = np.full(5, np.nan, np.float32), np.full(5, np.nan, np.float32)

    run(s, [D, A, C], d, a, c)

    np.testing.assert_array_equal(c, (a + 1) * 2)
    np.testing.assert_array_equal(d, (a + 1)[::-1] * 3)


def test_stages_of_equal_name(run: Any) -> None:
    A = te.placeholder((4,), name="x")
    P = te.compute((4,), lambda x: A[x] + 1.0, name="x")
    C = te.compute((4,), lambda x: P[x] * 2.0, name="x")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[0])
    a, c = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_a_placeholder_among_the_outputs(run: Any) -> None:
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule([A, C])
    c = np.full(4, np.nan, np.float32)

    run(s, [A, C], np.zeros(4, np.float32), c)

    np.testing.assert_array_equal(c, np.ones(4))


def test_the_same_computation_under_two_schedules(run: Any) -> None:
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
    for factor in (1, 2, 3, 8):
        s = te.create_schedule(C)
        s[C].split(C.op.axis[0], factor=factor)
        c = np.full(4, np.nan, np.float32)

        run(s, [A, C], np.arange(4, dtype=np.float32), c)

        np.testing.assert_array_equal(c, [1, 2, 3, 4])


def test_a_size_that_no_argument_determines_is_refused(nest: Any) -> None:
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] * n.astype("float32"), name="C")
    s = te.create_schedule(C)

    with pytest.raises(LowerError) as caught:
        nest(s, [A, C])

    assert diagnostic(caught.value) == (
        Diagnostic("argument-list", stage="C", var="n")
    )


def test_fused_symbolic_axes_are_read_in_a_row(nest: Any) -> None:
    """Quotient and remainder of a fused axis recombine to one index of `n * m` elements."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    C = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="C")
    s = te.create_schedule(C)
    s[C].split(s[C].fuse(*C.op.axis), factor=16)

    func = flatten_buffer(nest(s, [A, C]))

    assert str(simplify(func)).splitlines()[1:] == [
        "    if m > 0:",
        "        for i_j_fused_outer in range((n * m + 15) // 16):",
        "            for i_j_fused_inner in range(min(16, n * m - i_j_fused_outer * 16)):",
        "                C[i_j_fused_outer * 16 + i_j_fused_inner] = "
        "A[i_j_fused_outer * 16 + i_j_fused_inner] * float32(2.0)",
    ]


def test_loops_of_a_layout_with_a_symbolic_inverse() -> None:
    # The last column, `n - 1`, determines which of the wrapped rows a position belongs to.
    n = te.var("n", "int32")
    A = te.placeholder((n,), name="A")
    T = te.compute((7, n), lambda i, j: A[j] + i, name="T")
    s = te.create_schedule(T)
    s[T].transform_layout(lambda i, j: [0, (j + (i + 3) % 7) * 7 + (i + 3) % 7])

    kernel = tecomp.build(s, [A, T])

    for size in (1, 2, 9):
        a = np.arange(size, dtype=np.float32) * 8
        t = np.full((7, size), np.nan, np.float32)
        kernel(a, t, layouts="logical")
        np.testing.assert_array_equal(t, a + np.arange(7, dtype=np.float32)[:, None])


def test_a_swizzle_of_columns_that_start_at_a_size() -> None:
    # The only known bounds of `n - 2 + j ^ i % 4` are the bounds of the whole tensor.
    n = te.var("n", "int32")
    A = te.placeholder((2, 7), "int32", name="A")
    T = te.compute((2, 7), lambda i, j: A[i, j] * 2, name="T")
    U = te.compute(
        (n, 3),
        lambda i, j: te.if_then_else(
            te.all(n + j >= 2, n + j - 2 < 7), T[i % 2, n + j - 2], te.const(-1, "int32")
        ),
        name="U",
    )
    s = te.create_schedule(U)
    s[T].transform_layout(lambda i, j: [i, j ^ i % 4], loops="logical")
    s[T].compute_at(s[U], U.op.axis[0])

    kernel = tecomp.build(s, [A, U])

    a = np.arange(14, dtype=np.int32).reshape(2, 7)
    for size in (1, 3, 7, 12):
        u = np.zeros((size, 3), np.int32)
        kernel(a, u)
        columns = size - 2 + np.arange(3)
        read = a[np.arange(size)[:, None] % 2, np.clip(columns, 0, 6)] * 2
        np.testing.assert_array_equal(u, np.where((columns >= 0) & (columns < 7), read, -1))
