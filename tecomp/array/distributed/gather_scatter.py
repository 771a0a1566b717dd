"""Data-dependent gather and scatter between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tecomp.array.distributed.elementwise import Aligned, aligned, lowered
from tecomp.array.distributed.message_queue import dealt, queue_of, settle, told
from tecomp.array.distributed.partitions import Cut, cuts_of, everywhere, of_cuts, usual
from tecomp.array.distributed.sharding_rules import (
    as_shared,
    brought,
    by_cuts,
    cuts,
    in_one_piece,
    in_pieces,
    in_rows,
    is_everywhere,
    number,
    rank_of,
    team_number,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, Shared, leaf, local_type
from tecomp.array.indexing.data_dependent import copied, counted_from_start, in_order
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.operations.manipulation import Take
from tecomp.ptensor.types import PTensorType, broadcast_shapes


class Routes:
    """The way from what processes have to those that own it, and back.

    Attributes:
        team: its number.
        owners: the rank for each row of what this process has.
    """

    def __init__(self, team: int, owners: Buffer) -> None:
        self._team = team
        self._order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=team_of(team).size)
        self._ends = np.cumsum(counts)[:-1]

    def sent(self, rows: Buffer) -> list[Buffer]:
        """What all processes have for this one, in the order of ranks; theirs in its order."""
        return dealt(self._team, np.split(rows[self._order], self._ends))

    def answered(self, made: Sequence[Buffer]) -> Buffer:
        """What owners have made of the rows that were sent, one for each, in their order."""
        found = np.concatenate(dealt(self._team, made))
        rows = np.empty_like(found)
        rows[self._order] = found
        return rows


class Given:
    """Indices of elements, of which each process has some.

    Attributes:
        mesh: the processes.
        cuts: of the shape to which all of them broadcast.
        shape: of what this process has.
        rows: one for each element, a column for each axis that is indexed.
    """

    def __init__(self, op: Take, x: Shared, indices: Sequence[Shared]) -> None:
        shape = broadcast_shapes([index.type.shape for index in indices], op.where)
        type = x.type.like(shape, "int64")
        xs, self.mesh, self.cuts = aligned(indices, type)
        if self.mesh.ndim > 1 or (shape and not self.cuts):
            target = usual(type)
            self.mesh, self.cuts = target.mesh, cuts_of(target) or ()
            xs = [lowered(each, shape, Aligned(self.mesh, self.cuts)) for each in xs]
        settle((x, *xs))
        self.shape = of_cuts(type, self.mesh, self.cuts).local_shape(rank_of(x))
        columns = [np.broadcast_to(data_of(each.part), self.shape).reshape(-1) for each in xs]
        self.rows = np.stack(columns, axis=1)

    def row(self, k: int) -> Buffer:
        """The indices of one axis."""
        return self.rows[:, k]


def owners(cut: Cut, places: Buffer) -> Buffer:
    """Which of the pieces of an axis has each index."""
    return np.searchsorted(np.array(cut.ends[1:]), places, "right")


def in_front(data: Buffer, axes: Sequence[int]) -> Buffer:
    """A view of a part with the axes in front that are indexed."""
    return np.moveaxis(data, axes, range(len(axes)))


def key_of(op: Take, x: Shared, cut: Cut, rows: Buffer) -> tuple[Buffer, ...]:
    """Indices as those of the part of this process."""
    first = cut.ends[number(x, cut)]
    return tuple([
        rows[:, k] - (first if axis == cut.axis else 0) for k, axis in enumerate(op.axis)
    ])


def asked_for(
    op: Take, x: Shared, indices: Sequence[Shared], type: PTensorType, cut: Cut
) -> Shared:
    """The elements at indices, for those processes that have these.

    Args:
        op: says which axes are indexed; one of them is cut, and no other.
        x: Input array.
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


def put_at(op: Take, node: Node, value: Node, *indices: Node) -> Node:
    """An array with other elements in place of those at indices; of equal indices the last says.

    Args:
        op: says which axes are indexed.
        node: the array.
        value: of the shape that `op` gives.
        indices: counted from the first element; they broadcast.
    """
    queue_of(team_number(node)).step("x[...] = value")
    x, at = in_pieces(as_shared(node)), [in_pieces(as_shared(index)) for index in indices]
    found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found and x.partition.mesh.ndim > 1:
        x = in_rows(x)
        found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found:
        data = _told(op, x, as_shared(value), at, found[0])
    else:
        data = _put_beside(op, x, as_shared(value), at)
    return Shared(x.type, leaf(data, local_type(x.type, data.shape)), x.partition)


def _told(
    op: Take, x: Shared, value: Shared, indices: Sequence[Shared], cut: Cut
) -> Buffer:
    """Elements are sent to those that have their places, in their order."""
    given = Given(op, x, indices)
    made = [each._replace(axis=each.axis + op.place) for each in given.cuts]
    value = brought(value, of_cuts(value.type, given.mesh, made))
    settle((value,))
    middle = len(given.shape)
    rows = np.moveaxis(
        data_of(value.part), range(op.place, op.place + middle), range(middle))
    rest = rows.shape[middle:]
    routes = Routes(team_number(x), owners(cut, given.row(op.axis.index(cut.axis))))
    places = np.concatenate(routes.sent(given.rows))
    elements = np.concatenate(routes.sent(rows.reshape(len(given.rows), *rest)))
    data = copied(data_of(x.part))
    in_front(data, op.axis)[key_of(op, x, cut, places)] = elements
    return data


def _put_beside(
    op: Take, x: Shared, value: Shared, indices: Sequence[Shared]
) -> Buffer:
    """No axis is cut that is indexed: each process writes to its part."""
    at = [brought(index, everywhere(index.type, x.partition.mesh)) for index in indices]
    middle = value.type.rank - (x.type.rank - len(op.axis))
    kept = [axis for axis in range(x.type.rank) if axis not in op.axis]
    axes = {axis: k if k < op.place else k + middle for k, axis in enumerate(kept)}
    made = [cut._replace(axis=axes[cut.axis]) for cut in cuts(x)]
    value = brought(value, of_cuts(value.type, x.partition.mesh, made))
    settle((x, value, *at))
    data = copied(data_of(x.part))
    rows = np.moveaxis(
        data_of(value.part), range(op.place, op.place + middle), range(middle))
    in_front(data, op.axis)[tuple([data_of(index.part) for index in at])] = rows
    return data
