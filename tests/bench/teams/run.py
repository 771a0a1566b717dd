"""Table of multi-process cases, compared with DTensor and JAX.

`python tests/bench/run.py dist --threads 2` uses the installed peers. `python -m
tests.bench.teams.run 2 --peers PYTHON` uses a Python with torch and jax.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
PEERS = {"dtensor": "torch", "jax_gloo": "jax"}
"""Modules of the peers, and the packages that they require."""
LIMIT = 110


def main(arguments: Sequence[str]) -> int:
    """Print the table for the given number of processes, with peers of another Python."""
    n = int(arguments[0])
    if "--peers" not in arguments:
        return tell(n, sys.executable, ())
    return tell(n, arguments[arguments.index("--peers") + 1], list(PEERS))


def tell(n: int, python: str, peers: Sequence[str]) -> int:
    """Print the table for the given number of processes.

    Args:
        n: Number of processes.
        python: Python interpreter with the packages of the peers.
        peers: Names in `PEERS` that are compared with tecomp.
    """
    columns = {"tecomp": _ours(n)}
    columns |= {peer: _peer(python, peer, n) for peer in peers}
    print(f"| {n} processes | " + " | ".join(columns) + " |")
    print("| --- | " + " | ".join(["---:"] * len(columns)) + " |")
    for name in columns["tecomp"]:
        print(f"| {name} | " + " | ".join(_cell(times.get(name)) for times in columns.values()) + " |")
    return int(not columns["tecomp"])


def _cell(times: Sequence[float] | None) -> str:
    return "-" if times is None else f"{times[0]:.2f} / {times[1]:.2f} ms"


def _environment(**more: str) -> dict[str, str]:
    alone = {"OMP_NUM_THREADS": "1", "TECOMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **alone, **more}


def _ours(n: int) -> dict[str, Sequence[float]]:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    command = [str(mpiexec), "-n", str(n), sys.executable, "-m", "mpi4py", "-m", "tests.bench.teams.ours"]
    done = subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=LIMIT, check=False)
    return _times([done.stdout], done.stderr)


def _peer(python: str, peer: str, n: int) -> dict[str, Sequence[float]]:
    port = str(20000 + os.getpid() % 20000)
    started = [
        subprocess.Popen(
            [python, "-m", f"tests.bench.teams.{peer}"],
            env=_environment(
                RANK=str(rank), WORLD_SIZE=str(n), MASTER_ADDR="localhost", MASTER_PORT=port,
                XLA_FLAGS="--xla_cpu_multi_thread_eigen=false"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(n)
    ]
    try:
        reported = [item.communicate(timeout=LIMIT) for item in started]
    finally:
        for item in started:
            item.kill()
    return _times([out for out, _ in reported], reported[0][1])


def _times(outputs: Sequence[str], errors: str) -> dict[str, Sequence[float]]:
    for line in "\n".join(outputs).splitlines():
        if line.startswith("TIMES "):
            found: dict[str, Sequence[float]] = json.loads(line[6:])
            return found
    print(errors[-800:], file=sys.stderr)
    return {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
