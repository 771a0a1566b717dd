"""Lower `dist` operations to runtime calls; verify tensor lifetimes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from tecomp.dist.partition.placements import Placement
from tecomp.errors import ArrayValueError
from tecomp.ptensor.lowering.device_regions import names_of, verify_lowered
from tecomp.ptensor.lowering.lowered_ir import (
    Binding,
    DeviceRegion,
    Dist,
    Expression,
    FunctionCall,
    Literal,
    LoweredFunction,
    LoweredModule,
    Operand,
    RuntimeCall,
    Statement,
    Together,
    ValueName,
)
from tecomp.ptensor.types import PTensorType

_NUMBERS = {"init_dtensor": 0, "copy": 2}
"""Number of leading operands that are tensor numbers; 1 for operations that are not listed."""


def verify_lifetimes(function: LoweredFunction) -> None:
    """Check that no tensor is released twice or used after its release.

    Raises:
        ArrayValueError: If a tensor is; the message contains the lines.
    """
    ended: dict[str, int] = {}
    tuples: dict[str, str] = {}
    for line, statement in enumerate_statements(function):
        value = statement.value
        if isinstance(value, Together) and isinstance(value.operands[3], ValueName):
            tuples[statement.result or ""] = _tensor(value.operands[3], tuples)
        if not isinstance(value, Dist | RuntimeCall):
            continue
        for operand in value.operands[: _NUMBERS.get(value.function, 1)]:
            tensor = _tensor(operand, tuples)
            if tensor in ended:
                uses, remedy = "uses", "release it after its last use"
                if value.function == "fini_dtensor":
                    uses, remedy = "ends", "remove one of the releases"
                raise ArrayValueError(
                    "@{function}: line {line}: `{call}` {uses} {tensor}, which was released in "
                    "line {ended}; {remedy}",
                    kind="ptensor", function=function.name, line=line, call=value, uses=uses,
                    tensor=operand, ended=ended[tensor], remedy=remedy,
                )
            if value.function == "fini_dtensor":
                ended[tensor] = line
    for name in function.results:
        tensor = _tensor(ValueName(name, 3), tuples)
        if tensor in ended:
            raise ArrayValueError(
                "@{function}: line {ended} releases the tensor of the returned value %{name}; the "
                "caller must release it",
                kind="ptensor", function=function.name, ended=ended[tensor], name=name,
            )


def enumerate_statements(function: LoweredFunction) -> Iterator[tuple[int, Binding]]:
    """Yield the executed statements with their lines in the printed form, from 1."""
    line = 2
    for statement in function.body:
        if isinstance(statement, DeviceRegion):
            line += 1
        for binding in lets_of(statement):
            yield line, binding
            line += binding.printed
        line += isinstance(statement, DeviceRegion)


def lets_of(statement: Statement) -> tuple[Binding, ...]:
    """Return a statement, or the statements of a device region."""
    if isinstance(statement, Binding):
        return (statement,)
    return tuple([binding for binding in statement.body if isinstance(binding, Binding)])


def _tensor(operand: Operand, tuples: dict[str, str]) -> str:
    """Return the name that identifies a tensor: its number, or the tuple of a parameter."""
    if not isinstance(operand, ValueName) or operand.part is None:
        return str(operand)
    return tuples.get(operand.name, str(operand))


Program = TypeVar("Program", LoweredFunction, LoweredModule)


def dist_to_runtime(function: Program) -> Program:
    """Replace `dist` operations of a function by runtime calls.

    Tensors that the function creates and does not return are released after their last use.

    Args:
        function: Result of `lower_ptensor`; in a module, each function is converted.

    Raises:
        ArrayValueError: If a tensor is released twice, or used after its release.

    Source:
        RFC PTensor, "--dist-to-intel-runtime".
    """
    if isinstance(function, LoweredModule):
        return LoweredModule(tuple([dist_to_runtime(member) for member in function.functions]))
    verify_lifetimes(function)
    body = _insert_releases(function)
    converted = replace(function, body=tuple([_runtime_call(statement) for statement in body]))
    verify_lowered(converted)
    return converted


def _runtime_call(statement: Statement) -> Statement:
    if isinstance(statement, DeviceRegion):
        return replace(statement, body=tuple([_runtime_call(inner) for inner in statement.body]))
    value = statement.value
    if not isinstance(value, Dist):
        return statement
    operands = value.operands
    placements: tuple[Placement, ...] = ()
    if value.function == "init_dtensor":
        operands = (*operands, Literal(value.dtype))
        placements = () if value.placement is None else (value.placement,)
    call = RuntimeCall(value.function, value.team, operands, placements)
    return replace(statement, value=call)


def _insert_releases(function: LoweredFunction) -> list[Statement]:
    """Return the statements with releases of tensors after their last use."""
    created: dict[str, tuple[ValueName, Operand]] = {}
    last: dict[str, int] = {}
    tuples: dict[str, str] = {}
    retained: set[str] = set()
    calls: dict[str, FunctionCall] = {}
    for k, statement in enumerate(function.body):
        for binding in lets_of(statement):
            value, result = binding.value, binding.result or ""
            named = [tuples.get(name, name) for name in names_of(binding)]
            last.update(dict.fromkeys(named, k))
            if isinstance(value, Together) and isinstance(value.operands[3], ValueName):
                number = value.operands[3]
                tuples[result] = tuples.get(number.name, number.name)
            if isinstance(value, FunctionCall):
                calls[result] = value
            team = _team_of_call(value, calls)
            if team is not None:
                created[result], last[result] = (ValueName(result, 3), team), k
            if isinstance(value, Dist) and value.function in ("init_dtensor", "init_view"):
                created[result], last[result] = (ValueName(result), value.team), k
            elif isinstance(value, Dist) and value.function == "fini_dtensor":
                retained.update(named)
    retained.update([tuples.get(name, name) for name in function.results])
    ends: list[Statement] = []
    for k, statement in enumerate(function.body):
        ends.append(statement)
        ends += [
            Binding(None, Dist("fini_dtensor", (number,), team))
            for name, (number, team) in created.items() if last[name] == k and name not in retained
        ]
    return ends


def _team_of_call(value: Expression, calls: Mapping[str, FunctionCall]) -> Literal | None:
    """Return the team of a tensor that a callee created; None for other values."""
    if isinstance(value, FunctionCall):
        call, number = value, 0
        if len(call.results) > 1:
            return None  # each result is released under its own name
    elif isinstance(value, ValueName) and value.name in calls and value.part is not None:
        call, number = calls[value.name], value.part
    else:
        return None
    ptype = call.results[number]
    if not call.fresh[number]:
        return None
    assert isinstance(ptype, PTensorType)
    return Literal(ptype.team)
