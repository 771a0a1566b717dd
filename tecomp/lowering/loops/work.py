"""One stage while its loops are made: what was decided about them, and what is around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tecomp.compute.axis import IterVar
from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.language.stmt import ForKind
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.lowering.loops.body import StageBody
from tecomp.lowering.loops.frame import StageFrame
from tecomp.lowering.loops.opened import Group
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.whole_tiles import Memory
from tecomp.lowering.tensor_ops.tensorize import Tensorizer
from tecomp.poly.loops.full_tiles import full_tiles
from tecomp.poly.loops.scopes import first_dims
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.pragma import STEPS
from tecomp.scheduling.state import Ahead, StageState, is_data


@dataclass(frozen=True)
class StageWork:
    """One stage while its loops are made.

    Attributes:
        definition: what it computes.
        frame: its axes and loops for the region that is computed here.
        body: makes its innermost statements.
        region: the elements to compute.
        first_reduction: position of the first loop over a reduction, or over the steps of a scan;
            None for neither.
        cuts: positions in the loop order where something else comes in, ascending; also those
            after loops over cores.
        attached: stages computed inside, by the position after their loop.
        memory: for each tensor that exists there, the elements that its memory has.
        around: the variables of what is around the stage: sizes, and loops of others.
        starts_inside: whether the first step of a reduction stores its initial value.
        operation: of the machine, that takes the place of inner loops.
        groups: fused loops that were opened, by the position of their first part.
    """

    definition: Definition
    frame: StageFrame
    body: StageBody
    region: Points
    first_reduction: int | None
    cuts: tuple[int, ...]
    attached: Mapping[int, tuple[Definition, ...]]
    memory: Memory
    around: tuple[Var, ...]
    starts_inside: bool
    operation: Tensorizer | None = None
    groups: Mapping[int, Group] = field(default_factory=dict)

    @property
    def leaves(self) -> tuple[IterVar, ...]:
        """The loops, outermost first."""
        return self.definition.stage.leaves

    @property
    def starts_at(self) -> int | None:
        """The position at which initial values of a reduction are stored; None if on the way."""
        if self.operation is None or self.first_reduction is None:
            return None if self.starts_inside else self.first_reduction
        if self.first_reduction < self.operation.position:
            return self.first_reduction
        reduce = self.definition.reduce
        return self.operation.position if reduce is not None and reduce.init else None

    @property
    def resets(self) -> bool:
        """Whether an operation of the machine stores the initial values."""
        if self.operation is None or self.operation.intrin.reset is None:
            return False
        reduce = self.definition.reduce
        return reduce is not None and not reduce.init

    def full_part(self, points: Points, start: int, stop: int, *, only_data: bool) -> Points | None:
        """The part of `points`, values of the loops from `start`, in which tiles are full.

        Args:
            points: with a dimension for each loop from `start` on.
            start: position of the first of them.
            stop: position after the loops that are made now.
            only_data: whether `points` have the data loops alone.
        """
        loops = [
            (k, leaf) for k, leaf in enumerate(self.leaves)
            if k >= start and (is_data(leaf) or not only_data)
        ]
        made = sum(k < stop for k, _ in loops)
        if self.operation is not None and stop == self.operation.position:
            extents = [self.frame.frames[leaf].extent for _, leaf in loops]
            tiled = [
                (n, extent) for n, extent in enumerate(extents)
                if n >= made and isinstance(extent, int) and extent > 1
            ]
            full = full_tiles(points, tiled)
            return None if full is None else first_dims(full, made).coalesce()
        place = {k: n for n, (k, _) in enumerate(loops)}
        own = [(place[k], extent) for k, extent in self.tiles() if start <= k < stop and k in place]
        return full_tiles(first_dims(points, made), own)

    def tiles(self) -> list[tuple[int, int]]:
        """Position and extent of the loops that want to run through their whole extent."""
        marks = self.definition.stage.marks
        tiles = []
        for k, leaf in enumerate(self.leaves):
            extent = self.frame.frames[leaf].extent
            wanted = marks.get(leaf) in (ForKind.VECTORIZED, ForKind.UNROLLED)
            if wanted and isinstance(extent, int) and extent > 1:
                tiles.append((k, extent))
        return tiles

    def prefetches(self, position: int) -> list[Ahead]:
        """What the innermost of the first `position` loops has fetched ahead."""
        if not position:
            return []
        loop = self.leaves[position - 1]
        return [ahead for ahead in self.definition.stage.prefetches if ahead.axis is loop]

    def most_steps(self, position: int) -> int:
        """How many statements loops inside of the first `position` ones may be written out to."""
        loop = self.leaves[position - 1] if position else None
        pragmas = self.definition.stage.pragmas
        return next((n for (leaf, kind), n in pragmas.items() if leaf is loop and kind == STEPS), 0)

    def loop_variables(self, values: Mapping[IterVar, Expr]) -> dict[IterVar, Var]:
        """The variables of open loops; without those that have a single iteration here.

        A value may depend on loops further out, too, and on those around the stage.

        Args:
            values: the loops that are open, in terms of variables.
        """
        found: dict[IterVar, Var] = {}
        outside = set(self.around)
        for leaf in self.leaves:
            own = [v for v in free_variables(values.get(leaf, Const(0))) if v not in outside]
            if own:
                found[leaf] = own[0]
                outside.update(own)
        return found


def positions_of_hints(stage: StageState) -> list[int]:
    """How many loops are open where something is fetched ahead, or a pragma begins."""
    loops = {ahead.axis for ahead in stage.prefetches}
    loops.update(axis for axis, kind in stage.pragmas if kind == STEPS)
    return [k for k, leaf in enumerate(stage.leaves, 1) if leaf in loops]
