"""A stage that is computed inside a loop of another: which elements, and the memory for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.compute.operation import Operation
from tecomp.ir.language.expr import Var, index_value
from tecomp.ir.language.stmt import BufferRealize, Range, Stmt
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import Region
from tecomp.lowering.stages.whole_tiles import Bounds, Held
from tecomp.poly.sets.point_sets import Points


@dataclass(frozen=True)
class Producer:
    """A stage at the place where it is computed.

    Attributes:
        definition: the stage.
        region: the elements to compute.
        valid: those that then have their values: of a rolling buffer also what is kept.
        bounds: the box of elements that there is memory for.
        carried: the variable of the loop whose iterations keep elements for later ones, if any.
    """

    definition: Definition
    region: Region
    valid: Points
    bounds: Bounds
    carried: Var | None

    def realized(self, body: Stmt, ahead: Var | None) -> Stmt:
        """`body` with memory for the elements; the caller's if it is an argument."""
        if self.definition.is_argument:
            return body
        return realized(self.definition, self.bounds, body, ahead, self.carried)


def memory_of(producers: Sequence[Producer]) -> dict[Operation, Held]:
    """The elements that there is memory for, by stage."""
    return {
        p.definition.stage.key: Held(p.bounds, p.valid)
        for p in producers if not p.definition.is_argument
    }


def realized(
    definition: Definition,
    bounds: Bounds,
    body: Stmt,
    ahead: Var | None = None,
    carried: Var | None = None,
) -> Stmt:
    """`body` with memory for `bounds` of each output of a stage."""
    ranges = _ranges(bounds)
    for buffer in reversed(definition.buffers):
        if definition.has_own_boxes:
            ranges = _ranges([(index_value(0), extent) for extent in buffer.shape])
        body = BufferRealize(buffer, ranges, body, definition.stage.aligns, ahead, carried)
    return body


def _ranges(bounds: Bounds) -> tuple[Range, ...]:
    return tuple(Range(start, index_value(extent)) for start, extent in bounds)
