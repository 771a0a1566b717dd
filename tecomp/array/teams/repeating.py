"""Elements of arrays of a team repeated as often as an array says for each of them."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from tecomp.array.elements.places import repeated_places, rows_at
from tecomp.array.elements.writes import in_order
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.asking import first_of
from tecomp.array.teams.collectives import told
from tecomp.array.teams.partitions import Cut, everywhere, of_cuts
from tecomp.array.teams.queue import queue_of, settle
from tecomp.array.teams.rules import cuts, number
from tecomp.array.teams.transfers import (
    as_shared,
    brought,
    in_one_piece,
    in_pieces,
    team_number,
)


def repeated(node: Node, counts: Node, axis: int) -> tuple[Node, tuple[int, int] | None]:
    """The elements along an axis, each as often as is said; and a count below 0 with its place.

    Args:
        node: the array.
        counts: a row of integers, one for each index of the axis.
        axis: of the array.
    """
    queue_of(team_number(node)).step("repeat")
    x, own = in_pieces(as_shared(node)), in_pieces(as_shared(counts))
    along = [cut for cut in cuts(x) if cut.axis == axis]
    mesh = x.partition.mesh
    own = brought(own, of_cuts(own.type, mesh, [cut._replace(axis=0) for cut in along])
                  if along else everywhere(own.type, mesh))
    settle((x, own))
    often = in_order(data_of(own.part))
    places, wrong = repeated_places(often)
    first = along[0].ends[number(x, along[0])] if along else 0
    fault = _fault(own, often, wrong, first)
    if fault is not None:
        return node, fault
    data = rows_at(in_one_piece(x.part), axis, places)
    ends = _ends(x, along[0], len(places)) if along else (0, len(places))
    shape = (*x.type.shape[:axis], ends[-1], *x.type.shape[axis + 1 :])
    made = [cut._replace(ends=ends) if cut.axis == axis else cut for cut in cuts(x)]
    type = x.type.like(shape)
    part = leaf(data, local_type(type, data.shape))
    return Shared(type, part, of_cuts(type, mesh, made)), None


def _fault(own: Shared, often: Buffer, wrong: int | None, first: int) -> tuple[int, int] | None:
    """What no element can be repeated, and where that is, the same on all processes."""
    at = slice(0) if wrong is None else slice(wrong, wrong + 1)
    count = first_of(own, often[at])
    if count is None:
        return None
    place = first_of(own, np.arange(first, first + len(often))[at])
    assert place is not None
    return count, place


def _ends(x: Shared, cut: Cut, count: int) -> tuple[int, ...]:
    """How an axis is cut whose pieces have so many indices now."""
    mesh = x.partition.mesh
    counts = told(team_number(x), np.array([count])).reshape(mesh.shape)
    sizes = np.moveaxis(counts, cut.mesh_axis, 0).reshape(mesh.shape[cut.mesh_axis], -1)[:, 0]
    return (0, *accumulate(sizes.tolist()))
