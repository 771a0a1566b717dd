"""`lower_ptensor`: each tensor becomes a tuple, each operation what computes and where."""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.ptensor.function import Apply, Function
from tecomp.ptensor.lowering.lowered import Lowered, Statement
from tecomp.ptensor.lowering.one import Lowering, Names
from tecomp.ptensor.lowering.regions import joined, verify_lowered
from tecomp.ptensor.lowering.rules import rule_of
from tecomp.ptensor.operations.manipulation import Broadcast, ExpandDims
from tecomp.ptensor.operations.meshgrid import MeshGrid
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.verify import verify


def lower_ptensor(function: Function, ignore_team: bool = False) -> Lowered:
    """A function on plain tensors.

    A parallel tensor is a tuple of a tensor, its device, its team and its number. An operation
    whose operands have a device runs in a region of that; one whose operands have a team is
    preceded by what the team has to know.

    Args:
        function: the function.
        ignore_team: whether to do as if there was one process.

    Raises:
        ArrayValueError: the function does not fit together.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    verify(function)
    body: list[Statement] = []
    names = Names(function)
    for apply in _expanded(function, names):
        lowering = Lowering(apply, names, ignore_team)
        rule_of(apply.op)(lowering)
        body += lowering.statements()
    lowered = Lowered(function.name, function.parameters, joined(body), function.results)
    verify_lowered(lowered)
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
