"""Build loop nests from a schedule.

The loops of a stage are built in bands: sections of the loop order between the positions where a
reduction is initialized or a producer is computed. For each band, isl generates loops over the
exact set of iterations, given the enclosing loops.

Source:
    docs/decisions/0002, which explains why no single schedule tree is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import ForKind, PrimFunc, Stmt, seq
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.loops.compute_at import (
    AttachedStages,
    Producer,
    check_argument_written,
    memory_of,
    realize_outputs,
)
from tecomp.lowering.loops.fused_loops import (
    Groups,
    are_boxes,
    is_plain,
    loops_around_symbolic_tiles,
    unfuse_symbolic_loops,
    walk,
)
from tecomp.lowering.loops.iteration_frame import StageFrame, frame_of
from tecomp.lowering.loops.partial_reads import (
    Regions,
    layout_maps,
    pad_values,
    resolve_partial_reads,
    store_condition,
)
from tecomp.lowering.loops.rectangular_loops import (
    GuardedBoxLoops,
    RequestedElements,
    rectangular_loops,
)
from tecomp.lowering.loops.reduction_init import (
    initialize_reduction,
    initializes_in_first_iteration,
)
from tecomp.lowering.loops.scan_recurrence import (
    check_order,
    first_steps,
    later_steps,
    scan_only_instances,
    with_recurrences,
)
from tecomp.lowering.loops.stage_body import StageBody, check_inputs, extern_statement
from tecomp.lowering.loops.stage_context import StageContext, parts_of, positions_of_hints
from tecomp.lowering.stages.definition import (
    Definition,
    concurrent_loop_vars,
    grid_axes,
    loop_kinds,
)
from tecomp.lowering.stages.edge_tiles import (
    BackedRegion,
    Memory,
    memory_of_arguments,
    with_padding,
)
from tecomp.lowering.stages.footprint import (
    Region,
    all_elements,
    check_consumers,
    with_reduction_conditions,
)
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import BoundsChecker
from tecomp.lowering.storage.buffering import (
    check_carried,
    check_doubled,
    check_rolling,
    prefetch_loop_var,
)
from tecomp.lowering.tensor_ops.tensorize import Tensorizer, tensorizer
from tecomp.lowering.vectorize.unroll import mark_unrolled
from tecomp.poly.loops.ast_generation import scan
from tecomp.poly.loops.box_loops import bounding_box
from tecomp.poly.loops.regions import LoopScope, first_dims, fix, is_box, project_out_first_dim
from tecomp.poly.sets.isl_context import Undecided
from tecomp.poly.sets.to_isl import NotAffine, Points
from tecomp.scheduling.state import StageState, is_data, is_map


def build_nest(program: PreparedSchedule, name: str) -> PrimFunc:
    """Build the function of `program`: loops over logical tensors, before layouts are applied.

    Raises:
        LowerError: If an index can be out of bounds, or if a stage is attached at an invalid
            position.
    """
    program = with_recurrences(program)
    checker, in_part = resolve_partial_reads(program, scan_only_instances(program))
    check_inputs(program)
    check_consumers(program)
    check_doubled(program)
    check_rolling(program)
    scope = LoopScope.of_sizes(program.integers, program.symbolic_extents)
    body = _Nests(program, checker, *unfuse_symbolic_loops(program), in_part).roots(scope)
    check_argument_written(program, body)
    check_carried(program, body)
    body = substitute(body, dict(program.products.values))
    scalars = {param for param in program.params if isinstance(param, Var)}
    sizes = tuple([size for size in program.sizes.values() if size not in scalars])
    return PrimFunc(
        name, program.params, body, sizes, layout_maps(program), pad_values(program),
        tuple(checker.sites),
    )


@dataclass(frozen=True)
class _Nests:
    """Builder of the loop nests of a program.

    Attributes:
        as_scheduled: Program with its fused loops as scheduled.
        checker: Classified reads of the program.
        program: Program whose fused loops in `groups` are replaced by their factors.
        groups: Fused loops that have been replaced, by stage.
        in_part: Regions of root stages that are computed only partially.
    """

    as_scheduled: PreparedSchedule
    checker: BoundsChecker
    program: PreparedSchedule
    groups: Groups
    in_part: Regions = field(default_factory=dict)

    @property
    def _attached(self) -> AttachedStages:
        return AttachedStages(self.program, self.checker.checks)

    def roots(self, scope: LoopScope) -> Stmt:
        """Build all stages at the root; their memory is live from the stage to the end."""
        statement: Stmt = seq()
        roots = self.program.roots()
        memory = memory_of_arguments(self.program)
        for definition in roots:
            extents = self.program.shape(definition)
            bounds = [(Const(0), extent) for extent in extents]
            stored = with_padding(definition, bounds, extents, scope)
            part = self.in_part.get(definition.stage.key)
            backed = BackedRegion(stored, None if part is None else part.points)
            memory.setdefault(definition.stage.key, backed)
        regions = {**first_steps(self.program, scope), **self.in_part}
        for definition in reversed(roots):
            nest = None
            if definition.stage.key not in regions:
                nest = self._counted(definition)
            if nest is None:
                points = all_elements(self.program, definition, scope)
                region = regions.get(definition.stage.key, Region(points, points))
                nest = self.stage(definition, region, memory, scope)
            statement = seq(nest, statement)
            if not definition.is_argument:
                box = memory[definition.stage.key].bounds
                statement = realize_outputs(definition, box, statement)
        return statement

    def _counted(self, definition: Definition) -> Stmt | None:
        """Build rectangular loops for a plain stage without attached stages, or return None."""
        definition = self.as_scheduled.definitions[definition.stage.key]
        stage = definition.stage
        is_plain = is_map(stage.op) and not stage.prefetches and not stage.pragmas
        has_others = self.as_scheduled.attached(stage.key)
        if not is_plain or stage.tensorized or has_others or stage.stored is not None:
            return None
        body = StageBody(self.as_scheduled, definition, self.checker.checks)
        return rectangular_loops(stage, body.update, self.program.extent)

    def stage(
        self, definition: Definition, region: Region, memory: Memory, scope: LoopScope
    ) -> Stmt:
        """Build the loops that compute `region` of one stage."""
        if (statement := extern_statement(self.program, definition)) is not None:
            return statement
        stage = definition.stage
        groups = self.groups.get(stage.key, ())
        frame, looped, start = self._frame(definition, region, scope)
        if groups and all(is_plain(group, frame) for group in groups):
            return self._as_scheduled(definition, region, memory, scope)
        work = self._work(definition, frame, region, memory, scope)
        operation = work.operation
        points, _, tested = with_reduction_conditions(self.program, definition, looped, scope)
        axes = (*definition.axis, *definition.reduce_axis)
        data = [leaf for leaf in stage.leaves if is_data(leaf)]
        try:
            all_leaves = frame.leaf_points(points, axes, stage.leaves, scope)
            data_leaves = frame.leaf_points(*start, data, scope)
        except NotAffine:
            if operation is not None:
                raise operation.not_affine() from None
            return self._without_sets(work, region, (looped, definition.axis), start, scope)
        if not (are_boxes(groups, frame, stage.leaves, all_leaves, scope)
                and are_boxes(groups, frame, data, data_leaves, scope)):
            return self._as_scheduled(definition, region, memory, scope)
        if operation is not None:
            measured = self._attached.measured(work, operation, all_leaves, scope)
            work = replace(work, operation=measured)
        looping = replace(work, body=replace(work.body, tested=tested))
        try:
            return self._band(looping, 0, {}, all_leaves, data_leaves, scope)
        except Undecided:
            if operation is not None:
                raise
            return self._without_sets(work, region, (looped, definition.axis), start, scope)

    def _cuts(
        self,
        stage: StageState,
        frame: StageFrame,
        attached: Collection[int],
        operation: Tensorizer | None,
        first_reduction: int | None,
        scope: LoopScope,
    ) -> tuple[int, ...]:
        """Return the end positions of bands, also before groups, which outer loops may skip."""
        # A loop bound to cores must stay one loop, so its tails go inside.
        bound = grid_axes(stage)
        cores = (k for k, leaf in enumerate(stage.leaves, 1) if leaf in bound)
        group_spans = [(stage.leaves.index(group.parts[0]), len(group.parts))
                  for group in self.groups.get(stage.key, ())]
        return tuple(sorted({
            len(stage.leaves), *attached, *positions_of_hints(stage), *cores,
            *(start for start, _ in group_spans if start or scope.is_inside_loops),
            *(start + count for start, count in group_spans),
            *loops_around_symbolic_tiles(stage, frame),
            *([] if operation is None else [operation.position]),
            *([] if first_reduction is None else [first_reduction]),
        }))

    def _work(
        self, definition: Definition, frame: StageFrame, region: Region, memory: Memory,
        scope: LoopScope,
    ) -> StageContext:
        """Collect the state from which the loops of a stage are built."""
        stage = definition.stage
        attached = self._attached_by_position(stage)
        first_reduction = next(
            (k for k, leaf in enumerate(stage.leaves) if not is_data(leaf)), None
        )
        if definition.reduce_axis and first_reduction is None:
            first_reduction = len(stage.leaves)
        operation = tensorizer(self.program, definition)
        cuts = self._cuts(stage, frame, attached, operation, first_reduction, scope)
        groups = self.groups.get(stage.key, ())
        stored = store_condition(self.program, stage, frame.values)
        return StageContext(
            definition, frame, StageBody(self.program, definition, self.checker.checks, stored),
            region.points, first_reduction, cuts, attached, memory, scope.params,
            operation is None and frame.data_loops_suffice
            and initializes_in_first_iteration(self.program, definition, attached),
            operation, {stage.leaves.index(group.parts[0]): group for group in groups},
        )

    def _as_scheduled(
        self, definition: Definition, region: Region, memory: Memory, scope: LoopScope
    ) -> Stmt:
        """Build the loops of a stage with its fused loops as scheduled."""
        nests = _Nests(self.as_scheduled, self.checker, self.as_scheduled, {}, self.in_part)
        definition = self.as_scheduled.definitions[definition.stage.key]
        return nests.stage(definition, region, memory, scope)

    def _frame(
        self, definition: Definition, region: Region, scope: LoopScope
    ) -> tuple[StageFrame, Points, tuple[Points, tuple[IterVar, ...]]]:
        """Return the frame of a stage, its iteration domain, and the domain of initialization.

        The initialization domain is given with its axes: a scan initializes over all axes except
        the scan axis.
        """
        shape = self.program.shape(definition)
        points, axes = region.points, definition.axis
        if definition.scan_axis is None:
            bounds = bounding_box(points, region.unclipped, scope, shape)
            frame = frame_of(self.program, definition, bounds, points, scope)
            return frame, points, (points, axes)
        later = later_steps(definition, points, scope)
        steps, *_ = bounding_box(later, later, scope, shape)
        # Positions that have initial steps only must be included in the bounds.
        _, *data_bounds = bounding_box(points, points, scope, shape)
        bounds = (steps, *data_bounds)
        frame = frame_of(self.program, definition, bounds, later, scope)
        check_order(self.program, definition, frame, later, scope)
        return frame, later, (project_out_first_dim(points), axes[1:])

    def _without_sets(
        self,
        work: StageContext,
        region: Region,
        looped: tuple[Points, tuple[IterVar, ...]],
        start: tuple[Points, tuple[IterVar, ...]],
        scope: LoopScope,
    ) -> Stmt:
        """Build the loops of a stage whose iteration domain is not affine."""
        if work.groups:
            return self._as_scheduled(work.definition, region, work.memory, scope)
        return self._boxed(work, looped, start, scope)

    def _boxed(
        self,
        work: StageContext,
        looped: tuple[Points, tuple[IterVar, ...]],
        start: tuple[Points, tuple[IterVar, ...]],
        scope: LoopScope,
    ) -> Stmt:
        """Build bounding-box loops for a stage whose loops are not affine in its axes."""

        def producers(
            position: int, values: Mapping[IterVar, Expr], inside: LoopScope, memory: Memory,
            loop: Callable[[Memory], Stmt],
        ) -> Stmt:
            context = replace(work, memory=memory)
            attached = self._attached.producers(context, position, values, inside)
            requests = self._attached.prefetches(context, position, values, inside)
            statement = loop({**memory, **memory_of(attached)})
            done = seq(requests, self._with_producers(context, attached, values, inside, statement))
            return mark_unrolled(done, work.most_steps(position))

        def elements(part: tuple[Points, tuple[IterVar, ...]]) -> RequestedElements:
            points, axes = part
            frames = [work.frame.frames[axis] for axis in axes]
            return RequestedElements(points, axes, is_box(points, frames, scope))

        loops = GuardedBoxLoops(
            self.program, work.definition, work.frame, work.body, elements(looped), elements(start),
            self._kinds(work), grid_axes(work.definition.stage), producers,
        )
        return loops.build(scope, work.first_reduction, work.memory)

    def _attached_by_position(self, stage: StageState) -> dict[int, tuple[Definition, ...]]:
        found: dict[int, tuple[Definition, ...]] = {}
        for axis, definition in self.program.attached(stage.key):
            position = next(k for k, leaf in enumerate(stage.leaves) if leaf is axis) + 1
            found[position] = (*found.get(position, ()), definition)
        return found

    def _band(
        self,
        work: StageContext,
        start: int,
        values: Mapping[IterVar, Expr],
        points: Points,
        data: Points,
        scope: LoopScope,
    ) -> Stmt:
        """Build the loops from position `start` on.

        Args:
            work: State of the stage.
            start: Number of open loops.
            values: Values of the open loops.
            points: Iterations of the remaining loops at which the body is evaluated.
            data: Iterations of the remaining data loops that correspond to an element.
            scope: Parameters of the sets: sizes and enclosing loops.
        """
        if start in work.groups and start not in work.cuts:
            return self._opened(work, start, values, points, data, scope)
        stop = next(cut for cut in work.cuts if cut >= start)
        # Initial values are also stored for elements with an empty reduction domain.
        before_reduction = work.first_reduction is not None and stop <= work.first_reduction
        dims = work.leaves[start:stop]
        domain = data if before_reduction else points
        band = first_dims(domain, len(dims))

        def inner(point: Mapping[Var, Expr], copy: Points) -> Stmt:
            chosen = [point[dim] for dim in dims]
            if (parts := parts_of(self.program, work, point, copy, scope)) is not None:
                return parts.closed(self._at_cut(work, stop, *parts.open))
            inside = scope.enter(chosen, copy).running_at_once(
                concurrent_loop_vars(work.definition.stage, dict(zip(dims, chosen, strict=True)))
            )
            loop_values = {**values, **dict(zip(dims, chosen, strict=True))}
            rest_points = fix(points, chosen, inside)
            data_values = [point[dim] for dim in dims if is_data(dim)]
            rest_data = fix(data, data_values, inside)
            return self._at_cut(work, stop, loop_values, rest_points, rest_data, inside)

        return scan(
            band, scope.space(dims), inner,
            kinds=self._kinds(work), threads=grid_axes(work.definition.stage),
            context=scope.context,
            isolated=work.full_part(domain, start, stop, only_data=before_reduction),
        )

    def _opened(
        self,
        work: StageContext,
        start: int,
        values: Mapping[IterVar, Expr],
        points: Points,
        data: Points,
        scope: LoopScope,
    ) -> Stmt:
        """Build the loops of a fused group, and the rest as `_band` does."""
        group = work.groups[start]

        def inner(parts: Mapping[IterVar, Var], inside: LoopScope) -> Stmt:
            chosen = [parts[part] for part in group.parts]
            rest_points = fix(points, chosen, inside)
            rest_data = fix(data, [c for c, part in zip(chosen, group.parts, strict=True)
                                   if is_data(part)], inside)
            stop = start + len(chosen)
            return self._at_cut(work, stop, {**values, **parts}, rest_points, rest_data, inside)

        return walk(group, work.frame, scope, inner)

    def _at_cut(
        self,
        work: StageContext,
        position: int,
        values: Mapping[IterVar, Expr],
        points: Points,
        data: Points,
        scope: LoopScope,
    ) -> Stmt:
        """Build the body of the first `position` loops: producers, initial values, inner loops."""
        requests = self._attached.prefetches(work, position, values, scope)
        producers = self._attached.producers(work, position, values, scope)
        memory = {**work.memory, **memory_of(producers)}
        operation = None if work.operation is None else replace(work.operation, memory=memory)
        work = replace(work, memory=memory, operation=operation)
        parts: list[Stmt] = []
        if position == work.starts_at:
            parts.append(initialize_reduction(work, position, values, data, scope))
        if operation is not None and position == operation.position:
            inside = self._attached.points(work, values, scope)
            parts.append(operation.computed(
                inside, scope, accumulates=work.starts_at is not None))
        elif position < len(work.leaves):
            inner_work = replace(work, cuts=tuple([cut for cut in work.cuts if cut > position]))
            parts.append(self._band(inner_work, position, values, points, data, scope))
        else:
            roots = work.frame.root_values(values)
            parts.append(work.body.update(roots, starts=work.starts_inside))
        done = seq(requests, self._with_producers(work, producers, values, scope, seq(*parts)))
        return mark_unrolled(done, work.most_steps(position))

    def _with_producers(
        self,
        work: StageContext,
        producers: Sequence[Producer],
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
        statement: Stmt,
    ) -> Stmt:
        """Return `statement` preceded by the loops of the producers, inside their memory."""
        memory = {**work.memory, **memory_of(producers)}
        for producer in reversed(producers):
            nest = self.stage(producer.definition, producer.region, memory, scope)
            prefetch_var = prefetch_loop_var(producer.definition, work.loop_variables(values))
            statement = producer.realized(seq(nest, statement), prefetch_var)
        return statement

    def _kinds(self, work: StageContext) -> dict[Var, ForKind]:
        return loop_kinds(work.definition.stage)
