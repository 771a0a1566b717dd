"""What an operation does to arrays of a team: the rules that others of this room register."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from tecomp.array.graph.node import Node, leaf, record
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.partitions import Cut, cuts_of, everywhere, of_cuts, usual
from tecomp.array.teams.queue import queue_of
from tecomp.array.teams.transfers import (
    as_shared,
    brought,
    gathered,
    is_everywhere,
    rank_of,
    waits_for,
)
from tecomp.dist.partition.mesh import Mesh
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType, numpy_dtype


def record_together(op: Operation, type: PTensorType, operands: Sequence[Node]) -> Node:
    """The result of an operation on arrays of a team.

    What is sent between processes is sent now; what a process computes of its part is recorded.

    Args:
        op: the operation.
        type: of the result.
        operands: of one team.
    """
    assert type.team is not None
    queue_of(type.team).step(op.where)
    return ruled(op, [as_shared(node) for node in operands], type)


def ruled(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """The same, for operands with partitions.

    The result waits for what is sent for its operands, and for what a rule asked for.
    """
    assert type.team is not None
    queue = queue_of(type.team)
    before = queue.last
    made = rule(op, xs, type)
    if made.made_of is not None:
        return made
    if queue.last > before:
        made.ticket = queue.last
    return waits_for(made, xs)


@singledispatch
def rule(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """What is done for such operations; without a rule, on all elements on each process."""
    return on_all_elements(op, xs, type)


def on_all_elements(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """All operands gathered, the operation on all of their elements, and the result divided."""
    whole = [gathered(x, op.where) for x in xs]
    part = record(op, *[x.part for x in whole])
    result = waits_for(Shared(type, part, everywhere(type, mesh_of(xs))), whole)
    return result if all(map(is_everywhere, xs)) else brought(result, usual(type))


def without_elements(type: PTensorType, mesh: Mesh) -> Shared:
    """An array of no elements."""
    data = np.empty(type.shape, numpy_dtype(type.dtype))
    return Shared(type, leaf(data, local_type(type, type.shape)), everywhere(type, mesh))


def mesh_of(xs: Sequence[Shared]) -> Mesh:
    """The processes as the first operand has them that is divided."""
    return next((x for x in xs if not is_everywhere(x)), xs[0]).partition.mesh


def cuts(x: Shared) -> tuple[Cut, ...]:
    """How the axes of an array are cut that is in pieces."""
    found = cuts_of(x.partition)
    assert found is not None
    return found


def number(x: Shared, cut: Cut) -> int:
    """Which of the pieces this process has."""
    return x.partition.mesh.coordinates(rank_of(x))[cut.mesh_axis]


def uncut(x: Shared, axes: Sequence[int]) -> Shared:
    """An array that is not cut along some axes."""
    kept = [cut for cut in cuts(x) if cut.axis not in axes]
    if len(kept) == len(cuts(x)):
        return x
    return brought(x, of_cuts(x.type, x.partition.mesh, kept))


def by_cuts(type: PTensorType, part: Node, mesh: Mesh, made: Sequence[Cut]) -> Shared:
    """An array of parts by cuts of its axes."""
    return Shared(type, part, of_cuts(type, mesh, made))
