"""Elementwise operations on arrays of a team: on parts, of operands by one partition."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.node import record
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.partitions import Cut, is_same, of_cuts, partition
from tecomp.array.teams.rules import cuts, mesh_of, ruled
from tecomp.array.teams.transfers import brought, in_pieces, is_everywhere, shared
from tecomp.dist.partition.mesh import Mesh
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.types import PTensorType, Shape


@ruled.register(Elementwise)
@ruled.register(Cast)
@ruled.register(Where)
def _(op: Elementwise | Cast | Where, xs: Sequence[Shared], type: PTensorType) -> Shared:
    same = _common(xs, type)
    if same is not None:
        given = same.partition
        target = partition(type.shape, type.dtype, given.mesh, given.placements)
        return shared(type, record(op, *[x.part for x in xs]), target)
    pieces, mesh, made = aligned(xs, type.shape)
    return shared(type, record(op, *[x.part for x in pieces]), of_cuts(type, mesh, made))


def _common(xs: Sequence[Shared], type: PTensorType) -> Shared | None:
    """An operand whose partition all others have too, but those without axes; None without one."""
    full = [x for x in xs if x.type.shape]
    if not full or full[0].type.shape != type.shape:
        return None
    first = full[0]
    if all(is_same(x.partition, first.partition) for x in full[1:]):
        return first
    return None


def aligned(
    xs: Sequence[Shared], shape: Shape
) -> tuple[list[Shared], Mesh, tuple[Cut, ...]]:
    """Operands brought to one partition of the shape that they broadcast to.

    The largest operand that is divided stays where it is; others are brought to it.

    Returns:
        The operands, the mesh, and the cuts of the shape.
    """
    pieces = [in_pieces(x) for x in xs]
    mesh = mesh_of(pieces)
    made: tuple[Cut, ...] = ()
    ranked = sorted(pieces, key=lambda x: -x.type.size)
    for x in ranked:
        made = () if is_everywhere(x) else _lifted(x, shape)
        if made:
            mesh = x.partition.mesh
            break
    return [lowered(x, shape, mesh, made) for x in pieces], mesh, made


def _lifted(x: Shared, shape: Shape) -> tuple[Cut, ...]:
    """The cuts of an operand as those of the result, where it is not repeated."""
    more = len(shape) - x.type.rank
    return tuple([
        cut._replace(axis=cut.axis + more) for cut in cuts(x)
        if x.type.shape[cut.axis] == shape[cut.axis + more]
    ])


def lowered(x: Shared, shape: Shape, mesh: Mesh, made: Sequence[Cut]) -> Shared:
    """An operand by the cuts of the result; what is repeated along an axis is not cut there."""
    more = len(shape) - x.type.rank
    own = [
        cut._replace(axis=cut.axis - more) for cut in made
        if cut.axis >= more and x.type.shape[cut.axis - more] == shape[cut.axis]
    ]
    return brought(x, of_cuts(x.type, mesh, own))
