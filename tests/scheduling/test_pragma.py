"""Pragmas: auto-unrolling of short loops, and warnings for unknown pragmas."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic
from tests.scheduling.conftest import Refusal

A = te.placeholder((8, 30), name="A")
k = te.reduce_axis((0, 30), name="k")
R = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="R")
C = te.compute((8, 30), lambda i, j: A[i, j] + 1.0, name="C")


def loops(s: Schedule, *args: Any) -> list[str]:
    """Return the loop kinds in program order."""
    text = str(tecomp.lower(s, args, stop_after="nest"))
    return re.findall(r"for \w+ in (\w+)\(", text)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, ["range", "range", "range"]),
        (2, ["range", "range", "range"]),
        (3, ["range", "range", "unrolled"]),
        (29, ["range", "range", "unrolled"]),
        (30, ["range", "unrolled", "unrolled"]),
        (1000, ["range", "unrolled", "unrolled"]),
    ],
)
def test_loops_inside_are_written_out_up_to_a_number_of_statements(
    most: int, expected: list[str]
) -> None:
    s = te.create_schedule(C)
    s[C].split(C.op.axis[1], factor=3)
    s[C].pragma(C.op.axis[0], "auto_unroll_max_step", most)

    assert loops(s, A, C) == expected


def test_a_vector_is_one_statement() -> None:
    s = te.create_schedule(C)
    _, inner = s[C].split(C.op.axis[1], factor=15)
    s[C].vectorize(inner)
    s[C].pragma(C.op.axis[0], "auto_unroll_max_step", 2)

    assert loops(s, A, C) == ["range", "unrolled", "vectorized"]


def test_loops_without_a_fixed_number_of_iterations_stay() -> None:
    s = te.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[1], factor=7)
    s[C].pragma(outer, "auto_unroll_max_step", 100)

    assert loops(s, A, C) == ["range", "range", "range"]


def test_numbers_stay_the_same() -> None:
    s = te.create_schedule(R)
    outer, _ = s[R].split(k, factor=5)
    s[R].pragma(R.op.axis[0], "auto_unroll_max_step", 64)
    s[R].pragma(outer, "unroll_explicit", True)
    a, r = np.arange(240, dtype="float32").reshape(8, 30), np.zeros(8, "float32")

    tecomp.build(s, [A, R], check_bounds=True)(a, r)

    np.testing.assert_array_equal(r, a.sum(1))


ALL = (
    "supported pragmas: auto_unroll_max_step, unroll_explicit, unroll, vectorize, "
    "parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish"
)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("import_llvm", "define", Diagnostic(
            "unknown-choice", where="s[R].pragma(i, 'import_llvm')", form="import_llvm",
            instead="compile the code to a shared library, and call its functions with te.call_extern",
            known="auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish",
        )),
        (None, None, Diagnostic(
            "unknown-choice", where="s[R].pragma(i, None)", form=None, instead="write a text",
            known="auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish",
        )),
        ("unroll_explicit", 3,
         Diagnostic(
             "invalid-type", where="s[R].pragma(i, 'unroll_explicit')",
             explicit="unroll_explicit", value=3,
         )),
        ("auto_unroll_max_step", None, Diagnostic(
            "invalid-value", where="s[R].pragma(i, 'auto_unroll_max_step')",
            steps="auto_unroll_max_step", value=None,
        )),
        ("auto_unroll_max_step", -1, Diagnostic(
            "invalid-value", where="s[R].pragma(i, 'auto_unroll_max_step')",
            steps="auto_unroll_max_step", value=-1,
        )),
    ],
)
def test_invalid_arguments_are_rejected(kind: Any, value: Any, expected: Diagnostic, refusal: Refusal) -> None:
    s = te.create_schedule(R)

    error = refusal(s, lambda: s[R].pragma(R.op.axis[0], kind, value))

    assert diagnostic(error) == expected


@pytest.mark.parametrize(("kind", "instead"), [
    ("vectorise", ""), ("storage_align", ""),
    ("debug_skip_region", "leave the stage out of the computation to see what it costs; "),
    ("tensor_core", "use te.dot for the dot products that the machine has; "),
])
def test_unknown_ones_are_warned_of_and_change_nothing(kind: str, instead: str) -> None:
    s, plain = te.create_schedule(C), te.create_schedule(C)

    with pytest.warns(UserWarning, match="has no effect") as found:
        s[C].pragma(C.op.axis[0], kind, 3)

    assert [str(item.message) for item in found] == [
        f"s[C].pragma(i, {kind!r}): unknown pragma {kind!r} has no effect here; "
        f"{instead}{ALL}"
    ]
    assert found[0].filename == __file__
    assert str(tecomp.lower(s, [A, C])) == str(tecomp.lower(plain, [A, C]))


@pytest.mark.parametrize("value", [True, False, 0, 1, None])
def test_unrolled_loops_ignore_explicit_unroll_pragmas(value: Any) -> None:
    s, plain = te.create_schedule(C), te.create_schedule(C)
    for item in (s, plain):
        _, inner = item[C].split(C.op.axis[1], factor=3)
        item[C].unroll(inner)
    s[C].pragma(C.op.axis[0], "unroll_explicit", value)
    replayed = tecomp.replay(s.trace.to_json(), C)

    assert str(tecomp.lower(s, [A, C])) == str(tecomp.lower(plain, [A, C]))
    assert replayed.trace.to_json() == s.trace.to_json()


@pytest.mark.parametrize(
    "kind", ["parallel_launch_point", "parallel_stride_pattern", "parallel_barrier_when_finish"]
)
def test_thread_pragmas_are_accepted(kind: str, refusal: Refusal) -> None:
    s, plain = te.create_schedule(C), te.create_schedule(C)
    for item in (s, plain):
        item[C].parallel(C.op.axis[0])
    s[C].pragma(C.op.axis[0], kind)
    replayed = tecomp.replay(s.trace.to_json(), C)

    assert str(tecomp.lower(s, [A, C])) == str(tecomp.lower(plain, [A, C]))
    assert replayed.trace.to_json() == s.trace.to_json()


@pytest.mark.parametrize(("kind", "way"), [("unroll", "unrolled"), ("vectorize", "vectorized")])
def test_loop_pragmas_set_the_loop_kind(kind: str, way: str) -> None:
    s = te.create_schedule(C)
    s[C].pragma(C.op.axis[1], kind)
    replayed = tecomp.replay(s.trace.to_json(), C)

    assert loops(s, A, C) == loops(replayed, A, replayed.tensor("C")) == ["range", way]


def test_a_reduction_is_no_vector_by_a_pragma_either(refusal: Refusal) -> None:
    s, other = te.create_schedule(R), te.create_schedule(R)

    error = refusal(s, lambda: s[R].pragma(k, "vectorize"))

    assert diagnostic(error) == diagnostic(refusal(other, lambda: other[R].vectorize(k)))


def test_pragmas_on_loops_of_other_stages_are_rejected(refusal: Refusal) -> None:
    s = te.create_schedule(R)

    error = refusal(s, lambda: s[R].pragma(C.op.axis[0], "unroll_explicit"))

    assert diagnostic(error) == (
        Diagnostic(
            "unknown-loop", stage="R", call="pragma",
            reason="axis i does not belong to R; its loops are now i, k, where i is another axis of that name; use that",
        )
    )


def test_pragmas_end_with_their_loop() -> None:
    s = te.create_schedule(R)
    s[R].pragma(R.op.axis[0], "unroll_explicit")
    s[R].split(R.op.axis[0], factor=2)

    assert not s.state.stage(R.op).pragmas
