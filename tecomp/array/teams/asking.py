"""Elements at places that depend on values: each process asks those that have them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tecomp.array.elements.places import counted_from_start
from tecomp.array.elements.writes import in_order
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.collectives import told
from tecomp.array.teams.partitions import Cut, of_cuts, usual
from tecomp.array.teams.queue import settle
from tecomp.array.teams.routes import Given, Routes, in_front, key_of, owners
from tecomp.array.teams.rules import by_cuts, cuts, number
from tecomp.array.teams.transfers import (
    as_shared,
    brought,
    in_one_piece,
    in_pieces,
    is_everywhere,
    team_number,
)
from tecomp.ptensor.operations.indexing import Take
from tecomp.ptensor.types import PTensorType


def asked_for(
    op: Take, x: Shared, indices: Sequence[Shared], type: PTensorType, cut: Cut
) -> Shared:
    """The elements at indices, for those processes that have these.

    Args:
        op: says which axes are indexed; one of them is cut, and no other.
        x: the array.
        indices: counted from the first element; they broadcast.
        type: of the result.
        cut: of the array.
    """
    given = Given(op, x, indices)
    first = in_one_piece(x.part)
    front = in_front(first, op.axis)
    routes = Routes(team_number(x), owners(cut, given.row(op.axis.index(cut.axis))))
    wanted = routes.sent(given.rows)
    found = routes.answered([front[key_of(op, x, cut, each)] for each in wanted])
    rest = front.shape[len(op.axis) :]
    data = found.reshape(*given.shape, *rest)
    middle = len(given.shape)
    data = np.moveaxis(data, range(middle), range(op.place, op.place + middle))
    made = [each._replace(axis=each.axis + op.place) for each in given.cuts]
    target = of_cuts(type, given.mesh, made)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def from_start(node: Node, extent: int) -> tuple[Node, int | None]:
    """Indices counted from the first element of an axis, and one that is out of bounds."""
    x = in_pieces(as_shared(node))
    settle((x,))
    data = in_order(data_of(x.part)).reshape(-1)
    places, wrong = counted_from_start(data, extent)
    outside = data[:0] if wrong is None else data[wrong : wrong + 1]
    type = x.type.like(x.type.shape, "int64")
    part = leaf(places.reshape(x.part.type.shape), local_type(type, x.part.type.shape))
    made = by_cuts(type, part, x.partition.mesh, cuts(x))
    return made, first_of(x, outside)


def first_of(x: Shared, values: Buffer) -> int | None:
    """The first integer that a process has, the same for all; None if none has one."""
    if not is_everywhere(x):
        values = told(team_number(x), values[:1])
    return int(values[0]) if len(values) else None


def places_of(node: Node) -> Shared:
    """Where a mask is true, as a row of numbers; each process has those of its elements."""
    mask = in_pieces(as_shared(node))
    if mask.partition.mesh.ndim > 1 or not cuts(mask) or not _is_in_rows(mask):
        mask = brought(mask, usual(mask.type))
    settle((mask,))
    data = data_of(mask.part).reshape(-1)
    found = cuts(mask)
    type = mask.type.like((), "int64")
    if not found:
        places = np.flatnonzero(data)
        type = type.like(places.shape)
        target = of_cuts(type, mask.partition.mesh, ())
        return Shared(type, leaf(places, local_type(type, places.shape)), target)
    (cut,) = found
    behind = int(np.prod(mask.type.shape[cut.axis + 1 :], dtype=np.int64))
    places = np.flatnonzero(data) + cut.ends[number(mask, cut)] * behind
    lengths = told(team_number(mask), np.array([len(places)])).tolist()
    ends = (0, *accumulate(lengths))
    type = type.like((ends[-1],))
    target = of_cuts(type, mask.partition.mesh, [Cut(0, cut.mesh_axis, ends)])
    return Shared(type, leaf(places, local_type(type, places.shape)), target)


def _is_in_rows(x: Shared) -> bool:
    """Whether the elements of the processes follow each other, one process after the other."""
    return all(n == 1 for n in x.type.shape[: cuts(x)[0].axis])
