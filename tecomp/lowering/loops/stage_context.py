"""State of a stage while its loops are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import ForKind, Stmt
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.lowering.loops.fused_loops import FactoredLoop
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.loops.stage_body import StageBody
from tecomp.lowering.stages.definition import Definition, concurrent_loop_vars
from tecomp.lowering.stages.edge_tiles import Memory
from tecomp.lowering.stages.footprint import with_reduction
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.tensor_ops.tensorize import Tensorizer
from tecomp.poly.loops.regions import LoopScope, first_dims, is_inside
from tecomp.poly.loops.tile_loops import full_tiles
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.annotations import STEPS
from tecomp.scheduling.state import Ahead, Fuse, StageState, is_data


@dataclass(frozen=True)
class StageContext:
    """State of one stage while its loops are built.

    Attributes:
        definition: Definition of the stage.
        frame: Axes and loops for the region that is computed here.
        body: Builder of the innermost statements.
        region: Elements to compute.
        first_reduction: Position of the first reduction or scan loop. None: no such loop exists.
        cuts: Positions in the loop order where a band ends (producers, initialization, loops over
            cores), ascending.
        attached: Stages computed inside, by the position after their loop.
        memory: Elements that are backed by memory, for each tensor in scope.
        outer_variables: Variables in scope outside the stage: sizes and loops of other stages.
        starts_inside: Whether the first reduction step stores the initial value.
        operation: Tensor intrinsic that replaces inner loops, if any.
        groups: Unfused loop groups by the position of their first factor.
    """

    definition: Definition
    frame: StageFrame
    body: StageBody
    region: Points
    first_reduction: int | None
    cuts: tuple[int, ...]
    attached: Mapping[int, tuple[Definition, ...]]
    memory: Memory
    outer_variables: tuple[Var, ...]
    starts_inside: bool
    operation: Tensorizer | None = None
    groups: Mapping[int, FactoredLoop] = field(default_factory=dict)

    @property
    def leaves(self) -> tuple[IterVar, ...]:
        """Loops, outermost first."""
        return self.definition.stage.leaves

    @property
    def starts_at(self) -> int | None:
        """Position at which initial values are stored; None if no separate loops store them."""
        if self.operation is None or self.first_reduction is None:
            return None if self.starts_inside else self.first_reduction
        if self.first_reduction < self.operation.position:
            return self.first_reduction
        reduce = self.definition.reduce
        return self.operation.position if reduce is not None and reduce.init else None

    @property
    def resets(self) -> bool:
        """Whether a tensor intrinsic stores the initial values."""
        if self.operation is None or self.operation.intrin.reset is None:
            return False
        reduce = self.definition.reduce
        return reduce is not None and not reduce.init

    def full_part(self, points: Points, start: int, stop: int, *, only_data: bool) -> Points | None:
        """Return the part of `points` in which all tiles are full, or None.

        Args:
            points: Iterations, with one dimension for each loop from `start` on.
            start: Position of the first loop.
            stop: Position after the loops that are built now.
            only_data: Whether the dimensions of `points` are the data loops only.
        """
        loops = [
            (k, leaf) for k, leaf in enumerate(self.leaves)
            if k >= start and (is_data(leaf) or not only_data)
        ]
        n_built = sum([k < stop for k, _ in loops])
        if self.operation is not None and stop == self.operation.position:
            extents = [self.frame.frames[leaf].extent for _, leaf in loops]
            tiled = [
                (n, extent) for n, extent in enumerate(extents)
                if n >= n_built and isinstance(extent, int) and extent > 1
            ]
            full = full_tiles(points, tiled)
            return None if full is None else first_dims(full, n_built).coalesce()
        dim = {k: n for n, (k, _) in enumerate(loops)}
        tiles = [(dim[k], extent) for k, extent in self.tiles() if start <= k < stop and k in dim]
        return full_tiles(first_dims(points, n_built), tiles)

    def tiles(self) -> list[tuple[int, int]]:
        """Return position and extent of vectorized and unrolled loops of constant extent > 1."""
        marks = self.definition.stage.marks
        tiles = []
        for k, leaf in enumerate(self.leaves):
            extent = self.frame.frames[leaf].extent
            is_tile = marks.get(leaf) in (ForKind.VECTORIZED, ForKind.UNROLLED)
            if is_tile and isinstance(extent, int) and extent > 1:
                tiles.append((k, extent))
        return tiles

    def prefetches(self, position: int) -> list[Ahead]:
        """Return the prefetches that are attached to the loop at `position - 1`."""
        if not position:
            return []
        loop = self.leaves[position - 1]
        return [request for request in self.definition.stage.prefetches if request.axis is loop]

    def most_steps(self, position: int) -> int:
        """Return the unroll limit (statements) of the loops inside the first `position` loops."""
        loop = self.leaves[position - 1] if position else None
        pragmas = self.definition.stage.pragmas
        return next((n for (leaf, kind), n in pragmas.items() if leaf is loop and kind == STEPS), 0)

    def loop_variables(self, values: Mapping[IterVar, Expr]) -> dict[IterVar, Var]:
        """Return the variables of open loops, except loops with a single iteration here.

        A loop value may also depend on outer loops of the stage and on loops around the stage.

        Args:
            values: Values of the open loops in terms of variables.
        """
        found: dict[IterVar, Var] = {}
        outside = set(self.outer_variables)
        for leaf in self.leaves:
            variables = [v for v in free_variables(values.get(leaf, Const(0))) if v not in outside]
            if variables:
                found[leaf] = variables[0]
                outside.update(variables)
        return found


def positions_of_hints(stage: StageState) -> list[int]:
    """Return the positions after loops that have a prefetch or an unroll pragma."""
    loops = {request.axis for request in stage.prefetches}
    loops.update(axis for axis, kind in stage.pragmas if kind == STEPS)
    return [k for k, leaf in enumerate(stage.leaves, 1) if leaf in loops]


@dataclass(frozen=True, slots=True)
class FusedLoops:
    """Factors of an open fused loop.

    Attributes:
        values: Values of the fused loop and of its factors in terms of factor variables.
        scope: Scope inside the fused loop.
        points: Iterations of the inner loops at which the body is evaluated.
        data: Iterations of the inner data loops that correspond to an element.
        meant: Factor variables as expressions of the fused loop variable.
    """

    values: Mapping[IterVar, Expr]
    scope: LoopScope
    points: Points
    data: Points
    meant: Mapping[Var, Expr]

    @property
    def open(self) -> tuple[Mapping[IterVar, Expr], Points, Points, LoopScope]:
        """Values, points, data points and scope for the inner loops."""
        return self.values, self.points, self.data, self.scope

    def closed(self, statement: Stmt) -> Stmt:
        """Substitute the factor variables in `statement`."""
        return substitute(statement, self.meant)


def parts_of(
    program: PreparedSchedule, work: StageContext, point: Mapping[Var, Expr], copy: Points,
    scope: LoopScope
) -> FusedLoops | None:
    """Return the factors of a fused outermost loop in which stages are computed, or None.

    Without factors, every set that depends on the fused loop would contain quotients and remainders
    of its variable, although memory indices only use single factors.

    Args:
        program: Program with all definitions.
        work: State of the stage.
        point: Values of the loops that have just been opened.
        copy: Iterations for which this copy of the body is built.
        scope: Scope around these loops.
    """
    stage = work.definition.stage
    leaf = work.leaves[0] if work.leaves else None
    if leaf is None or list(point) != [leaf] or stage.prefetches or not _are_plain(work):
        return None
    fused = point[leaf]
    fuse = next((r for r in stage.relations if isinstance(r, Fuse) and r.fused is leaf), None)
    if fuse is None or not fuse.parts or not isinstance(fused, Var):
        return None
    extents = [work.frame.frames[part].extent for part in fuse.parts]
    if any(not isinstance(extent, int) for extent in extents):
        return None
    values: dict[IterVar, Expr] = {}
    expansion: dict[Var, Expr] = {}
    inside, quotient, total, count = scope, Const(0) + fused, Const(0) + 0, 1
    for part, extent in zip(reversed(fuse.parts), reversed(extents), strict=True):
        assert isinstance(extent, int)
        values[part] = var = Var(part.name)
        expansion[var] = quotient if part is fuse.parts[0] else quotient % extent
        quotient, total, count = quotient // extent, total + var * count, count * extent
        kind = concurrent_loop_vars(stage, {leaf: var})
        inside = inside.within(var, Const(extent)).running_at_once(kind)
    if not is_inside(scope.space([leaf]).box([(Const(0), count)]), copy, scope):
        return None
    values[leaf] = total
    points, _ = with_reduction(program, work.definition, work.region, inside)
    axes = (*work.definition.axis, *work.definition.reduce_axis)
    inner = work.leaves[1:]
    rest_points = work.frame.points_inside(points, axes, inner, values, inside)
    data = work.frame.points_inside(
        work.region, work.definition.axis, [leaf for leaf in inner if is_data(leaf)], values, inside
    )
    if rest_points is None or data is None:
        return None
    return FusedLoops(values, inside, rest_points, data, expansion)


def _are_plain(work: StageContext) -> bool:
    """Return whether no attached stage or feature requires the fused loop variable itself."""
    definitions = [definition for stages in work.attached.values() for definition in stages]
    return (
        1 in work.attached
        and work.definition.scan_axis is None
        and work.operation is None
        and not any(d.is_argument for d in definitions)
        and not any(d.stage.is_rolling or d.stage.is_doubled for d in definitions)
    )
