"""Frozen state of a schedule: stages, loops, relations, placements, groups and layouts."""

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
    """Split of a loop: `parent` is `outer * factor + inner`; `factor` or `nparts` is given.

    If `is_shifted`, the last part starts earlier, so that it is as long as the other parts.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Extent | None
    nparts: Extent | None
    is_shifted: bool = False


@dataclass(frozen=True, slots=True)
class Fuse:
    """Fusion of loops in row-major order, last part fastest; without parts, `fused` is always 0."""

    parts: tuple[IterVar, ...]
    fused: IterVar


@dataclass(frozen=True, slots=True)
class LayoutTransform:
    """Layout transform of loops: `after` are the results of `index_map` at `before`."""

    before: tuple[IterVar, ...]
    after: tuple[IterVar, ...]
    index_map: IndexMap


Relation: TypeAlias = "Split | Fuse | LayoutTransform"


@dataclass(frozen=True, slots=True)
class AtRoot:
    """Placement at the root: the stage is computed once, before its first consumer."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Inline placement: the expression is substituted into its readers, without memory."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupKey:
    """Identity of a stage group; keys compare by identity."""


@dataclass(frozen=True, slots=True)
class ComputedAt:
    """Placement in a loop: the stage is computed in each iteration of a loop of a consumer.

    Attributes:
        stage: Consumer stage.
        axis: Loop of the consumer.
        group: Group whose placement put the stage there; None if the stage was placed individually.
    """

    stage: Operation
    axis: IterVar
    group: GroupKey | None = None


Attach: TypeAlias = "AtRoot | Inline | ComputedAt"


@dataclass(frozen=True, slots=True)
class GroupState:
    """State of a stage group: enclosing group and placement."""

    parent: GroupKey | None = None
    attach: AtRoot | ComputedAt = AtRoot()


@dataclass(frozen=True, slots=True)
class StageLayout:
    """Layout of the tensors of a stage.

    Attributes:
        maps: Index maps of `transform_layout` in call order; each map applies to the results of the
            previous one.
        axis_separators: Axis separators of the last map that has any.
        pad_value: Value of the padding, or None if the padding is never read.
    """

    maps: tuple[IndexMap, ...] = ()
    axis_separators: tuple[int, ...] = ()
    pad_value: PadValue | None = None


@dataclass(frozen=True, slots=True)
class Ahead:
    """Prefetch of the elements of `tensor` that loop `axis` reads, `offset` iterations ahead."""

    tensor: Tensor
    axis: IterVar
    offset: int


@dataclass(frozen=True, slots=True)
class Tensorized:
    """Replacement of the loop `axis` and all loops inside it by a tensor intrinsic."""

    axis: IterVar
    intrin: TensorIntrin


