"""Stencil variants: wait for halos, overlap the interior with halos, or choose by measurement.

`tecomp run -n 2 tests/bench/teams/overlapped.py 2000` passes the number of rows and columns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array.distributed import overlap
from tests.bench.teams.torus import stencil

TEAM = dist.world()
STEPS, ROUNDS = 10, 60
WAYS: dict[str, Callable[[Any], bool]] = {
    "waits first": lambda choice: False,
    "core first": lambda choice: True,
    "as measured": overlap.OverlapDecision.is_profitable,
}


def main(extent: int) -> None:
    """Run all variants in turn, and print a line for each."""
    x = xp.asarray(np.random.default_rng(0).random((extent, extent)), team=TEAM, copy=True)
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    waited: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, pays in WAYS.items():
            overlap.OverlapDecision.is_profitable = pays  # type: ignore[assignment, method-assign]
            xp.reset()
            dist.barrier(TEAM)
            start = perf_counter()
            xp.eval(stencil(x, STEPS))
            seconds = [perf_counter() - start, sum([each for _, each in xp.report().waited])]
            longest = dist.allreduce(TEAM, np.array(seconds), "max") * 1e3
            times[way].append(float(longest[0]))
            waited[way].append(float(longest[1]))
    for way in WAYS if TEAM.rank == 0 else ():
        known = times[way][ROUNDS // 5 :]
        print(
            f"{TEAM.size} processes, {extent} x {extent}, {way}: {min(known):.2f} / "
            f"{median(known):.2f} ms, waiting {min(waited[way]):.2f} / {median(waited[way]):.2f} ms")


main(int(sys.argv[1]))
