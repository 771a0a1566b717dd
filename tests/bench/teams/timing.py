"""How cases on several processes are timed: the slowest of them counts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median

N = 2000
"""Rows and columns of 4e6 elements."""
M = 1200
"""Rows and columns of matrices that are multiplied and divided otherwise."""
STEPS = 10
"""Of the stencil."""
ROUNDS = 7


def timed(
    work: Callable[[], object], wait: Callable[[], object], greatest: Callable[[float], float],
) -> tuple[float, float]:
    """The shortest time and the median of some work, in milliseconds, after two runs.

    Args:
        work: does it to its end.
        wait: lets all processes begin at once.
        greatest: of the times of all processes.
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
    """One line of JSON, of one process."""
    if rank == 0:
        print("TIMES " + json.dumps(times), flush=True)
        sys.stdout.flush()
