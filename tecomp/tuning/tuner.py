"""`tune`: search for faster schedules of kernels, programs and models, and record them."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import (
    Choices,
    Knob,
    Value,
    database_path,
    is_program,
)
from tecomp.driver.program_api import TunedKernel, TuningResult, TuningTrial
from tecomp.errors import CallError, ScheduleError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Var
from tecomp.machine.descriptor import Target
from tecomp.progress import Progress, progress
from tecomp.scheduling.schedule import Schedule
from tecomp.tuning.database import (
    FunctionTask,
    KernelTask,
    Task,
    TensorsTask,
    TuningDatabase,
    author,
    choices_text,
    record_of,
)
from tecomp.tuning.measurement import Built, Failure, Worker, WorkerPool, compare

Strategy = Literal["evolution", "random"]
_PARENTS = 4
"""Number of the best candidates that are changed."""
_POOL = 64
"""Number of changed candidates that the cost model ranks."""
_MAX_CHANGES = 3
"""Largest number of knobs that a change affects."""
_EXPLORED = 0.2
"""Share of candidates that are taken at random from the pool, not by their rank."""
_FAILED = math.log(2.0)
"""Logarithm of the relative time that counts for a failed candidate."""
_ATTEMPTS = 200
"""Number of random choices after which the search space counts as exhausted."""
_RIDGE = 0.3
"""Weight by which effects are drawn to 0: few measurements of a value are not certain."""
_BUILD_SECONDS, _CALL_SECONDS = 60.0, 20.0
"""Limits of the time to build a candidate, and of its first call beyond that of the first one."""
_MEMORY_BYTES = 4 << 30
"""Memory that a candidate may allocate."""
_SLICE_SECONDS, _SLICE_CALLS, _MAX_SLICE_SECONDS = 0.004, 5, 0.05
"""Duration of one measurement, whose shortest call counts: a minimum, calls, and a maximum."""
_SEEDS = 3
"""Number of records of nearby sizes that the search starts from."""


@dataclass
class SearchState:
    """Candidates that were tried, and the search space that they span.

    Attributes:
        strategy: "evolution" or "random".
        seed: Seed of the random numbers.
        knobs: Knobs that any candidate requested, by name.
        costs: Logarithm of the time relative to the first candidate, by choices.
    """

    strategy: Strategy = "evolution"
    seed: int = 0
    knobs: dict[str, Knob] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    _choices: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    _proposed: set[str] = field(default_factory=set)
    _requested: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def add_knobs(self, knobs: Sequence[Knob], choices: Mapping[str, Value]) -> None:
        """Extend the search space by the knobs that the candidate with these choices requested."""
        for knob in knobs:
            self.knobs.setdefault(knob.name, knob)
        self._requested[choices_text(choices)] = tuple([knob.name for knob in knobs])

    def add(self, choices: Mapping[str, Value], cost: float | None) -> None:
        """Record a candidate.

        Args:
            choices: Values of knobs that differ from their default.
            cost: Time relative to the first candidate; None if it failed.
        """
        text = choices_text(choices)
        self._proposed.add(text)
        self._choices[text] = dict(choices)
        self.costs[text] = _FAILED if cost is None else math.log(max(cost, 1e-9))

    def skip(self, choices: Mapping[str, Value]) -> None:
        """Never propose these choices."""
        self._proposed.add(choices_text(choices))

    def propose(self, count: int, seeds: Sequence[Mapping[str, Value]] = ()) -> list[
        Mapping[str, Value]
    ]:
        """Return up to `count` candidates that were not proposed before.

        Args:
            count: Number of candidates.
            seeds: Candidates that come first, such as those of nearby sizes.
        """
        found = [*self._new(seeds, count)]
        if self.strategy == "random":
            candidates = (self._at_random() for _ in range(_ATTEMPTS))
            return [*found, *self._new(candidates, count - len(found))]
        best = sorted(self.costs, key=lambda text: self.costs[text])[:_PARENTS]
        parents = [self._choices[text] for text in best] or [{}]
        changed = (self._changed(parents) for _ in range(_ATTEMPTS))
        pool = [*self._new(changed, _POOL, keep=False)]
        predict = self._fit()
        pool.sort(key=predict)
        while pool and len(found) < count:
            is_explored = self._random.random() < _EXPLORED
            choices = pool.pop(self._random.randrange(len(pool)) if is_explored else 0)
            found += self._new([choices], 1)
        return found

    def _new(
        self, candidates: Sequence[Mapping[str, Value]] | Iterator[Mapping[str, Value]],
        count: int, *, keep: bool = True,
    ) -> Iterator[Mapping[str, Value]]:
        """Yield the candidates that were not proposed before, `count` at most."""
        seen: set[str] = set()
        for choices in candidates:
            if len(seen) >= count:
                return
            text = choices_text(choices)
            if text not in self._proposed and text not in seen:
                seen.add(text)
                if keep:
                    self._proposed.add(text)
                yield choices

    def _at_random(self) -> Mapping[str, Value]:
        values = {name: self._random.choice(knob.values) for name, knob in self.knobs.items()}
        return self._without_defaults(values)

    def _without_defaults(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        defaults = {name: self.knobs[name].values[0] for name in values if name in self.knobs}
        return {
            name: value for name, value in values.items()
            if name not in defaults or repr(value) != repr(defaults[name])
        }

    def _changed(self, parents: Sequence[Mapping[str, Value]]) -> Mapping[str, Value]:
        """Return one of the best candidates with changes of a few knobs, or a mix of two."""
        parent = self._random.choice(parents)
        child = dict(parent)
        if len(parents) > 1 and self._random.random() < 0.25:
            for name, value in self._random.choice(parents).items():
                if self._random.random() < 0.5:
                    child[name] = value
        # Other knobs have no effect on this parent.
        names = self._requested.get(choices_text(parent)) or [*self.knobs]
        changes = min(1 + int(self._random.expovariate(1.5)), _MAX_CHANGES, len(names))
        for name in self._random.sample(names, changes):
            child[name] = self._random.choice(self.knobs[name].values)
        return self._without_defaults(child)

    def _fit(self) -> _Predictor:
        """Fit the logarithms of relative times by a sum of effects of single values (ridge)."""
        features: dict[tuple[str, str], int] = {}
        rows: list[list[int]] = []
        for text in self.costs:
            row = [(name, repr(value)) for name, value in self._choices[text].items()]
            rows.append([features.setdefault(key, len(features)) for key in row])
        matrix = np.zeros((len(rows), len(features)))
        for k, columns in enumerate(rows):
            matrix[k, columns] = 1.0
        times = np.asarray([*self.costs.values()], np.float64)
        normal = matrix.T @ matrix + _RIDGE * np.eye(len(features))
        effects = np.linalg.solve(normal, matrix.T @ times) if features else np.zeros(0)
        return _Predictor({key: float(effects[k]) for key, k in features.items()}, self._random)


@dataclass(frozen=True)
class _Predictor:
    """Predicted logarithm of the relative time; values that were never tried have no effect."""

    effects: Mapping[tuple[str, str], float]
    random: random.Random

    def __call__(self, choices: Mapping[str, Value]) -> float:
        effect = sum(self.effects.get((name, repr(value)), 0.0) for name, value in choices.items())
        return effect + 1e-3 * self.random.random()


def tune_subject(
    subject: Any, args: Sequence[object] | None, target: str | Path | Target, seconds: float,
    trials: int | None, database: str | Path | None, search: Strategy, sizes: Mapping[str, int],
    name: str, seed: int,
) -> TuningResult:
    """Tune a subject; `tecomp.tune` documents the arguments and errors."""
    _check_limits(seconds, trials, search)
    path = database_path() if database is None else Path(database)
    if path is None:
        raise CallError(
            "tune: the tuning database is off; set TECOMP_TUNING to a path, or pass database",
            kind="conflicting-options",
        )
    tasks = _tasks_of(subject, args, target, sizes, name)
    kernels: list[TunedKernel] = []
    end, is_interrupted = time.monotonic() + seconds, False
    with TuningDatabase(path, create=True) as records, progress("tune", math.ceil(seconds)) as bar:
        for k, task in enumerate(tasks):
            now = time.monotonic()
            share = max(end - now, 0.0) / (len(tasks) - k)
            tuner = _KernelTuner(task, records, SearchState(search, seed), now + share, trials, bar)
            found, is_interrupted = tuner.run()
            kernels += found
            if is_interrupted:
                break
    return TuningResult(tuple(kernels), path, is_interrupted)


def _check_limits(seconds: object, trials: object, search: object) -> None:
    """Check the limits of the search.

    Raises:
        CallError: If one of them is invalid.
    """
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < float(seconds) < math.inf:  # type: ignore[arg-type]
        raise CallError(
            "tune: seconds must be a positive number, got {seconds!r}",
            kind="invalid-value", seconds=seconds,
        )
    if trials is not None and (type(trials) is not int or trials < 1):
        raise CallError(
            "tune: trials must be a positive integer, got {trials!r}; omit it for no limit",
            kind="invalid-value", trials=trials,
        )
    if search not in get_args(Strategy):
        raise CallError(
            "tune: search must be one of {strategies}, got {search!r}",
            kind="invalid-value", strategies=", ".join(get_args(Strategy)), search=search,
        )


def _tasks_of(
    subject: Any, args: Sequence[object] | None, target: str | Path | Target,
    sizes: Mapping[str, int], name: str,
) -> list[Task]:
    """Return the kernels of what is tuned.

    Raises:
        CallError: If the subject or its arguments have the wrong type, or a size is missing.
    """
    if (programs := _programs_of(subject)) is not None:
        return _kernels_of(programs, sizes)
    is_function = callable(subject) and not isinstance(subject, Tensor | Schedule)
    if is_function and args is None:
        args = FunctionTask(subject, (), Target.of(target), name, {}).prepare(Choices())[1]
    if not is_function and not is_program(subject):
        raise CallError(
            "tune: expected output tensors, a function that returns a schedule, a program or a "
            "model, got {subject!r}",
            kind="invalid-type", subject=subject,
        )
    check_kind(
        args, list | tuple, "tune: args", "pass the tensors in the parameter order of the kernel",
        CallError)
    assert args is not None
    known = _sizes_of(args, sizes)
    machine = Target.of(target)
    if is_function:
        return [FunctionTask(subject, tuple(args), machine, name, known)]
    outputs = (subject,) if isinstance(subject, Tensor) else tuple(subject)
    return [TensorsTask(outputs, tuple(args), machine, name, known)]


def _programs_of(subject: Any) -> list[Any] | None:
    """Return the compiled programs of a program or a model; None for other values."""
    programs = getattr(subject, "programs", None)
    if isinstance(programs, tuple):
        return [*programs]
    return [subject] if hasattr(subject, "compile_request") else None


def _kernels_of(programs: Sequence[Any], sizes: Mapping[str, int]) -> list[Task]:
    """Return the different kernels of programs."""
    # Import lazily: only programs need the graph compiler.
    from tecomp.graph.compilation_steps import details_of
    from tecomp.graph.kernels import collect_definitions

    found: dict[object, Task] = {}
    for program in programs:
        with collect_definitions() as definitions:
            details_of(program.compile_request)
        for one in definitions:
            task = KernelTask(one, _sizes_of(one.args, sizes))
            found.setdefault(task.key() or id(one), task)
    return [*found.values()]


def _sizes_of(args: Sequence[object], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the values of the size variables among arguments and in their shapes.

    Raises:
        CallError: If a value is missing.
    """
    extents = [n for x in args if isinstance(x, Tensor) for n in x.shape]
    variables = [n for n in (*args, *extents) if isinstance(n, Var)]
    for variable in variables:
        if variable.name not in sizes:
            raise CallError(
                "tune: the size {name} is symbolic; pass a value to measure with, such as "
                "sizes={{'{name}': 64}}",
                kind="unbound-size", name=variable.name,
            )
    return {variable.name: sizes[variable.name] for variable in variables}


