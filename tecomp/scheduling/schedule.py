"""What the user holds: `s[T].split(...)` on top of the primitives, each call kept in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.compute.topology import post_order
from tecomp.drawing.pictured import Pictured, drawn_by
from tecomp.errors import Location, ScheduleError, users_call
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.given import check_kind, check_list, is_one_of, whole_number
from tecomp.ir.language.stmt import Extent, ForKind
from tecomp.scheduling import caches, groups, hints, loops, place, predicates
from tecomp.scheduling.dots import into_dots
from tecomp.scheduling.factors import cache_factor
from tecomp.scheduling.groups import scan_steps
from tecomp.scheduling.layout import NamedLayout, transform_layout
from tecomp.scheduling.merge import merge_formula, merge_reduction
from tecomp.scheduling.narrow import narrow_reduction
from tecomp.scheduling.repeated import cache_repeated
from tecomp.scheduling.state import (
    At,
    AtRoot,
    Fuse,
    GroupKey,
    Relation,
    Split,
    StageState,
    State,
    initial_stage,
)
from tecomp.scheduling.tensorize import tensorize
from tecomp.scheduling.terms import cache_terms
from tecomp.scheduling.threads import ThreadAxis
from tecomp.scheduling.trace import Trace

if TYPE_CHECKING:
    # Loaded with the first picture.
    from tecomp.drawing.svg import Svg

Handle = Tensor | Operation
"""How a stage is named: by its operation or by a tensor that the operation makes."""


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
    outputs = tuple(dict.fromkeys(_operation(op, "create_schedule") for op in given))
    stages = tuple(
        initial_stage(op, is_output=op in set(outputs)) for op in post_order(outputs)
    )
    return Schedule(State(stages, outputs))


def _operation(handle: object, where: str) -> Operation:
    if isinstance(handle, Tensor):
        return handle.op
    if isinstance(handle, Operation):
        return handle
    raise ScheduleError(
        f"{where}: expected a tensor or an operation, got {handle!r}", kind="wrong-argument"
    )


class Schedule(Pictured):
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

    _drawn_by: ClassVar[str] = "schedule:drawn"

    def __init__(self, state: State) -> None:
        self.state = state
        self._start = state
        self._calls: tuple[tuple[Any, ...], ...] = ()
        # For each call where the user made it; None where somebody else did.
        self._places: tuple[Location | None, ...] = ()
        # Few schedules are asked for their trace, and its text takes as long as the decisions.
        self._written: tuple[int, Trace] | None = None

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

    @property
    def trace(self) -> Trace:
        """The calls so far, as JSON or Python text that makes the same schedule again."""
        count, trace = self._written or (0, Trace.start(self._start))
        for call in self._calls[count:]:
            trace = trace.then(*call)
        self._written = len(self._calls), trace
        return trace

    def __getitem__(self, handle: Handle | str) -> Stage:
        """The stage that computes a tensor.

        Args:
            handle: the tensor, its operation, or the name that the trace has for it.

        Raises:
            ScheduleError: the schedule has no such stage.
        """
        op = self.trace.operation(handle) if isinstance(handle, str) else handle
        return Stage(self, self.state.stage(_operation(op, "s[...]")).key)

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
        >>> s = create_schedule(B.op)
        >>> _ = s[B].split(B.op.axis[0], factor=8)
        >>> ">i.outer: 8<" in s.step_picture()
        True
        """
        made: Svg = drawn_by("schedule:drawn_step", self, step)
        return made

    @property
    def calls(self) -> tuple[tuple[tuple[Any, ...], Location | None], ...]:
        """The primitives that were called, and where the user called them.

        Each with the states before and after it, its name, its stage, its arguments and its result.
        """
        return tuple(zip(self._calls, self._places, strict=True))

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
            [_tensor(each, where) for each in given]
            if isinstance(given, list | tuple) else [_tensor(given, where)]
            for given in (outputs, inputs)
        ]
        check_kind(include_inputs, bool, f"{where}: include_inputs", "give True or False",
                   ScheduleError)
        made = self._apply(groups.create_group, "create_group", None, (*many, include_inputs))
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
        if parent is None:
            self._apply(groups.place_group, "place_group", None, (group._key,))
            return
        op = parent._key if isinstance(parent, Stage) else _operation(parent, "s.place_group")
        arguments = (group._key, self.state.stage(op).key, scope)
        self._apply(groups.place_group, "place_group", None, arguments)

    def cache_read(self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]) -> Tensor:
        """Copy a tensor into memory `scope`, and let `readers` read the copy.

        Before and after::

            C[i] = A[i] + 1    ->    A_local[i] = A[i]
                                     C[i] = A_local[i] + 1

        The copy is a stage of its own: it can be placed with compute_at, and given a layout.

        Args:
            tensor: what is copied: an input, or the result of a stage.
            scope: the memory of the copy.
            readers: who reads the copy: operations or tensors.

        Returns:
            The copy.

        Raises:
            ScheduleError: a reader does not read the tensor.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> copy = s.cache_read(A, "local", [B])
        >>> s[copy].compute_at(s[B], B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B], stop_after="lower_storage").body)
        for i in range(8):
            with Allocate(Buffer("float32", (1,), scope="local")) as A_local:
                A_local[0] = A[i]
                B[i] = A_local[0] * float32(2.0)
        """
        many = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(_operation(r, "s.cache_read")).key for r in many]
        made: Tensor = self._apply(
            caches.cache_read, "cache_read", None, (_tensor(tensor, "s.cache_read"), scope, keys)
        )
        return made

    @overload
    def cache_write(self, tensor: Tensor, scope: str) -> Tensor: ...

    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str) -> tuple[Tensor, ...]: ...

    def cache_write(
        self, tensor: Tensor | Sequence[Tensor], scope: str
    ) -> Tensor | tuple[Tensor, ...]:
        """Compute a stage in memory `scope` first, and copy the result.

        Before and after::

            C[i] = sum(A[i, k])    ->    C_local[i] = sum(A[i, k])
                                         C[i] = C_local[i]

        The reduction, with its axes, moves to the cache. The cache has an axis for each loop over
        data that the stage has now, in their order: after `tile(i, j, 4, 2)` of 8x8 elements its
        shape is (2, 4, 4, 2). The loops of the stage begin anew. A call of an intrinsic moves to
        the cache too.

        Args:
            tensor: a result of a stage, or a list of all of them.
            scope: the memory in which they are computed.

        Returns:
            The cache, or one for each output if a list was given.

        Raises:
            ScheduleError: the tensors are not the outputs of one stage, or a reduction axis of it
                has been split or fused already, a stage is computed at a loop of it, or it is
                tensorized.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> cache = s.cache_write(B, "local")
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[cache].compute_at(s[B], outer)
        >>> print(tecomp.lower(s, [A, B], stop_after="lower_storage").body)
        for i_outer in range(2):
            with Allocate(Buffer("float32", (4,), scope="local")) as B_local:
                for i_c in range(4):
                    B_local[i_c] = float32(0.0)
                    for k in range(10):
                        B_local[i_c] = B_local[i_c] + A[i_outer * 4 + i_c, k]
                for i_inner in range(4):
                    B[i_outer * 4 + i_inner] = B_local[i_inner]
        """
        given = list(tensor) if isinstance(tensor, list | tuple) else [tensor]
        if not given:
            raise ScheduleError(
                "s.cache_write: expected at least one tensor, got none", kind="nothing-given"
            )
        checked = [_tensor(t, "s.cache_write") for t in given]
        written = checked if isinstance(tensor, list | tuple) else checked[0]
        made: Tensor | tuple[Tensor, ...] = self._apply(
            caches.cache_write, "cache_write", None, (written, scope)
        )
        return made

    def rfactor(
        self, tensor: Tensor, axis: IterVar, factor_axis: int = 0, *, order: int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Make partial results, one for each iteration of a reduction loop, and combine them after.

        Before and after::

            for i: for ko: for ki:           for ki: for i: for ko:
                B[i] += A[i, ko*f + ki]  ->      B_rf[ki, i] += A[i, ko*f + ki]
                                             for i: for ki:
                                                 B[i] += B_rf[ki, i]

        The partial results can run in parallel or as a vector. They start from the identity; what
        combines them starts from `init=`.

        The reduction of the partial results has the axes that are whole, in their order, and then
        the loops that others were cut into; its loops run in the order that they have now.

        Args:
            tensor: the reduction.
            axis: one of its loops.
            factor_axis: where the partial results have the new axis.
            order: the number of a value by which partial results are in order: of two, the one that
                has less of it is combined with the other, not the one that comes first. A reducer
                that takes the first of several as good, with its index, finds the same one so.

        Returns:
            The partial results, one tensor for each output if there are several.

        Raises:
            ScheduleError: the stage is no reduction, `axis` is no reduction loop, or it has no
                value of the number `order`.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> k = te.reduce_axis((0, 64), name="k")
        >>> B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(k, factor=8)
        >>> partial = s.rfactor(B, inner)
        >>> s[partial].vectorize(partial.op.axis[0])
        >>> partial.shape, s[partial]
        ((8, 1), Stage(B.rf: k.inner, i, k.outer))
        """
        arguments = (_tensor(tensor, "s.rfactor"), axis, factor_axis)
        made: Tensor | tuple[Tensor, ...] = self._apply(
            caches.rfactor, "rfactor", None, arguments, {} if order is None else {"order": order}
        )
        return made

    def cache_factor(self, tensor: Tensor, factors: int | Sequence[int], scope: str) -> Tensor:
        """Compute the product of some factors of a reduction's terms first, each element once.

        Before and after::

            C[i, j] = sum(relu(A[i, k]) * B[k, j])    ->    C_factor[i, k] = relu(A[i, k])
                                                            C[i, j] = sum(C_factor[i, k] * B[k, j])

        Its axes are those that the factors depend on, in the order of what they read most of. Where
        axes only come as a sum, as in windows, that sum is an axis::

            C[i] = sum(if_then_else(i + r > 0, A[i + r - 1], 0) * W[r])
            ->    C_factor[p] = if_then_else(p > 0, A[p - 1], 0)
                  C[i] = sum(C_factor[i + r] * W[r])

        What a term is divided by is a factor, too. Floats are rounded otherwise where factors are
        not neighbours.

        Args:
            tensor: a reduction without `where=` and `init=`.
            factors: the numbers of factors, from 0 on, as they are written in its terms.
            scope: the memory of the new stage.

        Returns:
            The product of the factors.

        Raises:
            ScheduleError: the stage is no such reduction, there is no such factor, all of them are
                named, or they depend on no axis.

        >>> from tecomp import te
        >>> A, B = te.placeholder((8, 4), name="A"), te.placeholder((4, 6), name="B")
        >>> k = te.reduce_axis((0, 4), name="k")
        >>> C = te.compute((8, 6), lambda i, j: te.sum(te.exp(A[i, k]) * B[k, j], axis=k), name="C")
        >>> s = te.create_schedule(C)
        >>> print(s.cache_factor(C, 0, "global").op)
        C_factor[i, k] = exp(A[i, k])
        >>> print(s[C].op)
        C[i, j] = sum(C_factor[i, k] * B[k, j], axis=[k])
        """
        where = "s.cache_factor"
        many = list(factors) if isinstance(factors, list | tuple) else [factors]
        check_list(many, int, f"{where}: factors", "give numbers from 0 on", ScheduleError)
        made: Tensor = self._apply(
            cache_factor, "cache_factor", None, (_tensor(tensor, where), many, scope))
        return made

    def cache_terms(
        self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]
    ) -> Tensor:
        """Compute the terms of a reduction first, each once for all stages that compute them.

        Before and after::

            C[i] = sum(exp(A[i, k]))            C_terms[i, k] = exp(A[i, k])
            D[i, j] = exp(A[i, j]) / C[i]   ->  C[i] = sum(C_terms[i, k])
                                                D[i, j] = C_terms[i, j] / C[i]

        The new stage has the axes of a term, in the order of what it reads most of, as that of
        `cache_factor` has.

        Args:
            tensor: a reduction without `where=` and `init=`.
            scope: the memory of the new stage.
            readers: other stages that compute such terms, maybe as a part of something else, for
                axes of the same extents.

        Returns:
            The terms.

        Raises:
            ScheduleError: the stage is no such reduction, its terms are elements of a tensor as
                they are, or depend on no axis; or a reader computes no such term.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> C = te.compute((8,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
        >>> D = te.compute((8, 10), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
        >>> s = te.create_schedule(D)
        >>> terms = s.cache_terms(C, "global", [D])
        >>> print(terms.op)
        C_terms[i, k] = exp(A[i, k])
        >>> print(s[D].op)
        D[i, j] = C_terms[i, j] / C[i]
        """
        many = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(_operation(r, "s.cache_terms")).key for r in many]
        made: Tensor = self._apply(
            cache_terms, "cache_terms", None, (_tensor(tensor, "s.cache_terms"), scope, keys)
        )
        return made

    def cache_repeated(self, tensor: Tensor, axis: IterVar, scope: str) -> Tensor:
        """Compute first the longest part of a formula that is the same for each value of an axis.

        Before and after::

            B[i, j] = A[i, j] / sqrt(C[i] + 1)    ->    B_repeated[i] = sqrt(C[i] + 1)
                                                        B[i, j] = A[i, j] / B_repeated[i]

        Args:
            tensor: a formula of elements.
            axis: one of its axes; the part depends on all others. What is computed under a
                condition only is no such part.
            scope: the memory of the new stage.

        Returns:
            The part, which has all other axes.

        Raises:
            ScheduleError: the stage is no formula of elements, has no such axis, or repeats
                nothing.

        >>> from tecomp import te
        >>> A, C = te.placeholder((8, 10), name="A"), te.placeholder((8,), name="C")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] / te.sqrt(C[i] + 1.0), name="B")
        >>> s = te.create_schedule(B)
        >>> print(s.cache_repeated(B, B.op.axis[1], "global").op)
        B_repeated[i] = sqrt(C[i] + float32(1.0))
        >>> print(s[B].op)
        B[i, j] = A[i, j] / B_repeated[i]
        """
        arguments = (_tensor(tensor, "s.cache_repeated"), axis, scope)
        made: Tensor = self._apply(cache_repeated, "cache_repeated", None, arguments)
        return made

    def merge_reduction(self, tensor: Tensor) -> None:
        """Reduce the terms of the reduction whose elements a stage reduces, by the same reducer.

        Before and after::

            B[i, j] = sum(A[i, j, k])
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[i, j, k])

        The loops over the terms are the innermost of C. B is gone if nothing else reads it. Floats
        are combined in another order.

        Args:
            tensor: C.

        Raises:
            ScheduleError: the stage is no sum, product, least or greatest of elements, or they are
                not made by the same; there is `where=` or `init=`; or loops of one of both were
                changed.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 5, 6), name="A")
        >>> j, k = te.reduce_axis((0, 5), name="j"), te.reduce_axis((0, 6), name="k")
        >>> B = te.compute((4, 5), lambda i, j: te.sum(A[i, j, k], axis=k), name="B")
        >>> C = te.compute((4,), lambda i: te.sum(B[i, j], axis=j), name="C")
        >>> s = te.create_schedule(C)
        >>> s.merge_reduction(C)
        >>> print(s[C].op)
        C[i] = sum(A[i, j, k], axis=[j, k])
        """
        self._apply(merge_reduction, "merge_reduction", None,
                    (_tensor(tensor, "s.merge_reduction"),))

    def merge_formula(self, tensor: Tensor) -> None:
        """Make a formula of elements part of the operations that read it, and remove its stage.

        Before and after::

            B[i, j] = A[j, i] * 2
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[j, i] * 2)

        Unlike with `compute_inline`, the readers are then operations on what the formula read:
        their accesses and factors say so, and primitives that take these work on them.

        Args:
            tensor: B.

        Raises:
            ScheduleError: the stage is a result, no formula of elements, or one of several values;
                nothing reads it; or its loops were changed.

        >>> from tecomp import te
        >>> A = te.placeholder((5, 4), name="A")
        >>> j = te.reduce_axis((0, 5), name="j")
        >>> B = te.compute((4, 5), lambda i, j: A[j, i] * 2.0, name="B")
        >>> C = te.compute((4,), lambda i: te.sum(B[i, j], axis=j), name="C")
        >>> s = te.create_schedule(C)
        >>> s.merge_formula(B)
        >>> print(s, s[C].op)
        Schedule(A, C) C[i] = sum(A[j, i] * float32(2.0), axis=[j])
        """
        self._apply(merge_formula, "merge_formula", None, (_tensor(tensor, "s.merge_formula"),))

    def narrow_reduction(self, tensor: Tensor, dtype: str) -> Tensor:
        """Reduce integers in a narrower type, which holds all of the results, and widen those.

        Before and after::

            C[i] = min(if_then_else(A[i, k] > 0, int64(k), 9))
            ->    C_narrow[i] = min(if_then_else(A[i, k] > 0, int32(k), 9))
                  C[i] = int64(C_narrow[i])

        Args:
            tensor: a sum, least or greatest of integers, without `where=` and `init=`.
            dtype: the narrower type.

        Returns:
            The reduction in that type.

        Raises:
            ScheduleError: the stage is no such reduction, or its loops were changed; or its terms
                are not known to fit into the type.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 10), "int8", "A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> C = te.compute((4,), lambda i: te.sum(A[i, k].astype("int64"), axis=k), name="C")
        >>> s = te.create_schedule(C)
        >>> print(s.narrow_reduction(C, "int16").op)
        C_narrow[i] = sum(cast("int16", A[i, k]), axis=[k])
        >>> print(s[C].op)
        C[i] = cast("int64", C_narrow[i])
        """
        where = "s.narrow_reduction"
        made: Tensor = self._apply(
            narrow_reduction, "narrow_reduction", None, (_tensor(tensor, where), dtype))
        return made

    def into_dots(
        self, tensor: Tensor, axis: IterVar, first: str, second: str
    ) -> tuple[Tensor, ...]:
        """Multiply and add up neighbouring terms of a sum of products by `te.dot`.

        Before and after::

            C[i, j] += A[i, k] * B[k, j]    ->    A_dots[i, k] = A[i, 2 * k], A[i, 2 * k + 1]
                                                  B_dots[k, j] = B[2 * k, j], B[2 * k + 1, j]
                                                  C_dots[i, j] += dot(A_dots[i, k], B_dots[k, j])
                                                  C[i, j] = C_dots[i, j]

        The vectors are held in int32, the last filled up with zeros. Of int8 as uint8x4 each number
        is 128 more, of uint8 as int8x4 128 less, and C subtracts what that adds: another sum, for
        each index of the other factor. Integers stay exact; floats are added in another order.

        Args:
            tensor: a `te.sum` of products of two elements, cast to its type; casts on the way there
                keep each value. Elements of stages that are computed inline are those that these
                read.
            axis: the axis of the sum along which terms are put together, an index of both factors.
            first: type of the vectors of the factor on the left, as `te.dot` takes them.
            second: type of those on the right.

        Returns:
            The sum, the two tensors of vectors, and the sum that C subtracts if it does.

        Raises:
            ScheduleError: the stage is no such sum, or the types do not hold the factors.

        >>> from tecomp import te
        >>> A, B = te.placeholder((8, 64), "uint8", "A"), te.placeholder((64, 16), "int8", "B")
        >>> k = te.reduce_axis((0, 64), name="k")
        >>> product = lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k)
        >>> C = te.compute((8, 16), product, name="C")
        >>> s = te.create_schedule(C)
        >>> [made.shape for made in s.into_dots(C, k, "uint8x4", "int8x4")]
        [(8, 16), (8, 16), (16, 16)]
        """
        arguments = (_tensor(tensor, "s.into_dots"), axis, first, second)
        made: tuple[Tensor, ...] = self._apply(into_dots, "into_dots", None, arguments)
        return made

    def _apply(
        self,
        primitive: Callable[..., tuple[State, Any]],
        name: str,
        stage: Operation | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a primitive; the state and the trace change together or not at all."""
        before = self.state
        first = () if stage is None else (stage,)
        state, result = primitive(before, *first, *args, **(kwargs or {}))
        given = tuple(map(_as_given, args))
        named = {key: _as_given(value) for key, value in (kwargs or {}).items()}
        self._calls = (*self._calls, (before, state, name, stage, given, named, result))
        self._places = (*self._places, users_call())
        self.state = state
        return result


