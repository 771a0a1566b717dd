"""A product of matrices cut into rows: the second one gathered, or sent around a ring meanwhile.

By NumPy and MPI alone, `tecomp run -n 4 tests/bench/teams/ring_mpi.py 1200`: what arrays of a team
would gain by a ring.
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
    """All rows of the second matrix first."""
    COMM.Allgather(y, whole)
    return x @ whole


def around(x: Matrix, y: Matrix, rooms: list[Matrix]) -> Matrix:
    """Products with the rows of one process, while those of the next one come."""
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
    """Of ten times of the slowest process, in milliseconds."""
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
