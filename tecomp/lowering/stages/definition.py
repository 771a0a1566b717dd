"""Stage definitions, scan stages, intrinsic calls and loop kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Const, Expr, Not, Var, index_value
from tecomp.ir.nodes.stmt import Buffer, Extent, ForKind
from tecomp.ir.traversal.analyses import PathConditions
from tecomp.ir.traversal.rewrite import contains, walk
from tecomp.scheduling.compute_location import consumers_below, direct_consumers
from tecomp.scheduling.state import (
    AtRoot,
    ComputedAt,
    Inline,
    ScheduleState,
    StageState,
    Tensorized,
    is_scan,
)
from tecomp.scheduling.threads import is_grid_axis, is_parallel


def with_tiles(state: ScheduleState) -> ScheduleState:
    """Append the tile loops of `TensorComputeOp` stages and mark them as tensorized.

    Raises:
        LowerError: If an operand is inlined and therefore not in memory.
    """
    for stage in state:
        op = stage.op
        if not isinstance(op, TensorComputeOp):
            continue
        for load in walk(*op.operands):
            if isinstance(load, TensorLoad) and isinstance(
                state.stage(load.tensor.op).attach, Inline
            ):
                name = state.stage(load.tensor.op).name
                raise LowerError(
                    "s[{name}].compute_inline: {stage} is computed by {intrin}, which reads {name} "
                    "from memory; do not inline it, or compute {stage} with loops by calling "
                    "s[{stage}].expand()",
                    kind="requires-storage", name=name, stage=stage.name, intrin=op.intrin.name,
                )
        inner = op.inner_loops
        state = state.update(replace(
            stage, leaves=(*stage.leaves, *inner), tensorized=Tensorized(inner[0], op.intrin)))
    return state


@dataclass(frozen=True, slots=True)
class TensorRead:
    """Read of a tensor in a definition.

    Attributes:
        load: Tensor access.
        conditions: Path conditions; all hold whenever the read is evaluated.
        is_initial: Whether the read belongs to the initial value of a reduction, which is evaluated
            for every element before the reduction.
    """

    load: TensorLoad
    conditions: tuple[Expr, ...]
    is_initial: bool = False


@dataclass(frozen=True)
class Definition:
    """Computed stage, prepared for code generation.

    Attributes:
        stage: Schedule of the stage.
        body: One expression for each output, with inlined stages substituted.
        start: Initial steps of a scan: one expression for each output.
        buffers: One buffer for each output.
        is_argument: Whether the caller passes the memory.
        first_step: First step of a scan that is computed from earlier steps. Default: 0.
        is_pointwise: Whether the elements of a scan depend on their own position only.
            Default: False.
    """

    stage: StageState
    body: tuple[Expr, ...]
    start: tuple[Expr, ...]
    buffers: tuple[Buffer, ...]
    is_argument: bool
    first_step: Extent = 0
    is_pointwise: bool = False

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Axes of the outputs."""
        return self.stage.compute.axis

    @property
    def reduce(self) -> Reduce | None:
        """Reduction of the stage, or None."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Axes of the reduction."""
        return self.reduce.axis if self.reduce is not None else ()

    @property
    def scan_axis(self) -> IterVar | None:
        """Axis of the steps of a scan, or None."""
        return self.stage.op.scan_axis if isinstance(self.stage.op, ScanOp) else None

    @property
    def is_opaque(self) -> bool:
        """Whether the stage is a `te.extern`, whose statements compute all elements at once."""
        return isinstance(self.stage.op, ExternOp)

    @property
    def has_own_boxes(self) -> bool:
        """Whether each output is allocated in its own full shape, because shapes may differ."""
        return self.is_opaque or not self.stage.op.are_alike

    @property
    def initial(self) -> tuple[Expr, ...]:
        """Initial values, stored before the reduction or scan loops."""
        if self.reduce is None:
            return self.start
        return self.reduce.init or self.reduce.identity

    @property
    def is_later_step(self) -> Expr:
        """Condition on the axes that a scan element is computed from earlier steps."""
        return index_value(self.axis[0]) >= index_value(self.first_step)

    @cached_property
    def reads(self) -> tuple[TensorRead, ...]:
        """Reads in the bodies and in the initial steps of a scan."""
        later = (self.is_later_step,) if self.scan_axis is not None else ()
        return tuple(_reads(self.start, self.body, later))

    @cached_property
    def starts_from_tensors(self) -> bool:
        """Whether the initial values read tensors."""
        return contains(TensorLoad, *self.initial)


def _reads(
    start: tuple[Expr, ...], body: tuple[Expr, ...], later: tuple[Expr, ...]
) -> Iterator[TensorRead]:
    """Yield the reads of bodies under `later`, and of initial steps under its negation."""
    first = tuple([Not(condition) for condition in later])
    groups: dict[Hashable, tuple[tuple[Expr, ...], bool, list[Expr]]] = {}
    for value, context in (*((e, later) for e in body), *((e, first) for e in start)):
        for part, conditions, is_initial in _parts(value, context):
            key = tuple(map(id, conditions)), is_initial
            groups.setdefault(key, (conditions, is_initial, []))[2].append(part)
    for conditions, is_initial, roots in groups.values():
        guards = PathConditions(roots)
        for node in walk(*roots):
            if isinstance(node, TensorLoad):
                guard = guards.of(node)
                inside = () if guard is None else guard.conditions()
                yield TensorRead(node, (*conditions, *inside), is_initial)


