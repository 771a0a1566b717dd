"""`dist_to_runtime`: operations on tensors of a team become calls of `tecomp.dist`."""

from __future__ import annotations

from dataclasses import replace

from tecomp.dist.partition.placements import Placement
from tecomp.ptensor.lowering.lives import lets_of, verify_lives
from tecomp.ptensor.lowering.lowered import (
    DeviceRegion,
    Dist,
    Let,
    Literal,
    Lowered,
    Name,
    RuntimeCall,
    Statement,
    Together,
)
from tecomp.ptensor.lowering.regions import names_of, verify_lowered


def dist_to_runtime(function: Lowered) -> Lowered:
    """A function whose operations on tensors of a team are calls of the runtime.

    Tensors that the function makes and does not give back are ended behind their last use.

    Args:
        function: what `lower_ptensor` made.

    Raises:
        ArrayValueError: a tensor is ended twice, or used after its end.

    Source:
        RFC PTensor, "--dist-to-intel-runtime".
    """
    verify_lives(function)
    body = _ended(function)
    made = replace(function, body=tuple([_called(statement) for statement in body]))
    verify_lowered(made)
    return made


def _called(statement: Statement) -> Statement:
    if isinstance(statement, DeviceRegion):
        return replace(statement, body=tuple([_called(inner) for inner in statement.body]))
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


def _ended(function: Lowered) -> list[Statement]:
    """The statements, and the ends of tensors that nobody needs afterwards."""
    made: dict[str, Dist] = {}
    last: dict[str, int] = {}
    tuples: dict[str, str] = {}
    kept: set[str] = set()
    for k, statement in enumerate(function.body):
        for let in lets_of(statement):
            value, result = let.value, let.result or ""
            named = [tuples.get(name, name) for name in names_of(let)]
            last.update(dict.fromkeys(named, k))
            if isinstance(value, Together) and isinstance(value.operands[3], Name):
                tuples[result] = value.operands[3].name
            if isinstance(value, Dist) and value.function in ("init_dtensor", "init_view"):
                made[result], last[result] = value, k
            elif isinstance(value, Dist) and value.function == "fini_dtensor":
                kept.update(named)
    kept.update([tuples.get(name, name) for name in function.results])
    ends: list[Statement] = []
    for k, statement in enumerate(function.body):
        ends.append(statement)
        ends += [
            Let(None, Dist("fini_dtensor", (Name(name),), value.team))
            for name, value in made.items() if last[name] == k and name not in kept
        ]
    return ends
