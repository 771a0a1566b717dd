"""Elements of arrays of a team in order: by sample sort.

Each process sorts what it has. Samples of all, in order, say where the elements are cut so that
each process gets as many; what a process gets is sorted again. Equal elements stay in the order of
the processes and of their places there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, Node, type_of
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.collectives import dealt, told
from tecomp.array.teams.libraries import call, elements, in_one_row, of_data, of_parts, row
from tecomp.array.teams.partitions import Cut, blocks, of_cuts, row_of
from tecomp.array.teams.rules import cuts, number, ruled
from tecomp.array.teams.transfers import brought, in_pieces, in_rows, rank_of, team_number
from tecomp.ptensor.libraries import compute
from tecomp.ptensor.operations.indexing import ExtractSlice
from tecomp.ptensor.operations.manipulation import Combine, PermuteDims, Reshape
from tecomp.ptensor.operations.sorting import Argsort, Sort
from tecomp.ptensor.types import PTensorType

_SAMPLES = 256
"""Of each process, for each of the processes."""


@of_parts.register(Sort)
@of_parts.register(Argsort)
def _(op: Sort | Argsort, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    (type,) = op.results(x.type)
    axis = op.axis % x.type.rank
    if all(cut.axis != axis for cut in cuts(x)):
        (data,) = call(op, elements(x))
        return (of_data(type, data, x, cuts(x)),)
    others = [(n, -k) for k, n in enumerate(x.type.shape) if k != axis]
    lines = prod(n for n, _ in others)
    if lines == 1:
        line = _sorted_row(op, in_one_row(x), type.like((type.size,)))
        return (line if type.rank == 1 else ruled(Reshape(type.shape), [line], type),)
    if lines < x.partition.mesh.size and x.type.shape[axis] > _SAMPLES * x.partition.mesh.size:
        return (_line_by_line(op, x, type, axis),)
    # Another axis is cut for it: what is sorted is whole then.
    other = -max(others)[1]
    mesh = x.partition.mesh if x.partition.mesh.ndim == 1 else row_of(team_number(x))
    ends = blocks(x.type.shape[other], mesh.size)
    x = brought(x, of_cuts(x.type, mesh, [Cut(other, 0, ends)]))
    (data,) = call(op, elements(x))
    return (of_data(type, data, x, cuts(x)),)


def _line_by_line(op: Sort | Argsort, x: Shared, type: PTensorType, axis: int) -> Shared:
    """Fewer lines than processes: all of these sort each line."""
    order = (*(k for k in range(type.rank) if k != axis), axis)
    turned = ruled(PermuteDims(order), [x], type_of(PermuteDims(order), x.type))
    shape = turned.type.shape
    made: list[Shared] = []
    for at in np.ndindex(*shape[:-1]):
        spans = (*((k, 1, 1) for k in at), (0, 1, shape[-1]))
        line = ruled(ExtractSlice(spans), [turned], x.type.like((*(1,) * len(at), shape[-1])))
        found = _sorted_row(op, in_one_row(line), type.like(shape[-1:]))
        made.append(in_rows(found))  # all by one partition
    lines = Combine("stack", 0)
    together = ruled(lines, made, type_of(lines, *[each.type for each in made]))
    together = ruled(Reshape(shape), [together], type.like(shape))
    back = PermuteDims(tuple([order.index(k) for k in range(type.rank)]))
    return ruled(back, [together], type)


def _sorted_row(op: Sort | Argsort, x: Shared, type: PTensorType) -> Shared:
    """A row in order; where a process has how many is as it comes."""
    data = elements(x)
    (cut,) = cuts(x)
    places = None
    if isinstance(op, Argsort):
        (own,) = call(Argsort(0, op.descending), data)
        data, places = data[own], own + cut.ends[number(x, cut)]
    else:
        counters.libraries[op.library] += 1
        data = in_order(data, descending=op.descending)
    ends = ends_of(x, data, descending=op.descending)
    got = np.concatenate(dealt(team_number(x), cut_at(data, ends)))
    if places is None:
        return row(x, merged(got, descending=op.descending), type.dtype)
    (order,) = compute(Argsort(0, op.descending), got)
    found = np.concatenate(dealt(team_number(x), cut_at(places, ends)))
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


def merged(data: Buffer, *, descending: bool = False) -> Buffer:
    """Rows that are in order, one after the other, as one: of equal elements the first stays first.

    A stable sort finds rows that are in order, and only merges them.

    >>> merged(np.array([3.0, 1.0, 4.0, 2.0]), descending=True)
    array([4., 3., 2., 1.])
    """
    if descending:
        return np.sort(data[::-1], kind="stable")[::-1]
    return np.sort(data, kind="stable")


def ends_of(
    x: Shared, data: Buffer, *, descending: bool, together: bool = False
) -> list[int]:
    """Where a row that is in order is cut, so that each process gets as much of all rows.

    Equal elements go to one process if they are kept together.
    """
    team, rank, size = team_number(x), rank_of(x), x.partition.mesh.size
    count = min(len(data), _SAMPLES * size)
    at = np.arange(count) * len(data) // max(count, 1)
    lengths = told(team, np.array([len(data)]))
    counts = np.minimum(lengths, _SAMPLES * size)
    values = told(team, np.ascontiguousarray(data[at]))
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


def cut_at(data: Buffer, ends: Sequence[int]) -> list[Buffer]:
    """A row in pieces."""
    return [data[a:b] for a, b in pairwise(ends)]
