"""Where the elements of each buffer go: the layout maps and pad values of a function."""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.ir.language.expr import Var, cast
from tecomp.ir.language.stmt import Buffer, IndexMap, PadValue
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.stages.program import Program
from tecomp.scheduling.state import StageState


def layout_maps(program: Program) -> tuple[tuple[Var, tuple[IndexMap, ...]], ...]:
    """The maps of every buffer that has some, in the order in which they are applied."""
    return tuple(
        (buffer.data, stage.layout.maps) for stage, buffer in _stored(program) if stage.layout.maps
    )


def pad_values(program: Program) -> tuple[tuple[Var, PadValue], ...]:
    """What places without an element contain, in the type of the buffer."""
    found = []
    for stage, buffer in _stored(program):
        pad = stage.layout.pad_value
        if pad is not None:
            value = cast(buffer.dtype, substitute(pad.value, dict(program.sizes)))
            found.append((buffer.data, PadValue(pad.indices, value)))
    return tuple(found)


def _stored(program: Program) -> Iterator[tuple[StageState, Buffer]]:
    """Every buffer of the function with its stage."""
    for stage in program.state:
        if stage.key in program.placeholders:
            yield stage, program.placeholders[stage.key]
        elif stage.key in program.definitions:
            yield from ((stage, b) for b in program.definitions[stage.key].buffers)
