"""Automatic scheduling: knobs of schedules, their choices, and the records that decide them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from tecomp.compute.tensor import Tensor
from tecomp.errors import CacheError, ScheduleError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.lazy_imports import load_upward
from tecomp.machine.descriptor import Target
from tecomp.progress import log_debug, log_duration
from tecomp.scheduling.schedule import Schedule

if TYPE_CHECKING:
    from tecomp.layout.core.layout import Layout
    from tecomp.poly.maps.index_map import IndexMap

Value: TypeAlias = "bool | int | float | str | None"
"""Value of a knob."""
Result = TypeVar("Result")
Option = TypeVar("Option", bound="bool | int | float | str | None")
_KINDS = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Knob:
    """Parameter of a schedule, with the values that a tuner may choose.

    Attributes:
        name: Name, which is unique in a schedule.
        values: Possible values; the first one is the default.

    >>> print(Knob("tile", (8, 16, 32)))
    tile: 8 | 16 | 32
    """

    name: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.name}: " + " | ".join(map(str, self.values))


class Choices:
    """Values of the knobs of one schedule, and the search space that the schedule spans.

    A schedule function requests values with `knob` while `run` calls it. The knobs are recorded in
    this order, with the values that they got, so that the function is the only description of its
    search space. Values may decide which knobs follow.

    Attributes:
        requested: Values by name; knobs without an entry, and knobs that do not have the value, get
            their first value.
        knobs: Knobs that the schedule function requested, in order.
        values: Values of these knobs.

    Raises:
        ScheduleError: If `requested` is not a mapping.

    >>> choices = Choices({"tile": 16})
    >>> choices.requested
    {'tile': 16}
    >>> choices.run(lambda: (knob("tile", [8, 16]), knob("unroll", [False, True])))
    (16, False)
    >>> [*choices.knobs], choices.values
    (['tile', 'unroll'], {'tile': 16, 'unroll': False})
    >>> print(choices)
    tile = 16 of 8 | 16
    unroll = False of False | True
    """

    __slots__ = ("_prefix", "knobs", "requested", "values")

    def __init__(self, requested: Mapping[str, Value] = MappingProxyType({})) -> None:
        check_kind(
            requested, Mapping, "Choices: requested", "pass values by the name of their knob",
            ScheduleError,
        )
        self.requested = dict(requested)
        self.knobs: dict[str, Knob] = {}
        self.values: dict[str, Value] = {}
        self._prefix = ""

    def __repr__(self) -> str:
        return f"Choices({self.changed or self.requested})"

    def __str__(self) -> str:
        return "\n".join(
            f"{name} = {self.values[name]} of {str(one).partition(': ')[2]}"
            for name, one in self.knobs.items()
        )

    @property
    def changed(self) -> dict[str, Value]:
        """Values that differ from the default of their knob.

        >>> choices = Choices({"tile": 16, "unroll": False})
        >>> _ = choices.run(lambda: (knob("tile", [8, 16]), knob("unroll", [False, True])))
        >>> choices.changed, choices.values, [*choices.knobs], choices.requested["tile"]
        ({'tile': 16}, {'tile': 16, 'unroll': False}, ['tile', 'unroll'], 16)
        """
        return {
            name: value for name, value in self.values.items()
            if not _is_same(value, self.knobs[name].values[0])
        }

    @classmethod
    def active(cls) -> Choices:
        """Return the choices whose `run` is in progress, or new choices without values.

        >>> choices = Choices()
        >>> choices.run(Choices.active) is choices, Choices.active() is choices
        (True, False)
        """
        return _ACTIVE.get() or cls()

    @staticmethod
    def is_active() -> bool:
        """Return whether the `run` of some choices is in progress.

        >>> Choices.is_active(), Choices().run(Choices.is_active)
        (False, True)
        """
        return _ACTIVE.get() is not None

    def run(self, function: Callable[..., Result], *args: object, **options: object) -> Result:
        """Call a schedule function, whose knobs get the values of these choices.

        >>> Choices({"tile": 16}).run(knob, "tile", [8, 16])
        16
        """
        token = _ACTIVE.set(self)
        try:
            return function(*args, **options)
        finally:
            _ACTIVE.reset(token)

    def choose(self, name: str, values: Sequence[Option]) -> Option:
        """Return the value of a knob, and record the knob.

        >>> Choices({"tile": 16}).choose("tile", [8, 16])
        16
        """
        full = self._prefix + name
        known = tuple(dict.fromkeys((type(value), value) for value in values))
        options = [value for _, value in known]
        if len(options) == 1:
            return options[0]
        self.knobs.setdefault(full, Knob(full, tuple(options)))
        requested = self.requested.get(full, options[0])
        found = next((value for value in options if _is_same(value, requested)), options[0])
        self.values.setdefault(full, found)
        return found

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Prefix the names of knobs with the name of the part of a program that requests them.

        >>> choices = Choices()
        >>> with choices.within("3"):
        ...     _ = choices.choose("tile", [8, 16])
        >>> [*choices.knobs]
        ['3.tile']
        """
        before, self._prefix = self._prefix, f"{name}."
        try:
            yield
        finally:
            self._prefix = before

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget the knobs that a part of a schedule requested if it raises an error.

        >>> choices = Choices()
        >>> try:
        ...     with choices.attempt():
        ...         _ = choices.choose("tile", [8, 16])
        ...         raise ValueError
        ... except ValueError:
        ...     print(choices.knobs)
        {}
        """
        known = len(self.knobs)
        try:
            yield
        except BaseException:
            for name in [*self.knobs][known:]:
                del self.knobs[name], self.values[name]
            raise


_ACTIVE: ContextVar[Choices | None] = ContextVar("tecomp_choices", default=None)


def _is_same(a: object, b: object) -> bool:
    """Return whether two values are equal, and not merely `True == 1`."""
    return type(a) is type(b) and a == b


def knob(name: str, values: Sequence[Option]) -> Option:
    """Return a value for a parameter of a schedule, which `tecomp.tune` may choose.

    While a schedule is tuned, the tuner chooses the value. In `tecomp.build` of a schedule
    function, the value is that of the best record of the tuning database. Otherwise it is the first
    value.

    Args:
        name: Name of the parameter, the same name for the same decision.
        values: Possible values: ints, floats, strings, booleans or None. The first value is the
            default.

    Raises:
        ScheduleError: If the name is not a string, or `values` is not a non-empty list of such
            values.

    >>> from tecomp import te
    >>> A = te.placeholder((256,), name="A")
    >>> B = te.compute((256,), lambda i: A[i] * 2.0, name="B")
    >>> def schedule():
    ...     s = te.create_schedule(B)
    ...     _, lane = s[B].split(B.op.axis[0], factor=knob("lanes", [8, 16, 32]))
    ...     s[B].vectorize(lane)
    ...     return s
    >>> schedule()[B].leaf_iter_vars[1].extent
    8
    >>> Choices({"lanes": 32}).run(schedule)[B].leaf_iter_vars[1].extent
    32
    """
    is_list = isinstance(values, list | tuple) and bool(values)
    if not isinstance(name, str) or not is_list or not all(type(x) in _KINDS for x in values):
        raise ScheduleError(
            "knob: {name!r} must be a string with a list of numbers, strings, booleans or None, "
            "got {values!r}",
            kind="invalid-type", name=name, values=values,
        )
    active = _ACTIVE.get()
    return values[0] if active is None else active.choose(name, values)


DATABASE = "TECOMP_TUNING"
"""Environment variable with the path of the tuning database, or `off`."""
_DATABASE: ContextVar[Path | None] = ContextVar("tecomp_tuning_database", default=None)


def is_program(value: object) -> bool:
    """Return whether a value is a tensor or a non-empty list of tensors."""
    values = value if isinstance(value, list | tuple) else [value]
    return bool(values) and all(isinstance(item, Tensor) for item in values)


@cache
def _default_database() -> Path:
    # Import lazily: a set variable makes the library unnecessary.
    import platformdirs

    return platformdirs.user_data_path("tecomp") / "tuning.sqlite"


def database_path() -> Path | None:
    """Return the path of the tuning database, which may not exist; None if it is off.

    The path is that of `use_database`, else that of the environment variable `TECOMP_TUNING`, else
    a file in the data folder of the user.
    """
    if (requested := _DATABASE.get()) is not None:
        return requested
    path = os.environ.get(DATABASE, "")
    if path == "off":
        return None
    return Path(path) if path else _default_database()


@contextmanager
def use_database(path: str | Path | None, where: str) -> Iterator[None]:
    """Consult the tuning database of a path, or the default database if it is None.

    Args:
        path: Path of an existing database, or None.
        where: Function for error messages.

    Raises:
        CacheError: If the path is not a path, or there is no such file.
    """
    check_kind(
        path, str | os.PathLike | None, f"{where}: database", "pass the path of a file", CacheError)
    if path is None:
        yield
        return
    if not Path(path).is_file():
        raise CacheError(
            "{where}: tuning database {path} not found; tecomp.tune creates it, or omit database",
            kind="tuning-database", where=where, path=path,
        )
    token = _DATABASE.set(Path(path))
    try:
        yield
    finally:
        _DATABASE.reset(token)


@dataclass(frozen=True)
class SchedulingProblem:
    """Arguments of the automatic scheduler.

    Attributes:
        outputs: Output tensors.
        target: Target of the schedule.
        layouts: Layouts of tensors.
        division: Work division among cores, by tensor.
        strides: Strides of argument tensors.
        near: Tensors that stay resident in the scratchpads of cores.
        bounds: Expected upper bounds of symbolic sizes, which only affect performance.
        constants: Arguments that are equal in every call.
    """

    outputs: tuple[Tensor, ...]
    target: Target
    layouts: Mapping[Tensor, Layout | IndexMap] = field(default_factory=dict)
    division: Mapping[Tensor, Any] = field(default_factory=dict)
    strides: Mapping[Tensor, Sequence[Extent]] = field(default_factory=dict)
    near: tuple[Tensor, ...] = ()
    bounds: Mapping[Var, int] = field(default_factory=dict)
    constants: tuple[Tensor, ...] = ()

    def find_choices(self, *extra: str) -> Mapping[str, Value]:
        """Return the values of knobs in the tuning database; empty if there is no record.

        Args:
            extra: Names that distinguish the record from that of the automatic scheduler.

        Raises:
            CacheError: If the database is damaged.
        """
        path = database_path()
        if path is None or not path.exists():
            return {}
        found: Mapping[str, Value] = load_upward("driver.tuning").find_choices(path, self, *extra)
        return found

    def schedule(self) -> Schedule:
        """Run the automatic scheduler; its knobs get the values of the active choices."""
        hints = {name: getattr(self, name) for name in ("bounds", "constants")}
        hints = {name: value for name, value in hints.items() if value}
        schedule: Schedule = load_upward("driver.scheduler")(
            self.outputs, self.target, self.layouts, self.division, self.strides, self.near,
            **hints)
        return schedule


def schedule_with_record(function: Callable[[], object], target: Target) -> Any:
    """Call a schedule function; its knobs get the values of its record in the tuning database.

    Args:
        function: Function without parameters that returns a schedule, or a schedule with its
            arguments.
        target: Target of the schedule.
    """
    choices = Choices()
    schedule = choices.run(function)
    (found,) = (schedule[:1] if isinstance(schedule, tuple) and schedule else (schedule,))
    if choices.knobs and isinstance(found, Schedule):
        problem = problem_of(found, target)
        if known := problem.find_choices(name_of(function)):
            return Choices(known).run(function)
    return schedule


def problem_of(schedule: Schedule, target: Target) -> SchedulingProblem:
    """Return the definition that a schedule was created for, before any primitive changed it."""
    return SchedulingProblem(
        tuple([x for op in schedule.outputs for x in op.outputs]), target)


def name_of(function: Callable[[], object]) -> str:
    """Return the name of a schedule function, which distinguishes its records."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def records_state() -> str:
    """Return a text that changes with the records of the tuning database; empty without one."""
    path = database_path()
    if path is None or not path.exists():
        return ""
    found: str = load_upward("driver.tuning").records_state(path)
    return found


