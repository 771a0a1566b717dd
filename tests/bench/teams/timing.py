"""Timing of multi-process cases: the slowest process counts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median

N = 2000
"""Rows and columns of arrays of 4e6 elements."""
M = 1200
"""Rows and columns of the matrices of products and of redistributions."""
STEPS = 10
"""Number of stencil steps."""
ROUNDS = 7


def timed(
    work: Callable[[], object], wait: Callable[[], object], greatest: Callable[[float], float],
) -> tuple[float, float]:
    """Return minimum and median time in milliseconds, after two warm-up runs.

    Args:
        work: Function that runs to completion.
        wait: Barrier of all processes.
        greatest: Maximum of a time over all processes.
    """
    work()
    work()
    times = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        work()
        times.append(greatest(1e3 * (time.perf_counter() - start)))
    return min(times), median(times)


def told(rank: int, times: dict[str, tuple[float, float]]) -> None:
    """Print one line of JSON, on one process."""
    if rank == 0:
        print("TIMES " + json.dumps(times), flush=True)
        sys.stdout.flush()
