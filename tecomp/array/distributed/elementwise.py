"""Deferred element-wise operations and the choice of their sharding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tecomp.array.distributed.partitions import (
    AxisBlocks,
    blocks_of_partition,
    is_same,
    partition,
    partition_from_blocks,
    replicated_partition,
)
from tecomp.array.distributed.sharding_rules import (
    as_block_partitioned,
    depend_on_pending,
    reshard,
    rule,
)
from tecomp.array.graph.node import ShardedNode, record
from tecomp.caches import memoize
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operations.elementwise import CastOp, Elementwise, WhereOp
from tecomp.ptensor.types import PTensorType, Shape

MOST = 32
"""Maximum number of deferred element-wise operations before their sharding is chosen."""

Wanted: TypeAlias = "tuple[Mesh, tuple[AxisBlocks, ...]] | None"


def defer_elementwise(
    op: Elementwise | CastOp | WhereOp, xs: Sequence[ShardedNode], ptype: PTensorType
) -> ShardedNode:
    """Defer an element-wise operation; its sharding is chosen later."""
    result = ShardedNode(ptype, None, None)
    result.made_of = op, tuple(xs)
    result.steps = 1 + sum([x.steps for x in xs])
    if result.steps > MOST:
        choose_sharding(result)
    return result


def reshard_or_place(x: ShardedNode, target: Partition) -> ShardedNode:
    """Reshard an array; deferred operations are preferably computed in the target partition."""
    cuts = blocks_of_partition(target)
    if x.made_of is not None and cuts is not None:
        choose_sharding(x, (target.mesh, cuts))
    return reshard(x, target)


def choose_sharding(root: ShardedNode, requested: Wanted = None) -> None:
    """Choose the sharding of deferred element-wise operations.

    Args:
        root: Last of the operations.
        requested: Mesh and cuts in which the result is read, if known.
    """
    order, leaves = _tree(root)
    common = _common(leaves, order, root.type)
    if common is not None and (requested is None or blocks_of_partition(common) == requested[1]):
        for x in order:
            _compute(x, _operands(x), _partition_like(common, x.type), leaves)
        return
    pieces = {id(x): as_block_partitioned(x) for x in leaves}
    alignment = choose_alignment(list(pieces.values()), root.type, requested)
    aligned = {id(x): align_operand(pieces[id(x)], root.type.shape, alignment) for x in leaves}
    inner = set(map(id, order))
    resharded = list(aligned.values())
    for x in order:
        xs = [y if id(y) in inner else aligned[id(y)] for y in _operands(x)]
        x_cuts = _lowered_cuts(x.type.shape, root.type.shape, alignment.cuts)
        _compute(x, xs, partition_from_blocks(x.type, alignment.mesh, x_cuts), resharded)


def _compute(
    x: ShardedNode, xs: Sequence[ShardedNode], target: Partition, leaves: Sequence[ShardedNode]
) -> None:
    assert x.made_of is not None
    op, _ = x.made_of
    x.set_shard(record(op, *[y.part for y in xs]), target)
    depend_on_pending(x, leaves)


def _operands(x: ShardedNode) -> tuple[ShardedNode, ...]:
    assert x.made_of is not None
    return x.made_of[1]


def _tree(root: ShardedNode) -> tuple[list[ShardedNode], list[ShardedNode]]:
    """Return the deferred operations in topological order, and their sharded operands."""
    order: dict[int, ShardedNode] = {}
    leaves: dict[int, ShardedNode] = {}
    stack = [root]
    while stack:
        x = stack[-1]
        if id(x) in order:
            stack.pop()
        elif x.made_of is None:
            leaves[id(x)] = stack.pop()
        elif missing := [
            y for y in _operands(x) if id(y) not in order and id(y) not in leaves
        ]:
            stack += reversed(missing)
        else:
            order[id(x)] = stack.pop()
    return list(order.values()), list(leaves.values())


def _common(
    leaves: Sequence[ShardedNode], order: Sequence[ShardedNode], ptype: PTensorType
) -> Partition | None:
    """Return the common partition of all operands of full shape; None if they differ."""
    full = [x for x in leaves if x.type.shape]
    shape = ptype.shape
    if not full or any(x.type.shape not in (shape, ()) for x in (*leaves, *order)):
        return None
    first = full[0].partition
    return first if all(is_same(x.partition, first) for x in full[1:]) else None


def _partition_like(template: Partition, ptype: PTensorType) -> Partition:
    if not ptype.shape:
        return replicated_partition(ptype, template.mesh)
    return partition(ptype.shape, ptype.dtype, template.mesh, template.placements)


class AlignedOperands(NamedTuple):
    """Common sharding of the operands of an operation.

    Attributes:
        mesh: Mesh of processes.
        cuts: Cuts of the broadcast shape.
    """

    mesh: Mesh
    cuts: tuple[AxisBlocks, ...]


def choose_alignment(
    pieces: Sequence[ShardedNode], ptype: PTensorType, requested: Wanted = None
) -> AlignedOperands:
    """Return the common sharding that requires the fewest bytes.

    Args:
        pieces: Operands, each cut into consecutive pieces.
        ptype: Type with the broadcast shape.
        requested: Mesh and cuts in which the result is read, if known.
    """
    views = tuple([(id(x.view[0]), x.view[1]) if x.view else None for x in pieces])
    known = {view[0]: k for k, view in enumerate(views) if view}
    indexed = tuple([(known[view[0]], view[1]) if view else None for view in views])
    parts = tuple([x.partition for x in pieces])
    bases = tuple([x.view[0].partition if x.view else None for x in pieces])
    return _align(parts, indexed, bases, partition_from_blocks(ptype, parts[0].mesh, ()), requested)


@memoize("dist.aligned_operands")
def _align(
    parts: tuple[Partition, ...], views: tuple[tuple[int, tuple[int, ...]] | None, ...],
    bases: tuple[Partition | None, ...], result: Partition, requested: Wanted,
) -> AlignedOperands:
    shape = result.shape
    candidates: list[AlignedOperands] = []
    if requested is not None:
        candidates.append(AlignedOperands(*requested))
    ranked = sorted(range(len(parts)), key=lambda k: -_size(parts[k].shape))
    divided = [k for k in ranked if blocks_of_partition(parts[k])]
    for k in divided:
        lifted = _lift_blocks(parts[k], shape)
        if lifted:
            candidates.append(AlignedOperands(parts[k].mesh, lifted))
    candidates += _middles(parts, views, bases, shape)
    if not candidates:
        mesh = parts[divided[0]].mesh if divided else parts[0].mesh
        return AlignedOperands(mesh, ())
    costs = [_cost(parts, result, candidate, requested) for candidate in candidates]
    # On a tie, prefer the last candidate, the middle slice: later halos then extend to both sides.
    best = min(costs)
    if requested is not None and costs[0] == best:
        return candidates[0]
    chosen = [candidate for candidate, cost in zip(candidates, costs, strict=True) if cost == best]
    return chosen[-1]


def _size(shape: Shape) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _lift_blocks(operand: Partition, shape: Shape) -> tuple[AxisBlocks, ...]:
    """Return the cuts of an operand as cuts of the result, except along broadcast axes."""
    offset = len(shape) - len(operand.shape)
    return tuple([
        cut._replace(axis=cut.axis + offset) for cut in blocks_of_partition(operand) or ()
        if operand.shape[cut.axis] == shape[cut.axis + offset]
    ])


def _middles(
    parts: Sequence[Partition], views: Sequence[tuple[int, tuple[int, ...]] | None],
    bases: Sequence[Partition | None], shape: Shape,
) -> list[AlignedOperands]:
    """Return candidate cuts for slices of one array: the cuts under the middle slice."""
    found: list[AlignedOperands] = []
    for base in dict.fromkeys([view[0] for view in views if view]):
        members = [k for k, view in enumerate(views) if view and view[0] == base]
        base_part = bases[members[0]]
        starts = [views[k][1] for k in members]  # type: ignore[index]
        if len(members) < 2 or base_part is None or any(parts[k].shape != shape for k in members):
            continue
        middle = [(min(s) + max(s)) // 2 for s in zip(*starts, strict=True)]
        shifted = tuple([
            cut._replace(ends=_shift_axes(cut.ends, middle[cut.axis], shape[cut.axis]))
            for cut in blocks_of_partition(base_part) or ()
        ])
        if shifted:
            found.append(AlignedOperands(base_part.mesh, shifted))
    return found


def _shift_axes(ends: Sequence[int], shift: int, extent: int) -> tuple[int, ...]:
    inner = [min(max(end - shift, 0), extent) for end in ends[1:-1]]
    return (0, *inner, extent)


def _cost(
    parts: Sequence[Partition], result: Partition, target: AlignedOperands, requested: Wanted
) -> int:
    """Return the bytes sent to align the operands, and to move the result to its reader."""
    total = 0
    for part in parts:
        operand_cuts = _lowered_cuts(part.shape, result.shape, target.cuts)
        total += transfer_bytes(part, _by(part, target.mesh, operand_cuts))
    if requested is not None and (target.mesh, target.cuts) != requested:
        total += transfer_bytes(_by(result, target.mesh, target.cuts), _by(result, *requested))
    return total


def _by(part: Partition, mesh: Mesh, cuts: Sequence[AxisBlocks]) -> Partition:
    return partition_from_blocks(PTensorType(part.shape, str(part.dtype.name)), mesh, cuts)


def transfer_bytes(source: Partition, target: Partition) -> int:
    """Return the bytes sent to redistribute an array."""
    if is_same(source, target) or blocks_of_partition(source) == ():
        return 0
    return redistribution(source, target).nbytes


def _lowered_cuts(input_shape: Shape, shape: Shape, cuts: Sequence[AxisBlocks]) -> list[AxisBlocks]:
    """Return the cuts of a result as cuts of an operand, except along broadcast axes."""
    offset = len(shape) - len(input_shape)
    return [
        cut._replace(axis=cut.axis - offset) for cut in cuts
        if cut.axis >= offset and input_shape[cut.axis - offset] == shape[cut.axis]
    ]


def align_operand(x: ShardedNode, shape: Shape, target: AlignedOperands) -> ShardedNode:
    """Reshard an operand to the sharding in which the result is computed."""
    operand_cuts = _lowered_cuts(x.type.shape, shape, target.cuts)
    return reshard(x, partition_from_blocks(x.type, target.mesh, operand_cuts))


def align_operands(
    xs: Sequence[ShardedNode], ptype: PTensorType
) -> tuple[list[ShardedNode], Mesh, tuple[AxisBlocks, ...]]:
    """Reshard operands to one partition of the broadcast shape.

    Returns:
        Operands, mesh, and cuts of the shape.
    """
    pieces = [as_block_partitioned(x) for x in xs]
    found = choose_alignment(pieces, ptype)
    return [align_operand(x, ptype.shape, found) for x in pieces], found.mesh, found.cuts


@rule.register(Elementwise)
@rule.register(CastOp)
@rule.register(WhereOp)
def _(
    op: Elementwise | CastOp | WhereOp, xs: Sequence[ShardedNode], ptype: PTensorType
) -> ShardedNode:
    return defer_elementwise(op, xs, ptype)