def _again(state: State, start: State, trace: Trace) -> Schedule:
    made = Schedule(state)
    made._start, made._written = start, (0, trace)
    return made


def _as_given(value: Any) -> Any:
    """An argument that its owner cannot change afterwards."""
    return tuple(map(_as_given, value)) if isinstance(value, list) else value


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

    def __init__(self, schedule: Schedule, key: GroupKey | Operation) -> None:
        self._schedule = schedule
        self._key = key

    @property
    def _stages(self) -> list[StageState]:
        state = self._schedule.state
        if isinstance(self._key, GroupKey):
            return groups.stages_of(state, self._key)
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
        self._schedule.place_group(self, parent, scope)

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
        self._schedule.place_group(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return self._schedule is other._schedule and self._key is other._key

    def __hash__(self) -> int:
        return hash((id(self._schedule), id(self._key)))

    def __repr__(self) -> str:
        return f"Group({', '.join(stage.name for stage in self._stages)})"


def _group_of_steps(schedule: Schedule, stage: StageState) -> Group | None:
    """The steps of a scan that a stage is one of."""
    found = scan_steps(schedule.state)
    key = next((scan for scan, steps in found.items() if stage.key in steps), None)
    return None if key is None else Group(schedule, key)


class Stage(Pictured):
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

    _drawn_by: ClassVar[str] = "schedule:drawn_stage"

    def __init__(self, schedule: Schedule, key: Operation) -> None:
        self._schedule = schedule
        self._key = key

    @property
    def _state(self) -> StageState:
        return self._schedule.state.stage(self._key)

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
        >>> s = create_schedule(B.op)
        >>> _ = s[B].tile(*B.op.axis, 4, 4)
        >>> "one iteration of i.outer, j.outer" in s[B].domain_picture()
        True
        """
        made: Svg = drawn_by("domain:drawn", self, axes)
        return made

    def split(
        self,
        parent: IterVar,
        factor: Extent | None = None,
        nparts: Extent | None = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Cut a loop into an outer and an inner one.

        Before and after::

            for i in range(E):    ->    for i_outer in range(ceil(E / factor)):
                body(i)                     for i_inner in range(factor):
                                                body(i_outer * factor + i_inner)

        Where the factor does not divide the extent, the last outer iteration is shorter. With
        `nparts` the outer loop gets that many iterations, and the factor follows. Neither loop gets
        more iterations than there are: 8 split by 32 are 1 and 8, and in 32 parts 8 and 1. A number
        that depends on sizes and is below 1 when it is computed counts as 1.

        What is computed in the loop is computed in the inner one then.

        Args:
            parent: a loop of this stage.
            factor: iterations of the inner loop: a number, or an expression of sizes.
            nparts: iterations of the outer loop, in place of `factor`.
            disable_predication: whether no part is guarded: where they are not proved to be equally
                long, the last one is shifted.
            tail: `guard` makes the last part shorter. With `shift_inwards` all parts have `factor`
                iterations: the last one begins earlier, at `E - factor`, and computes some elements
                once more. So the stage has to compute each element by itself, and the loop has to
                have `factor` iterations at least.

        Returns:
            The outer and the inner loop.

        Raises:
            ScheduleError: both or none of factor and nparts, one below 1, `parent` is no loop here,
                or the last part cannot be shifted and has to be.

        Source:
            TailStrategy::ShiftInwards of Halide.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((10,), name="A")
        >>> B = te.compute((10,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B], outer.extent, inner.extent
        (Stage(B: i.outer, i.inner), 3, 4)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i_outer in range(3):
            for i_inner in range(min(4, 10 - i_outer * 4)):
                B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] * float32(2.0)
        """
        kwargs: dict[str, Any] = {
            key: value for key, value in (("factor", factor), ("nparts", nparts))
            if value is not None
        }
        if disable_predication is not False:
            kwargs["disable_predication"] = disable_predication
        if tail != "guard":
            kwargs["tail"] = tail
        made: tuple[IterVar, IterVar] = self._apply(loops.split, "split", parent, **kwargs)
        return made

    def fuse(self, *axes: IterVar) -> IterVar:
        """Make one loop of several that are directly inside one another.

        Before and after::

            for i in range(I):        ->    for i_j_fused in range(I * J):
                for j in range(J):              body(i_j_fused // J, i_j_fused % J)
                    body(i, j)

        Args:
            axes: the loops, outer to inner. Without one, an outermost loop of one iteration is
                added.

        Returns:
            The fused loop. It is a reduction if one of its parts is.

        Raises:
            ScheduleError: the axes are not adjacent loops, outer to inner, or are steps of a scan
                and elements of a step.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> fused = s[B].fuse(*B.op.axis)
        >>> s[B], fused.extent
        (Stage(B: i.j.fused), 80)
        """
        made: IterVar = self._apply(loops.fuse, "fuse", *axes)
        return made

    def reorder(self, *axes: IterVar) -> None:
        """Put loops in the order given, in the places that these loops have now.

        Args:
            axes: loops of this stage, outer to inner; all others stay where they are. Reductions
                may stand anywhere: initial values are stored before the first of them.

        Raises:
            ScheduleError: an axis is no loop of this stage, or is named twice.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].reorder(k, B.op.axis[0])
        >>> s[B]
        Stage(B: k, i)
        """
        self._apply(loops.reorder, "reorder", *axes)

    def tile(
        self,
        x_parent: IterVar,
        y_parent: IterVar,
        x_factor: Extent,
        y_factor: Extent,
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops, and put the two inner ones innermost.

        Args:
            x_parent: a loop of this stage.
            y_parent: another one.
            x_factor: iterations of the inner loop of the first, as `split` takes them.
            y_factor: those of the second.

        Returns:
            x outer, y outer, x inner, y inner.

        Raises:
            ScheduleError: the two are one loop, or a split is refused.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> io, jo, ii, ji = s[B].tile(*B.op.axis, 4, 5)
        >>> s[B], [axis.extent for axis in (io, jo, ii, ji)]
        (Stage(B: i.outer, j.outer, i.inner, j.inner), [2, 2, 4, 5])
        """
        made: tuple[IterVar, IterVar, IterVar, IterVar] = self._apply(
            loops.tile, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return made

    def vectorize(self, var: IterVar) -> None:
        """Run a loop as operations on vectors, its iterations being their lanes.

        A loop has one mark of `vectorize`, `unroll` and `parallel`; the last one counts. A tail is
        masked; full tiles get loops of their own, without a mask.

        Args:
            var: a loop of this stage, of any number of iterations; it is no reduction.

        Raises:
            ScheduleError: it is no loop here, a reduction, whose iterations all update the same
                elements, or the steps of a scan, which follow one another.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16,), name="A")
        >>> B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=8)
        >>> s[B].vectorize(inner)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i_outer in range(2):
            for i_inner in vectorized(8):
                B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * float32(2.0)
        """
        self._mark("vectorize", var, ForKind.VECTORIZED)

    def unroll(self, var: IterVar) -> None:
        """Write a loop out: one copy of its body for each iteration.

        Args:
            var: a loop of this stage. One of more than 4096 iterations is refused when it is
                lowered; one whose extent comes at the call stays a loop.

        Raises:
            ScheduleError: it is no loop of this stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((2,), name="A")
        >>> B = te.compute((2,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].unroll(B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B]).body)
        B[0] = A[0] * float32(2.0)
        B[1] = A[1] * float32(2.0)
        """
        self._mark("unroll", var, ForKind.UNROLLED)

    def parallel(self, var: IterVar) -> None:
        """Share the iterations of a loop among threads.

        There are as many threads as processors, or as the environment variable `TECOMP_NUM_THREADS`
        says.

        Args:
            var: a loop of this stage; it is no reduction.

        Raises:
            ScheduleError: it is no loop here, a reduction, whose iterations all update the same
                elements, or the steps of a scan, which follow one another.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16,), name="A")
        >>> B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].parallel(B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B]).body)
        for i in parallel(16):
            B[i] = A[i] * float32(2.0)
        """
        self._mark("parallel", var, ForKind.PARALLEL)

    def bind(self, ivar: IterVar, thread_ivar: ThreadAxis | str) -> None:
        """Bind a loop to a thread axis, or to an axis of the grid of cores that a target has.

        A `blockIdx` loop and one of the grid, such as `core.x`, run in parallel where loops do;
        `threadIdx` and `vthread` loops run one iteration after another, which computes the same.
        Which axes there are in the grid, and how many cores along them, `build` asks the target.

        Args:
            ivar: a loop of this stage.
            thread_ivar: what `te.thread_axis` gives, or its tag. If it says how many threads there
                are, the loop has as many iterations.

        Raises:
            ScheduleError: there is no such thread axis, `ivar` is no loop of this stage or has
                another number of iterations, it is a reduction that would run in parallel, or
                another loop of the stage is bound to that axis of the grid.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> block, thread = s[B].split(B.op.axis[0], factor=16)
        >>> s[B].bind(block, te.thread_axis("blockIdx.x"))
        >>> s[B].bind(thread, te.thread_axis((0, 16), "threadIdx.x"))
        >>> print(s.trace, end="")
        def schedule(B):
            s = te.create_schedule(B.op)
            i, = s[B].op.axis
            i_outer, i_inner = s[B].split(i, factor=16)
            s[B].bind(i_outer, 'blockIdx.x')
            s[B].bind(i_inner, 'threadIdx.x')
            return s
        """
        tag = thread_ivar
        if isinstance(thread_ivar, ThreadAxis):
            tag = thread_ivar.tag
            loops.check_threads(self._schedule.state, self._key, ivar, tag, thread_ivar.extent)
        self._apply(loops.bind, "bind", ivar, tag)

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
        op = parent._key if isinstance(parent, Stage) else _operation(parent, "compute_at")
        consumer = self._schedule.state.stage(op)
        if isinstance(scope, ThreadAxis):
            where = f"s[{self._state.name}].compute_at(s[{consumer.name}])"
            scope = loops.bound_loop(consumer, scope.tag, where)
        self._apply(place.compute_at, "compute_at", consumer.key, scope)

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
        self._apply(place.compute_inline, "compute_inline")

    def expand(self) -> None:
        """Compute this stage by loops, as its definition says, not by the intrinsic that it calls.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                vadd(C[i, :], ...)              for ax0 in range(16):
                                                    C[i, ax0] = A[i, ax0] + B[i, ax0]

        Raises:
            ScheduleError: no intrinsic computes the stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> a, b = (te.placeholder((4,), "float32", name) for name in "ab")
        >>> add = te.compute((4,), lambda i: a[i] + b[i], name="add")
        >>> vadd = te.decl_tensor_intrin(add.op, lambda ins, outs: outs[0].vstore(
        ...     0, ins[0].vload(0, "float32x4") + ins[1].vload(0, "float32x4")), name="vadd")
        >>> A, B = (te.placeholder((8, 4), "float32", name) for name in "AB")
        >>> C = te.compute((8, 4), lambda i: vadd(A[i, 0:4], B[i, 0:4]), name="C")
        >>> s = te.create_schedule(C)
        >>> s[C].expand()
        >>> print(tecomp.lower(s, [A, B, C], stop_after="nest").body)
        for i in range(8):
            for ax0 in range(4):
                C[i, ax0] = A[i, ax0] + B[i, ax0]
        """
        self._apply(place.expand, "expand")

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
        self._apply(place.compute_root, "compute_root")

    def set_scope(self, scope: str) -> None:
        """Keep this stage's elements in a memory of the target.

        Args:
            scope: the name of the memory. Whether the target has it, and whether the buffer fits
                it, is decided when code is made.

        Raises:
            ScheduleError: `scope` is no name.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].set_scope("local")
        >>> s[P].scope, s[C].scope
        ('local', 'global')
        """
        self._apply(place.set_scope, "set_scope", scope)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad rows so that the stride of an axis is some number of elements modulo another.

        Columns then fall into different banks of a memory, or rows begin at a line.

        Args:
            axis: an axis of the stored tensor.
            factor: elements, 1 or more.
            offset: the stride of `axis` modulo `factor`, in elements; from 0 to below `factor`.

        Raises:
            ScheduleError: `axis` is no axis of the stored tensor, or offset is no remainder of
                factor.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((4, 8), name="A")
        >>> P = te.compute((4, 8), lambda i, j: A[i, j] * 2.0, name="P")
        >>> C = te.compute((8, 4), lambda i, j: P[j, i], name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].storage_align(P.op.axis[0], 8, 1)
        >>> print(tecomp.lower(s, [A, C], stop_after="lower_storage").body)
        with Allocate(Buffer("float32", (4, 8), strides=(9, 1))) as P:
            for i in range(4):
                for j in range(8):
                    P[i, j] = A[i, j] * float32(2.0)
            for i in range(8):
                for j in range(4):
                    C[i, j] = P[j, i]
        """
        self._apply(place.storage_align, "storage_align", axis, factor, offset)

    def double_buffer(self) -> None:
        """Keep two copies of a stage that is computed inside a loop, one for the next iteration.

        Before and after::

            for i in range(I):        ->    P[0] = f(0)
                P = f(i)                    for i in range(I):
                C[i] = g(P)                     if i + 1 < I: P[(i + 1) % 2] = f(i + 1)
                                                C[i] = g(P[i % 2])

        Loads of the next iteration then overlap with arithmetic of this one. Lowering refuses
        stages that are not inside a loop, and loops whose iterations run at the same time.

        Raises:
            ScheduleError: the stage is an output, or has several.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_at(s[C], C.op.axis[0])
        >>> s[P].double_buffer()
        >>> print(tecomp.lower(s, [A, C]).body)
        with Allocate(Buffer("float32", (2,))) as P:
            P[0] = A[0] * float32(2.0)
            for i in range(8):
                if i < 7:
                    P[(i + 1) % 2] = A[i + 1] * float32(2.0)
                C[i] = P[i % 2] + float32(1.0)
        """
        self._apply(place.double_buffer, "double_buffer")

    def rolling_buffer(self) -> None:
        """Keep what the last iteration of the loop around has computed, and compute what is new.

        Before and after::

            for i in range(I):           ->    for i in range(I):
                P = f(i), f(i + 1)                 if i == 0: P[0] = f(0)
                C[i] = P[0] + P[1]                 P[(i + 1) % 2] = f(i + 1)
                                                   C[i] = P[i % 2] + P[(i + 1) % 2]

        Lowering refuses stages that are not inside a loop, and loops no two iterations of which
        need one element.

        Raises:
            ScheduleError: the stage is an output.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((7,), lambda i: P[i] + P[i + 1], name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_at(s[C], C.op.axis[0])
        >>> s[P].rolling_buffer()
        >>> print(tecomp.lower(s, [A, C]).body)
        with Allocate(Buffer("float32", (2,))) as P:
            for i in range(7):
                if i >= 1:
                    P[(i + 1) % 2] = A[i + 1] * float32(2.0)
                else:
                    for i_1 in range(2):
                        P[i + i_1] = A[i + i_1] * float32(2.0)
                C[i] = P[i % 2] + P[(i + 1) % 2]
        """
        self._apply(place.rolling_buffer, "rolling_buffer")

    def set_store_predicate(self, predicate: Expr) -> None:
        """Store elements where a condition holds; all others are left as they are.

        Before and after::

            for tx in range(16):        ->    for tx in range(16):
                B[tx] = ...                       if tx < 3: B[tx] = ...

        A thread axis is the loop that is bound to it. Where threads compute the same elements,
        because the loop is one of a reduction or around this stage, those of one of them are
        stored.

        Args:
            predicate: a condition of axes of this stage, of thread axes and of sizes.

        Raises:
            ScheduleError: the condition is none of axes of this stage, threads and sizes.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].set_store_predicate(B.op.axis[0] < 3)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i in range(8):
            if i < 3:
                B[i] = A[i] * float32(2.0)
        """
        self._apply(predicates.set_store_predicate, "set_store_predicate", predicate)

    def env_threads(self, threads: ThreadAxis | Sequence[ThreadAxis]) -> None:
        """Name the threads around the steps of a scan.

        They change nothing: loops that are bound to them run one iteration after another in each
        step.

        Args:
            threads: what `te.thread_axis` gives, or a list of such.

        Raises:
            ScheduleError: the stage is no scan, or something is no thread axis.

        >>> from tecomp import te
        >>> X = te.placeholder((5, 4), name="X")
        >>> state = te.placeholder((5, 4), name="state")
        >>> first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
        >>> step = te.compute((5, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
        >>> sums = te.scan(first, step, state, inputs=[X], name="sums")
        >>> s = te.create_schedule(sums)
        >>> s[sums].env_threads(te.thread_axis("threadIdx.x"))
        """
        predicates.check_env_threads(self._state, threads)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: int) -> None:
        """Fetch to the caches what a loop reads of a tensor, some iterations before it is read.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                C[i] = A[8 * i]                 prefetch(A[min(8 * (i + offset), last)])
                                                C[i] = A[8 * i]

        Where `var` runs past its end, the last elements are asked for. A second call for the same
        tensor and loop replaces the first.

        Args:
            tensor: what the stage reads.
            var: a loop of this stage.
            offset: iterations of `var`, 0 or more.

        Raises:
            ScheduleError: the stage does not read the tensor, `var` is no loop of it, or the offset
                is no count of iterations.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8, 16), name="A")
        >>> B = te.compute((8,), lambda i: A[i, 0] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].prefetch(A, B.op.axis[0], 2)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i in range(8):
            prefetch(A[min(i + 2, 7), 0])
            B[i] = A[i, 0] * float32(2.0)
        """
        given = _tensor(tensor, f"s[{self._state.name}].prefetch")
        self._apply(hints.prefetch, "prefetch", given, var, offset)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: int | None = None) -> None:
        """Set a pragma of a loop.

        `auto_unroll_max_step`: the loops inside of it that have a fixed number of iterations are
        written out, inner ones first, up to so many statements each. `unroll_explicit`: loops that
        are unrolled are written out in the IR, as they always are. `parallel_launch_point`,
        `parallel_stride_pattern` and `parallel_barrier_when_finish` are taken and change nothing:
        threads wait for work from call to call, share iterations in pieces, and finish together.
        `unroll` and `vectorize` are the primitives of these names.

        Args:
            var: a loop of this stage; when it is split or fused, its pragmas are gone.
            pragma_type: the name of the pragma.
            pragma_value: its value, for those that have one.

        Raises:
            ScheduleError: there is no such pragma, it has no such value, or `var` is no loop of the
                stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((2, 2), name="A")
        >>> B = te.compute((2, 2), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].pragma(B.op.axis[0], "auto_unroll_max_step", 8)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i in range(2):
            for j in unrolled(2):
                B[i, j] = A[i, j] * float32(2.0)
        """
        values = () if pragma_value is None else (pragma_value,)
        self._apply(hints.pragma, "pragma", var, pragma_type, *values)

    def transform_layout(
        self, mapping_function: object, pad_value: object = None, loops: str = "physical"
    ) -> tuple[IterVar, ...]:
        """Store the tensor at `mapping_function(*index)`, and compute it in that order.

        For a computed `B[16, 64]` and `lambda i, j: [j, i]`::

            for i in range(16):               for j in range(64):
                for j in range(64):    ->         for i in range(16):
                    B[i, j] = ...                     B'[j, i] = ...

        A second call starts from the axes that the first one made, and composes; a composed map
        counts as a call for each of its parts. Axis separators are kept until a later call has its
        own.

        Args:
            mapping_function: a function of the indices that gives a list of physical ones (with
                `te.AXIS_SEPARATOR` between axes of memory), an `IndexMap` or a named layout.
            pad_value: a number, or a function of the physical indices, which is written to places
                that the map leaves without an element; without it they are never read.
            loops: `logical` leaves the loops as they are, and so does a scan: what a step reads has
                to be computed before. A te.extern has none.

        Returns:
            The loops that the map made: none for a placeholder, the current ones with
            `loops="logical"` and for a scan.

        Raises:
            LayoutError: the map is not injective, negative somewhere, not quasi-affine, or of
                another arity.
            ScheduleError: the axes have been split or fused, so that their order is fixed.

        Source:
            transform_layout RFC.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16, 64), name="A")
        >>> B = te.compute((16, 64), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> axes = s[B].transform_layout(lambda i, j: [j // 16, i, j % 16])
        >>> [axis.extent for axis in axes]
        [4, 16, 16]
        >>> print(tecomp.lower(s, [A, B], stop_after="apply_buffer_transforms").body)
        for j_outer in range(4):
            for i in range(16):
                for j_inner in range(16):
                    B[j_outer, i, j_inner] = A[i, j_outer * 16 + j_inner] * float32(2.0)
        """
        kwargs: dict[str, Any] = {} if is_one_of(loops, ("physical",)) else {"loops": loops}
        is_computed = bool(self.op.input_tensors)
        if pad_value is None and is_computed and isinstance(mapping_function, NamedLayout):
            pad_value = mapping_function.pad_value
        if pad_value is not None:
            kwargs["pad_value"] = pad_value
        made: tuple[IterVar, ...] = self._apply(
            transform_layout, "transform_layout", mapping_function, **kwargs
        )
        return made

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Compute a loop and all inside it by an operation of the machine.

        Before and after::

            for i in range(16):            ->    the statements of the intrinsic, on the parts of
                for j in range(16):              A, B and C that these loops touch
                    for k in range(16):
                        C[...] += A[...] * B[...]

        Whether the loops compute what the intrinsic does is decided when the schedule is lowered,
        by what they read and write and not by how they are written: axes may be permuted, fused or
        split, operands exchanged, transposed or in any layout.

        Args:
            var: a loop of this stage.
            tensor_intrin: what `te.decl_tensor_intrin` or `tecomp.intrinsics(target)` gives.

        Raises:
            ScheduleError: `var` is no loop of this stage, or `tensor_intrin` no intrinsic of its
                types.

        >>> import tecomp
        >>> from tecomp import te
        >>> a = te.placeholder((4,), "float32", "a")
        >>> twice = te.compute((4,), lambda i: a[i] * 2.0, name="twice")
        >>> vtwice = te.decl_tensor_intrin(twice.op, lambda ins, outs: outs[0].vstore(
        ...     0, ins[0].vload(0, "float32x4") * 2.0), name="vtwice")
        >>> A = te.placeholder((8,), "float32", "A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B].tensorize(inner, vtwice)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i_outer in range(2):
            B[i_outer * 4] = A[i_outer * 4] * float32(2.0)
            B[i_outer * 4 + 1] = A[i_outer * 4 + 1] * float32(2.0)
            B[i_outer * 4 + 2] = A[i_outer * 4 + 2] * float32(2.0)
            B[i_outer * 4 + 3] = A[i_outer * 4 + 3] * float32(2.0)
        """
        self._apply(tensorize, "tensorize", var, tensor_intrin)

    def _mark(self, name: str, axis: IterVar, kind: ForKind) -> None:
        def primitive(state: State, key: Operation, marked: IterVar) -> tuple[State, None]:
            return loops.mark(state, key, marked, kind)

        self._apply(primitive, name, axis)

    def _apply(
        self, primitive: Callable[..., tuple[State, Any]], name: str, *args: Any, **kwargs: Any
    ) -> Any:
        return self._schedule._apply(primitive, name, self._key, args, kwargs)


def _results(relation: Relation) -> tuple[IterVar, ...]:
    match relation:
        case Split(_, outer, inner):
            return (outer, inner)
        case Fuse(_, fused):
            return (fused,)
    return relation.after


def _tensor(value: object, where: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise ScheduleError(f"{where}: expected a tensor, got {value!r}", kind="wrong-argument")
