"""Exact footprints: the sets of producer elements that parts of the program read."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.ir.traversal.rewrite import conjuncts, walk
from tecomp.lowering.stages.definition import Definition, TensorRead
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import domain_ranges
from tecomp.poly.loops.regions import LoopScope, coalesce_convex, extend, image
from tecomp.poly.loops.tile_loops import project_out_dim
from tecomp.poly.sets.isl_context import cached_question
from tecomp.poly.sets.isl_expressions import number
from tecomp.poly.sets.to_isl import NotAffine, Points, Space, condition_hull
from tecomp.scheduling.state import ComputedAt, is_data


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a tensor, after and before clipping to its shape."""

    points: Points
    unclipped: Points


Restriction = Callable[[Definition, Region], Region]
"""Function that restricts the required region of a stage."""


def all_elements(program: PreparedSchedule, definition: Definition, scope: LoopScope) -> Points:
    """Return all elements of the outputs of a stage."""
    space = scope.space(definition.axis)
    return space.box([(index_value(0), extent) for extent in program.shape(definition)])


def with_reduction(
    program: PreparedSchedule, definition: Definition, points: Points, scope: LoopScope
) -> tuple[Points, Space]:
    """Return the iteration domain of the body for the elements `points`, and its space.

    An affine `where=` condition such as `k <= i` restricts the domain, so that it becomes a loop
    bound and is not tested in each iteration.
    """
    points, space, _ = with_reduction_conditions(program, definition, points, scope)
    return points, space


def with_reduction_conditions(
    program: PreparedSchedule, definition: Definition, points: Points, scope: LoopScope
) -> tuple[Points, Space, tuple[Expr, ...]]:
    """Return `with_reduction` and the terms of `where=` that the domain does not enforce."""
    axes = (*definition.axis, *definition.reduce_axis)
    space = scope.space(axes)
    reduce = definition.reduce
    if reduce is None:
        return points, space, ()
    ranges = domain_ranges(program, definition)
    steps = scope.space(definition.reduce_axis).box(
        [(ranges[axis].min, ranges[axis].extent) for axis in definition.reduce_axis]
    )
    domain, tested = points.flat_product(steps), []
    for term in conjuncts(reduce.condition):
        hull, is_exact = condition_hull(term, space)
        coalesced = hull.coalesce()
        # A union of several basic sets would emit several copies of the body.
        is_basic = coalesced.n_basic_set() == 1
        if is_basic:
            domain = domain.intersect(coalesced)
        if not (is_basic and is_exact):
            tested.append(term)
    return domain, space, tuple(tested)


def evaluated_points(
    program: PreparedSchedule, definition: Definition, points: Points, scope: LoopScope
) -> Points:
    """Return the points at which any part of the body is evaluated for the elements `points`.

    The initial value of a reduction is read for every element, even with an empty reduction domain;
    its read is represented at the first values of the reduction axes.
    """
    domain, _ = with_reduction(program, definition, points, scope)
    first = initially(program, definition, points, scope)
    return domain if first is None else domain.union(first)


def initially(
    program: PreparedSchedule, definition: Definition, points: Points, scope: LoopScope
) -> Points | None:
    """Return the points at which initial values that read tensors are evaluated, or None."""
    if definition.reduce is None or not definition.starts_from_tensors:
        return None
    ranges = domain_ranges(program, definition)
    first = scope.space(definition.reduce_axis).box(
        [(ranges[axis].min, index_value(1)) for axis in definition.reduce_axis]
    )
    return points.flat_product(first)


def conditions_of(program: PreparedSchedule, definition: Definition, read: TensorRead) -> tuple[
        Expr, ...]:
    """Return the conditions that hold at the evaluated points at which a read takes place."""
    if read.is_initial or definition.reduce is None or not definition.starts_from_tensors:
        return read.conditions
    ranges = domain_ranges(program, definition)
    reduced = (
        index_value(axis) < ranges[axis].min + ranges[axis].extent
        for axis in definition.reduce_axis
    )
    return (*read.conditions, *reduced)


def read_region_of(
    program: PreparedSchedule,
    producer: Definition,
    instances: Mapping[Operation, Points],
    scope: LoopScope,
) -> Region | None:
    """Return the elements of `producer` that `instances` of its consumers read, or None.

    Args:
        program: Program with all definitions.
        producer: Definition whose elements are read.
        instances: Points at which the bodies of the consumers are evaluated.
        scope: Parameters of the sets: sizes and enclosing loops.
    """
    all_points = all_elements(program, producer, scope)
    if producer.is_opaque:
        is_read = reads_any(program, producer.stage.key, instances)
        return Region(all_points, all_points) if is_read else None
    region = read_elements(program, producer.stage.key, instances, scope)
    if region is None:
        return None
    if producer.scan_axis is not None:
        # One step depends on all steps.
        points = project_out_dim(region, 0).intersect(
            all_points) if producer.is_pointwise else all_points
        return Region(points, points)
    return Region(coalesce_convex(region.intersect(all_points), scope), region)


