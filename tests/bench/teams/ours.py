"""Cases on distributed arrays, and the stencil by MPI alone: started by mpiexec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tests.bench.teams.stencil_mpi import Stencil
from tests.bench.teams.timing import STEPS, M, N, timed, told
from tests.bench.teams.torus import stencil

TEAM = dist.world()


def greatest(value: float) -> float:
    """Return the maximum over all processes."""
    return float(dist.allreduce(TEAM, np.array([value]), "max")[0])


def computed(make: Callable[[], Any]) -> Callable[[], object]:
    """Return a function that evaluates the array that `make` records."""
    return lambda: xp.eval(make())


def main() -> None:
    """Run all cases, after checking the stencil against the hand-written MPI program."""
    random = np.random.default_rng(0)
    field, matrix = random.random((N, N)), random.random((M, M))
    a, b = (xp.asarray(field, team=TEAM, copy=True) for _ in range(2))
    m, k = (xp.asarray(matrix, team=TEAM, copy=True) for _ in range(2))
    row = xp.asarray(random.random(N * N), team=TEAM)
    by_hand = Stencil(TEAM.comm, field)
    np.testing.assert_allclose(stencil(a, STEPS).to_local(), by_hand.steps(STEPS), rtol=1e-12)
    by_columns = [dist.Shard(1)]
    cases: dict[str, Callable[[], object]] = {
        "elementwise": computed(lambda: a * b + a),
        "sum": lambda: float(xp.sum(a)),
        "reshard": computed(lambda: xp.redistribute(m, by_columns)),
        "transpose": computed(lambda: xp.redistribute(m.T, [dist.Shard(0)])),
        "matmul": computed(lambda: m @ k),
        "stencil": computed(lambda: stencil(a, STEPS)),
        "stencil by MPI": lambda: by_hand.steps(STEPS),
        "sort": computed(lambda: xp.sort(row)),
    }
    told(TEAM.rank, {
        name: timed(work, lambda: dist.barrier(TEAM), greatest) for name, work in cases.items()
    })


main()
