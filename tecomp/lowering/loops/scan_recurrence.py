"""Dependences between scan steps.

Dependences are computed with integer sets: exactly for affine accesses, conservatively for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import free_variables, walk
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.stages.definition import Definition, concurrent_loop_vars, step_stages
from tecomp.lowering.stages.footprint import (
    Region,
    all_elements,
    propagate_instances,
    read_elements,
    read_region_of,
    with_reduction,
)
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule, original_definitions
from tecomp.poly.loops.regions import LoopScope, equality_points
from tecomp.poly.sets.to_isl import NotAffine, Points, Space, condition_hull, first_point, pw_aff
from tecomp.scheduling.state import is_scan


def with_recurrences(program: PreparedSchedule) -> PreparedSchedule:
    """Return `program` with pointwise scans marked: scans that read their own position only.

    Raises:
        LowerError: If a step reads, or may read, elements of the same step or of a later step.
    """
    marked, violation = _mark_scans(program)
    if violation is None:
        return marked
    # Caches and layouts can hide what a step reads, so they are the cause if the rule is valid.
    _, as_ruled = _mark_scans(original_definitions(program))
    if as_ruled is not None:
        raise as_ruled.error()
    raise _hidden(program, violation.definition)


def _mark_scans(program: PreparedSchedule) -> tuple[PreparedSchedule, _Late | None]:
    """Return `program` with marked scans, and the first scan that reads a non-earlier step."""
    violation: _Late | None = None
    for key, inside in step_stages(program.state, program.states).items():
        definition = program.definitions[key]
        scope = LoopScope.of_sizes(program.integers, program.symbolic_extents)
        idx = tuple(Var(axis.name) for axis in definition.axis)
        scope = replace(scope, params=(*scope.params, *idx))
        space = scope.space(definition.axis)
        instances = later_steps(definition, all_elements(program, definition, scope), scope)
        instances = equality_points(instances, space, list(zip(definition.axis, idx, strict=True)))
        read = _state_read(program, definition, {definition.stage.key: instances}, inside, scope)
        element = _Element(definition, idx, Space(definition.axis, scope.params), read)
        violation = violation or element.late()
        pointwise = replace(definition, is_pointwise=element.is_alone())
        program = replace(program, definitions={**program.definitions, key: pointwise})
    return program, violation


def scan_only_instances(program: PreparedSchedule) -> dict[Operation, Points]:
    """Return the instances of stages that are only used to compute scans."""
    scope = LoopScope.of_sizes(program.integers, program.symbolic_extents)
    stages = step_stages(program.state, program.states)
    inside = {stage for group in stages.values() for stage in group}
    instances = {
        key: all_elements(program, program.definitions[key], scope) for key in stages if key not
        in inside
    }
    inside |= _only_for_starts(program)
    found = propagate_instances(program, instances, inside, scope)
    return {key: points for key, points in found.items() if key in inside}


def first_steps(program: PreparedSchedule, scope: LoopScope) -> dict[Operation, Region]:
    """Return the required regions of stages that only the initial steps of scans read.

    The region is smaller than the whole stage if a scan may have no steps.
    """
    starts = _only_for_starts(program)
    if not starts:
        return {}
    instances = {
        key: all_elements(program, definition, scope)
        for key, definition in program.definitions.items() if definition.scan_axis is not None
    }
    found = propagate_instances(program, instances, starts, scope)
    regions = ((key, read_region_of(program, program.definitions[key], found, scope)) for key
        in starts)
    return {key: region for key, region in regions if region is not None}


def _only_for_starts(program: PreparedSchedule) -> set[Operation]:
    """Return the stages that are only read by initial steps of scans or by other such stages."""
    found: set[Operation] = set()
    by_starts: set[Operation] = set()
    by_others: set[Operation] = set()
    for key, definition in reversed([*program.definitions.items()]):
        if key in by_starts - by_others and not definition.is_argument:
            found.add(key)
        by_starts |= _sources(program, definition.start)
        (by_starts if key in found else by_others).update(_sources(program, definition.body))
    return found


def _sources(program: PreparedSchedule, values: Sequence[Expr]) -> set[Operation]:
    """Return the stages that `values` read."""
    nodes = walk(*values)
    return {program.producer(node.tensor) for node in nodes if isinstance(node, TensorLoad)}


def later_steps(definition: Definition, points: Points, scope: LoopScope) -> Points:
    """Return the part of `points` that is computed by later (not initial) steps."""
    return points.intersect(
        condition_hull(definition.is_later_step, scope.space(definition.axis))[0]
    )


@dataclass(frozen=True)
class _Late:
    """Scan that reads a step that is not earlier.

    Attributes:
        definition: Definition of the scan.
        indices: Indices of a state element whose rule reads such a step.
        element: State element that it reads.
    """

    definition: Definition
    indices: str
    element: str

    def error(self) -> LowerError:
        """Return the error for a rule that reads such a step."""
        return LowerError(
            "{scan}: the update rule for {scan}[{index}] reads {element}, which is not from an "
            "earlier step; read the state at earlier values of {step}",
            kind="dependence-violation", scan=self.definition.stage.name, index=self.indices,
            element=self.element, step=self.definition.axis[0].name,
        )


@dataclass(frozen=True)
class _Element:
    """State elements that a scan element reads, as a set in `space`; None if there are none."""

    definition: Definition
    state_axes: tuple[Var, ...]
    space: Space
    read: Points | None

    def late(self) -> _Late | None:
        """Return a `_Late` if the element reads the same step or a later step, else None."""
        if self.read is None:
            return None
        step = self.definition.axis[0]
        late_reads = self.read.intersect(condition_hull(step >= self.state_axes[0], self.space)[0])
        if late_reads.is_empty():
            return None
        point = first_point(late_reads, self.space)
        position = ", ".join(str(point[var]) for var in self.state_axes)
        return _Late(self.definition, position, _element(self.definition, point))

    def is_alone(self) -> bool:
        """Return whether the element only reads the state at its own position."""
        if self.read is None:
            return True
        other_positions = self.space.empty_set()
        for axis, value in zip(self.definition.axis[1:], self.state_axes[1:], strict=True):
            other_positions = other_positions.union(
                pw_aff(axis, self.space).ne_set(pw_aff(value, self.space))
            )
        return bool(self.read.intersect(other_positions).is_empty())


def _hidden(program: PreparedSchedule, definition: Definition) -> LowerError:
    """Return the error for dependences that loops or layouts make undecidable."""
    name, key = definition.stage.name, definition.stage.key
    inside = step_stages(program.state, program.states)[key]
    for reader in program.definitions.values():
        for read in reader.reads if reader.stage.key in {key, *inside} else ():
            if program.producer(read.load.tensor) in inside and not _is_affine(read.load, reader):
                return LowerError(
                    "{scan}: {reader} reads {tensor} at indices that index sets cannot represent, "
                    "so the dependences between steps are unknown; call cache_write and cache_read "
                    "before transform_layout and split, or do not apply these to the step axis",
                    kind="dependence-violation", scan=name, reader=reader.stage.name,
                    tensor=read.load.tensor.name,
                )
    return LowerError(
        "{scan}: the dependences between steps are unknown; use fewer caches and layouts for the "
        "tensors that its steps read",
        kind="dependence-violation", scan=name,
    )


def _is_affine(load: TensorLoad, reader: Definition) -> bool:
    space = Space((*reader.axis, *reader.reduce_axis), tuple(free_variables(load)))
    try:
        for index in load.indices:
            pw_aff(index_of(index, {}), space)
    except NotAffine:
        return False
    return True


def _state_read(
    program: PreparedSchedule,
    definition: Definition,
    instances: Mapping[Operation, Points],
    inside: set[Operation],
    scope: LoopScope,
    keys: set[Operation] | None = None,
) -> Points | None:
    """Return the state elements that `instances` and their producers in `inside` read."""
    found = propagate_instances(program, dict(instances), inside, scope)
    readers = {key: points for key, points in found.items() if keys is None or key in keys}
    read: Points | None = None
    for placeholder, (key, _) in program.states.items():
        if key is definition.stage.key:
            elements = read_elements(program, placeholder, readers, scope)
            if elements is not None:
                read = elements if read is None else read.union(elements)
    return None if read is None else read.intersect(all_elements(program, definition, scope))


def _element(definition: Definition, point: Mapping[Var, int]) -> str:
    indices = ", ".join(str(point[axis]) for axis in definition.axis)
    return f"{definition.stage.name}[{indices}]"


@dataclass(frozen=True)
class _ScanOrder:
    """Evaluation order of elements within the loops of a scan.

    Attributes:
        program: Program with all definitions.
        definition: Definition of the scan.
        frame: Loops of the scan.
        region: Elements of later steps that are computed.
        scope: Scope around the scan.
    """

    program: PreparedSchedule
    definition: Definition
    frame: StageFrame
    region: Points
    scope: LoopScope

    def read_inside(
        self, values: Sequence[Var], readers: set[Operation], scope: LoopScope
    ) -> Points | None:
        """Return the state elements that stages `readers` read inside the first loops at `values`.

        None if they read no state.
        """
        leaves = self.definition.stage.leaves[: len(values)]
        points, space = with_reduction(self.program, self.definition, self.region, scope)
        pairs = [(self.frame.values[leaf], v) for leaf, v in zip(leaves, values, strict=True)]
        key = self.definition.stage.key
        instances = equality_points(points, space, pairs)
        # The scan is absent from `step_stages` if its rule reads no state.
        inside = step_stages(self.program.state, self.program.states).get(key, set())
        subtree = self.program.attached_stages(key, len(values)) & inside
        return _state_read(self.program, self.definition, {key: instances}, subtree, scope, readers)

    def sides(
        self, leaf: IterVar, value: Var, space: Space, *, starts: bool
    ) -> tuple[Points, Points]:
        """Return the elements that loop `leaf` computes at `value`, and those computed later."""
        universe, empty = space.universe_set(), space.empty_set()
        if is_scan(leaf) and starts:
            return empty, empty
        if self.definition.is_pointwise and not is_scan(leaf):
            return universe, empty
        try:
            computed, current = pw_aff(self.frame.values[leaf], space), pw_aff(value, space)
        except NotAffine:
            return universe, universe
        return computed.eq_set(current), computed.gt_set(current)


def check_order(
    program: PreparedSchedule,
    definition: Definition,
    frame: StageFrame,
    region: Points,
    scope: LoopScope,
) -> None:
    """Check that every state element is computed before it is read.

    Raises:
        LowerError: If an element is read before it is computed, or by a concurrent iteration.
    """
    order = _ScanOrder(program, definition, frame, region, scope)
    stage = definition.stage
    by_position: dict[int, set[Operation]] = {len(stage.leaves): {stage.key}}
    for axis, attached in program.attached(stage.key):
        position = next(k for k, leaf in enumerate(stage.leaves, 1) if leaf is axis)
        by_position.setdefault(position, set()).update(_chain(program, attached))
    for position, readers in by_position.items():
        _check_position(order, position, readers)


def _chain(program: PreparedSchedule, definition: Definition) -> set[Operation]:
    """Return a stage and all stages computed inside its loops."""
    return {definition.stage.key, *program.attached_stages(definition.stage.key, 0)}


def _check_position(order: _ScanOrder, position: int, readers: set[Operation]) -> None:
    leaves = order.definition.stage.leaves[:position]
    values = tuple(Var(leaf.name) for leaf in leaves)
    scope = replace(order.scope, params=(*order.scope.params, *values))
    read = order.read_inside(values, readers, scope)
    if read is None or read.is_empty():
        return
    space = scope.space(order.definition.axis)
    later, _ = condition_hull(order.definition.is_later_step, space)
    kinds = concurrent_loop_vars(order.definition.stage, dict(zip(leaves, values, strict=True)))
    calls = {var: call for var, call in kinds}
    for starts in (True, False):
        pending = read.subtract(later) if starts else read.intersect(later)
        for leaf, value in zip(leaves, values, strict=True):
            current, after = order.sides(leaf, value, space, starts=starts)
            if value in calls:
                _refuse_race(order, pending.subtract(current), values, space, calls[value])
            _refuse(order, pending.intersect(after), values, space)
            pending = pending.intersect(current)
        _refuse(order, pending, values, space)


def _refuse(order: _ScanOrder, violations: Points, values: Sequence[Var], space: Space) -> None:
    if violations.is_empty():
        return
    point = first_point(violations, space)
    name = order.definition.stage.name
    raise LowerError(
        "s[{name}]: iteration ({values}) reads {definition} before it is computed; move the step "
        "loops outwards, in their order, or move the reader inwards",
        kind="dependence-violation", name=name, values=_iteration(values, point),
        definition=_element(order.definition, point),
    )


def _iteration(values: Sequence[Var], point: Mapping[Var, int]) -> str:
    return ", ".join(f"{var.name} = {point[var]}" for var in values)


def _refuse_race(
    order: _ScanOrder, violations: Points, values: Sequence[Var], space: Space, call: str
) -> None:
    if violations.is_empty():
        return
    point = first_point(violations, space)
    raise LowerError(
        "{call}: iteration ({values}) reads {definition}, which another iteration computes in "
        "parallel; move the step loops outside of that loop",
        kind="dependence-violation", call=call, values=_iteration(values, point),
        definition=_element(order.definition, point),
    )
