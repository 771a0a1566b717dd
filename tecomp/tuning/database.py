"""Tuning database in SQLite: what is tuned, its keys, its best choices, and all trials."""

from __future__ import annotations

import getpass
import json
import math
import platform
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tecomp.atomic_writes import file_replacement
from tecomp.codegen.llvm.code_cache import digest
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.codegen.llvm.jit import host
from tecomp.compute.define import placeholder
from tecomp.compute.expression_analysis import substitute_inputs
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import Choices, SchedulingProblem, Value, name_of, problem_of
from tecomp.driver.build_cache import BuildRequest
from tecomp.driver.program_api import TuningTrial
from tecomp.errors import CacheError, ScheduleError
from tecomp.ir.nodes.expr import Var
from tecomp.ir.traversal.serialization import NotSerializableError, Word, encode
from tecomp.machine.components import Rates
from tecomp.machine.descriptor import Target
from tecomp.scheduling.schedule import Schedule
from tecomp.source_locations import Location

if TYPE_CHECKING:
    from tecomp.graph.kernels import KernelDefinition

_APPLICATION_ID, _VERSION = 0x7EC0517E, 1
"""Numbers in the head of the file, which distinguish tuning databases from other files."""
_HEAD = b"SQLite format 3\x00"
_BUSY_SECONDS = 30.0
"""Time for which a writer waits for other writers."""
_FORM = "tecomp tuning records 1"
_TABLES = """
CREATE TABLE records (
    key TEXT NOT NULL, machine TEXT NOT NULL, structure TEXT NOT NULL, sizes TEXT NOT NULL,
    name TEXT NOT NULL, processor TEXT NOT NULL, choices TEXT NOT NULL, cost REAL NOT NULL,
    first REAL NOT NULL, unit TEXT NOT NULL, author TEXT NOT NULL, time REAL NOT NULL,
    PRIMARY KEY (key, machine)
);
CREATE INDEX structures ON records (machine, structure);
CREATE TABLE trials (
    key TEXT NOT NULL, machine TEXT NOT NULL, choices TEXT NOT NULL, outcome TEXT NOT NULL,
    ratio REAL, message TEXT NOT NULL, author TEXT NOT NULL, time REAL NOT NULL,
    PRIMARY KEY (key, machine, choices)
);
"""


@dataclass(frozen=True, slots=True)
class TuningKey:
    """Key of a tuning record.

    Attributes:
        definition: Digest of the definition, without names and source locations.
        machine: Digest of the target and of the processor.
        structure: Digest of the definition without its sizes.
        sizes: Numbers in the definition, in order.
    """

    definition: str
    machine: str
    structure: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """Best choices of a definition on a machine.

    Attributes:
        key: Digest of the definition.
        machine: Digest of the target and of the processor.
        structure: Digest of the definition without its sizes.
        sizes: Numbers in the definition.
        name: Name of the tuned kernel.
        processor: Target and processor.
        choices: Values of knobs that differ from their default.
        cost: Time or modelled cycles of a call with these choices.
        first: Time or modelled cycles of a call with the default choices.
        unit: "seconds" or "cycles".
        author: User and host that tuned the kernel.
        time: Seconds since 1970.
    """

    key: str
    machine: str
    structure: str
    sizes: tuple[int, ...]
    name: str
    processor: str
    choices: Mapping[str, Value]
    cost: float
    first: float
    unit: str
    author: str
    time: float


def key_of(problem: SchedulingProblem, *extra: str) -> TuningKey | None:
    """Return the key of a problem; None if its definition cannot be serialized.

    Args:
        problem: Outputs with their target and layouts.
        extra: Further strings that distinguish the record, such as the name of a schedule function.
    """
    operations = _operations(problem.outputs)
    inputs = [op.output(0) for op in operations if not op.input_tensors]
    operations = [op for op in operations if op.input_tensors]
    numbers = {x: k for k, x in enumerate([*inputs, *(y for op in operations for y in op.outputs)])}
    unnamed = {x: placeholder(x.shape, x.dtype, f"t{k}") for k, x in enumerate(inputs)}
    subst = substitute_inputs(operations, unnamed, change=_without_name)
    tensors = tuple(subst.get(x, x) for x in problem.outputs)
    known = [(numbers[x], x) for x in numbers]
    context = [
        [(k, str(problem.layouts[x])) for k, x in known if x in problem.layouts],
        [(k, repr(problem.division[x])) for k, x in known if x in problem.division],
        [(k, str(problem.strides[x])) for k, x in known if x in problem.strides],
        [k for k, x in known if x in problem.near],
        [k for k, x in known if x in problem.constants],
        [(bound.name, value) for bound, value in problem.bounds.items()], list(extra),
    ]
    variables: dict[Var, int] = {}

    def number(var: Var) -> Word:
        return f"var {variables.setdefault(var, len(variables))} {var.dtype}"

    try:
        words = encode(tensors, {Location: lambda _: None, Var: number})
        machine = encode(problem.target, {Rates: lambda _: None})
    except NotSerializableError:
        return None
    axes = [axis for op in operations for axis in (*_axes(op, "axis"), *_axes(op, "reduce_axis"))]
    names = {f"'{axis.name}": f"'axis {k}" for k, axis in reversed([*enumerate(axes)])}
    words = [names.get(word, word) if isinstance(word, str) else word for word in words]
    # Booleans are no sizes, though they are ints.
    sizes = tuple(word for word in words if type(word) is int)
    masked = ["size" if type(word) is int else word for word in words]
    processor = [host().cpu, host().features] if problem.target.code.kind == "host" else []
    return TuningKey(
        digest(words, context), digest(machine, processor), digest(masked, context), sizes)


