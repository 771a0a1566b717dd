"""Distributed matrix products and batched linear algebra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, singledispatch
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from tecomp.array.distributed.elementwise import aligned, sent
from tecomp.array.distributed.message_queue import arriving, queue_of, settle, told
from tecomp.array.distributed.partitions import Cut, blocks, cuts_of, everywhere, of_cuts, row_of
from tecomp.array.distributed.sharding_rules import (
    as_shared,
    brought,
    by_cuts,
    cuts,
    in_pieces,
    in_rows,
    mesh_of,
    number,
    rule,
    ruled,
    team_number,
    uncut,
    waits_for,
    without_elements,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, Shared, leaf, local_type, record
from tecomp.array.statistics import counters
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.errors import ArrayValueError
from tecomp.ptensor.library_functions import compute
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.operations.library_ops import Matrices, Solve, Transform
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    Outer,
    TensorDot,
    Trace,
    VecDot,
)
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.operations.reduction import Reduce
from tecomp.ptensor.types import PTensorType


@rule.register
def _(op: Diagonal, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    row = x.type.rank - 2
    inner = [cut for cut in cuts(x) if cut.axis >= row]
    if len(inner) > 1:
        return ruled(op, [in_rows(x)], type)
    made = [cut for cut in cuts(x) if cut.axis < row]
    offset = op.offset
    for cut in inner:
        first = cut.ends[number(x, cut)]
        # A rank has the part of the diagonal that lies in its rows or columns.
        offset += first if cut.axis == row else -first
        start = max(-op.offset, 0) if cut.axis == row else max(op.offset, 0)
        count = type.shape[-1]
        ends = tuple([min(max(end - start, 0), count) for end in cut.ends])
        made.append(Cut(row, cut.mesh_axis, ends))
    part = record(Diagonal(offset), x.part)
    return waits_for(by_cuts(type, part, x.partition.mesh, made), [x])


@rule.register
def _(op: Trace, xs: Sequence[Shared], type: PTensorType) -> Shared:
    (x,) = xs
    line = Diagonal(op.offset)
    total = Reduce("sum", (type.rank,), False, 0, op.dtype)
    return ruled(total, [ruled(line, [x], line.infer(x.type))], type)


@rule.register
def _(op: Cross, xs: Sequence[Shared], type: PTensorType) -> Shared:
    whole = [uncut(in_pieces(x), (x.type.rank + op.axis,)) for x in xs]
    given, mesh, made = aligned(whole, type)
    part = record(op, *[x.part for x in given])
    return waits_for(by_cuts(type, part, mesh, made), given)


def called(op: LibraryOperation, operands: Sequence[Node]) -> tuple[Node, ...] | None:
    """Compute a library operation on shards; return None if it needs whole arrays."""
    queue_of(team_number(operands[0])).step(op.where)
    return of_parts(op, [as_shared(node) for node in operands])


@singledispatch
def of_parts(op: LibraryOperation, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    """Compute a library operation by its sharding rule."""
    return None


def elements(x: Shared) -> Buffer:
    """Return the evaluated local shard."""
    settle((x,))
    return data_of(x.part)


def call(op: LibraryOperation, *data: Buffer) -> tuple[Buffer, ...]:
    """Call a library operation and count the call."""
    counters.libraries[op.library] += 1
    return compute(op, *data)


def of_data(type: PTensorType, data: Buffer, x: Shared, made: Sequence[Cut]) -> Shared:
    """Build a distributed array from local results."""
    target = of_cuts(type, x.partition.mesh, made)
    data = np.asarray(data, target.dtype)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def row(x: Shared, data: Buffer, dtype: str) -> Shared:
    """Build a one-dimensional array from local results of different lengths."""
    team = team_number(x)
    ends = (0, *accumulate(told(team, np.array([len(data)])).tolist()))
    type = x.type.like((ends[-1],), dtype)
    target = of_cuts(type, row_of(team), [Cut(0, 0, ends)])
    data = np.asarray(data, target.dtype)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def in_one_row(x: Shared) -> Shared:
    """Flatten an array, with pieces on all ranks; a one-dimensional array keeps its axis."""
    if x.type.rank != 1:
        type = x.type.like((x.type.size,))
        x = ruled(Reshape(type.shape), [x], type)
    return x if x.partition.mesh.ndim == 1 and cuts(x) else in_rows(x)


_SMALL = 4
"""Factor by which a result must be smaller than the operands to be replicated."""


class Kind(NamedTuple):
    """Corresponding axes that are cut together along one mesh axis; None for an absent axis.

    Attributes:
        x: Axis of the first operand.
        y: Axis of the second operand.
        result: Axis of the result; None for a contracted axis.
    """

    x: int | None
    y: int | None
    result: int | None


class Way(NamedTuple):
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
def _(op: MatMul, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, y = in_pieces(xs[0]), in_pieces(xs[1])
    if not cuts(x) and not cuts(y):
        return by_cuts(type, record(op, x.part, y.part), mesh_of([x, y]), ())
    return _divided(op, x, y, type, tuple(_matrix_kinds(x.type, y.type, type)))


@rule.register
def _(op: TensorDot, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, y = in_pieces(xs[0]), in_pieces(xs[1])
    if not cuts(x) and not cuts(y):
        return by_cuts(type, record(op, x.part, y.part), mesh_of([x, y]), ())
    first, second = op.places(x.type, y.type)
    kinds = [Kind(k, j, None) for k, j in zip(first, second, strict=True)]
    rows = [k for k in range(x.type.rank) if k not in first]
    columns = [k for k in range(y.type.rank) if k not in second]
    kinds += [Kind(axis, None, k) for k, axis in enumerate(rows)]
    kinds += [Kind(None, axis, len(rows) + k) for k, axis in enumerate(columns)]
    return _divided(op, x, y, type, tuple(kinds))


def _divided(
    op: Operation, x: Shared, y: Shared, type: PTensorType, kinds: tuple[Kind, ...]
) -> Shared:
    """Compute a product with the cheapest sharding."""
    found = [
        way for mesh in dict.fromkeys([each.partition.mesh for each in (x, y) if cuts(each)])
        if (way := cheapest(x.partition, y.partition, everywhere(type, mesh), kinds)) is not None
    ]
    if not found:  # more mesh axes than axes to cut: use a one-dimensional mesh
        return _divided(op, in_rows(x), in_rows(y), type, kinds)
    way = min(found, key=lambda way: way.cost)
    x, y = brought(x, way.x), brought(y, way.y)
    part = record(op, x.part, y.part)
    if way.partial == way.target:
        return waits_for(Shared(type, part, way.target), [x, y])
    moves = redistribution(way.partial, way.target)
    return arriving(type, way.target, part, moves, max(x.ticket, y.ticket))


@lru_cache(maxsize=1024)
def cheapest(
    x: Partition, y: Partition, result: Partition, kinds: tuple[Kind, ...]
) -> Way | None:
    """Return the sharding of a product that sends the fewest bytes; None if there is none.

    Along each mesh axis, the first operand is cut by rows, the second by columns, or both along the
    contracted axis or a batch axis. On a two-dimensional mesh, rows along one mesh axis and columns
    along the other give the SUMMA algorithm.
    """
    ways = list(_ways(x, y, result, kinds))
    return min(ways, key=lambda way: way.cost) if ways else None


def _ways(
    x: Partition, y: Partition, result: Partition, kinds: Sequence[Kind]
) -> Iterator[Way]:
    for chosen in product(kinds, repeat=result.mesh.ndim):
        if len(set(chosen)) == len(chosen):
            yield _way(x, y, result, chosen)


def _matrix_kinds(x: PTensorType, y: PTensorType, result: PTensorType) -> Iterator[Kind]:
    """Yield the axes along which a (batched) matrix product can be cut."""
    rank = len(result.shape)
    is_matrix = len(x.shape) > 1, len(y.shape) > 1
    last = len(x.shape) - 1, max(len(y.shape) - 2, 0)
    yield Kind(*last, None)
    if is_matrix[0]:
        yield Kind(last[0] - 1, None, rank - 1 - is_matrix[1])
    if is_matrix[1]:
        yield Kind(None, last[1] + 1, rank - 1)
    for axis in range(rank - sum(is_matrix)):
        first, second = (
            _batch(given, axis, rank, is_matrix, result.shape[axis]) for given in (x, y))
        if first is not None or second is not None:
            yield Kind(first, second, axis)


def _batch(
    given: PTensorType, axis: int, rank: int, is_matrix: tuple[bool, bool], extent: int
) -> int | None:
    """Return a batch axis as an axis of an operand; None if it is absent or broadcast."""
    own = axis - (rank - sum(is_matrix)) + len(given.shape) - 2
    return own if len(given.shape) > 2 and own >= 0 and given.shape[own] == extent else None


def _way(x: Partition, y: Partition, result: Partition, chosen: Sequence[Kind]) -> Way:
    mesh = result.mesh
    made: tuple[list[Cut], list[Cut], list[Cut]] = ([], [], [])
    for k, kind in enumerate(chosen):
        ends = _ends(x, y, mesh, k, kind)
        for own, axis in zip(made, kind, strict=True):
            if axis is not None:
                own.append(Cut(axis, k, ends))
    added = [k for k, kind in enumerate(chosen) if kind.result is None]
    target = partial = _by(result, mesh, made[2])
    if added:
        summed: list[Placement] = list(target.placements)
        for k in added:
            summed[k] = Partial("sum")
        partial = Partition(result.shape, result.dtype, mesh, summed)
        if mesh.ndim == 1 and _SMALL * _bytes(result) > max(_bytes(x), _bytes(y)) and result.shape:
            target = _by(result, mesh, [Cut(0, 0, blocks(result.shape[0], mesh.shape[0]))])
    first, second = _by(x, mesh, made[0]), _by(y, mesh, made[1])
    cost = sent(x, first) + sent(y, second)
    cost += redistribution(partial, target).nbytes if added else 0
    return Way(first, second, partial, target, cost)


def _ends(x: Partition, y: Partition, mesh: Mesh, mesh_axis: int, kind: Kind) -> tuple[int, ...]:
    """Return the cut of corresponding axes: the existing cut of an operand, or blocks."""
    extent = 0
    for given, axis in ((x, kind.x), (y, kind.y)):
        if axis is None:
            continue
        extent = given.shape[axis]
        for cut in cuts_of(given) or ():
            if (cut.axis, cut.mesh_axis, given.mesh.shape) == (axis, mesh_axis, mesh.shape):
                return cut.ends
    return blocks(extent, mesh.shape[mesh_axis])


def _by(given: Partition, mesh: Mesh, made: Sequence[Cut]) -> Partition:
    return of_cuts(PTensorType(given.shape, given.dtype.name), mesh, made)


def _bytes(given: Partition) -> int:
    size = given.dtype.itemsize
    for n in given.shape:
        size *= n
    return size


def _added(
    op: Operation, x: Shared, y: Shared, type: PTensorType, mesh_axis: int, kept: Sequence[Cut]
) -> Shared:
    """Compute local products and sum them along a mesh axis."""
    part = record(op, x.part, y.part)
    target = of_cuts(type, x.partition.mesh, kept)
    placed: list[Placement] = list(target.placements)
    placed[mesh_axis] = Partial("sum")
    partial = Partition(type.shape, target.dtype, x.partition.mesh, placed)
    return arriving(type, target, part, redistribution(partial, target), max(x.ticket, y.ticket))


@rule.register
def _(op: VecDot, xs: Sequence[Shared], type: PTensorType) -> Shared:
    rank = max(x.type.rank for x in xs)
    shape = tuple([
        max(x.type.shape[k] for x in xs if x.type.rank >= -k) for k in range(-rank, 0)
    ])
    axis = rank + op.axis
    if not type.size:
        return without_elements(type, mesh_of(xs))
    (x, y), mesh, made = aligned(xs, type.like(shape))
    summed = [cut for cut in made if cut.axis == axis]
    kept = [cut._replace(axis=cut.axis - (cut.axis > axis)) for cut in made if cut not in summed]
    if summed:
        return _added(op, x, y, type, summed[0].mesh_axis, kept)
    return waits_for(by_cuts(type, record(op, x.part, y.part), mesh, kept), [x, y])


@rule.register
def _(op: Outer, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, y = in_pieces(xs[0]), in_pieces(xs[1])
    y = brought(y, everywhere(y.type, y.partition.mesh))
    part = record(op, x.part, y.part)
    return waits_for(by_cuts(type, part, x.partition.mesh, cuts(x)), [x, y])


@of_parts.register
def _(op: Matrices, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    return _of_batches(op, x, (elements(x),)) if _is_batch(x) else None


@of_parts.register
def _(op: Solve, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    a, b = in_pieces(xs[0]), xs[1]
    if not _is_batch(a) or a.type.shape[:-2] != b.type.shape[:-2]:
        return None
    b = brought(b, of_cuts(b.type, a.partition.mesh, cuts(a)))
    return _of_batches(op, a, (elements(a), elements(b)), b)


def _is_batch(x: Shared) -> bool:
    """Return whether each matrix is local to one rank."""
    return bool(cuts(x)) and all(cut.axis < x.type.rank - 2 for cut in cuts(x))


def _of_batches(
    op: LibraryOperation, x: Shared, data: Sequence[Buffer], *more: Shared
) -> tuple[Node, ...] | None:
    """Return the results for the local matrices; None if any rank fails."""
    types = op.results(x.type, *[each.type for each in more])
    found: tuple[Buffer, ...] = ()
    failed = False
    try:
        found = call(op, *data)
    except ArrayValueError:
        failed = True
    # The caller then repeats the operation on all matrices, so all ranks raise the same error.
    if told(team_number(x), np.array([failed])).any():
        return None
    return tuple([
        of_data(type, part, x, cuts(x)) for type, part in zip(types, found, strict=True)
    ])


@of_parts.register
def _(op: Transform, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    axes = {axis % x.type.rank for axis in op.axes}
    if not cuts(x) or any(cut.axis in axes for cut in cuts(x)):
        return None
    (type,) = op.results(x.type)
    (data,) = call(op, elements(x))
    return (of_data(type, data, x, cuts(x)),)
