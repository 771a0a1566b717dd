"""What is refused: on every process, with the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import TecompError, dist

TEAM = dist.world()
OTHER = TEAM.split(0)
ODD = TEAM.rank == 1
TOO_LARGE = dist.Mesh((TEAM.size + 1,))


def message(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    try:
        call(*arguments, **named)
    except TecompError as error:
        return error.message.replace(f"team {OTHER.id}", "another team").replace(f"team={OTHER.id}", "team=another")
    raise AssertionError(call)


foreign = dist.init_dtensor(OTHER, (5,))
whole = dist.Partition((4,), "float64", TOO_LARGE, [dist.Shard(0)])
found = [
    message(dist.init_dtensor, TEAM, (4,), mesh=TOO_LARGE),
    message(xp.zeros, 4, team=TEAM, placements=whole),
    message(dist.local_shape, TEAM, foreign).replace(str(foreign), "N"),
    message(xp.from_local, xp.ones(3, team=OTHER), TEAM),
    message(lambda: xp.ones(3, team=TEAM) + xp.ones(3, team=OTHER)),
    message(xp.from_local, np.ones((2, 3 + ODD)), TEAM),
    message(xp.from_local, np.ones(2, "float32" if ODD else "float64"), TEAM),
    message(xp.from_local, np.ones((2,) * (1 + ODD)), TEAM),
]
assert TEAM.comm.allgather(found) == [found] * TEAM.size
if TEAM.rank == 0:
    print(*found, sep="\n")