def _parts(
    value: Expr, conditions: tuple[Expr, ...]
) -> list[tuple[Expr, tuple[Expr, ...], bool]]:
    """Return the parts of a value with their conditions and whether they are initial values."""
    if not isinstance(value, Reduce):
        return [(value, conditions, False)]
    inside = conditions if _is_true(value.condition) else (*conditions, value.condition)
    return [
        (value.condition, conditions, False),
        *((invariant, inside, False) for invariant in value.invariants),
        *((source, inside, False) for source in value.source),
        *((start, conditions, True) for start in value.init or value.identity),
    ]


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Const) and condition.value is True


_CALLS = {ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize"}


def loop_kinds(stage: StageState) -> dict[Var, ForKind]:
    """Return the kinds of marked or bound loops; other loops are serial."""
    kinds: dict[Var, ForKind] = {leaf: kind for leaf, kind in stage.marks.items()}
    for leaf, tag in stage.threads.items():
        kinds.setdefault(leaf, ForKind.PARALLEL if is_parallel(tag) else ForKind.SERIAL)
    return kinds


def grid_axes(stage: StageState) -> dict[Var, str]:
    """Return the core grid axis of every loop that is bound to one."""
    return {leaf: tag for leaf, tag in stage.threads.items() if is_grid_axis(tag)}


def concurrent_loop_vars(stage: StageState, loops: Mapping[IterVar, Expr]) -> list[tuple[Var, str]]:
    """Return the variables of concurrent loops, with the schedule call that made them so."""
    kinds = loop_kinds(stage)
    found = []
    for leaf, value in loops.items():
        kind = kinds.get(leaf, ForKind.SERIAL)
        if isinstance(value, Var) and kind in _CALLS:
            call = _CALLS[kind] if leaf in stage.marks else "bind"
            found.append((value, f"s[{stage.name}].{call}({leaf.name})"))
    return found


States = Mapping[Operation, tuple[Operation, int]]
"""Scan and output number for each state placeholder."""


def states_of(state: ScheduleState) -> States:
    """Return the state placeholders of scans.

    Raises:
        LowerError: If a placeholder is the state of several scans, or has a layout of its own.
    """
    found: dict[Operation, tuple[Operation, int]] = {}
    for stage in state:
        for k, tensor in enumerate(stage.op.states if isinstance(stage.op, ScanOp) else ()):
            key = state.find(tensor.op)
            if key is None:
                continue
            if key.key in found:
                other = state.stage(found[key.key][0]).name
                raise LowerError(
                    "lower: {tensor} is the state placeholder of both {other} and {stage}; create "
                    "a separate placeholder for each scan",
                    kind="dependence-violation", tensor=tensor.name, other=other, stage=stage.name,
                )
            if key.layout.maps:
                raise LowerError(
                    "s[{tensor}].transform_layout: {tensor} is the state placeholder of {stage}; "
                    "apply the layout to the scan: s[{stage}].transform_layout",
                    kind="dependence-violation", tensor=tensor.name, stage=stage.name,
                )
            found[key.key] = stage.key, k
    return found


def step_stages(state: ScheduleState, states: States) -> dict[Operation, set[Operation]]:
    """Return, for each scan, the stages between its states and its steps."""
    found: dict[Operation, set[Operation]] = {}
    for placeholder, (key, _) in states.items():
        readers = consumers_below(state, placeholder) - {key}
        inside = {reader for reader in readers if key in consumers_below(state, reader)}
        found.setdefault(key, set()).update(inside)
    return found


def in_steps(state: ScheduleState, states: States) -> ScheduleState:
    """Attach root stages that read the state of a scan to the loops of the scan.

    Within a scan, the root means once for each step, or once for each iteration of an outer loop if
    a consumer is attached there.

    Raises:
        LowerError: If such a stage is attached outside the scan.
    """
    for key, stages in step_stages(state, states).items():
        for stage in reversed(state.stages):
            if stage.key in stages and isinstance(stage.attach, AtRoot):
                attach = ComputedAt(key, _outermost(state, stage, key))
                state = state.update(replace(stage, attach=attach))
        for inside in stages:
            _check_inside(state, inside, key)
    return state


def _outermost(state: ScheduleState, stage: StageState, scan: Operation) -> IterVar:
    """Return the innermost step loop, or an outer loop to which a consumer is attached."""
    leaves = state.stage(scan).leaves
    last = max(k for k, leaf in enumerate(leaves) if is_scan(leaf))
    loops = {_loop_around(state, reader, scan) for reader in direct_consumers(state, stage)}
    return next(leaf for leaf in leaves if leaf is leaves[last] or leaf in loops)


def _loop_around(state: ScheduleState, stage: StageState, scan: Operation) -> IterVar | None:
    """Return the loop of a scan in which a stage is computed, or None."""
    while isinstance(stage.attach, ComputedAt):
        if stage.attach.stage is scan:
            return stage.attach.axis
        stage = state.stage(stage.attach.stage)
    return None


def _check_inside(state: ScheduleState, inside: Operation, scan: Operation) -> None:
    """Raise if a stage that the steps depend on is not attached inside the scan."""
    stage = state.stage(inside)
    if _loop_around(state, stage, scan) is not None:
        return
    if isinstance(stage.attach, ComputedAt):
        name, parent = state.stage(scan).name, state.stage(stage.attach.stage).name
        raise LowerError(
            "s[{stage}].compute_at(s[{of}], {axis}): {stage} reads the state of {name}, so it is "
            "computed in every step of it; compute it inside {name}, or at the root, which is "
            "equivalent",
            kind="dependence-violation", stage=stage.name, of=parent, axis=stage.attach.axis.name,
            name=name,
        )
