"""Calls of other functions: operands go there as such functions take them, in tuples."""

from __future__ import annotations

from tecomp.errors import ArrayValueError
from tecomp.ptensor.lowering.lowered import (
    Call,
    DeviceRegion,
    Dist,
    FunctionCall,
    Let,
    Literal,
    Name,
    Operand,
    Statement,
    Together,
)
from tecomp.ptensor.lowering.one import Callee, Lowering
from tecomp.ptensor.operations import call as operations
from tecomp.ptensor.types import PTensorType


def lower_call(lowering: Lowering) -> None:
    """A call of the lowered function, in no region: it has its own."""
    op = lowering.apply.op
    assert isinstance(op, operations.Call)
    callee = lowering.names.callees.get(op.function)
    if callee is None:
        raise ArrayValueError(
            f"@{op.function} is called, and is not there; lower the module that has both functions",
            kind="ptensor",
        )
    fresh = tuple([
        isinstance(type, PTensorType) and type.team is not None and not lowering.ignore_team
        and source is None for type, source in zip(op.gives, callee.returned, strict=True)
    ])
    operands = tuple([_passed(lowering, k) for k in range(len(lowering.apply.operands))])
    call = FunctionCall(op.function, operands, lowering.apply.types, op.gives, fresh)
    if len(op.gives) == 1 and callee.returned == (None,):
        lowering.after.append(Let(lowering.apply.result or lowering.names.new("called"), call))
        _note(lowering, callee, 0)
        return
    name = lowering.names.new("called")
    lowering.after.append(Let(name, call))
    for number, made in enumerate(lowering.apply.made):
        source = callee.returned[number]
        if source is None:
            lowering.after.append(Let(made.name, Name(name, number)))
            _note(lowering, callee, number)
        else:
            _again(lowering, made.name, source)


def _note(lowering: Lowering, callee: Callee, number: int) -> None:
    if callee.whole[number] and lowering.apply.made:
        lowering.names.whole.add(lowering.apply.made[number].name)


def _again(lowering: Lowering, name: str, k: int) -> None:
    """A result that is an operand: another name for it, so that it is not ended twice."""
    operand, type = lowering.apply.operands[k], lowering.apply.types[k]
    if isinstance(type, str):
        lowering.after.append(Let(name, Name(operand)))
        return
    names = lowering.names
    names.parts[name] = names.tensor(operand), names.gid(operand)
    if operand in names.whole:
        names.whole.add(name)
    place = Literal(type.device), Literal(type.team)
    lowering.after.append(Let(name, Together((names.tensor(operand), *place, names.gid(operand)))))


def _passed(lowering: Lowering, k: int) -> Operand:
    """An operand, of a team with the first axis in blocks: functions take all tensors so."""
    name, type = lowering.apply.operands[k], lowering.apply.types[k]
    names = lowering.names
    if (
        isinstance(type, str) or type.team is None or lowering.ignore_team or not type.shape
        or name not in names.whole
    ):
        return Name(name)
    team, device = Literal(type.team), Literal(type.device)
    gshape, gid, lslice, part, passed = map(
        names.new, ("gshape", "gid", "lslice", "part", "passed"))
    cut = Let(part, Call("tensor.extract_slice", (names.tensor(name), Name(lslice))))
    local: Statement = cut if type.device is None else DeviceRegion(device, (cut,))
    lowering.after += [
        Let(gshape, Call("$shape", (Literal(type.shape),))),
        Let(gid, Dist("init_dtensor", (Name(gshape),), team, type.dtype)),
        Let(lslice, Dist("local_slice", (Name(gid),), team)),
        local,
        Let(passed, Together((Name(part), device, team, Name(gid)))),
    ]
    return Name(passed)
