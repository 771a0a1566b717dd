"""Start programs on several processes and collect their output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "dist" / "programs"
COMPARED = {"TECOMP_DEBUG": "1"}
"""Environment in which ranks check that they all record the same operations."""
LIMIT = 120
"""Seconds after which a program is terminated; on an idle machine a program takes a few seconds."""


def ran(
    program: str, n: int, *arguments: str, started: tuple[str, ...] | None = None,
    kernels: Path | None = None, variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program of `tests/dist/programs` on `n` processes.

    Args:
        program: Name of the program.
        n: Number of processes.
        arguments: Command-line arguments of the program.
        started: Command that starts Python on the processes. Default: `launcher(n)`.
        kernels: Directory of the kernel cache. Default: the inherited cache settings.
        variables: Additional environment variables.

    Returns:
        Completed process with its output.
    """
    return subprocess.run(
        [*(started or launcher(n)), str(PROGRAMS / f"{program}.py"), *arguments],
        env=environment(MPIEXEC_TIMEOUT=str(LIMIT), **_kept(kernels), **(variables or {})),
        capture_output=True, text=True, timeout=LIMIT + 10, check=False,
    )


def _kept(kernels: Path | None) -> dict[str, str]:
    return {} if kernels is None else {"TECOMP_CACHE_DIR": str(kernels), "TECOMP_CACHE": "on"}


def printed(program: str, n: int, *arguments: str, kernels: Path | None = None) -> list[str]:
    """Run a program on `n` processes, check that it succeeds and return its output lines."""
    done = ran(program, n, *arguments, kernels=kernels, variables=COMPARED)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def environment(**variables: str) -> dict[str, str]:
    """Return an environment for single-threaded processes, with additional variables."""
    alone = {"OMP_NUM_THREADS": "1", "TECOMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **alone, **variables}


def launcher(n: int) -> tuple[str, ...]:
    """Return the command that starts Python on `n` processes."""
    mpiexec = Path(sys.executable).parent / "mpiexec"
    return str(mpiexec), "-n", str(n), sys.executable, "-m", "mpi4py"


class Pools:
    """Persistent MPI processes that run programs one after the other, to save start-up time."""

    def __init__(self, kernels: Path) -> None:
        self._kernels = kernels
        self._started: dict[int, _Pool] = {}

    def printed(self, program: str, n: int, *arguments: str) -> list[str]:
        """Run a program on `n` processes, check that it succeeds and return its output lines."""
        if n not in self._started:
            self._started[n] = _Pool(n, self._kernels)
        try:
            return self._started[n].printed(program, *arguments)
        except BaseException:
            self._started.pop(n).end()
            raise

    def end(self) -> None:
        """Terminate all processes."""
        while self._started:
            self._started.popitem()[1].end()


class _Pool:
    """One MPI job of a pool."""

    def __init__(self, n: int, kernels: Path) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `end`
        self._process = subprocess.Popen(
            [*launcher(n), str(PROGRAMS / "pool.py")],
            env=environment(**_kept(kernels), **COMPARED),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True,
        )

    def printed(self, *words: str) -> list[str]:
        """Run a program and return its output lines."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        limit = threading.Timer(LIMIT, self._process.terminate)
        limit.start()
        answer = self._process.stdout.readline()
        limit.cancel()
        try:
            return list(json.loads(answer))
        except ValueError:
            raise AssertionError(self._complaint(words, answer)) from None

    def _complaint(self, words: tuple[str, ...], answer: str) -> str:
        rest = answer + self._process.communicate(timeout=LIMIT)[0]
        self._said.seek(0)
        return f"{words} ended with {self._process.returncode}:\n{rest}\n{self._said.read()}"

    def end(self) -> None:
        """Terminate the processes."""
        self._process.terminate()
        self._process.communicate(timeout=LIMIT)
        self._said.close()
