"""Loops that were fused, opened as those that they were made of: sets then need no quotients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tecomp.compute.axis import IterVar
from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.language.stmt import Stmt
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.loops.work import StageWork
from tecomp.lowering.stages.footprint import with_reduction
from tecomp.lowering.stages.kinds import concurrent
from tecomp.lowering.stages.program import Program
from tecomp.poly.loops.regions import is_inside
from tecomp.poly.loops.scopes import Scope
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.state import Fuse, is_data


@dataclass(frozen=True, slots=True)
class FusedLoops:
    """The loops that an open loop was fused from.

    Attributes:
        values: the open loop, and the axes that it was made of, in terms of variables for these.
        scope: inside of it.
        points: values of the loops further inside, at which the body is evaluated.
        data: values of the data loops further inside, for which there is an element.
        meant: what these variables are, in terms of the loop's own.
    """

    values: Mapping[IterVar, Expr]
    scope: Scope
    points: Points
    data: Points
    meant: Mapping[Var, Expr]

    @property
    def open(self) -> tuple[Mapping[IterVar, Expr], Points, Points, Scope]:
        """What the loops further inside are made of."""
        return self.values, self.points, self.data, self.scope

    def closed(self, statement: Stmt) -> Stmt:
        """`statement` without the variables."""
        return substitute(statement, self.meant)


def parts_of(
    program: Program, work: StageWork, point: Mapping[Var, Expr], copy: Points, scope: Scope
) -> FusedLoops | None:
    """What the outermost loop was fused from, if stages are computed inside that.

    Quotients and remainders of its variable would be in every set that depends on it, though an
    index of memory is only ever one of the parts. None where it is no such loop.

    Args:
        program: the definitions.
        work: the stage.
        point: the values of the loops that have just been opened.
        copy: the values for which this copy of what is inside is made.
        scope: what is around them.
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
    meant: dict[Var, Expr] = {}
    whole, rest, total, count = scope, Const(0) + fused, Const(0) + 0, 1
    for part, extent in zip(reversed(fuse.parts), reversed(extents), strict=True):
        assert isinstance(extent, int)
        values[part] = var = Var(part.name)
        meant[var] = rest if part is fuse.parts[0] else rest % extent
        rest, total, count = rest // extent, total + var * count, count * extent
        kind = concurrent(stage, {leaf: var})
        whole = whole.within(var, Const(extent)).running_at_once(kind)
    if not is_inside(scope.space([leaf]).box([(Const(0), count)]), copy, scope):
        return None
    values[leaf] = total
    points, _ = with_reduction(program, work.definition, work.region, whole)
    axes = (*work.definition.axis, *work.definition.reduce_axis)
    inner = work.leaves[1:]
    rest_points = work.frame.points_inside(points, axes, inner, values, whole)
    data = work.frame.points_inside(
        work.region, work.definition.axis, [leaf for leaf in inner if is_data(leaf)], values, whole
    )
    if rest_points is None or data is None:
        return None
    return FusedLoops(values, whole, rest_points, data, meant)


def _are_plain(work: StageWork) -> bool:
    """Whether nothing asks for the variable of the loop itself."""
    made = [definition for each in work.attached.values() for definition in each]
    return (
        1 in work.attached
        and work.definition.scan_axis is None
        and work.operation is None
        and not any(each.is_argument for each in made)
        and not any(each.stage.is_rolling or each.stage.is_doubled for each in made)
    )
