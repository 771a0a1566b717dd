"""Atomic, traced calls of primitives; name resolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import MissingError, ScheduleError
from tecomp.scheduling.state import StageState, State
from tecomp.scheduling.trace import Trace
from tecomp.source_locations import Location, users_call


class ScheduleCalls:
    """The state that calls on a schedule swap, and these calls."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._start = state
        self._calls: tuple[tuple[Any, ...], ...] = ()
        # For each call where the user made it; None where somebody else did.
        self._places: tuple[Location | None, ...] = ()
        # Few schedules are asked for their trace, and its text takes as long as the decisions.
        self._written: tuple[int, Trace] | None = None

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> NoReturn:
            raise MissingError.near("s", name, dir(type(self)), "'Schedule' object")

    @property
    def trace(self) -> Trace:
        """The calls so far, as JSON or Python text that makes the same schedule again."""
        count, trace = self._written or (0, Trace.start(self._start))
        for call in self._calls[count:]:
            trace = trace.then(*call)
        self._written = len(self._calls), trace
        return trace

    @property
    def calls(self) -> tuple[tuple[tuple[Any, ...], Location | None], ...]:
        """The primitives that were called, and where the user called them.

        Each with the states before and after it, its name, its stage, its arguments and its result.
        """
        return tuple(zip(self._calls, self._places, strict=True))

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


class StageCalls:
    """A stage of a schedule, on which primitives are called."""

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
        self, primitive: Callable[..., tuple[State, Any]], name: str, *args: Any, **kwargs: Any
    ) -> Any:
        return self._schedule._apply(primitive, name, self._key, args, kwargs)


def _as_given(value: Any) -> Any:
    """An argument that its owner cannot change afterwards."""
    return tuple(map(_as_given, value)) if isinstance(value, list) else value


Handle: TypeAlias = Tensor | Operation
"""How a stage is named: by its operation or by a tensor that the operation makes."""


def operation_of(handle: object, where: str) -> Operation:
    """The operation that computes what users name a stage by.

    Raises:
        ScheduleError: it is no tensor and no operation.
    """
    if isinstance(handle, Tensor):
        return handle.op
    if isinstance(handle, Operation):
        return handle
    raise ScheduleError(
        f"{where}: expected a tensor or an operation, got {handle!r}", kind="wrong-argument"
    )


def tensor_of(value: object, where: str) -> Tensor:
    """The value, which has to be a tensor.

    Raises:
        ScheduleError: it is none.
    """
    if isinstance(value, Tensor):
        return value
    raise ScheduleError(f"{where}: expected a tensor, got {value!r}", kind="wrong-argument")
