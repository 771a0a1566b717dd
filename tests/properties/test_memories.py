"""What a plan says is needed is what fits, to the byte: random programs in memories of a machine."""

from __future__ import annotations

import pytest
from hypothesis import event, given

import tecomp
from tecomp.driver.memories import plan
from tecomp.errors import CapacityError, TargetError
from tecomp.machine import Target
from tests.properties.test_programs import bindings, check_numbers
from tests.strategies.schedules import Case, cases

CPU = Target.load("cpu")
SCOPES = ("global.texture", "shared", "local")


def with_capacities(sizes: dict[str, int]) -> Target:
    return CPU.overridden(memory={name: {"capacity_bytes": size} for name, size in sizes.items()})


@given(cases(most_steps=10))
def test_capacities_are_exact(case: Case) -> None:
    lowered = case.build().lowered
    try:
        found = plan(lowered, with_capacities(dict.fromkeys(SCOPES, 1 << 30)))
    except TargetError as error:
        event(f"refused: {error.message}")
        return
    peaks = {name: found.peak(name) for name in SCOPES}
    event(f"memories in use: {sum(map(bool, peaks.values()))}")
    for name, peak in peaks.items():
        if peak > 1:
            small = with_capacities({name: peak - 1})
            with pytest.raises(CapacityError) as refused:
                tecomp.build(case.schedule, case.args, target=small)
            assert f"memory `{name}`" in refused.value.message
            assert f"{peak} are needed at one time" in refused.value.message
    exact = with_capacities({name: max(peak, 1) for name, peak in peaks.items()})
    kernel = tecomp.build(case.schedule, case.args, target=exact)
    guarded = tecomp.build(case.schedule, case.args, target=exact, check_bounds=True)
    for sizes in bindings(case):
        check_numbers(case, kernel, guarded, sizes)
