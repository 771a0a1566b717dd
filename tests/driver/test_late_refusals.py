"""Errors that only lowering detects name the line of the primitive and the expression."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tecomp import te

A = te.placeholder((64, 64), name="A")
B = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="B")
C = te.compute((64, 64), lambda i, j: B[j, i] * 2.0, name="C")
D = te.compute((64, 64), lambda i, j: B[i, j] + C[i, j], name="D")
ROWS = te.compute((63, 64), lambda i, j: B[i, j] + B[i + 1, j], name="ROWS")


def plus() -> Any:
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    body = lambda ins, outs: te.for_range(0, 4, lambda i: outs[0].store(i, ins[0][i] + 1.0))  # noqa: E731
    return te.decl_tensor_intrin(b.op, body, name="plus")


def compute_at() -> Any:
    s = te.create_schedule(D)
    s[B].compute_at(s[D], D.op.axis[0])
    return s, [A, D], "cpu"


def set_scope() -> Any:
    s = te.create_schedule(C)
    s[B].set_scope("vtcm")
    return s, [A, C], "cpu"


def cache_read() -> Any:
    s = te.create_schedule(B)
    s.cache_read(A, "vtcm", [B])
    return s, [A, B], "cpu"


def bind() -> Any:
    s = te.create_schedule(B)
    s[B].bind(B.op.axis[0], te.thread_axis("core.x"))
    return s, [A, B], "tensix_wh"


def tensorize() -> Any:
    s = te.create_schedule(C)
    inner = s[C].split(C.op.axis[1], factor=4)[1]
    s[C].tensorize(inner, plus())
    return s, [A, C], "cpu"


def rolling_buffer() -> Any:
    s = te.create_schedule(ROWS)
    s[B].rolling_buffer()
    return s, [A, ROWS], "cpu"


def unroll() -> Any:
    X = te.placeholder((2**20,), name="X")
    Y = te.compute((2**20,), lambda i: X[i] + 1.0, name="Y")
    s = te.create_schedule(Y)
    s[Y].unroll(Y.op.axis[0])
    return s, [X, Y], "cpu"


def capacity() -> Any:
    X = te.placeholder((2**24,), name="X")
    Y = te.compute((2**24,), lambda i: X[i] + 1.0, name="Y")
    s = te.create_schedule(Y)
    s.cache_read(X, "global.vtcm", [Y])
    return s, [X, Y], "vtcm2d"


CASES: list[tuple[Callable[[], Any], str]] = [
    (compute_at, "s[B].compute_at(s[D], D.op.axis[0])"),
    (set_scope, 's[B].set_scope("vtcm")'),
    (cache_read, 's.cache_read(A, "vtcm", [B])'),
    (bind, 's[B].bind(B.op.axis[0], te.thread_axis("core.x"))'),
    (tensorize, "s[C].tensorize(inner, plus())"),
    (rolling_buffer, "s[B].rolling_buffer()"),
    (unroll, "s[Y].unroll(Y.op.axis[0])"),
    (capacity, 's.cache_read(X, "global.vtcm", [Y])'),
]


@pytest.mark.parametrize(("case", "line"), CASES, ids=lambda item: getattr(item, "__name__", ""))
def test_the_place_matches_the_primitive(case: Callable[[], Any], line: str) -> None:
    s, args, target = case()
    with pytest.raises(tecomp.TecompError) as caught:
        tecomp.build(s, args, target)
    with pytest.raises(tecomp.TecompError) as repeated:
        tecomp.build(copy.copy(s), args, target)

    assert caught.value.location is not None
    assert caught.value.location.text == line
    assert caught.value.location.file == __file__
    assert repeated.value.location == caught.value.location


def test_lower_raises_the_same_error() -> None:
    s, args, _ = compute_at()
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.lower(s, args)

    assert str(caught.value.location).endswith(": s[B].compute_at(s[D], D.op.axis[0])")


def test_errors_of_replayed_schedules_point_to_the_lowering_call() -> None:
    s, args, _ = compute_at()
    replayed = tecomp.replay(s.trace.to_json(), D)
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.lower(replayed, args)

    assert caught.value.location is not None
    assert caught.value.location.text == "tecomp.lower(replayed, args)"
