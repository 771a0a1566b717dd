"""Products of arrays of a team: by rows or columns, or of parts that are added up."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.node import record
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.partitions import Cut, everywhere, of_cuts
from tecomp.array.teams.placing import aligned
from tecomp.array.teams.queue import arriving
from tecomp.array.teams.rules import by_cuts, cuts, mesh_of, on_all_elements, rule
from tecomp.array.teams.transfers import brought, in_pieces, waits_for
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.linear_algebra import MatMul, Outer, VecDot
from tecomp.ptensor.types import PTensorType


def _whole(x: Shared) -> Shared:
    return brought(x, everywhere(x.type, x.partition.mesh))


@rule.register
def _(op: MatMul, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, y = in_pieces(xs[0]), in_pieces(xs[1])
    mesh = mesh_of([x, y])
    if mesh.ndim > 1:
        return on_all_elements(op, xs, type)
    first, second = _axis(x), _axis(y)
    down, last = max(y.type.rank - 2, 0), x.type.rank - 1
    is_by_columns = y.type.rank > 1 and second == y.type.rank - 1
    is_by_rows = first is not None and 0 <= first == x.type.rank - 2
    if is_by_columns and (first is None or (is_by_rows and y.type.size > x.type.size)):
        cut = cuts(y)[0]._replace(axis=type.rank - 1)
        x = _whole(x)
        return waits_for(by_cuts(type, record(op, x.part, y.part), mesh, [cut]), [x, y])
    if is_by_rows:
        cut = cuts(x)[0]._replace(axis=type.rank - (2 if y.type.rank > 1 else 1))
        y = _whole(y)
        return waits_for(by_cuts(type, record(op, x.part, y.part), mesh, [cut]), [x, y])
    if first == last or (first is None and second == down):
        found = cuts(x)[0] if first == last else cuts(y)[0]
        x = brought(x, of_cuts(x.type, mesh, [found._replace(axis=last)]))
        y = brought(y, of_cuts(y.type, mesh, [found._replace(axis=down)]))
        return _added(op, x, y, type, found.mesh_axis, ())
    if first is None and second is None:
        return by_cuts(type, record(op, x.part, y.part), mesh, ())
    return on_all_elements(op, xs, type)


def _axis(x: Shared) -> int | None:
    """The axis that is cut."""
    return next((cut.axis for cut in cuts(x)), None)


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
    if any(x.type.shape[op.axis] != shape[axis] for x in xs) or not type.size:
        return on_all_elements(op, xs, type)
    (x, y), mesh, made = aligned(xs, type.like(shape))
    summed = [cut for cut in made if cut.axis == axis]
    kept = [cut._replace(axis=cut.axis - (cut.axis > axis)) for cut in made if cut not in summed]
    if summed:
        return _added(op, x, y, type, summed[0].mesh_axis, kept)
    return waits_for(by_cuts(type, record(op, x.part, y.part), mesh, kept), [x, y])


@rule.register
def _(op: Outer, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, y = in_pieces(xs[0]), _whole(in_pieces(xs[1]))
    part = record(op, x.part, y.part)
    return waits_for(by_cuts(type, part, x.partition.mesh, cuts(x)), [x, y])
