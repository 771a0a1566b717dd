"""Loops for stages whose loops are no affine functions of their axes: a box with a guard inside.

Fusing axes of symbolic extent makes such loops (`i * m + j`), and so do layouts with XOR. Every
loop runs through its whole extent, and the innermost statement asks whether it is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.compute.axis import IterVar
from tecomp.ir.expr import CmpOp, Const, Expr, Var, compare, index_value, logical_and
from tecomp.ir.stmt import For, ForKind, IfThenElse, Stmt, seq
from tecomp.lowering.body import StageBody
from tecomp.lowering.frame import StageFrame
from tecomp.lowering.kinds import at_once
from tecomp.lowering.program import Definition, Program
from tecomp.lowering.reads import domain_ranges
from tecomp.poly.express import set_to_condition
from tecomp.poly.regions import Scope
from tecomp.scheduling.state import Transform, is_reduction

Producers = Callable[[int, Mapping[IterVar, Expr], Scope, Stmt], Stmt]


@dataclass(frozen=True)
class BoxedLoops:
    """The loops of one stage.

    Attributes:
        program: the definitions.
        definition: the stage.
        frame: its axes and loops.
        body: makes its innermost statements.
        region: the elements to compute.
        kinds: how loops run.
        producers: puts the stages that are computed after a number of loops before a statement.
    """

    program: Program
    definition: Definition
    frame: StageFrame
    body: StageBody
    region: Any
    kinds: Mapping[IterVar, ForKind]
    producers: Producers

    def build(self, scope: Scope, first_reduction: int | None) -> Stmt:
        """All loops."""
        return self._inside(0, {}, scope, first_reduction)

    def _inside(
        self,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: Scope,
        first_reduction: int | None,
    ) -> Stmt:
        leaves = self.definition.stage.leaves
        parts: list[Stmt] = []
        if position == first_reduction:
            parts.append(self._initial(leaves[position:], values, scope))
        if position == len(leaves):
            roots = self.frame.root_values(values)
            statement = self.body.update(roots, values)
            conditions = [*self._wanted(roots, values, scope), *self._reduced(roots)]
            parts.append(_guarded(conditions, statement))
        else:
            leaf = leaves[position]
            var = Var(leaf.name)
            extent = index_value(self.frame.frames[leaf].extent)
            inside = scope.within(var, extent).running_at_once(
                at_once(self.definition.stage, {leaf: var})
            )
            rest = self._inside(position + 1, {**values, leaf: var}, inside, first_reduction)
            parts.append(For(var, Const(0), extent, self._kind(leaf), rest))
        return self.producers(position, values, scope, seq(*parts))

    def _initial(
        self, rest: Sequence[IterVar], values: Mapping[IterVar, Expr], scope: Scope
    ) -> Stmt:
        """Loops that store what a reduction starts from."""
        loops: list[tuple[IterVar, Var]] = [
            (leaf, Var(leaf.name)) for leaf in rest if not is_reduction(leaf)
        ]
        if self.frame.data_loops_suffice:
            roots = self.frame.root_values({**values, **dict(loops)})
            conditions = self._wanted(roots, {**values, **dict(loops)}, scope)
            extents = {leaf: self.frame.frames[leaf].extent for leaf, _ in loops}
        else:
            # A loop over data and reduction at once does not say which element is meant: visit
            # all elements whose data loops have the values that are known.
            loops = [(axis, Var(axis.name)) for axis in self.definition.axis]
            roots = {axis: var + self.frame.frames[axis].base for axis, var in loops}
            conditions = self._wanted(roots, values, scope)
            extents = {axis: self.frame.frames[axis].extent for axis, _ in loops}
        statement = _guarded(conditions, self.body.initial(roots))
        for leaf, var in reversed(loops):
            kind = self._kind(leaf) if self.frame.data_loops_suffice else ForKind.SERIAL
            statement = For(var, Const(0), index_value(extents[leaf]), kind, statement)
        return statement

    def _wanted(
        self, roots: Mapping[IterVar, Expr], values: Mapping[IterVar, Expr], scope: Scope
    ) -> list[Expr]:
        """What says that the element `roots` is to be computed, at the given loops."""
        names = {f"d{k}": roots[axis] for k, axis in enumerate(self.definition.axis)}
        conditions = [set_to_condition(self.region, {**names, **scope.space(()).names})]
        for relation in self.frame.relations:
            if isinstance(relation, Transform) and all(a in values for a in relation.after):
                index = [roots[axis] for axis in relation.before if axis in roots]
                if len(index) == len(relation.before):
                    places = relation.index_map.map_indices(index)
                    conditions += [
                        compare(CmpOp.EQ, values[axis] + self.frame.frames[axis].base, place)
                        for axis, place in zip(relation.after, places, strict=True)
                    ]
        return conditions

    def _reduced(self, roots: Mapping[IterVar, Expr]) -> list[Expr]:
        """What says that the reduction axes are inside their ranges."""
        ranges = domain_ranges(self.program, self.definition)
        return [
            compare(CmpOp.LT, roots[axis] - ranges[axis].min, ranges[axis].extent)
            for axis in self.definition.reduce_axis
        ]

    def _kind(self, leaf: IterVar) -> ForKind:
        return self.kinds.get(leaf, ForKind.SERIAL)


def _guarded(conditions: Sequence[Expr], statement: Stmt) -> Stmt:
    asked = [c for c in conditions if not (isinstance(c, Const) and c.value is True)]
    return IfThenElse(logical_and(*asked), statement) if asked else statement


