"""Partial last tiles of a tensor intrinsic: mask, pad or refuse.

Output elements beyond the end are masked. Reduction steps beyond the end must be neutral: their
operands are 0 (masked) or the pad value of a layout, and the intrinsic must combine these to the
identity of the reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import LowerError
from tecomp.ir.interpreter.evaluate import evaluate
from tecomp.ir.nodes.expr import Const, Expr, Var, cast
from tecomp.ir.nodes.stmt import Buffer, BufferStore, PrimFunc
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import contains, free_variables, top_down
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.edge_tiles import Bounds, Memory, with_padding
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.tensor_ops.pattern_match import Masks, intrinsic_loads
from tecomp.poly.accesses.tiles import (
    IterationTile,
    OperandAccess,
    missing_reduction_points,
    out_of_range_operands,
    padding_elements,
    readable_condition,
)
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.to_isl import NotAffine
from tecomp.scheduling.state import AtRoot


def masks_of(
    program: PreparedSchedule,
    definition: Definition,
    intrin: TensorIntrin,
    where: str,
    tile: IterationTile,
    accesses: Sequence[OperandAccess],
    loads: Sequence[TensorLoad],
    memory: Memory,
) -> Masks:
    """Return the masks of the operands of a partial tile.

    Args:
        program: Program with all definitions.
        definition: Definition of the stage.
        intrin: Tensor intrinsic.
        where: Prefix of error messages.
        tile: Tile, which may be partial.
        accesses: Accesses of the operands, the output last.
        loads: Reads that are the inputs; empty if the reduction is only initialized.
        memory: Elements that are backed by memory, for each tensor in scope.

    Returns:
        Index variables and condition of valid elements, by operand number.

    Raises:
        LowerError: If reads beyond the end of a reduction would change the result.
    """
    reduced = [axis for axis in intrin.op.reduce_axis if any(axis is other for other in tile.axes)]
    padding = [
        _padding(program, load, accesses[k], tile, memory) for k, load in enumerate(loads)
    ]
    if loads and reduced and not missing_reduction_points(tile, reduced).is_empty():
        _check_neutral(definition, intrin, where, tile, accesses, padding)
    masks: dict[int, tuple[tuple[Var, ...], Expr]] = {}
    for k, access in enumerate(accesses):
        if access.operand_indices or access.tensor_indices:
            names = tuple(Var(f"u{n}") for n in range(len(access.operand_indices)))
            pad_elements = padding[k].elements if k < len(padding) else None
            masks[k] = names, readable_condition(access, tile, names, pad_elements)
    return masks


@dataclass(frozen=True)
class _Padding:
    """Pad value of an operand, and the elements of a tile in the padding, or None."""

    value: Const
    elements: Any


def _padding(
    program: PreparedSchedule, load: TensorLoad, access: OperandAccess, tile: IterationTile,
    memory: Memory
) -> _Padding:
    """Return the padding of a tensor if its layout has a constant pad value, else zero."""
    default = _Padding(_zero(load), None)
    definition = program.definitions.get(program.producer(load.tensor))
    if definition is None:
        return default
    layout = definition.stage.layout
    value = None if layout.pad_value is None else cast(load.dtype, layout.pad_value.value)
    if not isinstance(value, Const):
        return default
    shape = [(Const(0), extent) for extent in program.shape(definition)]
    indices: list[Expr] = list(definition.axis)
    for index_map in layout.maps:
        indices = list(IndexMap.lift(index_map).map_indices(indices))
    try:
        backed = _backed_elements(program, definition, shape, tile, memory)
        return _Padding(
            value, padding_elements(access, tile, definition.axis, shape, backed, indices)
        )
    except NotAffine:
        return default


def _backed_elements(
    program: PreparedSchedule, definition: Definition, shape: Bounds, tile: IterationTile,
    memory: Memory
) -> Bounds:
    """Return the elements of a computed tensor that are backed by memory, padding included."""
    if isinstance(definition.stage.attach, AtRoot):
        # A root stage is stored in full, including its padding.
        return with_padding(definition, shape, [extent for _, extent in shape], tile.scope)
    return memory[definition.stage.key].bounds


def _zero(load: TensorLoad) -> Const:
    kind = load.dtype
    return Const(0.0 if kind.is_float else False if kind.is_bool else 0, kind)


def can_overcompute(
    program: PreparedSchedule,
    definition: Definition,
    intrin: TensorIntrin,
    tile: IterationTile,
    accesses: Sequence[OperandAccess],
    loads: Sequence[TensorLoad],
    memory: Memory,
) -> bool:
    """Return whether a partial tile can be computed in full without masks.

    This requires that accesses beyond the end are backed by memory, that surplus reduction steps
    are neutral, and that the layout of the result specifies no pad value. The arguments are those
    of `masks_of`.
    """
    backed = [memory.get(program.producer(load.tensor)) for load in loads]
    backed.append(memory.get(definition.stage.key))
    accessed = [access for access in accesses if access.operand_indices or access.tensor_indices]
    if definition.stage.layout.pad_value is not None or len(accessed) < len(backed):
        return False
    try:
        if not all(
            region is not None and tile.lies_in(access, region.bounds)
            for access, region in zip(accessed, backed, strict=True)
        ):
            return False
    except NotAffine:
        return False
    reduced = [axis for axis in intrin.op.reduce_axis if any(axis is other for other in tile.axes)]
    if not loads or missing_reduction_points(tile, reduced).is_empty():
        return True
    padding = [
        _padding(program, load, accesses[k], tile, memory) for k, load in enumerate(loads)
    ]
    return all(
        item.elements is not None
        and not out_of_range_operands(accesses[k], tile, intrin.op.reduce_axis, item.elements)[2]
        for k, item in enumerate(padding)
    ) and _beyond_the_end(intrin, tile, accesses, padding)[0]


def _check_neutral(
    definition: Definition, intrin: TensorIntrin, where: str, tile: IterationTile,
    accesses: Sequence[OperandAccess], padding: Sequence[_Padding],
) -> None:
    is_neutral, found_there = _beyond_the_end(intrin, tile, accesses, padding)
    if is_neutral:
        return
    reduce = intrin.op.body[0]
    assert isinstance(reduce, Reduce)
    operands = intrinsic_loads(intrin)
    read = ", ".join(f"{operands[k].tensor.name} = {value}" for k, value in found_there.items())
    raise LowerError(
        "{where}: {definition}; beyond the end, {intrin} reads {read}, so its {combiner} of "
        "{source} would change the result; split by a divisor, or read copies in a layout with "
        "pad_value= such that each step gives the identity {identity}",
        kind="tensorize", where=where, definition=", ".join(_undivided_axes(definition, tile)),
        intrin=intrin.name, read=read or "no padded operand",
        combiner=reduce.combiner.name, source=reduce.source[0],
        identity=reduce.combiner.identity[0],
    )


def _beyond_the_end(
    intrin: TensorIntrin, tile: IterationTile, accesses: Sequence[OperandAccess],
    padding: Sequence[_Padding]
) -> tuple[bool, dict[int, Expr]]:
    """Return whether surplus reduction steps are neutral.

    Returns:
        Whether the steps are neutral, and the value beyond the end of each operand that ends there,
        by operand number.
    """
    reduce = intrin.op.body[0]
    assert isinstance(reduce, Reduce)
    found_there: dict[int, Expr] = {}
    operands = intrinsic_loads(intrin)
    for k, load in enumerate(operands):
        pad, zero = padding[k].value, _zero(load)
        is_read, in_padding, in_nothing = out_of_range_operands(
            accesses[k], tile, intrin.op.reduce_axis, padding[k].elements
        )
        if not is_read and (not (in_padding and in_nothing) or structural_equal(pad, zero)):
            found_there[k] = pad if in_padding else zero

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        k = next(k for k, load in enumerate(operands) if structural_equal(node, load))
        return found_there.get(k, node)

    found = _value(top_down(reduce.source[0], rule))
    neutral = _value(reduce.combiner.identity[0])
    is_neutral = found is not None and neutral is not None and np.array_equal(found, neutral)
    return is_neutral, found_there


def _value(expr: Expr) -> Any:
    """Evaluate a constant expression to an array; None if it contains reads or variables."""
    if contains((TensorLoad, Var), expr):
        return None
    out = Buffer("out", (1,), expr.dtype)
    array = np.zeros((1, *([expr.dtype.lanes] if expr.dtype.lanes > 1 else [])), expr.dtype.numpy)
    evaluate(PrimFunc("value", (out,), BufferStore(out, expr, (Const(0),))), [array])
    return array


def _undivided_axes(definition: Definition, tile: IterationTile) -> list[str]:
    """Return descriptions of the reduction axes whose extents the tiles do not divide."""
    found = []
    for axis, coord in zip(definition.reduce_axis, tile.coordinates[len(definition.axis) :],
                           strict=True):  # fmt: skip
        count = 1
        variables = free_variables(coord)
        for tile_axis, extent in zip(tile.axes, tile.extents, strict=True):
            count *= extent if tile_axis in variables else 1
        extents = axis.extent
        if count > 1 and (not isinstance(extents, int) or extents % count):
            found.append(f"tiles of {count} do not divide axis {axis.name} of extent {extents}")
    return found or [f"some tiles of {definition.stage.name} are only partially computed"]
