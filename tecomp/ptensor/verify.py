"""What has to hold in a function, beyond what its operations check when they are made."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.errors import ArrayValueError
from tecomp.ptensor.function import Function
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.types import ValueType

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
            f"{where} takes {value} as {attribute}, and it is {found}; give {' or '.join(taken)}"
        )


def _add(known: dict[str, ValueType], name: str, type: ValueType, function: Function) -> None:
    if name in known:
        raise ArrayValueError(
            f"@{function.name}: %{name} is made twice; give one another name", kind="ptensor"
        )
    known[name] = type
