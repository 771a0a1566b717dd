"""Stages computed inside the loops of other stages (`compute_at`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.ir.nodes.stmt import BufferRealize, BufferStore, Range, Stmt, seq
from tecomp.ir.traversal.rewrite import nodes_of
from tecomp.lowering.loops.prefetch import prefetch_statements
from tecomp.lowering.loops.stage_context import StageContext
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.edge_tiles import (
    BackedRegion,
    Bounds,
    extend_to_full_tiles,
    with_padding,
)
from tecomp.lowering.stages.footprint import (
    Region,
    Restriction,
    all_elements,
    evaluated_points,
    initially,
    propagate_regions,
)
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import IndexCheck
from tecomp.lowering.storage.buffering import RollingWindow
from tecomp.lowering.tensor_ops.tensorize import Tensorizer
from tecomp.poly.accesses.access_conflicts import find_shared_point
from tecomp.poly.loops.regions import LoopScope, covers, equality_points, first_dims
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import ComputedAt, is_data, is_scan


def check_computed_inside(
    program: PreparedSchedule, definition: Definition, region: Region, scope: LoopScope
) -> None:
    """Raise if an argument must not be computed inside the loops of `scope`.

    Raises:
        LowerError: If `region` does not cover all elements, or if concurrent iterations would
            write one element.
    """
    name = definition.stage.name
    outer = LoopScope.of_sizes(scope.params[: scope.n_sizes])
    if not covers(region.points, all_elements(program, definition, outer), scope):
        raise _partial(name)
    for loop, call in scope.concurrent:
        if conflict := find_shared_point(region.points, scope, loop):
            first, second, element = conflict
            indices = ", ".join(map(str, element))
            raise LowerError(
                "{call}: iterations {first} and {second} both write {name}[{indices}], whose "
                "memory is passed by the caller; compute {name} at the root",
                kind="dependence-violation", call=call, first=first, second=second, name=name,
                indices=indices,
            )


def check_argument_written(program: PreparedSchedule, body: Stmt) -> None:
    """Raise if `body` never writes an attached argument, because the enclosing loop is empty.

    Raises:
        LowerError: If a nonempty attached argument is never written.
    """
    written = {node.buffer.data for node in nodes_of(BufferStore, body)}
    for definition in program.definitions.values():
        attached = definition.is_argument and isinstance(definition.stage.attach, ComputedAt)
        # Use the shape of the buffer: the first axis of a scan counts only the later steps.
        first = definition.buffers[0]
        has_elements = all(not isinstance(extent, int) or extent for extent in first.shape)
        if attached and has_elements and first.data not in written:
            raise _partial(definition.stage.name)


def _partial(name: str) -> LowerError:
    return LowerError(
        "s[{name}].compute_at: {name} is passed by the caller, but its consumer at that loop reads "
        "only a part of it, so the remaining elements would never be written; compute {name} at "
        "the root",
        kind="dependence-violation", name=name,
    )


@dataclass(frozen=True)
class Producer:
    """Stage at the position where it is computed.

    Attributes:
        definition: Definition of the stage.
        region: Elements to compute.
        valid: Elements that hold their values afterwards, including retained elements of a rolling
            buffer.
        bounds: Box of elements that are backed by memory.
        rolling_var: Variable of the loop that carries elements to later iterations, if any.
    """

    definition: Definition
    region: Region
    valid: Points
    bounds: Bounds
    rolling_var: Var | None

    def realized(self, body: Stmt, ahead: Var | None) -> Stmt:
        """Wrap `body` in the realization of the memory; arguments use the memory of the caller."""
        if self.definition.is_argument:
            return body
        return realize_outputs(self.definition, self.bounds, body, ahead, self.rolling_var)


def memory_of(producers: Sequence[Producer]) -> dict[Operation, BackedRegion]:
    """Return the elements that are backed by memory, by stage; arguments are excluded."""
    return {
        p.definition.stage.key: BackedRegion(p.bounds, p.valid)
        for p in producers if not p.definition.is_argument
    }


def realize_outputs(
    definition: Definition,
    bounds: Bounds,
    body: Stmt,
    ahead: Var | None = None,
    carried: Var | None = None,
) -> Stmt:
    """Wrap `body` in the realization of `bounds` for each output of a stage."""
    ranges = _ranges(bounds)
    for buffer in reversed(definition.buffers):
        if definition.has_own_boxes:
            ranges = _ranges([(index_value(0), extent) for extent in buffer.shape])
        body = BufferRealize(buffer, ranges, body, definition.stage.aligns, ahead, carried)
    return body


def _ranges(bounds: Bounds) -> tuple[Range, ...]:
    return tuple([Range(start, index_value(extent)) for start, extent in bounds])


@dataclass(frozen=True)
class AttachedStages:
    """Stages of a program that are computed inside loops of other stages.

    Attributes:
        program: Program with all definitions.
        checks: Run-time checks of the reads of the program; see `ReadChecker`.
    """

    program: PreparedSchedule
    checks: Mapping[int, tuple[IndexCheck, ...]]

    def points(
        self, work: StageContext, values: Mapping[IterVar, Expr], scope: LoopScope
    ) -> Points:
        """Return the points of the data and reduction axes inside loops with the given values."""
        points = evaluated_points(self.program, work.definition, work.region, scope)
        axes = (*work.definition.axis, *work.definition.reduce_axis)
        if work.definition.scan_axis is not None and not any(map(is_scan, values)):
            # Include the initial steps, which precede the scan loops and belong to no iteration.
            pairs = [(work.frame.values[leaf], value) for leaf, value in values.items()]
            return equality_points(points, scope.space(axes), pairs)
        inner = [leaf for leaf in work.leaves if leaf not in values]
        found = work.frame.root_points(points, axes, inner, values, scope)
        if work.frame.data_loops_suffice or not all(map(is_data, values)):
            return found
        # Elements are initialized one by one, even if a loop fused from data and reduction axes has
        # no iteration for them.
        pairs = [(value, values[leaf]) for leaf, value in work.frame.values_of_data(tuple(values))]
        first = initially(self.program, work.definition, work.region, scope)
        return found if first is None else found.union(
            equality_points(first, scope.space(axes), pairs))

    def _instances(
        self,
        work: StageContext,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
        restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
    ) -> tuple[dict[Operation, Points], dict[Operation, Region]]:
        """Return the instances of the stage and of all stages attached inside this position.

        The second result is the required region of each attached stage. `restrictions` limits the
        regions of some stages.
        """
        instances: dict[Operation, Points] = {
            work.definition.stage.key: self.points(work, values, scope)
        }
        subtree = self.program.attached_stages(work.definition.stage.key, position)
        return propagate_regions(self.program, instances, subtree, scope, restrictions)

    def producers(
        self, work: StageContext, position: int, values: Mapping[IterVar, Expr], scope: LoopScope
    ) -> list[Producer]:
        """Return the stages to compute at this position, with their required regions."""
        attached = work.attached.get(position, ())
        if not attached:
            return []
        window = RollingWindow(self.program, work.loop_variables(values), scope, work.memory)
        rolling = [definition.stage.key for definition in attached if definition.stage.is_rolling]
        required, computed = (dict.fromkeys(rolling, f) for f in (window.needed, window.computed))
        _, regions = self._instances(work, position, values, scope, required)
        new = self._instances(work, position, values, scope, computed)[1] if rolling else regions
        found: list[Producer] = []
        for definition in attached:
            region = regions.get(definition.stage.key)
            if region is None:
                continue
            if definition.stage.is_rolling:
                region = window.needed(definition, region)
            valid = region.points
            loop = window.carrying_loop(definition, region)
            shape = self.program.shape(definition)
            bounds = window.bounds(definition, region, loop)
            if definition.is_argument:
                check_computed_inside(self.program, definition, region, scope)
            elif definition.stage.is_rolling:
                region = window.new(definition, region)
            else:
                new_region = new.get(definition.stage.key)
                region = extend_to_full_tiles(
                    self.program, definition, new_region or region, bounds,
                    {**work.memory, **memory_of(found)}, self.checks, scope,
                )
                bounds = with_padding(definition, bounds, shape, scope)
                valid = region.points
            found.append(Producer(definition, region, valid, bounds, loop))
        return found

    def measured(
        self, work: StageContext, operation: Tensorizer, points: Points, scope: LoopScope
    ) -> Tensorizer:
        """Return `operation` with the iteration domain of the loops that it replaces."""
        outer = work.leaves[: operation.position]
        values: dict[IterVar, Expr] = {leaf: Var(leaf.name) for leaf in outer}
        inside = scope.enter(tuple(values.values()), first_dims(points, len(outer)))
        return operation.measured(self.points(work, values, inside), inside)

    def prefetches(
        self, work: StageContext, position: int, values: Mapping[IterVar, Expr], scope: LoopScope
    ) -> Stmt:
        """Return prefetches of the data that later iterations of the loop just opened read."""
        requests = work.prefetches(position)
        if not requests:
            return seq()
        instances, _ = self._instances(work, position, values, scope)
        return seq(*(
            prefetch_statements(self.program, work, request, instances, values, scope) for request
            in requests
        ))
