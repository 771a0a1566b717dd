"""What has to hold in a function, beyond what its operations check when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tecomp.errors import ArrayValueError, DeviceMismatchError, TeamMismatchError
from tecomp.ptensor.function import Apply, Function, Module
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.operations.call import Call
from tecomp.ptensor.types import PTensorType, ValueType

_PLACES = {"device": ("str",), "team": ("int64",)}
"""What attributes are that are no numbers."""


def verify(function: Function) -> None:
    """Check that each name has one meaning, and is read where it has one.

    Raises:
        ArrayValueError: a name has two, or none yet, or another type than where it is read.
    """
    known: dict[str, ValueType] = {}
    for parameter in function.parameters:
        _add(known, parameter.name, parameter.type, function)
    for apply in function.body:
        for name, type in zip(apply.operands, apply.types, strict=True):
            if name not in known:
                raise ArrayValueError(
                    f"@{function.name}: %{apply.result} reads %{name}, which is not computed "
                    "before it; move it up",
                    kind="ptensor",
                )
            if known[name] != type:
                raise ArrayValueError(
                    f"@{function.name}: %{apply.result} reads %{name} as {type}, and it is "
                    f"{known[name]}",
                    kind="ptensor",
                )
        for name, value in apply.op.attributes:
            if isinstance(value, Argument):
                _check_argument(f"@{function.name}: %{apply.result}", name, value, known)
        for made in apply.made:
            _add(known, made.name, made.type, function)
    for name in function.results:
        function.type_of(name)


def _check_argument(
    where: str, attribute: str, value: Argument, known: Mapping[str, ValueType]
) -> None:
    found = known.get(value.name)
    if not isinstance(found, str):
        raise ArrayValueError(
            f"{where} takes {value} as a number, and there is no such parameter", kind="ptensor"
        )
    taken = _PLACES.get(attribute, ("int64", "float64"))
    if found not in taken:
        raise ArrayValueError(
            f"{where} takes {value} as {attribute}, and it is {found}; give {' or '.join(taken)}",
            kind="ptensor",
        )


def _add(known: dict[str, ValueType], name: str, type: ValueType, function: Function) -> None:
    if name in known:
        raise ArrayValueError(
            f"@{function.name}: %{name} is made twice; give one another name", kind="ptensor"
        )
    known[name] = type


def verify_module(module: Module) -> None:
    """Check functions, and that each call gives a function what it takes, and takes what it gives.

    Raises:
        ArrayValueError: a function is there twice or not at all, calls itself, or has other types.
        DeviceMismatchError: a value is taken on another device than it is given on.
        TeamMismatchError: a value is taken of another team than it is given of.
    """
    known: dict[str, Function] = {}
    for function in module.functions:
        verify(function)
        if function.name in known:
            raise ArrayValueError(
                f"@{function.name} is there twice; give one another name", kind="ptensor"
            )
        known[function.name] = function
    for function in module.functions:
        for apply in function.body:
            if isinstance(apply.op, Call):
                _check_call(function, apply, apply.op, known)
    callees_first(module)


def callees_first(module: Module) -> tuple[Function, ...]:
    """The functions, each behind those that it calls.

    Raises:
        ArrayValueError: a function calls itself, perhaps by others.
    """
    known = {function.name: function for function in module.functions}
    waiting = {name: _callees(function) for name, function in known.items()}
    done: dict[str, Function] = {}
    while waiting:
        ready = [name for name, callees in waiting.items() if callees <= done.keys()]
        if not ready:
            names = ", ".join(f"@{name}" for name in waiting)
            raise ArrayValueError(
                f"{names}: one of them calls itself, perhaps by others, and no call would end; "
                "write what it does in its place", kind="ptensor"
            )
        for name in ready:
            done[name] = known[name]
            del waiting[name]
    return tuple(done.values())


def _callees(function: Function) -> set[str]:
    return {apply.op.function for apply in function.body if isinstance(apply.op, Call)}


def _check_call(function: Function, apply: Apply, op: Call, known: Mapping[str, Function]) -> None:
    where = f"@{function.name}: call of @{op.function}"
    callee = known.get(op.function)
    if callee is None:
        raise ArrayValueError(
            f"{where}: there is no such function; add it to the module", kind="ptensor"
        )
    results = [(name, callee.type_of(name)) for name in callee.results]
    counts = len(apply.types), len(op.gives)
    if counts != (len(callee.parameters), len(results)):
        raise ArrayValueError(
            f"{where}: it has {len(callee.parameters)} parameters and {len(results)} results, and "
            f"there are {counts[0]} and {counts[1]}; give one for each", kind="ptensor"
        )
    for given, parameter in zip(apply.types, callee.parameters, strict=True):
        _check_passed(f"{where}: parameter %{parameter.name}", parameter.type, given)
    for wanted, (name, type) in zip(op.gives, results, strict=True):
        _check_passed(f"{where}: result %{name}", wanted, type)


def _check_passed(where: str, taken: ValueType, given: ValueType) -> None:
    """Refuse a value that is taken as of another type than it is; its number may be left open."""
    if isinstance(taken, PTensorType) and isinstance(given, PTensorType):
        places = f"{where} is taken as {taken}, and given as {given}; a value keeps its"
        if taken.device != given.device:
            raise DeviceMismatchError(f"{places} device: bring it there before")
        if taken.team != given.team:
            raise TeamMismatchError(f"{places} team: gather it before, or write that team")
        if taken.gid is None:
            given = replace(given, gid=None)
    if taken != given:
        raise ArrayValueError(
            f"{where} is taken as {taken}, and given as {given}; write that", kind="ptensor"
        )
