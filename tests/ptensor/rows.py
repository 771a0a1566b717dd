"""Execution of all operations for all devices and teams, against NumPy."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np

from tecomp import dist
from tecomp.array.executor import execute
from tecomp.dist import Team
from tecomp.ptensor import (
    Apply,
    Function,
    Parameter,
    PTensorOp,
    ValueType,
    dist_to_runtime,
    lower_ptensor,
    results_on_device,
)
from tecomp.ptensor.parse import parse
from tests.ptensor.drawn import Case, cases
from tests.ptensor.in_numpy import in_numpy

CLOSE = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4, "float64": 1e-9, "complex128": 1e-9}


def drawn_value(type: ValueType, op: PTensorOp, dice: Random) -> Any:
    """Return small numbers: at least 1 for divisors and shifts, in bounds for indices."""
    rng = np.random.default_rng(dice.randrange(1000))
    if isinstance(type, str):
        shape = getattr(op, "shape", ())
        if type == "ptr":
            return rng.integers(0, 9, shape).astype(getattr(op, "dtype", "int8"))
        return {"int8": 3, "int64": 3, "float32": 2.5, "float64": 2.5}[type]
    if type.dtype == "bool":
        return np.asarray(rng.random(type.shape) > 0.5)
    numbers: Any = rng.integers(1, 4, type.shape)
    if type.dtype.startswith(("float", "complex")):
        numbers = numbers / 2 + rng.integers(0, 8, type.shape) / 16
    if type.dtype.startswith("complex"):
        numbers = numbers + 0.5j
    result = np.asarray(numbers).astype(type.dtype)
    if op.name in ("matrices", "solve") and len(type.shape) > 1:
        # The matrix is invertible, and all roots are positive.
        result = result @ result.conj().swapaxes(-1, -2) + 5 * np.eye(type.shape[-1], dtype=type.dtype)
    return np.sort(result) if op.name == "searchsorted" else result


def function_of(op: PTensorOp, types: tuple[ValueType, ...]) -> Function:
    """Return a function of one operation."""
    operands = tuple(map(Parameter, [f"x{k}" for k in range(len(types))], types))
    first, *more = [Parameter(f"y{k}", type) for k, type in enumerate(results_on_device(op, *types))]
    names = tuple([item.name for item in operands])
    body = (Apply(first.name, op, names, types, first.type, tuple(more)),)
    return Function("f", operands, body, tuple([first.name, *[item.name for item in more]]))


def rows(team: Team) -> list[Case]:
    """Return all operations with and without device, and with and without team."""
    return [case for place in product((None, "cpu", "stick128"), (None, team.id)) for case in cases(*place)]


def passed(value: Any, type: ValueType, team: Team) -> Any:
    """Return an argument; for an array of a team, the shard of this rank."""
    if isinstance(type, str):
        return value
    if type.team is None:
        return value, type.device, None, None
    gid = dist.init_dtensor(
        team, value.shape, value.dtype, placements=None if value.shape else [dist.Replicate()])
    part = value[dist.local_slice(team, gid)].copy() if value.shape else value
    return part, type.device, team.id, gid


def check_row(case: Case, team: Team) -> None:
    """Execute an operation after a print-parse round trip, and compare results and types."""
    op, types = case
    dice = Random(0)
    function = parse(str(function_of(op, types)))
    inputs = [drawn_value(type, op, dice) for type in types]
    lowered = dist_to_runtime(lower_ptensor(function))
    found = execute(lowered, *[passed(value, type, team) for value, type in zip(inputs, types, strict=True)])
    expected = in_numpy(op, *inputs)
    assert len(found) == len(expected), case
    for name, one, other in zip(function.results, found, expected, strict=True):
        type = function.type_of(name)
        if isinstance(type, str):
            assert one == other, case
            continue
        data, device, number, gid = one
        assert (device, number) == (type.device, type.team), case
        if number is not None:
            data = dist.gather(team, dist.partition_of(team, gid), np.array(data, order="C"))
        assert data.dtype.name == type.dtype, (case, data.dtype)
        assert data.shape == np.shape(other), case
        close = CLOSE.get(type.dtype, 0)
        np.testing.assert_allclose(data, other, rtol=close, atol=close, err_msg=str(case))
