"""Store predicates, and thread loops, which run sequentially."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((8, 64), name="A")
C = te.compute((8, 64), lambda i, j: A[i, j] * 2.0, name="C")
DATA = np.random.default_rng(1).random((8, 64)).astype("float32")
LANE, ROW = np.arange(64), np.arange(8)[:, None]


def where(condition: Any) -> Any:
    """Return the stored elements where the condition holds, and the initial value elsewhere."""
    return np.where(np.broadcast_to(condition, (8, 64)), DATA * 2, np.float32(77))


def of_a_thread(s: te.Schedule) -> te.Expr:
    thread = te.thread_axis((0, 16), "threadIdx.x", name="tx")
    s[C].bind(s[C].split(C.op.axis[1], factor=16)[1], thread)
    condition: te.Expr = te.all(thread.var < 3, C.op.axis[0] > 2)
    return condition


def of_an_axis(s: te.Schedule) -> te.Expr:
    s[C].fuse(*C.op.axis)
    return te.any(C.op.axis[1] == 5, te.logical_not(C.op.axis[0] < 7))


def of_a_loop(s: te.Schedule) -> te.Expr:
    outer, inner = s[C].split(C.op.axis[1], factor=24)
    s[C].reorder(inner, C.op.axis[0], outer)
    return outer.equal(2)


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize(
    ("predicate", "stored"),
    [
        (of_a_thread, (LANE % 16 < 3) & (ROW > 2)), (of_an_axis, (LANE == 5) | (ROW >= 7)),
        (of_a_loop, LANE >= 48), (lambda s: C.op.axis[0] < 0, np.zeros((8, 64), bool)),
    ],
)
def test_store_predicates_limit_writes(agrees: Any, predicate: Any, stored: Any, vectors: bool) -> None:
    s = te.create_schedule(C)
    s[C].set_store_predicate(predicate(s))
    if vectors:
        s[C].vectorize(s[C].leaf_iter_vars[-1])
    replayed = tecomp.replay(s.trace.to_json(), C)
    scope: dict[str, Any] = {"te": te}
    exec(s.trace.to_python(), scope)

    assert replayed.trace.to_json() == s.trace.to_json()
    assert str(tecomp.lower(scope["schedule"](C), [A, C])) == str(tecomp.lower(s, [A, C]))
    agrees(s, [A, C], {A: DATA, C: where(stored)})


@pytest.mark.parametrize("inside", [False, True])
def test_one_thread_stores_the_replicated_result(agrees: Any, inside: bool) -> None:
    """Partial sums are computed across threads, and the first thread stores the total."""
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    partial: Any = s.rfactor(B, s[B].split(k, factor=16)[1])
    outer, inner = s[B].split(s[B].op.axis[0], factor=4)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.y"))
    thread, loop = te.thread_axis("threadIdx.x"), s[B].op.reduce_axis[0]
    s[B].bind(loop, thread)
    s[partial].compute_at(s[B], loop if inside else outer)
    s[B].set_store_predicate(thread.var.equal(0))

    agrees(s, [A, B], {A: DATA, B: DATA.sum(1)}, rtol=1e-5)


def test_threads_share_memory_of_a_block(agrees: Any) -> None:
    """Copies and stages in shared memory and virtual threads run as sequential loops."""
    D = te.compute((8, 64), lambda i, j: C[i, j] + C[i, 63 - j], name="D")
    s = te.create_schedule(D.op)
    i, j = D.op.axis
    copy = s.cache_read(A, "shared", C)
    s[C].set_scope("shared")
    s[D].bind(i, te.thread_axis("blockIdx.x"))
    vx, tx = s[D].split(j, nparts=2)
    s[D].bind(vx, te.thread_axis("vthread"))
    s[D].bind(tx, te.thread_axis("threadIdx.x"))
    for stage in (C, copy):
        s[stage].compute_at(s[D], i)
        s[stage].bind(s[stage].split(s[stage].op.axis[1], nparts=32)[0], te.thread_axis("threadIdx.x"))

    agrees(s, [A, D], {A: DATA, D: 2 * DATA + 2 * DATA[:, ::-1]}, rtol=1e-6)


def test_thread_axes_replace_their_loop_in_predicates(agrees: Any) -> None:
    D = te.compute((8, 64), lambda i, j: C[i, j] + 1.0, name="D")
    s = te.create_schedule(D.op)
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    s[D].bind(D.op.axis[0], block)
    s[C].compute_at(s[D], block)

    assert s[C].attach_ivar is D.op.axis[0]
    with pytest.raises(tecomp.ScheduleError) as error:
        s[C].compute_at(s[D], thread)
    assert diagnostic(error.value) == (
        Diagnostic(
            "thread-axis", where="s[C].compute_at(s[D])", stage="D", tag="threadIdx.x",
            tags="blockIdx.x",
        )
    )
    agrees(s, [A, D], {A: DATA, D: DATA * 2 + 1}, rtol=1e-6)


def test_threads_around_a_scan(agrees: Any) -> None:
    state = te.placeholder((8, 64), name="state")
    init = te.compute((1, 64), lambda t, i: A[t, i], name="init")
    update = te.compute((8, 64), lambda t, i: state[t - 1, i] + A[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    s = te.create_schedule(S.op)
    block, thread = te.thread_axis((0, 4), "blockIdx.x"), te.thread_axis((0, 16), "threadIdx.x")
    s[S].env_threads([block, thread])
    for stage in (init, update):
        outer, inner = s[stage].split(stage.op.axis[1], factor=16)
        s[stage].bind(inner, thread)
        s[stage].bind(outer, te.thread_axis((0, 4), "threadIdx.y"))

    agrees(s, [A, S], {A: DATA, S: DATA.cumsum(0)}, rtol=1e-5)


def test_threads_around_a_scan_are_thread_axes() -> None:
    state = te.placeholder((8, 64), name="state")
    init = te.compute((1, 64), lambda t, i: A[t, i], name="init")
    S = te.scan(init, te.compute((8, 64), lambda t, i: state[t - 1, i]), state, name="S")

    no_thread: Any = "threadIdx.x"

    with pytest.raises(tecomp.ScheduleError) as error:
        te.create_schedule(S.op)[S].env_threads([no_thread])
    assert diagnostic(error.value) == (
        Diagnostic("thread-axis", where="s[S].env_threads", thread="threadIdx.x")
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda s: s[C].set_store_predicate(3), Diagnostic(
            "invalid-type", where="s[C].set_store_predicate", predicate=3,
        )),
        (lambda s: s[C].set_store_predicate(C.op.axis[0] + 1), Diagnostic(
            "invalid-type", where="s[C].set_store_predicate", predicate="i + int32(1)",
        )),
        (lambda s: s[C].set_store_predicate(A[0, 0] > 1), Diagnostic(
            "thread-axis", where="s[C].set_store_predicate", node="A[int32(0), int32(0)]",
            stage="C",
        )),
        (lambda s: s[A].set_store_predicate(te.var("n") > 1),
         Diagnostic("unknown-loop", name="A")),
        (lambda s: s[C].env_threads(te.thread_axis("threadIdx.x")), Diagnostic(
            "pattern-mismatch", where="s[C].env_threads", stage="C",
        )),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[te.Schedule], object], expected: Diagnostic) -> None:
    s = te.create_schedule(C)

    with pytest.raises(tecomp.ScheduleError) as error:
        call(s)
    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (lambda t, i: te.any(t.var < 3, i > t.var),
         Diagnostic(
             "thread-axis", stage="B", thread="tx", threads="threads",
             plural=" different elements", stored="tx < int32(3) or i > tx",
         )),
        (lambda t, i: t.var > 99,
         Diagnostic(
             "thread-axis", stage="B", thread="tx", threads="no thread", plural="s",
             stored="tx > int32(99)",
         )),
    ],
)
def test_threads_that_do_not_agree(predicate: Any, expected: Diagnostic) -> None:
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis((0, 64), "threadIdx.x", name="tx")
    s[B].bind(k, thread)
    s[B].set_store_predicate(predicate(thread, B.op.axis[0]))

    with pytest.raises(tecomp.LowerError) as error:
        tecomp.lower(s, [A, B])
    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (4096, Diagnostic(
            "thread-axis", stage="B", thread="tx", threads="threads",
            plural=" different elements",
            stored="tx == int32(0) and i < int32(2) or tx == int32(2000)",
        )),
        (70000, Diagnostic("thread-axis", stage="B", thread="tx", newest=70000, most_threads=65536)),
    ],
)
def test_many_threads(count: int, expected: Diagnostic) -> None:
    """A predicate under which several threads store is rejected for any number of threads."""
    X = te.placeholder((8, count), name="X")
    k = te.reduce_axis((0, count), name="k")
    B = te.compute((8,), lambda i: te.sum(X[i, k], axis=k), name="B")
    thread, i = te.thread_axis((0, count), "threadIdx.x", name="tx"), B.op.axis[0]
    s = te.create_schedule(B.op)
    s[B].bind(k, thread)
    s[B].set_store_predicate(te.any(te.all(thread.var.equal(0), i < 2), thread.var.equal(2000)))

    with pytest.raises(tecomp.LowerError) as error:
        tecomp.lower(s, [X, B])
    assert diagnostic(error.value) == expected


def test_a_thread_that_no_loop_is_bound_to() -> None:
    s = te.create_schedule(C)
    s[C].set_store_predicate(te.thread_axis("threadIdx.x").var.equal(0))

    with pytest.raises(tecomp.LowerError) as error:
        tecomp.lower(s, [A, C])
    assert diagnostic(error.value) == (
        Diagnostic("thread-axis", stage="C", tag="threadIdx.x")
    )
