"""Random calls of library operators agree with NumPy for empty, unit and symbolic extents."""

from __future__ import annotations

import pytest
from hypothesis import given, note

import tecomp
from tecomp import te
from tecomp.schedules import conv2d, matmul
from tests.messages import Diagnostic, diagnostic
from tests.strategies.draws import Dice
from tests.strategies.operators import CPU, OPERATORS, Operation, draw_operation, operations


@pytest.mark.exhaustive
@given(operations())
def test_operators_match_numpy(operation: Operation) -> None:
    note(operation.text)
    operation.check()


@pytest.mark.parametrize("which", range(len(OPERATORS)), ids=OPERATORS)
def test_schedules_are_for_targets_by_name_as_well(which: int) -> None:
    operation = draw_operation(Dice([which], seed=0))
    named = operation.schedule(operation.output, "cpu")

    assert str(named.trace) == str(operation.schedule(operation.output, CPU).trace)
    with pytest.raises(tecomp.TargetError) as error:
        operation.schedule(operation.output, "cqu")
    assert diagnostic(error.value) == Diagnostic(
        "unknown-target", name="cqu", hint="did you mean `cpu`? ",
        known=", ".join(tecomp.list_targets()), others="",
    )


def test_plans_are_for_targets_by_name_as_well() -> None:
    A, B = te.placeholder((300, 200), name="A"), te.placeholder((200, 100), name="B")
    X, W = te.placeholder((1, 30, 30, 8), name="X"), te.placeholder((3, 3, 8, 16), name="W")

    assert matmul.plan(matmul.define(A, B), "cpu") == matmul.plan(matmul.define(A, B), CPU)
    assert conv2d.plan(conv2d.define(X, W), "cpu") == conv2d.plan(conv2d.define(X, W), CPU)
