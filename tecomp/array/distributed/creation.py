"""Create distributed arrays from numbers, elements or shards; enable all sharding rules.

Each rank creates its shard. Other modules load this one when a program uses a team.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import tecomp.array.distributed.elementwise
import tecomp.array.distributed.linear_algebra
import tecomp.array.distributed.manipulation
import tecomp.array.distributed.message_queue
import tecomp.array.distributed.reductions
import tecomp.array.distributed.sorting  # noqa: F401  imports register the rules
from tecomp.array.distributed.elementwise import choose_sharding
from tecomp.array.distributed.gather_scatter import (
    normalize_distributed_indices,
    places_of,
    scatter_to_owners,
)
from tecomp.array.distributed.linear_algebra import apply_library_operation
from tecomp.array.distributed.manipulation import repeat_sharded
from tecomp.array.distributed.message_queue import explain, flush_messages, is_settled
from tecomp.array.distributed.partitions import (
    blocks_of_partition,
    default_partition,
    partition,
    replicated_partition,
    row_of,
)
from tecomp.array.distributed.sharding_rules import (
    as_shared,
    contiguous_local,
    gather_elements,
    rank_of,
    record_distributed,
    replicate,
    reshard,
    shard_like_operands,
    shard_replicated,
)
from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import (
    DistributedHooks,
    Node,
    ShardedNode,
    local_type,
    materialized_node,
    part_of,
    record,
    register_distributed_hooks,
)
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.setitem import copy_as_stored, is_borrowed, is_constant
from tecomp.array.kernels.generators import create_array
from tecomp.array.single_controller import collective, is_sent
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Replicate
from tecomp.dist.runtime.call_tracking import alone as one_runs
from tecomp.dist.runtime.dtensor import partition_of_parts, redistribute
from tecomp.dist.runtime.team import AnyTeam, team_of
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.operations.manipulation import BroadcastOp
from tecomp.ptensor.types import PTensorType

Placements: TypeAlias = "Sequence[Placement] | Partition | None"


def number_of(team: AnyTeam) -> int:
    """Return the number of a team.

    Raises:
        TeamError: If the team is unknown.
    """
    return team_of(team).id


def of_team(ptype: PTensorType, team: AnyTeam) -> PTensorType:
    """Return an array type with a team."""
    return PTensorType(ptype.shape, ptype.dtype, ptype.device, number_of(team))


def requested_partition(ptype: PTensorType, placements: Placements, where: str) -> Partition:
    """Return the partition for the placements that a caller gives.

    Args:
        ptype: Type of the array, with its team.
        placements: Placements for the team as a one-dimensional mesh, or a partition with its own
            mesh. None: the first axis in blocks.
        where: Function name for error messages.

    Raises:
        ArrayValueError: If the partition has another shape, is the partition of a view, or has
            partial values.
        LayoutError: If the placements do not match the array or the mesh.
        TeamError: If the mesh and the team differ in size.
    """
    assert ptype.team is not None
    if placements is None:
        return default_partition(ptype)
    mesh = row_of(ptype.team)
    if isinstance(placements, Partition):
        _check(placements, ptype, where)
        mesh, placements = placements.mesh, placements.placements
        team_of(ptype.team).check_mesh(mesh)
    elif not isinstance(placements, Sequence):
        placements = [placements]
    found = Partition(ptype.shape, ptype.dtype, mesh, placements)
    if found.op is not None:
        raise ArrayValueError(
            "{where}: arrays do not support partial values, got placements {placements}; use "
            "Shard(axis) or Replicate(), or xp.from_local for local parts that must be combined",
            where=where, placements=list(found.placements),
        )
    return partition(ptype.shape, ptype.dtype, mesh, found.placements)


def _check(requested: Partition, ptype: PTensorType, where: str) -> None:
    if requested.shape != ptype.shape or requested.windows is not None:
        view = " as a view" if requested.windows else ""
        raise ArrayValueError(
            "{where}: the partition describes {named}{view}, but the array is {type}; pass a "
            "partition with the shape of the array, or pass placements",
            where=where, named=requested.named, view=view, type=ptype,
        )


@collective
def create_filled(value: Node, ptype: PTensorType, placements: Placements, where: str) -> Node:
    """Create an array filled with a value or a broadcast array; each rank creates only its shard.

    Args:
        value: Node of the team, without axes or broadcast to the shape.
        ptype: Type of the array.
        placements: Placements or partition, as in `requested_partition`.
        where: Function name for error messages.
    """
    target = requested_partition(ptype, placements, where)
    if value.type.dtype != ptype.dtype:
        value = record(CastOp(ptype.dtype), value)
    if value.type.shape:
        return reshard(as_shared(apply_view(BroadcastOp(ptype.shape), value)), target)
    x = as_shared(value)
    return ShardedNode(
        ptype, apply_view(BroadcastOp(target.local_shape(rank_of(x))), x.part), target, x.ticket
    )


@collective
def create_generated(op: Creation, team: AnyTeam, placements: Placements, where: str) -> Node:
    """Create an array of generated elements; each rank creates only its shard.

    Args:
        op: Creation operation, without a team.
        team: Team of processes.
        placements: Placements or partition, as in `requested_partition`.
        where: Function name for error messages.
    """
    base_type = op.infer()
    ptype = of_team(base_type, team)
    target = requested_partition(ptype, placements, where)
    if blocks_of_partition(target) is None:
        replicated = ShardedNode(ptype, create_array(op), replicated_partition(ptype, target.mesh))
        return reshard(replicated, target)
    index: Any = target.local_index(team_of(team).rank)
    extents = tuple([max(s.stop - s.start, 0) for s in index])
    return ShardedNode(ptype, create_array(op, (extents, tuple([s.start for s in index]))), target)


@collective
def shard_or_reshard(
    node: Node, team: AnyTeam, placements: Placements, where: str, copies: bool = False
) -> Node:
    """Shard a replicated array, or redistribute an array of the team.

    Args:
        node: Array.
        team: Team of processes.
        placements: Placements or partition, as in `requested_partition`.
        where: Function name for error messages.
        copies: If True, copy the shard if the owner of its memory can write it.
    """
    if node.type.team is None:
        node = materialized_node(data_of(node), of_team(node.type, team))
    ptype = node.type
    if ptype.team != number_of(team):
        raise ArrayValueError(
            "{where}: x belongs to team {team}, but team is {number_of}; gather x first: "
            "xp.gather(x)",
            where=where, team=ptype.team, number_of=number_of(team),
        )
    if placements is None and isinstance(node, ShardedNode):
        return node
    target = requested_partition(ptype, placements, where)
    if copies and blocks_of_partition(target) is None:  # the elements are sent later
        node = _copy(node)
    found = shard_replicated(node, target)
    if copies and found.part.data is not None:
        found.set_shard(_copy(found.part), found.partition)
    return found


def _copy(node: Node) -> Node:
    """Return a node whose memory no other owner can write."""
    data = node.data
    if data is None or not is_borrowed(data) or is_constant(data):
        return node
    return materialized_node(copy_as_stored(data), node.type)


def assemble(part: Node, team: AnyTeam, axis: int, explicit: Partition | None) -> Node:
    """Assemble a distributed array from shards.

    Args:
        part: Shard of this process; its elements are not copied.
        team: Team of processes.
        axis: Axis along which the shards are concatenated if no partition is given.
        explicit: Partition of the array; partial values are reduced.

    Raises:
        TeamError: If the shards do not match, or under single-controller execution.
    """
    one_runs.check("from_local")
    found = team_of(team)
    data = contiguous_local(part)
    source = partition_of_parts(found, data, axis) if explicit is None else explicit
    ptype = PTensorType(source.shape, part.type.dtype, part.type.device, found.id)
    placements = tuple([Replicate() if isinstance(p, Partial) else p for p in source.placements])
    target = partition(ptype.shape, ptype.dtype, source.mesh, placements)
    if explicit is not None:
        _check(explicit, ptype, "from_local")
        # Each rank with a shard of other extents raises the error itself.
        data = redistribute(found, explicit, target, data)
    return ShardedNode(ptype, materialized_node(data, local_type(ptype, data.shape)), target)


def partition_of_node(node: Node) -> Partition:
    """Return the partition of a distributed array."""
    return as_shared(node).partition


def local_part(node: Node) -> Node:
    """Return the shard of this process.

    Raises:
        TeamError: If a single controller runs the script.
    """
    one_runs.check("to_local")
    return part_of(as_shared(node))


@collective
def gather_replicated(node: Node) -> Node:
    """Return a replicated copy of a distributed array as an array without a team."""
    return part_of(replicate(as_shared(node), "gather"))


def _settle(xs: Sequence[ShardedNode], at_once: bool) -> None:
    """Wait for messages; a single controller makes the workers compute the same arrays."""
    if not is_sent() or not all(map(is_settled, xs)):
        (_compute_together if at_once else _settle_together)(tuple(xs))


def compute_parts(xs: Sequence[ShardedNode]) -> None:
    """Wait for messages, and compute the shards of arrays meanwhile."""
    flush_messages(xs, compute_shards=True)


_settle_together = collective(flush_messages, others=evaluate)
_compute_together = collective(compute_parts, others=evaluate)

register_distributed_hooks(DistributedHooks(
    collective(record_distributed), gather_elements, collective(shard_like_operands),
    collective(apply_library_operation),
    collective(places_of), collective(normalize_distributed_indices), collective(scatter_to_owners),
    collective(repeat_sharded),
    collective(choose_sharding), explain, _settle,
))
