"""Bounding-box loops with guards for non-affine stages.

Layouts with XOR make such loops, and so do fused axes of symbolic extent (`i * m + j`) that cannot
be opened. Every loop runs through its whole extent, and the innermost statement asks whether it is
meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.expr import CmpOp, Const, Expr, Var, compare, index_value, logical_and
from tecomp.ir.nodes.stmt import For, ForKind, IfThenElse, Stmt, seq
from tecomp.ir.nodes.structural_equality import same
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.loops.stage_body import StageBody
from tecomp.lowering.stages.definition import Definition, concurrent
from tecomp.lowering.stages.edge_tiles import Memory
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import Program
from tecomp.poly.loops.regions import Scope
from tecomp.poly.sets.from_isl import set_to_condition
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import Fuse, Split, Transform, is_data, is_reduction

Producers = Callable[
    [int, Mapping[IterVar, Expr], Scope, Memory, Callable[[Memory], Stmt]], Stmt
]


@dataclass(frozen=True)
class Elements:
    """Elements to compute.

    Attributes:
        points: values of the axes.
        axes: of the definition, all or some.
        is_box: whether these are all that the start and extent of each axis enclose.
    """

    points: Points
    axes: tuple[IterVar, ...]
    is_box: bool


@dataclass(frozen=True)
class BoxedLoops:
    """The loops of one stage.

    Attributes:
        program: the definitions.
        definition: the stage.
        frame: its axes and loops.
        body: makes its innermost statements.
        region: the elements to compute.
        start: those that get a first value; of a scan, the places that have first steps.
        kinds: how loops run.
        threads: the axes of the grid of cores that loops are bound to.
        producers: puts the stages that are computed after a number of loops before the others,
            which it makes with the memory that there is then.
    """

    program: Program
    definition: Definition
    frame: StageFrame
    body: StageBody
    region: Elements
    start: Elements
    kinds: Mapping[Var, ForKind]
    threads: Mapping[Var, str]
    producers: Producers

    def build(self, scope: Scope, first_reduction: int | None, memory: Memory) -> Stmt:
        """All loops; none where a data axis that is fused has no values."""
        statement = self._inside(0, {}, scope, first_reduction, memory)
        return guarded(self._some_values(reduction=False), statement)

    def _some_values(self, *, reduction: bool) -> list[Expr]:
        """What says that axes that are fused, to a reduction or not, have values.

        Nothing is divided by 0 then, and quotients and remainders can be joined again.
        """
        extents = dict.fromkeys(
            extent
            for relation in self.frame.relations
            if isinstance(relation, Fuse) and is_reduction(relation.fused) is reduction
            for part in relation.parts[1:]
            if isinstance(extent := self.frame.frames[part].extent, Expr)
        )
        return [extent > 0 for extent in extents]

    def _inside(
        self,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: Scope,
        first_reduction: int | None,
        memory: Memory,
    ) -> Stmt:
        return self.producers(
            position, values, scope, memory,
            lambda held: self._loop(position, values, scope, first_reduction, held),
        )

    def _loop(
        self,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: Scope,
        first_reduction: int | None,
        memory: Memory,
    ) -> Stmt:
        leaves = self.definition.stage.leaves
        if position == len(leaves):
            roots = self.frame.root_values(values)
            statement = self.body.update(roots)
            rest = guarded(self._wanted(self.region, roots, values, scope), statement)
        else:
            leaf = leaves[position]
            var = Var(leaf.name)
            extent = index_value(self.frame.frames[leaf].extent)
            inside = scope.within(var, extent).running_at_once(
                concurrent(self.definition.stage, {leaf: var})
            )
            body = self._inside(
                position + 1, {**values, leaf: var}, inside, first_reduction, memory)
            thread = self.threads.get(leaf, "")
            rest = For(var, Const(0), extent, self._kind(leaf), body, thread)
        if position == first_reduction:
            initial = self._initial(leaves[position:], values, scope)
            rest = seq(initial, guarded(self._some_values(reduction=True), rest))
        return rest

    def _initial(
        self, rest: Sequence[IterVar], values: Mapping[IterVar, Expr], scope: Scope
    ) -> Stmt:
        """Loops that store what a reduction starts from."""
        loops: list[tuple[IterVar, Var]] = [
            (leaf, Var(leaf.name)) for leaf in rest if is_data(leaf)
        ]
        if self.frame.data_loops_suffice:
            roots = self.frame.root_values({**values, **dict(loops)})
            conditions = self._wanted(self.start, roots, {**values, **dict(loops)}, scope)
            extents = {leaf: self.frame.frames[leaf].extent for leaf, _ in loops}
        else:
            # A loop over data and reduction at once does not say which element is meant: visit
            # all elements whose data loops have the values that are known.
            loops = [(axis, Var(axis.name)) for axis in self.start.axes]
            roots = {axis: var + self.frame.frames[axis].base for axis, var in loops}
            conditions = [
                *self._wanted(self.start, roots, values, scope),
                *(compare(CmpOp.EQ, index_of(value, roots), values[leaf])
                  for leaf, value in self.frame.values_of_data(tuple(values))),
            ]
            extents = {axis: self.frame.frames[axis].extent for axis, _ in loops}
        statement = guarded(conditions, self.body.initial(roots))
        for leaf, var in reversed(loops):
            kind = self._kind(leaf) if self.frame.data_loops_suffice else ForKind.SERIAL
            thread = self.threads.get(leaf, "") if self.frame.data_loops_suffice else ""
            statement = For(var, Const(0), index_value(extents[leaf]), kind, statement, thread)
        return statement

    def _wanted(
        self,
        wanted: Elements,
        roots: Mapping[IterVar, Expr],
        values: Mapping[IterVar, Expr],
        scope: Scope,
    ) -> list[Expr]:
        """What says that the element `roots` is among the `wanted` ones, at the given loops."""
        axes = self.frame.axis_values(values)
        conditions: list[Expr] = []
        needs_region = not wanted.is_box
        for relation in self.frame.relations:
            match relation:
                case Split(parent) if parent in axes:
                    # The last outer iteration may be shorter.
                    extent = self.frame.frames[parent].extent
                    conditions.append(compare(CmpOp.LT, axes[parent], extent))
                case Transform(before, after, index_map) if all(a in axes for a in after):
                    shape = [self.program.extent(axis.extent) for axis in before]
                    # Places of a part of the elements have others of the tensor between them.
                    needs_region = needs_region or not self._is_whole()
                    if not index_map.is_bijective(shape):
                        needs_region = True
                        conditions += self._places_hold(relation, axes)
        if needs_region:
            names = {f"d{k}": roots[axis] for k, axis in enumerate(wanted.axes)}
            names.update(scope.space(()).names)
            conditions.append(set_to_condition(wanted.points, names))
        return conditions

    def _is_whole(self) -> bool:
        """Whether all elements of the tensor are computed, as far as starts and extents tell."""
        shape = self.program.shape(self.definition)
        return self.region.is_box and all(
            same(frame.base, Const(0)) and same(index_value(frame.extent), index_value(extent))
            for axis, extent in zip(self.definition.axis, shape, strict=True)
            if (frame := self.frame.frames[axis])
        )

    def _places_hold(
        self, transform: Transform, axes: Mapping[IterVar, Expr]
    ) -> list[Expr]:
        """What says that there is an element at the places that the loops run through."""
        frames = self.frame.frames
        index = [frames[axis].base + axes[axis] for axis in transform.before]
        places = transform.index_map.map_indices(index)
        return [
            compare(CmpOp.EQ, frames[axis].base + axes[axis], place)
            for axis, place in zip(transform.after, places, strict=True)
        ]

    def _kind(self, leaf: IterVar) -> ForKind:
        return self.kinds.get(leaf, ForKind.SERIAL)


def guarded(conditions: Sequence[Expr], statement: Stmt) -> Stmt:
    """`statement` where all conditions hold."""
    asked = [c for c in conditions if not (isinstance(c, Const) and c.value is True)]
    return IfThenElse(logical_and(*asked), statement) if asked else statement
