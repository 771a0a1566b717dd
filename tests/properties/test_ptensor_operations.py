"""Operations on ptensors of random types are printed, parsed, lowered and agree with NumPy."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tecomp import dist
from tecomp.array.executor import execute
from tecomp.errors import TecompError
from tecomp.ptensor import (
    ALL,
    Function,
    PTensorOp,
    PTensorType,
    ValueType,
    is_elementwise,
    lower_ptensor,
)
from tecomp.ptensor.parse import parse
from tests.numerics import assert_close
from tests.ptensor.drawn import Case, cases
from tests.ptensor.in_numpy import in_numpy
from tests.ptensor.rows import CLOSE, check_row, drawn_value, function_of, rows

DTYPES = [name for name in ALL if name != "bfloat16"]  # NumPy has no bfloat16


def drawn_types(op: PTensorOp, types: tuple[ValueType, ...], dice: Random) -> tuple[ValueType, ...]:
    """Draw other accepted operand types: other dtypes, and shapes if element-wise."""
    if any(isinstance(item, str) for item in types):
        return types
    for _ in range(40):
        whole = tuple(dice.choice([0, 1, 2, 3, 5]) for _ in range(dice.randrange(4)))
        one = dice.choice(DTYPES)
        drawn = []
        for item in types:
            assert isinstance(item, PTensorType)
            shape = item.shape
            if is_elementwise(op):
                cut = whole[dice.randrange(len(whole) + 1):]
                shape = tuple(dice.choice([n, 1]) for n in cut)
            drawn.append(PTensorType(shape, dice.choice([one, one, dice.choice(DTYPES), item.dtype])))
        try:
            op.results(*drawn)
        except TecompError:
            continue
        return tuple(drawn)
    return types


def check(case: Case, dice: Random) -> None:
    op, types = case
    types = drawn_types(op, types, dice)
    function = function_of(op, types)
    assert parse(str(function)) == function
    inputs = [drawn_value(type, op, dice) for type in types]
    passed = [
        value if isinstance(type, str) else (value, None, None, None)
        for type, value in zip(types, inputs, strict=True)
    ]
    found = execute(lower_ptensor(parse(str(function))), *passed)
    expected = in_numpy(op, *inputs)
    assert len(found) == len(expected)
    for one, other, (_, type) in zip(found, expected, _results(function), strict=True):
        if isinstance(type, str):
            assert one == other, (op, types)
            continue
        data = one[0]
        assert data.dtype.name == type.dtype, (op, types)
        assert data.shape == np.shape(other), (op, types)
        close = CLOSE.get(type.dtype, 0)
        assert_close(data, other, rtol=close, atol=close, err_msg=f"{op} of {types}")


def _results(function: Function) -> list[tuple[str, ValueType]]:
    return [(name, function.type_of(name)) for name in function.results]


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("part", range(6))
def test_operations_of_drawn_types_match_numpy(part: int) -> None:
    dice = Random(part)
    for case in cases()[part::6]:
        check(case, dice)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("part", range(6))
def test_every_operation_runs_in_every_place(part: int) -> None:
    """Every operation runs with and without a device and a team.

    `tests/dist/programs/lowered.py` runs the operations on several processes.
    """
    team = dist.world()
    for case in rows(team)[part::6]:
        check_row(case, team)


def any_type(type: PTensorType, dice: Random) -> PTensorType:
    """Draw another type, whose shape need not fit and may have unknown extents."""
    shape: tuple[Any, ...] = type.shape
    how = dice.randrange(5)
    if how == 0:
        shape = tuple(dice.choice([0, 1, 2, 4]) for _ in range(dice.randrange(5)))
    if how == 1:
        shape = dice.choice([shape[1:], shape[:-1], (*shape, 4)])
    if how == 2:
        shape = tuple(dice.choice([None, extent]) for extent in shape)
    return PTensorType(shape, dice.choice([type.dtype, type.dtype, dice.choice(ALL)]))


def test_types_fit_or_are_refused() -> None:
    dice, fitting, refused = Random(0), 0, 0
    for op, types in cases() * 20:
        drawn = [any_type(item, dice) if isinstance(item, PTensorType) else item for item in types]
        try:
            function = function_of(op, tuple(drawn))
        except TecompError:
            refused += 1
            continue
        except TypeError:
            # Outside of a function, an operation with `counts` requires known extents.
            assert op.counts
            continue
        assert parse(str(function)) == function
        lower_ptensor(function)
        fitting += 1
    assert min(fitting, refused) > 500
