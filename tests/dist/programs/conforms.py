"""Random calls with arrays of a team give the same results as NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array import Array
from tecomp.dist.runtime import alone
from tests.array.conformance.calls import MAKERS
from tests.array.conformance.draws import Draw
from tests.array.conformance.tries import fault_of

TEAM = dist.world()

GATHERED = xp.statistics.counters.gathered

GATHERING: set[str] = set()
"""Functions that gathered all elements of an array on every process."""

MADE = ("arange", "eye", "full", "linspace", "ones", "zeros")
"""Creation functions, which take the team as an argument."""


class OfTeam(Draw):
    """Draws that place arrays on the team: sharded by rows, columns or blocks, or replicated."""

    def array(self, data: Any) -> Array:
        return xp.asarray(data, team=TEAM, placements=self.placed(data))

    def called(self, name: str, function: Callable[[], Any]) -> Any:
        GATHERED.clear()
        actual = function()
        arrays = actual if isinstance(actual, tuple) else (actual,)
        xp.eval(*[array for array in arrays if isinstance(array, Array)])
        if GATHERED:
            GATHERING.add(name)
        return actual

    def placed(self, data: Any) -> Any:
        if data.ndim < 2 or self.chance(0.7):
            return [self.placement(data.shape)]
        mesh = dist.Mesh((2, 2) if TEAM.size == 4 else (1, TEAM.size))
        first, second = self.number(0, data.ndim - 1), self.number(0, data.ndim - 2)
        other = dist.Shard(second + (second >= first)) if self.chance(0.8) else dist.Replicate()
        return dist.Partition(data.shape, data.dtype, mesh, [dist.Shard(first), other])

    def placement(self, shape: Sequence[int]) -> dist.Placement:
        if not shape or self.chance(0.15):
            return dist.Replicate()
        axis = self.number(0, len(shape) - 1) if self.chance(0.4) else 0
        kind = self.number(0, 3)
        if kind == 0:
            return dist.Shard(axis, block=self.number(1, 2))
        if kind == 1:
            ends = sorted(self.number(0, shape[axis]) for _ in range(TEAM.size - 1))
            sizes = np.diff([0, *ends, shape[axis]])
            return dist.Shard(axis, sizes=tuple(sizes.tolist()))
        return dist.Shard(axis)


def main(count: int, seed: int, names: Sequence[str]) -> None:
    """Try each function `count` times and print the differences."""
    wrong = 0
    for name in names or MAKERS:
        for k in range(count):
            source = {"team": TEAM} if name in MADE else {}
            fault = fault_of(name, (seed, k), OfTeam, source)
            # In single-controller mode, only the process that runs the script compares results.
            faults = [fault] if alone.is_serving else TEAM.comm.allgather(fault)
            if any(faults):
                wrong += 1
                rank = next(rank for rank, each in enumerate(faults) if each)
                if TEAM.rank == 0:
                    print(f"{name}, try {k}, rank {rank}: {faults[rank]}", flush=True)
    if TEAM.rank == 0:
        print(f"{wrong} of {count * len(names or MAKERS)} calls differ")
        print("gathered by", *sorted(GATHERING))


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
