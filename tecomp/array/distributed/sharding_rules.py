"""Registry of per-operation sharding rules, and resharding of operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from tecomp.array.distributed.message_queue import (
    defer_halo,
    defer_reshard,
    flush_messages,
    queue_of,
)
from tecomp.array.distributed.partitions import (
    AxisBlocks,
    ShiftedWindow,
    blocks_of_partition,
    default_partition,
    fits,
    is_same,
    partition_from_blocks,
    replicated_partition,
    row_of,
)
from tecomp.array.graph.evaluate import MIN_OPERATIONS, data_of, flush_if_long, no_elements
from tecomp.array.graph.node import (
    Buffer,
    Node,
    ShardedNode,
    local_type,
    materialized_node,
    part_of,
    record,
    replicated_as_local,
)
from tecomp.array.graph.views import apply_view
from tecomp.array.single_controller import collective
from tecomp.array.statistics import counters
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.runtime.team import COMPARES_ALL, team_of
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.manipulation import ExtractSlice
from tecomp.ptensor.types import PTensorType, numpy_dtype


def team_number(node: Node) -> int:
    """Return the number of the team of a node."""
    assert node.type.team is not None
    return node.type.team


def rank_of(node: Node) -> int:
    """Return the rank of this process in the team of a node."""
    return team_of(team_number(node)).rank


def depend_on_pending(x: ShardedNode, sources: Sequence[ShardedNode]) -> ShardedNode:
    """Let an array wait for the pending messages of the arrays from which it is computed."""
    x.ticket = max([x.ticket, *[y.ticket for y in sources]])
    # A shard without pending messages is local and can be evaluated at any time.
    if x.part.pending > MIN_OPERATIONS and x.ticket <= queue_of(team_number(x)).completed_ticket:
        flush_if_long(x.part)
    return x


def as_shared(node: Node) -> ShardedNode:
    """Return a node of a team as a node with a partition."""
    if isinstance(node, ShardedNode):
        return node
    return ShardedNode(
        node.type,
        replicated_as_local(node),
        replicated_partition(node.type, row_of(team_number(node))),
    )


def is_replicated(x: ShardedNode) -> bool:
    """Return whether every rank has all elements."""
    return blocks_of_partition(x.partition) == ()


def contiguous_local(node: Node) -> Buffer:
    """Return the local elements as a contiguous array for messages."""
    return np.array(data_of(node), order="C", copy=None)


def reshard(x: ShardedNode, target: Partition) -> ShardedNode:
    """Reshard an array; a replicated array is cut without communication."""
    if is_same(x.partition, target):
        return x
    if is_replicated(x) and blocks_of_partition(target) is not None:
        index: Any = target.local_slice(rank_of(x))
        op = ExtractSlice(tuple([(s.start, s.step, max(s.stop - s.start, 0)) for s in index]))
        return ShardedNode(x.type, apply_view(op, x.part), target, x.ticket)
    if x.view is not None:
        base, starts, periodic = x.view
        result = with_halo(base, x.type, ShiftedWindow(starts, periodic, target))
        if result is not None:
            return result
    result = defer_reshard(x, target)
    result.view = x.view
    return result


def with_halo(base: ShardedNode, ptype: PTensorType, window: ShiftedWindow) -> ShardedNode | None:
    """Return a window of an array, received as a halo if it is close to the local shards."""
    if not fits(base.partition, window):
        return None
    result = defer_halo(base, ptype, window, window.target)
    result.view = base, window.starts, window.periodic
    return result


def as_block_partitioned(x: ShardedNode) -> ShardedNode:
    """Return an array whose axes are whole or in consecutive pieces, resharded if necessary."""
    return (
        x if blocks_of_partition(x.partition) is not None else reshard(x, default_partition(x.type))
    )


def as_row_sharded(x: ShardedNode) -> ShardedNode:
    """Reshard an array along its first axis over a one-dimensional mesh."""
    return reshard(x, default_partition(x.type))


def replicate(x: ShardedNode, reason: str) -> ShardedNode:
    """Replicate an array on all ranks; count the gather if communication is necessary."""
    if is_replicated(x):
        return x
    if x.type.size:
        counters.gathered[reason] += 1
    return reshard(x, replicated_partition(x.type, x.partition.mesh))


def gather_elements(node: Node, reason: str = "values") -> Buffer:
    """Return all elements of a distributed array on every rank."""
    if node.data is not None:
        return node.data
    if not isinstance(node, ShardedNode):
        raise no_elements()
    return data_of(part_of(node)) if is_replicated(node) else _collect(node, reason)


@collective
def _collect(x: ShardedNode, reason: str) -> Buffer:
    replicated = replicate(x, reason)
    flush_messages((replicated,))
    return data_of(replicated.part)


def shard_replicated(node: Node, partition: Partition | None = None) -> ShardedNode:
    """Shard a replicated array; each rank keeps its shard."""
    x = as_shared(node)
    return reshard(x, default_partition(x.type) if partition is None else partition)


def shard_like_operands(results: tuple[Node, ...], operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """Shard replicated results if an operand is sharded."""
    if all(is_replicated(as_shared(operand)) for operand in operands):
        return results
    return tuple([shard_replicated(result) for result in results])


def record_distributed(op: PTensorOp, ptype: PTensorType, operands: Sequence[Node]) -> Node:
    """Record an operation on distributed arrays.

    Communication is initiated now; local computation of each rank is recorded.

    Args:
        op: Operation.
        ptype: Type of the result.
        operands: Operands of one team.
    """
    assert ptype.team is not None
    if COMPARES_ALL:
        team_of(ptype.team).began(_describe(op, ptype, operands))
    queue_of(ptype.team).step(op.where)
    result = partitioned_rule(op, [as_shared(node) for node in operands], ptype)
    if COMPARES_ALL:
        _number_of(result)
    return result


_counts = count()
_numbers: WeakKeyDictionary[ShardedNode, int] = WeakKeyDictionary()
"""Sequence numbers of distributed arrays, in the order of recording, for cross-rank checks."""


def _number_of(x: ShardedNode) -> int:
    if x not in _numbers:
        _numbers[x] = next(_counts)
    return _numbers[x]


def _describe(op: PTensorOp, ptype: PTensorType, operands: Sequence[Node]) -> str:
    """Return a description of an operation that must be equal on all ranks."""
    inputs = ", ".join([_describe_node(node) for node in operands])
    return f"{op.where} {inputs} -> {ptype.dtype}{[*ptype.shape]}, {op}"


def _describe_node(node: Node) -> str:
    if isinstance(node, ShardedNode):
        return f"%{_number_of(node)}"
    if node.data is None:
        return f"{node.type.dtype}{[*node.type.shape]}"
    if node.data.size == 1:
        return str(node.data.reshape(-1)[0])
    return f"{node.type.dtype}{[*node.type.shape]} #{crc32(node.data.tobytes()):08x}"


def partitioned_rule(op: PTensorOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    """Apply the sharding rule of an operation to sharded operands.

    The result waits for pending messages of its operands and for messages that the rule adds.
    """
    assert ptype.team is not None
    queue = queue_of(ptype.team)
    before = queue.last
    result = rule(op, xs, ptype)
    if result.made_of is not None:
        return result
    if queue.last > before:
        result.ticket = queue.last
    return depend_on_pending(result, xs)


@singledispatch
def rule(op: PTensorOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    """Apply the sharding rule registered for an operation; the default gathers all operands."""
    return gather_and_apply(op, xs, ptype)


def gather_and_apply(op: PTensorOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    """Gather all operands, compute the operation on every rank, and shard the result."""
    replicated = [replicate(x, op.where) for x in xs]
    part = record(op, *[x.part for x in replicated])
    result = depend_on_pending(
        ShardedNode(ptype, part, replicated_partition(ptype, mesh_of(xs))), replicated
    )
    return result if all(map(is_replicated, xs)) else reshard(result, default_partition(ptype))


def empty_sharded(ptype: PTensorType, mesh: Mesh) -> ShardedNode:
    """Return an empty distributed array."""
    data = np.empty(ptype.shape, numpy_dtype(ptype.dtype))
    return ShardedNode(
        ptype,
        materialized_node(data, local_type(ptype, ptype.shape)),
        replicated_partition(ptype, mesh),
    )


def mesh_of(xs: Sequence[ShardedNode]) -> Mesh:
    """Return the mesh of the first sharded operand."""
    return next((x for x in xs if not is_replicated(x)), xs[0]).partition.mesh


def cuts(x: ShardedNode) -> tuple[AxisBlocks, ...]:
    """Return the cuts of an array in consecutive pieces."""
    found = blocks_of_partition(x.partition)
    assert found is not None
    return found


def number(x: ShardedNode, cut: AxisBlocks) -> int:
    """Return the number of the local piece of a cut."""
    return x.partition.mesh.coordinates(rank_of(x))[cut.mesh_axis]


def unsplit_axes(x: ShardedNode, axes: Sequence[int]) -> ShardedNode:
    """Reshard an array so that some axes are not cut."""
    remaining = [cut for cut in cuts(x) if cut.axis not in axes]
    if len(remaining) == len(cuts(x)):
        return x
    return reshard(x, partition_from_blocks(x.type, x.partition.mesh, remaining))


def with_blocks(
    ptype: PTensorType, part: Node, mesh: Mesh, new_cuts: Sequence[AxisBlocks]
) -> ShardedNode:
    """Return a distributed array from local shards and cuts."""
    return ShardedNode(ptype, part, partition_from_blocks(ptype, mesh, new_cuts))
