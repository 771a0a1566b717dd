"""`dist_to_runtime`: printed form, double release and use after release of tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tecomp.errors import ArrayValueError
from tecomp.ptensor import (
    Binding,
    DeviceRegion,
    Dist,
    Literal,
    LoweredFunction,
    ValueName,
    dist_to_runtime,
    lower_ptensor,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic
from tests.ptensor.team_functions import FUNCTIONS

TEAM = Literal(1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_of_the_runtime(name: str, golden: Callable[[object], None]) -> None:
    """Printed form of the programs that `tests/dist/programs/lowered.py` runs on several ranks."""
    lowered = lower_ptensor(parse(FUNCTIONS[name][0]))
    golden(f"{lowered}\n\n{dist_to_runtime(lowered)}")


def test_explicitly_freed_values_are_not_freed_again() -> None:
    body = (*made("a"), call("local_shape", "a"), call("fini_dtensor", "a"), *made("b"))
    lines = str(dist_to_runtime(LoweredFunction("f", (), body, ()))).splitlines()

    assert [line.strip() for line in lines if "fini" in line] == [
        "call @dist.fini_dtensor(1, %a)", "call @dist.fini_dtensor(1, %b)"]


def test_elements_that_the_team_writes_are_read_behind_the_region() -> None:
    """Device regions are not merged across a message of the team, as it writes their inputs."""
    text = FUNCTIONS["chain"][0].replace(", team=1", ", device='cpu', team=1")
    lines = str(lower_ptensor(parse(text))).splitlines()

    places = [k for k, line in enumerate(lines) if "device_region" in line]
    message = next(k for k, line in enumerate(lines) if "finalize_reduce" in line)
    assert len(places) == 2
    assert places[0] < message < places[1]


def made(name: str) -> tuple[Binding, ...]:
    shape = ValueName(f"{name}_shape")
    return Binding(shape.name, Literal((4,))), Binding(name, Dist("init_dtensor", (shape,), TEAM, "int8"))


def call(function: str, *names: str) -> Binding:
    return Binding(None, Dist(function, tuple(map(ValueName, names)), TEAM))


END = call("fini_dtensor", "a")


@pytest.mark.parametrize(("body", "expected"), [
    ((*made("a"), END, END),
     Diagnostic(
         "ptensor", function="f", line=5, call="dist.fini_dtensor(%a)", uses="ends", tensor="%a",
         ended=4, remedy="remove one of the releases",
     )),
    ((*made("a"), END, call("local_shape", "a")),
     Diagnostic(
         "ptensor", function="f", line=5, call="dist.local_shape(%a)", uses="uses", tensor="%a",
         ended=4, remedy="release it after its last use",
     )),
    ((*made("a"), *made("b"), END, Binding("t", Literal(0)), call("copy", "b", "a", "t", "t")),
     Diagnostic(
         "ptensor", function="f", line=8, call="dist.copy(%b, %a, %t, %t)", uses="uses",
         tensor="%a", ended=6, remedy="release it after its last use",
     )),
    ((*made("a"), END, DeviceRegion(Literal("cpu"), (call("local_slice", "a"),))),
     Diagnostic(
         "ptensor", function="f", line=6, call="dist.local_slice(%a)", uses="uses", tensor="%a",
         ended=4, remedy="release it after its last use",
     )),
])
def test_freed_values_are_not_used(body: tuple[Binding, ...], expected: Diagnostic) -> None:
    with pytest.raises(ArrayValueError) as caught:
        dist_to_runtime(LoweredFunction("f", (), body, ()))
    assert diagnostic(caught.value) == expected


def test_returned_values_are_not_freed() -> None:
    lowered = lower_ptensor(parse(FUNCTIONS["chain"][0]))
    end = Binding(None, Dist("fini_dtensor", (ValueName("z", 3),), TEAM))
    with pytest.raises(ArrayValueError) as caught:
        dist_to_runtime(LoweredFunction("f", lowered.parameters, (*lowered.body, end), lowered.results))
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", function="f", ended=15, name="z"))
