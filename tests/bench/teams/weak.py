"""Weak scaling of a stencil and a sum; run it on 1, 2, 3 and 4 processes.

`tecomp run -n 4 tests/bench/teams/weak.py`
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tests.bench.teams.torus import stencil

TEAM = dist.world()
ROWS, COLUMNS, STEPS = 1000, 2000, 10


def shortest(work: Callable[[], object]) -> float:
    """Return the minimum of seven times of the slowest process, in milliseconds."""
    times = []
    for _ in range(9):
        dist.barrier(TEAM)
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * float(dist.allreduce(TEAM, np.array(times[2:]), "max").min())


x = xp.asarray(np.ones((ROWS * TEAM.size, COLUMNS)), team=TEAM)
found = shortest(lambda: xp.eval(stencil(x, STEPS))), shortest(lambda: float(xp.sum(x * x)))
if TEAM.rank == 0:
    print(f"{TEAM.size} processes: stencil {found[0]:.2f} ms, sum of squares {found[1]:.2f} ms")
