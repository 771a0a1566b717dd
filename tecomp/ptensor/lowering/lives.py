"""Tensors of a team in a lowered function: each is ended once, and not used afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.errors import ArrayValueError
from tecomp.ptensor.lowering.lowered import (
    DeviceRegion,
    Dist,
    Let,
    Lowered,
    Name,
    Operand,
    RuntimeCall,
    Statement,
    Together,
)

_NUMBERS = {"init_dtensor": 0, "copy": 2}
"""How many of the operands of an operation are numbers of tensors; one, of the others."""


def verify_lives(function: Lowered) -> None:
    """Check that no tensor is ended twice, or used after its end.

    Raises:
        ArrayValueError: one is; with the lines.
    """
    ended: dict[str, int] = {}
    tuples: dict[str, str] = {}
    for line, statement in numbered(function):
        value = statement.value
        if isinstance(value, Together) and isinstance(value.operands[3], Name):
            tuples[statement.result or ""] = _tensor(value.operands[3], tuples)
        if not isinstance(value, Dist | RuntimeCall):
            continue
        for operand in value.operands[: _NUMBERS.get(value.function, 1)]:
            tensor = _tensor(operand, tuples)
            if tensor in ended:
                where = f"@{function.name}: line {line}: `{value}`"
                raise ArrayValueError(
                    _complaint(where, value, operand, ended[tensor]), kind="ptensor"
                )
            if value.function == "fini_dtensor":
                ended[tensor] = line
    for name in function.results:
        tensor = _tensor(Name(name, 3), tuples)
        if tensor in ended:
            raise ArrayValueError(
                f"@{function.name}: line {ended[tensor]} ends the tensor of %{name}, which is "
                "given back; leave that to the caller",
                kind="ptensor",
            )


def _complaint(where: str, value: Dist | RuntimeCall, operand: Operand, line: int) -> str:
    if value.function == "fini_dtensor":
        return f"{where} ends {operand}, which line {line} ended; leave one of them out"
    return f"{where} uses {operand}, which line {line} ended; end it behind its last use"


def numbered(function: Lowered) -> Iterator[tuple[int, Let]]:
    """The statements that are done, with the lines of the printed form, from 1."""
    line = 2
    for statement in function.body:
        if isinstance(statement, DeviceRegion):
            line += 1
        for let in lets_of(statement):
            yield line, let
            line += let.printed
        line += isinstance(statement, DeviceRegion)


def lets_of(statement: Statement) -> tuple[Let, ...]:
    """A statement itself, or those in a region."""
    if isinstance(statement, Let):
        return (statement,)
    return tuple([let for let in statement.body if isinstance(let, Let)])


def _tensor(operand: Operand, tuples: dict[str, str]) -> str:
    """What names a tensor: its number, or the tuple of a parameter."""
    if not isinstance(operand, Name) or operand.part is None:
        return str(operand)
    return tuples.get(operand.name, str(operand))
