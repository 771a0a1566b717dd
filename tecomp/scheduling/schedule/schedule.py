"""`Schedule`, which users make of what they compute: its stages, its groups, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tecomp.compute.expression_analysis import post_order
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured, drawn_by
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import check_kind, is_one_of, whole_number
from tecomp.ir.nodes.expr import Var
from tecomp.scheduling import compute_location
from tecomp.scheduling.schedule.primitive_calls import Handle, operation_of, tensor_of
from tecomp.scheduling.schedule.stage import Group, Stage
from tecomp.scheduling.schedule.stage_primitives import CachePrimitives, FormulaPrimitives
from tecomp.scheduling.state import State, initial_stage
from tecomp.scheduling.trace import Trace

if TYPE_CHECKING:
    # Loaded with the first picture.
    from tecomp.drawing.svg import Svg


def create_schedule(ops: Handle | Sequence[Handle]) -> Schedule:
    """A schedule of everything that `ops` need: each stage computed once, its axes in order.

    Args:
        ops: the outputs: an operation, a tensor, or a list of them. A schedule of none has no
            stages, and computes nothing.

    Raises:
        ScheduleError: one is not an operation or tensor.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> te.create_schedule(B.op)
    Schedule(A, B)
    """
    given = list(ops) if isinstance(ops, list | tuple) else [ops]
    outputs = tuple(dict.fromkeys(operation_of(op, "create_schedule") for op in given))
    stages = tuple(
        initial_stage(op, is_output=op in set(outputs)) for op in post_order(outputs)
    )
    return Schedule(State(stages, outputs))


class Schedule(CachePrimitives, FormulaPrimitives, Pictured):
    """Decisions about a computation; every call either takes effect as a whole or not at all.

    `s[T]` is the stage that computes tensor `T`; `s["T"]` is the one that the trace calls so.

    Attributes:
        state: the decisions, a frozen value; a primitive replaces it.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    >>> s = te.create_schedule(C)
    >>> group = s.create_group(outputs=B, inputs=A)
    >>> outer, inner = s[C].split(C.op.axis[0], factor=4)
    >>> s.stages
    (Stage(A: ), Stage(B: i), Stage(C: i.outer, i.inner))
    >>> s.outputs == (C.op,), s.groups
    (True, (Group(B),))
    >>> print(s.trace, end="")
    def schedule(C):
        s = te.create_schedule(C.op)
        B = s.tensor("B")
        A = s.tensor("A")
        group = s.create_group([B], [A], False)
        i, = s[C].op.axis
        i_outer, i_inner = s[C].split(i, factor=4)
        return s
    >>> len(s.calls), s.state.outputs == s.outputs
    (2, True)
    """

    _drawn_by: ClassVar[str] = "loop_nest:draw_schedule"

    def __reduce__(self) -> tuple[Any, ...]:
        # Calls have the functions that layouts were written as; the trace has what these gave.
        return _again, (self.state, self._start, self.trace)

    def __copy__(self) -> Schedule:
        """A schedule of the same tensors; calls on the one do not change the other."""
        made = Schedule(self.state)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: object) -> Schedule:
        return self.__copy__()

    def __getitem__(self, handle: Handle | str) -> Stage:
        """The stage that computes a tensor.

        Args:
            handle: the tensor, its operation, or the name that the trace has for it.

        Raises:
            ScheduleError: the schedule has no such stage.
        """
        op = self.trace.operation(handle) if isinstance(handle, str) else handle
        return Stage(self, self.state.stage(operation_of(op, "s[...]")).key)

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers after `s[`: the names that stages have now."""
        staged = {stage.key for stage in self.state}
        return [name for name, op in self.trace.operations.items() if op in staged]

    def __repr__(self) -> str:
        return f"Schedule({', '.join(stage.name for stage in self.state)})"

    def step_picture(self, step: int = -1) -> Svg:
        """The stages that a call changed, with their loops before it and after it.

        Args:
            step: number of the call, as in `trace.steps`; negative ones count from the end.

        Returns:
            SVG, text that a notebook shows as the picture.

        Raises:
            ScheduleError: there is no such call, or it was made in another process.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B.op)
        >>> _ = s[B].split(B.op.axis[0], factor=8)
        >>> ">i.outer: 8<" in s.step_picture()
        True
        """
        made: Svg = drawn_by("loop_nest:draw_step", self, step)
        return made

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations that the schedule was made for."""
        return self.state.outputs

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, producers before consumers."""
        return tuple(Stage(self, stage.key) for stage in self.state)

    def tensor(self, name: str, output: int = 0) -> Tensor:
        """The tensor that the trace calls `name`.

        Args:
            name: the name of a stage: that of its operation, with a number where several have one.
            output: the number of the tensor, of a stage that computes several.

        Raises:
            ScheduleError: there is none.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> te.create_schedule(B).tensor("B") == B
        True
        """
        op = self.trace.operation(name)
        number = whole_number(output)
        if number is None or not 0 <= number < op.num_outputs:
            raise ScheduleError(
                f"s.tensor({name!r}): output is {output!r}; give a number from 0 to "
                f"{op.num_outputs - 1}",
                kind="wrong-number",
            )
        return op.output(number)

    def size(self, name: str) -> Var:
        """The size variable called `name` in the shapes of this computation.

        Raises:
            ScheduleError: there is none.

        >>> from tecomp import te
        >>> n = te.var("n")
        >>> A = te.placeholder((n,), name="A")
        >>> B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
        >>> te.create_schedule(B).size("n") is n
        True
        """
        known = self.state.sizes
        if not is_one_of(name, known):
            names = ", ".join(known) or "none"
            raise ScheduleError(
                f"the schedule has no size {name!r}; it has {names}", kind="not-in-schedule"
            )
        return known[name]

    def normalize(self) -> Schedule:
        """A schedule of the same decisions: all loops begin at zero as it is.

        >>> from tecomp import te
        >>> A = te.compute((8,), lambda i: i, name="A")
        >>> te.create_schedule(A).normalize()
        Schedule(A)
        """
        return self.__copy__()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of stages, in the order in which they were made."""
        return tuple(Group(self, key) for key in self.state.groups)

    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> Group:
        """Put the stages between some tensors into a group, which can be placed at once.

        They are those that `outputs` are computed by from `inputs`: on a way from these to those.
        Stages with no place of their own are computed where the group is.

        Args:
            outputs: the last stages of the group.
            inputs: what comes before its first stages.
            include_inputs: whether these are part of it.

        Returns:
            The group.

        Raises:
            ScheduleError: no stage is between, or another group has a part of them and others.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> C = te.compute((8, 10), lambda i, j: B[i, j] + 1.0, name="C")
        >>> D = te.compute((8, 10), lambda i, j: C[i, j] * C[i, j], name="D")
        >>> s = te.create_schedule(D)
        >>> group = s.create_group(outputs=C, inputs=A)
        >>> group.compute_at(s[D], D.op.axis[0])
        >>> group, group.attach_stage, s[B].group == group
        (Group(B, C), Stage(D: i, j), True)
        """
        where = "s.create_group"
        many = [
            [tensor_of(each, where) for each in given]
            if isinstance(given, list | tuple) else [tensor_of(given, where)]
            for given in (outputs, inputs)
        ]
        check_kind(include_inputs, bool, f"{where}: include_inputs", "give True or False",
                   ScheduleError)
        made = self._apply(
            compute_location.create_group, "create_group", None, (*many, include_inputs))
        return Group(self, made)

    def place_group(
        self, group: Group, parent: Stage | Handle | None = None, scope: IterVar | None = None
    ) -> None:
        """Compute the stages of a group anew in each iteration of a loop, as `compute_at` does.

        Without a loop they are computed where the group around is, or at the root. Stages that have
        a place of their own stay there.

        Args:
            group: what `create_group` of this schedule gave.
            parent: the stage of the loop, as a stage, tensor or operation; the root if not given.
            scope: the loop.

        Raises:
            ScheduleError: there is no such group or loop, or the consumer reads nothing of a stage.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> group = s.create_group(outputs=B, inputs=A)
        >>> s.place_group(group, C, C.op.axis[0])
        >>> group.attach_stage, group.attach_ivar
        (Stage(C: i), i)
        >>> s.place_group(group)
        >>> print(group.attach_stage)
        None
        """
        if not isinstance(group, Group) or group._schedule is not self:
            raise ScheduleError(
                f"s.place_group: {group!r} is no group of this schedule; give what s.create_group "
                "of it gives",
                kind="not-in-schedule",
            )
        group._place(parent, scope)


def _again(state: State, start: State, trace: Trace) -> Schedule:
    made = Schedule(state)
    made._start, made._written = start, (0, trace)
    return made
