"""Symbolic sizes and strides of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from tecomp.compute.access_relations import variables_in, variables_of
from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError
from tecomp.ir.arith.extents import product
from tecomp.ir.nodes.argument_checks import dictionary_of
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Var, index_value
from tecomp.ir.nodes.printer import identifier, take_name
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.scheduling.state import Split, StageState, State, Transform

Strides: TypeAlias = "tuple[tuple[Extent, ...] | None, ...]"
"""Of each argument, in elements; None where its array has no gaps, and () if none has any."""


def strides_of(
    binds: Mapping[Tensor, Buffer] | None, args: Sequence[object], where: str
) -> Strides:
    """The strides that `te.decl_buffer`s in `binds` say for some of the arguments.

    Strides that arrays without gaps have in any case are not listed.

    Raises:
        LowerError: a buffer is for no argument, or declares something else than it is.
    """
    asked = dictionary_of(
        binds, Tensor, Buffer, f"{where}: binds", "give a te.decl_buffer for each tensor",
        LowerError,
    )
    if not asked or not isinstance(args, list | tuple):
        return ()
    for tensor, buffer in asked.items():
        if not any(tensor == arg for arg in args if isinstance(arg, Tensor)):
            raise LowerError(
                f"{where}: binds has {tensor.name}, which is no argument; leave it out, or add it "
                "to the arguments",
                kind="argument-list",
            )
        _check_alike(tensor, buffer, f"{where}: binds: {tensor.name}")
    found = tuple(
        _gaps(asked[arg]) if isinstance(arg, Tensor) and arg in asked else None for arg in args
    )
    return found if any(strides is not None for strides in found) else ()


def _check_alike(tensor: Tensor, buffer: Buffer, where: str) -> None:
    """Refuse a buffer that is not one of the tensor.

    Raises:
        LowerError: its shape, type or memory are others.
    """
    alike = len(tensor.shape) == len(buffer.shape) and all(map(_same, tensor.shape, buffer.shape))
    if not alike or buffer.dtype != tensor.dtype or buffer.scope not in ("", "global"):
        raise LowerError(
            f"{where}: `{buffer}` is declared for {tensor!r}; declare its shape and type, and "
            "leave its memory to set_scope",
            kind="contrary-options",
        )
    if buffer.strides is not None and buffer.dtype.lanes > 1:
        raise LowerError(
            f"{where}: strides count numbers, and an element is a {buffer.dtype}; declare a tensor "
            f"of {buffer.dtype.scalar} with an axis more, or leave the strides out"
        )


def _gaps(buffer: Buffer) -> tuple[Extent, ...] | None:
    """The strides of a buffer, if they are not those of an array without gaps."""
    compact = [product(buffer.shape[axis + 1 :]) for axis in range(len(buffer.shape))]
    if buffer.strides is None or all(map(_same, buffer.strides, compact)):
        return None
    return buffer.strides


def _same(a: Extent, b: Extent) -> bool:
    return same(index_value(a), index_value(b))


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
