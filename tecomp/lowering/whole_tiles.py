"""Tiles at the edge, computed whole where memory allows: their loops then need no masks.

What lies beyond the edge is never read. It may be computed like the rest where whatever is read for
it lies in memory too: in the padding of a layout, say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.ir.expr import Const, Expr, Var
from tecomp.ir.stmt import Extent, ForKind, IndexMap
from tecomp.lowering.footprint import Region, touched, with_reduction
from tecomp.lowering.program import Definition, Program
from tecomp.lowering.reads import Check, reads_of
from tecomp.poly.affine import NotAffine
from tecomp.poly.index_map import IndexMap as AnyMap
from tecomp.poly.regions import Scope, box_around, free, image, is_inside, preimage
from tecomp.scheduling.relations import made_from
from tecomp.scheduling.state import StageState, Transform

Bounds = Sequence[tuple[Expr, Extent]]
Memory = Mapping[Operation, Bounds]


def memory_of_arguments(program: Program) -> dict[Operation, Bounds]:
    """The elements that the memory of each argument has."""
    found: dict[Operation, Bounds] = {
        key: [(Const(0), extent) for extent in buffer.shape]
        for key, buffer in program.placeholders.items()
    }
    for definition in program.definitions.values():
        if definition.is_argument:
            extents = program.shape(definition)
            found[definition.stage.key] = [(Const(0), extent) for extent in extents]
    return found


def with_padding(
    definition: Definition, bounds: Bounds, shape: Sequence[Extent], scope: Scope
) -> Bounds:
    """`bounds` of a realized region, with the indices whose places are in its memory as well.

    Of tiles of 6 rows in a layout, the last holds 6 rows even where the tensor ends before.
    """
    maps = definition.stage.layout.maps
    if not maps or any(not isinstance(extent, int) for _, extent in bounds):
        return bounds
    space = scope.space(definition.axis)
    try:
        box = space.box(bounds)
        places = _places(maps, definition.axis)
        stored = scope.space([Var("place") for _ in places]).box(
            _stored_bounds(maps, bounds, shape, image(box, places, space), scope)
        )
        roomy = preimage(stored, places, space)
    except NotAffine:
        return bounds
    wide = box_around(roomy, roomy, scope, shape)
    try:
        return wide if is_inside(space.box(wide), roomy, scope) else bounds
    except NotAffine:
        return bounds


def _places(maps: Sequence[IndexMap], axes: Sequence[Expr]) -> list[Expr]:
    places = list(axes)
    for index_map in maps:
        places = list(AnyMap.lift(index_map).map_indices(places))
    return places


def _stored_bounds(
    maps: Sequence[IndexMap], bounds: Bounds, shape: Sequence[Extent], stored: Any, scope: Scope
) -> Bounds:
    """The box of places that is allocated for `bounds` of a tensor of some shape."""
    from_start = all(isinstance(start, Const) and start.value == 0 for start, _ in bounds)
    places = [extent for _, extent in bounds] if from_start else list(shape)
    for index_map in maps:
        places = list(AnyMap.lift(index_map).map_shape(places))
    if from_start:
        return [(Const(0), extent) for extent in places]
    return box_around(stored, stored, scope, places)


def whole_tiles(
    program: Program,
    definition: Definition,
    region: Region,
    bounds: Bounds,
    memory: Memory,
    checks: Mapping[int, tuple[Check, ...]],
    scope: Scope,
) -> Region:
    """`region` with the rest of the tiles that its vectorized and unrolled loops run through.

    Args:
        program: the definitions.
        definition: a stage that is computed inside loops of another.
        region: the elements that are needed.
        bounds: the box that is allocated for them.
        memory: for each tensor that exists here, the elements that its memory has.
        checks: the reads whose indices are checked at run time: none of those may be added.
        scope: what the sets depend on.
    """
    axes = _tiled_axes(definition.stage)
    positions = [k for k, axis in enumerate(definition.axis) if axis in axes]
    positions = [k for k in positions if isinstance(bounds[k][1], int)]
    try:
        box = scope.space(definition.axis).box(bounds)
    except NotAffine:
        return region
    points = region.points
    for along in [positions, *([[k] for k in positions] if len(positions) > 1 else [])]:
        wide = points
        for k in along:
            wide = free(wide, k)
        wide = wide.intersect(box).intersect_params(scope.context).coalesce()
        if is_inside(wide, points, scope):
            continue
        if _is_in_memory(program, definition, wide, memory, checks, scope):
            points = wide
    return region if points is region.points else Region(points, points)


def _is_in_memory(
    program: Program,
    definition: Definition,
    points: Any,
    memory: Memory,
    checks: Mapping[int, tuple[Check, ...]],
    scope: Scope,
) -> bool:
    """Whether all that is read to compute `points` lies in memory."""
    evaluated, inner = with_reduction(program, definition, points, scope)
    for read in reads_of(definition):
        held = memory.get(program.producer(read.load.tensor))
        if held is None or id(read.load) in checks:
            return False
        elements = touched(read.load.indices, read.conditions, evaluated, inner)
        own = scope.space([Var("element") for _ in held])
        if not is_inside(elements, own.box(held), scope):
            return False
    return True


def _tiled_axes(stage: StageState) -> set[IterVar]:
    """The axes of the tensor that vectorized and unrolled loops run along."""
    found = {
        leaf for leaf in stage.leaves
        if stage.marks.get(leaf) in (ForKind.VECTORIZED, ForKind.UNROLLED)
    }
    for relation in reversed(stage.relations):
        if not isinstance(relation, Transform):
            found = made_from(found, [relation])
            continue
        own = {Var(axis.name): axis for axis in relation.before}
        places = relation.index_map.map_indices([*own])
        for axis, place in zip(relation.after, places, strict=True):
            if axis in found:
                if not isinstance(place, Var):
                    # A step along this loop is none along an axis.
                    return set()
                found.add(own[place])
    return found
