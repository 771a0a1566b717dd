"""Rectangular loops that need no integer sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.arith.extents import ceil_div, product
from tecomp.ir.nodes.expr import (
    BinOp,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    compare,
    index_value,
    is_const,
    logical_and,
)
from tecomp.ir.nodes.stmt import Extent, For, ForKind, IfThenElse, Stmt, seq
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.loops.stage_body import StageBody
from tecomp.lowering.stages.definition import (
    Definition,
    concurrent_loop_vars,
    grid_axes,
    loop_kinds,
)
from tecomp.lowering.stages.edge_tiles import Memory
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.poly.loops.regions import LoopScope
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.from_isl import set_to_condition
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.loop_relations import Frame, Frames, is_shifted, recover, split_extents
from tecomp.scheduling.state import Fuse, LayoutTransform, Split, StageState, is_data, is_reduction

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


_CONCURRENT_KINDS = (ForKind.VECTORIZED, ForKind.UNROLLED)

Index = Mapping[IterVar, Expr]
"""Values of loops or axes."""


def rectangular_loops(
    stage: StageState, body: Callable[[Index], Stmt], extent_of: Callable[[Extent], Extent]
) -> Stmt | None:
    """Build the loops over all elements of a stage without integer sets.

    Args:
        stage: Pointwise stage.
        body: Function that builds the innermost statement from the axes of the tensor.
        extent_of: Function that expresses an extent of the computation in function sizes.

    Returns:
        Loops, or None if integer sets are required: if an extent is 0, if loops follow a layout,
        or if a vectorized or unrolled loop may be partial and is not a vector of symbolic extent.
    """
    loops = RectangularLoops.of(stage, extent_of)
    if loops is None:
        return None
    nest = loops.nest(stage.leaves, {}, lambda values: body(loops.index(values)))
    # The guard prevents division by 0 and lets quotients and remainders be recombined.
    fused = (part for r in stage.relations if isinstance(r, Fuse) for part in r.parts[1:])
    extents = (loops.frames[part].extent for part in fused)
    return wrap_in_guards([extent > 0 for extent in extents if isinstance(extent, Expr)], nest)


@dataclass(frozen=True)
class RectangularLoops:
    """Axes and loops of a stage with rectangular loops.

    Attributes:
        stage: State of the stage.
        frames: Start and extent of each axis.
        splits: Split that produced each outer or inner loop.
    """

    stage: StageState
    frames: Frames
    splits: Mapping[IterVar, Split]

    @classmethod
    def of(
        cls, stage: StageState, extent_of: Callable[[Extent], Extent] = lambda n: n
    ) -> RectangularLoops | None:
        """Return the loops of a stage, or None if integer sets are required."""
        frames = {
            axis: Frame(axis.dom.min, extent_of(axis.extent)) for axis in stage.compute.loops
        }
        splits: dict[IterVar, Split] = {}
        for relation in stage.relations:
            if isinstance(relation, LayoutTransform):
                return None
            if isinstance(relation, Split):
                found = _split_frames(relation, frames[relation.parent].extent)
                if found is None:
                    return None
                frames |= found
                splits |= dict.fromkeys(found, relation)
            else:
                extents = [frames[part].extent for part in relation.parts]
                frames[relation.fused] = Frame(Const(0), product(extents))
        if any(isinstance(frame.extent, int) and not frame.extent for frame in frames.values()):
            return None
        loops = cls(stage, frames, splits)
        return loops if loops._is_regular() and loops._are_in_order() else None

    def nest(
        self, leaves: Sequence[IterVar], values: Index, body: Callable[[Index], Stmt]
    ) -> Stmt:
        """Build some of the loops, in order.

        Args:
            leaves: Loops to build.
            values: Values of the enclosing loops.
            body: Function that builds the innermost statement from the values of all loops.
        """
        return self._loops(tuple(leaves), values, {}, body)

    def _loops(
        self, leaves: Sequence[IterVar], values: Index, counts: Index,
        body: Callable[[Index], Stmt],
    ) -> Stmt:
        """Build some of the loops; `counts` overrides the trip counts of single loops."""
        if not leaves:
            return body(values)
        leaf, inner = leaves[0], leaves[1:]
        for vector in inner:
            if self._is_vector(vector) and self.splits[vector].outer is leaf:
                return self._vectors(leaf, vector, inner, values, counts, body)
        return self._loop(leaf, inner, values, counts, body)

    def _vectors(
        self, leaf: IterVar, vector: IterVar, inner: Sequence[IterVar], values: Index,
        counts: Index, body: Callable[[Index], Stmt],
    ) -> Stmt:
        """Build a main loop over full vectors, followed by a remainder."""
        split = self.splits[vector]
        lanes, extent = self._factor(split), self.frames[split.parent].extent
        before: Expr = index_value(0)
        is_last: list[Expr] = []
        outer = self.splits.get(split.parent)
        if outer is not None:
            # Each part of the axis is a fixed number of vectors; the last part may have fewer.
            part, start = self._factor(outer), self.index(values)[outer.outer]
            extent, before = self.frames[outer.parent].extent, start * (part // lanes)
            is_last = [Compare(CmpOp.LE, index_value(extent), start * part + (part - 1))]
        count = index_value(extent) // lanes - before
        full = count if outer is None else binary(BinOp.MIN, index_value(part // lanes), count)
        last = {**values, leaf: count}
        remainder = {**counts, vector: index_value(extent) % lanes}
        return seq(
            self._loop(
                leaf, inner, values, {**counts, leaf: full, vector: index_value(lanes)}, body),
            wrap_in_guards(is_last, self._loops(inner, last, remainder, body)),
        )

    def _loop(
        self, leaf: IterVar, inner: Sequence[IterVar], values: Index, counts: Index,
        body: Callable[[Index], Stmt],
    ) -> Stmt:
        extent = counts[leaf] if leaf in counts else self._count(leaf, values)
        if isinstance(extent, Const) and extent.value == 1:
            return self._loops(inner, {**values, leaf: Const(0)}, counts, body)
        var = Var(leaf.name)
        kind = loop_kinds(self.stage).get(leaf, ForKind.SERIAL)
        thread = grid_axes(self.stage).get(leaf, "")
        inside = self._loops(inner, {**values, leaf: var}, counts, body)
        return For(var, Const(0), extent, kind, inside, thread)

    def _is_vector(self, axis: IterVar) -> bool:
        """Return whether a loop is vectorized over an axis of symbolic extent or over its parts.

        The factor of such parts must be a multiple of the lane count.
        """
        split = self.splits.get(axis)
        if split is None or split.inner is not axis or (
            self.stage.marks.get(axis) is not ForKind.VECTORIZED
        ):
            return False
        outer = self.splits.get(split.parent)
        if outer is None:
            return not isinstance(self.frames[split.parent].extent, int)
        is_part = split.parent is outer.inner and not self._is_short(outer.parent)
        is_whole = is_part and self._factor(outer) % self._factor(split) == 0
        return is_whole and not isinstance(self.frames[outer.parent].extent, int)

    def index(self, values: Index) -> Index:
        """Return the axes for given loop values."""
        relative = recover(self.stage.relations, self.frames, values, _no_layout)
        return {
            axis: value if is_const(base := self.frames[axis].base, 0) else base + value
            for axis, value in relative.items()
        }

    def _is_regular(self) -> bool:
        """Return whether no partial loop was fused or shifted, and no split part is empty."""
        for relation in self.stage.relations:
            full_axes = relation.parts if isinstance(relation, Fuse) else ()
            if isinstance(relation, Split):
                extent = self.frames[relation.parent].extent
                outer = self.frames[relation.outer].extent
                parts = ceil_div(extent, self._factor(relation))
                if isinstance(extent, int) and parts != outer:
                    return False
                full_axes = (relation.parent,) if is_shifted(relation, extent) else ()
            if any(map(self._is_short, full_axes)):
                return False
        return True

    def _are_in_order(self) -> bool:
        """Return whether partial loops are serial and nested inside the loops that bound them."""
        known: Index = {}
        for leaf in self.stage.leaves:
            if self._is_short(leaf):
                is_known = self._is_known(leaf, self.index(known))
                is_cut = self.stage.marks.get(leaf) in _CONCURRENT_KINDS
                if is_cut and self._is_vector(leaf):
                    is_cut = self.splits[leaf].outer not in known
                if is_cut or not is_known:
                    return False
            known = {**known, leaf: Const(0)}
        return True

    def _is_known(self, axis: IterVar, index: Index) -> bool:
        """Return whether the axes in `index` determine the trip count of `axis`."""
        if not self._is_short(axis):
            return True
        split = self.splits[axis]
        is_cut = axis is split.outer or split.outer in index
        return is_cut and self._is_known(split.parent, index)

    def _is_short(self, axis: IterVar) -> bool:
        """Return whether an axis is partial in some iterations of the enclosing loops."""
        split = self.splits.get(axis)
        if split is None:
            return False
        if self._is_short(split.parent):
            return True
        extent = self.frames[split.parent].extent
        if not isinstance(extent, int):
            return axis is split.inner
        is_last = axis is split.inner and not is_shifted(split, extent)
        return is_last and extent % self._factor(split) != 0

    def _factor(self, split: Split) -> int:
        extent = self.frames[split.inner].extent
        assert isinstance(extent, int)
        return extent

    def _count(self, axis: IterVar, values: Index) -> Expr:
        """Return the trip count of an axis for given values of the enclosing loops."""
        extent = index_value(self.frames[axis].extent)
        if not self._is_short(axis):
            return extent
        split = self.splits[axis]
        total = self._count(split.parent, values)
        if axis is split.outer:
            return index_value(ceil_div(total, self._factor(split)))
        outer = self.index(values)[split.outer]
        return binary(BinOp.MIN, extent, total - outer * self._factor(split))


def _split_frames(split: Split, extent: Extent) -> Frames | None:
    """Return the frames of the loops of a split; None if the inner extent is symbolic."""
    outer, inner = split_extents(extent, split.factor, split.nparts)
    if isinstance(extent, int):
        outer, inner = split.outer.extent, split.inner.extent
    if not isinstance(inner, int):
        return None
    return {split.outer: Frame(Const(0), outer), split.inner: Frame(Const(0), inner)}


def _no_layout(index_map: IndexMap, shape: object) -> IndexMap:
    raise AssertionError(f"loops that follow {index_map} are made from sets")
