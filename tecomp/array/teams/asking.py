"""Elements at places that depend on values: each process asks those that have them."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.partitions import Cut, of_cuts, usual
from tecomp.array.teams.queue import settle
from tecomp.array.teams.rules import cuts, number
from tecomp.array.teams.transfers import (
    as_shared,
    brought,
    in_one_piece,
    in_pieces,
    in_rows,
    is_everywhere,
    team_number,
)
from tecomp.dist.runtime.reductions import allgather, alltoall
from tecomp.ptensor.types import PTensorType


def asked_for(x: Shared, index: Shared, type: PTensorType, cut: Cut) -> Shared:
    """The elements along an axis that is cut at indices, for those processes that have these.

    Args:
        x: the array.
        index: counted from the first element; of one axis or more.
        type: of the result, with the axes of the indices in place of the one that is cut.
        cut: of the array.
    """
    if is_everywhere(index) or index.partition.mesh.ndim > 1:
        index = in_rows(index)
    settle((x, index))
    (own,) = cuts(index)
    asked = data_of(index.part)
    rows = _answered(x, cut, asked.reshape(-1))
    shape = x.part.type.shape
    data = np.moveaxis(rows, 0, cut.axis) if rows.ndim > 1 else rows
    data = data.reshape(*shape[: cut.axis], *asked.shape, *shape[cut.axis + 1 :])
    made = own._replace(axis=own.axis + cut.axis)
    target = of_cuts(type, index.partition.mesh, [made])
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def _answered(x: Shared, cut: Cut, asked: Buffer) -> Buffer:
    """What is at indices, of whoever has it, with the axis that is indexed in front."""
    owners = np.searchsorted(np.array(cut.ends[1:]), asked, "right")
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=len(cut.ends) - 1)
    team, ends = team_number(x), np.cumsum(counts)[:-1]
    wanted = alltoall(team, np.split(asked[order], ends))
    data = np.moveaxis(in_one_piece(x.part), cut.axis, 0)
    first = cut.ends[number(x, cut)]
    found = np.concatenate(alltoall(team, [data[each - first] for each in wanted]))
    rows = np.empty_like(found)
    rows[order] = found
    return rows


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
    lengths = allgather(team_number(mask), np.array([len(places)])).tolist()
    ends = (0, *accumulate(lengths))
    type = type.like((ends[-1],))
    target = of_cuts(type, mask.partition.mesh, [Cut(0, cut.mesh_axis, ends)])
    return Shared(type, leaf(places, local_type(type, places.shape)), target)


def _is_in_rows(x: Shared) -> bool:
    """Whether the elements of the processes follow each other, one process after the other."""
    return all(n == 1 for n in x.type.shape[: cuts(x)[0].axis])
