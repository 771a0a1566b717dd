"""Elements written to places that depend on values: sent to the processes that have these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tecomp.array.elements.writes import copied
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.partitions import Cut, everywhere, of_cuts
from tecomp.array.teams.queue import queue_of, settle
from tecomp.array.teams.routes import Given, Routes, in_front, key_of, owners
from tecomp.array.teams.rules import cuts
from tecomp.array.teams.transfers import as_shared, brought, in_pieces, in_rows, team_number
from tecomp.ptensor.operations.indexing import Take


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


