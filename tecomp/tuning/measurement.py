"""Build and measure candidates in processes of their own, with limits of time and memory.

A server process without threads imports the compiler once, and forks a process for each candidate.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from statistics import median
from typing import Any, NoReturn, Protocol

import numpy as np

from tecomp.codegen.llvm.code_cache import code_key
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import Choices, Knob, Value
from tecomp.driver.build import ScheduledKernel, build_code
from tecomp.driver.build_cache import BuildRequest, build_kernel, program_keys
from tecomp.errors import InternalError, TecompError
from tecomp.ir.nodes.expr import Var

_START_SECONDS = 120.0
"""Time in which the server must start, and in which a process must answer that it began."""
_STARTER = "from tecomp.tuning.measurement import serve; serve()"
_BATCH_SECONDS = 2e-4
"""Duration of calls that are timed together, so that reading the clock takes no share of it."""
_ROUNDING = 8.0
"""Factor of the expected rounding error of a sum, which grows with the root of its terms.

Source: Higham, Mary: A new approach to probabilistic rounding error analysis, SIAM Journal on
Scientific Computing 41 (5), 2019.
"""
_LOOKS = (8, 12, 16, 24, 32, 48)
"""Numbers of pairs after which the difference is tested."""
_SIGNIFICANCE = 0.01 / len(_LOOKS)
"""Probability of an error at one look; that of any of them is at most their sum (Bonferroni)."""
_CLEARLY_WORSE = ((2, 1.3), (4, 1.1), (6, 1.05))
"""Pairs after which a candidate is given up if their median, or each of two, is as slow."""
_MIN_GAIN = 0.99
"""Largest relative time of a candidate that replaces the best one."""

Array = np.ndarray[Any, Any]


class Candidate(Protocol):
    """Definition that can be scheduled with different choices; it is sent to other processes."""

    def prepare(self, choices: Choices) -> Any:
        """Return what the tuner's own process must compute, such as the schedule of a function."""

    def request(self, prepared: Any) -> BuildRequest:
        """Return the build request, whose knobs get the values of the active choices."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of symbolic extents, by name."""


@dataclass(frozen=True)
class Built:
    """Description of a kernel that a process has built.

    Attributes:
        schedule: Digest of the schedule; empty if it cannot be serialized.
        code: Digest of the code; candidates with equal code are equally fast. It is empty if the
            schedule was known, and was not built again.
        knobs: Search space that the schedule spans.
        choices: Values of the knobs that differ from their default.
        cycles: Modelled cycles of a call, if the target cannot be measured.
    """

    schedule: str
    code: str
    knobs: tuple[Knob, ...]
    choices: Mapping[str, Value]
    cycles: float | None


@dataclass(frozen=True)
class Failure:
    """Reason why a candidate cannot be used."""

    message: str


@dataclass(eq=False)
class Worker:
    """Process of one candidate, seen from the tuner.

    Attributes:
        number: Number of the process.
        channel: Connection to the process.
        stop: Function that ends the process of a number.
        built: Description of the kernel, after it was built.
        is_alive: Whether the process runs.
    """

    number: int
    channel: Connection
    stop: Callable[[int], None]
    built: Built | None = None
    is_alive: bool = field(default=True)

    def ask(self, seconds: float, *words: Any) -> Any:
        """Send a request and return the answer; return a `Failure` if it fails.

        Args:
            seconds: Time after which the process is ended.
            words: Name of a method of `_Child`, with its arguments.
        """
        if not self.is_alive:
            return Failure("its process has ended")
        try:
            self.channel.send(words)
            return self.answer(seconds)
        except (OSError, EOFError):
            self.end()
            return Failure("its process crashed")

    def answer(self, seconds: float) -> Any:
        """Wait for an answer; end the process if there is none in time."""
        try:
            if not self.channel.poll(max(seconds, 0.0)):
                self.end()
                return Failure(f"no answer within {seconds:.3g} s")
            return self.channel.recv()
        except (OSError, EOFError):
            self.end()
            return Failure("its process crashed")

    def end(self) -> None:
        """End the process."""
        if self.is_alive:
            self.is_alive = False
            self.channel.close()
            self.stop(self.number)


