"""Distributed matrix products and batched linear algebra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from tecomp.array.distributed.elementwise import align_operands, transfer_bytes
from tecomp.array.distributed.message_queue import (
    counted_allgather,
    flush_messages,
    pending_array,
    queue_of,
)
from tecomp.array.distributed.partitions import (
    AxisBlocks,
    blocks,
    blocks_of_partition,
    partition_from_blocks,
    replicated_partition,
    row_of,
)
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    as_row_sharded,
    as_shared,
    cuts,
    depend_on_pending,
    empty_sharded,
    mesh_of,
    number,
    partitioned_rule,
    reshard,
    rule,
    team_number,
    unsplit_axes,
    with_blocks,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, ShardedNode, local_type, materialized_node, record
from tecomp.array.statistics import counters
from tecomp.caches import memoize
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.errors import ArrayValueError
from tecomp.ptensor.library_functions import compute
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.operations.library_ops import FourierTransformOp, Matrices, Solve
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    Outer,
    TensorDot,
    TraceOp,
    VecDot,
)
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.operations.reduction import ReduceOp
from tecomp.ptensor.types import PTensorType


@rule.register
def _(op: Diagonal, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    row = x.type.rank - 2
    inner = [cut for cut in cuts(x) if cut.axis >= row]
    if len(inner) > 1:
        return partitioned_rule(op, [as_row_sharded(x)], ptype)
    split = [cut for cut in cuts(x) if cut.axis < row]
    offset = op.offset
    for cut in inner:
        first = cut.ends[number(x, cut)]
        # A rank has the part of the diagonal that is in its rows or columns.
        offset += first if cut.axis == row else -first
        start = max(-op.offset, 0) if cut.axis == row else max(op.offset, 0)
        count = ptype.shape[-1]
        ends = tuple([min(max(end - start, 0), count) for end in cut.ends])
        split.append(AxisBlocks(row, cut.mesh_axis, ends))
    part = record(Diagonal(offset), x.part)
    return depend_on_pending(with_blocks(ptype, part, x.partition.mesh, split), [x])


@rule.register
def _(op: TraceOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    (x,) = xs
    line = Diagonal(op.offset)
    total = ReduceOp("sum", (ptype.rank,), False, 0, op.dtype)
    return partitioned_rule(total, [partitioned_rule(line, [x], line.infer(x.type))], ptype)


@rule.register
def _(op: Cross, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    unsplit = [unsplit_axes(as_block_partitioned(x), (x.type.rank + op.axis,)) for x in xs]
    aligned, mesh, split = align_operands(unsplit, ptype)
    part = record(op, *[x.part for x in aligned])
    return depend_on_pending(with_blocks(ptype, part, mesh, split), aligned)


def apply_library_operation(
    op: LibraryOperation, operands: Sequence[Node]
) -> tuple[Node, ...] | None:
    """Compute a library operation on shards; return None if it needs whole arrays."""
    queue_of(team_number(operands[0])).step(op.where)
    return of_parts(op, [as_shared(node) for node in operands])


@singledispatch
def of_parts(op: LibraryOperation, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    """Compute a library operation by its sharding rule."""
    return None


def elements(x: ShardedNode) -> Buffer:
    """Return the evaluated local shard."""
    flush_messages((x,))
    return data_of(x.part)


def call(op: LibraryOperation, *data: Buffer) -> tuple[Buffer, ...]:
    """Call a library operation and count the call."""
    counters.libraries[op.library] += 1
    return compute(op, *data)


def of_data(
    ptype: PTensorType, data: Buffer, x: ShardedNode, new_cuts: Sequence[AxisBlocks]
) -> ShardedNode:
    """Build a distributed array from local results."""
    target = partition_from_blocks(ptype, x.partition.mesh, new_cuts)
    data = np.asarray(data, target.dtype)
    return ShardedNode(ptype, materialized_node(data, local_type(ptype, data.shape)), target)


def row(x: ShardedNode, data: Buffer, dtype: str) -> ShardedNode:
    """Build a one-dimensional array from local results of different lengths."""
    team = team_number(x)
    ends = (0, *accumulate(counted_allgather(team, np.array([len(data)])).tolist()))
    ptype = x.type.like((ends[-1],), dtype)
    target = partition_from_blocks(ptype, row_of(team), [AxisBlocks(0, 0, ends)])
    data = np.asarray(data, target.dtype)
    return ShardedNode(ptype, materialized_node(data, local_type(ptype, data.shape)), target)


def in_one_row(x: ShardedNode) -> ShardedNode:
    """Flatten an array, with pieces on all ranks; a one-dimensional array keeps its axis."""
    if x.type.rank != 1:
        ptype = x.type.like((x.type.size,))
        x = partitioned_rule(Reshape(ptype.shape), [x], ptype)
    return x if x.partition.mesh.ndim == 1 and cuts(x) else as_row_sharded(x)


_MIN_SIZE_RATIO = 4
"""Factor by which a result must be smaller than the operands to be replicated."""


class AxisCorrespondence(NamedTuple):
    """Corresponding axes that are cut together along one mesh axis; None for an absent axis.

    Attributes:
        x: Axis of the first operand.
        y: Axis of the second operand.
        result: Axis of the result; None for a contracted axis.
    """

    x: int | None
    y: int | None
    result: int | None


class MatmulStrategy(NamedTuple):
    """Sharding of a product.

    Attributes:
        x: Partition of the first operand.
        y: Partition of the second operand.
        partial: Partition of the local results.
        target: Partition of the result.
        cost: Bytes that are sent.
    """

    x: Partition
    y: Partition
    partial: Partition
    target: Partition
    cost: int


@rule.register
def _(op: MatMul, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, y = as_block_partitioned(xs[0]), as_block_partitioned(xs[1])
    if not cuts(x) and not cuts(y):
        return with_blocks(ptype, record(op, x.part, y.part), mesh_of([x, y]), ())
    return _sharded_product(op, x, y, ptype, tuple(_matrix_kinds(x.type, y.type, ptype)))


@rule.register
def _(op: TensorDot, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, y = as_block_partitioned(xs[0]), as_block_partitioned(xs[1])
    if not cuts(x) and not cuts(y):
        return with_blocks(ptype, record(op, x.part, y.part), mesh_of([x, y]), ())
    first, second = op.places(x.type, y.type)
    kinds = [AxisCorrespondence(k, j, None) for k, j in zip(first, second, strict=True)]
    rows = [k for k in range(x.type.rank) if k not in first]
    columns = [k for k in range(y.type.rank) if k not in second]
    kinds += [AxisCorrespondence(axis, None, k) for k, axis in enumerate(rows)]
    kinds += [AxisCorrespondence(None, axis, len(rows) + k) for k, axis in enumerate(columns)]
    return _sharded_product(op, x, y, ptype, tuple(kinds))


def _sharded_product(
    op: PTensorOp, x: ShardedNode, y: ShardedNode, ptype: PTensorType,
    kinds: tuple[AxisCorrespondence, ...]
) -> ShardedNode:
    """Compute a product with the cheapest sharding."""
    found = [
        strategy for mesh in dict.fromkeys([node.partition.mesh for node in (x, y) if cuts(node)])
        if (strategy := cheapest(x.partition, y.partition, replicated_partition(ptype, mesh),
        kinds)) is not None
    ]
    if not found:  # more mesh axes than axes to cut: use a one-dimensional mesh
        return _sharded_product(op, as_row_sharded(x), as_row_sharded(y), ptype, kinds)
    strategy = min(found, key=lambda strategy: strategy.cost)
    x, y = reshard(x, strategy.x), reshard(y, strategy.y)
    part = record(op, x.part, y.part)
    if strategy.partial == strategy.target:
        return depend_on_pending(ShardedNode(ptype, part, strategy.target), [x, y])
    moves = redistribution(strategy.partial, strategy.target)
    return pending_array(ptype, strategy.target, part, moves, max(x.ticket, y.ticket))


@memoize("dist.matmul_strategies")
def cheapest(
    x: Partition, y: Partition, result: Partition, kinds: tuple[AxisCorrespondence, ...]
) -> MatmulStrategy | None:
    """Return the sharding of a product that sends the fewest bytes; None if there is none.

    Along each mesh axis, the first operand is cut by rows, the second by columns, or both along the
    contracted axis or a batch axis. On a two-dimensional mesh, rows along one mesh axis and columns
    along the other give the SUMMA algorithm.
    """
    strategies = list(_ways(x, y, result, kinds))
    return min(strategies, key=lambda strategy: strategy.cost) if strategies else None


def _ways(
    x: Partition, y: Partition, result: Partition, kinds: Sequence[AxisCorrespondence]
) -> Iterator[MatmulStrategy]:
    for chosen in product(kinds, repeat=result.mesh.ndim):
        if len(set(chosen)) == len(chosen):
            yield _way(x, y, result, chosen)


def _matrix_kinds(x: PTensorType, y: PTensorType, result: PTensorType) -> Iterator[
        AxisCorrespondence]:
    """Yield the axes along which a (batched) matrix product can be cut."""
    rank = len(result.shape)
    is_matrix = len(x.shape) > 1, len(y.shape) > 1
    last = len(x.shape) - 1, max(len(y.shape) - 2, 0)
    yield AxisCorrespondence(*last, None)
    if is_matrix[0]:
        yield AxisCorrespondence(last[0] - 1, None, rank - 1 - is_matrix[1])
    if is_matrix[1]:
        yield AxisCorrespondence(None, last[1] + 1, rank - 1)
    for axis in range(rank - sum(is_matrix)):
        first, second = (
            _batch(operand, axis, rank, is_matrix, result.shape[axis]) for operand in (x, y))
        if first is not None or second is not None:
            yield AxisCorrespondence(first, second, axis)


def _batch(
    operand: PTensorType, axis: int, rank: int, is_matrix: tuple[bool, bool], extent: int
) -> int | None:
    """Return a batch axis as an axis of an operand; None if it is absent or broadcast."""
    dim = axis - (rank - sum(is_matrix)) + len(operand.shape) - 2
    return dim if len(operand.shape) > 2 and dim >= 0 and operand.shape[dim] == extent else None


def _way(
    x: Partition, y: Partition, result: Partition, chosen: Sequence[AxisCorrespondence]
) -> MatmulStrategy:
    mesh = result.mesh
    cut_lists: tuple[list[AxisBlocks], list[AxisBlocks], list[AxisBlocks]] = ([], [], [])
    for k, kind in enumerate(chosen):
        ends = _ends(x, y, mesh, k, kind)
        for cut_list, axis in zip(cut_lists, kind, strict=True):
            if axis is not None:
                cut_list.append(AxisBlocks(axis, k, ends))
    added = [k for k, kind in enumerate(chosen) if kind.result is None]
    target = partial = _by(result, mesh, cut_lists[2])
    if added:
        summed: list[Placement] = list(target.placements)
        for k in added:
            summed[k] = Partial("sum")
        partial = Partition(result.shape, result.dtype, mesh, summed)
        if mesh.ndim == 1 and _MIN_SIZE_RATIO * _bytes(result) > max(_bytes(x),
                _bytes(y)) and result.shape:
            target = _by(result, mesh, [AxisBlocks(0, 0, blocks(result.shape[0], mesh.shape[0]))])
    first, second = _by(x, mesh, cut_lists[0]), _by(y, mesh, cut_lists[1])
    cost = transfer_bytes(x, first) + transfer_bytes(y, second)
    cost += redistribution(partial, target).nbytes if added else 0
    return MatmulStrategy(first, second, partial, target, cost)


def _ends(
    x: Partition, y: Partition, mesh: Mesh, mesh_axis: int, kind: AxisCorrespondence
) -> tuple[int, ...]:
    """Return the cut of corresponding axes: the existing cut of an operand, or blocks."""
    extent = 0
    for operand, axis in ((x, kind.x), (y, kind.y)):
        if axis is None:
            continue
        extent = operand.shape[axis]
        for cut in blocks_of_partition(operand) or ():
            if (cut.axis, cut.mesh_axis, operand.mesh.shape) == (axis, mesh_axis, mesh.shape):
                return cut.ends
    return blocks(extent, mesh.shape[mesh_axis])


def _by(part: Partition, mesh: Mesh, new_cuts: Sequence[AxisBlocks]) -> Partition:
    return partition_from_blocks(PTensorType(part.shape, part.dtype.name), mesh, new_cuts)


def _bytes(part: Partition) -> int:
    size = part.dtype.itemsize
    for n in part.shape:
        size *= n
    return size


def _sum_local_products(
    op: PTensorOp, x: ShardedNode, y: ShardedNode, ptype: PTensorType, mesh_axis: int,
    result_cuts: Sequence[AxisBlocks]
) -> ShardedNode:
    """Compute local products and sum them along a mesh axis."""
    part = record(op, x.part, y.part)
    target = partition_from_blocks(ptype, x.partition.mesh, result_cuts)
    placements: list[Placement] = list(target.placements)
    placements[mesh_axis] = Partial("sum")
    partial = Partition(ptype.shape, target.dtype, x.partition.mesh, placements)
    return pending_array(
        ptype, target, part, redistribution(partial, target), max(x.ticket, y.ticket)
    )


@rule.register
def _(op: VecDot, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    rank = max(x.type.rank for x in xs)
    shape = tuple([
        max(x.type.shape[k] for x in xs if x.type.rank >= -k) for k in range(-rank, 0)
    ])
    axis = rank + op.axis
    if not ptype.size:
        return empty_sharded(ptype, mesh_of(xs))
    (x, y), mesh, split = align_operands(xs, ptype.like(shape))
    summed = [cut for cut in split if cut.axis == axis]
    free = [cut._replace(axis=cut.axis - (cut.axis > axis)) for cut in split if cut not in summed]
    if summed:
        return _sum_local_products(op, x, y, ptype, summed[0].mesh_axis, free)
    return depend_on_pending(with_blocks(ptype, record(op, x.part, y.part), mesh, free), [x, y])


@rule.register
def _(op: Outer, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, y = as_block_partitioned(xs[0]), as_block_partitioned(xs[1])
    y = reshard(y, replicated_partition(y.type, y.partition.mesh))
    part = record(op, x.part, y.part)
    return depend_on_pending(with_blocks(ptype, part, x.partition.mesh, cuts(x)), [x, y])


@of_parts.register
def _(op: Matrices, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    x = as_block_partitioned(xs[0])
    return _of_batches(op, x, (elements(x),)) if _is_batch(x) else None


@of_parts.register
def _(op: Solve, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    a, b = as_block_partitioned(xs[0]), xs[1]
    if not _is_batch(a) or a.type.shape[:-2] != b.type.shape[:-2]:
        return None
    b = reshard(b, partition_from_blocks(b.type, a.partition.mesh, cuts(a)))
    return _of_batches(op, a, (elements(a), elements(b)), b)


def _is_batch(x: ShardedNode) -> bool:
    """Return whether each matrix is local to one rank."""
    return bool(cuts(x)) and all(cut.axis < x.type.rank - 2 for cut in cuts(x))


def _of_batches(
    op: LibraryOperation, x: ShardedNode, data: Sequence[Buffer], *others: ShardedNode
) -> tuple[Node, ...] | None:
    """Return the results for the local matrices; None if any rank fails."""
    types = op.results(x.type, *[other.type for other in others])
    found: tuple[Buffer, ...] = ()
    failed = False
    try:
        found = call(op, *data)
    except ArrayValueError:
        failed = True
    # The caller then repeats the operation on all matrices, so all ranks raise the same error.
    if counted_allgather(team_number(x), np.array([failed])).any():
        return None
    return tuple([
        of_data(ptype, part, x, cuts(x)) for ptype, part in zip(types, found, strict=True)
    ])


@of_parts.register
def _(op: FourierTransformOp, xs: Sequence[ShardedNode]) -> tuple[Node, ...] | None:
    x = as_block_partitioned(xs[0])
    axes = {axis % x.type.rank for axis in op.axes}
    if not cuts(x) or any(cut.axis in axes for cut in cuts(x)):
        return None
    (ptype,) = op.results(x.type)
    (data,) = call(op, elements(x))
    return (of_data(ptype, data, x, cuts(x)),)
