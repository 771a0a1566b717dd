"""Stages as users hold them, `s[T]` or a group of them: what they are, and where they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.drawing.drawable import Pictured, drawn_by
from tecomp.errors import ScheduleError
from tecomp.scheduling import compute_location, loops
from tecomp.scheduling.compute_location import scan_steps
from tecomp.scheduling.schedule.loop_primitives import LoopPrimitives, MarkPrimitives
from tecomp.scheduling.schedule.memory_primitives import MemoryPrimitives
from tecomp.scheduling.schedule.primitive_calls import Handle, ScheduleCalls, operation_of
from tecomp.scheduling.state import At, AtRoot, Fuse, GroupKey, Relation, Split, StageState
from tecomp.scheduling.threads import ThreadAxis

if TYPE_CHECKING:
    # Loaded with the first picture.
    from tecomp.drawing.svg import Svg


class Stage(LoopPrimitives, MarkPrimitives, MemoryPrimitives, Pictured):
    """One stage of a schedule: `s[T]`; equal to what `s[T]` gives again.

    Its methods are the primitives: each takes effect as a whole or, where it is refused, not at
    all.

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
        """The operation as it is now, with its `axis` and `reduce_axis`."""
        return self._state.op

    @property
    def origin_op(self) -> Operation:
        """The operation as it was when the stage was made."""
        return self._key

    @property
    def is_output(self) -> bool:
        """Whether the schedule was made for this operation."""
        return self._state.is_output

    @property
    def group(self) -> Group | None:
        """The group that it is in, if there is one; the steps of a scan are one."""
        state = self._state
        if state.group is not None:
            return Group(self._schedule, state.group)
        return _group_of_steps(self._schedule, state)

    @property
    def attach_stage(self) -> Stage | None:
        """The stage that it is computed in; None where it is in none."""
        attach = self._state.attach
        return Stage(self._schedule, attach.stage) if isinstance(attach, At) else None

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop of `attach_stage` that it is computed in; None where it is in none."""
        attach = self._state.attach
        return attach.axis if isinstance(attach, At) else None

    @property
    def scope(self) -> str:
        """The memory that the tensor lives in."""
        return self._state.scope

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """The loops, outermost first."""
        return self._state.leaves

    @property
    def all_iter_vars(self) -> tuple[IterVar, ...]:
        """Every axis that this stage has or had: roots, and what primitives made of them."""
        state = self._state
        roots = state.op.loops if isinstance(state.op, ComputeOp) else ()
        made = [axis for relation in state.relations for axis in _results(relation)]
        return (*roots, *made)

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
        """The iterations of two axes: when the loops meet each, and which need others before.

        Args:
            axes: one or two of the definition, the first of which goes down; without them those
                that a reduction or a scan goes along, or the first two. All others have their
                first value.

        Returns:
            SVG, text that a notebook shows as the picture. Of many points it has those of the
            first rows and columns.

        Raises:
            ScheduleError: the stage is a placeholder, or has no such axes.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 8), name="A")
        >>> B = te.compute((8, 8), lambda i, j: A[j, i], name="B")
        >>> s = te.create_schedule(B.op)
        >>> _ = s[B].tile(*B.op.axis, 4, 4)
        >>> "one iteration of i.outer, j.outer" in s[B].domain_picture()
        True
        """
        made: Svg = drawn_by("iteration_domain:draw_domain", self, axes)
        return made

    def compute_at(self, parent: Stage | Handle, scope: IterVar | ThreadAxis) -> None:
        """Compute this stage anew in each iteration of a consumer's loop, as much as is read there.

        Before and after::

            for i in range(I): P[i] = ...    ->    for i in range(I):
            for i in range(I):                         P[i] = ...
                C[i] = P[i] + 1                        C[i] = P[i] + 1

        Args:
            parent: the consumer: its stage, tensor or operation. It reads this stage, directly or
                through others.
            scope: a loop of the consumer. A thread axis stands for the loop that is bound to it.

        Raises:
            ScheduleError: `scope` is no loop of the consumer, or the consumer reads nothing of this
                stage. Two stages can therefore not be inside each other.

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
                f"s[{self._state.name}].compute_at: {parent!r} belongs to another schedule",
                kind="not-in-schedule",
            )
        op = parent._key if isinstance(parent, Stage) else operation_of(parent, "compute_at")
        consumer = self._schedule.state.stage(op)
        if isinstance(scope, ThreadAxis):
            where = f"s[{self._state.name}].compute_at(s[{consumer.name}])"
            scope = loops.bound_loop(consumer, scope.tag, where)
        self._apply(compute_location.compute_at, "compute_at", consumer.key, scope)

    def compute_inline(self) -> None:
        """Write this stage's expression wherever it is read; it gets no memory.

        Raises:
            ScheduleError: the stage is an output, a reduction, a scan, a te.extern, or has several
                outputs.

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

    def compute_root(self) -> None:
        """Compute this stage once, before its first consumer, or where its group is.

        It is so from the start; the call takes back `compute_at` and `compute_inline`.

        Raises:
            ScheduleError: the stage is a placeholder.

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
    """Stages that are computed in one place: `s.create_group(...)`.

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
        """The group that it is in, if there is one; the steps of a scan are one."""
        if not isinstance(self._key, GroupKey):
            return None
        parent = self._schedule.state.groups[self._key].parent
        if parent is not None:
            return Group(self._schedule, parent)
        stages = self._stages
        return _group_of_steps(self._schedule, stages[0]) if stages else None

    @property
    def attach_stage(self) -> Stage | None:
        """The stage that it is computed in; None where it is in none."""
        attach = self._attach
        return Stage(self._schedule, attach.stage) if isinstance(attach, At) else None

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop of `attach_stage` that it is computed in; None where it is in none."""
        attach = self._attach
        return attach.axis if isinstance(attach, At) else None

    @property
    def _attach(self) -> AtRoot | At:
        states = self._schedule.state.groups
        return states[self._key].attach if isinstance(self._key, GroupKey) else AtRoot()

    @property
    def num_child_stages(self) -> int:
        """How many stages and groups are in it, those of inner groups not counted."""
        state = self._schedule.state
        if not isinstance(self._key, GroupKey):
            return len(self._stages)
        own = [stage for stage in state if stage.group is self._key]
        return len(own) + sum(each.parent is self._key for each in state.groups.values())

    def compute_at(self, parent: Stage | Handle, scope: IterVar) -> None:
        """Compute its stages anew in each iteration of a loop, as `Schedule.place_group` does.

        Args:
            parent: a stage that reads what the group computes: its stage, tensor or operation.
            scope: a loop of it.

        Raises:
            ScheduleError: there is no such loop, or the parent reads nothing of a stage.

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
        """Compute its stages where the group around is, or once.

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
    """The steps of a scan that a stage is one of."""
    found = scan_steps(schedule.state)
    key = next((scan for scan, steps in found.items() if stage.key in steps), None)
    return None if key is None else Group(schedule, key)
