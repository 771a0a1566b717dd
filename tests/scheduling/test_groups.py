"""Groups of stages: members, location and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((8, 10), name="A")
X = te.compute((8, 10), lambda i, j: A[i, j] + 1.0, name="X")
Y = te.compute((8, 10), lambda i, j: X[i, j] * 2.0, name="Y")
SIDE = te.compute((8, 10), lambda i, j: A[i, j] * 5.0, name="SIDE")
Z = te.compute((8, 10), lambda i, j: Y[i, j] + SIDE[i, j], name="Z")
DATA = np.random.default_rng(2).random((8, 10)).astype("float32")
WANTED = (DATA + 1) * 2 + DATA * 5


def test_a_group_has_the_stages_between() -> None:
    s = te.create_schedule(Z.op)
    group = s.create_group(outputs=Y, inputs=X, include_inputs=True)

    assert repr(group) == "Group(X, Y)"
    assert s[X].group == group == s[Y].group
    assert (s[Z].group, s[SIDE].group, s[A].group, group.group) == (None,) * 4
    assert (group.attach_stage, group.attach_ivar, group.num_child_stages) == (None, None, 2)
    assert s.groups == (group,)
    assert len({group, s[X].group}) == 1


@pytest.mark.parametrize(
    ("outputs", "inputs", "include", "expected"),
    [
        (Y, A, False, "Group(X, Y)"), (Y, [A], True, "Group(A, X, Y)"), (Z, X, False, "Group(Y, Z)"),
        ([Y, SIDE], [A], False, "Group(X, Y, SIDE)"), (Z, [X, SIDE], False, "Group(Y, Z)"),
        (Y, Y, True, "Group(Y)"),
    ],
)
def test_paths_from_inputs_to_outputs(
    outputs: Any, inputs: Any, include: bool, expected: str
) -> None:
    s = te.create_schedule(Z.op)

    assert repr(s.create_group(outputs, inputs, include)) == expected


def test_groups_in_groups() -> None:
    s = te.create_schedule(Z.op)
    inner = s.create_group(outputs=Y, inputs=X)
    outer = s.create_group(outputs=Y, inputs=X, include_inputs=True)

    assert set(s.groups) == {inner, outer}
    assert (s[X].group, s[Y].group, inner.group) == (outer, inner, outer)
    assert (outer.num_child_stages, inner.num_child_stages) == (2, 1)


def placed(s: te.Schedule) -> None:
    group = s.create_group(Y, A)
    group.compute_at(s[Z], Z.op.axis[0])
    assert group.attach_stage == s[Z]
    assert group.attach_ivar is Z.op.axis[0]


def split_after(s: te.Schedule) -> None:
    placed(s)
    inner = s[Z].split(Z.op.axis[0], factor=3)[1]
    assert s.groups[0].attach_ivar is inner
    s[X].compute_root()
    assert s[X].attach_ivar is inner


def own_places(s: te.Schedule) -> None:
    """A stage with its own location keeps the location."""
    s[X].compute_at(s[Y], Y.op.axis[0])
    placed(s)
    assert s[X].attach_stage == s[Y]


def nested(s: te.Schedule) -> None:
    """An inner group can have its own location; compute_root returns it to the outer group."""
    inner, outer = s.create_group(X, A), s.create_group(Y, A)
    outer.compute_at(s[Z], Z.op.axis[0])
    assert s[X].attach_stage == s[Z]
    inner.compute_at(s[Y], Y.op.axis[1])
    assert s[X].attach_stage == s[Y]
    inner.compute_root()
    assert (s[X].attach_stage, inner.attach_stage) == (s[Z], None)


def back_at_the_root(s: te.Schedule) -> None:
    placed(s)
    s.groups[0].compute_root()
    assert (s[X].attach_stage, s[Y].attach_stage) == (None, None)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("decide", [placed, split_after, own_places, nested, back_at_the_root])
def test_numbers_and_traces(agrees: Any, decide: Callable[[te.Schedule], None]) -> None:
    s = te.create_schedule(Z.op)
    decide(s)
    replayed = tecomp.replay(s.trace.to_json(), Z)
    scope: dict[str, Any] = {"te": te}
    exec(s.trace.to_python(), scope)

    assert replayed.trace.to_json() == s.trace.to_json()
    assert str(tecomp.lower(scope["schedule"](Z), [A, Z])) == str(tecomp.lower(s, [A, Z]))
    agrees(s, [A, Z], {A: DATA, Z: WANTED}, rtol=1e-6)


def test_loops_of_a_group() -> None:
    s = te.create_schedule(Z.op)
    placed(s)
    s[SIDE].compute_inline()

    assert str(tecomp.lower(s, [A, Z]).body) == (
        "for i in range(8):\n"
        '    with Allocate(Buffer("float32", (10,))) as X:\n'
        "        for j in range(10):\n"
        "            X[j] = A[i * 10 + j] + float32(1.0)\n"
        '        with Allocate(Buffer("float32", (10,))) as Y:\n'
        "            for j in range(10):\n"
        "                Y[j] = X[j] * float32(2.0)\n"
        "            for j in range(10):\n"
        "                Z[i * 10 + j] = Y[j] + A[i * 10 + j] * float32(5.0)"
    )


def test_the_steps_of_a_scan_are_a_group(agrees: Any) -> None:
    state = te.placeholder((8, 10), name="state")
    init = te.compute((1, 10), lambda t, i: A[t, i], name="init")
    first = te.compute((8, 10), lambda t, i: state[t - 1, i] + A[t, i], name="first")
    second = te.compute((8, 10), lambda t, i: first[t, i] * 0.5, name="second")
    update = te.compute((8, 10), lambda t, i: second[t, i] + 1.0, name="update")
    S = te.scan(init, update, state, inputs=A, name="S")
    s = te.create_schedule(S.op)

    assert repr(s[update].group) == "Group(first, second, update)"
    assert s[update].group == s[first].group
    assert (s[init].group, s[S].group) == (None, None)
    group = s.create_group(outputs=second, inputs=[state, A])
    assert group.group == s[update].group
    assert s[first].group == group
    group.compute_at(s[update], update.op.axis[0])
    assert group.attach_stage == s[update]

    expected = DATA.copy()
    for t in range(1, 8):
        expected[t] = (expected[t - 1] + DATA[t]) * np.float32(0.5) + 1
    agrees(s, [A, S], {A: DATA, S: expected}, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda s: s.create_group(X, SIDE),
         Diagnostic("no-consumer", where="s.create_group([X], [SIDE])", read="SIDE", names="X")),
        (lambda s: s.create_group(X, X),
         Diagnostic("no-consumer", where="s.create_group([X], [X])", read="X", names="X")),
        (lambda s: [s.create_group(Y, A), s.create_group(Z, X)],
         Diagnostic("no-consumer", where="s.create_group([Z], [X])", first="X")),
        (lambda s: s.create_group(Y, 3), Diagnostic(
            "invalid-type", where="s.create_group", value=3,
        )),
        (lambda s: s.create_group(Y, A, 3),
         Diagnostic(
             "invalid-type", where="s.create_group: include_inputs", value=3,
             remedy="pass True or False",
         )),
        (lambda s: s.create_group(Y, A).compute_at(s[Y], Y.op.axis[0]),
         Diagnostic("no-consumer", consumer="Y", names="X, Y")),
        (lambda s: s.create_group(Y, A).compute_at(s[Z], Y.op.axis[0]),
         Diagnostic(
             "unknown-loop", stage="Z", call="compute_at target of X",
             reason="axis i does not belong to Z; its loops are now i, j, where i is another axis of that name; use that",
         )),
        (lambda s: s.create_group(X, A).compute_at(s[SIDE], SIDE.op.axis[0]),
         Diagnostic(
             "no-consumer", where="s[X].compute_at(s[SIDE])", parent="SIDE", stage="X",
             instead="X is read by Y",
         )),
        (lambda s: s.place_group("X"), Diagnostic("not-in-schedule", group="X")),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[Any], object], expected: Diagnostic) -> None:
    s = te.create_schedule(Z.op)

    with pytest.raises(tecomp.ScheduleError) as error:
        call(s)
    assert diagnostic(error.value) == expected
    assert "place_group" not in s.trace.to_json()
