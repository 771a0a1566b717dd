"""Which elements of a producer a part of the program needs: exactly, as a set."""

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
from tecomp.lowering.stages.definition import Definition, Read
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import Program
from tecomp.lowering.stages.read_checks import domain_ranges
from tecomp.poly.loops.regions import Scope, extend, image, united
from tecomp.poly.loops.tile_loops import free
from tecomp.poly.sets.isl_context import asked_once
from tecomp.poly.sets.isl_expressions import number
from tecomp.poly.sets.to_isl import NotAffine, Points, Space, condition_hull
from tecomp.scheduling.state import At, is_data


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a tensor, before and after the part outside of its shape is cut off."""

    points: Points
    unclipped: Points


Restriction = Callable[[Definition, Region], Region]
"""Of the elements that are needed of a stage, those that are meant."""


def whole(program: Program, definition: Definition, scope: Scope) -> Points:
    """All elements of a stage's tensors."""
    space = scope.space(definition.axis)
    return space.box([(index_value(0), extent) for extent in program.shape(definition)])


def with_reduction(
    program: Program, definition: Definition, points: Points, scope: Scope
) -> tuple[Points, Space]:
    """The points at which the body is evaluated to make the elements `points`.

    A `where=` that is a range of the axes, such as `k <= i`, leaves out the rest: loops then end
    there instead of testing it in each iteration.
    """
    points, space, _ = reduced(program, definition, points, scope)
    return points, space


def reduced(
    program: Program, definition: Definition, points: Points, scope: Scope
) -> tuple[Points, Space, tuple[Expr, ...]]:
    """As `with_reduction`, and what of `where=` does not hold at all of these points."""
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
        kept = hull.coalesce()
        # Several pieces would be several copies of the body.
        is_one = kept.n_basic_set() == 1
        if is_one:
            domain = domain.intersect(kept)
        if not (is_one and is_exact):
            tested.append(term)
    return domain, space, tuple(tested)


def evaluated(program: Program, definition: Definition, points: Points, scope: Scope) -> Points:
    """The points at which a part of the body is evaluated to make the elements `points`.

    What a reduction starts from is read for every element, also for one that nothing is reduced to;
    such an element counts at the first values of the reduction axes.
    """
    domain, _ = with_reduction(program, definition, points, scope)
    first = initially(program, definition, points, scope)
    return domain if first is None else domain.union(first)


def initially(
    program: Program, definition: Definition, points: Points, scope: Scope
) -> Points | None:
    """The points at which elements are given what a reduction starts from, if that is read."""
    if definition.reduce is None or not definition.starts_from_tensors:
        return None
    ranges = domain_ranges(program, definition)
    first = scope.space(definition.reduce_axis).box(
        [(ranges[axis].min, index_value(1)) for axis in definition.reduce_axis]
    )
    return points.flat_product(first)


def conditions_of(program: Program, definition: Definition, read: Read) -> tuple[Expr, ...]:
    """What holds at those points where a part of the body is evaluated that this is read at."""
    if read.is_initial or definition.reduce is None or not definition.starts_from_tensors:
        return read.conditions
    ranges = domain_ranges(program, definition)
    reduced = (
        index_value(axis) < ranges[axis].min + ranges[axis].extent
        for axis in definition.reduce_axis
    )
    return (*read.conditions, *reduced)


def needed(
    program: Program,
    producer: Definition,
    instances: Mapping[Operation, Points],
    scope: Scope,
) -> Region | None:
    """The elements of `producer` that `instances` of its consumers read, None if none do.

    Args:
        program: the definitions.
        producer: whose elements are asked for.
        instances: for consumers, the points at which their bodies are evaluated.
        scope: what the sets depend on.
    """
    everything = whole(program, producer, scope)
    if producer.is_opaque:
        is_read = reads_any(program, producer.stage.key, instances)
        return Region(everything, everything) if is_read else None
    region = read_elements(program, producer.stage.key, instances, scope)
    if region is None:
        return None
    if producer.scan_axis is not None:
        # All steps are needed for one of them.
        points = free(region, 0).intersect(everything) if producer.is_pointwise else everything
        return Region(points, points)
    return Region(united(region.intersect(everything), scope), region)


