"""Arrays that the processes of a team have: made of parts, gathered, and divided otherwise."""

from __future__ import annotations

from typing import Any

from tecomp.array.arrays import Array, made, node_of, on_teams
from tecomp.array.functions.conversion import asarray
from tecomp.errors import ArrayValueError


def from_local(part: Any, team: Any, /, *, axis: int = 0, partition: Any = None) -> Array:
    """The array that the parts of the processes of a team make up.

    All processes of the team have to call it.

    Args:
        part: what this process has: an array without a team, or what `asarray` takes.
        team: the processes, a `dist.Team` or its number.
        axis: along which the parts lie one after the other.
        partition: who has what, a `dist.Partition`, in place of `axis`; partial values are
            combined.

    Raises:
        ArrayValueError: `part` is of a team itself, or the partition is that of a view.
        TeamError: there is no such team, or the parts do not fit each other or the partition.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> from_local([1, 2, 3], dist.world()).team
    1
    """
    node = node_of(asarray(part), "from_local", "part")
    if node.type.team is not None:
        raise ArrayValueError(
            f"from_local: part is {node.type}, an array of a team; give what this process has, "
            "x.to_local()"
        )
    return made(on_teams().of_parts(node, team, axis, partition))


def gather(x: Array, /) -> Array:
    """The whole of an array on every process, as an array without a team.

    All processes of the team have to call it.

    Args:
        x: an array; one without a team is given back.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> gather(xp.arange(3, team=dist.world()))
    Array([0, 1, 2], dtype=int64)
    """
    node = node_of(x, "gather")
    return x if node.type.team is None else made(on_teams().alone(node))


def redistribute(x: Array, placements: Any, /) -> Array:
    """An array of a team by another partition.

    All processes of the team have to call it.

    Args:
        x: the array.
        placements: what the processes in a row have, `[dist.Shard(1)]`; or a `dist.Partition`.

    Raises:
        ArrayValueError: `x` is of no team, or the partition is that of another array.
        LayoutError: the placements do not fit.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> x = redistribute(xp.ones((4, 6), team=dist.world()), [dist.Shard(1)])
    >>> x.partition.placements
    (Shard(1),)
    """
    node = node_of(x, "redistribute")
    if node.type.team is None:
        raise ArrayValueError(
            f"redistribute: x is {node.type}, an array of this process alone; give it a team "
            "first: xp.asarray(x, team=dist.world())"
        )
    return made(on_teams().kept(node, node.type.team, placements, "redistribute"))
