"""What a plan says is needed is what fits, to the byte: random programs in memories of a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pytest
from hypothesis import event, given

import tecomp
from tecomp.driver.memories import check_fits, is_open, plan
from tecomp.driver.sizes import in_numbers
from tecomp.errors import CapacityError, TargetError
from tecomp.lowering.pipeline import Lowered
from tecomp.machine import Target
from tests.strategies.agreement import Sizes, bindings, check_numbers
from tests.strategies.schedules import Case, cases

CPU = Target.load("cpu")
SCOPES = ("global.texture", "shared", "local")


def with_capacities(sizes: dict[str, int]) -> Target:
    return CPU.overridden(memory={name: {"capacity_bytes": size} for name, size in sizes.items()})


BIG = with_capacities(dict.fromkeys(SCOPES, 1 << 30))


@given(cases(most_steps=10))
def test_capacities_are_exact(case: Case) -> None:
    lowered = case.build().lowered
    try:
        found = plan(lowered, BIG)
    except TargetError as error:
        event(f"refused: {error.message}")
        return
    is_known_at_calls = is_open(lowered, BIG)
    event(f"sizes of memory are known at calls: {is_known_at_calls}")
    peaks = {name: found.peak(name) for name in SCOPES}
    event(f"memories in use: {sum(map(bool, peaks.values()))}")
    for small, refusal in one_byte_less(peaks):
        with pytest.raises(CapacityError) as refused:
            tecomp.build(case.schedule, case.args, target=small)
        assert_refuses(refused.value, *refusal)
    for sizes in bindings(case):
        if is_known_at_calls:
            peaks = check_calls(case, lowered, sizes)
        exact = with_capacities({name: max(peak, 1) for name, peak in peaks.items()})
        kernel = tecomp.build(case.schedule, case.args, target=exact)
        guarded = tecomp.build(case.schedule, case.args, target=exact, check_bounds=True)
        check_numbers(case, kernel, guarded, sizes)


def check_calls(case: Case, lowered: Lowered, sizes: Sizes) -> dict[str, int]:
    """What a call needs with these sizes is refused where there is a byte less; returns it."""
    named = {var.name: value for var, value in sizes.items()}
    found = plan(lowered, BIG, partial(in_numbers, sizes=named))
    peaks = {name: found.peak(name) for name in SCOPES}
    for small, refusal in one_byte_less(peaks):
        with pytest.raises(CapacityError) as refused:
            check_fits(case.schedule, case.args, lowered, small, named)
        assert_refuses(refused.value, *refusal)
    return peaks


def one_byte_less(peaks: Mapping[str, int]) -> Iterator[tuple[Target, tuple[str, int]]]:
    """Machines in which one memory is a byte too small, and what a refusal has to name."""
    for name, peak in peaks.items():
        if peak > 1:
            yield with_capacities({name: peak - 1}), (name, peak)


def assert_refuses(error: CapacityError, name: str, peak: int) -> None:
    assert f"memory `{name}`" in error.message
    assert f"{peak} are needed at one time" in error.message
