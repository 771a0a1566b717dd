"""create_schedule and stage handles: arguments, text and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import MissingError, ScheduleError
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
D = te.compute((4,), lambda i: B[i] * 3.0, name="D")
T = te.compute((4,), lambda i: (A[i], A[i] + 1.0), name="T")


@pytest.mark.parametrize("outputs", [C, C.op, [C], (C.op,), [C, C.op]])
def test_outputs_are_named_by_tensors_or_operations(outputs: Any) -> None:
    s = te.create_schedule(outputs)

    assert s.outputs == (C.op,)
    assert [stage.op for stage in s.stages] == [A.op, B.op, C.op]


def test_several_outputs_share_their_producers() -> None:
    s = te.create_schedule([D, C])

    assert s.outputs == (D.op, C.op)
    assert repr(s) == "Schedule(A, B, D, C)"


def test_a_tensor_and_its_operation_name_the_same_stage() -> None:
    s = te.create_schedule(C)

    assert s[C].op is s[C.op].op is C.op


def test_all_outputs_of_an_operation_name_its_stage() -> None:
    s = te.create_schedule(T[0])

    s[T[1]].split(T[0].op.axis[0], factor=2)

    assert len(s[T[0]].leaf_iter_vars) == 2


def test_repr_shows_loops() -> None:
    s = te.create_schedule(C)
    s[C].split(C.op.axis[0], factor=2)

    assert repr(s[C]) == "Stage(C: i.outer, i.inner)"
    assert repr(s[A]) == "Stage(A: )"
    assert s[A].all_iter_vars == s[A].leaf_iter_vars == ()


def test_stage_handles_are_unique() -> None:
    s = te.create_schedule(C)

    assert s[C] == s[C.op] != s[B]
    assert len({s[C], s[C.op], s[B]}) == 2
    assert s[C] != te.create_schedule(C)[C]
    assert s[C] != C


def test_repr_shows_the_compute_location() -> None:
    s = te.create_schedule(C)
    assert (s[B].attach_stage, s[B].attach_ivar) == (None, None)

    s[B].compute_at(s[C], C.op.axis[0])

    assert (s[B].attach_stage, s[B].attach_ivar) == (s[C], C.op.axis[0])
    assert [stage.is_output for stage in s.stages] == [False, False, True]


def test_a_stage_has_its_operation() -> None:
    s = te.create_schedule(C)
    s.cache_write(C, "local")

    assert s[C].origin_op is C.op
    assert s[C].op is not C.op


def test_a_normalized_schedule_has_the_same_decisions() -> None:
    s = te.create_schedule(C)
    outer, inner = s[C].split(C.op.axis[0], factor=2)

    normal = s.normalize()
    normal[C].unroll(inner)

    assert normal[C].leaf_iter_vars == (outer, inner)
    assert "unrolled" not in str(tecomp.lower(s, [A, C], simple_mode=True))


@pytest.mark.parametrize("op", [A.op, C.op])
def test_operations_have_a_tag(op: Any) -> None:
    assert op.tag == ""


def test_a_tensor_is_found_by_the_name_that_the_trace_gives_it() -> None:
    s = te.create_schedule(C)

    assert s.tensor("B") == B


def test_stages_of_equal_name_are_distinguished_in_the_trace() -> None:
    P = te.compute((4,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((4,), lambda i: P[i] + 1.0, name="P")
    s = te.create_schedule(Q)

    assert s.tensor("P") == P
    assert s.tensor("P_1") == Q


def test_a_schedule_of_nothing_computes_nothing() -> None:
    s = te.create_schedule([])
    a = np.ones(4, "float32")

    tecomp.build(s, [A])(a)

    assert (s.stages, s.outputs, a.tolist()) == ((), (), [1.0] * 4)
    assert str(tecomp.lower(s, [])) == "def main():\n    pass"
    assert tecomp.replay(s.trace.to_json(), []).stages == ()


REFUSED: dict[str, tuple[Callable[[], object], Diagnostic]] = {
    "no operation": (
        lambda: te.create_schedule(3),  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="create_schedule", handle=3),
    ),
    "a list with something else": (
        lambda: te.create_schedule([C, "D"]),  # type: ignore[list-item]
        Diagnostic("invalid-type", where="create_schedule", handle="D"),
    ),
    "a stage that is not there": (
        lambda: te.create_schedule(C)[D],
        Diagnostic("not-in-schedule", op="D", names="A, B, C"),
    ),
    "a stage by a number": (
        lambda: te.create_schedule(C)[0],  # type: ignore[index]
        Diagnostic("invalid-type", where="s[...]", handle=0),
    ),
    "a stage by a name that none has": (
        lambda: te.create_schedule(C)["X"],
        Diagnostic("not-in-schedule", name="X", known="A, B, C"),
    ),
    "an unknown name": (
        lambda: te.create_schedule(C).tensor("X"),
        Diagnostic("not-in-schedule", name="X", known="A, B, C"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    action, expected = REFUSED[case]

    with pytest.raises(ScheduleError) as caught:
        action()

    assert diagnostic(caught.value) == expected
    assert caught.value.location is not None
    assert Path(caught.value.location.file) == Path(__file__)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        ("s[B]", "vectorise", Diagnostic(
            "unsupported-name", called="s[B]", name="vectorise", suggestion="vectorize",
        )),
        ("s[B]", "Split", Diagnostic("unsupported-name", called="s[B]", name="Split", suggestion="split")),
        ("s", "cache_wirte", Diagnostic(
            "unsupported-name", called="s", name="cache_wirte", suggestion="cache_write",
        )),
    ],
)
def test_names_that_are_misspelt(owner: str, name: str, expected: Diagnostic) -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    with pytest.raises(MissingError) as caught:
        getattr(s[B] if owner == "s[B]" else s, name)

    assert diagnostic(caught.value) == expected


def test_unknown_names() -> None:
    A = te.placeholder((8,), name="A")
    s = te.create_schedule(te.compute((8,), lambda i: A[i] + 1.0, name="B"))

    assert not hasattr(s, "quaternion")
    assert not hasattr(s["B"], "_quaternion")
