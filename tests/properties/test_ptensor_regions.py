"""Adjacent regions of one device are merged, regions are not nested, and agree with NumPy."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tecomp.array.executor import execute
from tecomp.errors import TecompError
from tecomp.ptensor import (
    Apply,
    Binding,
    DeviceRegion,
    Function,
    LoweredFunction,
    Parameter,
    PTensorType,
    dist_to_runtime,
    lower_ptensor,
)
from tecomp.ptensor.parse import parse
from tests.numerics import assert_close
from tests.ptensor.drawn import cases
from tests.ptensor.in_numpy import in_numpy
from tests.ptensor.team_functions import drawn_operation

DEVICES = (None, "stick128", "cpu")
THERE = ("float32", "int32", "bool")
"""Dtypes that all of these devices support."""


def drawn_function(dice: Random, teams: tuple[int | None, ...]) -> Function:
    """Draw operations on several devices and teams; operands of an operation share both."""
    places = [(device, team) for device in DEVICES for team in teams]
    known: dict[str, PTensorType] = {}
    for k in range(4):
        device, team = dice.choice(places)
        known[f"x{k}"] = PTensorType(dice.choice([(3, 3), (3,), (1, 3)]), "float32", device, team)
    parameters = tuple([Parameter(name, type) for name, type in known.items()])
    body: list[Apply] = []
    for _ in range(60):
        operands: tuple[str, ...] = ()
        if dice.random() < 0.2:
            op, _ = dice.choice([case for case in cases(*dice.choice(places)) if not case[1]])
        else:
            op, operands = drawn_operation(dice, known)
        types = tuple([known[name] for name in operands])
        try:
            (result,) = op.results(*types)
        except TecompError:
            continue
        if isinstance(result, PTensorType) and result.dtype in THERE and len(body) < 12:
            body.append(Apply(f"y{len(body)}", op, operands, types, result))
            known[f"y{len(body) - 1}"] = result
    return Function("f", parameters, tuple(body), tuple([f"y{k}" for k in range(len(body))]))


def check_regions(lowered: LoweredFunction) -> None:
    regions = [item for item in lowered.body if isinstance(item, DeviceRegion)]
    for region in regions:
        assert region.body
        assert all(isinstance(item, Binding) for item in region.body)
    for one, other in zip(lowered.body, lowered.body[1:], strict=False):
        both = isinstance(one, DeviceRegion) and isinstance(other, DeviceRegion)
        assert not (both and one.device == other.device)  # type: ignore[union-attr]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("teams", [(None,), (None, 1), (1, 2)])
def test_regions_are_not_nested_and_neighbours_are_one(teams: tuple[int | None, ...]) -> None:
    dice = Random(len(teams))
    for _ in range(40):
        function = drawn_function(dice, teams)
        assert parse(str(function)) == function
        for ignored in (False, True):
            lowered = lower_ptensor(function, ignore_team=ignored)
            check_regions(lowered)
            check_regions(dist_to_runtime(lowered))


@pytest.mark.exhaustive
def test_functions_on_several_devices_match_numpy() -> None:
    dice = Random(5)
    for _ in range(6):
        function = drawn_function(dice, (None, 1))
        rng = np.random.default_rng(dice.randrange(1000))
        types = {parameter.name: parameter.type for parameter in function.parameters}
        values = {name: rng.random(type.shape).astype("float32") for name, type in types.items() if isinstance(type, PTensorType)}
        inputs = [(values[name], type.device, None, None) for name, type in types.items() if isinstance(type, PTensorType)]
        found = execute(lower_ptensor(function, ignore_team=True), *inputs)
        for apply, (data, device, *_) in zip(function.body, found, strict=True):
            assert isinstance(apply.type, PTensorType)
            assert device == apply.type.device
            (expected,) = in_numpy(apply.op, *[values[name] for name in apply.operands])
            assert_close(data, expected, 2e-3, 1e-3, err_msg=str(apply))
            values[str(apply.result)] = data
