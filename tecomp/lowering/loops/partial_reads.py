"""Partial reads, store predicates and buffer layouts of stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import Const, Expr, Var, cast, is_const
from tecomp.ir.nodes.stmt import Buffer, IndexMapNode, PadValue
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import (
    Region,
    all_elements,
    evaluated_points,
    propagate_regions,
)
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import BoundsChecker
from tecomp.poly.loops.regions import LoopScope
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import AtRoot, StageState, is_data
from tecomp.scheduling.threads import ThreadAxis

Regions = Mapping[Operation, Region]


def resolve_partial_reads(
    program: PreparedSchedule, known: Mapping[Operation, Points]
) -> tuple[BoundsChecker, Regions]:
    """Return a read checker under which all reads are valid, and regions of partial stages.

    Args:
        program: Program with all definitions.
        known: Known instances of some stages.

    Raises:
        LowerError: If a read can be out of bounds; the message shows the point.
    """
    whole_stages = BoundsChecker(program, known)
    try:
        whole_stages.run()
    except LowerError as error:
        scope = LoopScope.of_sizes(program.integers, program.symbolic_extents)
        found, regions = _read_in_part(program, known, scope)
        parts = {**known, **{key: found[key] for key in regions}}
        for points, computed, expects in (
            (parts, regions, False), (known, {}, True), (parts, regions, True)
        ):
            checker = BoundsChecker(program, points, expects_elements=expects)
            with suppress(LowerError):
                checker.run()
                return checker, computed
        raise error
    return whole_stages, {}


def _read_in_part(
    program: PreparedSchedule, known: Mapping[Operation, Points], scope: LoopScope
) -> tuple[Mapping[Operation, Points], Regions]:
    """Return the instances of all stages, and the regions that are read of internal stages."""
    parts = {
        key for key, definition in program.definitions.items()
        if key not in known and _is_for_others(definition)
    }
    instances = {
        key: known[key] if key in known else evaluated_points(
            program, definition, all_elements(program, definition, scope), scope)
        for key, definition in program.definitions.items() if key not in parts
    }
    return propagate_regions(program, instances, parts, scope)


def _is_for_others(definition: Definition) -> bool:
    """Return whether a stage may be computed partially: a root stage that is no argument."""
    is_plain = definition.scan_axis is None and not definition.is_opaque
    return is_plain and not definition.is_argument and isinstance(definition.stage.attach, AtRoot)


def layout_maps(program: PreparedSchedule) -> tuple[tuple[Var, tuple[IndexMapNode, ...]], ...]:
    """Return the layout maps of every buffer with a layout, in the order of application."""
    return tuple([
        (buffer.data, stage.layout.maps) for stage, buffer in _buffers_of_stages(program)
        if stage.layout.maps
    ])


def pad_values(program: PreparedSchedule) -> tuple[tuple[Var, PadValue], ...]:
    """Return the pad values of physical positions without an element, in the buffer dtype."""
    found = []
    for stage, buffer in _buffers_of_stages(program):
        pad = stage.layout.pad_value
        if pad is not None:
            value = cast(buffer.dtype, substitute(pad.value, dict(program.sizes)))
            found.append((buffer.data, PadValue(pad.indices, value)))
    return tuple(found)


def _buffers_of_stages(program: PreparedSchedule) -> Iterator[tuple[StageState, Buffer]]:
    """Yield every buffer of the function with its stage."""
    for stage in program.state:
        if stage.key in program.placeholders:
            yield stage, program.placeholders[stage.key]
        elif stage.key in program.definitions:
            yield from ((stage, b) for b in program.definitions[stage.key].buffers)


_MAX_THREADS = 1 << 16
"""Maximum number of threads that are enumerated, which takes less than a second."""


def store_condition(
    program: PreparedSchedule, stage: StageState, values: Mapping[IterVar, Expr]
) -> Expr | None:
    """Return the store predicate of a stage as a condition on its axes, or None.

    Args:
        program: Program that provides the sizes.
        stage: Stage that is stored.
        values: Loops of the stage as functions of its axes.

    Raises:
        LowerError: If no thread, or threads with different conditions, would store the elements
            that all threads of an unbound axis compute, or if the number of threads is unknown or
            too large.
    """
    if stage.stored is None:
        return None
    condition = substitute(stage.stored, dict(program.sizes))
    loops: dict[Var, Expr] = {
        axis: values[axis] for axis in free_variables(condition)
        if isinstance(axis, IterVar) and axis not in stage.compute.axis
    }
    bound = {tag: leaf for leaf, tag in stage.threads.items() if is_data(leaf)}
    shared = []
    for thread in free_variables(condition):
        if not isinstance(thread, ThreadAxis):
            continue
        if thread.tag in bound:
            loops[thread] = values[bound[thread.tag]]
        else:
            shared.append(thread)
    for thread in shared:
        condition = _of_one_thread(program, stage, condition, thread)
    return substitute(condition, loops)


def _of_one_thread(
    program: PreparedSchedule, stage: StageState, condition: Expr, thread: ThreadAxis
) -> Expr:
    """Return the condition for the one thread that stores, among threads with equal elements."""
    found: list[Expr] = []
    for number in range(_threads(program, stage, thread)):
        cond = simplify(substitute(condition, {thread: Const(number, thread.dtype)}))
        if not is_const(cond, False) and not any(structural_equal(cond, other) for other in found):
            found.append(cond)
    if len(found) != 1:
        raise LowerError(
            "s[{stage}].set_store_predicate: {thread} has {threads} that store{plural} under "
            "{stored}, but all of them compute the same elements; compare it with a single number, "
            "such as thread.var.equal(0)",
            kind="thread-axis", stage=stage.name, thread=thread.name,
            threads="no thread" if not found else "threads",
            plural="s" if not found else " different elements", stored=stage.stored,
        )
    return found[0]


def _threads(program: PreparedSchedule, stage: StageState, thread: ThreadAxis) -> int:
    """Return the number of threads of an axis.

    Raises:
        LowerError: If the number is unknown or above `_MAX_THREADS`.
    """
    extents = [
        leaf.extent for other in program.state for leaf, tag in other.threads.items()
        if tag == thread.tag
    ]
    known = [n for n in (thread.extent, *extents) if isinstance(n, int)]
    if not known:
        raise LowerError(
            "s[{stage}].set_store_predicate: no loop is bound to {tag}, so the number of threads "
            "is unknown; bind a loop to it, or use an axis of {stage}",
            kind="thread-axis", stage=stage.name, tag=thread.tag,
        )
    if max(known) > _MAX_THREADS:
        raise LowerError(
            "s[{stage}].set_store_predicate: {thread} has {newest} threads, which exceeds the "
            "limit of {most_threads} for store predicates; bind a shorter loop",
            kind="thread-axis", stage=stage.name, thread=thread.name, newest=max(known),
            most_threads=_MAX_THREADS,
        )
    return max(known)
