"""Reductions and cumulative operations of distributed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf, prod
from typing import Any

import numpy as np

from tecomp.array.distributed.message_queue import (
    counted_allgather,
    counted_exscan,
    defer_allgather,
    flush_messages,
    pending_array,
)
from tecomp.array.distributed.partitions import AxisBlocks, partition_from_blocks
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    as_row_sharded,
    contiguous_local,
    cuts,
    gather_and_apply,
    number,
    partitioned_rule,
    rank_of,
    rule,
    team_number,
    with_blocks,
)
from tecomp.array.graph.centered_reductions import expand_centered
from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import Node, ShardedNode, local_type, materialized_node, record
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.operations.reductions import COMBINERS, Reduction, divisor_of
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp
from tecomp.ptensor.operations.manipulation import Squeeze, Take, TakeAlongAxis
from tecomp.ptensor.operations.reduction import (
    AxisReduction,
    Cumulative,
    FindIndex,
    ReduceOp,
)
from tecomp.ptensor.types import INTEGERS, PTensorType, axes_of, numpy_dtype


@rule.register
def _(op: AxisReduction, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    return _combine(op, as_block_partitioned(xs[0]), ptype)


@rule.register
def _(op: ReduceOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    axes = axes_of(op.axis, x.type.rank, op.kind)
    reduced = [cut for cut in cuts(x) if cut.axis in axes]
    if op.row.is_associative or not reduced:
        return _combine(op, x, ptype)
    if op.kind == "mean":
        total = _combine(replace(op, kind=op.row.combiner), x, ptype)
        count = prod(x.type.shape[axis] for axis in axes)
        part = record(FUNCTIONS["divide"], total.part, _number(count, total.part.type))
        return ShardedNode(ptype, part, total.partition, total.ticket)
    if not x.type.size:
        return gather_and_apply(op, xs, ptype)
    if op.row.center != "mean":
        result: ShardedNode = expand_centered(
            op, x.type, x, record,
            lambda data: materialized_node(data, x.type.like((), data.dtype.name)))
        return result
    if x.partition.mesh.ndim > 1:
        return partitioned_rule(op, [as_row_sharded(x)], ptype)
    return _reduce_variance(op, x, ptype, axes, reduced[0])


def _number(value: float, ptype: PTensorType) -> Node:
    return materialized_node(np.array(value, numpy_dtype(ptype.dtype)), ptype.like(()))


def _combine(op: AxisReduction, x: ShardedNode, ptype: PTensorType) -> ShardedNode:
    """Reduce shards locally, and then across the ranks along the cut axes."""
    axes = axes_of(op.axis, x.type.rank, op.where)
    mesh, found = x.partition.mesh, cuts(x)
    result_cuts = [
        cut._replace(axis=cut.axis - (0 if op.keepdims else sum(k < cut.axis for k in axes)))
        for cut in found if cut.axis not in axes
    ]
    part = _of_part(op, x, ptype, axes, result_cuts)
    target = partition_from_blocks(ptype, mesh, result_cuts)
    if len(result_cuts) == len(found):
        return ShardedNode(ptype, part, target, x.ticket)
    placements: list[Placement] = list(target.placements)
    for cut in found:
        if cut.axis in axes:
            placements[cut.mesh_axis] = Partial(op.row.combiner)
    partial = Partition(ptype.shape, target.dtype, mesh, placements)
    return pending_array(ptype, target, part, redistribution(partial, target), x.ticket)


def _of_part(
    op: AxisReduction, x: ShardedNode, ptype: PTensorType, axes: Sequence[int],
    result_cuts: Sequence[AxisBlocks]
) -> Node:
    """Reduce the local shard; an empty shard gives the identity element."""
    shape = x.part.type.shape
    if op.row.needs_elements and any(shape[axis] == 0 for axis in axes):
        target = partition_from_blocks(ptype, x.partition.mesh, result_cuts)
        extents = target.local_shape(rank_of(x))
        return materialized_node(
            np.full(extents, identity(op.row, ptype.dtype)), local_type(ptype, extents)
        )
    return record(op, x.part)


def identity(row: Reduction, dtype: str) -> Any:
    """Return the identity element of the operator of a reduction, in a dtype.

    >>> from tecomp.operations.reductions import REDUCTIONS
    >>> print(identity(REDUCTIONS["max"], "int8"), identity(REDUCTIONS["max"], "float32"))
    -128 -inf
    """
    value, kind = COMBINERS[row.combiner].identity, numpy_dtype(dtype)
    if dtype in INTEGERS and abs(value) == inf:
        info = np.iinfo(dtype)
        value = info.max if value > 0 else info.min
    return kind.type(value)


def _reduce_variance(
    op: ReduceOp, x: ShardedNode, ptype: PTensorType, axes: tuple[int, ...], cut: AxisBlocks
) -> ShardedNode:
    """Combine local means and variances, computed in one pass and sent in one message."""
    total = prod(x.type.shape[axis] for axis in axes)
    inner_count = prod(x.type.shape[axis] for axis in axes if axis != cut.axis)
    counts = [size * inner_count for size in cut.sizes]
    parts = _moments(op, x, axes, counts[number(x, cut)])
    (means, first), (variances, second) = [defer_allgather(ptype, part, x.ticket) for part in parts]
    filled = tuple([k for k, n in enumerate(counts) if n])
    if len(filled) < len(counts):
        rows = materialized_node(
            np.array(filled), local_type(ptype, ()).like((len(filled),), "int64")
        )
        means, variances = [record(Take((0,), 0), node, rows) for node in (means, variances)]
    weights = np.array([n for n in counts if n], numpy_dtype(ptype.dtype))
    weights = weights.reshape(-1, *(1,) * len(ptype.shape))
    weight = materialized_node(weights, local_type(ptype, weights.shape))
    part = _merge_variances(op, ptype, means, variances, weight, total)
    return ShardedNode(
        ptype, part, partition_from_blocks(ptype, x.partition.mesh, ()), max(first, second)
    )


def _moments(op: ReduceOp, x: ShardedNode, axes: tuple[int, ...], count: int) -> list[Node]:
    """Return mean and variance of the shard; arbitrary values if it is empty."""
    ops = [ReduceOp(kind, axes, op.keepdims) for kind in ("mean", "var")]
    if count:
        return [record(moment, x.part) for moment in ops]
    types = [moment.infer(x.part.type) for moment in ops]
    return [materialized_node(np.zeros(ptype.shape, numpy_dtype(ptype.dtype)), ptype) for ptype
        in types]


def _merge_variances(
    op: ReduceOp, ptype: PTensorType, means: Node, variances: Node, weight: Node, count: int
) -> Node:
    """Return the total variance, from the means and variances of shards.

    Source:
        Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983.
    """
    call, first = FUNCTIONS, (0,)
    scalar_type = local_type(ptype, ())
    rows = ReduceOp("sum", first)
    mean = record(rows, record(call["multiply"], means, weight))
    mean = record(call["divide"], mean, _number(count, mean.type))
    sq_diff = record(call["square"], record(call["abs"], record(call["subtract"], means, mean)))
    deviations = record(call["add"], record(call["abs"], variances), sq_diff)
    total = record(rows, record(call["multiply"], deviations, weight))
    divisor = _number(divisor_of(count, op.correction), scalar_type)
    result = record(call["divide"], total, divisor)
    return record(call["sqrt"], result) if op.kind == "std" else record(CastOp(ptype.dtype), result)


@rule.register
def _(op: FindIndex, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    axes = axes_of(op.axis, x.type.rank, op.kind)
    found = [cut for cut in cuts(x) if cut.axis in axes]
    if not found:
        return _combine(op, x, ptype)
    is_leading = op.axis is not None or prod(x.type.shape[: found[0].axis]) == 1
    if x.partition.mesh.ndim > 1 or not is_leading:
        return partitioned_rule(op, [as_row_sharded(x)], ptype)
    return _first(op, x, ptype, found[0])


def _first(op: FindIndex, x: ShardedNode, ptype: PTensorType, cut: AxisBlocks) -> ShardedNode:
    """Return the first extreme value of the shards, in rank order."""
    axes = None if op.axis is None else (op.axis,)
    row_size = 1 if op.axis is not None else prod(x.type.shape[cut.axis + 1 :])
    values = np.empty((0, *ptype.shape), numpy_dtype(x.type.dtype))
    positions = np.empty((0, *ptype.shape), np.int64)
    flush_messages((x,))
    if x.part.type.shape[cut.axis]:
        value = record(ReduceOp(op.row.combiner, axes, op.keepdims), x.part)
        position = record(op, x.part)
        evaluate((value, position))
        values = data_of(value)[None]
        positions = data_of(position)[None] + cut.ends[rank_of(x)] * row_size
    team = team_number(x)
    values, positions = counted_allgather(team, values), counted_allgather(team, positions)
    spec = local_type(x.type, values.shape)
    winner = record(FindIndex(op.kind, 0, True), materialized_node(values, spec))
    chosen = record(
        TakeAlongAxis(0), materialized_node(positions, spec.like(spec.shape, "int64")), winner
    )
    return with_blocks(ptype, record(Squeeze((0,)), chosen), x.partition.mesh, ())


@rule.register
def _(op: Cumulative, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    mesh = x.partition.mesh
    found = next((cut for cut in cuts(x) if cut.axis == op.axis), None)
    if found is None:
        return with_blocks(ptype, record(op, x.part), mesh, cuts(x))
    if mesh.ndim > 1:
        return partitioned_rule(op, [as_row_sharded(x)], ptype)
    flush_messages((x,))
    # The initial value is the first element of the result, on the first rank.
    is_leading = op.include_initial and number(x, found) == 0
    part = record(Cumulative(op.kind, op.axis, is_leading, op.dtype), x.part)
    total = record(ReduceOp(op.kind, (op.axis,), True, 0, ptype.dtype), x.part)
    earlier = counted_exscan(team_number(x), contiguous_local(total), op.kind)
    if earlier is not None:
        other = materialized_node(earlier, local_type(ptype, earlier.shape))
        part = record(FUNCTIONS[COMBINERS[op.kind].ufunc], part, other)
    sizes = list(found.sizes)
    sizes[0] += op.include_initial
    return with_blocks(ptype, part, mesh, [found._replace(ends=(0, *accumulate(sizes)))])
