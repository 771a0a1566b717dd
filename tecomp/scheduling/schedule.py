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

    Attributes:
        state: the decisions, a frozen value; a primitive replaces it.
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

    def __getitem__(self, handle: Handle) -> Stage:
        """The stage that computes a tensor.

        Raises:
            ScheduleError: the schedule has no such stage.
        """
        return Stage(self, self.state.stage(_operation(handle, "s[...]")).key)

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

        Raises:
            ScheduleError: there is none.
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
        """Put the stages between some tensors into a group; see `groups.create_group`."""
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
        """Compute a group inside loop `scope` of `parent`, or at the root; see `groups`."""
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
        """Copy `tensor` into memory `scope`, to be read by `readers`; see `caches.cache_read`."""
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
        """Compute `tensor` in memory `scope` first and copy it; see `caches.cache_write`."""
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
        """Partial results for each iteration of a reduction loop; see `caches.rfactor`."""
        arguments = (_tensor(tensor, "s.rfactor"), axis, factor_axis)
        made: Tensor | tuple[Tensor, ...] = self._apply(
            caches.rfactor, "rfactor", None, arguments, {} if order is None else {"order": order}
        )
        return made

    def cache_factor(self, tensor: Tensor, factors: int | Sequence[int], scope: str) -> Tensor:
        """Compute factors of a reduction's terms first; see `factors.cache_factor`."""
        where = "s.cache_factor"
        many = list(factors) if isinstance(factors, list | tuple) else [factors]
        check_list(many, int, f"{where}: factors", "give numbers from 0 on", ScheduleError)
        made: Tensor = self._apply(
            cache_factor, "cache_factor", None, (_tensor(tensor, where), many, scope))
        return made

    def cache_terms(
        self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]
    ) -> Tensor:
        """Compute a reduction's terms first, once for all that do; see `terms.cache_terms`."""
        many = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(_operation(r, "s.cache_terms")).key for r in many]
        made: Tensor = self._apply(
            cache_terms, "cache_terms", None, (_tensor(tensor, "s.cache_terms"), scope, keys)
        )
        return made

    def cache_repeated(self, tensor: Tensor, axis: IterVar, scope: str) -> Tensor:
        """Compute what a formula repeats along an axis first; see `repeated.cache_repeated`."""
        arguments = (_tensor(tensor, "s.cache_repeated"), axis, scope)
        made: Tensor = self._apply(cache_repeated, "cache_repeated", None, arguments)
        return made

    def merge_reduction(self, tensor: Tensor) -> None:
        """Reduce the terms of the reduction whose elements one reduces; see `merge`."""
        self._apply(merge_reduction, "merge_reduction", None,
                    (_tensor(tensor, "s.merge_reduction"),))

    def merge_formula(self, tensor: Tensor) -> None:
        """Make a formula part of what reads it; see `merge.merge_formula`."""
        self._apply(merge_formula, "merge_formula", None, (_tensor(tensor, "s.merge_formula"),))

    def narrow_reduction(self, tensor: Tensor, dtype: str) -> Tensor:
        """Reduce integers in a narrower type; see `narrow.narrow_reduction`."""
        where = "s.narrow_reduction"
        made: Tensor = self._apply(
            narrow_reduction, "narrow_reduction", None, (_tensor(tensor, where), dtype))
        return made

    def into_dots(
        self, tensor: Tensor, axis: IterVar, first: str, second: str
    ) -> tuple[Tensor, ...]:
        """Put neighbouring terms of a sum of products together; see `dots.into_dots`."""
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
    """Stages that are computed in one place: `s.create_group(...)`."""

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
        """Compute its stages inside loop `scope` of `parent`; see `groups.place_group`."""
        self._schedule.place_group(self, parent, scope)

    def compute_root(self) -> None:
        """Compute its stages where the group around is, or once."""
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
    """One stage of a schedule: `s[T]`; equal to what `s[T]` gives again."""

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

    def split(
        self,
        parent: IterVar,
        factor: Extent | None = None,
        nparts: Extent | None = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Cut a loop into an outer and an inner one; see `loops.split`."""
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
        """Make one loop of adjacent ones; see `loops.fuse`."""
        made: IterVar = self._apply(loops.fuse, "fuse", *axes)
        return made

    def reorder(self, *axes: IterVar) -> None:
        """Put loops in the order given; see `loops.reorder`."""
        self._apply(loops.reorder, "reorder", *axes)

    def tile(
        self,
        x_parent: IterVar,
        y_parent: IterVar,
        x_factor: Extent,
        y_factor: Extent,
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops; returns x outer, y outer, x inner, y inner; see `loops.tile`."""
        made: tuple[IterVar, IterVar, IterVar, IterVar] = self._apply(
            loops.tile, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return made

    def vectorize(self, var: IterVar) -> None:
        """Run a loop as vector operations; see `loops.mark`."""
        self._mark("vectorize", var, ForKind.VECTORIZED)

    def unroll(self, var: IterVar) -> None:
        """Write a loop out; see `loops.mark`."""
        self._mark("unroll", var, ForKind.UNROLLED)

    def parallel(self, var: IterVar) -> None:
        """Share a loop among threads; see `loops.mark`."""
        self._mark("parallel", var, ForKind.PARALLEL)

    def bind(self, ivar: IterVar, thread_ivar: ThreadAxis | str) -> None:
        """Bind a loop to a thread axis; see `loops.bind`."""
        tag = thread_ivar
        if isinstance(thread_ivar, ThreadAxis):
            tag = thread_ivar.tag
            loops.check_threads(self._schedule.state, self._key, ivar, tag, thread_ivar.extent)
        self._apply(loops.bind, "bind", ivar, tag)

    def compute_at(self, parent: Stage | Handle, scope: IterVar | ThreadAxis) -> None:
        """Compute this stage inside loop `scope` of `parent`; see `place.compute_at`.

        A thread axis stands for the loop that is bound to it.
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
        """Write this stage's expression where it is read; see `place.compute_inline`."""
        self._apply(place.compute_inline, "compute_inline")

    def expand(self) -> None:
        """Compute this stage by loops, not by the intrinsic that it calls; see `place.expand`."""
        self._apply(place.expand, "expand")

    def compute_root(self) -> None:
        """Compute this stage once, before its first consumer."""
        self._apply(place.compute_root, "compute_root")

    def set_scope(self, scope: str) -> None:
        """Keep this stage's elements in memory `scope`."""
        self._apply(place.set_scope, "set_scope", scope)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Make the stride of `axis` equal `offset` modulo `factor`; see `place.storage_align`."""
        self._apply(place.storage_align, "storage_align", axis, factor, offset)

    def double_buffer(self) -> None:
        """Compute the next iteration's elements before this one's; see `place.double_buffer`."""
        self._apply(place.double_buffer, "double_buffer")

    def rolling_buffer(self) -> None:
        """Keep what the last iteration of the loop around computed; see `place.rolling_buffer`."""
        self._apply(place.rolling_buffer, "rolling_buffer")

    def set_store_predicate(self, predicate: Expr) -> None:
        """Store elements where a condition holds; see `predicates.set_store_predicate`."""
        self._apply(predicates.set_store_predicate, "set_store_predicate", predicate)

    def env_threads(self, threads: ThreadAxis | Sequence[ThreadAxis]) -> None:
        """Name the threads around the steps of a scan; see `predicates.check_env_threads`."""
        predicates.check_env_threads(self._state, threads)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: int) -> None:
        """Have what loop `var` reads of `tensor` fetched `offset` iterations before it is read.

        See `hints.prefetch`.
        """
        given = _tensor(tensor, f"s[{self._state.name}].prefetch")
        self._apply(hints.prefetch, "prefetch", given, var, offset)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: int | None = None) -> None:
        """Set a pragma of a loop; see `hints.pragma`."""
        values = () if pragma_value is None else (pragma_value,)
        self._apply(hints.pragma, "pragma", var, pragma_type, *values)

    def transform_layout(
        self, mapping_function: object, pad_value: object = None, loops: str = "physical"
    ) -> tuple[IterVar, ...]:
        """Store the tensor at `mapping_function(*index)`; see `layout.transform_layout`."""
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
        """Compute a loop and all inside it by an operation of the machine; see `tensorize`."""
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
