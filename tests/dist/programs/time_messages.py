"""Time messages: `tecomp run -n 2 tests/dist/programs/time_messages.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from tecomp import dist

team = dist.world()
mesh = dist.Mesh((team.size,))


def tell(subject: str, call: Callable[[], object]) -> None:
    """Print the minimum and the median time in microseconds."""
    times = []
    for _ in range(50):
        dist.barrier(team)
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    if team.rank == 0:
        print(f"{subject:<44}{min(times):9.1f}{median(times):9.1f}", flush=True)


def moved(shape: tuple[int, ...], before: dist.Placement, after: dist.Placement) -> Callable[[], None]:
    """Return a redistribution of an array as a function."""
    source, target = (dist.Partition(shape, "float64", mesh, [p]) for p in (before, after))
    moves = dist.redistribution(source, target)
    here = np.random.default_rng(team.rank).random(source.local_shape(team.rank))
    there = np.empty(target.local_shape(team.rank))
    return lambda: dist.start_redistribution(team, moves, here, there).wait()


def around(axis: int) -> Callable[[], None]:
    """Return a halo update of a plane that is sharded along one axis."""
    plane = dist.Partition((2000, 2000), "float64", mesh, [dist.Shard(axis)])
    halo = dist.halo(plane, [int(axis == k) for k in range(2)])
    padded = np.zeros(halo.shape(team.rank))
    return lambda: dist.update_halo(team, halo, padded)


rows, columns, whole = dist.Shard(0), dist.Shard(1), dist.Replicate()
tell("1200 x 1200, rows to columns", moved((1200, 1200), rows, columns))
tell("1200 x 1200, columns to rows", moved((1200, 1200), columns, rows))
tell("1200 x 1200, rows to all", moved((1200, 1200), rows, whole))
tell("1200 x 1200, partial to rows", moved((1200, 1200), dist.Partial(), rows))
tell("1200 x 1200, partial to all", moved((1200, 1200), dist.Partial(), whole))
tell("8 x 8, rows to columns", moved((8, 8), rows, columns))
tell("a row of 2000 from each neighbour", around(0))
tell("a column of 2000 from each neighbour", around(1))
one, many = np.ones(1), np.ones(10**6)
tell("sum of one number", lambda: dist.allreduce(team, one))
tell("the same by MPI alone", lambda: team.comm.Allreduce(one, one.copy()))
tell("sum of 1,000,000 numbers", lambda: dist.allreduce(team, many))
tell("maximum of 1,000,000 numbers", lambda: dist.allreduce(team, many, "max"))
