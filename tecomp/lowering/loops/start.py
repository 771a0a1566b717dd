"""Where the elements of a reduction get their first value: in loops of their own, or on the way."""

from __future__ import annotations

from collections.abc import Iterable

from tecomp.ir.language.expr import Const
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.program import Program
from tecomp.scheduling.state import Transform, is_reduction


def first_step_stores(program: Program, definition: Definition, attached: Iterable[int]) -> bool:
    """Whether the first step of a reduction stores, and no loops before it do.

    So it is where other stages are computed in data loops inside of all loops of the reduction:
    parts of a sum that are computed tile by tile. Loops of their own would fetch all elements from
    memory once more, and one condition for a tile costs nothing. The step has to be the first for
    every element, and there has to be one.

    Args:
        program: knows the extents.
        definition: the stage.
        attached: positions in its loop order after which others are computed inside.
    """
    reduce, stage = definition.reduce, definition.stage
    if reduce is None or reduce.init or len(reduce.combiner.result) > 1:
        return False
    if not (isinstance(reduce.condition, Const) and reduce.condition.value is True):
        return False
    extents = [program.extent(axis.extent) for axis in definition.reduce_axis]
    if not all(isinstance(extent, int) and extent > 0 for extent in extents):
        return False
    if any(isinstance(relation, Transform) for relation in stage.relations):
        return False
    last = max((k for k, leaf in enumerate(stage.leaves) if is_reduction(leaf)), default=None)
    return last is not None and any(position > last + 1 for position in attached)
