"""Reductions in every form and under every schedule agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import ScheduleError
from tecomp.operations import COMBINERS
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

ROWS, DEPTH = 5, 11
A = te.placeholder((ROWS, DEPTH), name="A")
B = te.placeholder((DEPTH, ROWS), name="B")
k = te.reduce_axis((0, DEPTH), name="k")
r = te.reduce_axis((0, ROWS), name="r")

argmax = te.comm_reducer(
    lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
    lambda index, value: [te.const(-1, index), te.min_value(value)],
    name="argmax",
)

Decide = Callable[[Schedule, Tensor], object]


def plain(s: Schedule, C: Tensor) -> None:
    assert s[C].leaf_iter_vars


def split_reduction(s: Schedule, C: Tensor) -> None:
    s[C].split(k, factor=4)


def parts_of_the_reduction(s: Schedule, C: Tensor) -> None:
    outer, _ = s[C].split(k, nparts=4)
    s[C].reorder(outer, *C.op.axis)


def reduction_outside(s: Schedule, C: Tensor) -> None:
    s[C].reorder(k, *C.op.axis)


def split_and_outside(s: Schedule, C: Tensor) -> None:
    outer, inner = s[C].split(k, factor=3)
    s[C].reorder(outer, *C.op.axis, inner)


def tiled_around(s: Schedule, C: Tensor) -> None:
    outer, inner = s[C].split(k, factor=3)
    io, ii = s[C].split(C.op.axis[0], factor=2)
    s[C].reorder(io, outer, ii, inner)
    s[C].unroll(inner)


def vector_inside(s: Schedule, C: Tensor) -> None:
    _, inner = s[C].split(C.op.axis[0], factor=4)
    s[C].reorder(k, inner)
    s[C].vectorize(inner)


def fused_with_data(s: Schedule, C: Tensor) -> None:
    s[C].fuse(C.op.axis[0], k)


def fused_with_data_and_split(s: Schedule, C: Tensor) -> None:
    outer, inner = s[C].split(s[C].fuse(C.op.axis[0], k), factor=7)
    s[C].reorder(inner, outer)


def fused_part_with_data(s: Schedule, C: Tensor) -> None:
    outer, _ = s[C].split(k, factor=4)
    s[C].fuse(C.op.axis[0], outer)


def written_to_a_cache(s: Schedule, C: Tensor) -> None:
    CC = s.cache_write(C, "local")
    assert isinstance(CC, Tensor)
    outer, _ = s[C].split(C.op.axis[0], factor=2)
    s[CC].compute_at(s[C], outer)
    ko, _ = s[CC].split(k, factor=4)
    s[CC].reorder(ko, s[CC].op.axis[0])


def factored_outer(s: Schedule, C: Tensor) -> None:
    outer, _ = s[C].split(k, factor=4)
    s.rfactor(C, outer)


def factored_inner(s: Schedule, C: Tensor) -> None:
    _, inner = s[C].split(k, factor=4)
    factored = s.rfactor(C, inner, factor_axis=1)
    first = factored if isinstance(factored, Tensor) else factored[0]
    s[first].compute_at(s[C], C.op.axis[0])


def factored_whole(s: Schedule, C: Tensor) -> None:
    s.rfactor(C, k)


def factored_twice(s: Schedule, C: Tensor) -> None:
    outer, inner = s[C].split(k, factor=4)
    factored = s.rfactor(C, inner)
    first = factored if isinstance(factored, Tensor) else factored[0]
    s.rfactor(first, s[first].op.reduce_axis[0])
    assert outer is not inner


DECISIONS: tuple[Decide, ...] = (
    plain, split_reduction, parts_of_the_reduction, reduction_outside, split_and_outside,
    tiled_around, vector_inside, fused_with_data, fused_with_data_and_split, fused_part_with_data,
    written_to_a_cache, factored_outer, factored_inner, factored_whole, factored_twice,
)


def row_sum() -> Tensor:
    return te.compute((ROWS,), lambda i: te.sum(A[i, k], axis=k), name="C")


def row_max() -> Tensor:
    return te.compute((ROWS,), lambda i: te.max(A[i, k], axis=k), name="C")


def row_min() -> Tensor:
    return te.compute((ROWS,), lambda i: te.min(A[i, k] * 2.0, axis=k), name="C")


def some_of_a_row() -> Tensor:
    return te.compute(
        (ROWS,), lambda i: te.sum(A[i, k], axis=k, where=te.any(k % 3 == 1, k > i + 4)), name="C"
    )


def where_the_data_say_so() -> Tensor:
    return te.compute((ROWS,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 5.0), name="C")


SUMS: dict[str, tuple[Callable[[], Tensor], Callable[[Any], Any]]] = {
    "sum": (row_sum, lambda a: a.sum(1)),
    "max": (row_max, lambda a: a.max(1)),
    "min": (row_min, lambda a: 2 * a.min(1)),
    "where": (
        some_of_a_row,
        lambda a: np.where(
            (np.arange(DEPTH) % 3 == 1) | (np.arange(DEPTH) > np.arange(ROWS)[:, None] + 4), a, 0
        ).sum(1),
    ),
    "where data": (where_the_data_say_so, lambda a: np.where(a > 5, a, 0).sum(1)),
}


@pytest.mark.exhaustive(keep=26)
@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize("decide", DECISIONS, ids=lambda f: f.__name__)
def test_one_value(decide: Decide, form: str, run: Any) -> None:
    make, oracle = SUMS[form]
    C = make()
    s = te.create_schedule(C)
    decide(s, C)
    a = np.random.default_rng(0).permutation(ROWS * DEPTH).reshape(ROWS, DEPTH).astype(np.float32)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, oracle(a))


@pytest.mark.parametrize(
    "decide", [d for d in DECISIONS if d is not written_to_a_cache], ids=lambda f: f.__name__
)
def test_a_tuple(decide: Decide, run: Any) -> None:
    index, value = te.compute((ROWS,), lambda i: argmax((k, A[i, k]), axis=k), name="C")
    s = te.create_schedule(index)
    decide(s, index)
    a = np.random.default_rng(0).permutation(ROWS * DEPTH).reshape(ROWS, DEPTH).astype(np.float32)
    found = np.full(ROWS, -9, np.int32)
    greatest = np.full(ROWS, np.nan, np.float32)

    run(s, [A, index, value], a, found, greatest)

    np.testing.assert_array_equal(found, a.argmax(1))
    np.testing.assert_array_equal(greatest, a.max(1))


@pytest.mark.parametrize("decide", [plain, split_reduction, reduction_outside, fused_with_data])
def test_a_start_value(decide: Decide, run: Any) -> None:
    S = te.placeholder((ROWS,), name="S")
    C = te.compute((ROWS,), lambda i: te.sum(A[i, k], axis=k, init=S[i] * 2.0), name="C")
    s = te.create_schedule(C)
    decide(s, C)
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    start = np.arange(ROWS, dtype=np.float32)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [A, S, C], a, start, c)

    np.testing.assert_array_equal(c, a.sum(1) + 2 * start)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("first", [0, 1])
def test_a_start_value_that_is_computed_where_loops_are_fused(
    depth: int, first: int, run: Any
) -> None:
    """The initial value is stored also if the reduction is empty and the fused loop is too."""
    T = te.compute((3, 5), lambda i, j: A[i, j] + 1.0, name="T")
    r = te.reduce_axis((0, depth), name="r")
    P = te.placeholder((3, 5, depth), name="P")
    C = te.compute((3, 5), lambda i, j: te.sum(P[i, j, r], axis=r, init=T[i, j]), name="C")
    s = te.create_schedule(C)
    i, j = C.op.axis
    if first:
        s[C].split(s[C].fuse(j, r), factor=2)
    else:
        s[C].fuse(j, r)
    s[T].compute_at(s[C], i)
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    p = np.arange(15 * depth, dtype=np.float32).reshape(3, 5, depth)
    c = np.full((3, 5), np.nan, np.float32)

    run(s, [A, P, C], a, p, c)

    np.testing.assert_array_equal(c, p.sum(2) + a[:3, :5] + 1)


@pytest.mark.parametrize("order", ["ijk", "kij", "ikj", "jki", "kji"])
@pytest.mark.parametrize("factor", [1, 4])
def test_a_matrix_product(order: str, factor: int, run: Any) -> None:
    C = te.compute((ROWS, ROWS), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    i, j = C.op.axis
    outer, inner = s[C].split(k, factor=factor)
    loops = {"i": i, "j": j, "k": outer}
    s[C].reorder(*(loops[name] for name in order), inner)
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    b = a.reshape(DEPTH, ROWS)[::-1].copy()
    c = np.full((ROWS, ROWS), np.nan, np.float32)

    run(s, [A, B, C], a, b, c)

    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("schedule", ["plain", "fused", "fused twice", "factored", "outside"])
def test_two_reduction_axes(schedule: str, run: Any) -> None:
    C = te.compute((), lambda: te.sum(A[r, k] * 2.0, axis=[r, k]), name="C")
    s = te.create_schedule(C)
    if schedule == "fused":
        s[C].split(s[C].fuse(r, k), factor=7)
    elif schedule == "fused twice":
        outer, inner = s[C].split(k, factor=4)
        s[C].fuse(s[C].fuse(r, outer), inner)
    elif schedule == "factored":
        outer, _ = s[C].split(s[C].fuse(r, k), factor=7)
        s.rfactor(C, outer)
    elif schedule == "outside":
        s[C].reorder(k, r)
        s.rfactor(C, k)
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    c = np.full((), np.nan, np.float32)

    run(s, [A, C], a, c)

    assert c == 2 * a.sum()


def test_a_reduction_that_does_not_start_at_0(run: Any) -> None:
    late = te.reduce_axis((3, DEPTH - 1), name="late")
    C = te.compute((ROWS,), lambda i: te.sum(A[i, late] * late, axis=late), name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(late, factor=3)
    CF = s.rfactor(C, outer)
    assert isinstance(CF, Tensor)
    s[CF].reorder(*reversed(s[CF].leaf_iter_vars))
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, (a * np.arange(DEPTH))[:, 3:-1].sum(1))


EMPTY = te.placeholder((ROWS, 0), name="A")
none = te.reduce_axis((0, 0), name="k")
IDENTITIES: dict[str, tuple[Callable[..., Any], float]] = {
    "sum": (te.sum, 0.0), "prod": (te.prod, 1.0), "min": (te.min, np.inf), "max": (te.max, -np.inf),
}


@pytest.mark.parametrize("reducer", IDENTITIES)
@pytest.mark.parametrize("schedule", ["plain", "split", "outside", "fused", "factored"])
def test_empty_reductions_give_the_identity(reducer: str, schedule: str, run: Any) -> None:
    reduce, identity = IDENTITIES[reducer]
    C = te.compute((ROWS,), lambda i: reduce(EMPTY[i, none], axis=none), name="C")
    s = te.create_schedule(C)
    if schedule == "split":
        s[C].split(none, factor=4)
    elif schedule == "outside":
        s[C].reorder(none, C.op.axis[0])
    elif schedule == "fused":
        s[C].fuse(C.op.axis[0], none)
    elif schedule == "factored":
        s.rfactor(C, none)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [EMPTY, C], np.zeros((ROWS, 0), np.float32), c)

    np.testing.assert_array_equal(c, np.full(ROWS, identity, np.float32))


def test_empty_reductions_give_the_initial_value(run: Any) -> None:
    C = te.compute((ROWS,), lambda i: te.sum(EMPTY[i, none], axis=none, init=7.0), name="C")
    s = te.create_schedule(C)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [EMPTY, C], np.zeros((ROWS, 0), np.float32), c)

    np.testing.assert_array_equal(c, np.full(ROWS, 7, np.float32))


@pytest.mark.parametrize("reducer", [row.name for row in COMBINERS.values() if not row.is_logical])
def test_integers_have_identities_too(reducer: str, run: Any) -> None:
    reduce, _ = IDENTITIES[reducer]
    X = te.placeholder((ROWS, 0), "int8", name="X")
    C = te.compute((ROWS,), lambda i: reduce(X[i, none], axis=none), name="C")
    s = te.create_schedule(C)
    c = np.full(ROWS, 55, np.int8)

    run(s, [X, C], np.zeros((ROWS, 0), np.int8), c)

    assert set(c.tolist()) == {{"min": 127, "max": -128, "prod": 1, "sum": 0}[reducer]}


def test_no_element_of_the_result_is_touched_when_there_is_none(run: Any) -> None:
    X = te.placeholder((0, DEPTH), name="X")
    C = te.compute((0,), lambda i: te.sum(X[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    s[C].fuse(C.op.axis[0], k)

    func = run(s, [X, C], np.zeros((0, DEPTH), np.float32), np.zeros(0, np.float32))

    assert "C[" not in str(func)


@pytest.mark.parametrize("size", [0, 1, 4])
def test_data_fused_with_a_reduction_of_any_size(run: Any, size: int) -> None:
    """Each row is initialized separately, also if there is nothing to add."""
    n = te.var("n")
    X = te.placeholder((3, 5, n), name="X")
    some = te.reduce_axis((0, n), name="some")
    C = te.compute((3, 5), lambda i, j: te.sum(X[i, j, some], axis=some), name="C")
    s = te.create_schedule(C)
    s[C].fuse(C.op.axis[1], some)
    x = np.arange(15 * size, dtype=np.float32).reshape(3, 5, size)
    c = np.full((3, 5), np.nan, np.float32)

    run(s, [X, C], x, c)

    np.testing.assert_array_equal(c, x.sum(2))


def test_a_reduction_that_reads_the_reduction_before(run: Any) -> None:
    """Softmax as three passes over a row, computed row by row."""
    M = te.compute((ROWS,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((ROWS, DEPTH), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    repeated = te.reduce_axis((0, DEPTH), name="again")
    S = te.compute((ROWS,), lambda i: te.sum(E[i, repeated], axis=repeated), name="S")
    C = te.compute((ROWS, DEPTH), lambda i, j: E[i, j] / S[i], name="C")
    s = te.create_schedule(C)
    for stage in (M, E, S):
        s[stage].compute_at(s[C], C.op.axis[0])
    a = np.random.default_rng(0).normal(size=(ROWS, DEPTH)).astype(np.float32)
    c = np.full((ROWS, DEPTH), np.nan, np.float32)

    run(s, [A, C], a, c)

    e = np.exp(a - a.max(1, keepdims=True))
    assert_close(c, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_two_reductions_of_one_axis_object(run: Any) -> None:
    """Several stages can share one reduction axis."""
    M = te.compute((ROWS,), lambda i: te.max(A[i, k], axis=k), name="M")
    C = te.compute((ROWS,), lambda i: te.sum(A[i, k] - M[i], axis=k), name="C")
    s = te.create_schedule(C)
    s[M].compute_at(s[C], C.op.axis[0])
    s[M].split(k, factor=4)
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    c = np.full(ROWS, np.nan, np.float32)

    run(s, [A, C], a, c)

    np.testing.assert_array_equal(c, (a - a.max(1, keepdims=True)).sum(1))


def test_a_loop_over_data_and_reduction_cannot_run_in_parallel() -> None:
    C = row_sum()
    s = te.create_schedule(C)
    fused = s[C].fuse(C.op.axis[0], k)

    with pytest.raises(ScheduleError) as caught:
        s[C].parallel(fused)

    assert diagnostic(caught.value) == (
        Diagnostic("not-parallelizable", stage="C", call="parallel", axis="i.k.fused")
    )


@pytest.mark.parametrize("decide", ["first", "second", "split", "fused"])
def test_rfactor_of_axes_that_do_not_begin_at_0(
    agrees: Callable[..., Any], decide: str
) -> None:
    """Wrong indices may still be in bounds, so the values that are read are compared too."""
    first, second = te.reduce_axis((-2, 1), name="first"), te.reduce_axis((1, 4), name="second")
    total = te.compute((1,), lambda _: te.sum(A[first + 2, second], [first, second]), name="total")
    s = te.create_schedule(total)
    loop = {
        "first": lambda: first,
        "second": lambda: second,
        "split": lambda: s[total].split(second, factor=2)[0],
        "fused": lambda: s[total].fuse(first, second),
    }[decide]()
    partial = s.rfactor(total, loop)
    assert isinstance(partial, Tensor)
    s[partial].vectorize(partial.op.axis[0])
    a = np.arange(ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)

    agrees(s, [A, total], {A: a, total: a[0:3, 1:4].sum().reshape(1)})
