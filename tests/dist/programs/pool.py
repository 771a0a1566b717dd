"""Processes that run one program after the other: those of this folder, as a test asks for them."""

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

_PAUSE = 0.005
"""Seconds between two looks for the next program, since MPI waits with all that a processor has."""


def asked(comm: Any) -> list[str]:
    """The next program and its arguments; nothing at the end."""
    if comm.rank == 0:
        words = json.loads(sys.stdin.readline() or "[]")
        for rank in range(1, comm.size):
            comm.send(words, rank)
        return list(words)
    while not comm.Iprobe(0):
        time.sleep(_PAUSE)
    return list(comm.recv(source=0))


def ran(words: list[str]) -> list[str]:
    """The lines that a program prints; what it counts begins at 0."""
    counters = xp.statistics.counters
    counters.__init__()  # type: ignore[misc]
    sys.argv[:] = [str(Path(__file__).parent / f"{words[0]}.py"), *words[1:]]
    out = io.StringIO()
    with redirect_stdout(out):
        run_path(sys.argv[0], run_name="__main__")
    return out.getvalue().splitlines()


def main() -> None:
    """Run programs until nobody asks for one."""
    comm = dist.world().comm.Dup()
    while words := asked(comm):
        lines = ran(words)
        comm.Barrier()
        if comm.rank == 0:
            print(json.dumps(lines), flush=True)


main()