def build_default_schedule(
    outputs: Tensor | Sequence[Tensor], target: Target,
    layouts: Mapping[Tensor, Layout | IndexMap] = MappingProxyType({}),
    division: Mapping[Tensor, Any] = MappingProxyType({}),
    strides: Mapping[Tensor, Sequence[Extent]] = MappingProxyType({}),
    near: Collection[Tensor] = (),
    bounds: Mapping[Var, int] = MappingProxyType({}),
    constants: Collection[Tensor] = (),
    choices: Mapping[str, Value] | None = None,
) -> Schedule:
    """Return the automatic schedule of outputs.

    Args:
        outputs: Output tensor or tensors.
        target: Target of the schedule.
        layouts: Layouts of tensors.
        division: Work division among cores, by tensor.
        strides: Strides of argument tensors.
        near: Tensors that stay resident in the scratchpads of cores.
        bounds: Expected upper bounds of symbolic sizes, which only affect performance.
        constants: Arguments that are equal in every call.
        choices: Values of knobs. Default: those of the tuner that runs, or of the record in the
            tuning database.
    """
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    names = ", ".join([tensor.name for tensor in tensors if isinstance(tensor, Tensor)])
    with log_duration(f"find a schedule of {names} for {target.name}"):
        problem = SchedulingProblem(
            tuple(cast(Sequence[Tensor], tensors)), target, layouts, division, strides,
            tuple(near), bounds, tuple(constants))
        if choices is None:
            choices = {} if Choices.is_active() else problem.find_choices()
        schedule = Choices(choices).run(problem.schedule) if choices else problem.schedule()
    log_debug(
        "the schedule of %s for %s:\n%s", names, target.name, lambda: str(schedule.trace).rstrip()
    )
    return schedule
