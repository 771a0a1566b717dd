"""Warnings for user schedules that recompute much, copy much, or load with large strides."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tecomp import te
from tecomp.errors import TecompWarning
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4096,), name="A")
k = te.reduce_axis((0, 4096), name="k")
B = te.compute((4096,), lambda i: te.exp(A[i]), name="B")
C = te.compute((4096,), lambda i: te.sum(B[k] * i, axis=k), name="C")
X = te.placeholder((1024, 1024), name="X")
Y = te.compute((1024, 1024), lambda i, j: X[i, j] + 1.0, name="Y")
Z = te.placeholder((2**20, 1000), name="Z")
W = te.compute((2**20, 1000), lambda i, j: Z[i, j] + 1.0, name="W")


def recomputed() -> tuple[te.Schedule, list[te.Tensor]]:
    s = te.create_schedule(C)
    s[B].compute_at(s[C], C.op.axis[0])
    return s, [A, C]


def large_stride() -> tuple[te.Schedule, list[te.Tensor]]:
    s = te.create_schedule(Y)
    s[Y].vectorize(s[Y].split(Y.op.axis[0], factor=16)[1])
    return s, [X, Y]


def large_copy() -> tuple[te.Schedule, list[te.Tensor]]:
    s = te.create_schedule(W)
    s.cache_read(Z, "local", [W])
    return s, [Z, W]


def machine() -> tecomp.Target:
    return tecomp.Target.load("cpu")


CORE = machine().core
CASES: dict[Callable[[], Any], tuple[str, str, Diagnostic]] = {
    recomputed: (
        "TE1100", "s[B].compute_at(s[C], C.op.axis[0])",
        Diagnostic("redundant-computation", stage="B", count=16777216, size=4096),
    ),
    large_stride: (
        "TE1102", "s[Y].vectorize(s[Y].split(Y.op.axis[0], factor=16)[1])",
        Diagnostic("large-stride", loop_var="i.inner", step=1024, buffer="Y"),
    ),
    large_copy: (
        "TE1101", 's.cache_read(Z, "local", [W])',
        Diagnostic(
            "large-copy", call="cache_read", buffer="Z_local", size=4 * 2**20 * 1000,
            limit=CORE.cache_bytes[-1] if CORE else None,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_user_is_warned_at_the_call(case: Callable[[], Any]) -> None:
    code, line, expected = CASES[case]
    s, args = case()
    with pytest.raises(TecompWarning) as caught:
        tecomp.build(s, args)

    assert caught.value.code == code
    assert diagnostic(caught.value) == expected
    assert str(caught.value) == f"{caught.value.message} ({code})"
    assert caught.value.location is not None
    assert caught.value.location.text == line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_warning_is_emitted_once_at_its_line(
    case: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tecomp.errors._WARNED", {})
    with warnings.catch_warnings(record=True) as source:
        warnings.simplefilter("default")
        for _ in range(3):
            tecomp.build(*case())

    location = case.__code__.co_firstlineno
    assert [item.category for item in source] == [TecompWarning]
    assert source[0].filename == __file__
    assert location < source[0].lineno < location + 3


def test_advice_keeps_foreign_schedules() -> None:
    """Library schedules, automatic schedules and replayed schedules cause no warning."""
    s, args = large_stride()
    tecomp.build(tecomp.replay(s.trace.to_json(), Y), args)
    tecomp.build(Y, args)
    tecomp.build(C, [A, C])


def test_small_programs_and_single_copies_are_left_alone() -> None:
    P = te.placeholder((64, 64), name="P")
    Q = te.compute((64, 64), lambda i, j: P[i, j] + 1.0, name="Q")
    s = te.create_schedule(Q)
    s[Q].vectorize(s[Q].split(Q.op.axis[0], factor=16)[1])
    tecomp.build(s, [P, Q])
    s = te.create_schedule(W)
    inner = s[W].split(W.op.axis[0], factor=64)[0]
    s[s.cache_read(Z, "local", [W])].compute_at(s[W], inner)
    tecomp.build(s, [Z, W])