@dataclass
class _KernelTuner:
    """Search for one kernel."""

    task: Task
    records: TuningDatabase
    state: SearchState
    end: float
    max_trials: int | None
    bar: Progress
    tried: list[TuningTrial] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    stored: float = field(default_factory=time.time)
    is_interrupted: bool = False
    cost: float = 0.0

    def run(self) -> tuple[list[TunedKernel], bool]:
        """Tune the kernel; return the result, if any, and whether Ctrl-C ended the search."""
        self.key = self.task.key()
        start = partial(WorkerPool, self.task, _MEMORY_BYTES)
        try:
            pool = start()
        except KeyboardInterrupt:
            return [], True
        with pool:
            try:
                self.first = self._first(pool)
            except KeyboardInterrupt:
                return [], True
            self.best, self.ratio = self.first, 1.0
            with self._interruptible():
                self._resume(pool)
                self._search(pool)
            with self._interruptible():
                self._confirm()
            self._store(is_final=True)
            return [self._result()], self.is_interrupted

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.is_interrupted = True

    @property
    def is_modelled(self) -> bool:
        """Whether the cost model takes the place of the clock."""
        return self.task.target.core is None

    def _first(self, pool: WorkerPool) -> Worker:
        """Build and measure the default choices.

        Raises:
            ScheduleError: If they cannot be built or run.
        """
        ((_, worker, built),) = pool.build([{}], _BUILD_SECONDS * 4)
        failure: object = built if isinstance(built, Failure) else None
        if worker is not None and failure is None:
            failure = worker.ask(_BUILD_SECONDS * 4, "check", True)
        if failure is not None or worker is None or not isinstance(built, Built):
            raise ScheduleError(
                "tune: the default schedule of {name} cannot be built and run: {reason}",
                kind="pattern-mismatch", name=self.task.name,
                reason=getattr(failure, "message", failure),
            )
        self.state.add_knobs(built.knobs, {})
        self.state.add({}, 1.0)
        self.codes.add(built.code)
        pool.known.add(built.schedule)
        if built.cycles is not None:
            self.cost = max(built.cycles, 1.0)
        else:
            self.cost = min(self._time(worker) for _ in range(3))
        return worker

    def _time(self, worker: Worker) -> float:
        """Return the time of a call; infinity if the process ended."""
        call = 0.0 if self.is_modelled else self.cost
        seconds = min(max(_SLICE_SECONDS, _SLICE_CALLS * call), _MAX_SLICE_SECONDS)
        found = worker.ask(_CALL_SECONDS + 50 * call, "time", seconds)
        return found if isinstance(found, float) else math.inf

    def _resume(self, pool: WorkerPool) -> None:
        """Continue from the trials and the record of this kernel, and those of nearby sizes."""
        if self.key is None:
            return
        for trial in self.records.trials(self.key.definition, self.key.machine):
            if trial.ratio is not None or trial.outcome == "failed":
                self.state.add(trial.choices, trial.ratio)
            else:
                self.state.skip(trial.choices)
        known = self.records.find(self.key)
        if known is not None and known.choices:
            self._try(pool, [known.choices])
        seeds = [one.choices for one in self.records.nearby(self.key, _SEEDS) if one.choices]
        if seeds and not self._is_over():
            self._try(pool, self.state.propose(len(seeds), seeds)[: len(seeds)])

    def _search(self, pool: WorkerPool) -> None:
        while not self._is_over():
            batch = self.state.propose(os.cpu_count() or 1)
            if not batch:
                return
            self._try(pool, batch)

    def _is_over(self) -> bool:
        is_full = self.max_trials is not None and len(self.tried) >= self.max_trials
        return is_full or time.monotonic() >= self.end

    def _try(self, pool: WorkerPool, batch: Sequence[Mapping[str, Value]]) -> None:
        """Build candidates in parallel, and measure them one after the other."""
        if self.max_trials is not None:
            batch = batch[: max(self.max_trials - len(self.tried), 0)]
        for choices, worker, built in [*pool.build(batch, _BUILD_SECONDS)]:
            outcome, ratio, message = "failed", None, ""
            if worker is None or isinstance(built, Failure):
                message = built.message if isinstance(built, Failure) else ""
            else:
                self.state.add_knobs(built.knobs, choices)
                pool.known.add(built.schedule)
                outcome, ratio, message = self._judge(worker, built)
            self._note(choices, outcome, ratio, message)
            if outcome == "faster" and worker is not None:
                if self.best is not self.first:
                    self.best.end()
                self.best, self.ratio = worker, ratio or 1.0
                self._store()
            elif worker is not None:
                worker.end()

    def _judge(self, worker: Worker, built: Built) -> tuple[str, float | None, str]:
        """Return the outcome of a candidate, its relative time, and the reason of a failure."""
        if not built.code or built.code in self.codes:
            return "equal", None, ""
        self.codes.add(built.code)
        if built.cycles is not None:
            ratio = max(built.cycles, 1.0) / self.cost
            if ratio >= self.ratio:
                return ("same" if ratio == self.ratio else "slower"), ratio, ""
        limit = _CALL_SECONDS + 50 * (0.0 if self.is_modelled else self.cost)
        problem = worker.ask(limit, "check", False)
        if problem is not None:
            return "failed", None, getattr(problem, "message", str(problem))
        if built.cycles is not None:
            return "faster", ratio, ""
        found = compare(partial(self._time, self.best), partial(self._time, worker), self._rng())
        if math.isinf(found.ratio):
            return "failed", None, "its process crashed or was too slow"
        return found.outcome, self.ratio * found.ratio, ""

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(len(self.tried))

    def _note(
        self, choices: Mapping[str, Value], outcome: str, ratio: float | None, message: str
    ) -> None:
        """Record a trial."""
        if outcome == "equal":
            self.state.skip(choices)
        else:
            self.state.add(choices, ratio)
        definition, machine = ("", "") if self.key is None else (
            self.key.definition, self.key.machine)
        trial = TuningTrial(
            definition, machine, dict(choices), outcome, ratio, message, author(), time.time())
        self.tried.append(trial)
        if self.key is not None:
            self.records.add(trials=[trial])
        self.bar.what = (
            f"tune {self.task.name}: {len(self.tried)} candidates, "
            f"{1 / self.ratio:.2f} times as fast")
        self.bar.completed = min(
            self.bar.total - 1, max(self.bar.total - 1 - int(self.end - time.monotonic()), 0))
        self.bar.step()

    def _confirm(self) -> None:
        """Compare the best candidate with the first one once more; keep it if it is faster.

        The best of many measurements is partly the luckiest, which new measurements are not.
        """
        if self.best is self.first or self.is_modelled:
            return
        found = compare(
            partial(self._time, self.first), partial(self._time, self.best),
            np.random.default_rng(), gives_up=False)
        if found.outcome == "faster":
            self.ratio = found.ratio
        else:
            self.best, self.ratio = self.first, 1.0

    def _choices(self) -> Mapping[str, Value]:
        built = self.best.built
        assert built is not None
        return built.choices

    def _store(self, *, is_final: bool = False) -> None:
        """Write the best candidate; in the end also if the default choices are the fastest."""
        if self.key is None or (self.best is self.first and not is_final):
            return
        unit = "cycles" if self.is_modelled else "seconds"
        if self.records.add([record_of(
            self.key, self.task.name, self.task.target, self._choices(), self.cost * self.ratio,
            self.cost, unit)], since=self.stored):
            # A later record of this search replaces this one, also with a higher cost.
            self.stored = time.time()

    def _result(self) -> TunedKernel:
        return TunedKernel(
            self.task.name, self._choices(), tuple(self.state.knobs.values()), self.cost,
            self.cost * self.ratio, "cycles" if self.is_modelled else "seconds",
            tuple(self.tried))
