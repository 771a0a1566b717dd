"""Elements of arrays of a team that are different, and those that are among others.

Each process finds the different elements that it has, and sends each to one process, the same for
equal ones, as elements that are sorted are sent. That one says what it found of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, Node, leaf, record
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.collectives import dealt
from tecomp.array.teams.libraries import call, elements, of_data, of_parts, row
from tecomp.array.teams.ordering import cut_at, ends_of
from tecomp.array.teams.partitions import cuts_of, everywhere, partition
from tecomp.array.teams.queue import arriving
from tecomp.array.teams.rules import cuts, number
from tecomp.array.teams.transfers import (
    brought,
    in_pieces,
    in_rows,
    is_everywhere,
    team_number,
)
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Replicate
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.sets import (
    IsIn,
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    UniqueValues,
)
from tecomp.ptensor.types import PTensorType


@of_parts.register
def _(op: IsIn, xs: Sequence[Shared]) -> tuple[Node, ...]:
    x, among = in_pieces(xs[0]), in_pieces(xs[1])
    (type,) = op.results(x.type, among.type)
    if not is_everywhere(among) and x.type.size < among.type.size:
        return (_is_in_parts(op, x, among, type),)
    whole = brought(among, everywhere(among.type, among.partition.mesh))
    (data,) = call(op, elements(x), elements(whole))
    return (of_data(type, data, x, cuts(x)),)


def _is_in_parts(op: IsIn, x: Shared, among: Shared, type: PTensorType) -> Shared:
    """The same where the first operand is the smaller one: all look for it in what they have."""
    mesh = among.partition.mesh
    whole = brought(x, everywhere(x.type, mesh))
    (data,) = call(IsIn(), elements(whole), elements(among))
    target = everywhere(type, mesh) if is_everywhere(x) else x.partition
    target = partition(type.shape, type.dtype, target.mesh, target.placements)
    placed: list[Placement] = [Replicate()] * mesh.ndim
    for cut in cuts(among):
        placed[cut.mesh_axis] = Partial("any")
    partial = Partition(type.shape, target.dtype, mesh, placed)
    part = leaf(data, local_type(type, data.shape))
    found = arriving(type, target, part, redistribution(partial, target), whole.ticket)
    if op.invert:
        found = Shared(type, record(FUNCTIONS["logical_not"], found.part), target, found.ticket)
    return found


@of_parts.register(UniqueValues)
@of_parts.register(UniqueCounts)
@of_parts.register(UniqueAll)
@of_parts.register(UniqueInverse)
def _(op: Any, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    if is_everywhere(x):
        return None
    if len(cuts(x)) < x.partition.mesh.ndim:  # several processes have the same
        x = in_rows(x)
    found = _Different(x, elements(x))
    values = row(x, found.values, x.type.dtype)
    made: dict[str, Any] = {"values": lambda: values}
    made["counts"] = lambda: row(x, found.counts, "int64")
    made["indices"] = lambda: row(x, found.indices, "int64")
    made["inverse"] = lambda: of_data(
        x.type.like(x.type.shape, "int64"),
        found.inverse(_first(values)).reshape(x.part.type.shape), x, cuts(x))
    return tuple([made[part]() for part in op.parts])


def _first(values: Shared) -> int:
    """The number of the first element of a row that this process has."""
    (cut,) = cuts_of(values.partition) or ()
    return cut.ends[number(values, cut)]


class _Different:
    """The different elements of an array: those that this process gets.

    Attributes:
        values: in order.
        counts: how many of each there are on all processes.
        indices: where the first of each is in the array as a row.
    """

    def __init__(self, x: Shared, data: Buffer) -> None:
        counters.libraries["numpy.unique"] += 1
        self._team = team_number(x)
        values, first, self._own, counts = np.unique(
            data.reshape(-1), return_index=True, return_inverse=True, return_counts=True,
            equal_nan=False)
        ends = ends_of(x, values, descending=False, together=True)
        parts = [values, counts, _places(x)[first]]
        sent = [dealt(self._team, cut_at(part, ends)) for part in parts]
        self._lengths = [len(each) for each in sent[0]]
        values, counts, first = [np.concatenate(part) for part in sent]
        # Each NaN is one of its own, in the order of their places.
        self._order = np.lexsort((first, values))
        values, counts, first = values[self._order], counts[self._order], first[self._order]
        self._differs = np.ones(len(values), bool)
        self._differs[1:] = values[1:] != values[:-1]
        begin = np.flatnonzero(self._differs)
        self.values = values[begin]
        self.counts = np.add.reduceat(counts, begin) if len(begin) else counts
        self.indices = np.minimum.reduceat(first, begin) if len(begin) else first

    def inverse(self, first: int) -> Buffer:
        """Which of all different elements each of this process is, as a row.

        Args:
            first: the number of the first one that this process got.
        """
        numbers = np.empty(len(self._order), np.int64)
        numbers[self._order] = np.cumsum(self._differs) - 1 + first
        ends = [0, *np.cumsum(self._lengths).tolist()]
        return np.concatenate(dealt(self._team, cut_at(numbers, ends)))[self._own]


def _places(x: Shared) -> Buffer:
    """Where the elements of this process are in the array as a row."""
    firsts = {cut.axis: cut.ends[number(x, cut)] for cut in cuts(x)}
    made = np.zeros((), np.int64)
    for axis, (extent, count) in enumerate(zip(x.type.shape, x.part.type.shape, strict=True)):
        first = firsts.get(axis, 0)
        made = made[..., None] * extent + np.arange(first, first + count)
    return made.reshape(-1)
