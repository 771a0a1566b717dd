"""Bounding-box loops with guards for non-affine stages.

Layouts with XOR require such loops, and so do fused axes of symbolic extent (`i * m + j`) that
cannot be unfused. Every loop covers its whole extent, and a guard around the innermost statement
selects the requested elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.expr import CmpOp, Const, Expr, Var, compare, index_value, logical_and
from tecomp.ir.nodes.stmt import For, ForKind, IfThenElse, Stmt, seq
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.loops.stage_body import StageBody
from tecomp.lowering.stages.definition import Definition, concurrent_loop_vars
from tecomp.lowering.stages.edge_tiles import Memory
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.poly.loops.regions import LoopScope
from tecomp.poly.sets.from_isl import set_to_condition
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import Fuse, LayoutTransform, Split, is_data, is_reduction

Producers = Callable[
    [int, Mapping[IterVar, Expr], LoopScope, Memory, Callable[[Memory], Stmt]], Stmt
]


@dataclass(frozen=True)
class RequestedElements:
    """Elements to compute.

    Attributes:
        points: Values of `axes`.
        axes: All or some axes of the definition.
        is_box: Whether `points` is the full box of the start and extent of each axis.
    """

    points: Points
    axes: tuple[IterVar, ...]
    is_box: bool


@dataclass(frozen=True)
class GuardedBoxLoops:
    """Builder of the guarded loops of one stage.

    Attributes:
        program: Program with all definitions.
        definition: Definition of the stage.
        frame: Axes and loops of the stage.
        body: Builder of the innermost statements.
        region: Elements to compute.
        start: Elements to initialize; for a scan, the positions that have initial steps.
        kinds: Kinds of the loops.
        threads: Axes of the core grid to which loops are bound.
        producers: Function that builds the stages attached at a position, followed by the inner
            loops, which it builds with the memory of these stages in scope.
    """

    program: PreparedSchedule
    definition: Definition
    frame: StageFrame
    body: StageBody
    region: RequestedElements
    start: RequestedElements
    kinds: Mapping[Var, ForKind]
    threads: Mapping[Var, str]
    producers: Producers

    def build(self, scope: LoopScope, first_reduction: int | None, memory: Memory) -> Stmt:
        """Build all loops, guarded against empty fused data axes."""
        statement = self._inside(0, {}, scope, first_reduction, memory)
        return wrap_in_guards(self._some_values(reduction=False), statement)

    def _some_values(self, *, reduction: bool) -> list[Expr]:
        """Return conditions that the factors of fused axes are nonempty.

        The conditions prevent division by 0 and let quotients and remainders be recombined.
        `reduction` selects fused reduction axes or fused data axes.
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
        scope: LoopScope,
        first_reduction: int | None,
        memory: Memory,
    ) -> Stmt:
        return self.producers(
            position, values, scope, memory,
            lambda inner: self._loop(position, values, scope, first_reduction, inner),
        )

    def _loop(
        self,
        position: int,
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
        first_reduction: int | None,
        memory: Memory,
    ) -> Stmt:
        leaves = self.definition.stage.leaves
        if position == len(leaves):
            roots = self.frame.root_values(values)
            statement = self.body.update(roots)
            result = wrap_in_guards(self._wanted(self.region, roots, values, scope), statement)
        else:
            leaf = leaves[position]
            var = Var(leaf.name)
            extent = index_value(self.frame.frames[leaf].extent)
            inside = scope.within(var, extent).running_at_once(
                concurrent_loop_vars(self.definition.stage, {leaf: var})
            )
            body = self._inside(
                position + 1, {**values, leaf: var}, inside, first_reduction, memory)
            thread = self.threads.get(leaf, "")
            result = For(var, Const(0), extent, self._kind(leaf), body, thread)
        if position == first_reduction:
            initial = self._initial(leaves[position:], values, scope)
            result = seq(initial, wrap_in_guards(self._some_values(reduction=True), result))
        return result

    def _initial(
        self, leaves: Sequence[IterVar], values: Mapping[IterVar, Expr], scope: LoopScope
    ) -> Stmt:
        """Build the loops that store the initial values of a reduction."""
        loops: list[tuple[IterVar, Var]] = [
            (leaf, Var(leaf.name)) for leaf in leaves if is_data(leaf)
        ]
        if self.frame.data_loops_suffice:
            roots = self.frame.root_values({**values, **dict(loops)})
            conditions = self._wanted(self.start, roots, {**values, **dict(loops)}, scope)
            extents = {leaf: self.frame.frames[leaf].extent for leaf, _ in loops}
        else:
            # A loop fused from data and reduction axes does not determine the element: visit all
            # elements that match the known values of the data loops.
            loops = [(axis, Var(axis.name)) for axis in self.start.axes]
            roots = {axis: var + self.frame.frames[axis].base for axis, var in loops}
            conditions = [
                *self._wanted(self.start, roots, values, scope),
                *(compare(CmpOp.EQ, index_of(value, roots), values[leaf])
                  for leaf, value in self.frame.values_of_data(tuple(values))),
            ]
            extents = {axis: self.frame.frames[axis].extent for axis, _ in loops}
        statement = wrap_in_guards(conditions, self.body.initial(roots))
        for leaf, var in reversed(loops):
            kind = self._kind(leaf) if self.frame.data_loops_suffice else ForKind.SERIAL
            thread = self.threads.get(leaf, "") if self.frame.data_loops_suffice else ""
            statement = For(var, Const(0), index_value(extents[leaf]), kind, statement, thread)
        return statement

    def _wanted(
        self,
        requested: RequestedElements,
        roots: Mapping[IterVar, Expr],
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
    ) -> list[Expr]:
        """Return conditions that element `roots` is in `requested`, for the given loop values."""
        axes = self.frame.axis_values(values)
        conditions: list[Expr] = []
        needs_region = not requested.is_box
        for relation in self.frame.relations:
            match relation:
                case Split(parent) if parent in axes:
                    # The last outer iteration may be partial.
                    extent = self.frame.frames[parent].extent
                    conditions.append(compare(CmpOp.LT, axes[parent], extent))
                case LayoutTransform(before, after, index_map) if all(a in axes for a in after):
                    shape = [self.program.extent(axis.extent) for axis in before]
                    # The layout positions of a subset are interleaved with other elements.
                    needs_region = needs_region or not self._is_whole()
                    if not index_map.is_bijective(shape):
                        needs_region = True
                        conditions += self._places_hold(relation, axes)
        if needs_region:
            names = {f"d{k}": roots[axis] for k, axis in enumerate(requested.axes)}
            names.update(scope.space(()).names)
            conditions.append(set_to_condition(requested.points, names))
        return conditions

    def _is_whole(self) -> bool:
        """Return whether starts and extents prove that the whole tensor is computed."""
        shape = self.program.shape(self.definition)
        return self.region.is_box and all(
            structural_equal(frame.base, Const(0))
            and structural_equal(index_value(frame.extent), index_value(extent))
            for axis, extent in zip(self.definition.axis, shape, strict=True)
            if (frame := self.frame.frames[axis])
        )

    def _places_hold(
        self, transform: LayoutTransform, axes: Mapping[IterVar, Expr]
    ) -> list[Expr]:
        """Return conditions that the layout positions of the loops hold an element."""
        frames = self.frame.frames
        index = [frames[axis].base + axes[axis] for axis in transform.before]
        positions = transform.index_map.map_indices(index)
        return [
            compare(CmpOp.EQ, frames[axis].base + axes[axis], position)
            for axis, position in zip(transform.after, positions, strict=True)
        ]

    def _kind(self, leaf: IterVar) -> ForKind:
        return self.kinds.get(leaf, ForKind.SERIAL)


def wrap_in_guards(conditions: Sequence[Expr], statement: Stmt) -> Stmt:
    """Guard `statement` by all conditions that are not constant True."""
    nontrivial = [c for c in conditions if not (isinstance(c, Const) and c.value is True)]
    return IfThenElse(logical_and(*nontrivial), statement) if nontrivial else statement
