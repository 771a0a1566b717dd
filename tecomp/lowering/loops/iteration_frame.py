"""Mapping between loop variables and axes for one region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from tecomp.compute.iter_var import IterVar
from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import Ranges, simplify
from tecomp.ir.nodes.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.stmt import Extent
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import domain_ranges
from tecomp.poly.loops.box_loops import bounding_box
from tecomp.poly.loops.regions import (
    LoopScope,
    equality_points,
    first_dims,
    image,
    is_box,
    preimage,
    project_out_dims,
)
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.to_isl import NotAffine, Points, Space
from tecomp.scheduling.loop_relations import (
    Frame,
    Frames,
    add_up,
    derive_frames,
    derived_from_axes,
    is_shifted,
    recover,
)
from tecomp.scheduling.state import Fuse, LayoutTransform, Relation, Split, is_data, is_reduction


@dataclass(frozen=True, slots=True)
class _Solutions:
    """Points of a space whose coordinates determine the root axes as sums."""

    points: Points
    axes: list[Expr]
    space: Space


@dataclass(frozen=True)
class StageFrame:
    """Mapping between the loops and axes of a stage for one region.

    Attributes:
        frames: Start and extent of every axis.
        values: Every axis as a function of the root axes.
        relations: Splits, fusions and transformations that made the loops.
        roots: Root axes, data axes first.
        data_loops_suffice: Whether the data loops alone determine the element.
        inverse_of: Function that returns the inverse of a layout map for given extents, in terms
            of the sizes of the function.
        shifted: Root axes whose last split part is shifted to start earlier (so that it is full),
            and whose whole range is computed independently of the other axes.
    """

    frames: Frames
    values: Mapping[IterVar, Expr]
    relations: tuple[Relation, ...]
    roots: tuple[IterVar, ...]
    data_loops_suffice: bool
    inverse_of: Callable[[IndexMap, Sequence[Extent]], IndexMap]
    shifted: frozenset[IterVar] = frozenset()

    def leaf_values(self, leaves: Sequence[IterVar]) -> list[Expr]:
        """Return loops as functions of the root axes."""
        return [self.values[leaf] for leaf in leaves]

    def leaf_points(
        self, points: Points, axes: Sequence[IterVar], leaves: Sequence[IterVar], scope: LoopScope
    ) -> Points:
        """Return the values of `leaves` at `points`, which are values of the root `axes`.

        Raises:
            NotAffine: If a loop is not an affine function of the axes.
        """
        found = self._solutions(points, axes, leaves, {}, scope)
        if found is None:
            return image(points, self.leaf_values(leaves), scope.space(axes))
        return first_dims(found.points, len(leaves))

    def points_inside(
        self,
        points: Points,
        axes: Sequence[IterVar],
        leaves: Sequence[IterVar],
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
    ) -> Points | None:
        """Return `leaf_points` inside loops with `values`; None if this requires quotients."""
        with suppress(NotAffine):
            found = self._solutions(points, axes, leaves, values, scope)
            if found is not None:
                inside = first_dims(found.points, len(leaves))
                return inside.intersect_params(scope.context)
        return None

    def root_points(
        self,
        points: Points,
        axes: Sequence[IterVar],
        leaves: Sequence[IterVar],
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
    ) -> Points:
        """Return the part of `points` that is computed inside loops with `values`.

        Args:
            points: Values of the root `axes`.
            axes: Root axes of the stage.
            leaves: Inner loops.
            values: Values of the open loops.
            scope: Parameters of the sets: sizes and enclosing loops.
        """
        with suppress(NotAffine):
            found = self._solutions(points, axes, leaves, values, scope)
            if found is not None:
                return image(found.points, found.axes, found.space)
        # Shifted parts overlap: several iterations compute an element, and `values` names one.
        pairs = [
            (self.values[leaf], value) for leaf, value in values.items()
            if not self._is_met_again(leaf)
        ]
        return equality_points(points, scope.space(axes), pairs)

    def _is_met_again(self, leaf: IterVar) -> bool:
        derived = derived_from_axes([leaf], self.relations)
        return any(
            isinstance(r, Split) and {r.outer, r.inner} & derived
            and is_shifted(r, self.frames[r.parent].extent)
            for r in self.relations
        )

    def _solutions(
        self,
        points: Points,
        axes: Sequence[IterVar],
        leaves: Sequence[IterVar],
        values: Mapping[IterVar, Expr],
        scope: LoopScope,
    ) -> _Solutions | None:
        """Return the values of `leaves` and fused axes at `points` inside loops with `values`."""
        loops = {**values, **{leaf: index_value(leaf) for leaf in leaves}}
        sums = add_up(self.relations, self.frames, loops)
        # A loop fused from no loops belongs to no axis and has one iteration.
        single = (r.fused for r in self.relations if isinstance(r, Fuse) and not r.parts)
        if sums is None or not all(axis in sums.values for axis in (*axes, *single)):
            return None
        space = scope.space((*leaves, *sums.parts))
        roots = [self.frames[axis].base + sums.values[axis] for axis in axes]
        # A shifted axis is computed in full, so only the ranges of its loops constrain points.
        constrained = [k for k, axis in enumerate(axes) if axis not in self.shifted]
        for k in reversed(range(len(axes))):
            points = points if k in constrained else project_out_dims(points, k, 1)
        if sums.ranges:
            box = scope.space([Var("held") for _ in sums.ranges]).box([
                (0, count) for _, count in sums.ranges
            ])
            points = points.flat_product(box)
        exprs = [*(roots[k] for k in constrained), *(value for value, _ in sums.ranges)]
        return _Solutions(preimage(points, exprs, space), roots, space)

    def values_of_data(self, leaves: Sequence[IterVar]) -> list[tuple[IterVar, Expr]]:
        """Return the data loops among `leaves` as functions of the root axes."""
        return [(leaf, self.values[leaf]) for leaf in leaves if is_data(leaf)]

    def axis_values(self, loops: Mapping[IterVar, Expr]) -> dict[IterVar, Expr]:
        """Return all axes that the given loops determine, relative to their bases."""
        return recover(self.relations, self.frames, loops, self.inverse_of)

    def root_values(self, loops: Mapping[IterVar, Expr]) -> dict[IterVar, Expr]:
        """Return the absolute values of root axes for given loop values."""
        relative = self.axis_values(loops)
        return {
            axis: self.frames[axis].base + relative[axis]
            for axis in self.roots
            if axis in relative
        }


def frame_of(
    program: PreparedSchedule,
    definition: Definition,
    bounds: Sequence[tuple[Expr, Extent]],
    region: Points,
    scope: LoopScope,
) -> StageFrame:
    """Return the frame of a stage for the elements `region`, which `bounds` enclose."""
    stage = definition.stage
    roots: Frames = {
        axis: Frame(start, extent)
        for axis, (start, extent) in zip(definition.axis, bounds, strict=True)
    }
    for axis in definition.reduce_axis:
        domain = domain_ranges(program, definition)[axis]
        roots[axis] = Frame(domain.min, program.extent(axis.extent))

    def box_of(
        relation: LayoutTransform, frames: Frames, values: Mapping[IterVar, Expr]
    ) -> Sequence[Frame]:
        absolute = [values[axis] + frames[axis].base for axis in relation.before]
        positions = relation.index_map.map_indices(absolute)
        shape = [program.extent(axis.extent) for axis in relation.after]
        try:
            stored = image(region, positions, scope.space(definition.axis))
        except NotAffine:
            return [Frame(Const(0), extent) for extent in shape]
        boxes = bounding_box(stored, stored, scope, shape)
        return [Frame(start, extent) for start, extent in boxes]

    relations = tuple([_in_sizes(program, relation) for relation in stage.relations])
    frames, values = derive_frames(relations, roots, box_of)
    mixed = any(is_reduction(leaf) and _touches_data(leaf, relations) for leaf in stage.leaves)
    inverse_of = partial(_inverse, program)
    shifted = frozenset([
        r.parent for r in relations
        if isinstance(r, Split) and r.parent in roots and is_shifted(r, roots[r.parent].extent)
    ])
    if shifted and not is_box(region, [roots[axis] for axis in definition.axis], scope):
        shifted = frozenset()
    return StageFrame(frames, values, relations, tuple(roots), not mixed, inverse_of, shifted)


def _in_sizes(program: PreparedSchedule, relation: Relation) -> Relation:
    """Express a symbolic split factor in terms of the function sizes, clamped to 1 at least."""
    if not isinstance(relation, Split):
        return relation
    factor, nparts = (
        n if n is None or isinstance(n, int) else _from_one_on(program, program.extent(n))
        for n in (relation.factor, relation.nparts)
    )
    return replace(relation, factor=factor, nparts=nparts)


def _from_one_on(program: PreparedSchedule, count: Extent) -> Extent:
    ranges: Ranges = {n: (0, None) for n in program.symbolic_extents if isinstance(n, Var)}
    short = simplify(binary(BinOp.MAX, index_value(count), Const(1)), ranges)
    return int(short.value) if isinstance(short, Const) else short


def _touches_data(leaf: IterVar, relations: tuple[Relation, ...]) -> bool:
    """Return whether a reduction loop was fused with a data loop."""
    return any(not is_reduction(axis) for axis in derived_from_axes([leaf], relations))


def _inverse(program: PreparedSchedule, index_map: IndexMap, shape: Sequence[Extent]) -> IndexMap:
    # The conditions of an inverse may refer to extents.
    inverse = index_map.inverse_or_none([program.extent(extent) for extent in shape])
    if inverse is None:
        raise LowerError(
            "transform_layout: cannot derive the inverse of {index_map}",
            kind="not-invertible", index_map=index_map,
        )
    return inverse
