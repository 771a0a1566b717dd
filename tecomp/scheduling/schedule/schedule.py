"""The class `Schedule`: stages, stage groups, name lookup and `create_schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tecomp.compute.expression_analysis import post_order
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured, call_drawing_function
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import as_int, check_kind, is_one_of
from tecomp.ir.nodes.expr import Var
from tecomp.scheduling import compute_location
from tecomp.scheduling.schedule.primitive_calls import Handle, operation_of, primitive, tensor_of
from tecomp.scheduling.schedule.stage import Group, Stage
from tecomp.scheduling.schedule.stage_primitives import CachePrimitives, FormulaPrimitives
from tecomp.scheduling.state import ScheduleState, initial_stage
from tecomp.scheduling.trace import Trace

if TYPE_CHECKING:
    # Imported for the type only: drawing code is loaded with the first figure.
    from tecomp.drawing.svg import Svg


def create_schedule(ops: Handle | Sequence[Handle]) -> Schedule:
    """Return the default schedule of `ops` and all operations that they depend on.

    Each stage is computed once, at the root, with one loop per axis in the order of definition.

    Args:
        ops: Output operation or tensor, or a list of outputs. An empty list gives a schedule
            without stages.

    Raises:
        ScheduleError: If an output is neither an operation nor a tensor.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> te.create_schedule(B.op)
    Schedule(A, B)
    """
    handles = list(ops) if isinstance(ops, list | tuple) else [ops]
    outputs = tuple(dict.fromkeys([operation_of(op, "create_schedule") for op in handles]))
    stages = tuple([
        initial_stage(op, is_output=op in set(outputs)) for op in post_order(outputs)
    ])
    return Schedule(ScheduleState(stages, outputs))


class Schedule(CachePrimitives, FormulaPrimitives, Pictured):
    """Mutable handle of a schedule; every primitive call is atomic.

    `s[T]` is the stage that computes tensor `T`; `s["T"]` is the stage named `T` in the trace.

    Attributes:
        state: Frozen state of the schedule; a primitive replaces it.

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
        # The recorded calls hold layout functions, which may not be picklable; the trace holds the
        # resulting index maps.
        return _again, (self.state, self._start, self.trace)

    def __copy__(self) -> Schedule:
        """Return a schedule of the same tensors; later calls on either do not affect the other."""
        result = Schedule(self.state)
        result.__dict__.update(self.__dict__)
        return result

    def __deepcopy__(self, memo: object) -> Schedule:
        return self.__copy__()

    def __getitem__(self, handle: Handle | str) -> Stage:
        """Return the stage that computes a tensor.

        Args:
            handle: Tensor, its operation, or its name in the trace.

        Raises:
            ScheduleError: If the schedule has no such stage.
        """
        op = self.trace.operation(handle) if isinstance(handle, str) else handle
        return Stage(self, self.state.stage(operation_of(op, "s[...]")).key)

    def _ipython_key_completions_(self) -> list[str]:
        """Return the current stage names, which IPython offers as completions after `s[`."""
        staged = {stage.key for stage in self.state}
        return [name for name, op in self.trace.operations.items() if op in staged]

    def __repr__(self) -> str:
        return f"Schedule({', '.join(stage.name for stage in self.state)})"

    def step_picture(self, step: int = -1) -> Svg:
        """Draw the stages that a call changed, with their loops before and after the call.

        Args:
            step: Index of the call in `trace.steps`. Negative values count from the end. Default:
                the last call.

        Returns:
            SVG text, which a notebook displays as a figure.

        Raises:
            ScheduleError: If the call does not exist or was made in another process.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B.op)
        >>> _ = s[B].split(B.op.axis[0], factor=8)
        >>> ">i.outer: 8<" in s.step_picture()
        True
        """
        drawing: Svg = call_drawing_function("loop_nest:draw_step", self, step)
        return drawing

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """Output operations of the schedule."""
        return self.state.outputs

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, producers before consumers."""
        return tuple([Stage(self, stage.key) for stage in self.state])

    def tensor(self, name: str, output: int = 0) -> Tensor:
        """Return the tensor named `name` in the trace.

        Args:
            name: Name of a stage: the name of its operation, with a numeric suffix if several
                operations share the name.
            output: Index of the tensor among the outputs of the stage. Default: 0.

        Raises:
            ScheduleError: If no stage has this name, or `output` is out of range.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> te.create_schedule(B).tensor("B") == B
        True
        """
        op = self.trace.operation(name)
        number = as_int(output)
        if number is None or not 0 <= number < op.num_outputs:
            raise ScheduleError(
                "s.tensor({name!r}): output index must be 0 to {last}, got {output!r}",
                kind="invalid-value", name=name, output=output, last=op.num_outputs - 1,
            )
        return op.output(number)

    def size(self, name: str) -> Var:
        """Return the size variable named `name` in the shapes of this computation.

        Raises:
            ScheduleError: If no shape contains a size variable of this name.

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
                "the schedule has no size variable {name!r}; its size variables are {names}",
                kind="not-in-schedule", name=name, names=names,
            )
        return known[name]

    def normalize(self) -> Schedule:
        """Return a copy of the schedule, for compatibility with TVM: all loops start at zero.

        >>> from tecomp import te
        >>> A = te.compute((8,), lambda i: i, name="A")
        >>> te.create_schedule(A).normalize()
        Schedule(A)
        """
        return self.__copy__()

    @property
    def groups(self) -> tuple[Group, ...]:
        """Stage groups, in the order of creation."""
        return tuple(Group(self, key) for key in self.state.groups)

    @primitive
    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> Group:
        """Group the stages between `inputs` and `outputs`, so that one call places all of them.

        The group contains every stage on a dependence path from `inputs` to `outputs`. Stages that
        are not placed individually are computed at the compute location of the group.

        Args:
            outputs: Tensor or tensors computed by the last stages of the group.
            inputs: Tensor or tensors that the first stages of the group read.
            include_inputs: If True, the stages of `inputs` belong to the group. Default: False.

        Returns:
            The group.

        Raises:
            ScheduleError: If no stage is on such a path, or another group contains some of the
                stages together with stages outside the new group.

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
        tensors = [
            [tensor_of(tensor, where) for tensor in side]
            if isinstance(side, list | tuple) else [tensor_of(side, where)]
            for side in (outputs, inputs)
        ]
        check_kind(include_inputs, bool, f"{where}: include_inputs", "pass True or False",
                   ScheduleError)
        key = self._apply(
            compute_location.create_group, "create_group", None, (*tensors, include_inputs))
        return Group(self, key)

    @primitive
    def place_group(
        self, group: Group, parent: Stage | Handle | None = None, scope: IterVar | None = None
    ) -> None:
        """Compute the stages of a group in each iteration of a loop, as `compute_at` does.

        Without a loop, the stages are computed at the location of the enclosing group, or at the
        root. Stages that are placed individually keep their compute location.

        Args:
            group: Group created by `create_group` of this schedule.
            parent: Stage that owns the loop: a stage, tensor or operation. Default: the root.
            scope: Loop of `parent`.

        Raises:
            ScheduleError: If the group or the loop does not exist, or the consumer does not read
                one of the stages.

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
                "s.place_group: {group!r} is not a group of this schedule; pass the result of "
                "s.create_group",
                kind="not-in-schedule", group=group,
            )
        group._place(parent, scope)


def _again(state: ScheduleState, start: ScheduleState, trace: Trace) -> Schedule:
    schedule = Schedule(state)
    schedule._start, schedule._written = start, (0, trace)
    return schedule