@dataclass(frozen=True, slots=True)
class StageState:
    """Schedule state of one stage.

    Attributes:
        key: Original operation, which identifies the stage.
        op: Current operation; primitives such as `cache_read` rewrite its body.
        is_output: Whether the operation is an output of the schedule.
        leaves: Current loops, outermost first.
        relations: Splits, fusions and transforms from root axes to leaves, in call order.
        marks: Loop kinds of annotated leaves.
        threads: Thread tags of bound leaves.
        attach: Placement of the stage.
        scope: Memory of the stage.
        layout: Layout of its tensors.
        layout_axes: Axes to which the next `transform_layout` applies.
        aligns: Stride alignments as (axis position, factor, offset).
        is_doubled: Whether the stage is double-buffered.
        is_rolling: Whether the stage has a rolling buffer.
        prefetches: Prefetches in the loops of the stage.
        tensorized: Loops replaced by a tensor intrinsic, or None.
        pragmas: Pragma values by leaf and pragma name.
        group: Innermost group of the stage, or None.
        stored: Condition under which elements are stored; None stores all elements.
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
    layout: StageLayout = StageLayout()
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
        """Current operation of a computed stage.

        Raises:
            ScheduleError: If the stage is a placeholder.
        """
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                "s[{name}]: {name} is a placeholder; only computed stages have loops",
                kind="unknown-loop", name=self.name,
            )
        return self.op

    @property
    def is_placeholder(self) -> bool:
        """Whether the stage is a placeholder, which the caller passes in."""
        return not isinstance(self.op, ComputeOp)


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """Frozen state of a whole schedule.

    Attributes:
        stages: All stages, producers before consumers.
        outputs: Output operations.
        aliases: Key of the stage for each redefined operation.
        groups: State of each stage group.
    """

    stages: tuple[StageState, ...]
    outputs: tuple[Operation, ...]
    aliases: Mapping[Operation, Operation] = field(default_factory=dict)
    groups: Mapping[GroupKey, GroupState] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StageState]:
        return iter(self.stages)

    @property
    def sizes(self) -> dict[str, Var]:
        """Size variables in the shapes of the computation, by name."""
        return {
            var.name: var
            for stage in self.stages
            for shape in stage.op.shapes
            for extent in shape
            for var in (() if isinstance(extent, int) else free_variables(extent))
        }

    def find(self, op: Operation) -> StageState | None:
        """Return the stage of `op`, or None."""
        key = self.aliases.get(op, op)
        for stage in self.stages:
            if stage.key is key:
                return stage
        return None

    def stage(self, op: Operation) -> StageState:
        """Return the stage of `op`.

        Raises:
            ScheduleError: If `op` does not belong to this schedule.
        """
        key = self.aliases.get(op, op)
        for stage in self.stages:
            if stage.key is key:
                return stage
        names = ", ".join(s.name for s in self.stages)
        raise ScheduleError(
            "s[{op}]: {op} is not part of this schedule; its stages are {names}",
            kind="not-in-schedule", op=op.name, names=names,
        )

    def update(self, stage: StageState) -> ScheduleState:
        """Return this state with one stage replaced."""
        stages = tuple([stage if s.key is stage.key else s for s in self.stages])
        return replace(self, stages=stages)

    def insert(self, stage: StageState, *, before: Operation) -> ScheduleState:
        """Return this state with a stage inserted before another."""
        position = next(k for k, s in enumerate(self.stages) if s.key is before)
        return replace(self, stages=(*self.stages[:position], stage, *self.stages[position:]))

    def enclosing_groups(self, group: GroupKey | None) -> Iterator[GroupKey]:
        """Yield a group and its enclosing groups, innermost first."""
        while group is not None:
            yield group
            group = self.groups[group].parent

    def place_in_groups(self, group: GroupKey | None) -> AtRoot | ComputedAt:
        """Return the placement that a stage inherits from its groups, the root by default."""
        attachments = (self.groups[key].attach for key in self.enclosing_groups(group))
        return next((attach for attach in attachments if isinstance(attach, ComputedAt)), AtRoot())

    def redefine(self, stage: StageState, op: ComputeOp) -> ScheduleState:
        """Return this state with `op` as the definition of a stage; old handles stay valid."""
        aliases = {**self.aliases, op: stage.key}
        return replace(self.update(replace(stage, op=op)), aliases=MappingProxyType(aliases))


def initial_stage(op: Operation, *, is_output: bool, scope: str = "global") -> StageState:
    """Return the default state of a stage: one loop per axis, reduction loops innermost."""
    if not isinstance(op, ComputeOp):
        return StageState(op, op, is_output, scope=scope)
    return StageState(
        op, op, is_output, leaves=op.loops, scope=scope, layout_axes=op.axis
    )


def leaf_position(stage: StageState, axis: object, call: str) -> int:
    """Return the position of `axis` among the loops of `stage`.

    Raises:
        ScheduleError: If `axis` is not an axis, belongs to another stage, or is no longer a loop.
    """
    if not isinstance(axis, IterVar):
        hint = (
            "pass loops one by one, without a list" if isinstance(axis, list | tuple)
            else f"take them from s[{stage.name}].leaf_iter_vars"
        )
        raise ScheduleError(
            "s[{stage}].{call}: expected an axis of {stage}, got {axis!r}; the loops are "
            "{leaves}: {hint}",
            kind="unknown-loop", stage=stage.name, call=call, axis=axis,
            leaves=_names(stage.leaves), hint=hint,
        )
    stage.compute  # noqa: B018  (raises for a placeholder)
    for position, leaf in enumerate(stage.leaves):
        if leaf is axis:
            return position
    raise ScheduleError(
        "s[{stage}].{call}: {reason}",
        kind="unknown-loop", stage=stage.name, call=call, reason=_why_no_leaf(stage, axis),
    )


def _why_no_leaf(stage: StageState, axis: IterVar) -> str:
    loops = f"its loops are now {_names(stage.leaves)}"
    if isinstance(stage.op, TensorComputeOp) and axis in stage.op.inner_loops:
        return (
            f"{stage.op.intrin.name} replaces loop {axis.name}; {loops}, and "
            f"s[{stage.name}].expand() restores the others"
        )
    for relation in stage.relations:
        match relation:
            case Split(parent, outer, inner) if parent is axis:
                parts_of = f"{outer.name} and {inner.name}"
                return f"axis {axis.name} was split into {parts_of} already; {loops}"
            case Fuse(parts, fused) if any(part is axis for part in parts):
                return f"axis {axis.name} was fused into {fused.name} already; {loops}"
            case LayoutTransform(before, after) if any(old is axis for old in before):
                return (
                    f"axis {axis.name} was replaced by {_names(after)} in transform_layout; "
                    "use the axes that it returned"
                )
    is_another = any(leaf.name == axis.name for leaf in stage.leaves)
    instead = f", where {axis.name} is another axis of that name; use that" if is_another else ""
    return f"axis {axis.name} does not belong to {stage.name}; {loops}{instead}"


def _names(axes: tuple[IterVar, ...]) -> str:
    return ", ".join(axis.name for axis in axes) or "none"


def check_equal_shapes(stage: StageState, where: str) -> None:
    """Raise if the output tensors of a stage have different shapes, as one layout applies to all.

    Raises:
        ScheduleError: If the shapes of the tensors differ.
    """
    if not stage.op.are_alike:
        shapes = ", ".join(f"{t.name} {shape_text(t.shape)}" for t in stage.op.outputs)
        raise ScheduleError(
            "{where}: the tensors of {stage} have different shapes ({shapes}), but one layout "
            "applies to all of them; copy the tensor to lay out with te.compute, and transform the "
            "copy",
            kind="pattern-mismatch", where=where, stage=stage.name, shapes=shapes,
        )


def is_reduction(axis: IterVar) -> bool:
    """Return whether an axis is a reduction axis."""
    return axis.kind is IterKind.REDUCE


def is_scan(axis: IterVar) -> bool:
    """Return whether an axis counts the steps of a scan."""
    return axis.kind is IterKind.SCAN


def is_map(op: Operation) -> bool:
    """Return whether each element depends on inputs only, so that recomputation is harmless."""
    return type(op) is ComputeOp and not op.reduce_axis


def is_data(axis: IterVar) -> bool:
    """Return whether an axis is a data axis, whose iterations compute independent elements."""
    return axis.kind is IterKind.DATA


def drop_annotations(stage: StageState, *axes: IterVar) -> StageState:
    """Return `stage` without the annotations of axes that are no longer loops."""
    removed = set(axes)
    annotated = (*(entry.axis for entry in stage.prefetches), *(axis for axis, _ in stage.pragmas))
    if not removed & {*stage.marks, *stage.threads, *annotated}:
        return stage
    return replace(
        stage,
        marks=MappingProxyType({a: k for a, k in stage.marks.items() if a not in removed}),
        threads=MappingProxyType({a: t for a, t in stage.threads.items() if a not in removed}),
        prefetches=tuple(entry for entry in stage.prefetches if entry.axis not in removed),
        pragmas=MappingProxyType({k: v for k, v in stage.pragmas.items() if k[0] not in removed}),
    )
