"""Sample sort, searchsorted and set functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tecomp.array.distributed.gather_scatter import OwnerRoutes, first_of
from tecomp.array.distributed.linear_algebra import (
    call,
    elements,
    in_one_row,
    of_data,
    of_parts,
    row,
)
from tecomp.array.distributed.message_queue import (
    counted_allgather,
    counted_allreduce,
    counted_alltoall,
    pending_array,
)
from tecomp.array.distributed.partitions import (
    AxisBlocks,
    blocks,
    blocks_of_partition,
    partition,
    partition_from_blocks,
    replicated_partition,
    row_of,
)
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    as_row_sharded,
    cuts,
    is_replicated,
    number,
    partitioned_rule,
    rank_of,
    reshard,
    team_number,
)
from tecomp.array.graph.node import (
    Buffer,
    Node,
    ShardedNode,
    local_type,
    materialized_node,
    record,
    type_of,
)
from tecomp.array.statistics import counters
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Replicate
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.library_functions import compute, find_invalid_sorter
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp
from tecomp.ptensor.operations.manipulation import Combine, ExtractSlice, PermuteDims, Reshape, Take
from tecomp.ptensor.operations.sorting import (
    Argsort,
    IsIn,
    SearchSorted,
    Sort,
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    UniqueValues,
)
from tecomp.ptensor.types import PTensorType

_SAMPLES = 256
"""Number of samples of each rank per rank."""


@of_parts.register(Sort)
@of_parts.register(Argsort)
def _(op: Sort | Argsort, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    x = as_block_partitioned(xs[0])
    (ptype,) = op.results(x.type)
    axis = op.axis % x.type.rank
    if all(cut.axis != axis for cut in cuts(x)):
        (data,) = call(op, elements(x))
        return (of_data(ptype, data, x, cuts(x)),)
    others = [(n, -k) for k, n in enumerate(x.type.shape) if k != axis]
    lines = prod(n for n, _ in others)
    if lines == 1:
        line = _sorted_row(op, in_one_row(x), ptype.like((ptype.size,)))
        return (line if ptype.rank == 1 else partitioned_rule(Reshape(ptype.shape), [line], ptype),)
    if lines < x.partition.mesh.size and x.type.shape[axis] > _SAMPLES * x.partition.mesh.size:
        return (_line_by_line(op, x, ptype, axis),)
    # Cut another axis instead, so that each sorted line is local.
    other = -max(others)[1]
    mesh = x.partition.mesh if x.partition.mesh.ndim == 1 else row_of(team_number(x))
    ends = blocks(x.type.shape[other], mesh.size)
    x = reshard(x, partition_from_blocks(x.type, mesh, [AxisBlocks(other, 0, ends)]))
    (data,) = call(op, elements(x))
    return (of_data(ptype, data, x, cuts(x)),)


def _line_by_line(op: Sort | Argsort, x: ShardedNode, ptype: PTensorType, axis: int) -> ShardedNode:
    """Sort each line on all ranks, for fewer lines than ranks."""
    order = (*(k for k in range(ptype.rank) if k != axis), axis)
    permuted = partitioned_rule(PermuteDims(order), [x], type_of(PermuteDims(order), x.type))
    shape = permuted.type.shape
    results: list[ShardedNode] = []
    for index in np.ndindex(*shape[:-1]):
        spans = (*((k, 1, 1) for k in index), (0, 1, shape[-1]))
        line = partitioned_rule(
            ExtractSlice(spans), [permuted], x.type.like((*(1,) * len(index), shape[-1]))
        )
        found = _sorted_row(op, in_one_row(line), ptype.like(shape[-1:]))
        results.append(as_row_sharded(found))  # in one common partition
    lines = Combine("stack", 0)
    stacked = partitioned_rule(lines, results, type_of(lines, *[node.type for node in results]))
    stacked = partitioned_rule(Reshape(shape), [stacked], ptype.like(shape))
    inverse = PermuteDims(tuple([order.index(k) for k in range(ptype.rank)]))
    return partitioned_rule(inverse, [stacked], ptype)


def _sorted_row(op: Sort | Argsort, x: ShardedNode, ptype: PTensorType) -> ShardedNode:
    """Sort a one-dimensional array; the sizes of the pieces depend on the data."""
    data = elements(x)
    (cut,) = cuts(x)
    positions = None
    if isinstance(op, Argsort):
        (permutation,) = call(Argsort(0, op.descending), data)
        data, positions = data[permutation], permutation + cut.ends[number(x, cut)]
    else:
        counters.libraries[op.library] += 1
        data = in_order(data, descending=op.descending)
    ends = ends_of(x, data, descending=op.descending)
    received = np.concatenate(counted_alltoall(team_number(x), split_at(data, ends)))
    if positions is None:
        return row(x, merge_runs(received, descending=op.descending), ptype.dtype)
    (order,) = compute(Argsort(0, op.descending), received)
    found = np.concatenate(counted_alltoall(team_number(x), split_at(positions, ends)))
    return row(x, found[order], ptype.dtype)


def in_order(data: Buffer, *, descending: bool = False) -> Buffer:
    """Sort a local one-dimensional array stably.

    Only zeros can be equal and distinguishable, so other arrays use an unstable sort.

    >>> in_order(np.array([1.0, 0.0, -1.0, -0.0]))
    array([-1.,  0., -0.,  1.])
    """
    if data.dtype.kind not in "iuf":
        return compute(Sort(0, descending), data)[0]
    result = np.sort(data)
    if data.dtype.kind == "f":
        low, high = np.searchsorted(result, 0.0), np.searchsorted(result, 0.0, "right")
        if high > low:
            zeros = data[data == 0]
            result[low:high] = zeros[::-1] if descending else zeros
    return result[::-1] if descending else result


def merge_runs(data: Buffer, *, descending: bool = False) -> Buffer:
    """Merge concatenated sorted runs stably.

    A stable sort detects sorted runs and only merges them.

    >>> merge_runs(np.array([3.0, 1.0, 4.0, 2.0]), descending=True)
    array([4., 3., 2., 1.])
    """
    if descending:
        return np.sort(data[::-1], kind="stable")[::-1]
    return np.sort(data, kind="stable")


def ends_of(
    x: ShardedNode, data: Buffer, *, descending: bool, group_equal: bool = False
) -> list[int]:
    """Return positions that cut sorted arrays into balanced pieces for all ranks.

    With `group_equal`, equal elements go to one rank.
    """
    team, rank, size = team_number(x), rank_of(x), x.partition.mesh.size
    count = min(len(data), _SAMPLES * size)
    sampled = np.arange(count) * len(data) // max(count, 1)
    lengths = counted_allgather(team, np.array([len(data)]))
    counts = np.minimum(lengths, _SAMPLES * size)
    values = counted_allgather(team, np.ascontiguousarray(data[sampled]))
    (order,) = compute(Argsort(0, descending), values)
    ranks = np.repeat(np.arange(size), counts)[order]
    positions = np.concatenate([
        np.arange(n) * m // max(n, 1) for n, m in zip(counts, lengths, strict=True)])[order]
    weights = np.cumsum((lengths / np.maximum(counts, 1))[ranks])
    cut_points = np.searchsorted(weights, lengths.sum() * np.arange(1, size) / size)
    ends = [0]
    for k in np.minimum(cut_points, len(order) - 1) if len(order) else ():
        source, value = int(ranks[k]), values[order[k]]
        if source == rank and not group_equal:
            ends.append(int(positions[k]))
            continue
        with_equal = rank < source and not group_equal
        ends.append(_below(data, value, with_equal=with_equal, descending=descending))
    return [*ends, *[len(data)] * (size + 1 - len(ends))]


def _below(data: Buffer, value: Any, *, with_equal: bool, descending: bool) -> int:
    """Return the number of elements before a value in a sorted array, or up to and including it."""
    if descending:
        side: Any = "left" if with_equal else "right"
        return len(data) - int(np.searchsorted(data[::-1], value, side))
    return int(np.searchsorted(data, value, "right" if with_equal else "left"))


def split_at(data: Buffer, ends: Sequence[int]) -> list[Buffer]:
    """Split a one-dimensional array at positions."""
    return [data[a:b] for a, b in pairwise(ends)]


@of_parts.register
def _(op: SearchSorted, xs: Sequence[ShardedNode]) -> tuple[Node, ...]:
    (ptype,) = op.results(*[x.type for x in xs])
    line, values, *sorter = [as_block_partitioned(x) for x in xs]
    for permutation in sorter:
        line = _in_order(line, permutation)
    return (of_data(ptype, _find_insertion_positions(op, line, values), values, cuts(values)),)


def _in_order(line: ShardedNode, sorter: ShardedNode) -> ShardedNode:
    """Return the elements of a one-dimensional array in the order of a sorter.

    Raises:
        ArrayIndexError: If an index of the sorter is out of bounds.
    """
    data = elements(sorter)
    outside = first_of(sorter, data[(data < 0) | (data >= line.type.size)])
    if outside is not None:
        raise find_invalid_sorter(outside, line.type.size)
    positions = partitioned_rule(
        CastOp("int64"), [sorter], sorter.type.like(sorter.type.shape, "int64")
    )
    return partitioned_rule(Take((0,), 0), [line, positions], line.type.like(line.type.shape))


def _find_insertion_positions(op: SearchSorted, line: ShardedNode, values: ShardedNode) -> Buffer:
    """Return the insertion positions of the local values."""
    if is_replicated(line) or not line.type.size:
        return call(
            op,
            elements(reshard(line, replicated_partition(line.type, line.partition.mesh))),
            elements(values),
        )[0]
    line = in_one_row(line)
    if is_replicated(values):
        # Each rank counts the smaller elements in its shard.
        return counted_allreduce(team_number(line), call(op, elements(line), elements(values))[0])
    size = line.partition.mesh.size
    if line.type.size * size <= 2 * values.type.size:
        return call(
            op,
            elements(reshard(line, replicated_partition(line.type, line.partition.mesh))),
            elements(values),
        )[0]
    return _request_positions(op, line, elements(values))


def _request_positions(op: SearchSorted, line: ShardedNode, values: Buffer) -> Buffer:
    """Return insertion positions from the ranks whose shards contain them."""
    team, (cut,) = team_number(line), cuts(line)
    data = elements(line)
    last_elements = counted_allgather(team, data[-1:])
    filled = np.flatnonzero(cut.sizes)
    row = values.reshape(-1)
    (part,) = call(op, last_elements, row)
    routes = OwnerRoutes(team, filled[np.minimum(part, len(filled) - 1)])
    first = cut.ends[number(line, cut)]
    positions = [call(op, data, chunk)[0] + first for chunk in routes.sent(row)]
    return routes.answered(positions).reshape(values.shape)


@of_parts.register
def _(op: IsIn, xs: Sequence[ShardedNode]) -> tuple[Node, ...]:
    x, among = as_block_partitioned(xs[0]), as_block_partitioned(xs[1])
    (ptype,) = op.results(x.type, among.type)
    if not is_replicated(among) and x.type.size < among.type.size:
        return (_is_in_parts(op, x, among, ptype),)
    replicated = reshard(among, replicated_partition(among.type, among.partition.mesh))
    (data,) = call(op, elements(x), elements(replicated))
    return (of_data(ptype, data, x, cuts(x)),)


def _is_in_parts(op: IsIn, x: ShardedNode, among: ShardedNode, ptype: PTensorType) -> ShardedNode:
    """Test membership by replicating the smaller first operand and searching local shards."""
    mesh = among.partition.mesh
    replicated = reshard(x, replicated_partition(x.type, mesh))
    (data,) = call(IsIn(), elements(replicated), elements(among))
    target = replicated_partition(ptype, mesh) if is_replicated(x) else x.partition
    target = partition(ptype.shape, ptype.dtype, target.mesh, target.placements)
    placements: list[Placement] = [Replicate()] * mesh.ndim
    for cut in cuts(among):
        placements[cut.mesh_axis] = Partial("any")
    partial = Partition(ptype.shape, target.dtype, mesh, placements)
    part = materialized_node(data, local_type(ptype, data.shape))
    found = pending_array(ptype, target, part, redistribution(partial, target), replicated.ticket)
    if op.invert:
        found = ShardedNode(
            ptype, record(FUNCTIONS["logical_not"], found.part), target, found.ticket
        )
    return found


@of_parts.register(UniqueValues)
@of_parts.register(UniqueCounts)
@of_parts.register(UniqueAll)
@of_parts.register(UniqueInverse)
def _(op: Any, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    x = as_block_partitioned(xs[0])
    if is_replicated(x):
        return None
    if len(cuts(x)) < x.partition.mesh.ndim:  # some ranks have equal shards
        x = as_row_sharded(x)
    found = _Different(x, elements(x))
    values = row(x, found.values, x.type.dtype)
    builders: dict[str, Any] = {"values": lambda: values}
    builders["counts"] = lambda: row(x, found.counts, "int64")
    builders["indices"] = lambda: row(x, found.indices, "int64")
    builders["inverse"] = lambda: of_data(
        x.type.like(x.type.shape, "int64"),
        found.inverse(_first(values)).reshape(x.part.type.shape), x, cuts(x))
    return tuple([builders[part]() for part in op.parts])


def _first(values: ShardedNode) -> int:
    """Return the global index of the first local element."""
    (cut,) = blocks_of_partition(values.partition) or ()
    return cut.ends[number(values, cut)]


class _Different:
    """Unique values of an array that this process owns.

    Attributes:
        values: Unique values in ascending order.
        counts: Number of occurrences of each value on all ranks.
        indices: Index of the first occurrence of each value in the flattened array.
    """

    def __init__(self, x: ShardedNode, data: Buffer) -> None:
        counters.libraries["numpy.unique"] += 1
        self._team = team_number(x)
        values, first, self._local, counts = np.unique(
            data.reshape(-1), return_index=True, return_inverse=True, return_counts=True,
            equal_nan=False)
        ends = ends_of(x, values, descending=False, group_equal=True)
        parts = [values, counts, _places(x)[first]]
        received = [counted_alltoall(self._team, split_at(part, ends)) for part in parts]
        self._lengths = [len(run) for run in received[0]]
        values, counts, first = [np.concatenate(part) for part in received]
        # Each NaN is a unique value; NaNs are ordered by position.
        self._order = np.lexsort((first, values))
        values, counts, first = values[self._order], counts[self._order], first[self._order]
        self._differs = np.ones(len(values), bool)
        self._differs[1:] = values[1:] != values[:-1]
        begin = np.flatnonzero(self._differs)
        self.values = values[begin]
        self.counts = np.add.reduceat(counts, begin) if len(begin) else counts
        self.indices = np.minimum.reduceat(first, begin) if len(begin) else first

    def inverse(self, first: int) -> Buffer:
        """Return the inverse indices of the local elements, flattened.

        Args:
            first: Global index of the first unique value that this process owns.
        """
        numbers = np.empty(len(self._order), np.int64)
        numbers[self._order] = np.cumsum(self._differs) - 1 + first
        ends = [0, *np.cumsum(self._lengths).tolist()]
        return np.concatenate(counted_alltoall(self._team, split_at(numbers, ends)))[self._local]


def _places(x: ShardedNode) -> Buffer:
    """Return the positions of the local elements in the flattened array."""
    starts = {cut.axis: cut.ends[number(x, cut)] for cut in cuts(x)}
    positions = np.zeros((), np.int64)
    for axis, (extent, count) in enumerate(zip(x.type.shape, x.part.type.shape, strict=True)):
        first = starts.get(axis, 0)
        positions = positions[..., None] * extent + np.arange(first, first + count)
    return positions.reshape(-1)
