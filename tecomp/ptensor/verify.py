"""What has to hold in a function, beyond what its operations check when they are made."""

from __future__ import annotations

from tecomp.errors import ArrayValueError
from tecomp.ptensor.function import Function, Parameter
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.types import PTensorType


def verify(function: Function) -> None:
    """Check that each name has one meaning, and is read where it has one.

    Raises:
        ArrayValueError: a name has two, or none yet, or another type than where it is read.
    """
    known: dict[str, PTensorType | str] = {}
    for parameter in function.parameters:
        _add(known, parameter.name, parameter.type, function)
    numbers = {p.name for p in function.parameters if _is_number(p)}
    for apply in function.body:
        for name, type in zip(apply.operands, apply.types, strict=True):
            if name not in known:
                raise ArrayValueError(
                    f"@{function.name}: %{apply.result} reads %{name}, which is not computed "
                    "before it; move it up"
                )
            if known[name] != type:
                raise ArrayValueError(
                    f"@{function.name}: %{apply.result} reads %{name} as {type}, and it is "
                    f"{known[name]}"
                )
        for _, value in apply.op.attributes:
            if isinstance(value, Argument) and value.name not in numbers:
                raise ArrayValueError(
                    f"@{function.name}: %{apply.result} takes {value} as a number, and there is "
                    "no such parameter"
                )
        for made in apply.made:
            _add(known, made.name, made.type, function)
    for name in function.results:
        function.type_of(name)


def _is_number(parameter: Parameter) -> bool:
    return isinstance(parameter.type, str)


def _add(
    known: dict[str, PTensorType | str], name: str, type: PTensorType | str, function: Function
) -> None:
    if name in known:
        raise ArrayValueError(f"@{function.name}: %{name} is made twice; give one another name")
    known[name] = type