class WorkerPool:
    """Server that forks the processes of candidates.

    Attributes:
        known: Digests of schedules that are not built again.
    """

    def __init__(self, candidate: Candidate, memory_bytes: int) -> None:
        """Start the server.

        Args:
            candidate: Definition that all processes build.
            memory_bytes: Memory that a process may allocate in addition to the compiler.

        Raises:
            InternalError: If the server does not start.
        """
        first = candidate.prepare(Choices())
        self.known: set[str] = set()
        self._candidate = candidate
        self._folder = Path(tempfile.mkdtemp(prefix="tecomp-tune-"))
        secret = secrets.token_bytes(16)
        self._listener = Listener(str(self._folder / "socket"), "AF_UNIX", authkey=secret)
        self._numbers = count(1)
        environment = {**os.environ, "TECOMP_CACHE": "off", "TECOMP_TUNING": "off"}
        environment.pop("TECOMP_DUMP", None)
        # The server has its own session, so that Ctrl-C interrupts the tuner only.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _STARTER, str(self._folder / "socket")], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        assert self._process.stdin is not None
        self._process.stdin.write(secret)
        self._process.stdin.close()
        try:
            self._server = self._accept()
            for content in (sys.path, (candidate, first, memory_bytes, str(self._folder))):
                self._server.send(content)
            problem = self._server.recv() if self._server.poll(_START_SECONDS) else "no answer"
        except (OSError, EOFError):
            problem = "it ended"
        if problem is not None:
            self.close()
        if isinstance(problem, TecompError):
            raise problem
        if problem is not None:
            raise InternalError(
                "tune: the process that builds candidates does not run: {problem}",
                kind="internal", problem=problem,
            )

    def _accept(self) -> Connection:
        listener: Any = self._listener
        listener._listener._socket.settimeout(_START_SECONDS)
        return listener.accept()  # type: ignore[no-any-return]

    def start(self, choices: Mapping[str, Value]) -> Worker:
        """Start a process that builds the candidate with these choices."""
        number, used = next(self._numbers), Choices(choices)
        prepared = self._candidate.prepare(used)
        self._server.send(("start", number, used, prepared, self.known))
        return Worker(number, self._accept(), self._stop)

    def _stop(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._server.send(("stop", number))

    def build(
        self, candidates: Sequence[Mapping[str, Value]], seconds: float
    ) -> Iterator[tuple[Mapping[str, Value], Worker | None, Built | Failure]]:
        """Build candidates in parallel processes, and yield them in their order."""
        workers = [self._try_to_start(choices) for choices in candidates]
        deadline = time.monotonic() + seconds
        waiting = {worker.channel: worker for worker in workers if isinstance(worker, Worker)}
        answers: dict[Worker, Built | Failure] = {}
        while waiting:
            ready = wait([*waiting], max(deadline - time.monotonic(), 0.0))
            for channel in ready or [*waiting]:
                worker = waiting.pop(channel)  # type: ignore[call-overload]
                answers[worker] = worker.answer(0.0 if ready else -1.0)
        for choices, worker in zip(candidates, workers, strict=True):
            if isinstance(worker, Failure):
                yield choices, None, worker
                continue
            found = answers[worker]
            if isinstance(found, Failure):
                worker.end()
            else:
                worker.built = found
            yield choices, worker, found

    def _try_to_start(self, choices: Mapping[str, Value]) -> Worker | Failure:
        try:
            return self.start(choices)
        except Exception as error:  # schedule functions of users may raise anything
            return Failure(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """End all processes."""
        with contextlib.suppress(OSError, AttributeError):
            self._server.close()
        self._listener.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve() -> None:
    """Run the server: fork a process for each candidate, and end it when the tuner requests it."""
    address, secret = sys.argv[1], sys.stdin.buffer.read()
    tuner = Client(address, "AF_UNIX", authkey=secret)
    try:
        sys.path[:] = tuner.recv()
        candidate, first, memory_bytes, folder = tuner.recv()
        # Processes inherit what the first candidate has loaded and computed.
        Choices().run(lambda: candidate.request(first).lowered())
    except Exception as error:
        is_own = isinstance(error, TecompError)
        tuner.send(error if is_own else f"{type(error).__name__}: {error}")
        return
    tuner.send(None)
    children: dict[int, int] = {}
    try:
        while True:
            word, number, *rest = tuner.recv()
            if word == "start":
                process = os.fork()
                if process == 0:
                    tuner.close()
                    _run_child(address, secret, candidate, rest, memory_bytes, folder)
                children[number] = process
            elif (process := children.pop(number, 0)) > 0:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
    except (EOFError, OSError):
        for process in children.values():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)


def _run_child(
    address: str, secret: bytes, candidate: Candidate, prepared: Sequence[Any],
    memory_bytes: int, folder: str,
) -> NoReturn:
    """Build a candidate, and answer requests until the tuner closes the connection."""
    status = 1
    try:
        tuner = Client(address, "AF_UNIX", authkey=secret)
        _limit_memory(memory_bytes)
        child = _Child(candidate, Path(folder))
        tuner.send(_answer(child.build, *prepared))
        while True:
            name, *arguments = tuner.recv()
            tuner.send(_answer(getattr(child, name), *arguments))
    except (EOFError, OSError):
        status = 0
    finally:
        os._exit(status)


def _answer(method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except TecompError as error:
        return Failure(f"{type(error).__name__}: {error.message}")
    except MemoryError:
        return Failure("out of memory")
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _limit_memory(size: int) -> None:
    """Limit the address space to its present size and `size` more bytes, where the OS allows it."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + size
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class _Child:
    """Kernel of a candidate in its process; the methods answer requests of the tuner."""

    def __init__(self, candidate: Candidate, folder: Path) -> None:
        self._candidate = candidate
        self._folder = folder
        self._arguments: list[Any] = []

    def build(self, choices: Choices, prepared: object, known: set[str]) -> Built:
        """Build the kernel, unless its schedule is known."""
        request: BuildRequest = choices.run(self._candidate.request, prepared)
        scheduled = choices.run(request.scheduled)
        key = next(program_keys(scheduled), "")
        knobs = tuple(choices.knobs.values())
        if key and key in known:
            return Built(key, "", knobs, choices.changed, None)
        make = partial(build_code, schedule=scheduled.schedule, page=None)
        self._kernel = build_kernel(scheduled, partial(ScheduledKernel, scheduled), make)
        compiled = self._kernel.compiled
        self._request = scheduled
        target = scheduled.target
        cycles = None
        if target is not None and target.core is None:
            cycles = self._kernel.report(**self._candidate.sizes).makespan
        code = code_key(compiled.source, compiled.interface.entry)
        return Built(key, code, knobs, choices.changed, cycles)

    def check(self, is_first: bool) -> None:
        """Run the kernel; store the results of the first candidate, or compare with them.

        Raises:
            ArithmeticError: If results differ by more than rounding errors.
        """
        self._arguments = self._inputs()
        self._kernel(*self._arguments)
        path = self._folder / "results.npz"
        results = {str(k): self._logical(k) for k in self._written()}
        if is_first:
            save: Any = np.savez
            save(path, **results)
            return
        with np.load(path) as expected:
            for k, found in results.items():
                # The file stores elements of ml_dtypes as bytes.
                problem = difference(found, expected[k].view(found.dtype), self._tolerance())
                if problem is not None:
                    raise ArithmeticError(problem)

    def time(self, seconds: float) -> float:
        """Return the shortest time of a call in at least `seconds`, after one call to warm up."""
        _pin(is_parallel=self._kernel.compiled.interface.is_parallel)
        kernel, arguments = self._kernel, self._arguments
        kernel(*arguments)
        start = time.perf_counter_ns()
        kernel(*arguments)
        once = max(time.perf_counter_ns() - start, 1)
        calls = max(int(_BATCH_SECONDS * 1e9) // once, 1)
        best, end = float(once), time.perf_counter_ns() + int(seconds * 1e9)
        while True:
            start = time.perf_counter_ns()
            for _ in range(calls):
                kernel(*arguments)
            stop = time.perf_counter_ns()
            best = min(best, (stop - start) / calls)
            if stop >= end:
                return best / 1e9

    def _written(self) -> list[int]:
        return [
            k for k, x in enumerate(self._request.args)
            if isinstance(x, Tensor) and x.op.input_tensors
        ]

    def _logical(self, position: int) -> Array:
        tensor: Any = self._request.args[position]
        return self._kernel.unpack(tensor, self._arguments[position], **self._candidate.sizes)

    def _inputs(self) -> list[Any]:
        """Return the same arguments for all candidates, in the layouts of the kernel."""
        random = np.random.default_rng(0)
        found: list[Any] = []
        sizes = dict(self._candidate.sizes)
        shapes = [x.shape for x in self._request.args if isinstance(x, Tensor)]
        smallest = min((n for shape in shapes for n in shape if isinstance(n, int)), default=1)
        for x in self._request.args:
            if isinstance(x, Var):
                found.append(sizes[x.name])
                continue
            assert isinstance(x, Tensor)
            empty = self._kernel.empty(x, **sizes)
            if x.op.input_tensors:
                empty.fill(0)
                found.append(empty)
            else:
                logical = self._kernel.unpack(x, empty, **sizes)
                values = random_values(random, logical.shape, logical.dtype, smallest)
                found.append(self._kernel.pack(x, values))
        return found

    def _tolerance(self) -> float:
        """Return the tolerance of results relative to the largest one.

        It grows with the root of the number of terms that are added, and with the stages.
        """
        stages = [stage.op for stage in self._request.schedule.stages if stage.op.input_tensors]
        dtypes = {x.dtype.numpy for op in stages for x in (*op.outputs, *op.input_tensors)}
        precisions = [float(_precision(dtype)) for dtype in dtypes]
        axes = [axis for op in stages for axis in getattr(op, "reduce_axis", ())]
        terms = math.prod([n if isinstance(n := axis.extent, int) else 1024 for axis in axes])
        return max(precisions, default=0.0) * (4 + _ROUNDING * math.sqrt(terms)) * len(stages)


def _precision(dtype: np.dtype[Any]) -> float:
    """Return the relative rounding error of a dtype; 0 for integers."""
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    try:
        return float(finfo(dtype).eps)
    except ValueError:
        return 0.0


def random_values(
    random: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any], smallest: int
) -> Array:
    """Return values of both signs; integers stay below `smallest`, as they may be indices.

    >>> random_values(np.random.default_rng(0), (2, 2), np.dtype("int32"), 3).max() < 3
    True
    """
    if dtype.kind in "iu":
        return random.integers(0, max(min(smallest, 100), 1), shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    return np.asarray(random.uniform(-1.0, 1.0, shape)).astype(dtype)


def difference(found: Array, expected: Array, tolerance: float) -> str | None:
    """Return how results differ; None if they agree within a tolerance.

    Args:
        found: Results of a candidate.
        expected: Results of the first candidate.
        tolerance: Tolerance relative to the largest magnitude in `expected`, for floats.

    >>> difference(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]), 1e-8)
    >>> difference(np.array([1, 2]), np.array([1, 3]), 1.0)
    '1 of 2 results differ, by up to 1'
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"results of {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
    if found.dtype.kind in "biu":
        off = found.astype(np.float64) - expected.astype(np.float64)
        wrong = found != expected
    else:
        a, b = found.astype(np.complex128), expected.astype(np.complex128)
        is_finite = np.isfinite(b)
        scale = float(np.abs(b[is_finite]).max(initial=0.0))
        with np.errstate(invalid="ignore"):
            off = np.abs(a - b)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            wrong = ~same & ~(is_finite & (off <= tolerance * scale))
    if not wrong.any():
        return None
    largest = float(np.nanmax(np.abs(off[wrong]), initial=0.0))
    return f"{np.count_nonzero(wrong)} of {found.size} results differ, by up to {largest:.3g}"


