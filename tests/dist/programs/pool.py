"""Processes that run programs of this directory one after the other on request."""

from __future__ import annotations

import io
import json
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from runpy import run_path
from typing import Any

import tecomp.array as xp
from tecomp import dist
from tests.strategies.single_flight import build_once

_PAUSE = 0.005
"""Seconds between polls for the next program; a blocking MPI receive occupies a core."""


def asked(comm: Any) -> list[str]:
    """Return the next program and its arguments; an empty list ends the pool."""
    if comm.rank == 0:
        words = json.loads(sys.stdin.readline() or "[]")
        for rank in range(1, comm.size):
            comm.send(words, rank)
        return list(words)
    while not comm.Iprobe(0):
        time.sleep(_PAUSE)
    return list(comm.recv(source=0))


def ran(words: list[str]) -> list[str]:
    """Run a program with fresh counters and return its output lines."""
    counters = xp.statistics.counters
    counters.__init__()  # type: ignore[misc]
    sys.argv[:] = [str(Path(__file__).parent / f"{words[0]}.py"), *words[1:]]
    out = io.StringIO()
    with redirect_stdout(out):
        run_path(sys.argv[0], run_name="__main__")
    return out.getvalue().splitlines()


def main() -> None:
    """Run programs until no further one is requested."""
    build_once()
    comm = dist.world().comm.Dup()
    while words := asked(comm):
        lines = ran(words)
        comm.Barrier()
        if comm.rank == 0:
            print(json.dumps(lines), flush=True)


main()
