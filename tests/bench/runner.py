"""Measure cases with all contenders alternately, so that disturbances affect all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

import numpy as np

from tests.bench.case import BenchError, Case
from tests.bench.contender import LIMIT, OURS, Contender, Peer
from tests.bench.machine import blas_core_types, cores, last_cache
from tests.bench.record import Result, Row

_FRESH_ROUNDS = 5
"""Maximum number of rounds, as each starts a process."""
_CACHES_AWAY = 4
"""Ratio of the size of all input copies to the last-level cache in memory-bound cases."""
_MOST_COPIES = 16
_PAUSE = 0.02
"""Seconds until the threads of the previous contender have stopped spinning."""
_FOLDERS = ("TECOMP_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR", "BENCH_FOLDER")


@dataclass
class Crew:
    """Processes of a run, each started on first use.

    Attributes:
        peers: Peers besides tecomp and the machine's limit.
        threads: Number of threads, unless a case fixes it.
        folder: Folder for compilation caches.
        clock: `wall`, or `cpu` for the CPU time of the process.
    """

    peers: Sequence[Peer]
    threads: int
    folder: Path
    clock: str = "wall"
    _started: dict[tuple[str, str, int], Contender] = field(default_factory=dict)

    def of(self, case: Case) -> list[Contender]:
        """Return the contenders of a case."""
        threads = case.threads or self.threads
        entries = [(OURS, "", threads)]
        if case.limit != "none":
            entries.insert(0, (LIMIT, "", threads))
        if case.goal.of_one_thread is not None:
            entries.append((OURS, "", 1))
        for peer in self.peers:
            variants = [""]
            if peer.name == "numpy" and case.has_blas:
                variants += blas_core_types()
            entries += [(peer, variant, threads) for variant in variants]
        found: dict[tuple[str, str, int], Contender] = {}
        for peer, variant, count in entries:
            contender = self._get(peer, variant, count)
            # Several core types may select the same kernels.
            found.setdefault((peer.name, contender.detail, count), contender)
        return list(found.values())

    def start(self, peer: Peer, variant: str, threads: int, folder: Path) -> Contender:
        """Start a separate process."""
        environment = dict.fromkeys(_FOLDERS, str(folder))
        if variant:
            environment["OPENBLAS_CORETYPE"] = variant
        return Contender(peer, cores(threads), environment)

    def _get(self, peer: Peer, variant: str, threads: int) -> Contender:
        key = (peer.name, variant, threads)
        if key not in self._started:
            self._started[key] = self.start(peer, variant, threads, self.folder)
        return self._started[key]

    def versions(self) -> dict[str, str]:
        """Return the package versions of the started contenders."""
        return {
            c.peer.package: c.version for c in self._started.values() if c.peer is not LIMIT
        }

    def close(self) -> None:
        """Terminate all processes."""
        for contender in self._started.values():
            contender.close()


@contextmanager
def crew(peers: Sequence[Peer], threads: int, clock: str = "wall") -> Iterator[Crew]:
    """Yield processes that are terminated at the end of the block.

    Raises:
        BenchError: If there are not enough cores.
    """
    if not cores(threads):
        raise BenchError(
            f"bench: --threads {threads} needs as many cores, and this process may use "
            f"{len(cores_allowed())}; ask for fewer, or start it without taskset"
        )
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = Crew(peers, threads, Path(folder), clock)
        try:
            yield result
        finally:
            result.close()


def cores_allowed() -> list[int]:
    """Return the cores that this process may use."""
    count = 1
    while cores(count + 1):
        count += 1
    return cores(count)


def measure(case: Case, team: Crew, rounds: int, seconds: float) -> Row:
    """Return one row, after creating the inputs and the expected result and timing the contenders alternately."""
    threads = case.threads or team.threads
    if not cores(threads):
        note = f"it needs {threads} cores, and this process may use {len(cores_allowed())}"
        return _row(case, threads, [Result(OURS.name, threads=threads, note=note)])
    if threads > 1 and team.clock == "cpu":
        note = "the processor's time adds up that of all threads"
        return _row(case, threads, [Result(OURS.name, threads=threads, note=note)])
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        inputs = case.inputs()
        for k, array in enumerate(inputs):
            np.save(folder / f"{k}.npy", array)
        if case.is_fresh:
            return _row(case, threads, _measure_fresh(case, team, folder, rounds))
        np.save(folder / "expected.npy", case.expected(inputs))
        return _row(case, threads, _measure_in_turns(case, team, folder, rounds, seconds))


def copies_of(case: Case) -> int:
    """Return the number of input copies that are used in turn."""
    if case.limit != "copy":
        return 1
    return min(-(-_CACHES_AWAY * last_cache() // case.bytes), _MOST_COPIES)


def _measure_in_turns(
    case: Case, team: Crew, folder: Path, rounds: int, seconds: float
) -> list[Result]:
    all_ranks = team.of(case)
    ready: list[Contender] = []
    notes: dict[int, tuple[str, bool]] = {}
    for contender in all_ranks:
        answer = contender.ask(case=case.name, folder=str(folder), copies=copies_of(case))
        note = _refusal(case, answer)
        if note is None:
            ready.append(contender)
        else:
            notes[id(contender)] = note, _is_fault(answer)
    times: dict[int, list[float]] = {id(contender): [] for contender in all_ranks}
    for turn in range(rounds):
        for k in range(len(ready)):
            # Each round starts with another contender, so that their neighbours vary.
            contender = ready[(k + turn) % len(ready)]
            answer = contender.ask(seconds=seconds, clock=team.clock)
            times[id(contender)] += answer.get("times", [])
            if "skipped" in answer:
                notes[id(contender)] = answer["skipped"], True
            if contender.threads > 1:
                sleep(_PAUSE)
    return [_result(c, times[id(c)], *notes.get(id(c), ("", False))) for c in all_ranks]


def _measure_fresh(case: Case, team: Crew, folder: Path, rounds: int) -> list[Result]:
    """Measure each time in a new process; for cached cases the first process fills the cache."""
    is_kept = bool(case.options.get("is_kept"))
    entries = [OURS, *team.peers]
    times: dict[str, list[float]] = {peer.name: [] for peer in entries}
    notes: dict[str, tuple[str, bool]] = {}
    last: dict[str, Contender] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as kept:
        for turn in range(min(rounds, _FRESH_ROUNDS) + is_kept):
            for peer in entries:
                if peer.name in notes:
                    continue
                name = f"{peer.name}-{0 if is_kept else turn}"
                contender = team.start(peer, "", case.threads or team.threads, Path(kept, name))
                last[peer.name] = contender
                answer = contender.ask(case=case.name, folder=str(folder), copies=1)
                if "skipped" not in answer:
                    answer = contender.ask(seconds=0, clock=team.clock)
                if "skipped" in answer:
                    notes[peer.name] = answer["skipped"], _is_fault(answer)
                elif turn or not is_kept:
                    times[peer.name] += answer["times"]
                contender.close()
    return [
        _result(last[name], times[name], *notes.get(name, ("", False))) for name in times
    ]


def _refusal(case: Case, answer: dict[str, Any]) -> str | None:
    """Return the reason why a contender is not timed; None if it is timed."""
    if "skipped" in answer:
        return str(answer["skipped"])
    error = answer.get("error", 0.0)
    if error <= case.tolerance:
        return None
    return (
        f"a wrong result: off by {error:.1e} of the largest value, "
        f"where {case.tolerance:.1e} is allowed"
    )


def _is_fault(answer: dict[str, Any]) -> bool:
    return bool(answer.get("failed", "skipped" not in answer))


def _result(contender: Contender, times: list[float], note: str, failed: bool) -> Result:
    times = [] if note else times
    return Result(
        contender.peer.name, contender.detail, contender.threads,
        min(times, default=None), median(times) if times else None, len(times), note, failed,
    )


def _row(case: Case, threads: int, results: list[Result]) -> Row:
    return Row(
        case.name, case.title, case.flops, case.bytes, case.limit, case.goal, threads,
        tuple(results),
    )


def measure_all(
    cases: Sequence[Case], team: Crew, rounds: int, seconds: float,
    tell: Callable[[Row], object],
) -> list[Row]:
    """Return a row for each case; `tell` receives each row as soon as it is measured."""
    rows = []
    for case in cases:
        rows.append(measure(case, team, rounds, seconds))
        tell(rows[-1])
    return rows
