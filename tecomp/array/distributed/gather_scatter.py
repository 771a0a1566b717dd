"""Data-dependent gather and scatter between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tecomp.array.distributed.elementwise import AlignedOperands, align_operand, align_operands
from tecomp.array.distributed.message_queue import (
    counted_allgather,
    counted_alltoall,
    flush_messages,
    queue_of,
)
from tecomp.array.distributed.partitions import (
    AxisBlocks,
    blocks_of_partition,
    default_partition,
    partition_from_blocks,
    replicated_partition,
)
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    as_row_sharded,
    as_shared,
    contiguous_local,
    cuts,
    is_replicated,
    number,
    rank_of,
    reshard,
    team_number,
    with_blocks,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, ShardedNode, local_type, materialized_node
from tecomp.array.indexing.data_dependent import ascontiguous, copy_row_major, normalize_index_array
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.operations.manipulation import Take
from tecomp.ptensor.types import PTensorType, broadcast_shapes


class OwnerRoutes:
    """Routing of rows from each rank to their owners, and back.

    Attributes:
        team: Number of the team.
        owners: Owner rank of each row of this process.
    """

    def __init__(self, team: int, owners: Buffer) -> None:
        self._team = team
        self._order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=team_of(team).size)
        self._ends = np.cumsum(counts)[:-1]

    def sent(self, rows: Buffer) -> list[Buffer]:
        """Send rows to their owners; return the received rows by rank, in each sender's order."""
        return counted_alltoall(self._team, np.split(rows[self._order], self._ends))

    def answered(self, replies: Sequence[Buffer]) -> Buffer:
        """Send results back; return one per row that this process sent, in the original order."""
        found = np.concatenate(counted_alltoall(self._team, replies))
        rows = np.empty_like(found)
        rows[self._order] = found
        return rows


class RoutedIndices:
    """Sharded index arrays.

    Attributes:
        mesh: Mesh of processes.
        cuts: Cuts of the broadcast shape of the index arrays.
        shape: Shape of the local part.
        rows: Local indices: a row per element, a column per indexed axis.
    """

    def __init__(self, op: Take, x: ShardedNode, indices: Sequence[ShardedNode]) -> None:
        shape = broadcast_shapes([index.type.shape for index in indices], op.where)
        ptype = x.type.like(shape, "int64")
        xs, self.mesh, self.cuts = align_operands(indices, ptype)
        if self.mesh.ndim > 1 or (shape and not self.cuts):
            target = default_partition(ptype)
            self.mesh, self.cuts = target.mesh, blocks_of_partition(target) or ()
            xs = [align_operand(node, shape, AlignedOperands(self.mesh, self.cuts)) for node in xs]
        flush_messages((x, *xs))
        self.shape = partition_from_blocks(ptype, self.mesh, self.cuts).local_shape(rank_of(x))
        columns = [np.broadcast_to(data_of(node.part), self.shape).reshape(-1) for node in xs]
        self.rows = np.stack(columns, axis=1)

    def row(self, k: int) -> Buffer:
        """Return the indices along one axis."""
        return self.rows[:, k]


def owner_ranks(cut: AxisBlocks, positions: Buffer) -> Buffer:
    """Return the number of the piece that contains each index of an axis."""
    return np.searchsorted(np.array(cut.ends[1:]), positions, "right")


def in_front(data: Buffer, axes: Sequence[int]) -> Buffer:
    """Return a view of a shard with the indexed axes in front."""
    return np.moveaxis(data, axes, range(len(axes)))


def key_of(op: Take, x: ShardedNode, cut: AxisBlocks, rows: Buffer) -> tuple[Buffer, ...]:
    """Convert global indices to an index of the local shard."""
    first = cut.ends[number(x, cut)]
    return tuple([
        rows[:, k] - (first if axis == cut.axis else 0) for k, axis in enumerate(op.axis)
    ])


def gather_from_owners(
    op: Take, x: ShardedNode, indices: Sequence[ShardedNode], ptype: PTensorType, cut: AxisBlocks
) -> ShardedNode:
    """Gather elements at indices onto the ranks that have the indices.

    Args:
        op: Operation that gives the indexed axes, exactly one of which is cut.
        x: Input array.
        indices: Nonnegative index arrays, broadcast against each other.
        ptype: Type of the result.
        cut: Cut of the array.
    """
    routed = RoutedIndices(op, x, indices)
    first = contiguous_local(x.part)
    front = in_front(first, op.axis)
    routes = OwnerRoutes(team_number(x), owner_ranks(cut, routed.row(op.axis.index(cut.axis))))
    requests = routes.sent(routed.rows)
    found = routes.answered([front[key_of(op, x, cut, request)] for request in requests])
    trailing = front.shape[len(op.axis) :]
    data = found.reshape(*routed.shape, *trailing)
    index_rank = len(routed.shape)
    data = np.moveaxis(data, range(index_rank), range(op.place, op.place + index_rank))
    result_cuts = [index_cut._replace(axis=index_cut.axis + op.place) for index_cut in routed.cuts]
    target = partition_from_blocks(ptype, routed.mesh, result_cuts)
    return ShardedNode(ptype, materialized_node(data, local_type(ptype, data.shape)), target)