def reads_any(
    program: PreparedSchedule, source: Operation, readers: Iterable[Operation]
) -> bool:
    """Return whether any of the stages `readers` reads the outputs of `source`."""
    return any(
        program.producer(read.load.tensor) is source
        for key in readers for read in program.definitions[key].reads
    )


def read_elements(
    program: PreparedSchedule, source: Operation, instances: Mapping[Operation, Points],
    scope: LoopScope
) -> Points | None:
    """Return the elements of the outputs of `source` that `instances` read; None if none.

    A non-affine index is unconstrained and may also be out of bounds.
    """
    region: Points | None = None
    for key, points in instances.items():
        consumer = program.definitions[key]
        space = scope.space((*consumer.axis, *consumer.reduce_axis))
        for read in consumer.reads:
            if program.producer(read.load.tensor) is not source:
                continue
            conditions = conditions_of(program, consumer, read)
            elements = elements_at_indices(read.load.indices, conditions, points, space)
            region = elements if region is None else region.union(elements)
    return None if region is None else coalesce_convex(region, scope)


def propagate_instances(
    program: PreparedSchedule,
    instances: Mapping[Operation, Points],
    inside: Container[Operation],
    scope: LoopScope,
    restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
) -> dict[Operation, Points]:
    """Propagate `instances` backwards through the stages `inside`; return all instances.

    `restrictions` limits the required regions of some stages.
    """
    return propagate_regions(program, instances, inside, scope, restrictions)[0]


def propagate_regions(
    program: PreparedSchedule,
    instances: Mapping[Operation, Points],
    inside: Container[Operation],
    scope: LoopScope,
    restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
) -> tuple[dict[Operation, Points], dict[Operation, Region]]:
    """Return `propagate_instances` and the required region of each stage `inside`."""
    found = dict(instances)
    regions: dict[Operation, Region] = {}
    for definition in reversed([*program.definitions.values()]):
        key = definition.stage.key
        if key not in inside or key in found:
            continue
        region = read_region_of(program, definition, found, scope)
        if region is not None:
            regions[key] = region
            computed = restrictions[key](definition, region) if key in restrictions else region
            found[key] = evaluated_points(program, definition, computed.points, scope)
    return found, regions


@cached_question
def elements_at_indices(
    indices: tuple[Expr, ...],
    conditions: tuple[Expr, ...],
    points: Points,
    space: Space,
) -> Points:
    """Return the elements at `indices`; a non-affine index is unconstrained."""
    for condition in conditions:
        points = points.intersect(condition_hull(condition, space)[0])
    exprs = [index_of(index, {}) for index in indices]
    with suppress(NotAffine):
        return image(points, exprs, space)
    unknown = {k: Var("any") for k, expr in enumerate(exprs) if not _is_affine(expr, space)}
    known = [unknown.get(k, expr) for k, expr in enumerate(exprs)]
    space = Space((*space.dims, *unknown.values()), space.params)
    return image(extend(points, len(unknown)), known, space)


def _is_affine(expr: Expr, space: Space) -> bool:
    try:
        number(expr, space)
    except NotAffine:
        return False
    return True


def check_consumers(program: PreparedSchedule) -> None:
    """Check that every consumer of an attached stage is computed inside the same loop.

    Raises:
        LowerError: If a consumer is outside the loop, or if an initial value reads the stage before
            the loop.
    """
    for producer in program.definitions.values():
        attach = producer.stage.attach
        if not isinstance(attach, ComputedAt):
            continue
        parent = program.state.stage(attach.stage)
        name = producer.stage.name
        where = f"s[{name}].compute_at(s[{parent.name}], {attach.axis.name})"
        loop = next(k for k, leaf in enumerate(parent.leaves) if leaf is attach.axis)
        inside = {parent.key, *program.attached_stages(parent.key, loop + 1)}
        for definition in program.definitions.values():
            body = (*definition.body, *definition.start)
            if definition.stage.key not in inside and _reads(program, body, producer):
                raise LowerError(
                    "{where}: {stage} also reads {name}, but is not computed inside that loop; "
                    "compute {stage} there as well, or compute {name} in an outer loop",
                    kind="dependence-violation", where=where, stage=definition.stage.name,
                    name=name,
                )
        initial = program.definitions[parent.key].initial
        is_inside = not all(map(is_data, parent.leaves[: loop + 1]))
        if is_inside and _reads(program, initial, producer):
            scans = program.definitions[parent.key].scan_axis is not None
            part = "the start" if scans else "init="
            loops = "over steps" if scans else "of the reduction"
            raise LowerError(
                "{where}: {subject} of {parent} reads {name} before the loops {loops}, but that "
                "loop is inside them; compute {name} in an outer loop",
                kind="dependence-violation", where=where, subject=part, parent=parent.name,
                name=name,
                loops=loops,
            )


def _reads(program: PreparedSchedule, body: tuple[Expr, ...], producer: Definition) -> bool:
    return any(
        isinstance(node, TensorLoad) and program.producer(node.tensor) is producer.stage.key
        for node in walk(*body)
    )