def _axes(op: Operation, name: str) -> Sequence[Any]:
    return getattr(op, name, ())


def _without_name(op: Operation) -> Operation:
    return replace(op, name="s") if isinstance(op, ComputeOp) else op


def _operations(outputs: Sequence[Tensor]) -> list[Operation]:
    """Return the operations of a program, producers first."""
    found: dict[Operation, None] = {}
    pending = [(x.op, False) for x in reversed(outputs)]
    while pending:
        op, is_complete = pending.pop()
        if is_complete:
            found[op] = None
        elif op not in found:
            pending.append((op, True))
            pending += [(x.op, False) for x in reversed(op.input_tensors)]
    return [*found]


def processor_of(target: Target) -> str:
    """Return a description of the target and the processor."""
    return f"{target.name} ({host().cpu})" if target.code.kind == "host" else target.name


def author() -> str:
    """Return the user and the host that records are attributed to."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no entry for the user
        user = "unknown"
    return f"{user}@{platform.node()}"


class TuningDatabase:
    """Records and trials in a SQLite file, which several processes may write at the same time."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        """Open a database.

        Args:
            path: Path of the file.
            create: Whether the file is created if it does not exist. Default: False.

        Raises:
            CacheError: If the file does not exist, cannot be opened, or is not a tuning database.
        """
        self.path = Path(path)
        if create:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                self._fail(error.strerror or str(error))
        try:
            with self.path.open("rb") as file:
                head = file.read(len(_HEAD))
        except FileNotFoundError:
            head = b""
        except OSError as error:
            self._fail(error.strerror or str(error))
        if head not in (b"", _HEAD):  # SQLite would overwrite files that are shorter than its head
            self._fail("file is not a database")
        mode = "rwc" if create else "rw"
        with self._errors():
            self._connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_SECONDS,
                isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._check(create=create)
        except CacheError:
            self.close()
            raise

    def _check(self, *, create: bool) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if create and application == 0:
            self._create()
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION_ID or version != _VERSION:
            self._fail("it is another kind of file, or of another version")

    def _create(self) -> None:
        """Create the tables, unless another process does or the file has other content."""
        count_tables = "SELECT count(*) FROM sqlite_master"
        if self._connection.execute(count_tables).fetchone()[0]:
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            if self._connection.execute(count_tables).fetchone()[0]:
                return
            for statement in _TABLES.strip().split(";\n"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _fail(self, reason: str) -> NoReturn:
        raise CacheError(
            "tuning database {path} cannot be used: {reason}; pass another path, or move the file "
            "away",
            kind="tuning-database", path=self.path, reason=reason,
        ) from None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except CacheError:
            raise
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            self._fail(str(error))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def __enter__(self) -> TuningDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find(self, key: TuningKey) -> TuningRecord | None:
        """Return the record of a key, or None."""
        found = self._select("WHERE key = ? AND machine = ?", key.definition, key.machine)
        return found[0] if found else None

    def nearby(self, key: TuningKey, count: int) -> list[TuningRecord]:
        """Return records of the same definition with other sizes, the most similar sizes first."""
        found = self._select("WHERE machine = ? AND structure = ?", key.machine, key.structure)
        others = [x for x in found if x.key != key.definition and len(x.sizes) == len(key.sizes)]
        return sorted(others, key=lambda x: _distance(x.sizes, key.sizes))[:count]

    def records(self) -> list[TuningRecord]:
        """Return all records, sorted by name and time."""
        return self._select("ORDER BY name, time")

    def _select(self, condition: str, *values: str) -> list[TuningRecord]:
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {', '.join(_names(TuningRecord))} FROM records {condition}", values)
            return [_record(dict(zip(_names(TuningRecord), row, strict=True))) for row in rows]

    def trials(self, key: str | None = None, machine: str | None = None) -> list[TuningTrial]:
        """Return the trials of a definition on a machine, or all trials, in order of time."""
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {', '.join(_names(TuningTrial))} FROM trials "
                "WHERE (? IS NULL OR key = ?) AND (? IS NULL OR machine = ?) ORDER BY time, rowid",
                (key, key, machine, machine))
            return [_trial(dict(zip(_names(TuningTrial), row, strict=True))) for row in rows]

    def state(self) -> str:
        """Return a text that changes with the records."""
        with self._errors():
            return str(self._connection.execute(
                "SELECT count(*), total(time), total(cost) FROM records").fetchone())

    def add(
        self, records: Sequence[TuningRecord] = (), trials: Sequence[TuningTrial] = (), *,
        since: float = 0.0,
    ) -> int:
        """Add records and trials in one transaction; return the number of records that changed.

        Args:
            records: Records. Of two records with the same key, the one with the lower cost stays.
            trials: Trials. Of two trials with the same key and choices, the later one stays.
            since: Time at which a tuner began. It has measured the records that were there, so that
                its own replace them. Default: the lower cost decides in any case.
        """
        changed = 0
        with self._errors(), self._transaction():
            for one in records:
                changed += self._connection.execute(
                    f"INSERT INTO records VALUES ({', '.join('?' * 12)}) "
                    "ON CONFLICT (key, machine) DO UPDATE SET choices = excluded.choices, "
                    "cost = excluded.cost, first = excluded.first, author = excluded.author, "
                    "time = excluded.time, name = excluded.name "
                    "WHERE excluded.cost < records.cost OR records.time <= ?",
                    [*_row(one), since]).rowcount
            for trial in trials:
                self._connection.execute(
                    f"INSERT INTO trials VALUES ({', '.join('?' * 8)}) ON CONFLICT (key, machine, "
                    "choices) DO UPDATE SET outcome = excluded.outcome, ratio = excluded.ratio, "
                    "message = excluded.message, author = excluded.author, time = excluded.time "
                    "WHERE excluded.time > trials.time", _row(trial))
        return changed

    def export(self, path: str | Path) -> int:
        """Write all records and trials to a JSON file; return the number of records."""
        records = self.records()
        content = {
            "format": _FORM, "records": [asdict(one) for one in records],
            "trials": [asdict(one) for one in self.trials()],
        }
        try:
            with file_replacement(Path(path)) as part:
                part.write_text(json.dumps(content, indent=1), encoding="utf-8")
        except OSError as error:
            raise CacheError(
                "export: {path} cannot be written ({reason}); pass another path",
                kind="tuning-database", path=path, reason=error.strerror or error,
            ) from None
        return len(records)

    def merge(self, path: str | Path) -> int:
        """Add the records of a file that `export` wrote; return the number that was better.

        Raises:
            CacheError: If the file cannot be read, or has another content.
        """
        try:
            content = json.loads(Path(path).read_bytes())
            if content["format"] != _FORM:
                raise ValueError(f"the format is {content['format']!r}")
            records = [_record(_check_row(one, TuningRecord)) for one in content["records"]]
            trials = [_trial(_check_row(one, TuningTrial)) for one in content["trials"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CacheError(
                "merge: {path} is not a file of tuning records: {reason}; write one with `tecomp "
                "tune --export`",
                kind="tuning-database", path=path, reason=str(error) or type(error).__name__,
            ) from None
        return self.add(records, trials)


def _names(kind: type) -> list[str]:
    return [one.name for one in fields(kind)]


def _row(one: TuningRecord | TuningTrial) -> list[Any]:
    values = (getattr(one, name) for name in _names(type(one)))
    return [
        value if isinstance(value, str | float | int | None) else
        choices_text(value) if isinstance(value, Mapping) else json.dumps(value)
        for value in values
    ]


def choices_text(choices: Mapping[str, Value]) -> str:
    """Return choices as JSON, in an order that does not depend on the order of the knobs."""
    return json.dumps(dict(choices), sort_keys=True)


def _record(row: Mapping[str, Any]) -> TuningRecord:
    return TuningRecord(**{
        **row, "sizes": tuple(_loaded(row["sizes"], list)),
        "choices": _loaded(row["choices"], dict),
    })


def _trial(row: Mapping[str, Any]) -> TuningTrial:
    return TuningTrial(**{**row, "choices": _loaded(row["choices"], dict)})


def _loaded(value: Any, kind: type) -> Any:
    """Return a value that is stored as JSON, or was read with the whole file.

    Raises:
        ValueError: If the value has another type.
    """
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, kind):
        raise ValueError(f"{found!r} is not a {kind.__name__}")
    return found


_TEXTS = frozenset((
    "key", "machine", "structure", "name", "processor", "unit", "author", "outcome", "message"))
_NUMBERS = frozenset(("cost", "first", "time"))


def _check_row(row: Any, kind: type) -> Mapping[str, Any]:
    """Return a row of a file of records.

    Raises:
        ValueError: If a field is missing, unknown or of the wrong type.
    """
    if not isinstance(row, dict) or sorted(row) != sorted(_names(kind)):
        raise ValueError(f"a record has the wrong fields: {row!r}")
    for name, value in row.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in _TEXTS and not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}")
        if name in _NUMBERS and not (is_number and math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} is {value!r}")
    return row


def _distance(a: Sequence[int], b: Sequence[int]) -> float:
    """Return how much two lists of sizes differ: the sum of the logarithms of their ratios."""
    return sum([abs(math.log((abs(x) + 1) / (abs(y) + 1))) for x, y in zip(a, b, strict=True)])


def record_of(
    key: TuningKey, name: str, target: Target, choices: Mapping[str, Value], cost: float,
    first: float, unit: str,
) -> TuningRecord:
    """Return a record of this user and this moment."""
    return TuningRecord(
        key.definition, key.machine, key.structure, key.sizes, name, processor_of(target),
        dict(choices), cost, first, unit, author(), time.time())


def find_choices(path: Path, problem: SchedulingProblem, *extra: str) -> Mapping[str, Value]:
    """Return the choices of the record of a problem; empty if there is none.

    Raises:
        CacheError: If the file is not a tuning database.
    """
    key = key_of(problem, *extra)
    if key is None:
        return {}
    with closing(TuningDatabase(path)) as database:
        found = database.find(key)
    return {} if found is None else found.choices


def records_state(path: Path) -> str:
    """Return a text that changes with the records of a database."""
    with closing(TuningDatabase(path)) as database:
        return database.state()


@dataclass(frozen=True)
class TensorsTask:
    """Output tensors, which the automatic scheduler schedules."""

    outputs: tuple[Tensor, ...]
    args: tuple[object, ...]
    target: Target
    name: str
    sizes: Mapping[str, int]

    def prepare(self, choices: Choices) -> None:
        """Leave the scheduling to the process of the candidate."""

    def request(self, prepared: None) -> BuildRequest:
        """Return the build request."""
        del prepared
        return BuildRequest(self.outputs, self.args, self.name, self.target, Options())

    def key(self) -> TuningKey | None:
        """Return the key of the record."""
        return key_of(SchedulingProblem(self.outputs, self.target))


@dataclass(frozen=True)
class FunctionTask:
    """Function that returns a schedule; it runs in the process of the tuner."""

    function: Callable[[], Any]
    args: tuple[object, ...]
    target: Target
    name: str
    sizes: Mapping[str, int]

    def __reduce__(self) -> tuple[Any, ...]:
        # Functions of scripts cannot be sent to other processes; their schedules can.
        return FunctionTask, (_no_schedule, (), self.target, self.name, self.sizes)

    def prepare(self, choices: Choices) -> tuple[Schedule, tuple[object, ...]]:
        """Return the schedule with the arguments, which are the same objects after pickling.

        Raises:
            ScheduleError: If the function does not return a schedule.
        """
        schedule, args = choices.run(self.function), self.args
        if isinstance(schedule, tuple) and len(schedule) == 2:
            schedule, args = schedule
        if not isinstance(schedule, Schedule):
            raise ScheduleError(
                "tune: the function {function} must return a schedule, got {schedule!r}",
                kind="invalid-type", function=name_of(self.function), schedule=schedule,
            )
        return schedule, tuple(args)

    def request(self, prepared: tuple[Schedule, tuple[object, ...]]) -> BuildRequest:
        """Return the build request."""
        return BuildRequest(*prepared, self.name, self.target, Options())

    def key(self) -> TuningKey | None:
        """Return the key of the record."""
        schedule, _ = self.prepare(Choices())
        return key_of(problem_of(schedule, self.target), name_of(self.function))


def _no_schedule() -> Schedule:
    raise NotImplementedError


@dataclass(frozen=True)
class KernelTask:
    """Kernel of a program without the stages that depend on constants only."""

    definition: KernelDefinition
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.definition.name

    @property
    def target(self) -> Target:
        """Target of the kernel."""
        return self.definition.problem.target

    def prepare(self, choices: Choices) -> None:
        """Leave the scheduling to the process of the candidate."""

    def request(self, prepared: None) -> BuildRequest:
        """Return the build request."""
        del prepared
        return self.definition.split()[0]

    def key(self) -> TuningKey | None:
        """Return the key of the record."""
        return key_of(self.definition.problem)


Task = TensorsTask | FunctionTask | KernelTask
