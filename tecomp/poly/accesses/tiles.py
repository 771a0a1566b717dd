"""Tiles of index spaces: loop values as digits, and accesses compared on a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl

from tecomp.ir.arith.intervals import Box
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.loops.regions import LoopScope, coalesce_convex, image
from tecomp.poly.sets.from_isl import set_to_condition, to_expr
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.to_isl import Space, first_point, index_relation

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param
_MAX_VALUES = 1 << 16
"""Upper bound of the offsets of a dimension that are enumerated to find its digits."""


@dataclass(frozen=True, slots=True)
class TileDigit:
    """Digit of `axis` with the values `0, stride, ..., (extent - 1) * stride` above its base."""

    axis: int
    stride: int
    extent: int


def digits_of(points: isl.Set, starts: Sequence[Expr], dims: Sequence[Var], scope: LoopScope
              ) -> list[list[TileDigit]] | None:
    """Return the offsets of each dimension of `points` from its start, over all enclosing loops.

    Returns:
        For each dimension the digits whose sums are the offsets, the fastest first; None if the
        offsets are unbounded or are not sums of digits.
    """
    space = scope.space(dims)
    offsets = image(
        points.intersect_params(scope.context),
        [dim - start for dim, start in zip(dims, starts, strict=True)], space,
    )
    values = offsets.project_out(_PARAM, 0, offsets.dim(_PARAM))
    found = []
    for k in range(len(dims)):
        line = values.project_out(_DIM, k + 1, len(dims) - k - 1).project_out(_DIM, 0, k)
        digits = _digits(line.coalesce(), k)
        if digits is None:
            return None
        found.append(digits)
    return found


def _digits(line: isl.Set, axis: int) -> list[TileDigit] | None:
    if line.is_empty() or not line.dim_is_bounded(_DIM, 0):
        return None
    first, last = (python_int(end) for end in (line.dim_min_val(0), line.dim_max_val(0)))
    if first != 0:
        return None
    interval = isl.Set.universe(line.get_space()).lower_bound_val(_DIM, 0, 0)
    if interval.upper_bound_val(_DIM, 0, last).is_subset(line):
        return [TileDigit(axis, 1, last + 1)] if last else []
    if last >= _MAX_VALUES:
        return None
    values: list[int] = []
    line.foreach_point(
        lambda point: values.append(python_int(point.get_coordinate_val(_DIM, 0)))
    )
    return _as_digits(sorted(values), axis)


def _as_digits(values: list[int], axis: int) -> list[TileDigit] | None:
    digits: list[TileDigit] = []
    while len(values) > 1:
        stride = values[1]
        count = next((k for k, value in enumerate(values) if value != k * stride), len(values))
        outer = values[::count]
        if len(values) % count or values != [a + k * stride for a in outer for k in range(count)]:
            return None
        digits.append(TileDigit(axis, stride, count))
        values = outer
    return digits


@dataclass(frozen=True)
class IterationTile:
    """Points of an operation within the iteration space of a program.

    Attributes:
        axes: Axes of the operation.
        extents: Extents of the axes.
        coordinates: Coordinates of the program's points in terms of `axes`.
        points: Values of `axes` that the program requires.
        scope: Enclosing loops.
    """

    axes: tuple[Var, ...]
    extents: tuple[int, ...]
    coordinates: tuple[Expr, ...]
    points: isl.Set
    scope: LoopScope

    @property
    def space(self) -> Space:
        """Space of `axes`."""
        return self.scope.space(self.axes)

    @property
    def box(self) -> isl.Set:
        """All values of `axes`."""
        return self.space.box([(0, extent) for extent in self.extents])

    def missing(self) -> isl.Set:
        """Return the values of `axes` that the program does not require, where it requires some."""
        missing = self.box.subtract(self.points)
        return missing.intersect_params(self.scope.context).intersect_params(self.points.params())

    def holds(self, points: isl.Set) -> bool:
        """Return whether all `points` of the program are in this tile."""
        inside = self.points.apply(index_relation(list(self.coordinates), self.space))
        return bool(points.intersect_params(self.scope.context).is_subset(inside))

    def lies_in(self, access: OperandAccess, memory: Box[Extent]) -> bool:
        """Return whether all tensor elements that an operand touches are within `memory`.

        This includes the points of the tile that the program does not require.

        Args:
            access: Operand access.
            memory: (low, extent) of each axis of the tensor.

        Raises:
            NotAffine: If an index or a bound is not an affine function.
        """
        known = self.scope.context.intersect(self.points.params())
        touched = self.box.intersect_params(known).apply(
            index_relation(list(access.tensor_indices), self.space)
        )
        backed = self.scope.space([Var("element") for _ in memory]).box(memory)
        return bool(touched.is_subset(backed))

    def is_full(self) -> bool:
        """Return whether the tile is full in all iterations of the enclosing loops."""
        return bool(self.missing().is_empty())

    def is_never_full(self) -> bool:
        """Return whether the tile is partial in all iterations of the enclosing loops."""
        return bool(self.full_where().is_empty())

    def full_where(self) -> isl.Set:
        """Return the iterations of the enclosing loops in which the tile is full."""
        known = self.scope.context.intersect(self.points.params())
        return known.subtract(self.missing().params())

    def full_condition(self) -> Expr:
        """Return the condition on the enclosing loops under which the tile is full."""
        inside = self.full_where().gist(self.scope.context).coalesce()
        return set_to_condition(isl.Set.from_params(inside), self.scope.space(()).names)


def tile_of(
    points: isl.Set, coordinates: Sequence[Expr], axes: Sequence[Var], extents: Sequence[int],
    scope: LoopScope,
) -> IterationTile:
    """Return the tile whose element `axes` is the point `coordinates` of the program.

    Args:
        points: Points that the program computes.
        coordinates: Coordinates of `points` in terms of `axes`.
        axes: Axes of the operation.
        extents: Extents of the axes.
        scope: Enclosing loops.
    """
    space = scope.space(axes)
    box = space.box([(0, extent) for extent in extents])
    relation = index_relation(list(coordinates), space)
    needed = box.intersect(points.apply(relation.reverse())).intersect_params(scope.context)
    return IterationTile(tuple(axes), tuple(extents), tuple(coordinates), needed.coalesce(), scope)


@dataclass(frozen=True)
class OperandAccess:
    """Operand of an operation and the corresponding tensor element, at each point of a tile.

    Attributes:
        operand_indices: Indices of the operand, in terms of the axes of the operation.
        tensor_indices: Indices of the tensor, in terms of the axes and the enclosing loops.
    """

    operand_indices: tuple[Expr, ...]
    tensor_indices: tuple[Expr, ...]


def clash(
    access: OperandAccess, tile: IterationTile
) -> tuple[dict[Var, int], dict[Var, int]] | None:
    """Return two points with the same operand element but different tensor elements, or None.

    Raises:
        NotAffine: If an index is not an affine function of the axes.
    """
    space = tile.space
    op_map = index_relation(list(access.operand_indices), space).intersect_domain(tile.box)
    tensor_map = index_relation(list(access.tensor_indices), space).intersect_domain(tile.box)
    shared = op_map.apply_range(op_map.reverse())
    conflicts = shared.subtract(tensor_map.apply_range(tensor_map.reverse())).intersect_params(
        tile.scope.context
    )
    if conflicts.is_empty():
        return None
    second = tuple(Var(axis.name) for axis in tile.axes)
    pairs = tile.scope.space((*tile.axes, *second))
    found = first_point(conflicts.wrap().flatten(), pairs)
    return (
        {axis: found[axis] for axis in tile.axes},
        {axis: found[other] for axis, other in zip(tile.axes, second, strict=True)},
    )


def view(access: OperandAccess, tile: IterationTile, indices: Sequence[Var]) -> tuple[Expr, ...]:
    """Return the indices of the tensor as functions of `indices`, the indices of the operand.

    `clash` must return None for the access.
    """
    op_map = index_relation(list(access.operand_indices), tile.space).intersect_domain(tile.box)
    relation = op_map.reverse().apply_range(index_relation(list(access.tensor_indices), tile.space))
    domain = relation.domain()
    function = isl.PwMultiAff.from_map(relation)
    names = tile.scope.space(indices).names
    found = []
    for k in range(len(access.tensor_indices)):
        found.append(to_expr(function.get_pw_aff(k).gist(domain).coalesce(), names))
    return tuple(found)


def padding_elements(
    access: OperandAccess, tile: IterationTile, axes: Sequence[Var], shape: Box[Extent],
    memory: Box[Extent],
    physical: Sequence[Expr],
) -> isl.Set:
    """Return the elements of an operand that are in the padding of a tensor's memory.

    Args:
        access: Access to the operand and the tensor.
        tile: Tile of the operation.
        axes: Axes of the tensor.
        shape: (low, extent) of each axis.
        memory: (low, extent) of each axis in a region that is certainly allocated.
        physical: Physical index of an element in terms of `axes`.

    Raises:
        NotAffine: If a physical index or a bound is not an affine function.
    """
    space = tile.scope.space(axes)
    elements, stored = space.box(shape), space.box(memory)
    to_physical = index_relation(list(physical), space)
    outside = stored.subtract(elements)
    occupied = elements.apply(to_physical).apply(to_physical.reverse())
    free = outside.subtract(occupied)
    tensor_map = index_relation(list(access.tensor_indices), tile.space)
    points = tile.box.intersect(free.apply(tensor_map.reverse()))
    return points.apply(index_relation(list(access.operand_indices), tile.space)).coalesce()


def readable_condition(
    access: OperandAccess, tile: IterationTile, indices: Sequence[Var], padding: isl.Set | None
) -> Expr:
    """Return the condition under which an operand element may be read: required or padding."""
    op_map = index_relation(list(access.operand_indices), tile.space)
    required, touched = tile.points.apply(op_map), tile.box.apply(op_map)
    if padding is not None:
        required = required.union(padding)
    known = touched.intersect_params(tile.scope.context)
    allowed = coalesce_convex(required.intersect(known), tile.scope)
    return set_to_condition(allowed.gist(known).coalesce(), tile.scope.space(indices).names)


def out_of_range_operands(
    access: OperandAccess, tile: IterationTile, reduced: Sequence[Var], padding: isl.Set | None
) -> tuple[bool, bool, bool]:
    """Return whether a reduction reads (elements, padding, unallocated memory) past its tail.

    The reads are at the points of `missing_reduction_points`: missing points of the tile whose
    result element the program requires.
    """
    op_map = index_relation(list(access.operand_indices), tile.space)
    read = missing_reduction_points(tile, reduced).apply(op_map)
    required = tile.points.apply(op_map)
    outside = read.subtract(required)
    has_padding = padding is not None and not outside.intersect(padding).is_empty()
    unallocated = outside if padding is None else outside.subtract(padding)
    return not read.intersect(required).is_empty(), has_padding, not unallocated.is_empty()


def missing_reduction_points(tile: IterationTile, reduced: Sequence[Var]) -> isl.Set:
    """Return the missing points of a tile for which another reduction step is required."""
    covered = tile.points
    for axis in reduced:
        k = next(n for n, other in enumerate(tile.axes) if other is axis)
        covered = covered.project_out(_DIM, k, 1).insert_dims(_DIM, k, 1)
    return tile.box.intersect(covered).subtract(tile.points).intersect_params(tile.scope.context)


def values_at(exprs: Sequence[Expr], space: Space, point: Mapping[Var, int]) -> tuple[int, ...]:
    """Evaluate affine expressions at a point; variables without a value are 0."""
    relation = index_relation(list(exprs), space)
    for k, var in enumerate(space.params):
        relation = relation.fix_val(_PARAM, k, point.get(var, 0))
    for k, var in enumerate(space.dims):
        relation = relation.fix_val(isl.dim_type.in_, k, point.get(var, 0))
    found: Any = relation.range().sample_point()
    return tuple(python_int(found.get_coordinate_val(_DIM, k)) for k in range(len(exprs)))

