"""The size variables of a program."""

from __future__ import annotations

from collections.abc import Sequence, Set

from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor
from tecomp.compute.variables import variables_in, variables_of
from tecomp.errors import LowerError
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import Extent
from tecomp.ir.language.text import identifier, take_name
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.lowering.stages.strides import Strides
from tecomp.scheduling.state import Split, StageState, State, Transform


def extents_of(stage: StageState) -> list[Extent]:
    """The extents of the axes of a stage, and where they begin."""
    found: list[Extent] = [n for shape in stage.op.shapes for n in shape]
    if isinstance(stage.op, ComputeOp):
        found += [n for axis in stage.op.reduce_axis for n in (axis.dom.min, axis.extent)]
    changed = (r for r in stage.relations if isinstance(r, Transform))
    return [*found, *(axis.extent for relation in changed for axis in relation.after)]


def sizes_of(
    state: State, arguments: Sequence[Tensor | Var], strides: Strides = ()
) -> tuple[dict[Var, Var], Set[Var]]:
    """A variable of the function for each size variable of the computation, and for each stride.

    The second result are those of the latter that are nothing but strides.
    """
    steps = [var for each in strides for n in each or () for var in variables_in(n)]
    found: dict[Var, None] = {a: None for a in arguments if isinstance(a, Var)}
    bound = set(found)
    taken: set[str] = set()
    for argument in arguments:
        for extent in argument.shape if isinstance(argument, Tensor) else ():
            variables = variables_in(extent)
            found.update(dict.fromkeys(variables))
            bound.update(variables)
    bound.update(steps)
    for stage in state:
        used = dict.fromkeys((*variables_of(stage.op), *_scheduled(stage)))
        for var in used:
            if var not in bound:
                raise LowerError(
                    f"lower: {stage.name} depends on {var.name}, which no argument determines; "
                    f"add {var.name} itself to the arguments",
                    kind="argument-list",
                )
        found.update(used)
    only_strides = set(steps) - found.keys()
    found.update(dict.fromkeys(steps))
    types = {var: INT64 if var.dtype.is_integer else var.dtype for var in found}
    made = {var: Var(take_name(identifier(var.name), taken), types[var]) for var in found}
    return made, {made[var] for var in only_strides}


def _scheduled(stage: StageState) -> list[Var]:
    """The variables in factors of splits and in values of padding."""
    found = [
        var
        for relation in stage.relations
        if isinstance(relation, Split)
        for extent in (relation.factor, relation.nparts)
        if extent is not None
        for var in variables_in(extent)
    ]
    pad = stage.layout.pad_value
    return [*found, *(free_variables(pad) if pad is not None else ())]
