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
    """Routing of rows from each rank to their owners, and back.

    Attributes:
        team: Number of the team.
        owners: Owner rank of each row of this process.
    """

    def __init__(self, team: int, owners: Buffer) -> None:
        self._team = team
        self._order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=team_of(team).size)
        self._ends = np.cumsum(counts)[:-1]

    def sent(self, rows: Buffer) -> list[Buffer]:
        """Send rows to their owners; return the received rows by rank, in each sender's order."""
        return dealt(self._team, np.split(rows[self._order], self._ends))

    def answered(self, made: Sequence[Buffer]) -> Buffer:
        """Send results back; return one per row that this process sent, in the original order."""
        found = np.concatenate(dealt(self._team, made))
        rows = np.empty_like(found)
        rows[self._order] = found
        return rows


class Given:
    """Sharded index arrays.

    Attributes:
        mesh: Mesh of processes.
        cuts: Cuts of the broadcast shape of the index arrays.
        shape: Shape of the local part.
        rows: Local indices: a row per element, a column per indexed axis.
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
        """Return the indices along one axis."""
        return self.rows[:, k]


def owners(cut: Cut, places: Buffer) -> Buffer:
    """Return the number of the piece that contains each index of an axis."""
    return np.searchsorted(np.array(cut.ends[1:]), places, "right")


def in_front(data: Buffer, axes: Sequence[int]) -> Buffer:
    """Return a view of a shard with the indexed axes in front."""
    return np.moveaxis(data, axes, range(len(axes)))


def key_of(op: Take, x: Shared, cut: Cut, rows: Buffer) -> tuple[Buffer, ...]:
    """Convert global indices to an index of the local shard."""
    first = cut.ends[number(x, cut)]
    return tuple([
        rows[:, k] - (first if axis == cut.axis else 0) for k, axis in enumerate(op.axis)
    ])


def asked_for(
    op: Take, x: Shared, indices: Sequence[Shared], type: PTensorType, cut: Cut
) -> Shared:
    """Gather elements at indices onto the ranks that have the indices.

    Args:
        op: Operation that gives the indexed axes, exactly one of which is cut.
        x: Input array.
        indices: Nonnegative index arrays, broadcast against each other.
        type: Type of the result.
        cut: Cut of the array.
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
    """Convert negative indices, and return an index that is out of bounds, if any."""
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
    """Return the first integer of the lowest rank that has one; None if no rank has one."""
    if not is_everywhere(x):
        values = told(team_number(x), values[:1])
    return int(values[0]) if len(values) else None


def places_of(node: Node) -> Shared:
    """Return the flat indices where a mask is true; each rank has those of its shard."""
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
    """Return whether the shards are consecutive in row-major order."""
    return all(n == 1 for n in x.type.shape[: cuts(x)[0].axis])


def put_at(op: Take, node: Node, value: Node, *indices: Node) -> Node:
    """Replace elements at indices; the last of equal indices takes effect.

    Args:
        op: Operation that gives the indexed axes.
        node: Array.
        value: Values, in the result shape of `op`.
        indices: Nonnegative index arrays, broadcast against each other.
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
    """Send elements to the owners of their positions, which write them in order."""
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
    """Write to the local shard, if no indexed axis is cut."""
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
