"""Products of arrays of a team, cut by rows, by columns or along what is added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tecomp.array.graph.node import record
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.partitions import Cut, blocks, cuts_of, everywhere, of_cuts
from tecomp.array.teams.placing import aligned, sent
from tecomp.array.teams.queue import arriving
from tecomp.array.teams.rules import by_cuts, cuts, mesh_of, rule, without_elements
from tecomp.array.teams.transfers import brought, in_pieces, in_rows, waits_for
from tecomp.dist.partition.mesh import Mesh
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.linear_algebra import MatMul, Outer, TensorDot, VecDot
from tecomp.ptensor.types import PTensorType

_SMALL = 4
"""How many times a result has to be smaller than an operand to be kept everywhere."""


class Kind(NamedTuple):
    """Axes that are one, and cut along one axis of the mesh; None where there is no such axis.

    Attributes:
        x: of the first operand.
        y: of the second.
        result: of the result; None if it is added up.
    """

    x: int | None
    y: int | None
    result: int | None


class Way(NamedTuple):
    """How a product is divided.

    Attributes:
        x: the partition of the first operand.
        y: of the second.
        partial: of the results of parts.
        target: of the result.
        cost: bytes that are sent.
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
    """A product as it is cheapest to divide."""
    found = [
        way for mesh in dict.fromkeys([each.partition.mesh for each in (x, y) if cuts(each)])
        if (way := cheapest(x.partition, y.partition, everywhere(type, mesh), kinds)) is not None
    ]
    if not found:  # a mesh has more axes than there are to cut; processes in a row have one
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
    """The way to divide a product that sends fewest bytes; None if there is none.

    Along each axis of the mesh the first operand is cut by rows, the second by columns, or both
    along the axis that is added up, or both along an axis of a batch. On a mesh of two axes, rows
    along the one and columns along the other is the product of blocks that is called SUMMA.
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
    """What a product of matrices, or of batches of them, may be cut along."""
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
    """An axis of a batch as one of an operand; None if it has no such, or repeats it."""
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
    """How axes are cut that are one: as in an operand, or into blocks."""
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
    """Products of parts, added up among the processes along an axis of the mesh."""
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
