"""`lower_ptensor`: each tensor becomes a tuple, each operation what computes and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import overload

from tecomp.ptensor.function import Apply, Function, Module
from tecomp.ptensor.lowering.lowered import Lowered, LoweredModule, Statement
from tecomp.ptensor.lowering.one import Callee, Lowering, Names
from tecomp.ptensor.lowering.regions import joined, verify_lowered, verify_lowered_module
from tecomp.ptensor.lowering.rules import rule_of
from tecomp.ptensor.operations.manipulation import Broadcast, ExpandDims
from tecomp.ptensor.operations.meshgrid import MeshGrid
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.verify import callees_first, verify, verify_module


@overload
def lower_ptensor(function: Function, ignore_team: bool = ...) -> Lowered: ...
@overload
def lower_ptensor(function: Module, ignore_team: bool = ...) -> LoweredModule: ...
def lower_ptensor(
    function: Function | Module, ignore_team: bool = False
) -> Lowered | LoweredModule:
    """A function on plain tensors.

    A parallel tensor is a tuple of a tensor, its device, its team and its number. An operation
    whose operands have a device runs in a region of that; one whose operands have a team is
    preceded by what the team has to know.

    Args:
        function: the function; or a module of functions that call each other.
        ignore_team: whether to do as if there was one process.

    Raises:
        ArrayValueError: the function does not fit together.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    if isinstance(function, Function):
        verify(function)
        return _lowered(function, ignore_team, {})
    verify_module(function)
    callees: dict[str, Callee] = {}
    module = LoweredModule(tuple([
        _lowered(each, ignore_team, callees) for each in callees_first(function)
    ]))
    verify_lowered_module(module)
    return module


def _lowered(function: Function, ignore_team: bool, callees: dict[str, Callee]) -> Lowered:
    """A function that calls others; what calls of it have to know is added to theirs."""
    body: list[Statement] = []
    names = Names(function, callees)
    for apply in _expanded(function, names):
        lowering = Lowering(apply, names, ignore_team)
        rule_of(apply.op)(lowering)
        body += lowering.statements()
    lowered = Lowered(function.name, function.parameters, joined(body), function.results)
    verify_lowered(lowered)
    places = {parameter.name: k for k, parameter in enumerate(function.parameters)}
    callees[function.name] = Callee(
        tuple([places.get(name) for name in function.results]),
        tuple([name in names.whole for name in function.results]),
    )
    return lowered


def _expanded(function: Function, names: Names) -> Iterator[Apply]:
    """The operations, where what has a shorter form is left out."""
    for apply in function.body:
        if isinstance(apply.op, MeshGrid):
            yield from _grid(apply, apply.op, names)
        else:
            yield apply


def _grid(apply: Apply, op: MeshGrid, names: Names) -> Iterator[Apply]:
    """Each operand with an axis for each of the others, repeated along these."""
    order = op.order(len(apply.operands))
    types = [type for type in apply.types if isinstance(type, PTensorType)]
    results = op.results(*types)
    for k, (result, name, type) in enumerate(zip(results, apply.operands, types, strict=True)):
        new = ExpandDims(tuple([a for a in range(len(order)) if order[a] != k or not type.rank]))
        if new.axis:
            wide = names.new("axes")
            yield Apply(wide, new, (name,), (type,), new.infer(type))
            name, type = wide, new.infer(type)
        made = apply.made[k].name if k < len(apply.made) else None
        yield Apply(made, Broadcast(result.shape), (name,), (type,), result)
