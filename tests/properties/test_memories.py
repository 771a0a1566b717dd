"""Random programs fit into memories of exactly the planned size, and not into one byte less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pytest
from hypothesis import event, given

from tecomp.codegen import Kernel
from tecomp.driver import check_fits, in_numbers, is_open, place_in_memories, plan
from tecomp.errors import CapacityError, TargetError
from tecomp.lowering import LoweringResult
from tecomp.machine import Target
from tests.strategies.agreement import Sizes, bindings, check_ends
from tests.strategies.schedules import Case, cases

CPU = Target.load("cpu")
SCOPES = ("global.texture", "shared", "local")


def with_capacities(sizes: dict[str, int]) -> Target:
    return CPU.overridden(memory={name: {"capacity_bytes": size} for name, size in sizes.items()})


BIG = with_capacities(dict.fromkeys(SCOPES, 1 << 30))


@pytest.mark.exhaustive
@given(cases(most_steps=10))
def test_capacities_are_exact(case: Case) -> None:
    lowered = case.lower()
    try:
        found = plan(lowered, BIG)
    except TargetError as error:
        event(f"refused: {error.kind}")
        return
    is_known_at_calls = is_open(lowered, BIG)
    event(f"sizes of memory are known at calls: {is_known_at_calls}")
    peaks = {name: found.peak(name) for name in SCOPES}
    event(f"memories in use: {sum(map(bool, peaks.values()))}")
    for small, refusal in one_byte_less(peaks):
        with pytest.raises(CapacityError) as refused:
            place_in_memories(case.schedule, case.args, lowered, small, guards=False)
        assert_refuses(refused.value, *refusal)
    result: dict[tuple[int, ...], list[tuple[LoweringResult, Kernel]]] = {}
    for sizes in bindings(case):
        # A call with empty loops may need less than the static bound for all other calls.
        called = check_calls(case, lowered, sizes) if is_known_at_calls else peaks
        needed = tuple(max(peak, called[name], 1) for name, peak in peaks.items())
        if needed not in result:
            result[needed] = placed(case, lowered, with_capacities(dict(zip(peaks, needed, strict=True))))
        for func, kernel in result[needed]:
            check_ends(case, func, kernel, sizes)


def placed(case: Case, lowered: LoweringResult, target: Target) -> list[tuple[LoweringResult, Kernel]]:
    """Place a program in the memories of a target, without and with guards."""
    found = []
    for guards in (False, True):
        func = place_in_memories(case.schedule, case.args, lowered, target, guards=guards)
        kernel = Kernel(func.final, func.signature.params, check_bounds=guards)
        found.append((func, kernel))
    return found


def check_calls(case: Case, lowered: LoweringResult, sizes: Sizes) -> dict[str, int]:
    """Check that a call is rejected with one byte less than it needs, and return its peaks."""
    named = {var.name: value for var, value in sizes.items()}
    found = plan(lowered, BIG, partial(in_numbers, sizes=named))
    peaks = {name: found.peak(name) for name in SCOPES}
    for small, refusal in one_byte_less(peaks):
        with pytest.raises(CapacityError) as refused:
            check_fits(case.schedule, case.args, lowered, small, named)
        assert_refuses(refused.value, *refusal)
    return peaks


def one_byte_less(peaks: Mapping[str, int]) -> Iterator[tuple[Target, tuple[str, int]]]:
    """Yield targets with one memory a byte too small, and the expected memory name and peak."""
    for name, peak in peaks.items():
        if peak > 1:
            yield with_capacities({name: peak - 1}), (name, peak)


def assert_refuses(error: CapacityError, name: str, peak: int) -> None:
    assert error.kind == "capacity"
    assert (error.parameters["memory"], error.parameters["need"]) == (name, peak)
