"""Elements of arrays of a team in order, and those that are different: by sample sort.

Each process sorts what it has. Samples of all, in order, say where the elements are cut so that
each process gets as many; what a process gets is sorted again. Equal elements stay in the order of
the processes and of their places there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.partitions import Cut, blocks, everywhere, of_cuts
from tecomp.array.teams.queue import queue_of, settle
from tecomp.array.teams.rules import cuts, number
from tecomp.array.teams.transfers import as_shared, brought, in_pieces, rank_of, team_number
from tecomp.dist.runtime.reductions import allgather, alltoall
from tecomp.ptensor.libraries import compute
from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.operations.sets import (
    IsIn,
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    UniqueValues,
)
from tecomp.ptensor.operations.sorting import Argsort, SearchSorted, Sort
from tecomp.ptensor.types import PTensorType

_SAMPLES = 256
"""Of each process, for each of the processes."""


def called(op: LibraryOperation, operands: Sequence[Node]) -> tuple[Node, ...] | None:
    """The results of an operation of a library on parts; None if it needs whole arrays."""
    queue_of(team_number(operands[0])).step(op.where)
    return of_parts(op, [as_shared(node) for node in operands])


@singledispatch
def of_parts(op: LibraryOperation, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    """The same by the rule for such operations."""
    return None


def elements(x: Shared) -> Buffer:
    """What this process has, computed."""
    settle((x,))
    return data_of(x.part)


def _call(op: LibraryOperation, *data: Buffer) -> tuple[Buffer, ...]:
    counters.libraries[op.library] += 1
    return compute(op, *data)


def of_data(type: PTensorType, data: Buffer, x: Shared, made: Sequence[Cut]) -> Shared:
    """An array of what each process has found."""
    target = of_cuts(type, x.partition.mesh, made)
    data = np.asarray(data, target.dtype)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def row(x: Shared, data: Buffer, dtype: str) -> Shared:
    """A row of what processes have found, of any lengths, one after the other."""
    (cut,) = cuts(x)
    ends = (0, *accumulate(allgather(team_number(x), np.array([len(data)])).tolist()))
    return of_data(x.type.like((ends[-1],), dtype), data, x, [Cut(0, cut.mesh_axis, ends)])


def _single(x: Shared) -> Cut | None:
    """How an array is cut, if it is by all processes along one axis."""
    found = cuts(x)
    return found[0] if x.partition.mesh.ndim == 1 and found else None


@of_parts.register(Sort)
@of_parts.register(Argsort)
def _(op: Sort | Argsort, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    (type,) = op.results(x.type)
    if all(cut.axis != op.axis % x.type.rank for cut in cuts(x)):
        (data,) = _call(op, elements(x))
        return (of_data(type, data, x, cuts(x)),)
    cut = _single(x)
    if cut is None:
        return None
    if x.type.rank == 1:
        return (_sorted_row(op, x, cut, type),)
    # Another axis is cut for it: what is sorted is whole then.
    axis = max((n, -k) for k, n in enumerate(x.type.shape) if k != cut.axis)[1]
    ends = blocks(x.type.shape[-axis], len(cut.ends) - 1)
    x = brought(x, of_cuts(x.type, x.partition.mesh, [Cut(-axis, cut.mesh_axis, ends)]))
    (data,) = _call(op, elements(x))
    return (of_data(type, data, x, cuts(x)),)


def _sorted_row(op: Sort | Argsort, x: Shared, cut: Cut, type: PTensorType) -> Shared:
    """A row in order; where a process has how many is as it comes."""
    data = elements(x)
    places = None
    if isinstance(op, Argsort):
        (own,) = _call(Argsort(0, op.descending), data)
        data, places = data[own], own + cut.ends[number(x, cut)]
    else:
        counters.libraries[op.library] += 1
        data = in_order(data, descending=op.descending)
    ends = _ends(x, data, descending=op.descending)
    got = np.concatenate(alltoall(team_number(x), _cut_at(data, ends)))
    if places is None:
        # Parts are in order, and come in that of processes: a stable sort merges them.
        (merged,) = compute(Sort(0, op.descending), got)
        return row(x, merged, type.dtype)
    (order,) = compute(Argsort(0, op.descending), got)
    found = np.concatenate(alltoall(team_number(x), _cut_at(places, ends)))
    return row(x, found[order], type.dtype)


def in_order(data: Buffer, *, descending: bool = False) -> Buffer:
    """A row in order, where equal elements stay in the order in which they are.

    Only zeros are equal and yet different, so that a sort that is not stable does for all others.

    >>> in_order(np.array([1.0, 0.0, -1.0, -0.0]))
    array([-1.,  0., -0.,  1.])
    """
    if data.dtype.kind not in "iuf":
        return compute(Sort(0, descending), data)[0]
    made = np.sort(data)
    if data.dtype.kind == "f":
        low, high = np.searchsorted(made, 0.0), np.searchsorted(made, 0.0, "right")
        if high > low:
            zeros = data[data == 0]
            made[low:high] = zeros[::-1] if descending else zeros
    return made[::-1] if descending else made


def _ends(
    x: Shared, data: Buffer, *, descending: bool, together: bool = False
) -> list[int]:
    """Where a row that is in order is cut, so that each process gets as much of all rows.

    Equal elements go to one process if they are kept together.
    """
    team, rank, size = team_number(x), rank_of(x), x.partition.mesh.size
    count = min(len(data), _SAMPLES * size)
    at = np.arange(count) * len(data) // max(count, 1)
    lengths = allgather(team, np.array([len(data)]))
    counts = np.minimum(lengths, _SAMPLES * size)
    values = allgather(team, np.ascontiguousarray(data[at]))
    (order,) = compute(Argsort(0, descending), values)
    ranks = np.repeat(np.arange(size), counts)[order]
    places = np.concatenate([
        np.arange(n) * m // max(n, 1) for n, m in zip(counts, lengths, strict=True)])[order]
    weights = np.cumsum((lengths / np.maximum(counts, 1))[ranks])
    wanted = np.searchsorted(weights, lengths.sum() * np.arange(1, size) / size)
    ends = [0]
    for k in np.minimum(wanted, len(order) - 1) if len(order) else ():
        source, value = int(ranks[k]), values[order[k]]
        if source == rank and not together:
            ends.append(int(places[k]))
            continue
        with_equal = rank < source and not together
        ends.append(_below(data, value, with_equal=with_equal, descending=descending))
    return [*ends, *[len(data)] * (size + 1 - len(ends))]


def _below(data: Buffer, value: Any, *, with_equal: bool, descending: bool) -> int:
    """How many elements of a row in order come before a value, and with it if it is among them."""
    if descending:
        side: Any = "left" if with_equal else "right"
        return len(data) - int(np.searchsorted(data[::-1], value, side))
    return int(np.searchsorted(data, value, "right" if with_equal else "left"))


def _cut_at(data: Buffer, ends: Sequence[int]) -> list[Buffer]:
    return [data[a:b] for a, b in pairwise(ends)]


@of_parts.register
def _(op: SearchSorted, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    line, values, *sorter = xs
    types = op.results(*[x.type for x in xs])
    values = in_pieces(values)
    given = [_everywhere(x) for x in (line, *sorter)]
    (data,) = _call(op, given[0], elements(values), *given[1:])
    return (of_data(types[0], data, values, cuts(values)),)


@of_parts.register
def _(op: IsIn, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x, among = in_pieces(xs[0]), _everywhere(xs[1])
    (type,) = op.results(*[x.type for x in xs])
    (data,) = _call(op, elements(x), among)
    return (of_data(type, data, x, cuts(x)),)


def _everywhere(x: Shared) -> Buffer:
    return elements(brought(x, everywhere(x.type, x.partition.mesh)))


@of_parts.register(UniqueValues)
@of_parts.register(UniqueCounts)
@of_parts.register(UniqueAll)
@of_parts.register(UniqueInverse)
def _(op: Any, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    cut = _single(x)
    if cut is None or x.type.dtype.startswith("complex"):
        return None
    found = _Different(x, cut, elements(x))
    values = row(x, found.values, x.type.dtype)
    made: dict[str, Any] = {"values": lambda: values}
    made["counts"] = lambda: row(x, found.counts, "int64")
    made["indices"] = lambda: row(x, found.indices, "int64")
    made["inverse"] = lambda: of_data(
        x.type.like(x.type.shape, "int64"),
        found.inverse(_everywhere(values)).reshape(x.part.type.shape), x, cuts(x))
    return tuple([made[part]() for part in op.parts])


class _Different:
    """The different elements of an array: those that this process gets.

    Attributes:
        values: in order.
        counts: how many of each there are on all processes.
        indices: where the first of each is in the array as a row.
    """

    def __init__(self, x: Shared, cut: Cut, data: Buffer) -> None:
        counters.libraries["numpy.unique"] += 1
        self._team, self._data = team_number(x), data.reshape(-1)
        self._places = _places(x, cut)
        values, first, counts = np.unique(
            self._data, return_index=True, return_counts=True, equal_nan=False)
        ends = _ends(x, values, descending=False, together=True)
        parts = [values, counts, self._places[first]]
        values, counts, first = [
            np.concatenate(alltoall(self._team, _cut_at(part, ends))) for part in parts]
        order = np.lexsort((first, values))
        values, counts, first = values[order], counts[order], first[order]
        differs = np.ones(len(values), bool)
        differs[1:] = values[1:] != values[:-1]
        begin = np.flatnonzero(differs)
        self.values = values[begin]
        self.counts = np.add.reduceat(counts, begin) if len(begin) else counts
        self.indices = np.minimum.reduceat(first, begin) if len(begin) else first

    def inverse(self, values: Buffer) -> Buffer:
        """Which of all different elements each of this process is, as a row."""
        found = np.searchsorted(values, self._data)
        if self._data.dtype.kind != "f":
            return found
        # Each NaN is one of its own, in the order of their places.
        is_nan = np.isnan(self._data)
        all_nan = np.sort(allgather(self._team, self._places[is_nan]))
        found[is_nan] = len(values) - len(all_nan) + np.searchsorted(all_nan, self._places[is_nan])
        return found


def _places(x: Shared, cut: Cut) -> Buffer:
    """Where the elements of this process are in the array as a row."""
    shape = x.type.shape
    made = np.zeros((), np.int64)
    for axis, extent in enumerate(shape):
        first = cut.ends[number(x, cut)] if axis == cut.axis else 0
        count = x.part.type.shape[axis] if axis == cut.axis else extent
        made = made[..., None] * extent + np.arange(first, first + count)
    return made.reshape(-1)
