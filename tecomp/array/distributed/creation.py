"""Arrays of a team made of numbers, of elements, or of parts: each process makes its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tecomp.array.distributed import register_rules as register_rules
from tecomp.array.distributed.partitions import cuts_of, everywhere, partition, row_of, usual
from tecomp.array.distributed.sharding_rules import (
    as_shared,
    brought,
    divided,
    gathered,
    in_one_piece,
    rank_of,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Node, Shared, leaf, local_type, part_of, record
from tecomp.array.graph.views import moved
from tecomp.array.indexing.setitem import copy_as_stored, is_borrowed, is_constant
from tecomp.array.kernels.generators import created
from tecomp.array.single_controller.protocol import together
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Replicate
from tecomp.dist.runtime.call_tracking import alone as one_runs
from tecomp.dist.runtime.dtensor import partition_of_parts, redistribute
from tecomp.dist.runtime.team import AnyTeam, team_of
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.operations.elementwise import Cast
from tecomp.ptensor.operations.manipulation import Broadcast
from tecomp.ptensor.types import PTensorType

Placements: TypeAlias = "Sequence[Placement] | Partition | None"


def number_of(team: AnyTeam) -> int:
    """The number of a team.

    Raises:
        TeamError: there is no such team.
    """
    return team_of(team).id


def of_team(type: PTensorType, team: AnyTeam) -> PTensorType:
    """The type of an array as one of a team."""
    return PTensorType(type.shape, type.dtype, type.device, number_of(team))


def chosen(type: PTensorType, placements: Placements, where: str) -> Partition:
    """The partition that users say, for an array of a team.

    Args:
        type: of the array.
        placements: for the processes in a row; or a partition, for those of its mesh; None for the
            first axis in blocks.
        where: the function, for messages.

    Raises:
        ArrayValueError: it is the partition of an array of another shape, or of a view; or values
            are partial.
        LayoutError: placements do not fit.
        TeamError: the mesh has another number of processes.
    """
    assert type.team is not None
    if placements is None:
        return usual(type)
    mesh = row_of(type.team)
    if isinstance(placements, Partition):
        _check(placements, type, where)
        mesh, placements = placements.mesh, placements.placements
        team_of(type.team).check_mesh(mesh)
    elif not isinstance(placements, Sequence):
        placements = [placements]
    found = Partition(type.shape, type.dtype, mesh, placements)
    if found.op is not None:
        raise ArrayValueError(
            f"{where}: the placements are {list(found.placements)}, and arrays have no partial "
            "values; give Shard(axis) or Replicate(), and from_local parts that are to be combined"
        )
    return partition(type.shape, type.dtype, mesh, found.placements)


def _check(given: Partition, type: PTensorType, where: str) -> None:
    if given.shape != type.shape or given.windows is not None:
        view = " as a view" if given.windows else ""
        raise ArrayValueError(
            f"{where}: the partition is that of {given.named}{view}, "
            f"and the array is {type}; give one of that shape, or placements"
        )


@together
def filled(value: Node, type: PTensorType, placements: Placements, where: str) -> Node:
    """One value everywhere, or an array repeated; only the part of this process is made.

    Args:
        value: of the team; without axes, or it broadcasts.
        type: of the array.
        placements: as for `chosen`.
        where: the function, for messages.
    """
    target = chosen(type, placements, where)
    if value.type.dtype != type.dtype:
        value = record(Cast(type.dtype), value)
    if value.type.shape:
        return brought(as_shared(moved(Broadcast(type.shape), value)), target)
    x = as_shared(value)
    return Shared(type, moved(Broadcast(target.local_shape(rank_of(x))), x.part), target, x.ticket)


@together
def numbered(op: Creation, team: AnyTeam, placements: Placements, where: str) -> Node:
    """Elements that follow from their index; only the part of this process is made.

    Args:
        op: makes them, without a team.
        team: the processes.
        placements: as for `chosen`.
        where: the function, for messages.
    """
    own = op.infer()
    type = of_team(own, team)
    target = chosen(type, placements, where)
    if cuts_of(target) is None:
        whole = Shared(type, created(op), everywhere(type, target.mesh))
        return brought(whole, target)
    index: Any = target.local_index(team_of(team).rank)
    extents = tuple([max(at.stop - at.start, 0) for at in index])
    return Shared(type, created(op, (extents, tuple([at.start for at in index]))), target)


@together
def kept(
    node: Node, team: AnyTeam, placements: Placements, where: str, copies: bool = False
) -> Node:
    """Divide an array that every process has, or redistribute an array of the team.

    Args:
        node: the array.
        team: the processes.
        placements: as for `chosen`.
        where: the function, for messages.
        copies: whether to copy the part of this process if its owner can write the memory.
    """
    if node.type.team is None:
        node = leaf(data_of(node), of_team(node.type, team))
    type = node.type
    if type.team != number_of(team):
        raise ArrayValueError(
            f"{where}: x belongs to team {type.team}, and team is {number_of(team)}; gather it "
            "first: xp.gather(x)"
        )
    if placements is None and isinstance(node, Shared):
        return node
    target = chosen(type, placements, where)
    if copies and cuts_of(target) is None:  # sent later
        node = _copied(node)
    found = divided(node, target)
    if copies and found.part.data is not None:
        found.found(_copied(found.part), found.partition)
    return found


def _copied(node: Node) -> Node:
    """Return a node whose memory its owner cannot write."""
    data = node.data
    if data is None or not is_borrowed(data) or is_constant(data):
        return node
    return leaf(copy_as_stored(data), node.type)


def of_parts(part: Node, team: AnyTeam, axis: int, given: Partition | None) -> Node:
    """The array that parts make up.

    Args:
        part: what this process has; its elements are not copied.
        team: the processes.
        axis: along which parts lie one after the other, if no partition is given.
        given: what each process has; partial values are combined.

    Raises:
        TeamError: parts do not fit, or one process runs the script alone.
    """
    one_runs.check("from_local")
    found = team_of(team)
    data = in_one_piece(part)
    own = partition_of_parts(found, data, axis) if given is None else given
    type = PTensorType(own.shape, part.type.dtype, part.type.device, found.id)
    placed = tuple([Replicate() if isinstance(p, Partial) else p for p in own.placements])
    target = partition(type.shape, type.dtype, own.mesh, placed)
    if given is not None:
        _check(given, type, "from_local")
        # Parts of other extents are refused by each process that has one.
        data = redistribute(found, given, target, data)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def alike(node: Node) -> Partition:
    """The partition of an array of a team."""
    return as_shared(node).partition


def part(node: Node) -> Node:
    """What this process has of an array of a team.

    Raises:
        TeamError: one process runs the script alone.
    """
    one_runs.check("to_local")
    return part_of(as_shared(node))


@together
def alone(node: Node) -> Node:
    """An array of a team with all of its elements, as one of this process."""
    return part_of(gathered(as_shared(node), "gather"))
