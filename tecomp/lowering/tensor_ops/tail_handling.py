"""Partial last tiles of a tensor intrinsic: mask, pad or refuse.

Elements of the result beyond the end are not stored. Steps of a reduction beyond the end must
change nothing: what is read there is 0 by a mask, or what the padding of a layout holds, and the
operation has to combine that to the value that a reduction starts from.
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
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import free_variables, top_down, walk
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.edge_tiles import Bounds, Memory, with_padding
from tecomp.lowering.stages.program import Program
from tecomp.lowering.tensor_ops.operand_binding import Masks
from tecomp.lowering.tensor_ops.pattern_match import own_loads
from tecomp.poly.accesses.tiles import Access, Tile, beyond, overrun, padded, touched_condition
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.to_isl import NotAffine
from tecomp.scheduling.state import AtRoot


def masks_of(
    program: Program,
    definition: Definition,
    intrin: TensorIntrin,
    where: str,
    tile: Tile,
    accesses: Sequence[Access],
    loads: Sequence[TensorLoad],
    memory: Memory,
) -> Masks:
    """For the operands of a tile of which a part is missing, which of their elements there are.

    Args:
        program: the definitions.
        definition: the stage.
        intrin: the operation.
        where: begins messages.
        tile: the tile.
        accesses: of the operands, the output last.
        loads: the reads that are the inputs; none where the reduction only starts.
        memory: for each tensor that exists here, the elements that its memory has.

    Returns:
        By the number of the operand: variables for its indices, and the condition.

    Raises:
        LowerError: what is read beyond the end of a reduction would change the result.
    """
    reduced = [axis for axis in intrin.op.reduce_axis if any(axis is own for own in tile.axes)]
    padding = [
        _padding(program, load, accesses[k], tile, memory) for k, load in enumerate(loads)
    ]
    if loads and reduced and not overrun(tile, reduced).is_empty():
        _check_neutral(definition, intrin, where, tile, accesses, padding)
    masks: dict[int, tuple[tuple[Var, ...], Expr]] = {}
    for k, access in enumerate(accesses):
        if access.own or access.others:
            names = tuple(Var(f"u{n}") for n in range(len(access.own)))
            roomy = padding[k].elements if k < len(padding) else None
            masks[k] = names, touched_condition(access, tile, names, roomy)
    return masks


@dataclass(frozen=True)
class _Padding:
    """What the padding of an operand holds, and the elements of a tile that are in it, if any."""

    value: Const
    elements: Any


def _padding(
    program: Program, load: TensorLoad, access: Access, tile: Tile, memory: Memory
) -> _Padding:
    """What lies beyond the end of a tensor, where a layout says so."""
    nothing = _Padding(_zero(load), None)
    definition = program.definitions.get(program.producer(load.tensor))
    if definition is None:
        return nothing
    layout = definition.stage.layout
    value = None if layout.pad_value is None else cast(load.dtype, layout.pad_value.value)
    if not isinstance(value, Const):
        return nothing
    shape = [(Const(0), extent) for extent in program.shape(definition)]
    places: list[Expr] = list(definition.axis)
    for index_map in layout.maps:
        places = list(IndexMap.lift(index_map).map_indices(places))
    try:
        roomy = _held(program, definition, shape, tile, memory)
        return _Padding(value, padded(access, tile, definition.axis, shape, roomy, places))
    except NotAffine:
        return nothing


def _held(
    program: Program, definition: Definition, shape: Bounds, tile: Tile, memory: Memory
) -> Bounds:
    """The elements that the memory of a computed tensor has, with those that are padding."""
    if isinstance(definition.stage.attach, AtRoot):
        # It is stored as a whole, with all of its padding.
        return with_padding(definition, shape, [extent for _, extent in shape], tile.scope)
    return memory[definition.stage.key].bounds


def _zero(load: TensorLoad) -> Const:
    kind = load.dtype
    return Const(0.0 if kind.is_float else False if kind.is_bool else 0, kind)


def runs_over(
    program: Program,
    definition: Definition,
    intrin: TensorIntrin,
    tile: Tile,
    accesses: Sequence[Access],
    loads: Sequence[TensorLoad],
    memory: Memory,
) -> bool:
    """Whether all of a tile can be computed though a part of it is not asked for.

    What it reads and writes beyond the end lies in memory, steps of a reduction that are too many
    change nothing, and nobody is promised what the padding of the result holds. The arguments are
    those of `masks_of`.
    """
    held = [memory.get(program.producer(load.tensor)) for load in loads]
    held.append(memory.get(definition.stage.key))
    used = [access for access in accesses if access.own or access.others]
    if definition.stage.layout.pad_value is not None or len(used) < len(held):
        return False
    try:
        if not all(
            place is not None and tile.lies_in(access, place.bounds)
            for access, place in zip(used, held, strict=True)
        ):
            return False
    except NotAffine:
        return False
    reduced = [axis for axis in intrin.op.reduce_axis if any(axis is own for own in tile.axes)]
    if not loads or overrun(tile, reduced).is_empty():
        return True
    padding = [
        _padding(program, load, accesses[k], tile, memory) for k, load in enumerate(loads)
    ]
    return all(
        each.elements is not None
        and not beyond(accesses[k], tile, intrin.op.reduce_axis, each.elements)[2]
        for k, each in enumerate(padding)
    ) and _beyond_the_end(intrin, tile, accesses, padding)[0]


def _check_neutral(
    definition: Definition, intrin: TensorIntrin, where: str, tile: Tile,
    accesses: Sequence[Access], padding: Sequence[_Padding],
) -> None:
    is_neutral, found_there = _beyond_the_end(intrin, tile, accesses, padding)
    if is_neutral:
        return
    reduce = intrin.op.body[0]
    assert isinstance(reduce, Reduce)
    operands = own_loads(intrin)
    read = ", ".join(f"{operands[k].tensor.name} = {value}" for k, value in found_there.items())
    raise LowerError(
        f"{where}: {', '.join(_missing(definition, tile))}; beyond the end {intrin.name} has "
        f"{read or 'no operand that ends there'}, and its {reduce.combiner.name} of "
        f"{reduce.source[0]} would not stay as it is; split by a divisor, or read copies in a "
        f"layout with pad_value= such that each step gives {reduce.combiner.identity[0]}",
        kind="tensorize",
    )


def _beyond_the_end(
    intrin: TensorIntrin, tile: Tile, accesses: Sequence[Access], padding: Sequence[_Padding]
) -> tuple[bool, dict[int, Expr]]:
    """Whether steps of a reduction that are too many change nothing.

    Returns:
        That, and what the operands that end there hold beyond, by their number.
    """
    reduce = intrin.op.body[0]
    assert isinstance(reduce, Reduce)
    found_there: dict[int, Expr] = {}
    operands = own_loads(intrin)
    for k, load in enumerate(operands):
        pad, zero = padding[k].value, _zero(load)
        is_read, in_padding, in_nothing = beyond(
            accesses[k], tile, intrin.op.reduce_axis, padding[k].elements
        )
        if not is_read and (not (in_padding and in_nothing) or same(pad, zero)):
            found_there[k] = pad if in_padding else zero

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        k = next(k for k, load in enumerate(operands) if same(node, load))
        return found_there.get(k, node)

    found = _value(top_down(reduce.source[0], rule))
    neutral = _value(reduce.combiner.identity[0])
    is_neutral = found is not None and neutral is not None and np.array_equal(found, neutral)
    return is_neutral, found_there


def _value(expr: Expr) -> Any:
    """The number that an expression of numbers is; None if it depends on anything else."""
    if any(isinstance(node, TensorLoad | Var) for node in walk(expr)):
        return None
    out = Buffer("out", (1,), expr.dtype)
    array = np.zeros((1, *([expr.dtype.lanes] if expr.dtype.lanes > 1 else [])), expr.dtype.numpy)
    evaluate(PrimFunc("value", (out,), BufferStore(out, expr, (Const(0),))), [array])
    return array


def _missing(definition: Definition, tile: Tile) -> list[str]:
    """The axes of the reduction that the tiles do not divide, with their extents."""
    found = []
    for axis, place in zip(definition.reduce_axis, tile.places[len(definition.axis) :],
                           strict=True):  # fmt: skip
        count = 1
        used = free_variables(place)
        for own, extent in zip(tile.axes, tile.extents, strict=True):
            count *= extent if own in used else 1
        extents = axis.extent
        if count > 1 and (not isinstance(extents, int) or extents % count):
            found.append(f"tiles of {count} do not divide axis {axis.name} of extent {extents}")
    return found or [f"a part of the tiles of {definition.stage.name} is not to be computed"]
