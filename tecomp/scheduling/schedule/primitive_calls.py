"""Atomic, traced primitive calls; resolution of stage handles and of the calls behind errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError, MissingError, ScheduleError, TargetError
from tecomp.scheduling.state import ScheduleState, StageState
from tecomp.scheduling.trace import Trace
from tecomp.source_locations import Location, users_call

Method = TypeVar("Method", bound=Callable[..., Any])

PRIMITIVES: dict[str, Callable[..., Any]] = {}
"""Methods of `Schedule` and `Stage` that a trace records and `replay` calls, by name."""


def primitive(method: Method) -> Method:
    """Declare a method of `Schedule` or `Stage` as a primitive: a trace may contain its calls."""
    PRIMITIVES[method.__name__] = method
    return method


class ScheduleCalls:
    """State of a schedule, and the record of the primitive calls that replaced it."""

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self._start = state
        self._calls: tuple[tuple[Any, ...], ...] = ()
        # Source location of each call in user code; None for calls made by the library.
        self._places: tuple[Location | None, ...] = ()
        # The trace is built lazily: few schedules need one, and building it takes as long as the
        # primitives themselves.
        self._written: tuple[int, Trace] | None = None

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> NoReturn:
            raise MissingError.near("s", name, dir(type(self)), "'Schedule' object")

    @property
    def trace(self) -> Trace:
        """Trace of all calls so far; its JSON or Python text recreates the schedule."""
        count, trace = self._written or (0, Trace.start(self._start))
        for call in self._calls[count:]:
            trace = trace.then(*call)
        self._written = len(self._calls), trace
        return trace

    @property
    def calls(self) -> tuple[tuple[tuple[Any, ...], Location | None], ...]:
        """Recorded primitive calls with their source locations in user code.

        Each call is the tuple (state before, state after, name, stage, positional arguments,
        keyword arguments, result).
        """
        return tuple(zip(self._calls, self._places, strict=True))

    def _apply(
        self,
        primitive: Callable[..., tuple[ScheduleState, Any]],
        name: str,
        stage: Operation | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a primitive; a primitive that raises leaves the state and the trace unchanged."""
        before = self.state
        first = () if stage is None else (stage,)
        state, result = primitive(before, *first, *args, **(kwargs or {}))
        step_args = tuple(map(_as_given, args))
        step_kwargs = {key: _as_given(value) for key, value in (kwargs or {}).items()}
        self._calls = (*self._calls, (before, state, name, stage, step_args, step_kwargs, result))
        self._places = (*self._places, users_call())
        self.state = state
        return result


class StageCalls:
    """Stage of a schedule on which primitives are called."""

    def __init__(self, schedule: ScheduleCalls, key: Operation) -> None:
        self._schedule = schedule
        self._key = key

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> NoReturn:
            known = dir(type(self))
            raise MissingError.near(f"s[{self._key.name}]", name, known, "'Stage' object")

    @property
    def _state(self) -> StageState:
        return self._schedule.state.stage(self._key)

    def _apply(
        self, primitive: Callable[..., tuple[ScheduleState, Any]], name: str, *args: Any,
        **kwargs: Any
    ) -> Any:
        return self._schedule._apply(primitive, name, self._key, args, kwargs)


def _as_given(value: Any) -> Any:
    """Return an immutable copy of an argument: lists become tuples, also nested lists."""
    return tuple(map(_as_given, value)) if isinstance(value, list) else value


Handle: TypeAlias = Tensor | Operation
"""Handle of a stage: its operation, or a tensor that the operation computes."""


def operation_of(handle: object, where: str) -> Operation:
    """Return the operation of a stage handle.

    Raises:
        ScheduleError: If `handle` is neither a tensor nor an operation.
    """
    if isinstance(handle, Tensor):
        return handle.op
    if isinstance(handle, Operation):
        return handle
    raise ScheduleError(
        "{where}: expected a tensor or an operation, got {handle!r}",
        kind="invalid-type", where=where, handle=handle,
    )


def tensor_of(value: object, where: str) -> Tensor:
    """Return `value` after a check that it is a tensor.

    Raises:
        ScheduleError: If `value` is not a tensor.
    """
    if isinstance(value, Tensor):
        return value
    raise ScheduleError(
        "{where}: expected a tensor, got {value!r}",
        kind="invalid-type", where=where, value=value,
    )


_CALL = re.compile(r"s\[([^]]+)\]\.(\w+)")
_UNROLLED = re.compile(r"lower: loop (\S+) is unrolled")
_BUFFER = re.compile(r"(?:.*? are needed at one time \()?([^\s:]+): ")
_INTO_MEMORY = ("set_scope", "cache_read", "cache_write")


@contextmanager
def attach_to_primitives(schedule: ScheduleCalls) -> Iterator[None]:
    """Set the location of lowering errors to the primitive call that caused them.

    The call is identified by the start of the message: `s[B].compute_at(...)`, an unrolled loop, or
    the name of a buffer in a memory of the target.
    """
    try:
        yield
    except (LowerError, TargetError) as error:
        if (location := _error_location(schedule, error)) is not None:
            error.location = location
        raise


def _error_location(schedule: ScheduleCalls, error: LowerError | TargetError) -> Location | None:
    message = error.message
    if found := _CALL.match(message):
        return last_primitive_call(schedule, found[2], found[1])
    if found := _UNROLLED.match(message):
        return last_primitive_call(schedule, "unroll", found[1]) or last_primitive_call(
            schedule, "pragma", found[1]
        )
    if isinstance(error, TargetError) and (found := _BUFFER.match(message)):
        # A message about several buffers that are live together names the largest one first.
        locations = (last_primitive_call(schedule, call, found[1]) for call in _INTO_MEMORY)
        return next((location for location in locations if location is not None), None)
    return None


def last_primitive_call(schedule: ScheduleCalls, call: str, name: str) -> Location | None:
    """Return the location of the last call of a primitive on a stage, tensor or loop by name."""
    location: Location | None
    for (_, after, primitive, stage, args, _, result), location in reversed(schedule.calls):
        stage_names = [] if stage is None else [after.stage(stage).name]
        names = {*stage_names, *_names((*args, result))}
        # Buffer names are Python identifiers, so compare with sanitized names too.
        if primitive == call and name in names | {re.sub(r"\W", "_", known) for known in names}:
            return location
    return None


def _names(values: tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, tuple):
            yield from _names(value)
        elif isinstance(value, Tensor | IterVar):
            yield value.name
