"""Matrix product in row blocks: all-gather of the second factor, or an overlapped ring.

The script uses NumPy and MPI alone, `tecomp run -n 4 tests/bench/teams/ring_mpi.py 1200`. It
estimates the gain of a ring for distributed arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tecomp import dist

TEAM = dist.world()
COMM, RANK, N = TEAM.comm, TEAM.rank, TEAM.size
ORDER = int(sys.argv[1])
ROWS = ORDER // N
Matrix = np.ndarray[Any, np.dtype[np.float64]]


def gathered(x: Matrix, y: Matrix, whole: Matrix) -> Matrix:
    """Gather all rows of the second matrix first."""
    COMM.Allgather(y, whole)
    return x @ whole


def around(x: Matrix, y: Matrix, rooms: list[Matrix]) -> Matrix:
    """Multiply by the rows of one process while the rows of the next one are transferred."""
    product, total = np.empty((ROWS, ORDER)), np.zeros((ROWS, ORDER))
    for k in range(N):
        first = (RANK - k) % N * ROWS
        room, requests = rooms[k % 2], []
        if k < N - 1:
            requests = [COMM.Irecv(room, (RANK - 1) % N), COMM.Isend(y, (RANK + 1) % N)]
        np.matmul(x[:, first : first + ROWS], y, out=product)
        total += product
        for request in requests:
            request.Wait()
        y = room
    return total


def shortest(work: Callable[[], Matrix]) -> float:
    """Return the minimum of ten times of the slowest process, in milliseconds."""
    times = []
    for _ in range(12):
        dist.barrier(TEAM)
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return 1e3 * float(dist.allreduce(TEAM, np.array(times[2:]), "max").min())


random = np.random.default_rng(RANK)
x, y = random.random((ROWS, ORDER)), random.random((ROWS, ORDER))
whole, rooms = np.empty((ORDER, ORDER)), [np.empty_like(y) for _ in range(2)]
np.testing.assert_allclose(around(x, y, rooms), gathered(x, y, whole))
found = {
    "alone": shortest(lambda: x @ whole),
    "gathered": shortest(lambda: gathered(x, y, whole)),
    "around": shortest(lambda: around(x, y, rooms)),
}
if RANK == 0:
    print(f"{N} processes, {ORDER}: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in found.items()))