def reads_any(
    program: Program, source: Operation, readers: Iterable[Operation]
) -> bool:
    """Whether some stages read the tensors of `source`."""
    return any(
        program.producer(read.load.tensor) is source
        for key in readers for read in program.definitions[key].reads
    )


def read_elements(
    program: Program, source: Operation, instances: Mapping[Operation, Points], scope: Scope
) -> Points | None:
    """The elements of the tensors of `source` that `instances` read; None if they do not read it.

    An index that is not affine may be anything, also outside of the shape.
    """
    region: Points | None = None
    for key, points in instances.items():
        consumer = program.definitions[key]
        space = scope.space((*consumer.axis, *consumer.reduce_axis))
        for read in consumer.reads:
            if program.producer(read.load.tensor) is not source:
                continue
            conditions = conditions_of(program, consumer, read)
            elements = touched(read.load.indices, conditions, points, space)
            region = elements if region is None else region.union(elements)
    return None if region is None else united(region, scope)


def propagated(
    program: Program,
    instances: Mapping[Operation, Points],
    inside: Container[Operation],
    scope: Scope,
    restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
) -> dict[Operation, Points]:
    """`instances`, and the points at which stages `inside` are evaluated for them.

    `restrictions` say for some stages which of the elements that are needed are computed.
    """
    return propagated_regions(program, instances, inside, scope, restrictions)[0]


def propagated_regions(
    program: Program,
    instances: Mapping[Operation, Points],
    inside: Container[Operation],
    scope: Scope,
    restrictions: Mapping[Operation, Restriction] = MappingProxyType({}),
) -> tuple[dict[Operation, Points], dict[Operation, Region]]:
    """As `propagated`; and the elements that are needed of each of the stages `inside`."""
    found = dict(instances)
    regions: dict[Operation, Region] = {}
    for definition in reversed([*program.definitions.values()]):
        key = definition.stage.key
        if key not in inside or key in found:
            continue
        region = needed(program, definition, found, scope)
        if region is not None:
            regions[key] = region
            computed = restrictions[key](definition, region) if key in restrictions else region
            found[key] = evaluated(program, definition, computed.points, scope)
    return found, regions


@asked_once
def touched(
    indices: tuple[Expr, ...],
    conditions: tuple[Expr, ...],
    points: Points,
    space: Space,
) -> Points:
    """The elements at `indices`; an index that is not affine may be anything."""
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


def check_consumers(program: Program) -> None:
    """Every reader of an attached stage is computed where the stage exists.

    Raises:
        LowerError: one is not, or reads it before the loop in which the stage is computed.
    """
    for producer in program.definitions.values():
        attach = producer.stage.attach
        if not isinstance(attach, At):
            continue
        parent = program.state.stage(attach.stage)
        name = producer.stage.name
        where = f"s[{name}].compute_at(s[{parent.name}], {attach.axis.name})"
        loop = next(k for k, leaf in enumerate(parent.leaves) if leaf is attach.axis)
        inside = {parent.key, *program.inside(parent.key, loop + 1)}
        for definition in program.definitions.values():
            body = (*definition.body, *definition.start)
            if definition.stage.key not in inside and _reads(program, body, producer):
                raise LowerError(
                    f"{where}: {definition.stage.name} reads {name} too but is not computed inside "
                    f"that loop; attach it there as well, or compute {name} further out",
                    kind="order",
                )
        initial = program.definitions[parent.key].initial
        is_inside = not all(map(is_data, parent.leaves[: loop + 1]))
        if is_inside and _reads(program, initial, producer):
            scans = program.definitions[parent.key].scan_axis is not None
            what = "the start" if scans else "init="
            loops = "over steps" if scans else "of the reduction"
            raise LowerError(
                f"{where}: {what} of {parent.name} reads {name} before the loops {loops}, "
                f"and that loop is inside them; compute {name} further out",
                kind="order",
            )


def _reads(program: Program, body: tuple[Expr, ...], producer: Definition) -> bool:
    return any(
        isinstance(node, TensorLoad) and program.producer(node.tensor) is producer.stage.key
        for node in walk(*body)
    )
