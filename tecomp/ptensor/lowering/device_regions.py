"""Form device regions, and lower `dist` operations to runtime calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tecomp.dist.partition.placements import Placement
from tecomp.errors import ArrayValueError
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


def merge_regions(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Merge regions of the same device where the statements between them permit it.

    Statements between two regions that do not depend on the first region are moved before it. The
    other statements are moved after the second region, unless that depends on them.
    """
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, DeviceRegion):
            _add(result, statement)
        else:
            result.append(statement)
    return tuple(result)


def _add(body: list[Statement], region: DeviceRegion) -> None:
    last = next((k for k in reversed(range(len(body))) if isinstance(body[k], DeviceRegion)), None)
    first = None if last is None else body[last]
    if last is None or not isinstance(first, DeviceRegion):
        body.append(region)
        return
    before, after, dependent = _partition_statements(body[last + 1 :], _defined_names(first))
    if first.device != region.device or dependent & _read(region):
        body.append(region)
        return
    combined = DeviceRegion(first.device, (*first.body, *region.body))
    body[last:] = [*before, combined, *after]


def _partition_statements(
    statements: Sequence[Statement], names: set[str]
) -> tuple[list[Statement], list[Statement], set[str]]:
    """Split statements by dependence on given names; also return the names that depend on them."""
    before: list[Statement] = []
    after: list[Statement] = []
    dependent: set[str] = set()
    for statement in statements:
        if _read(statement) & (names | dependent):
            after.append(statement)
            dependent |= _defined_names(statement)
        else:
            before.append(statement)
    return before, after, dependent


def _defined_names(statement: Statement) -> set[str]:
    if isinstance(statement, DeviceRegion):
        return {name for inner in statement.body for name in _defined_names(inner)}
    found = written_tensors(statement)
    return found if statement.result is None else {statement.result, *found}


def written_tensors(statement: Binding) -> set[str]:
    """Return the existing tensors whose elements a team operation writes."""
    value = statement.value
    if not isinstance(value, Dist | RuntimeCall) or value.function not in _WRITING:
        return set()
    last = value.operands[-1]
    return {last.name} if isinstance(last, ValueName) else set()


_WRITING = ("copy", "finalize_reduce")


def _read(statement: Statement) -> set[str]:
    if isinstance(statement, DeviceRegion):
        inside = {name for inner in statement.body for name in _read(inner)} - _defined_names(
            statement)
        device = statement.device
        return {device.name, *inside} if isinstance(device, ValueName) else inside
    return {*names_of(statement)}


def verify_lowered(function: LoweredFunction) -> None:
    """Check that regions are flat and merged if adjacent, and names are defined before use.

    Raises:
        ArrayValueError: If a condition is violated; the message contains the statement.

    Source:
        RFC PTensor, "intel_sycl.gpu-region".
    """
    known = {parameter.name for parameter in function.parameters}
    _verify(function.body, known, None)
    for first, second in zip(function.body, function.body[1:], strict=False):
        if (
            isinstance(first, DeviceRegion)
            and isinstance(second, DeviceRegion)
            and first.device == second.device
        ):
            raise ArrayValueError(
                "@{function}: adjacent regions of device {device} must be merged",
                kind="ptensor", function=function.name, device=first.device,
            )
    for name in function.results:
        if name not in known:
            raise ArrayValueError(
                "@{function}: returned value %{name} is not defined",
                kind="ptensor", function=function.name, name=name,
            )


def verify_lowered_module(module: LoweredModule) -> None:
    """Check functions, and that each function follows its callees.

    Raises:
        ArrayValueError: If a condition is violated; the message contains the statement.
    """
    known: dict[str, LoweredFunction] = {}
    for function in module.functions:
        verify_lowered(function)
        for statement in function.body:
            call = statement.value if isinstance(statement, Binding) else None
            if isinstance(call, FunctionCall) and call.function not in known:
                raise ArrayValueError(
                    "@{function}: `{call}` calls a function before its definition; define the "
                    "callee first",
                    kind="ptensor", function=function.name, call=call,
                )
        known[function.name] = function


def _verify(body: Sequence[Statement], known: set[str], region: Operand | None) -> None:
    for statement in body:
        if isinstance(statement, DeviceRegion):
            if region is not None:
                raise ArrayValueError(
                    "intel_sycl.device_region({device}) is nested in "
                    "intel_sycl.device_region({region}); end the outer region before the inner "
                    "one begins",
                    kind="ptensor", device=statement.device, region=region,
                )
            device = statement.device
            if isinstance(device, ValueName) and device.name not in known:
                raise ArrayValueError(
                    "intel_sycl.device_region({device}) uses {device} before its definition",
                    kind="ptensor", device=device,
                )
            _verify(statement.body, known, device)
            continue
        if region is not None and isinstance(statement.value, FunctionCall):
            raise ArrayValueError(
                "`{statement}` is inside intel_sycl.device_region({region}), but the callee may "
                "contain regions and regions cannot be nested; end the region before the call",
                kind="ptensor", statement=statement.value, region=region,
            )
        for name in names_of(statement):
            if name not in known:
                line = " ".join(statement.lines())
                raise ArrayValueError(
                    "`{line}` uses %{name} before its definition",
                    kind="ptensor", line=line, name=name,
                )
        if statement.result is not None:
            if statement.result in known:
                raise ArrayValueError(
                    "%{result} is defined more than once; rename one of the values",
                    kind="ptensor", result=statement.result,
                )
            known.add(statement.result)


def names_of(statement: Binding) -> list[str]:
    """Return the names that a statement reads."""
    value = statement.value
    operands = [value] if isinstance(value, ValueName) else [*getattr(value, "operands", ())]
    if isinstance(value, Dist | RuntimeCall):
        operands.append(value.team)
    return [operand.name for operand in operands if isinstance(operand, ValueName)]


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
