"""Processes that diverge or fail: error messages, and termination of all processes."""

from __future__ import annotations

import sys
import time

import numpy as np

import tecomp.array as xp
from tecomp import dist

team = dist.world()
what, odd = sys.argv[1], team.rank == 1


def raises() -> None:
    if odd:
        raise ValueError("one rank alone")
    dist.barrier(team)


def all_raise() -> None:
    raise ValueError("on every rank")


def skips() -> None:
    if not odd:
        dist.barrier(team)
    dist.allreduce(team, np.ones(3))


def leaves() -> None:
    dist.allreduce(team, np.ones(3))
    if not odd:
        dist.allreduce(team, np.ones(3))


def exits() -> None:
    if odd:
        sys.exit(3)
    dist.barrier(team)


def shapes() -> None:
    dist.allreduce(team, np.ones(3 + odd))


def parts() -> None:
    dist.partition_of_parts(team, np.ones((2, 3 + odd)))


def part_of_a_partition() -> None:
    row = dist.Partition((2 * team.size,), "float64", dist.Mesh((team.size,)), [dist.Shard(0)])
    xp.from_local(np.ones(2 + odd), team, partition=row)


def other_sum() -> None:
    x = xp.ones(6, team=team)
    float(xp.sum(x) if odd else xp.max(x))


def other_operation() -> None:
    x = xp.ones(6, team=team)
    np.asarray(x * 2 if odd else x + 2)


def other_constant() -> None:
    x = xp.ones(6, team=team)
    np.asarray(x * (3.5 if odd else 2.5))


def other_operand() -> None:
    x, y = xp.ones(6, team=team), xp.zeros(6, team=team)
    np.asarray(x + (y if odd else x))


def other_shape() -> None:
    x = xp.ones(6, team=team)
    np.asarray(xp.sum(x[: 5 if odd else 6]))


def long_ago() -> None:
    """Diverge in a call that is older than the recorded calls, because this process starts late."""
    if odd:
        time.sleep(2)
    x = xp.ones(6, team=team)
    x = x * (3 if odd else 2)
    for _ in range(300):
        x = x + 1
    dist.barrier(team)


def is_slow() -> None:
    """Wait without an error."""
    if odd:
        time.sleep(1.5)
    dist.barrier(team)
    if team.rank == 0:
        print("patient")


def other_copy() -> None:
    rows = dist.init_dtensor(team, (4,))
    whole = dist.init_dtensor(team, (4,), placements=[dist.Replicate()])
    if not odd:
        dist.copy(team, rows, whole, np.ones(dist.local_shape(team, rows)), np.ones(4))
    dist.copy(team, rows, rows, np.ones(dist.local_shape(team, rows)), np.ones(dist.local_shape(team, rows)))
    dist.barrier(team)


{
    f.__name__: f
    for f in (
        raises, all_raise, skips, leaves, exits, shapes, parts, part_of_a_partition, other_sum, is_slow,
        other_copy, other_operation, other_constant, other_operand, other_shape, long_ago,
    )
}[what]()
