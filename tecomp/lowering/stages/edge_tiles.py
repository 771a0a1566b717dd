"""Compute partial edge tiles in full where padding exists, so that loops need no mask.

Elements beyond the edge are never read. They may be computed if all their inputs are backed by
memory too, for example by the padding of a layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.errors import LayoutError
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import Extent, ForKind, IndexMapNode
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import (
    Region,
    conditions_of,
    elements_at_indices,
    evaluated_points,
)
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import IndexCheck
from tecomp.poly.loops.box_loops import bounding_box
from tecomp.poly.loops.regions import LoopScope, image, is_inside, preimage, round_to_blocks
from tecomp.poly.loops.tile_loops import project_out_dim
from tecomp.poly.maps.index_map import IndexMap as AnyMap
from tecomp.poly.sets.to_isl import NotAffine, Points
from tecomp.scheduling.loop_relations import derived_from_axes
from tecomp.scheduling.state import LayoutTransform, Split, StageState

_CONCURRENT_KINDS = (ForKind.VECTORIZED, ForKind.UNROLLED)

Bounds = Sequence[tuple[Expr, Extent]]


@dataclass(frozen=True, slots=True)
class BackedRegion:
    """Elements of a tensor that are backed by memory.

    Attributes:
        bounds: Box of these elements.
        points: Elements that hold their values. None: all elements of the box.
    """

    bounds: Bounds
    points: Points | None = None


Memory = Mapping[Operation, BackedRegion]


def memory_of_arguments(program: PreparedSchedule) -> dict[Operation, BackedRegion]:
    """Return the elements that are backed by memory, for each argument."""
    found = {
        key: BackedRegion([
            (Const(0), n if isinstance(n, int) else program.products.named(n))
            for n in buffer.shape
        ])
        for key, buffer in program.placeholders.items()
    }
    for definition in program.definitions.values():
        if definition.is_argument:
            extents = program.shape(definition)
            found[definition.stage.key] = BackedRegion([(Const(0), extent) for extent in extents])
    return found


def with_padding(
    definition: Definition, bounds: Bounds, shape: Sequence[Extent], scope: LoopScope
) -> Bounds:
    """Extend the `bounds` of a realized region by padding that its layout allocates.

    For example, in a layout with tiles of 6 rows, the last tile has memory for 6 rows even if the
    tensor ends within the tile.
    """
    maps = definition.stage.layout.maps
    if not maps:
        return bounds
    space = scope.space(definition.axis)
    try:
        box = space.box(bounds)
        positions = _places(maps, definition.axis)
        stored = scope.space([Var("place") for _ in positions]).box(
            _stored_bounds(maps, bounds, shape, image(box, positions, space), scope)
        )
        valid = preimage(stored, positions, space)
    except NotAffine:
        return bounds
    padded = bounding_box(valid, valid, scope, shape)
    if _are_equal_boxes(padded, bounds):
        return bounds
    try:
        is_held = is_inside(space.box(padded), valid, scope) and _keeps_memory(maps, bounds, padded)
    except NotAffine:
        return bounds
    return padded if is_held else bounds


def _are_equal_boxes(box: Bounds, other: Bounds) -> bool:
    """Return whether both boxes have equal constant starts and equal extents."""
    return all(
        isinstance(start, Const) and isinstance(first, Const) and start.value == first.value
        and structural_equal(extent, count)
        for (start, extent), (first, count) in zip(box, other, strict=True)
    )


def _keeps_memory(maps: Sequence[IndexMapNode], bounds: Bounds, padded: Bounds) -> bool:
    """Return whether all maps accept the box `padded`, with an image in the memory of `bounds`.

    Each map must accept the whole bounding box of the image of the previous map, including
    positions without an element.
    """
    if not _starts_at_zero(padded):
        return True
    try:
        physical = _extents(maps, padded)
    except LayoutError:
        return False
    return not _starts_at_zero(bounds) or structural_equal(
        tuple(physical), tuple(_extents(maps, bounds))
    )


def _places(maps: Sequence[IndexMapNode], axes: Sequence[Expr]) -> list[Expr]:
    indices = list(axes)
    for index_map in maps:
        indices = list(AnyMap.lift(index_map).map_indices(indices))
    return indices


def _stored_bounds(
    maps: Sequence[IndexMapNode], bounds: Bounds, shape: Sequence[Extent], stored: Points,
    scope: LoopScope
) -> Bounds:
    """Return the box of physical positions that is allocated for `bounds` of a tensor."""
    if _starts_at_zero(bounds):
        return [(Const(0), extent) for extent in _extents(maps, bounds)]
    extents = _extents(maps, [(Const(0), extent) for extent in shape])
    return bounding_box(stored, stored, scope, extents)


def _starts_at_zero(bounds: Bounds) -> bool:
    return all(isinstance(start, Const) and start.value == 0 for start, _ in bounds)


def _extents(maps: Sequence[IndexMapNode], bounds: Bounds) -> list[Extent]:
    """Return the physical shape of `bounds` that start at 0, after all maps."""
    extents = [extent for _, extent in bounds]
    for index_map in maps:
        extents = list(AnyMap.lift(index_map).map_shape(extents))
    return extents


def extend_to_full_tiles(
    program: PreparedSchedule,
    definition: Definition,
    region: Region,
    bounds: Bounds,
    memory: Memory,
    checks: Mapping[int, tuple[IndexCheck, ...]],
    scope: LoopScope,
) -> Region:
    """Extend `region` to full tiles of its vectorized and unrolled loops where memory allows.

    Args:
        program: Program with all definitions.
        definition: Stage that is computed inside loops of another stage.
        region: Required elements.
        bounds: Box that is allocated for the region.
        memory: Elements that are backed by memory, for each tensor in scope.
        checks: Reads with run-time index checks; the extension must not add such reads.
        scope: Parameters of the sets: sizes and enclosing loops.
    """
    axes = _tiled_axes(definition.stage)
    positions = [k for k, axis in enumerate(definition.axis) if axis in axes]
    positions = [k for k in positions if isinstance(bounds[k][1], int)]
    if not positions:
        return region
    sizes = {k: _tile(axes[definition.axis[k]], definition.stage) for k in positions}
    try:
        box = scope.space(definition.axis).box(bounds)
    except NotAffine:
        return region
    points = region.points
    for dims in [positions, *([[k] for k in positions] if len(positions) > 1 else [])]:
        extended = points
        for k in dims:
            size, extent = sizes[k], bounds[k][1]
            has_several = size is not None and isinstance(extent, int) and size < extent
            extended = (
                round_to_blocks(extended, k, size)
                if size is not None and has_several
                else project_out_dim(extended, k)
            )
        extended = extended.intersect(box).intersect_params(scope.context).coalesce()
        if is_inside(extended, points, scope):
            continue
        if _is_in_memory(program, definition, extended, memory, checks, scope):
            points = extended
    return region if points is region.points else Region(points, points)


def _is_in_memory(
    program: PreparedSchedule,
    definition: Definition,
    points: Points,
    memory: Memory,
    checks: Mapping[int, tuple[IndexCheck, ...]],
    scope: LoopScope,
) -> bool:
    """Return whether all inputs of `points` are backed by memory or can be computed on demand."""
    inside = program.attached_stages(definition.stage.key, 0)
    worklist = [(definition, points)]
    while worklist:
        reader, points = worklist.pop()
        instances = evaluated_points(program, reader, points, scope)
        inner = scope.space((*reader.axis, *reader.reduce_axis))
        for read in reader.reads:
            if id(read.load) in checks:
                return False
            key = program.producer(read.load.tensor)
            elements = elements_at_indices(
                read.load.indices, conditions_of(program, reader, read), instances, inner
            )
            known = memory.get(key)
            bounds = None if known is None else known.bounds
            if bounds is None:
                if key not in inside or not _may_compute_unused_elements(program.definitions[key]):
                    return False
                producer = program.definitions[key]
                bounds = [(Const(0), extent) for extent in program.shape(producer)]
                worklist.append((producer, elements))
            if key in program.definitions and program.definitions[key].has_own_boxes:
                bounds = [(Const(0), program.extent(extent)) for extent in read.load.tensor.shape]
            space = scope.space([Var("element") for _ in bounds])
            if not is_inside(elements, space.box(bounds), scope):
                return False
    return True


def _tile(axis: IterVar, stage: StageState) -> int | None:
    """Return the tile size of the vectorized and unrolled loops along an axis.

    None if the size is not constant or the tile is not contiguous.
    """
    size = 1
    while True:
        split = next(
            (r for r in stage.relations if isinstance(r, Split) and r.parent is axis), None
        )
        if split is None:
            extent = _marked_extent(axis, stage)
            return None if extent is None else size * extent
        inner = _marked_extent(split.inner, stage)
        if inner is None or inner != split.factor:
            return None
        size *= inner
        if split.outer in stage.leaves and stage.marks.get(split.outer) not in _CONCURRENT_KINDS:
            return size
        axis = split.outer


def _marked_extent(axis: IterVar, stage: StageState) -> int | None:
    is_whole = axis in stage.leaves and stage.marks.get(axis) in _CONCURRENT_KINDS
    return axis.extent if is_whole and isinstance(axis.extent, int) else None


def _may_compute_unused_elements(definition: Definition) -> bool:
    """Return whether an attached stage may compute elements that its consumers do not need."""
    is_special = definition.is_opaque or definition.is_argument or definition.stage.is_rolling
    return not is_special and definition.scan_axis is None


def _tiled_axes(stage: StageState) -> dict[IterVar, IterVar]:
    """Return the tensor axes of vectorized and unrolled loops, with the axes that are split.

    The two differ if a layout transformation replaced the tensor axis by a physical axis.
    """
    found = {leaf: leaf for leaf in stage.leaves if stage.marks.get(leaf) in _CONCURRENT_KINDS}
    for relation in reversed(stage.relations):
        if not isinstance(relation, LayoutTransform):
            found = {axis: axis for axis in derived_from_axes(found, [relation])} | found
            continue
        axis_of = {Var(axis.name): axis for axis in relation.before}
        indices = relation.index_map.map_indices([*axis_of])
        for axis, index in zip(relation.after, indices, strict=True):
            if axis in found:
                if not isinstance(index, Var):
                    # A step along this loop is not a step along one tensor axis.
                    return {}
                found[axis_of[index]] = found[axis]
    return found