def normalize_distributed_indices(node: Node, extent: int) -> tuple[Node, int | None]:
    """Convert negative indices, and return an index that is out of bounds, if any."""
    x = as_block_partitioned(as_shared(node))
    flush_messages((x,))
    data = ascontiguous(data_of(x.part)).reshape(-1)
    values, invalid = normalize_index_array(data, extent)
    outside = data[:0] if invalid is None else data[invalid : invalid + 1]
    ptype = x.type.like(x.type.shape, "int64")
    shape = x.part.type.shape
    part = materialized_node(values.reshape(shape), local_type(ptype, shape))
    result = with_blocks(ptype, part, x.partition.mesh, cuts(x))
    return result, first_of(x, outside)


def first_of(x: ShardedNode, values: Buffer) -> int | None:
    """Return the first integer of the lowest rank that has one; None if no rank has one."""
    if not is_replicated(x):
        values = counted_allgather(team_number(x), values[:1])
    return int(values[0]) if len(values) else None


def places_of(node: Node) -> ShardedNode:
    """Return the flat indices where a mask is true; each rank has those of its shard."""
    mask = as_block_partitioned(as_shared(node))
    if mask.partition.mesh.ndim > 1 or not cuts(mask) or not _is_in_rows(mask):
        mask = reshard(mask, default_partition(mask.type))
    flush_messages((mask,))
    data = data_of(mask.part).reshape(-1)
    found = cuts(mask)
    ptype = mask.type.like((), "int64")
    if not found:
        hits = np.flatnonzero(data)
        ptype = ptype.like(hits.shape)
        target = partition_from_blocks(ptype, mask.partition.mesh, ())
        return ShardedNode(ptype, materialized_node(hits, local_type(ptype, hits.shape)), target)
    (cut,) = found
    inner_size = int(np.prod(mask.type.shape[cut.axis + 1 :], dtype=np.int64))
    hits = np.flatnonzero(data) + cut.ends[number(mask, cut)] * inner_size
    lengths = counted_allgather(team_number(mask), np.array([len(hits)])).tolist()
    ends = (0, *accumulate(lengths))
    ptype = ptype.like((ends[-1],))
    target = partition_from_blocks(ptype, mask.partition.mesh, [AxisBlocks(0, cut.mesh_axis, ends)])
    return ShardedNode(ptype, materialized_node(hits, local_type(ptype, hits.shape)), target)


def _is_in_rows(x: ShardedNode) -> bool:
    """Return whether the shards are consecutive in row-major order."""
    return all(n == 1 for n in x.type.shape[: cuts(x)[0].axis])


def scatter_to_owners(op: Take, node: Node, value: Node, *indices: Node) -> Node:
    """Replace elements at indices; the last of equal indices takes effect.

    Args:
        op: Operation that gives the indexed axes.
        node: Array.
        value: Values, in the result shape of `op`.
        indices: Nonnegative index arrays, broadcast against each other.
    """
    queue_of(team_number(node)).step("x[...] = value")
    x, ix = as_block_partitioned(as_shared(node)), [as_block_partitioned(as_shared(index)) for index
        in indices]
    found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found and x.partition.mesh.ndim > 1:
        x = as_row_sharded(x)
        found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found:
        data = _send_to_owners(op, x, as_shared(value), ix, found[0])
    else:
        data = _put_beside(op, x, as_shared(value), ix)
    return ShardedNode(x.type, materialized_node(data, local_type(x.type, data.shape)), x.partition)


def _send_to_owners(
    op: Take, x: ShardedNode, value: ShardedNode, indices: Sequence[ShardedNode], cut: AxisBlocks
) -> Buffer:
    """Send elements to the owners of their positions, which write them in order."""
    routed = RoutedIndices(op, x, indices)
    value_cuts = [index_cut._replace(axis=index_cut.axis + op.place) for index_cut in routed.cuts]
    value = reshard(value, partition_from_blocks(value.type, routed.mesh, value_cuts))
    flush_messages((value,))
    index_rank = len(routed.shape)
    rows = np.moveaxis(
        data_of(value.part), range(op.place, op.place + index_rank), range(index_rank))
    trailing = rows.shape[index_rank:]
    routes = OwnerRoutes(team_number(x), owner_ranks(cut, routed.row(op.axis.index(cut.axis))))
    positions = np.concatenate(routes.sent(routed.rows))
    elements = np.concatenate(routes.sent(rows.reshape(len(routed.rows), *trailing)))
    data = copy_row_major(data_of(x.part))
    in_front(data, op.axis)[key_of(op, x, cut, positions)] = elements
    return data


def _put_beside(
    op: Take, x: ShardedNode, value: ShardedNode, indices: Sequence[ShardedNode]
) -> Buffer:
    """Write to the local shard, if no indexed axis is cut."""
    ix = [reshard(index, replicated_partition(index.type, x.partition.mesh)) for index in indices]
    index_rank = value.type.rank - (x.type.rank - len(op.axis))
    other_axes = [axis for axis in range(x.type.rank) if axis not in op.axis]
    axes = {axis: k if k < op.place else k + index_rank for k, axis in enumerate(other_axes)}
    value_cuts = [cut._replace(axis=axes[cut.axis]) for cut in cuts(x)]
    value = reshard(value, partition_from_blocks(value.type, x.partition.mesh, value_cuts))
    flush_messages((x, value, *ix))
    data = copy_row_major(data_of(x.part))
    rows = np.moveaxis(
        data_of(value.part), range(op.place, op.place + index_rank), range(index_rank))
    in_front(data, op.axis)[tuple([data_of(index.part) for index in ix])] = rows
    return data
