"""Invalid arguments are rejected with the same error on every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import TecompError, dist
from tests.messages import diagnostic

TEAM = dist.world()
OTHER = TEAM.split(0)
ODD = TEAM.rank == 1
TOO_LARGE = dist.Mesh((TEAM.size + 1,))


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    try:
        call(*arguments, **named)
    except TecompError as error:
        found = repr(diagnostic(error)).replace(f"team={OTHER.id}", "team=another")
        return found.replace(f"'number': {OTHER.id}", "'number': 'another'")
    raise AssertionError(call)


foreign = dist.init_dtensor(OTHER, (5,))
whole = dist.Partition((4,), "float64", TOO_LARGE, [dist.Shard(0)])
found = [
    refused(dist.init_dtensor, TEAM, (4,), mesh=TOO_LARGE),
    refused(xp.zeros, 4, team=TEAM, placements=whole),
    refused(dist.local_shape, TEAM, foreign).replace(str(foreign), "'N'"),
    refused(xp.from_local, xp.ones(3, team=OTHER), TEAM),
    refused(lambda: xp.ones(3, team=TEAM) + xp.ones(3, team=OTHER)),
    refused(xp.from_local, np.ones((2, 3 + ODD)), TEAM),
    refused(xp.from_local, np.ones(2, "float32" if ODD else "float64"), TEAM),
    refused(xp.from_local, np.ones((2,) * (1 + ODD)), TEAM),
]
assert TEAM.comm.allgather(found) == [found] * TEAM.size
if TEAM.rank == 0:
    print(*found, sep="\n")
