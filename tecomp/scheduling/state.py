"""What a schedule has decided so far: frozen values that primitives map to new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from tecomp.compute.iter_var import IterKind, IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.stmt import Extent, ForKind, PadValue
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.maps.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class Split:
    """`parent` is `outer * factor + inner`; one of `factor` and `nparts` is given.

    If it `is_shifted`, the last part begins so early that it is as long as the others.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Extent | None
    nparts: Extent | None
    is_shifted: bool = False


@dataclass(frozen=True, slots=True)
class Fuse:
    """`fused` counts through `parts`, the last of them fastest; without parts it is one 0."""

    parts: tuple[IterVar, ...]
    fused: IterVar


@dataclass(frozen=True, slots=True)
class Transform:
    """`after` are the results of `index_map` at `before`."""

    before: tuple[IterVar, ...]
    after: tuple[IterVar, ...]
    index_map: IndexMap


Relation: TypeAlias = "Split | Fuse | Transform"


@dataclass(frozen=True, slots=True)
class AtRoot:
    """Computed once, before its first consumer."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed inside each expression that reads it; has no memory."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupKey:
    """A group of stages, the same as itself only."""


@dataclass(frozen=True, slots=True)
class At:
    """Computed anew in each iteration of a loop of another stage.

    Attributes:
        stage: the other one.
        axis: its loop.
        group: the group that was put there, if it was not this stage alone.
    """

    stage: Operation
    axis: IterVar
    group: GroupKey | None = None


Attach: TypeAlias = "AtRoot | Inline | At"


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group of stages: the group that it is in, and where it is computed."""

    parent: GroupKey | None = None
    attach: AtRoot | At = AtRoot()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a stage live.

    Attributes:
        maps: what `transform_layout` was given, in order; each starts from the last one's axes.
        axis_separators: of the last map that had any.
        pad_value: what places without an element contain, if that matters.
    """

    maps: tuple[IndexMap, ...] = ()
    axis_separators: tuple[int, ...] = ()
    pad_value: PadValue | None = None


@dataclass(frozen=True, slots=True)
class Ahead:
    """What loop `axis` reads of `tensor` is fetched to the caches `offset` iterations before."""

    tensor: Tensor
    axis: IterVar
    offset: int


@dataclass(frozen=True, slots=True)
class Tensorized:
    """The loop `axis` and all inside it are one operation of the machine."""

    axis: IterVar
    intrin: TensorIntrin


@dataclass(frozen=True, slots=True)
class StageState:
    """One operation and what was decided about it.

    Attributes:
        key: the operation as the user first saw it; tensors are looked up by it.
        op: the operation as it is now; `cache_read` and the like rewrite its body.
        relations: how root axes became leaves, in the order of the calls.
        leaves: the loops, outermost first.
        marks: how marked leaves run.
        threads: thread tags of bound leaves.
        layout_axes: the axes that a further `transform_layout` starts from.
        is_doubled: whether the next iteration's elements are computed before this one's are used.
        is_rolling: whether elements of the last iteration are kept for this one.
        prefetches: what is fetched to the caches before it is read.
        tensorized: the loops that an operation of the machine takes the place of.
        pragmas: values of the pragmas of leaves.
        group: the innermost group that it is in.
        stored: the condition under which its elements are stored; always if None.
    """

    key: Operation
    op: Operation
    is_output: bool
    leaves: tuple[IterVar, ...] = ()
    relations: tuple[Relation, ...] = ()
    marks: Mapping[IterVar, ForKind] = field(default_factory=dict)
    threads: Mapping[IterVar, str] = field(default_factory=dict)
    attach: Attach = AtRoot()
    scope: str = "global"
    layout: Layout = Layout()
    layout_axes: tuple[IterVar, ...] = ()
    aligns: tuple[tuple[int, int, int], ...] = ()
    is_doubled: bool = False
    is_rolling: bool = False
    prefetches: tuple[Ahead, ...] = ()
    tensorized: Tensorized | None = None
    pragmas: Mapping[tuple[IterVar, str], int] = field(default_factory=dict)
    group: GroupKey | None = None
    stored: Expr | None = None

    @property
    def name(self) -> str:
        """Name of the operation."""
        return self.op.name

    @property
    def compute(self) -> ComputeOp:
        """The operation, which must be a computed one."""
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                f"s[{self.name}]: {self.name} is a placeholder; only computed stages have loops",
                kind="no-such-loop",
            )
        return self.op

    @property
    def is_placeholder(self) -> bool:
        """Whether the caller passes it in."""
        return not isinstance(self.op, ComputeOp)


@dataclass(frozen=True, slots=True)
class State:
    """All stages, producers before consumers."""

    stages: tuple[StageState, ...]
    outputs: tuple[Operation, ...]
    aliases: Mapping[Operation, Operation] = field(default_factory=dict)
    groups: Mapping[GroupKey, GroupState] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StageState]:
        return iter(self.stages)

    @property
    def sizes(self) -> dict[str, Var]:
        """The size variables in the shapes of the computation, by name."""
        return {
            var.name: var
            for stage in self.stages
            for shape in stage.op.shapes
            for extent in shape
            for var in (() if isinstance(extent, int) else free_variables(extent))
        }

    def find(self, op: Operation) -> StageState | None:
        """The stage of `op`, or None."""
        key = self.aliases.get(op, op)
        for stage in self.stages:
            if stage.key is key:
                return stage
        return None

    def stage(self, op: Operation) -> StageState:
        """The stage of `op`.

        Raises:
            ScheduleError: this schedule has no such operation.
        """
        stage = self.find(op)
        if stage is None:
            names = ", ".join(s.name for s in self.stages)
            raise ScheduleError(
                f"s[{op.name}]: {op.name} is not part of this schedule; its stages are {names}",
                kind="not-in-schedule",
            )
        return stage

    def update(self, stage: StageState) -> State:
        """This state with one stage replaced."""
        return replace(
            self, stages=tuple(stage if s.key is stage.key else s for s in self.stages)
        )

    def insert(self, stage: StageState, *, before: Operation) -> State:
        """This state with a stage added in front of another."""
        at = next(k for k, s in enumerate(self.stages) if s.key is before)
        return replace(self, stages=(*self.stages[:at], stage, *self.stages[at:]))

    def around(self, group: GroupKey | None) -> Iterator[GroupKey]:
        """A group and those around it, inner ones first."""
        while group is not None:
            yield group
            group = self.groups[group].parent

    def place_in_groups(self, group: GroupKey | None) -> AtRoot | At:
        """Where stages are that have no place but that of their group."""
        places = (self.groups[each].attach for each in self.around(group))
        return next((place for place in places if isinstance(place, At)), AtRoot())

    def redefine(self, stage: StageState, op: ComputeOp) -> State:
        """This state with the definition of a stage replaced; tensors of both find it."""
        aliases = {**self.aliases, op: stage.key}
        return replace(self.update(replace(stage, op=op)), aliases=MappingProxyType(aliases))


def initial_stage(op: Operation, *, is_output: bool, scope: str = "global") -> StageState:
    """A stage as it is before any primitive: its axes are its loops, reductions innermost."""
    if not isinstance(op, ComputeOp):
        return StageState(op, op, is_output, scope=scope)
    return StageState(
        op, op, is_output, leaves=op.loops, scope=scope, layout_axes=op.axis
    )


def leaf_position(stage: StageState, axis: object, call: str) -> int:
    """Where `axis` is among the loops of `stage`.

    Raises:
        ScheduleError: it is no axis, belongs to another stage, or is no loop any more.
    """
    if not isinstance(axis, IterVar):
        hint = (
            "pass loops one by one, without a list" if isinstance(axis, list | tuple)
            else f"take them from s[{stage.name}].leaf_iter_vars"
        )
        raise ScheduleError(
            f"s[{stage.name}].{call}: expected an axis of {stage.name}, got {axis!r}; "
            f"the loops are {_names(stage.leaves)}: {hint}",
            kind="no-such-loop",
        )
    stage.compute  # noqa: B018  (a placeholder is refused in its own words)
    for position, leaf in enumerate(stage.leaves):
        if leaf is axis:
            return position
    raise ScheduleError(f"s[{stage.name}].{call}: {_why_no_leaf(stage, axis)}", kind="no-such-loop")


def _why_no_leaf(stage: StageState, axis: IterVar) -> str:
    loops = f"its loops are now {_names(stage.leaves)}"
    if isinstance(stage.op, TensorComputeOp) and axis in stage.op.inner_loops:
        return (
            f"{stage.op.intrin.name} takes the place of loop {axis.name}; {loops}, and "
            f"s[{stage.name}].expand() gives it the others"
        )
    for relation in stage.relations:
        match relation:
            case Split(parent, outer, inner) if parent is axis:
                parts_of = f"{outer.name} and {inner.name}"
                return f"axis {axis.name} was split into {parts_of} already; {loops}"
            case Fuse(parts, fused) if any(part is axis for part in parts):
                return f"axis {axis.name} was fused into {fused.name} already; {loops}"
            case Transform(before, after) if any(old is axis for old in before):
                return (
                    f"axis {axis.name} was replaced by {_names(after)} in transform_layout; "
                    "use the axes that it returned"
                )
    is_another = any(leaf.name == axis.name for leaf in stage.leaves)
    instead = f", where {axis.name} is another axis of that name; take that" if is_another else ""
    return f"axis {axis.name} does not belong to {stage.name}; {loops}{instead}"


def _names(axes: tuple[IterVar, ...]) -> str:
    return ", ".join(axis.name for axis in axes) or "none"


def check_alike(stage: StageState, where: str) -> None:
    """Refuse one layout for tensors of several shapes.

    Raises:
        ScheduleError: the shapes of the tensors differ.
    """
    if not stage.op.are_alike:
        shapes = ", ".join(f"{t.name} {shape_text(t.shape)}" for t in stage.op.outputs)
        raise ScheduleError(
            f"{where}: the tensors of {stage.name} have several shapes ({shapes}), and one layout "
            "is for all of them; copy the one that is meant with te.compute, and lay that out",
            kind="not-this-form",
        )


def is_reduction(axis: IterVar) -> bool:
    """Whether the loop runs over a reduction."""
    return axis.kind is IterKind.REDUCE


def is_scan(axis: IterVar) -> bool:
    """Whether the loop runs over the steps of a scan."""
    return axis.kind is IterKind.SCAN


def is_map(op: Operation) -> bool:
    """Whether each element follows from inputs alone, so that it may be computed twice."""
    return type(op) is ComputeOp and not op.reduce_axis


def is_data(axis: IterVar) -> bool:
    """Whether each iteration of the loop gives other elements, all by themselves."""
    return axis.kind is IterKind.DATA


def unmarked(stage: StageState, *axes: IterVar) -> StageState:
    """`stage` without the marks of axes that are no loops any more."""
    gone = set(axes)
    hinted = (*(ahead.axis for ahead in stage.prefetches), *(axis for axis, _ in stage.pragmas))
    if not gone & {*stage.marks, *stage.threads, *hinted}:
        return stage
    return replace(
        stage,
        marks=MappingProxyType({a: k for a, k in stage.marks.items() if a not in gone}),
        threads=MappingProxyType({a: t for a, t in stage.threads.items() if a not in gone}),
        prefetches=tuple(ahead for ahead in stage.prefetches if ahead.axis not in gone),
        pragmas=MappingProxyType({k: v for k, v in stage.pragmas.items() if k[0] not in gone}),
    )
