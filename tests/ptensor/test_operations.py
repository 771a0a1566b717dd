"""All operations: print-parse round trips, and lowering for all devices and teams."""

from __future__ import annotations

import re
from itertools import product

import pytest

from tecomp.errors import ArrayValueError, DeviceMismatchError, ParseError, TeamMismatchError
from tecomp.ptensor import (
    Apply,
    Attribute,
    Function,
    Matrices,
    Parameter,
    PTensorOp,
    PTensorType,
    UniqueCounts,
    ValueType,
    body_lines,
    lower_ptensor,
    operation_classes,
    results_on_device,
    verify_lowered,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic
from tests.ptensor.drawn import cases

PLACES = [*product((None, "stick128"), (None, 3))]


def results_of(op: PTensorOp, types: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
    return results_on_device(op, *types)


def applied(op: PTensorOp, types: tuple[ValueType, ...]) -> Function:
    operands = tuple(map(Parameter, [f"x{k}" for k in range(len(types))], types))
    result = tuple([Parameter(f"y{k}", type) for k, type in enumerate(results_of(op, types))])
    first, *more = result
    names = tuple([item.name for item in operands])
    body = (Apply(first.name, op, names, types, first.type, tuple(more)),)
    return Function("f", operands, body, tuple([item.name for item in result]))


def test_every_operation_is_drawn() -> None:
    assert {op.name for op, _ in cases()} == {*operation_classes()}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("device", "team"), PLACES)
def test_every_operation_is_read_back(device: str | None, team: int | None) -> None:
    for op, types in cases(device, team):
        function = applied(op, types)
        assert parse(str(function)) == function
        assert str(parse(str(function))) == str(function)
        for result in results_of(op, types):
            if isinstance(result, str):
                continue
            assert (result.device, result.team) == (device, team), op


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(("device", "team"), PLACES)
def test_every_operation_is_lowered(device: str | None, team: int | None) -> None:
    for op, types in cases(device, team):
        for ignored in (False, True):
            lowered = lower_ptensor(applied(op, types), ignore_team=ignored)
            verify_lowered(lowered)
            text = "\n".join(body_lines(lowered.body))
            if isinstance(op, Attribute):
                assert not re.search("dist|device_region", text)
                continue
            assert ("dist.init_dtensor" in text) == (team is not None and not ignored), op
            assert ("device_region('stick128')" in text) == (device is not None), op
            assert (f"library_call{{{op.library!r}}}" in text) == (op.library is not None), op
            for k in range(len(results_of(op, types))):
                places = re.escape(f", {device!r}, {team!r}, ")
                assert re.search(rf"%y{k} = %\w+(\[\d\])?{places}", text), op


def test_operands_of_every_operation_must_be_on_one_device() -> None:
    others = [("cpu", 3, DeviceMismatchError), ("stick128", 4, TeamMismatchError)]
    for (op, types), (device, team, error) in product(cases("stick128", 3), others):
        for k in range(len(types) if len(types) > 1 else 0):
            source = types[k]
            assert isinstance(source, PTensorType)
            moved = PTensorType(source.shape, source.dtype, device, team)
            with pytest.raises(error):
                results_of(op, (*types[:k], moved, *types[k + 1 :]))


def test_several_results_have_names_and_parts() -> None:
    function = applied(UniqueCounts(), (PTensorType((4,), "int8"),))
    assert str(function.body[0]) == (
        "%y0, %y1 = ptensor.unique_counts(%x0): (ptensor<4xint8>) -> "
        "(ptensor<?xint8>, ptensor<?xint64>)"
    )
    assert body_lines(lower_ptensor(function).body) == [
        "%rtensor = library_call{'numpy.unique'}(%x0[0]): (tensor<4xint8>) -> "
        "(tensor<?xint8>, tensor<?xint64>)",
        "%y0 = %rtensor[0], None, None, None",
        "%y1 = %rtensor[1], None, None, None",
    ]


def test_every_result_has_a_name() -> None:
    text = str(applied(Matrices("qr"), (PTensorType((4, 4), "float32"),)))
    with pytest.raises(ParseError) as caught:
        parse(text.replace("%y0, %y1 =", "%y0 =").replace("return %y0, %y1", "return %y0"))
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", line=2, column=76, found="got `(`", counts="1 names for 2 results")
    )


def test_a_function_without_results_is_read_back() -> None:
    function = Function("f", (Parameter("x", PTensorType((4,), "int8")),), (), ())
    assert parse(str(function)) == function


def test_every_operation_declares_its_arity() -> None:
    for op, types in cases():
        result, *more = [Parameter("y", type) for type in results_of(op, types)]
        least, most = op.takes
        assert least <= len(types) <= (most or len(types)), op
        wrong = [least - 1] if least else []
        wrong += [most + 1] if most is not None else []
        for count in wrong:
            others = (types or (PTensorType((4,), "int8"),)) * 4
            names = tuple([f"x{k}" for k in range(count)])
            with pytest.raises(ArrayValueError) as error:
                Apply("y", op, names, others[:count], result.type, tuple(more))
            some = f"{least} or more" if most is None else f"{least} to {most}"
            assert diagnostic(error.value) == Diagnostic(
                "ptensor", where=f"%y = {op.dialect}.{op.name}", count=count, typed=count,
                expected=f"{least}" if most == least else some,
            )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%y = ptensor.where(%x): (T) -> T",
         Diagnostic("ptensor")),
        ("%y = ptensor.searchsorted{'left'}(%x): (T, T) -> T",
         Diagnostic("ptensor")),
        ("%y = ptensor.combine{'concat'}(axis=0): () -> T",
         Diagnostic("ptensor")),
        ("%y = ptensor.matrix_transpose(%x): (T) -> ptensor<4xint9>",
         Diagnostic(
             "ptensor", line=2, column=69, found="got `int9`",
             all="bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
         )),
    ],
)  # fmt: skip
def test_operands_that_are_too_many_or_too_few_are_refused(line: str, expected: Diagnostic) -> None:
    text = f"func @f(%x: T) -> T {{\n  {line}\n  return %y\n}}".replace("T", "ptensor<4xint8>")
    with pytest.raises((ArrayValueError, ParseError)) as caught:
        parse(text)
    assert diagnostic(caught.value) == expected
