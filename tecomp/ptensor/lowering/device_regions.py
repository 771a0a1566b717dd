"""Form and verify device regions."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.errors import ArrayValueError
from tecomp.ptensor.lowering.lowered_ir import (
    Binding,
    DeviceRegion,
    Dist,
    FunctionCall,
    LoweredFunction,
    LoweredModule,
    Operand,
    RuntimeCall,
    Statement,
    ValueName,
)


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
