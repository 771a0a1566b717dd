"""Location and storage of a stage: compute_at, inline, root, scope, storage_align."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tecomp import te
from tecomp.errors import ScheduleError
from tecomp.scheduling import AtRoot, ComputedAt, Inline
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((10, 12), name="A")
k = te.reduce_axis((0, 12), name="k")
P = te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")
Q = te.compute((10, 12), lambda u, v: P[u, v] + 1.0, name="Q")
R = te.compute((10,), lambda x: te.sum(Q[x, k], axis=k), name="R")
C = te.compute((10,), lambda y: R[y] + 1.0, name="C")
T = te.compute((10,), lambda i: (A[i, 0], A[i, 1]), name="T")
U = te.compute((10,), lambda z: T[0][z] + T[1][z], name="U")


def schedule() -> Schedule:
    return te.create_schedule([C, U])


def test_everything_starts_at_the_root() -> None:
    s = schedule()

    assert all(stage.attach == AtRoot() for stage in s.state)


def test_compute_at_returns_nothing_and_sets_the_place() -> None:
    s = schedule()

    assert s[P].compute_at(s[Q], Q.op.axis[0]) is None

    assert s.state.stage(P.op).attach == ComputedAt(Q.op, Q.op.axis[0])


@pytest.mark.parametrize("parent", [Q, Q.op])
def test_compute_at_takes_a_tensor_or_an_operation(parent: Any) -> None:
    s = schedule()

    s[P].compute_at(parent, Q.op.axis[1])

    assert s.state.stage(P.op).attach == ComputedAt(Q.op, Q.op.axis[1])


def test_compute_at_a_consumer_further_down() -> None:
    s = schedule()

    s[P].compute_at(s[C], C.op.axis[0])

    assert s.state.stage(P.op).attach == ComputedAt(C.op, C.op.axis[0])


def test_the_last_place_counts() -> None:
    s = schedule()
    s[P].compute_inline()
    assert s.state.stage(P.op).attach == Inline()

    s[P].compute_at(s[Q], Q.op.axis[0])
    s[P].compute_root()

    assert s.state.stage(P.op).attach == AtRoot()


def test_set_scope() -> None:
    s = schedule()

    s[P].set_scope("local")

    assert s[P].scope == "local"
    assert s[Q].scope == "global"


def test_set_scope_of_a_placeholder() -> None:
    s = schedule()

    s[A].set_scope("global.texture")

    assert s[A].scope == "global.texture"


def test_storage_align_is_kept_by_axis() -> None:
    s = schedule()
    i, j = P.op.axis
    s[P].storage_align(i, 8, 1)
    s[P].storage_align(j, 4, 0)

    s[P].storage_align(i, 16, 2)

    assert s.state.stage(P.op).aligns == ((1, 4, 0), (0, 16, 2))


def attach_q(s: Schedule) -> None:
    s[Q].compute_at(s[R], R.op.axis[0])


def attach_cycle(s: Schedule) -> None:
    s[R].compute_at(s[C], C.op.axis[0])
    s[Q].compute_at(s[R], R.op.axis[0])


def nothing(s: Schedule) -> None:
    assert s.trace.steps == ()


REFUSED: dict[str, tuple[Callable[[Schedule], None], Callable[[Schedule], object], Diagnostic]] = {
    "compute_at a stage that reads nothing of it": (
        nothing,
        lambda s: s[P].compute_at(s[U], U.op.axis[0]),
        Diagnostic(
            "no-consumer", where="s[P].compute_at(s[U])", parent="U", stage="P",
            instead="P is read by Q",
        ),
    ),
    "compute_at a producer": (
        nothing,
        lambda s: s[Q].compute_at(s[P], P.op.axis[0]),
        Diagnostic(
            "no-consumer", where="s[Q].compute_at(s[P])", parent="P", stage="Q",
            instead="Q reads P: that is s[P].compute_at(s[Q], axis)",
        ),
    ),
    "compute_at of an output that nobody reads": (
        nothing,
        lambda s: s[C].compute_at(s[U], U.op.axis[0]),
        Diagnostic(
            "no-consumer", where="s[C].compute_at(s[U])", parent="U", stage="C",
            instead="C is read by nothing",
        ),
    ),
    "compute_at itself": (
        nothing,
        lambda s: s[Q].compute_at(s[Q], Q.op.axis[0]),
        Diagnostic("schedule", where="s[Q].compute_at(s[Q])"),
    ),
    "a cyclic attach, directly": (
        attach_q,
        lambda s: s[R].compute_at(s[Q], Q.op.axis[0]),
        Diagnostic(
            "no-consumer", where="s[R].compute_at(s[Q])", parent="Q", stage="R",
            instead="R reads Q: that is s[Q].compute_at(s[R], axis)",
        ),
    ),
    "compute_at an axis of another stage": (
        nothing,
        lambda s: s[P].compute_at(s[Q], P.op.axis[0]),
        Diagnostic(
            "unknown-loop", stage="Q", call="compute_at target of P",
            reason="axis i does not belong to Q; its loops are now u, v",
        ),
    ),
    "compute_at an axis that was split": (
        lambda s: void(s[Q].split(Q.op.axis[0], factor=2)),
        lambda s: s[P].compute_at(s[Q], Q.op.axis[0]),
        Diagnostic(
            "unknown-loop", stage="Q", call="compute_at target of P",
            reason="axis u was split into u.outer and u.inner already; its loops are now u.outer, u.inner, v",
        ),
    ),
    "compute_at a number": (
        nothing,
        lambda s: s[P].compute_at(s[Q], 0),  # type: ignore[arg-type]
        Diagnostic(
            "unknown-loop", stage="Q", call="compute_at target of P", axis=0, leaves="u, v",
            hint="take them from s[Q].leaf_iter_vars",
        ),
    ),
    "compute_at no stage": (
        nothing,
        lambda s: s[P].compute_at("Q", Q.op.axis[0]),  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="compute_at", handle="Q"),
    ),
    "compute_at a placeholder": (
        nothing,
        lambda s: s[P].compute_at(s[A], P.op.axis[0]),
        Diagnostic("unknown-loop", name="A"),
    ),
    "compute_at of a placeholder": (
        nothing,
        lambda s: s[A].compute_at(s[P], P.op.axis[0]),
        Diagnostic("requires-storage", stage="A", call="compute_at"),
    ),
    "compute_at a stage of another schedule": (
        nothing,
        lambda s: s[P].compute_at(schedule()[Q], Q.op.axis[0]),
        Diagnostic("not-in-schedule", state="P", parent="Stage(Q: u, v)"),
    ),
    "inlining a reduction": (
        nothing,
        lambda s: s[R].compute_inline(),
        Diagnostic("requires-storage", where="s[R].compute_inline", stage="R", subject="is a reduction"),
    ),
    "inlining several outputs": (
        nothing,
        lambda s: s[T[0]].compute_inline(),
        Diagnostic(
            "requires-storage", where="s[T].compute_inline", stage="T", subject="has several outputs",
        ),
    ),
    "inlining an output": (
        nothing,
        lambda s: s[C].compute_inline(),
        Diagnostic("requires-storage", where="s[C].compute_inline", stage="C"),
    ),
    "inlining a placeholder": (
        nothing,
        lambda s: s[A].compute_inline(),
        Diagnostic("requires-storage", stage="A", call="compute_inline"),
    ),
    "a placeholder at the root": (
        nothing,
        lambda s: s[A].compute_root(),
        Diagnostic("requires-storage", stage="A", call="compute_root"),
    ),
    "a scope that is no name": (
        nothing,
        lambda s: s[P].set_scope(3),  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="s[P].set_scope", scope=3),
    ),
    "an empty scope": (
        nothing,
        lambda s: s[P].set_scope(""),
        Diagnostic("invalid-type", where="s[P].set_scope", scope=""),
    ),
    "storage_align of a loop": (
        nothing,
        lambda s: s[R].storage_align(k, 8, 0),
        Diagnostic("unknown-loop", where="s[R].storage_align", names="x", axis="k"),
    ),
    "storage_align of a placeholder": (
        nothing,
        lambda s: s[A].storage_align(P.op.axis[0], 8, 0),
        Diagnostic("requires-storage", stage="A", call="storage_align"),
    ),
    "storage_align by 0": (
        nothing,
        lambda s: s[P].storage_align(P.op.axis[0], 0, 0),
        Diagnostic("invalid-value", where="s[P].storage_align", factor=0, offset=0),
    ),
    "storage_align with an offset that is no remainder": (
        nothing,
        lambda s: s[P].storage_align(P.op.axis[0], 8, 8),
        Diagnostic("invalid-value", where="s[P].storage_align", factor=8, offset=8),
    ),
    "storage_align by a fraction": (
        nothing,
        lambda s: s[P].storage_align(P.op.axis[0], 2.5, 0),  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="s[P].storage_align", factor=2.5, offset=0),
    ),
}


def void(value: object) -> None:
    assert value is not None


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Any) -> None:
    before, action, expected = REFUSED[case]
    s = schedule()
    before(s)

    error = refusal(s, lambda: action(s))

    assert isinstance(error, ScheduleError)
    assert diagnostic(error) == expected
    assert error.location is not None
    assert Path(error.location.file) == Path(__file__)
