"""Reshape, permute, concatenate, slice and repeat sharded arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from tecomp.array.distributed.elementwise import (
    AlignedOperands,
    align_operand,
    align_operands,
    reshard_or_place,
)
from tecomp.array.distributed.gather_scatter import first_of, gather_from_owners
from tecomp.array.distributed.message_queue import (
    counted_allgather,
    flush_messages,
    pending_array,
    queue_of,
)
from tecomp.array.distributed.partitions import (
    AxisBlocks,
    ShiftedWindow,
    blocks,
    default_partition,
    partition_from_blocks,
    replicated_partition,
    row_of,
)
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    as_row_sharded,
    as_shared,
    contiguous_local,
    cuts,
    depend_on_pending,
    empty_sharded,
    mesh_of,
    number,
    partitioned_rule,
    rank_of,
    reshard,
    rule,
    team_number,
    unsplit_axes,
    with_blocks,
    with_halo,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, ShardedNode, local_type, materialized_node, record
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.data_dependent import ascontiguous, repeat_positions, take_rows
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operations.creation import Create, ExtractTriangle
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    Slices,
    Squeeze,
    Take,
    TakeAlongAxis,
    TileOp,
)
from tecomp.ptensor.operations.reduction import Diff
from tecomp.ptensor.types import PTensorType


def repeat_sharded(node: Node, counts: Node, axis: int) -> tuple[Node, tuple[int, int] | None]:
    """Repeat elements along an axis; also return a negative count and its position, if any.

    Args:
        node: Array.
        counts: One-dimensional integer array with a count per index of the axis.
        axis: Axis.
    """
    queue_of(team_number(node)).step("repeat")
    x, shard_counts = as_block_partitioned(as_shared(node)), as_block_partitioned(as_shared(counts))
    axis_cuts = [cut for cut in cuts(x) if cut.axis == axis]
    mesh = x.partition.mesh
    shard_counts = reshard(
        shard_counts,
        partition_from_blocks(shard_counts.type, mesh, [cut._replace(axis=0) for cut in axis_cuts])
        if axis_cuts
        else replicated_partition(shard_counts.type, mesh),
    )
    flush_messages((x, shard_counts))
    repeats = ascontiguous(data_of(shard_counts.part))
    positions, invalid = repeat_positions(repeats)
    first = axis_cuts[0].ends[number(x, axis_cuts[0])] if axis_cuts else 0
    fault = _fault(shard_counts, repeats, invalid, first)
    if fault is not None:
        return node, fault
    data = take_rows(contiguous_local(x.part), axis, positions)
    ends = _ends(x, axis_cuts[0], len(positions)) if axis_cuts else (0, len(positions))
    shape = (*x.type.shape[:axis], ends[-1], *x.type.shape[axis + 1 :])
    new_cuts = [cut._replace(ends=ends) if cut.axis == axis else cut for cut in cuts(x)]
    ptype = x.type.like(shape)
    part = materialized_node(data, local_type(ptype, data.shape))
    return ShardedNode(ptype, part, partition_from_blocks(ptype, mesh, new_cuts)), None


def _fault(
    counts: ShardedNode, repeats: Buffer, invalid: int | None, first: int
) -> tuple[int, int] | None:
    """Return the first invalid count and its position, on all ranks; None if all are valid."""
    selected = slice(0) if invalid is None else slice(invalid, invalid + 1)
    count = first_of(counts, repeats[selected])
    if count is None:
        return None
    position = first_of(counts, np.arange(first, first + len(repeats))[selected])
    assert position is not None
    return count, position


def _ends(x: ShardedNode, cut: AxisBlocks, count: int) -> tuple[int, ...]:
    """Return the cut of an axis whose local pieces have new sizes."""
    mesh = x.partition.mesh
    counts = counted_allgather(team_number(x), np.array([count])).reshape(mesh.shape)
    sizes = np.moveaxis(counts, cut.mesh_axis, 0).reshape(mesh.shape[cut.mesh_axis], -1)[:, 0]
    return (0, *accumulate(sizes.tolist()))


@rule.register
def _(op: ExtractSlice, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    reversed_axes = [cut.axis for cut in cuts(x) if op.slice[cut.axis][1] < 0]
    spans = reverse_slices(op.slice, reversed_axes)
    new_cuts, local_spans = _slice_blocks(x, spans)
    part = apply_view(ExtractSlice(local_spans), x.part)
    result = depend_on_pending(with_blocks(ptype, part, x.partition.mesh, new_cuts), [x])
    if all(step == 1 for _, step, _ in op.slice) and x.type.size:
        base, starts, periodic = x.view or (x, (0,) * ptype.rank, (False,) * ptype.rank)
        first = tuple([a + start for a, (start, _, _) in zip(starts, op.slice, strict=True)])
        result.view = base, first, periodic
    for axis in reversed_axes:
        result = _reverse_axis(result, axis)
    return result


def reverse_slices(spans: Slices, axes: Sequence[int]) -> Slices:
    """Reverse slices along some axes."""
    return tuple([
        (start + (count - 1) * step, -step, count) if axis in axes and count else
        (0, 1, 0) if axis in axes else (start, step, count)
        for axis, (start, step, count) in enumerate(spans)
    ])


def _slice_blocks(x: ShardedNode, spans: Slices) -> tuple[list[AxisBlocks], Slices]:
    """Return the cuts of slices computed without communication, and the local slices."""
    local_spans, new_cuts = list(spans), []
    for cut in cuts(x):
        start, step, count = spans[cut.axis]
        ends = tuple([min(max(-(-(end - start) // step), 0), count) for end in cut.ends])
        ends = (0, *ends[1:-1], count)
        new_cuts.append(cut._replace(ends=ends))
        k = number(x, cut)
        first, n = start + step * ends[k] - cut.ends[k], ends[k + 1] - ends[k]
        local_spans[cut.axis] = (first, step, n) if n else (0, 1, 0)
    return new_cuts, tuple(local_spans)


def _reverse_axis(x: ShardedNode, axis: int) -> ShardedNode:
    """Reverse the elements along a cut axis, and redistribute them in blocks."""
    part = apply_view(Flip((axis,)), x.part)
    flip_slices = [slice(None, None, -1 if k == axis else 1) for k in range(x.type.rank)]
    target = default_partition(x.type)
    moves = redistribution(x.partition.view(flip_slices), target)
    return pending_array(x.type, target, part, moves, x.ticket)


@rule.register
def _(op: Flip, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    spans = tuple([
        (n - 1, -1, n) if axis in op.axis else (0, 1, n) for axis, n in enumerate(ptype.shape)
    ])
    return partitioned_rule(ExtractSlice(spans), xs, ptype)


@rule.register
def _(op: InsertSlice, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, value = as_block_partitioned(xs[0]), xs[1]
    reversed_axes = tuple([axis for axis, (_, step, _) in enumerate(op.slice) if step < 0])
    if reversed_axes:
        value = partitioned_rule(Flip(reversed_axes), [value], value.type)
    new_cuts, local_spans = _slice_blocks(x, reverse_slices(op.slice, reversed_axes))
    value = reshard_or_place(value, partition_from_blocks(value.type, x.partition.mesh, new_cuts))
    # Read `value.part` on all ranks: its messages are collective, even where the shard is empty.
    part = x.part
    if 0 not in value.part.type.shape:
        part = record(InsertSlice(local_spans), part, value.part)
    return depend_on_pending(ShardedNode(ptype, part, x.partition, x.ticket), [value])


@rule.register
def _(op: Diff, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    axis = op.axis % x.type.rank
    if all(cut.axis != axis for cut in cuts(x)):
        return with_blocks(ptype, record(op, x.part), x.partition.mesh, cuts(x))
    extent = ptype.shape[axis]
    first, second = (
        slice_along(x, axis, min(start, x.type.shape[axis]), extent) for start in (0, 1))
    return partitioned_rule(FUNCTIONS["subtract"], [second, first], ptype)


def slice_along(x: ShardedNode, axis: int, start: int, count: int) -> ShardedNode:
    """Return consecutive elements along an axis."""
    spans = tuple([
        (start, 1, count) if k == axis else (0, 1, n) for k, n in enumerate(x.type.shape)
    ])
    op = ExtractSlice(spans)
    return partitioned_rule(op, [x], op.infer(x.type))


@rule.register
def _(op: Create, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    (value,) = xs
    part = record(Create(op.shape, op.dtype, ptype.device), value.part)
    return with_blocks(ptype, part, value.partition.mesh, ())


@rule.register
def _(op: BroadcastOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    (x,), mesh, new_cuts = align_operands(xs, ptype)
    target = partition_from_blocks(ptype, mesh, new_cuts)
    part = apply_view(BroadcastOp(target.local_shape(rank_of(x))), x.part)
    return ShardedNode(ptype, part, target, x.ticket)


def _renumber_blocks(x: ShardedNode, axes: Mapping[int, int]) -> list[AxisBlocks]:
    """Return the cuts of an array whose axes are renumbered in the result."""
    return [cut._replace(axis=axes[cut.axis]) for cut in cuts(x)]


@rule.register
def _(op: PermuteDims, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    axes = {axis: k for k, axis in enumerate(op.axis)}
    return with_blocks(ptype, apply_view(op, x.part), x.partition.mesh, _renumber_blocks(x, axes))


@rule.register
def _(op: MatrixTranspose, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    rank = ptype.rank
    return partitioned_rule(PermuteDims((*range(rank - 2), rank - 1, rank - 2)), xs, ptype)


@rule.register
def _(op: ExpandDims, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    retained = [axis for axis in range(ptype.rank) if axis not in op.axis]
    new_cuts = _renumber_blocks(x, dict(enumerate(retained)))
    return with_blocks(ptype, apply_view(op, x.part), x.partition.mesh, new_cuts)


@rule.register
def _(op: Squeeze, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = unsplit_axes(as_block_partitioned(xs[0]), op.axis)
    retained = [axis for axis in range(x.type.rank) if axis not in op.axis]
    new_cuts = _renumber_blocks(x, {axis: k for k, axis in enumerate(retained)})
    return with_blocks(ptype, apply_view(op, x.part), x.partition.mesh, new_cuts)


@rule.register
def _(op: Repeat, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    new_cuts = [
        cut._replace(ends=tuple([end * op.repeats for end in cut.ends]))
        if cut.axis == op.axis else cut for cut in cuts(x)
    ]
    return with_blocks(ptype, record(op, x.part), x.partition.mesh, new_cuts)


@rule.register
def _(op: ExtractTriangle, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    k = op.k
    for cut in cuts(x):
        first = cut.ends[number(x, cut)]
        k += {x.type.rank - 2: first, x.type.rank - 1: -first}.get(cut.axis, 0)
    part = record(ExtractTriangle(op.kind, k), x.part)
    return with_blocks(ptype, part, x.partition.mesh, cuts(x))


@rule.register
def _(op: Take, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, *indices = [as_block_partitioned(x) for x in xs]
    found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found and x.partition.mesh.ndim > 1:
        return partitioned_rule(op, [as_row_sharded(x), *indices], ptype)
    if found:
        return gather_from_owners(op, x, indices, ptype, found[0])
    indices = [reshard(index, replicated_partition(index.type, x.partition.mesh)) for index
        in indices]
    retained = [axis for axis in range(x.type.rank) if axis not in op.axis]
    index_rank = ptype.rank - len(retained)
    axes = {axis: k if k < op.place else k + index_rank for k, axis in enumerate(retained)}
    part = record(op, x.part, *[index.part for index in indices])
    return with_blocks(ptype, part, x.partition.mesh, _renumber_blocks(x, axes))


def _cut_beside(ptype: PTensorType, mesh: Mesh, axes: Sequence[int]) -> tuple[AxisBlocks, ...]:
    """Return blocks of the longest other axis; no cut if that axis has size 1."""
    others = [axis for axis in range(ptype.rank) if axis not in axes]
    axis = max(others, key=lambda k: ptype.shape[k], default=None)
    if axis is None or ptype.shape[axis] < 2:
        return ()
    return (AxisBlocks(axis, 0, blocks(ptype.shape[axis], mesh.size)),)


@rule.register
def _(op: TakeAlongAxis, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x, indices = as_block_partitioned(xs[0]), as_block_partitioned(xs[1])
    axis = op.axis % x.type.rank
    if x.type.rank == 1:
        return partitioned_rule(Take((0,), 0), [x, indices], ptype)
    mesh = x.partition.mesh
    new_cuts = tuple([
        cut for cut in cuts(x)
        if cut.axis != axis and x.type.shape[cut.axis] == ptype.shape[cut.axis]
    ])
    if not new_cuts:
        mesh = row_of(team_number(x))
        new_cuts = _cut_beside(ptype, mesh, (axis,))
    if not new_cuts:
        return _along_a_row(op, x, indices, ptype)
    x, indices = (align_operand(operand, ptype.shape, AlignedOperands(mesh, new_cuts)) for operand
        in (x, indices))
    return depend_on_pending(
        with_blocks(ptype, record(op, x.part, indices.part), mesh, new_cuts), [x, indices]
    )


def _along_a_row(
    op: TakeAlongAxis, x: ShardedNode, indices: ShardedNode, ptype: PTensorType
) -> ShardedNode:
    """Compute `take_along_axis` if all other axes have size 1."""
    if not ptype.size:
        return empty_sharded(ptype, mesh_of([x, indices]))
    row, picks = (partitioned_rule(Reshape((node.type.size,)), [node], _row_of(node.type)) for node
        in (x, indices))
    found = partitioned_rule(Take((0,), 0), [row, picks], _row_of(ptype))
    return partitioned_rule(Reshape(ptype.shape), [found], ptype)


def _row_of(ptype: PTensorType) -> PTensorType:
    return ptype.like((ptype.size,))


@rule.register
def _(op: TileOp, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    offset = ptype.rank - x.type.rank
    counts = (1,) * (ptype.rank - len(op.repetitions)) + op.repetitions
    scaled = [(cut._replace(axis=cut.axis + offset), counts[cut.axis + offset]) for cut in cuts(x)]
    if not ptype.size:
        return empty_sharded(ptype, x.partition.mesh)
    # With this many repetitions, each rank needs all elements.
    if any(n >= x.partition.mesh.size for _, n in scaled):
        x = reshard(x, replicated_partition(x.type, x.partition.mesh))
        replicated = replicated_partition(ptype, x.partition.mesh)
        tiled = ShardedNode(ptype, record(op, x.part), replicated)
        return reshard(depend_on_pending(tiled, [x]), default_partition(ptype))
    mesh, local_cuts = x.partition.mesh, [cut for cut, _ in scaled]
    whole = {cut.axis for cut in local_cuts}
    inside = TileOp(tuple([1 if k in whole else n for k, n in enumerate(counts)]))
    x = depend_on_pending(
        with_blocks(inside.infer(x.type), record(inside, x.part), mesh, local_cuts), [x]
    )
    for k, (cut, n) in enumerate(scaled):
        extent = x.type.shape[cut.axis] * n
        shape = (*x.type.shape[: cut.axis], extent, *x.type.shape[cut.axis + 1 :])
        local_cuts[k] = cut._replace(ends=blocks(extent, mesh.shape[cut.mesh_axis]))
        if n > 1:
            x = concatenate_sharded(
                Combine("concat", cut.axis), [x] * n, ptype.like(shape), mesh, local_cuts
            )
    return x


@rule.register
def _(op: Combine, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    pieces = [as_block_partitioned(x) for x in xs]
    largest = max(pieces, key=lambda x: (bool(cuts(x)), x.type.size))
    mesh = largest.partition.mesh
    if op.kind == "concat":
        new_cuts = tuple([
            cut._replace(ends=blocks(ptype.shape[op.axis], mesh.shape[cut.mesh_axis]))
            if cut.axis == op.axis else cut for cut in cuts(largest)
        ])
        return concatenate_sharded(op, pieces, ptype, mesh, new_cuts)
    parts = [reshard(x, partition_from_blocks(x.type, mesh, cuts(largest))) for x in pieces]
    new_cuts = tuple([cut._replace(axis=cut.axis + (cut.axis >= op.axis)) for cut in cuts(largest)])
    return depend_on_pending(
        with_blocks(ptype, record(op, *[x.part for x in parts]), mesh, new_cuts), parts
    )


def concatenate_sharded(
    op: Combine, xs: Sequence[ShardedNode], ptype: PTensorType, mesh: Mesh,
    new_cuts: Sequence[AxisBlocks]
) -> ShardedNode:
    """Concatenate arrays in a given sharding: each array is sent to its final position."""
    parts: list[ShardedNode] = []
    offset = 0
    for x in xs:
        extent = x.type.shape[op.axis]
        part_cuts = [
            cut._replace(ends=tuple([min(max(end - offset, 0), extent) for end in cut.ends]))
            if cut.axis == op.axis else cut for cut in new_cuts
        ]
        parts.append(reshard(x, partition_from_blocks(x.type, mesh, part_cuts)))
        offset += extent
    return depend_on_pending(
        with_blocks(ptype, record(op, *[x.part for x in parts]), mesh, new_cuts), parts
    )


@rule.register
def _(op: Roll, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    cut_axes = {cut.axis for cut in cuts(x)}
    local = [(s, axis) for s, axis in zip(op.shift, op.axis, strict=True) if axis not in cut_axes]
    if local:
        inside = Roll(tuple([s for s, _ in local]), tuple([axis for _, axis in local]))
        rolled = with_blocks(x.type, record(inside, x.part), x.partition.mesh, cuts(x))
        x = depend_on_pending(rolled, [x])
    shifts = [0] * ptype.rank
    for s, axis in zip(op.shift, op.axis, strict=True):
        if axis in cut_axes and ptype.shape[axis]:
            shifts[axis] += s
    whole = [_least_shift(s, n) for s, n in zip(shifts, ptype.shape, strict=True)]
    if not any(whole):
        return x
    starts = tuple([-s for s in whole])
    window = ShiftedWindow(starts, tuple([bool(s) for s in whole]), x.partition)
    windowed = with_halo(x, ptype, window)
    return _roll(op, x, ptype, cut_axes) if windowed is None else windowed


def _least_shift(shift: int, extent: int) -> int:
    """Return the equivalent cyclic shift of least magnitude."""
    shift %= max(extent, 1)
    return shift - extent if 2 * shift > extent else shift


def _roll(op: Roll, x: ShardedNode, ptype: PTensorType, cut_axes: set[int]) -> ShardedNode:
    """Roll an array as concatenations of both ends of each axis."""
    for s, axis in zip(op.shift, op.axis, strict=True):
        extent = ptype.shape[axis]
        if axis not in cut_axes or not extent or not s % extent:
            continue
        split = extent - s % extent
        ends = [slice_along(x, axis, split, extent - split), slice_along(x, axis, 0, split)]
        x = concatenate_sharded(Combine("concat", axis), ends, ptype, x.partition.mesh, cuts(x))
    return x


@rule.register
def _(op: Reshape, xs: Sequence[ShardedNode], ptype: PTensorType) -> ShardedNode:
    x = as_block_partitioned(xs[0])
    found = cuts(x)
    if not found:
        return with_blocks(ptype, apply_view(op, x.part), x.partition.mesh, ())
    if not ptype.size:
        return empty_sharded(ptype, x.partition.mesh)
    if not ptype.shape:
        return partitioned_rule(
            op, [reshard(x, replicated_partition(x.type, x.partition.mesh))], ptype
        )
    new_cuts = {axis: cut for cut in found if (axis := _matching_axis(x, ptype, cut)) is not None}
    if len(new_cuts) == len(found):
        retained = [cut._replace(axis=axis) for axis, cut in new_cuts.items()]
        return _reshape(op, x, ptype, retained)
    if len(found) > 1:
        return partitioned_rule(op, [as_row_sharded(x)], ptype)
    first = _first_of_several(x.type.shape)
    if found[0].axis != first:
        count = x.partition.mesh.shape[found[0].mesh_axis]
        cut = AxisBlocks(first, found[0].mesh_axis, blocks(x.type.shape[first], count))
        x = reshard(x, partition_from_blocks(x.type, x.partition.mesh, [cut]))
    return _by_rows(op, x, ptype)


def _matching_axis(x: ShardedNode, ptype: PTensorType, cut: AxisBlocks) -> int | None:
    """Return the axis of a reshaped array that equals a cut axis; None if there is none."""
    before, extent = prod(x.type.shape[: cut.axis]), x.type.shape[cut.axis]
    for axis, n in enumerate(ptype.shape):
        if n == extent and prod(ptype.shape[:axis]) == before:
            return axis
    return None


def _first_of_several(shape: Sequence[int]) -> int:
    """Return the first axis of size 2 or more, whose cuts follow the row-major order."""
    return next((axis for axis, n in enumerate(shape) if n != 1), 0)


def _reshape(
    op: Reshape, x: ShardedNode, ptype: PTensorType, new_cuts: Sequence[AxisBlocks]
) -> ShardedNode:
    target = partition_from_blocks(ptype, x.partition.mesh, new_cuts)
    part = apply_view(Reshape(target.local_shape(rank_of(x)), op.copy), x.part)
    return ShardedNode(ptype, part, target, x.ticket)


def _by_rows(op: Reshape, x: ShardedNode, ptype: PTensorType) -> ShardedNode:
    """Reshape through a flat array, resharded so that each rank has whole rows of the result."""
    (cut,) = cuts(x)
    inner = prod(x.type.shape[cut.axis + 1 :])
    line = _reshape(
        Reshape((ptype.size,)), x, ptype.like((ptype.size,)),
        [AxisBlocks(0, cut.mesh_axis, tuple([end * inner for end in cut.ends]))],
    )
    (cut,) = cuts(line)
    axis = _first_of_several(ptype.shape)
    row_size = prod(ptype.shape[axis + 1 :])
    if any(end % row_size for end in cut.ends):
        ends = blocks(ptype.shape[axis], len(cut.ends) - 1)
        cut = cut._replace(ends=tuple([end * row_size for end in ends]))
        line = reshard(line, partition_from_blocks(line.type, line.partition.mesh, [cut]))
    ends = tuple([end // row_size for end in cut.ends])
    return _reshape(op, line, ptype, [AxisBlocks(axis, cut.mesh_axis, ends)])
