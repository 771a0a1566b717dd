"""What all processes of a team tell each other at once, counted for the report."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer
from tecomp.array.teams.queue import queue_of
from tecomp.dist.runtime.reductions import allgather, allreduce, alltoall, exscan


def told(team: int, data: Buffer) -> Buffer:
    """The arrays of all processes, one after the other along the first axis."""
    _count(team, "all_gather", data.nbytes)
    return allgather(team, data)


def dealt(team: int, parts: Sequence[Buffer]) -> list[Buffer]:
    """What each process has for this one, in the order of ranks."""
    own = queue_of(team).team.rank
    _count(team, "all_to_all", sum(part.nbytes for k, part in enumerate(parts) if k != own))
    return alltoall(team, parts)


def added_up(team: int, data: Buffer) -> Buffer:
    """The sum of the arrays of all processes, on all of them."""
    _count(team, "all_reduce", data.nbytes)
    return allreduce(team, data)


def before(team: int, data: Buffer, op: str) -> Buffer | None:
    """The arrays of the processes before this one combined; None on the first."""
    _count(team, "exscan", data.nbytes)
    return exscan(team, data, op)


def _count(team: int, what: str, nbytes: int) -> None:
    queue = queue_of(team)
    if queue.team.size > 1:
        counters.collectives += 1
        counters.sent[f"{what} for {queue.why}"] += nbytes
