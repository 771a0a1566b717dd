"""Arguments that are computed inside other stages: all of them is written, and no race decides."""

from __future__ import annotations

from tecomp.errors import LowerError
from tecomp.ir.language.stmt import BufferStore, Stmt
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import Region, whole
from tecomp.lowering.stages.program import Program
from tecomp.poly.accesses.shared import shared_point
from tecomp.poly.loops.regions import covers
from tecomp.poly.loops.scopes import Scope
from tecomp.scheduling.state import At


def check_computed_inside(
    program: Program, definition: Definition, region: Region, scope: Scope
) -> None:
    """Refuse to compute `region` of an argument inside the loops of `scope` where that is wrong.

    Raises:
        LowerError: some elements would never be written, or iterations that run at the same time
            would write one element.
    """
    name = definition.stage.name
    outer = Scope.of_sizes(scope.params[: scope.n_sizes])
    if not covers(region.points, whole(program, definition, outer), scope):
        raise _partial(name)
    for loop, call in scope.concurrent:
        if clash := shared_point(region.points, scope, loop):
            first, second, element = clash
            indices = ", ".join(map(str, element))
            raise LowerError(
                f"{call}: iterations {first} and {second} both write {name}[{indices}], which the "
                f"caller passes; compute {name} at the root",
                kind="order",
            )


def check_written(program: Program, body: Stmt) -> None:
    """Refuse arguments that `body` never writes, as the loop that they are computed in is empty.

    Raises:
        LowerError: there is one that has elements.
    """
    written = {node.buffer.data for node in walk(body) if isinstance(node, BufferStore)}
    for definition in program.definitions.values():
        attached = definition.is_argument and isinstance(definition.stage.attach, At)
        # Not those of its axes: the first of a scan counts the later steps alone.
        first = definition.buffers[0]
        has_elements = all(not isinstance(extent, int) or extent for extent in first.shape)
        if attached and has_elements and first.data not in written:
            raise _partial(definition.stage.name)


def _partial(name: str) -> LowerError:
    return LowerError(
        f"s[{name}].compute_at: {name} is passed by the caller, but the stage that it is "
        "computed in reads only a part of it, so the rest would never be written; "
        f"compute {name} at the root",
        kind="order",
    )
