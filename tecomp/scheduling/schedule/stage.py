"""The classes `Stage` and `Group`: handles of stages and stage groups, and their placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.drawing.drawable import Pictured, call_drawing_function
from tecomp.errors import ScheduleError
from tecomp.scheduling import compute_location, loops
from tecomp.scheduling.compute_location import scan_steps
from tecomp.scheduling.schedule.loop_primitives import LoopPrimitives, MarkPrimitives
from tecomp.scheduling.schedule.memory_primitives import MemoryPrimitives
from tecomp.scheduling.schedule.primitive_calls import (
    Handle,
    ScheduleCalls,
    operation_of,
    primitive,
)
from tecomp.scheduling.state import AtRoot, ComputedAt, Fuse, GroupKey, Relation, Split, StageState
from tecomp.scheduling.threads import ThreadAxis

if TYPE_CHECKING:
    # Imported for the type only: drawing code is loaded with the first figure.
    from tecomp.drawing.svg import Svg


class Stage(LoopPrimitives, MarkPrimitives, MemoryPrimitives, Pictured):
    """Handle `s[T]` of one stage of a schedule; handles of the same stage compare equal.

    Its methods are the primitives. A primitive that raises leaves the schedule unchanged.

    >>> from tecomp import te
    >>> A = te.placeholder((8, 10), name="A")
    >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 10), lambda i, j: B[i, j] + 1.0, name="C")
    >>> s = te.create_schedule(C)
    >>> s[B].compute_at(s[C], C.op.axis[0])
    >>> s[B], s[B].op.axis, s[B].origin_op is B.op, s[B].is_output
    (Stage(B: i, j), (i, j), True, False)
    >>> s[B].attach_stage, s[B].attach_ivar, s[B].scope, s[B].group
    (Stage(C: i, j), i, 'global', None)
    >>> outer, inner = s[C].split(C.op.axis[1], factor=4)
    >>> [axis.name for axis in s[C].leaf_iter_vars]
    ['i', 'j.outer', 'j.inner']
    >>> [axis.name for axis in s[C].all_iter_vars]
    ['i', 'j', 'j.outer', 'j.inner']
    """

    _drawn_by: ClassVar[str] = "loop_nest:draw_stage"

    @property
    def op(self) -> Operation:
        """Current operation of the stage, with its `axis` and `reduce_axis`."""
        return self._state.op

    @property
    def origin_op(self) -> Operation:
        """Operation of the stage before any primitive rewrote it."""
        return self._key

    @property
    def is_output(self) -> bool:
        """Whether the operation is an output of the schedule."""
        return self._state.is_output

    @property
    def group(self) -> Group | None:
        """Innermost group of the stage, or None; the step stages of a scan form a group."""
        state = self._state
        if state.group is not None:
            return Group(self._schedule, state.group)
        return _group_of_steps(self._schedule, state)

    @property
    def attach_stage(self) -> Stage | None:
        """Stage of the loop at which `compute_at` placed it, or None at the root or inline."""
        attach = self._state.attach
        return Stage(self._schedule, attach.stage) if isinstance(attach, ComputedAt) else None

    @property
    def attach_ivar(self) -> IterVar | None:
        """Loop of `attach_stage` at which `compute_at` placed it, or None at the root or inline."""
        attach = self._state.attach
        return attach.axis if isinstance(attach, ComputedAt) else None

    @property
    def scope(self) -> str:
        """Name of the memory in which the tensor is stored."""
        return self._state.scope

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """Current loops of the stage, outermost first."""
        return self._state.leaves

    @property
    def all_iter_vars(self) -> tuple[IterVar, ...]:
        """All axes that this stage has or had: the root axes and every axis derived from them."""
        state = self._state
        roots = state.op.loops if isinstance(state.op, ComputeOp) else ()
        derived = [axis for relation in state.relations for axis in _results(relation)]
        return (*roots, *derived)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stage):
            return NotImplemented
        return self._schedule is other._schedule and self._key is other._key

    def __hash__(self) -> int:
        return hash((id(self._schedule), self._key))

    def __repr__(self) -> str:
        loops_ = ", ".join(axis.name for axis in self._state.leaves)
        return f"Stage({self._state.name}: {loops_})"

    def domain_picture(self, *axes: IterVar) -> Svg:
        """Draw the iteration domain of two axes, with the execution order and the dependences.

        Args:
            axes: One or two axes of the definition; the first is drawn vertically. Default: the
                axes of a reduction or scan, or the first two axes. All other axes are fixed at
                their first value.

        Returns:
            SVG text, which a notebook displays as a figure. A large domain is cut off after the
            first rows and columns.

        Raises:
            ScheduleError: If the stage is a placeholder, or an axis does not belong to the stage.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 8), name="A")
        >>> B = te.compute((8, 8), lambda i, j: A[j, i], name="B")
        >>> s = te.create_schedule(B.op)
        >>> _ = s[B].tile(*B.op.axis, 4, 4)
        >>> "one iteration of i.outer, j.outer" in s[B].domain_picture()
        True
        """
        drawing: Svg = call_drawing_function("iteration_domain:draw_domain", self, axes)
        return drawing

    @primitive
    def compute_at(self, parent: Stage | Handle, scope: IterVar | ThreadAxis) -> None:
        """Compute, in each iteration of a consumer loop, the region of this stage read there.

        Before and after::

            for i in range(I): P[i] = ...    ->    for i in range(I):
            for i in range(I):                         P[i] = ...
                C[i] = P[i] + 1                        C[i] = P[i] + 1

        Args:
            parent: Consumer, as a stage, tensor or operation. It must read this stage, directly or
                through other stages.
            scope: Loop of the consumer. A thread axis represents the loop bound to it.

        Raises:
            ScheduleError: If this stage is a placeholder, `scope` is not a loop of the consumer,
                the consumer belongs to another schedule, or the consumer does not read this stage.
                Two stages can therefore never be placed inside each other.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((6,), lambda i: P[i] + P[i + 2], name="C")
        >>> s = te.create_schedule(C)
        >>> outer, inner = s[C].split(C.op.axis[0], factor=2)
        >>> s[P].compute_at(s[C], outer)
        >>> print(tecomp.lower(s, [A, C]).body)
        for i_outer in range(3):
            with Allocate(Buffer("float32", (4,))) as P:
                for i in range(4):
                    P[i] = A[i_outer * 2 + i] * float32(2.0)
                for i_inner in range(2):
                    C[i_outer * 2 + i_inner] = P[i_inner] + P[i_inner + 2]
        """
        if isinstance(parent, Stage) and parent._schedule is not self._schedule:
            raise ScheduleError(
                "s[{state}].compute_at: {parent!r} belongs to another schedule",
                kind="not-in-schedule", state=self._state.name, parent=parent,
            )
        op = parent._key if isinstance(parent, Stage) else operation_of(parent, "compute_at")
        consumer = self._schedule.state.stage(op)
        if isinstance(scope, ThreadAxis):
            where = f"s[{self._state.name}].compute_at(s[{consumer.name}])"
            scope = loops.loop_of_thread_axis(consumer, scope.tag, where)
        self._apply(compute_location.compute_at, "compute_at", consumer.key, scope)

    @primitive
    def compute_inline(self) -> None:
        """Substitute the expression of this stage into its readers, without allocating memory.

        Raises:
            ScheduleError: If the stage is a placeholder, an output, a reduction, a scan or a
                `te.extern`, calls an intrinsic, or has several outputs.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_inline()
        >>> print(tecomp.lower(s, [A, C]).body)
        for i in range(8):
            C[i] = A[i] * float32(2.0) + float32(1.0)
        """
        self._apply(compute_location.compute_inline, "compute_inline")

    @primitive
    def compute_root(self) -> None:
        """Compute this stage once before its first consumer, or at the location of its group.

        This is the default; the call reverts `compute_at` and `compute_inline`.

        Raises:
            ScheduleError: If the stage is a placeholder.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_at(s[C], C.op.axis[0])
        >>> s[P].compute_root()
        >>> print(s[P].attach_stage)
        None
        """
        self._apply(compute_location.compute_root, "compute_root")


def _results(relation: Relation) -> tuple[IterVar, ...]:
    match relation:
        case Split(_, outer, inner):
            return (outer, inner)
        case Fuse(_, fused):
            return (fused,)
    return relation.after


class Group:
    """Handle of a stage group made by `s.create_group(...)`, or of the steps of a scan.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    >>> s = te.create_schedule(C)
    >>> group = s.create_group(outputs=B, inputs=A)
    >>> group.num_child_stages, group.group
    (1, None)
    >>> group.compute_at(s[C], C.op.axis[0])
    >>> group.attach_stage, group.attach_ivar
    (Stage(C: i), i)
    """

    def __init__(self, schedule: ScheduleCalls, key: GroupKey | Operation) -> None:
        self._schedule = schedule
        self._key = key

    @property
    def _stages(self) -> list[StageState]:
        state = self._schedule.state
        if isinstance(self._key, GroupKey):
            return compute_location.stages_of(state, self._key)
        return [stage for stage in state if stage.key in scan_steps(state).get(self._key, ())]

    @property
    def group(self) -> Group | None:
        """Enclosing group, or None; the step stages of a scan form a group."""
        if not isinstance(self._key, GroupKey):
            return None
        parent = self._schedule.state.groups[self._key].parent
        if parent is not None:
            return Group(self._schedule, parent)
        stages = self._stages
        return _group_of_steps(self._schedule, stages[0]) if stages else None

    @property
    def attach_stage(self) -> Stage | None:
        """Stage of the loop at which `compute_at` placed it, or None at the root or inline."""
        attach = self._attach
        return Stage(self._schedule, attach.stage) if isinstance(attach, ComputedAt) else None

    @property
    def attach_ivar(self) -> IterVar | None:
        """Loop of `attach_stage` at which `compute_at` placed it, or None at the root or inline."""
        attach = self._attach
        return attach.axis if isinstance(attach, ComputedAt) else None

    @property
    def _attach(self) -> AtRoot | ComputedAt:
        states = self._schedule.state.groups
        return states[self._key].attach if isinstance(self._key, GroupKey) else AtRoot()

    @property
    def num_child_stages(self) -> int:
        """Number of direct members: stages and groups, without the members of inner groups."""
        state = self._schedule.state
        if not isinstance(self._key, GroupKey):
            return len(self._stages)
        members = [stage for stage in state if stage.group is self._key]
        return len(members) + sum(group.parent is self._key for group in state.groups.values())

    def compute_at(self, parent: Stage | Handle, scope: IterVar) -> None:
        """Compute the stages of the group in each iteration of a loop, as `Schedule.place_group`.

        Args:
            parent: Consumer of the group, as a stage, tensor or operation.
            scope: Loop of the consumer.

        Raises:
            ScheduleError: If the loop does not exist, or the consumer does not read one of the
                stages.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s.create_group(outputs=B, inputs=A).compute_at(s[C], C.op.axis[0])
        >>> s[B].group.attach_stage
        Stage(C: i)
        """
        self._place(parent, scope)

    def compute_root(self) -> None:
        """Compute the stages of the group at the location of the enclosing group, or at the root.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> group = s.create_group(outputs=B, inputs=A)
        >>> group.compute_at(s[C], C.op.axis[0])
        >>> group.compute_root()
        >>> print(group.attach_stage)
        None
        """
        self._place(None, None)

    def _place(self, parent: Stage | Handle | None, scope: IterVar | None) -> None:
        schedule = self._schedule
        if parent is None:
            schedule._apply(compute_location.place_group, "place_group", None, (self._key,))
            return
        op = parent._key if isinstance(parent, Stage) else operation_of(parent, "s.place_group")
        arguments = (self._key, schedule.state.stage(op).key, scope)
        schedule._apply(compute_location.place_group, "place_group", None, arguments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return self._schedule is other._schedule and self._key is other._key

    def __hash__(self) -> int:
        return hash((id(self._schedule), id(self._key)))

    def __repr__(self) -> str:
        return f"Group({', '.join(stage.name for stage in self._stages)})"


def _group_of_steps(schedule: ScheduleCalls, stage: StageState) -> Group | None:
    """Return the group of scan steps that contains a stage, or None."""
    found = scan_steps(schedule.state)
    key = next((scan for scan, steps in found.items() if stage.key in steps), None)
    return None if key is None else Group(schedule, key)
