"""Schedules prepared for lowering."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from tecomp.compute.expr_like import MAX_OPERATIONS, operations
from tecomp.compute.expression_analysis import post_order
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.printer import identifier, take_name
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.ir.traversal.analyses import ValueNumbering
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, substitute, walk
from tecomp.lowering.stages.definition import Definition, States, in_steps, states_of, with_tiles
from tecomp.lowering.stages.index_expressions import Strides, extents_of, index_of, sizes_of
from tecomp.poly.sets.to_isl import Products, products_of
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import (
    AtRoot,
    ComputedAt,
    Inline,
    ScheduleState,
    StageState,
    initial_stage,
)

Argument = Tensor | Var


@dataclass(frozen=True, slots=True)
class PreparedSchedule:
    """Input of loop nest construction.

    Attributes:
        state: Schedule.
        params: Function parameters.
        sizes: Function variable for each size variable of the computation; integers are int64.
        definitions: Computed stages that have memory, producers first.
        placeholders: Buffers of the input tensors.
        states: State placeholders of scans.
        products: Variables for extents that are not affine in the sizes.
        strides: Function variables that are only used as strides of arguments.
    """

    state: ScheduleState
    params: tuple[Buffer | Var, ...]
    sizes: Mapping[Var, Var]
    definitions: Mapping[Operation, Definition]
    placeholders: Mapping[Operation, Buffer]
    states: States
    products: Products
    strides: Set[Var] = frozenset()

    @property
    def integers(self) -> tuple[Var, ...]:
        """Integer variables that sets may depend on: sizes, integer arguments and products."""
        variables = (var for var in self.sizes.values() if var not in self.strides)
        sizes = (var for var in variables if var.dtype == INT64)
        return (*sizes, *self.products.variables)

    @property
    def symbolic_extents(self) -> tuple[Expr, ...]:
        """Symbolic extents of arguments, which are never negative."""
        shapes = [p.shape for p in self.params if isinstance(p, Buffer)]
        return tuple([
            self.products.named(n) for shape in shapes for n in shape if not isinstance(n, int)
        ])

    def buffer_of(self, tensor: Tensor) -> Buffer:
        """Return the buffer of `tensor`."""
        key = self.state.stage(tensor.op).key
        if key in self.placeholders:
            return self.placeholders[key]
        if key in self.states:
            scan, output = self.states[key]
            return self.definitions[scan].buffers[output]
        return self.definitions[key].buffers[tensor.value_index]

    def producer(self, tensor: Tensor) -> Operation:
        """Return the stage that computes `tensor`."""
        return self.state.stage(tensor.op).key

    def extent(self, extent: Extent) -> Extent:
        """Return an extent of the computation in terms of the function sizes."""
        if isinstance(extent, int):
            return extent
        return self.products.named(index_of(extent, dict(self.sizes)))

    def shape(self, definition: Definition) -> list[Extent]:
        """Return the shape of the stage outputs in terms of the function sizes."""
        return [self.extent(extent) for extent in definition.stage.op.shape]

    def attached(self, key: Operation) -> list[tuple[IterVar, Definition]]:
        """Return the stages attached to loops of `key`, each with its loop, producers first."""
        return [
            (d.stage.attach.axis, d)
            for d in self.definitions.values()
            if isinstance(d.stage.attach, ComputedAt) and d.stage.attach.stage is key
        ]

    def attached_stages(self, key: Operation, position: int) -> set[Operation]:
        """Return the stages attached at or inside loop `position - 1` of `key`, transitively."""
        leaves = self.state.stage(key).leaves[max(position - 1, 0) :]
        attached = [d.stage.key for axis, d in self.attached(key) if axis in set(leaves)]
        return set(walk(*attached, parts=lambda op: [d.stage.key for _, d in self.attached(op)]))

    def roots(self) -> list[Definition]:
        """Return the stages at the root, producers first."""
        return [d for d in self.definitions.values() if isinstance(d.stage.attach, AtRoot)]


def _extent(extent: Extent, sizes: Mapping[Var, Var]) -> Extent:
    return extent if isinstance(extent, int) else index_of(extent, dict(sizes))


def prepare(
    schedule: Schedule, args: Sequence[object], strides: Strides = (),
    offsets: Sequence[Extent] = (),
) -> PreparedSchedule:
    """Prepare `schedule` for lowering with the parameters `args`.

    Args:
        schedule: Schedule to lower.
        args: Tensors and size variables.
        strides: Strides of the array of each argument. Default: all arrays are contiguous.
        offsets: Offset of each argument in its array. Default: all are 0.

    Raises:
        LowerError: If an argument is not in the schedule, is duplicated or is missing, or if an
            attachment is invalid.
    """
    states = states_of(schedule.state)
    state = with_tiles(in_steps(schedule.state, states))
    arguments = _check_arguments(state, states, args)
    _check_attachments(state)
    tensors = {(state.stage(t.op).key, t.value_index) for t in arguments if isinstance(t, Tensor)}
    bodies, starts = inlined_bodies(state)
    _check_missing(state, bodies, starts, states, tensors)
    sizes, only_strides = sizes_of(state, arguments, strides, offsets)
    strided = {
        (state.stage(a.op).key, a.value_index): declared
        for a, declared in zip(arguments, strides, strict=False)
        if isinstance(a, Tensor) and declared is not None
    }
    offset_of = {
        (state.stage(a.op).key, a.value_index): _extent(n, sizes)
        for a, n in zip(arguments, offsets, strict=False) if isinstance(a, Tensor)
    }
    taken: set[str] = set()
    buffers = {
        (stage.key, k): _buffer(
            stage, k, sizes, taken, strided.get((stage.key, k)), offset_of.get((stage.key, k), 0))
        for stage in state
        if stage.key in bodies or (stage.is_placeholder and stage.key not in states)
        or (stage.key, 0) in tensors
        for k in range(stage.op.num_outputs)
    }
    params = tuple([
        sizes[a] if isinstance(a, Var) else buffers[state.stage(a.op).key, a.value_index]
        for a in arguments
    ])
    definitions = {
        stage.key: definition_of(
            stage, bodies[stage.key], starts.get(stage.key, ()), sizes,
            tuple([buffers[stage.key, k] for k in range(stage.op.num_outputs)]),
            is_argument=(stage.key, 0) in tensors,
        )
        for stage in state
        if stage.key in bodies
    }
    placeholders = {
        stage.key: buffers[stage.key, 0]
        for stage in state if stage.is_placeholder and stage.key not in states
    }
    products = _products(state, states, sizes)
    return PreparedSchedule(
        state, params, sizes, definitions, placeholders, states, products, only_strides
    )


def _products(state: ScheduleState, states: States, sizes: Mapping[Var, Var]) -> Products:
    # Dependences of scan steps are also computed on the unscheduled stages.
    before = [initial_stage(stage.key, is_output=stage.is_output) for stage in state if states]
    extents = [_extent(n, sizes) for stage in (*state, *before) for n in extents_of(stage)]
    return products_of([n for n in extents if isinstance(n, Expr)], sizes.values())


def definition_of(
    stage: StageState,
    body: Sequence[Expr],
    start: Sequence[Expr],
    sizes: Mapping[Var, Var],
    buffers: tuple[Buffer, ...] = (),
    *,
    is_argument: bool = False,
) -> Definition:
    """Return the definition of a stage with expressions in terms of the function sizes."""
    return Definition(
        stage,
        tuple([substitute(e, dict(sizes)) for e in body]),
        tuple([substitute(e, dict(sizes)) for e in start]),
        buffers,
        is_argument,
        _extent(stage.op.scan_axis.dom.min, sizes) if isinstance(stage.op, ScanOp) else 0,
    )


def _check_arguments(state: ScheduleState, states: States, args: Sequence[object]) -> list[
        Argument]:
    if not isinstance(args, list | tuple):
        raise LowerError(
            "lower: args must be a list of tensors, got {args!r}",
            kind="invalid-type", args=args,
        )
    seen: dict[object, int] = {}
    checked: list[Argument] = []
    for position, arg in enumerate(args):
        if not isinstance(arg, Tensor | Var):
            raise LowerError(
                "lower: expected a tensor or a size variable as argument {position}, got {arg!r}",
                kind="invalid-type", position=position, arg=arg,
            )
        if isinstance(arg, Tensor) and state.find(arg.op) is None:
            names = ", ".join(stage.name for stage in state)
            raise LowerError(
                "lower: argument {position}, {arg}, is not in the schedule, whose tensors are "
                "{names}; remove it, or schedule the output that needs it",
                kind="argument-list", position=position, arg=arg.name, names=names,
            )
        if isinstance(arg, Tensor) and (scan := states.get(state.stage(arg.op).key)):
            name = state.stage(scan[0]).name
            raise LowerError(
                "lower: argument {position}, {arg}, is the state placeholder of the scan {name}; "
                "remove it",
                kind="argument-list", position=position, arg=arg.name, name=name,
            )
        key = (state.stage(arg.op).key, arg.value_index) if isinstance(arg, Tensor) else arg
        if key in seen:
            raise LowerError(
                "lower: arguments {seen} and {position} are both {arg}; pass every tensor once",
                kind="duplicate-argument", seen=seen[key], position=position, arg=arg.name,
            )
        seen[key] = position
        checked.append(arg)
    return checked


def _check_missing(
    state: ScheduleState,
    bodies: Mapping[Operation, tuple[Expr, ...]],
    starts: Mapping[Operation, tuple[Expr, ...]],
    states: States,
    arg_keys: set[tuple[Operation, int]],
) -> None:
    read: set[Operation] = set()
    for key, body in bodies.items():
        for node in nodes_of(TensorLoad, *body, *starts.get(key, ())):
            stage = state.stage(node.tensor.op)
            read |= {stage.key} if stage.key != key else set()
            if not stage.is_placeholder or stage.key in states:
                continue
            if (stage.key, 0) not in arg_keys:
                raise LowerError(
                    "lower: {stage} is read by {state}, but is not among the arguments; add it",
                    node.location, kind="argument-list", stage=stage.name,
                    state=state.stage(key).name,
                )
    _check_outputs(state, read, arg_keys)
    _check_together(state, bodies, arg_keys)


def _check_outputs(
    state: ScheduleState, read: Container[Operation], arg_keys: Container[tuple[Operation, int]]
) -> None:
    for key in state.outputs:
        stage = state.stage(key)
        count = stage.op.num_outputs
        missing = [k for k in range(count) if (key, k) not in arg_keys]
        # An output that other stages read may stay internal, as in TVM.
        is_inside = len(missing) == count and key in read
        if missing and not stage.is_placeholder and not is_inside:
            name = stage.op.output(missing[0]).name
            raise LowerError(
                "lower: {name} is an output of the schedule, but is not among the arguments; add "
                "it",
                kind="argument-list", name=name,
            )


def _check_together(
    state: ScheduleState,
    bodies: Mapping[Operation, tuple[Expr, ...]],
    arg_keys: Container[tuple[Operation, int]],
) -> None:
    for key, body in bodies.items():
        present = [(key, k) in arg_keys for k in range(len(body))]
        if any(present) and not all(present):
            name = state.stage(key).op.output(present.index(False)).name
            raise LowerError(
                "lower: {name} is computed together with another argument, but is not among the "
                "arguments; add it",
                kind="argument-list", name=name,
            )


def _check_attachments(state: ScheduleState) -> None:
    for stage in state:
        if not isinstance(stage.attach, ComputedAt):
            continue
        parent = state.stage(stage.attach.stage)
        axis = stage.attach.axis
        where = f"s[{stage.name}].compute_at(s[{parent.name}], {axis.name})"
        if isinstance(parent.attach, Inline):
            raise LowerError(
                "{where}: {parent} is inlined and has no loops",
                where=where, parent=parent.name,
            )
        if axis not in set(parent.leaves):
            loops = ", ".join(leaf.name for leaf in parent.leaves)
            raise LowerError(
                "{where}: {axis} is no longer a loop of {parent}; its loops are {loops}; call "
                "compute_at after transform_layout and rfactor",
                kind="unknown-loop", where=where, axis=axis.name, parent=parent.name, loops=loops,
            )


Bodies = dict[Operation, tuple[Expr, ...]]


def inlined_bodies(state: ScheduleState) -> tuple[Bodies, Bodies]:
    """Return the stage bodies and the initial values of scans, with inlined stages substituted."""
    inline: dict[Operation, tuple[tuple[IterVar, ...], Expr]] = {}
    bodies: Bodies = {}
    starts: Bodies = {}
    numbers = ValueNumbering()
    # Memoize substituted elements, so that repeated reads share one expression.
    substituted: dict[tuple[Any, ...], Expr] = {}

    def rule(node: TensorLoad) -> Expr | None:
        stage = state.stage(node.tensor.op)
        if stage.key not in inline:
            return None
        element = stage.key, *map(numbers.of, node.indices)
        if element not in substituted:
            axes, body = inline[stage.key]
            substituted[element] = substitute(body, dict(zip(axes, node.indices, strict=True)))
        return substituted[element]

    for stage in state:
        if not isinstance(stage.op, ComputeOp):
            continue
        body = stage.op.body
        if inline:
            body = tuple(bottom_up(value, rule, kind=TensorLoad) for value in body)
            _check_size(stage, body)
        if isinstance(stage.op, ScanOp):
            starts[stage.key] = tuple(
                bottom_up(value, rule, kind=TensorLoad) for value in stage.op.start)
        if isinstance(stage.attach, Inline):
            inline[stage.key] = (stage.op.axis, body[0])
        else:
            bodies[stage.key] = body
    return bodies, starts


def _check_size(stage: StageState, body: tuple[Expr, ...]) -> None:
    count = operations(*body)
    if count > MAX_OPERATIONS:
        raise LowerError(
            "lower: {stage} has {count} operations after inlining, which exceeds the limit of "
            "{most_operations} per expression; inline fewer stages",
            kind="limit-exceeded", stage=stage.name, count=count, most_operations=MAX_OPERATIONS,
        )


def _buffer(
    stage: StageState, output: int, sizes: Mapping[Var, Var], taken: set[str],
    strides: tuple[Extent, ...] | None, offset: Extent,
) -> Buffer:
    tensor = stage.op.output(output)
    shape = tuple([_extent(n, sizes) for n in stage.op.shapes[output]])
    return Buffer(
        take_name(identifier(tensor.name), taken), shape, tensor.dtype, stage.scope,
        stage.layout.axis_separators,
        None if strides is None else tuple(_extent(n, sizes) for n in strides),
        elem_offset=offset,
    )


def original_definitions(program: PreparedSchedule) -> PreparedSchedule:
    """Return the unscheduled definitions of the scans of `program` and of their producers.

    The dependences are the same with and without a schedule, but sets are most precise on the
    original definitions: a layout may not be affine, and loops may compute unused elements.
    """
    scans = dict.fromkeys(key for key, _ in program.states.values())
    stages = tuple(initial_stage(op, is_output=op in scans) for op in post_order([*scans]))
    definitions = {
        stage.key: definition_of(
            stage, stage.op.body, stage.op.start if isinstance(stage.op, ScanOp) else (),
            program.sizes,
        )
        for stage in stages
        if isinstance(stage.op, ComputeOp)
    }
    return replace(program, state=ScheduleState(stages, tuple(scans)), definitions=definitions)
