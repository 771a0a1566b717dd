"""Rolling buffers: results, number of computations, storage, and rejected schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import LowerError, ScheduleError
from tecomp.ir import Allocate, evaluate, walk
from tecomp.lowering import lower_all
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule, Stage
from tests.messages import Diagnostic, diagnostic

H, W = 13, 10
A = te.placeholder((H + 4, W + 4), name="A")
P = te.compute((H + 4, W + 4), lambda i, j: A[i, j] * 2.0, name="P")
Q = te.compute(
    (H + 2, W + 2), lambda i, j: P[i, j] + P[i + 1, j + 1] - P[i + 2, j + 2], name="Q"
)
C = te.compute(
    (H, W), lambda i, j: Q[i, j] - Q[i + 2, j] + Q[i + 1, j + 2] - Q[i + 2, j + 1], name="C"
)

Change = Callable[[Schedule], object]

NEST = """\
for i in range(13):
    with BufferRealize(Buffer("float32", (17, 14)), bounds=((i, 3), (0, 10)), carried=i) as P:
        if i >= 1:
            for j in range(10):
                P[i + 2, j] = A[i + 2, j] * float32(2.0)
        else:
            for i_1 in range(3):
                for j in range(10):
                    P[i + i_1, j] = A[i + i_1, j] * float32(2.0)
        for j in range(10):
            D[i, j] = P[i, j] + P[i + 2, j]"""
ROLLED = """\
with Allocate(Buffer("float32", (3, 10))) as P:
    for i in range(13):
        if i >= 1:
            for j in range(10):
                P[(i + 2) % 3, j] = A[i + 2, j] * float32(2.0)
        else:
            for i_1 in range(3):
                for j in range(10):
                    P[i + i_1, j] = A[i + i_1, j] * float32(2.0)
        for j in range(10):
            D[i, j] = P[i % 3, j] + P[(i + 2) % 3, j]"""


def oracle(a: Any) -> Any:
    p = 2 * a
    q = p[:-2, :-2] + p[1:-1, 1:-1] - p[2:, 2:]
    return q[:-2, :-2] - q[2:, :-2] + q[1:-1, 2:] - q[2:, 1:-1]


def whole_numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-4, 5, shape).astype("float32")


def rows(s: Schedule) -> None:
    s[P].compute_inline()
    s[Q].compute_at(s[C], C.op.axis[0])
    s[Q].rolling_buffer()
    s[Q].set_scope("local")


def both(s: Schedule) -> None:
    rows(s)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].rolling_buffer()


def one_in_the_other(s: Schedule) -> None:
    rows(s)
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[P].rolling_buffer()


def beside_one_that_is_computed_anew(s: Schedule) -> None:
    rows(s)
    s[P].compute_at(s[C], C.op.axis[0])


def elements(s: Schedule) -> None:
    s[P].compute_inline()
    s[Q].compute_at(s[C], C.op.axis[1])
    s[Q].rolling_buffer()


def strips(s: Schedule) -> None:
    rows(s)
    i, j = C.op.axis
    outer, inner = s[C].split(j, factor=4)
    s[C].reorder(outer, i, inner)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    s[Q].vectorize(Q.op.axis[1])


def groups_of_rows(s: Schedule) -> None:
    s[P].compute_inline()
    outer, inner = s[C].split(C.op.axis[0], factor=3)
    s[C].unroll(inner)
    s[Q].compute_at(s[C], outer)
    s[Q].rolling_buffer()


def rows_of_a_group(s: Schedule) -> None:
    s[P].compute_inline()
    outer, inner = s[C].split(C.op.axis[0], factor=5)
    s[C].parallel(outer)
    s[C].unroll(inner)
    s[Q].compute_at(s[C], inner)
    s[Q].rolling_buffer()


def in_a_layout(s: Schedule) -> None:
    rows(s)
    s[Q].transform_layout(lambda i, j: [i // 2, j // 4, i % 2, j % 4])


def in_a_turned_layout(s: Schedule) -> None:
    rows(s)
    s[Q].transform_layout(lambda i, j: [j, (i + j) % 16])


def aligned(s: Schedule) -> None:
    rows(s)
    s[Q].storage_align(Q.op.axis[0], 8, 3)


ALL = [rows, both, one_in_the_other, beside_one_that_is_computed_anew, elements, strips,
       groups_of_rows, rows_of_a_group, in_a_layout, in_a_turned_layout, aligned]  # fmt: skip


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("change", ALL)
def test_numbers_after_every_pass(change: Change) -> None:
    s = te.create_schedule(C)
    change(s)
    a = whole_numbers(H + 4, W + 4)
    lowered = lower_all(s, [A, C])
    for func in lowered.functions.values():
        shapes = [[int(str(n)) for n in getattr(param, "shape", ())] for param in func.params]
        result = np.full(shapes[1], 77, "float32")
        evaluate(func, [a.reshape(shapes[0]), result])
        np.testing.assert_array_equal(result.reshape(H, W), oracle(a))
    result = np.full((H, W), 77, "float32")
    tecomp.build(s, [A, C], check_bounds=True)(a, result)
    np.testing.assert_array_equal(result, oracle(a))
    replayed = replay(s.trace.to_json(), s.outputs)
    assert str(lower_all(replayed, [A, C]).final) == str(lowered.final)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("change", [rows, both, in_a_layout, aligned, groups_of_rows])
def test_every_element_is_computed_once(change: Change, count: Any) -> None:
    s = te.create_schedule(C)
    change(s)
    a, c = whole_numbers(H + 4, W + 4), np.zeros((H, W), "float32")
    for stage in (Q, P):
        times = count(s, [A, C], stage, a, c)
        assert (times <= 1).all()
        assert stage is P or times.sum() == (H + 2) * (W + 2)


def test_the_first_iteration_computes_all_of_its_window(count: Any) -> None:
    s = te.create_schedule(C)
    rows_of_a_group(s)
    a, c = whole_numbers(H + 4, W + 4), np.zeros((H, W), "float32")
    times = count(s, [A, C], Q, a, c)

    # Windows of adjacent groups of five rows overlap in two rows.
    assert times[:, 0].tolist() == [1] * 5 + [2] * 2 + [1] * 3 + [2] * 2 + [1] * 3


def test_windows_are_recomputed_without_rolling(count: Any) -> None:
    s = te.create_schedule(C)
    rows(s)
    plain = te.create_schedule(C)
    plain[Q].compute_at(plain[C], C.op.axis[0])
    a, c = whole_numbers(H + 4, W + 4), np.zeros((H, W), "float32")

    assert count(plain, [A, C], Q, a, c)[5, 5] == 3
    assert count(s, [A, C], Q, a, c)[5, 5] == 1


def allocated(change: Change) -> dict[str, tuple[Any, ...]]:
    s = te.create_schedule(C)
    change(s)
    func = tecomp.lower(s, [A, C], stop_after="lower_storage")
    return {n.buffer.name: n.buffer.shape for n in walk(func.body) if isinstance(n, Allocate)}


def test_rolling_buffers_hold_one_window() -> None:
    assert allocated(rows) == {"Q": (3, W + 2)}
    assert allocated(both) == {"Q": (3, W + 2), "P": (5, W + 4)}
    assert allocated(elements) == {"Q": (3, 3)}
    assert allocated(groups_of_rows) == {"Q": (5, W + 2)}
    assert allocated(in_a_layout) == {"Q": (2, 3, 2, 4)}


def of_columns(s: Schedule, D: Tensor) -> None:
    s[P].compute_at(s[D], D.op.axis[1])
    s[P].rolling_buffer()


def test_outer_loops_roll_buffers_inner_loops_cannot(count: Any) -> None:
    D = te.compute((H, W), lambda i, j: P[i, j] + P[i + 2, j], name="D")
    s = te.create_schedule(D)
    of_columns(s, D)
    a, d = whole_numbers(H + 4, W + 4), np.zeros((H, W), "float32")

    check(s, [A, D], [a], 2 * (a[:H, :W] + a[2 : H + 2, :W]))
    func = tecomp.lower(s, [A, D], stop_after="lower_storage")
    assert [n.buffer.shape for n in walk(func.body) if isinstance(n, Allocate)] == [(3, W)]
    assert (count(s, [A, D], P, a, d)[:H, :W] == 1).all()


def test_loops_around_one_that_runs_at_once_keep_nothing() -> None:
    D = te.compute((H, W, 2), lambda i, j, k: P[i, j] + P[i + 2, j] * k, name="D")
    s = te.create_schedule(D)
    s[D].parallel(D.op.axis[1])
    s[P].compute_at(s[D], D.op.axis[2])
    s[P].rolling_buffer()
    a = whole_numbers(H + 4, W + 4)
    k = np.arange(2, dtype="float32")

    check(s, [A, D], [a], 2 * (a[:H, :W, None] + a[2 : H + 2, :W, None] * k))
    func = tecomp.lower(s, [A, D], stop_after="lower_storage")
    assert [n.buffer.shape for n in walk(func.body) if isinstance(n, Allocate)] == [(3, 1)]


def test_the_text() -> None:
    D = te.compute((H, W), lambda i, j: P[i, j] + P[i + 2, j], name="D")
    s = te.create_schedule(D)
    s[P].compute_at(s[D], D.op.axis[0])
    s[P].rolling_buffer()

    assert str(tecomp.lower(s, [A, D], stop_after="nest").body) == NEST
    assert str(tecomp.lower(s, [A, D], stop_after="roll_buffers").body) == ROLLED


def check(s: Schedule, args: list[Any], arrays: list[Any], expected: Any) -> None:
    func = tecomp.lower(s, args, stop_after="nest")
    result = np.full(expected.shape, 77, expected.dtype)
    evaluate(func, [*arrays, result])
    np.testing.assert_array_equal(result, expected)
    result = np.full(expected.shape, 77, expected.dtype)
    tecomp.build(s, args, check_bounds=True)(*arrays, result)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_sizes_known_at_the_call(n: int) -> None:
    size = te.var("n")
    X = te.placeholder((size + 2, 5), name="X")
    Y = te.compute((size + 2, 5), lambda i, j: X[i, j] + 1.0, name="Y")
    Z = te.compute((size, 5), lambda i, j: Y[i, j] * Y[i + 2, 4 - j], name="Z")
    s = te.create_schedule(Z)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Y].rolling_buffer()
    x = whole_numbers(n + 2, 5)

    check(s, [X, Z], [x], (x[:n] + 1) * (x[2:, ::-1] + 1))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows_may_move_by_more_than_one(stride: int) -> None:
    X = te.placeholder((40,), name="X")
    Y = te.compute((40,), lambda i: X[i] + 1.0, name="Y")
    k = te.reduce_axis((0, 4), name="k")
    Z = te.compute((12,), lambda i: te.sum(Y[i * stride + k], axis=k), name="Z")
    s = te.create_schedule(Z)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Y].rolling_buffer()
    x = whole_numbers(40)
    expected = np.array([(x[i * stride : i * stride + 4] + 1).sum() for i in range(12)], "float32")

    check(s, [X, Z], [x], expected)


def test_windows_at_edges() -> None:
    X = te.placeholder((9,), name="X")
    Y = te.compute((9,), lambda i: X[i] * X[i], name="Y")

    def at(i: Any) -> Any:
        return te.if_then_else(te.all(i >= 0, i < 9), Y[i], 0.0)

    Z = te.compute((9,), lambda i: at(i - 2) + at(i) - at(i + 1), name="Z")
    s = te.create_schedule(Z)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Y].rolling_buffer()
    x = whole_numbers(9)
    y = np.pad(x * x, (2, 1))

    check(s, [X, Z], [x], y[:9] + y[2:11] - y[3:12])


def test_growing_windows_are_stored_completely() -> None:
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] + 1.0, name="Y")
    k = te.reduce_axis((0, 8), name="k")
    Z = te.compute((8,), lambda i: te.sum(Y[k], axis=k, where=k <= i), name="Z")
    s = te.create_schedule(Z)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Y].rolling_buffer()
    x = whole_numbers(8)

    check(s, [X, Z], [x], (x + 1).cumsum())


def test_several_outputs() -> None:
    X = te.placeholder((10,), name="X")
    Y, V = te.compute((10,), lambda i: (X[i] + 1.0, X[i] * 2.0), name="Y")
    Z = te.compute((8,), lambda i: Y[i] * V[i + 2], name="Z")
    s = te.create_schedule(Z)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Y].rolling_buffer()
    x = whole_numbers(10)

    check(s, [X, Z], [x], (x[:8] + 1) * (x[2:] * 2))


def test_a_scan_with_stored_steps() -> None:
    X = te.placeholder((9, 4), name="X")
    state = te.placeholder((9, 4), name="state")
    start = te.compute((1, 4), lambda _, i: X[0, i], name="start")
    add = te.compute((9, 4), lambda t, i: state[t - 1, i] + X[t, i], name="add")
    S = te.scan(start, add, state, name="S")
    Z = te.compute((9, 4), lambda t, i: S[t, i] * 2.0, name="Z")
    s = te.create_schedule(Z)
    s[S].compute_at(s[Z], Z.op.axis[0])
    s[S].rolling_buffer()
    x = whole_numbers(9, 4)

    check(s, [X, Z], [x], 2 * x.cumsum(0))


def refused(change: Change, args: list[Tensor] | None = None) -> Diagnostic:
    s = te.create_schedule(C)
    change(s)
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, args or [A, C])
    return diagnostic(error.value)


def test_rolling_buffer_requires_compute_at() -> None:
    assert refused(lambda s: s[Q].rolling_buffer()) == (
        Diagnostic("loop-carried", where="s[Q].rolling_buffer", name="Q")
    )


def test_the_loop_runs_in_order() -> None:
    def parallel(s: Schedule) -> None:
        rows(s)
        s[C].parallel(C.op.axis[0])

    assert refused(parallel) == (
        Diagnostic(
            "loop-carried", where="s[Q].rolling_buffer", axis="i", parent="C", stage="Q",
        )
    )


def test_iterations_overlap() -> None:
    B = te.compute((12,), lambda i: A[i, 0], name="B")
    D = te.compute((12,), lambda i: B[i] * 2.0, name="D")
    s = te.create_schedule(D)
    s[B].compute_at(s[D], D.op.axis[0])
    s[B].rolling_buffer()
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, D])
    assert diagnostic(error.value) == (
        Diagnostic("loop-carried", stage="B", names="i")
    )


def test_iterations_of_no_loop_overlap() -> None:
    D = te.compute((H, W), lambda i, j: P[i, j] * 2.0, name="D")
    s = te.create_schedule(D)
    of_columns(s, D)
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, D])
    assert diagnostic(error.value) == (
        Diagnostic("loop-carried", stage="P", names="i, j")
    )


def test_rolling_memory_is_private() -> None:
    assert refused(rows, [A, Q, C]) == (
        Diagnostic("loop-carried", where="s[Q].rolling_buffer", name="Q")
    )


def test_rolling_buffer_excludes_double_buffer() -> None:
    def doubled(s: Schedule) -> None:
        rows(s)
        s[Q].double_buffer()

    assert refused(doubled) == (
        Diagnostic("loop-carried", where="s[Q].rolling_buffer", name="Q")
    )


def test_padding_is_not_filled() -> None:
    def padded(s: Schedule) -> None:
        rows(s)
        s[Q].transform_layout(lambda i, j: [i, j // 8, j % 8], pad_value=0.0)

    assert refused(padded) == (
        Diagnostic("loop-carried", where="s[Q].rolling_buffer", name="Q")
    )


def test_outputs_are_the_callers() -> None:
    s = te.create_schedule(C)
    with pytest.raises(ScheduleError) as error:
        s[C].rolling_buffer()
    assert diagnostic(error.value) == (
        Diagnostic("requires-storage", stage="C")
    )


def test_nested_loops_with_steps() -> None:
    """Only every second row of S is computed, so a loop counter is not a row index."""
    X = te.placeholder((80,), name="X")
    Y = te.compute((80,), lambda i: X[i] + 1.0, name="Y")
    S = te.compute((17,), lambda i: Y[3 * i] + Y[3 * i + 4] + Y[3 * i + 8], name="S")
    Z = te.compute((8,), lambda i: S[2 * i] + S[2 * i + 2], name="Z")
    x = whole_numbers(80)
    y = x + 1
    rows_of_s = y[0:51:3] + y[4:55:3] + y[8:59:3]
    expected = rows_of_s[0:16:2] + rows_of_s[2:18:2]
    for keep in (Stage.rolling_buffer, Stage.double_buffer):
        s = te.create_schedule(Z)
        outer, _ = s[Z].split(Z.op.axis[0], factor=4)
        _, inner = s[S].split(S.op.axis[0], factor=4)
        s[Y].compute_at(s[S], inner)
        keep(s[Y])
        s[S].compute_at(s[Z], outer)
        s[S].rolling_buffer()

        check(s, [X, Z], [x], expected)


def test_gaps_are_filled_inside_of_the_box_around() -> None:
    """S is read in every second column; each element of S reads three rows and two columns of Y."""
    X = te.placeholder((27, 15), name="X")
    Y = te.compute((27, 15), lambda i, j: X[i, j] + 1.0, name="Y")
    taps = [(a, b) for a in range(3) for b in (0, 2)]
    S = te.compute(
        (9, 13), lambda i, j: sum((Y[3 * i + a, j + b] for a, b in taps), te.const(0.0)), name="S"
    )
    read = [(a, b) for a in range(2) for b in (0, 2, 4)]
    Z = te.compute(
        (8, 5), lambda i, j: sum((S[i + a, 2 * j + b] for a, b in read), te.const(0.0)), name="Z"
    )
    s = te.create_schedule(Z)
    outer, _ = s[Z].split(Z.op.axis[0], factor=2)
    i, j = S.op.axis
    columns, j = s[S].split(j, factor=4)
    s[S].reorder(columns, i, j)
    s[Y].compute_at(s[S], columns)
    s[Y].rolling_buffer()
    s[Y].vectorize(Y.op.axis[1])
    s[Z].vectorize(Z.op.axis[1])
    s[S].compute_at(s[Z], outer)
    x = whole_numbers(27, 15)
    summed = sum(x[a : a + 25 : 3, b : b + 13] + 1 for a, b in taps)

    check(s, [X, Z], [x], sum(summed[a : a + 8, b : b + 9 : 2] for a, b in read))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("m", [1, 7, 11])
def test_windows_with_many_corners_become_one_piece(m: int) -> None:
    """Three crossing reads and their boundary conditions would give hundreds of pieces."""
    n = te.var("n")
    X = te.placeholder((n + 2, n, n), name="X")
    Y = te.compute((n + 2, n, n), lambda i, j, k: X[i, j, k] + 1.0, name="Y")

    def crossing(i: Any) -> Any:
        back = te.if_then_else(i - 1 >= 0, Y[i - 1, n - 1 - i, i], te.const(0.0))
        return Y[i + 2, i, n - 1 - i] - back + Y[i, i % 3 % n, i]

    Z = te.compute((n,), crossing, name="Z")
    s = te.create_schedule(Z)
    outer, _ = s[Z].split(Z.op.axis[0], factor=8)
    s[Y].compute_at(s[Z], outer)
    s[Y].rolling_buffer()
    x = whole_numbers(m + 2, m, m)
    y, at = x + 1, np.arange(m)
    back = np.where(at >= 1, y[at - 1, m - 1 - at, at], 0)

    check(s, [X, Z], [x], y[at + 2, at, m - 1 - at] - back + y[at, at % 3 % m, at])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("m", [1, 3, 6])
def test_loops_and_memory_match_one_window(m: int) -> None:
    """The bound of the window has two cases, so that a window of the window would be larger."""
    n = te.var("n")
    size = te.min(n, 4)
    X = te.placeholder((2, 7, size * 3), name="X")
    Y = te.compute((2, 7, size * 3), lambda i, j, k: X[i, j, k] + 1.0, name="Y")
    k = te.reduce_axis((0, size), name="k")
    Z = te.compute((2, 2), lambda i, j: te.sum(Y[j, i * 2 + j * 3, k * 3], k), name="Z")
    s = te.create_schedule(Z)
    i, j = Z.op.axis
    _, _, _, inner = s[Z].tile(i, s[Z].fuse(j, k), 4, 1)
    s[Y].compute_at(s[Z], inner)
    s[Y].rolling_buffer()
    _, rows_of, columns = Y.op.axis
    s[Y].tile(rows_of, columns, 3, 5)
    x = whole_numbers(2, 7, min(m, 4) * 3)
    rows = [[(x[j, i * 2 + j * 3, ::3] + 1).sum() for j in range(2)] for i in range(2)]

    check(s, [n, X, Z], [m, x], np.array(rows, "float32"))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 10])
@pytest.mark.parametrize("has_row", [False, True])
def test_gaps_take_nothing_that_is_not_computed_further_out(n: int, has_row: bool) -> None:
    """The outer cache holds only the rows that are read, so the gaps must not be filled from it."""
    size = te.var("n")
    X = te.placeholder((size, size), name="X")
    D = te.compute(
        (size, size), lambda i, j: te.if_then_else(i + 1 < size, X[j // 2, i + 1], 0.0)
        + te.if_then_else(te.all(j % 3 < size, size > 2), X[j % 3, 2], 0.0), name="D")
    s = te.create_schedule(D)
    whole = s.cache_read(X, "shared", [D])
    cached = s.cache_read(whole, "local", [D])
    i, j = s[D].op.axis
    neighbors = i if has_row else s[D].split(i, nparts=1)[0]
    s[whole].compute_at(s[D], neighbors)
    s[cached].compute_at(s[D], j)
    s[cached].rolling_buffer()
    x = np.arange(n * n, dtype=np.float32).reshape(n, n)
    d = np.zeros((n, n), np.float32)

    evaluate(tecomp.lower(s, [size, X, D]), [n, x.ravel(), d.ravel()])
    repeated = np.zeros((n, n), np.float32)
    tecomp.build(s, [size, X, D])(n, x, repeated)

    rows, columns = np.indices((n, n))
    near = np.where(rows + 1 < n, x[columns // 2, np.minimum(rows + 1, n - 1)], 0)
    far = np.where(columns % 3 < n, x[np.minimum(columns % 3, n - 1), 2], 0) if n > 2 else 0
    np.testing.assert_array_equal(d, near + far)
    np.testing.assert_array_equal(repeated, near + far)