def _pin(*, is_parallel: bool) -> None:
    """Run on one core from now on, unless the kernel uses several; where the OS allows it."""
    if not is_parallel and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@dataclass(frozen=True)
class Comparison:
    """Difference of two candidates.

    Attributes:
        outcome: "faster" if the second one certainly is; "slower"; or "same", if it is not certain.
        ratio: Median of the times of the second one relative to the first one.
    """

    outcome: str
    ratio: float


def compare(
    first: Callable[[], float], second: Callable[[], float], random: np.random.Generator, *,
    gives_up: bool = True,
) -> Comparison:
    """Measure two candidates alternately until the difference is certain.

    The order in a pair is random, so that a change of the clock rate affects both alike. Pairs are
    tested with the signed-rank test of Wilcoxon, at a few numbers of pairs.

    Args:
        first: Function that measures the first candidate; returns infinity if it failed.
        second: Function that measures the second candidate.
        random: Random numbers.
        gives_up: Whether to stop early if the second one is clearly worse. Default: True.

    >>> times = iter(range(1000, 2000))
    >>> compare(lambda: 2.0 + 1e-6 * next(times), lambda: 1.0 + 1e-6 * next(times),
    ...         np.random.default_rng(0)).outcome
    'faster'
    """
    logarithms: list[float] = []
    for pairs in range(1, _LOOKS[-1] + 1):
        if random.random() < 0.5:
            before, after = first(), second()
        else:
            after, before = second(), first()
        if math.isinf(after) or math.isinf(before):
            return Comparison("slower", math.inf if math.isinf(after) else 1.0)
        logarithms.append(math.log(after / before))
        ratio = math.exp(median(logarithms))
        if gives_up and any(
            pairs == count and ratio > factor and (pairs > 2 or min(logarithms) > math.log(factor))
            for count, factor in _CLEARLY_WORSE
        ):
            return Comparison("slower", ratio)
        if pairs in _LOOKS:
            if ratio <= _MIN_GAIN and signed_rank_p_value(logarithms) < _SIGNIFICANCE:
                return Comparison("faster", ratio)
            if signed_rank_p_value([-x for x in logarithms]) < _SIGNIFICANCE:
                return Comparison("slower", ratio)
            if gives_up and ratio > 1.0:
                break
    return Comparison("same", ratio)


def signed_rank_p_value(differences: Sequence[float]) -> float:
    """Return the probability of such small or smaller values if positive ones were as likely.

    This is the exact one-sided test of Wilcoxon: Individual comparisons by ranking methods,
    Biometrics Bulletin 1 (6), 1945. Zeros are left out, and equal magnitudes share their rank.

    >>> signed_rank_p_value([-1.0, -2.0, -3.0])
    0.125
    >>> signed_rank_p_value([1.0, -2.0, -3.0])
    0.25
    """
    values = sorted((x for x in differences if x), key=abs)
    doubled: list[int] = []
    starts = [0, *(k for k, (a, b) in enumerate(pairwise(values), 1) if abs(a) != abs(b))]
    for start, end in pairwise([*starts, len(values)]) if values else ():
        doubled += [start + end + 1] * (end - start)
    positive = sum(rank for rank, value in zip(doubled, values, strict=True) if value > 0)
    counts = np.zeros(sum(doubled) + 1)
    counts[0] = 1.0
    for rank in doubled:
        counts[rank:] += counts[: len(counts) - rank].copy()
    return float(counts[: positive + 1].sum() / 2.0 ** len(values))
