"""Attached stages: chains, attached arguments, gathers, caches, and rejected schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import LowerError, TecompError
from tecomp.ir import Binary, BinOp, walk
from tecomp.scheduling import ComputedAt
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

N = 10
A = te.placeholder((N, N), name="A")
k = te.reduce_axis((0, N), name="k")
P = te.compute((N, N), lambda i, j: A[i, j] * 2.0, name="P")
Q = te.compute((N, N), lambda i, j: P[i, j] + 1.0, name="Q")
C = te.compute((N, N), lambda i, j: Q[i, j] + Q[i, N - 1 - j], name="C")
R = te.compute((N,), lambda i: te.sum(C[i, k], axis=k), name="R")


def oracle(a: Any) -> Any:
    q = 2 * a + 1
    return (q + q[:, ::-1]).sum(1)


Chain = Callable[[Schedule], object]


def all_in_the_row(s: Schedule) -> None:
    for stage in (P, Q, C):
        s[stage].compute_at(s[R], R.op.axis[0])


def each_in_the_next(s: Schedule) -> None:
    s[P].compute_at(s[Q], Q.op.axis[1])
    s[Q].compute_at(s[C], C.op.axis[1])
    s[C].compute_at(s[R], k)


def over_the_next_but_one(s: Schedule) -> None:
    s[P].compute_at(s[C], C.op.axis[0])
    s[Q].compute_at(s[C], C.op.axis[1])


def inside_the_reduction(s: Schedule) -> None:
    outer, inner = s[R].split(k, factor=3)
    s[C].compute_at(s[R], inner)
    s[Q].compute_at(s[R], outer)
    s[P].compute_at(s[Q], Q.op.axis[0])


def tiles_of_everything(s: Schedule) -> None:
    outer, _ = s[R].split(R.op.axis[0], factor=4)
    s[C].compute_at(s[R], outer)
    xo, yo, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 3, 4)
    s[Q].compute_at(s[C], yo)
    s[P].compute_at(s[C], xo)
    s[Q].vectorize(Q.op.axis[1])


def reduction_outside(s: Schedule) -> None:
    s[R].reorder(k, R.op.axis[0])
    s[C].compute_at(s[R], k)
    s[Q].compute_at(s[C], C.op.axis[0])


def inlined_between(s: Schedule) -> None:
    s[Q].compute_inline()
    s[P].compute_at(s[C], C.op.axis[0])
    s[C].compute_at(s[R], R.op.axis[0])


def inlined_at_the_end(s: Schedule) -> None:
    s[C].compute_inline()
    s[Q].compute_at(s[R], R.op.axis[0])
    s[P].compute_at(s[Q], Q.op.axis[0])


def caches_all_along(s: Schedule) -> None:
    RR = s.cache_write(R, "local")
    assert isinstance(RR, Tensor)
    outer, _ = s[R].split(R.op.axis[0], factor=4)
    s[RR].compute_at(s[R], outer)
    ko, _ = s[RR].split(k, factor=5)
    s[RR].reorder(ko, s[RR].op.axis[0])
    s[C].compute_at(s[RR], ko)
    CC = s.cache_read(C, "local", [RR])
    s[CC].compute_at(s[RR], s[RR].op.axis[0])
    AA = s.cache_read(A, "shared", [P])
    s[AA].compute_at(s[P], P.op.axis[0])


def layouts_inside(s: Schedule) -> None:
    outer, _ = s[R].split(R.op.axis[0], factor=4)
    s[C].compute_at(s[R], outer)
    jo, _, ji = s[C].transform_layout(lambda i, j: [j // 4, i, j % 4])
    s[C].vectorize(ji)
    s[Q].compute_at(s[C], jo)
    s[Q].transform_layout(lambda i, j: [j, i])
    s[P].transform_layout(lambda i, j: [i, (i + j) % N])


CHAINS: tuple[Chain, ...] = (
    all_in_the_row, each_in_the_next, over_the_next_but_one, inside_the_reduction,
    tiles_of_everything, reduction_outside, inlined_between, inlined_at_the_end,
    caches_all_along, layouts_inside,
)


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("chain", CHAINS, ids=lambda f: f.__name__)
def test_chains(chain: Chain, run: Any) -> None:
    s = te.create_schedule(R)
    chain(s)
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    r = np.full(N, np.nan, np.float32)

    run(s, [A, R], a, r)

    np.testing.assert_array_equal(r, oracle(a))


@pytest.mark.parametrize("loop", ["i", "j"])
def test_an_argument_can_be_computed_inside_another_stage(loop: str, run: Any) -> None:
    """Each iteration writes its part of the argument, and the caller gets the complete array."""
    D = te.compute((N, N), lambda i, j: P[i, j] + 1.0, name="D")
    s = te.create_schedule(D)
    s[P].compute_at(s[D], dict(zip("ij", D.op.axis, strict=True))[loop])
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    p, d = np.full((N, N), np.nan, np.float32), np.full((N, N), np.nan, np.float32)

    func = run(s, [A, P, D], a, p, d)

    np.testing.assert_array_equal(p, 2 * a)
    np.testing.assert_array_equal(d, 2 * a + 1)
    assert "BufferRealize" not in str(func)


def test_an_output_can_be_computed_inside_another(run: Any) -> None:
    D = te.compute((N, N), lambda i, j: P[i, j] + 1.0, name="D")
    s = te.create_schedule([P, D])
    s[P].compute_at(s[D], D.op.axis[0])
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    p, d = np.full((N, N), np.nan, np.float32), np.full((N, N), np.nan, np.float32)

    run(s, [A, P, D], a, p, d)

    np.testing.assert_array_equal(p, 2 * a)
    np.testing.assert_array_equal(d, 2 * a + 1)


def test_an_init_computed_after_its_use_is_refused(nest: Any, run: Any) -> None:
    S = te.compute((N,), lambda i: te.sum(A[i, k], axis=k, init=P[i, 0]), name="S")
    s = te.create_schedule(S)
    s[P].compute_at(s[S], k)

    with pytest.raises(LowerError) as caught:
        nest(s, [A, S])

    assert diagnostic(caught.value) == (
        Diagnostic(
            "dependence-violation", where="s[P].compute_at(s[S], k)", subject="init=", parent="S", name="P",
            loops="of the reduction",
        )
    )
    s[P].compute_at(s[S], S.op.axis[0])
    a, result = np.ones((N, N), np.float32), np.full(N, np.nan, np.float32)
    run(s, [A, S], a, result)
    np.testing.assert_array_equal(result, np.full(N, N + 2))


@pytest.mark.parametrize("rows", [N, 0])
def test_a_reader_outside_is_refused_whether_the_loop_runs_or_not(nest: Any, rows: int) -> None:
    D = te.compute((rows, N), lambda i, j: P[i, j] + 1.0, name="D")
    s = te.create_schedule([D, Q])
    s[P].compute_at(s[D], D.op.axis[0])

    with pytest.raises(LowerError) as caught:
        nest(s, [A, D, Q])

    assert diagnostic(caught.value) == (
        Diagnostic("dependence-violation", where="s[P].compute_at(s[D], i)", stage="Q", name="P")
    )


@pytest.mark.parametrize("rows", [N - 1, 0])
def test_an_argument_that_would_be_written_in_part_is_refused(nest: Any, rows: int) -> None:
    D = te.compute((rows, N), lambda i, j: P[i, j] + 1.0, name="D")
    s = te.create_schedule(D)
    s[P].compute_at(s[D], D.op.axis[0])

    with pytest.raises(LowerError) as caught:
        nest(s, [A, P, D])

    assert diagnostic(caught.value) == (
        Diagnostic("dependence-violation", name="P")
    )


def test_an_argument_that_is_updated_again_in_parallel_is_refused(nest: Any) -> None:
    """The iterations of a parallel loop would write the same elements of an argument."""
    D = te.compute((N, N), lambda i, j: P[0, j] + A[i, j], name="D")
    E = te.compute((N, N), lambda i, j: D[i, j] + P[i, j], name="E")
    s = te.create_schedule(E)
    s[D].compute_at(s[E], E.op.axis[0])
    s[P].compute_at(s[E], E.op.axis[0])
    s[E].parallel(E.op.axis[0])

    with pytest.raises(LowerError) as caught:
        nest(s, [A, P, E])

    assert diagnostic(caught.value) == (
        Diagnostic("dependence-violation", call="s[E].parallel(i)", first=0, second=1, name="P", indices="0, 0")
    )


def test_a_producer_with_a_reader_attached_later(run: Any) -> None:
    D = te.compute((N, N), lambda i, j: P[i, j] - 1.0, name="D")
    E = te.compute((N, N), lambda i, j: D[i, j] * P[i, j], name="E")
    s = te.create_schedule(E)
    s[P].compute_at(s[E], E.op.axis[0])
    s[D].compute_at(s[E], E.op.axis[1])
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    e = np.full((N, N), np.nan, np.float32)

    run(s, [A, E], a, e)

    np.testing.assert_array_equal(e, (2 * a - 1) * (2 * a))


def loop_was_replaced(s: Schedule) -> None:
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[Q].transform_layout(lambda i, j: [j, i])


def consumer_was_inlined(s: Schedule) -> None:
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[Q].compute_inline()


def reader_left_outside(s: Schedule) -> None:
    s[Q].compute_at(s[R], R.op.axis[0])


@pytest.mark.parametrize("change", ["split", "fuse", "both"])
def test_loops_may_change_after_compute_at(agrees: Any, change: str) -> None:
    """The attach point is the inner loop after a split, and the fused loop after a fusion."""
    E = te.compute((N, N), lambda i, j: P[i, j] + 1.0, name="E")
    s = te.create_schedule(E)
    i, j = E.op.axis
    s[P].compute_at(s[E], j)
    if change == "split":
        place = s[E].split(j, factor=3)[1]
    else:
        place = s[E].fuse(i, j)
        place = s[E].split(place, factor=5)[1] if change == "both" else place
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)

    assert s.state.stage(P.op).attach == ComputedAt(E.op, place)
    assert tecomp.replay(s.trace.to_json(), E).trace.to_json() == s.trace.to_json()
    agrees(s, [A, E], {A: a, E: 2 * a + 1})


REFUSED: dict[str, tuple[Chain, Diagnostic]] = {
    "the loop was replaced": (
        loop_was_replaced,
        Diagnostic(
            "unknown-loop", where="s[P].compute_at(s[Q], i)", axis="i", parent="Q", loops="j, i",
        ),
    ),
    "the consumer was inlined": (
        consumer_was_inlined,
        Diagnostic("lower", where="s[P].compute_at(s[Q], i)", parent="Q"),
    ),
    "a reader outside": (
        reader_left_outside,
        Diagnostic("dependence-violation", where="s[Q].compute_at(s[R], i)", stage="C", name="Q"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, nest: Any) -> None:
    chain, expected = REFUSED[case]
    s = te.create_schedule(R)
    chain(s)

    with pytest.raises(LowerError) as caught:
        nest(s, [A, R])

    assert diagnostic(caught.value) == expected


def test_repeated_reads_are_inlined_once(nest: Any) -> None:
    X = te.placeholder((N,), name="X")
    results = [X]
    for k in range(100):
        results.append(te.compute(
            (N,), lambda i: results[-1][(i + 1) % N] * results[-1][(i + 1) % N] + 1.0, name=f"P{k}"))
    s = te.create_schedule(results[-1])
    for stage in results[1:-1]:
        s[stage].compute_inline()

    products = [
        node for node in walk(nest(s, [X, results[-1]]).body)
        if isinstance(node, Binary) and node.op is BinOp.MUL and node.dtype == "float32"
    ]
    assert len(products) == 100


@pytest.mark.exhaustive
def test_more_operations_than_can_be_compiled(nest: Any) -> None:
    X = te.placeholder((N,), name="X")
    results = [X]
    for k in range(20):
        results.append(te.compute(
            (N,), lambda i: results[-1][i * 2 % N] * results[-1][(i + 1) % N] + 1.0, name=f"P{k}"))
    s = te.create_schedule(results[-1])
    for stage in results[1:-1]:
        s[stage].compute_inline()

    with pytest.raises(LowerError) as caught:
        nest(s, [X, results[-1]])

    assert diagnostic(caught.value) == (
        Diagnostic("limit-exceeded", stage="P13", count=98298, most_operations=65536)
    )


def test_outputs_with_readers_may_be_attached() -> None:
    B = te.compute((N, N), lambda i, j: A[i, j] + 1.0, name="B")
    D = te.compute((N, N), lambda i, j: B[i, j] * 2.0, name="D")
    s = te.create_schedule([B, D])
    a = np.arange(N * N, dtype="float32").reshape(N, N)
    d = np.zeros_like(a)

    tecomp.build(s, [A, D])(a, d)

    np.testing.assert_array_equal(d, 2 * (a + 1))
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, B])
    assert diagnostic(error.value) == (
        Diagnostic("argument-list", name="D")
    )


OTHER = te.placeholder((N, N), name="OTHER")
OTHER_ONE = te.compute((N,), lambda i: OTHER[i, 0], name="OTHER_ONE")
T = te.compute((N,), lambda i: (A[i, 0], A[i, 1]), name="T")
S = te.compute((N,), lambda i: T[0][i] + T[1][i], name="S")

ARGUMENTS: dict[str, tuple[object, Diagnostic]] = {
    "a placeholder left out": (
        [R], Diagnostic("argument-list", stage="A", state="P"),
    ),
    "the output left out": (
        [A], Diagnostic("argument-list", name="R"),
    ),
    "a tensor of another computation": (
        [A, OTHER_ONE, R],
        Diagnostic("argument-list", position=1, arg="OTHER_ONE", names="A, P, Q, C, R"),
    ),
    "twice": (
        [A, R, A], Diagnostic("duplicate-argument", seen=0, position=2, arg="A"),
    ),
    "an operation": (
        [A, R.op], Diagnostic("invalid-type", position=1, arg=str(R.op)),
    ),
    "None": ([A, R, None], Diagnostic("invalid-type", position=2, arg=None)),
    "one tensor": (A, Diagnostic("invalid-type", args=str(A))),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_are_refused(case: str, nest: Any) -> None:
    args, expected = ARGUMENTS[case]
    s = te.create_schedule(R)

    with pytest.raises(TecompError) as caught:
        nest(s, args)

    assert diagnostic(caught.value) == expected


def test_the_read_of_a_missing_placeholder_is_shown(nest: Any) -> None:
    s = te.create_schedule(R)

    with pytest.raises(LowerError) as caught:
        nest(s, [R])

    assert caught.value.location is not None
    assert caught.value.location.text == "A[i, j]"


def test_arguments_that_nothing_reads_or_that_are_inlined(agrees: Any) -> None:
    """Unused and inlined arguments are checked like other arguments, and not written."""
    n = te.var("n")
    other = te.placeholder((n,), "int8", name="other")
    s = te.create_schedule(R)
    s[P].compute_inline()
    s[Q].compute_inline()
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    untouched = np.full((N, N), 77, np.float32)

    kernel = agrees(s, [A, other, P, R], {
        A: a, other: np.ones(5, "int8"), P: untouched, R: oracle(a)}, rtol=1e-6)

    assert "writes R" in repr(kernel)
    with pytest.raises(tecomp.CallError) as error:
        kernel(a, np.ones(5, "int16"), untouched, np.zeros(N, np.float32))
    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-mismatch", where="argument 1 (other) of main", parameter="int8[n]",
            shape="int16[5]", scalar="np.int8",
        )
    )


def test_one_output_of_two_is_refused(nest: Any) -> None:
    s = te.create_schedule(S)

    with pytest.raises(LowerError) as caught:
        nest(s, [A, T[1], S])

    assert diagnostic(caught.value) == (
        Diagnostic("argument-list", name="T_v0")
    )


def test_a_cache_can_be_an_argument(run: Any) -> None:
    s = te.create_schedule(Q)
    PP = s.cache_read(P, "global", [Q])
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    copy, q = np.full((N, N), np.nan, np.float32), np.full((N, N), np.nan, np.float32)

    run(s, [A, PP, Q], a, copy, q)

    np.testing.assert_array_equal(copy, 2 * a)
    np.testing.assert_array_equal(q, 2 * a + 1)


def test_a_scalar_argument_may_be_negative(run: Any) -> None:
    """A scalar that is not an extent can be negative, so the guard must stay."""
    shift = te.var("shift")
    V = te.placeholder((N,), name="V")
    D = te.compute(
        (N,), lambda i: te.if_then_else(te.all(i + shift >= 0, i + shift < N), V[i + shift], 0.0),
        name="D",
    )
    for value in (-3, 0, 4, 100):
        s = te.create_schedule(D)
        s[D].split(D.op.axis[0], factor=4)
        v, d = np.arange(1, N + 1, dtype=np.float32), np.full(N, np.nan, np.float32)

        run(s, [shift, V, D], value, v, d)

        expected = [v[i + value] if 0 <= i + value < N else 0 for i in range(N)]
        np.testing.assert_array_equal(d, expected)


def test_a_swizzled_stage_inside_a_loop(run: Any) -> None:
    """The stage's loops are not affine in its axes; its region depends on the outer loop."""
    s = te.create_schedule(Q)
    i, _ = s[Q].op.axis
    outer, _ = s[Q].split(i, factor=4)
    s[P].transform_layout(lambda i, j: [i ^ j % 4, j])
    s[P].compute_at(s[Q], outer)
    a = np.arange(N * N, dtype=np.float32).reshape(N, N)
    q = np.full((N, N), np.nan, np.float32)

    run(s, [A, Q], a, q)

    np.testing.assert_array_equal(q, 2 * a + 1)
