"""Random programs with random schedules and layouts agree with NumPy after every pass."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings

from tecomp import te
from tecomp.codegen import Kernel
from tecomp.ir import PrimFunc, parse
from tecomp.lowering import lower_all
from tecomp.scheduling.replay import replay
from tests.strategies.agreement import bindings, check_numbers
from tests.strategies.schedules import Case, cases


@pytest.mark.exhaustive
@settings(max_examples=3 * settings().max_examples // 2)
@given(cases())
def test_every_stage_matches_its_definition(case: Case) -> None:
    lowered = case.lower()
    note(f"after stages were moved to the root:\n{case.schedule.trace}")
    for func in lowered.functions.values():
        assert parse(str(func)) == func
    check_replay(case, lowered.functions["nest"])
    kernels = [
        Kernel(lowered.final, lowered.signature.params, check_bounds=checked)
        for checked in (False, True)
    ]
    for sizes in bindings(case):
        check_numbers(case, lowered, kernels, sizes)


def check_replay(case: Case, nest: PrimFunc) -> None:
    """Check that the trace, as JSON and as Python text, reproduces the loop nest."""
    trace = case.schedule.trace
    operations = list(case.schedule.outputs)
    names: dict[str, Any] = {"te": te}
    exec(trace.to_python(), names)
    replayed = [
        replay(trace.to_json(), operations),
        names["schedule"](*(op.output(0) for op in operations)),
    ]
    for schedule in replayed:
        assert str(lower_all(schedule, case.args, stop_after="nest").final) == str(nest)
