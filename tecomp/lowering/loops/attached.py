"""What is computed inside of loops: the stages attached there, and which elements of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import Stmt, seq
from tecomp.lowering.loops.arguments import check_computed_inside
from tecomp.lowering.loops.prefetch import fetch_ahead
from tecomp.lowering.loops.producer import Producer, memory_of
from tecomp.lowering.loops.work import StageWork
from tecomp.lowering.stages.footprint import (
    Region,
    Restriction,
    evaluated,
    initially,
    propagated_regions,
)
from tecomp.lowering.stages.program import Program
from tecomp.lowering.stages.reads import Check
from tecomp.lowering.stages.whole_tiles import whole_tiles, with_padding
from tecomp.lowering.storage.rolling import Window
from tecomp.lowering.tensor_ops.tensorize import Tensorizer
from tecomp.poly.loops.regions import where_equal
from tecomp.poly.loops.scopes import Scope, first_dims
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.state import is_data, is_scan


@dataclass(frozen=True)
class Attached:
    """What is computed inside of loops of the stages of a program.

    Attributes:
        program: it.
        checks: the run-time checks of its reads; see `ReadChecker`.
    """

    program: Program
    checks: Mapping[int, tuple[Check, ...]]

    def points(
        self, work: StageWork, values: Mapping[IterVar, Expr], scope: Scope
    ) -> Points:
        """The values of data and reduction axes inside loops with these values."""
        points = evaluated(self.program, work.definition, work.region, scope)
        axes = (*work.definition.axis, *work.definition.reduce_axis)
        if work.definition.scan_axis is not None and not any(map(is_scan, values)):
            # The first steps too, which come before the loops over steps and belong to none.
            pairs = [(work.frame.values[leaf], value) for leaf, value in values.items()]
            return where_equal(points, scope.space(axes), pairs)
        inner = [leaf for leaf in work.leaves if leaf not in values]
        found = work.frame.root_points(points, axes, inner, values, scope)
        if work.frame.data_loops_suffice or not all(map(is_data, values)):
            return found
        # Elements are given their first values one by one, also where a loop over them and what is
        # reduced to them has no iteration.
        pairs = [(value, values[leaf]) for leaf, value in work.frame.values_of_data(tuple(values))]
        first = initially(self.program, work.definition, work.region, scope)
        return found if first is None else found.union(where_equal(first, scope.space(axes), pairs))

    def _instances(
        self,
        work: StageWork,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: Scope,
        restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
    ) -> tuple[dict[Operation, Points], dict[Operation, Region]]:
        """Where bodies are evaluated: of the stage, and of all computed inside this position.

        And the elements that are needed of the latter. `restrictions` say for some which of
        these are meant.
        """
        instances: dict[Operation, Points] = {
            work.definition.stage.key: self.points(work, values, scope)
        }
        subtree = self.program.inside(work.definition.stage.key, position)
        return propagated_regions(self.program, instances, subtree, scope, restrictions)

    def producers(
        self, work: StageWork, position: int, values: Mapping[IterVar, Expr], scope: Scope
    ) -> list[Producer]:
        """The stages to compute at this position, with the elements that are needed there."""
        here = work.attached.get(position, ())
        if not here:
            return []
        window = Window(self.program, work.loop_variables(values), scope, work.memory)
        rolling = [definition.stage.key for definition in here if definition.stage.is_rolling]
        needed, made = (dict.fromkeys(rolling, f) for f in (window.needed, window.computed))
        _, regions = self._instances(work, position, values, scope, needed)
        new = self._instances(work, position, values, scope, made)[1] if rolling else regions
        found: list[Producer] = []
        for definition in here:
            region = regions.get(definition.stage.key)
            if region is None:
                continue
            if definition.stage.is_rolling:
                region = window.needed(definition, region)
            valid = region.points
            loop = window.carried(definition, region)
            shape = self.program.shape(definition)
            bounds = window.bounds(definition, region, loop)
            if definition.is_argument:
                check_computed_inside(self.program, definition, region, scope)
            elif definition.stage.is_rolling:
                region = window.new(definition, region)
            else:
                own = new.get(definition.stage.key)
                region = whole_tiles(
                    self.program, definition, own or region, bounds,
                    {**work.memory, **memory_of(found)}, self.checks, scope,
                )
                bounds = with_padding(definition, bounds, shape, scope)
                valid = region.points
            found.append(Producer(definition, region, valid, bounds, loop))
        return found

    def measured(
        self, work: StageWork, operation: Tensorizer, points: Points, scope: Scope
    ) -> Tensorizer:
        """`operation` with what the loops that it takes the place of run through, at any time."""
        outer = work.leaves[: operation.position]
        values: dict[IterVar, Expr] = {leaf: Var(leaf.name) for leaf in outer}
        inside = scope.enter(tuple(values.values()), first_dims(points, len(outer)))
        return operation.measured(self.points(work, values, inside), inside)

    def ahead(
        self, work: StageWork, position: int, values: Mapping[IterVar, Expr], scope: Scope
    ) -> Stmt:
        """Requests for what later iterations of the loop just opened read."""
        wanted = work.prefetches(position)
        if not wanted:
            return seq()
        instances, _ = self._instances(work, position, values, scope)
        return seq(*(
            fetch_ahead(self.program, work, ahead, instances, values, scope) for ahead in wanted
        ))
