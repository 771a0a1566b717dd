"""Stages of which others read a part only: those that would read outside elsewhere are computed so.

A stage at the root is computed as a whole, which costs no question to sets. Where it would read
outside of a tensor at elements that nothing needs, only those are computed that something does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from tecomp.compute.operation import Operation
from tecomp.errors import LowerError
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import Region, evaluated, propagated_regions, whole
from tecomp.lowering.stages.program import Program
from tecomp.lowering.stages.reads import ReadChecker
from tecomp.poly.loops.scopes import Scope
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.state import AtRoot

Regions = Mapping[Operation, Region]


def checked_reads(
    program: Program, known: Mapping[Operation, Points]
) -> tuple[ReadChecker, Regions]:
    """What decides that all reads stay inside, and what is computed of stages that are not whole.

    Args:
        program: the definitions.
        known: for some stages the points at which they are evaluated.

    Raises:
        LowerError: a read can leave its tensor; the message shows the point.
    """
    whole_stages = ReadChecker(program, known)
    try:
        whole_stages.run()
    except LowerError as error:
        scope = Scope.of_sizes(program.integers, program.symbolic_extents)
        found, regions = _read_in_part(program, known, scope)
        parts = {**known, **{key: found[key] for key in regions}}
        for points, computed, expects in (
            (parts, regions, False), (known, {}, True), (parts, regions, True)
        ):
            again = ReadChecker(program, points, expects_elements=expects)
            with suppress(LowerError):
                again.run()
                return again, computed
        raise error
    return whole_stages, {}


def _read_in_part(
    program: Program, known: Mapping[Operation, Points], scope: Scope
) -> tuple[Mapping[Operation, Points], Regions]:
    """Where stages are evaluated, and the elements that are read of those that are for others."""
    parts = {
        key for key, definition in program.definitions.items()
        if key not in known and _is_for_others(definition)
    }
    instances = {
        key: known[key] if key in known else evaluated(
            program, definition, whole(program, definition, scope), scope)
        for key, definition in program.definitions.items() if key not in parts
    }
    return propagated_regions(program, instances, parts, scope)


def _is_for_others(definition: Definition) -> bool:
    """Whether a stage may be computed in part: it is at the root, and no caller has its memory."""
    is_plain = definition.scan_axis is None and not definition.is_opaque
    return is_plain and not definition.is_argument and isinstance(definition.stage.attach, AtRoot)
