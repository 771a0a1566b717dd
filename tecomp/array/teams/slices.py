"""Slices of arrays of a team: elements stay where they are, unless their order changes."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.node import record
from tecomp.array.graph.shared import Shared
from tecomp.array.graph.views import moved
from tecomp.array.teams.partitions import Cut, of_cuts, usual
from tecomp.array.teams.placing import placed_at
from tecomp.array.teams.queue import arriving
from tecomp.array.teams.rules import by_cuts, cuts, number, rule, ruled
from tecomp.array.teams.transfers import in_pieces, waits_for
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.indexing import ExtractSlice, InsertSlice, Slices
from tecomp.ptensor.operations.manipulation import Flip
from tecomp.ptensor.operations.reduction import Diff
from tecomp.ptensor.types import PTensorType


@rule.register
def _(op: ExtractSlice, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    turned = [cut.axis for cut in cuts(x) if op.slice[cut.axis][1] < 0]
    spans = forward(op.slice, turned)
    made, own = _within(x, spans)
    part = moved(ExtractSlice(own), x.part)
    result = waits_for(by_cuts(type, part, x.partition.mesh, made), [x])
    if all(step == 1 for _, step, _ in op.slice) and x.type.size:
        base, starts, periodic = x.view or (x, (0,) * type.rank, (False,) * type.rank)
        first = tuple([a + start for a, (start, _, _) in zip(starts, op.slice, strict=True)])
        result.view = base, first, periodic
    for axis in turned:
        result = _turned(result, axis)
    return result


def forward(spans: Slices, axes: Sequence[int]) -> Slices:
    """Slices along some axes with their elements in reverse."""
    return tuple([
        (start + (count - 1) * step, -step, count) if axis in axes and count else
        (0, 1, 0) if axis in axes else (start, step, count)
        for axis, (start, step, count) in enumerate(spans)
    ])


def _within(x: Shared, spans: Slices) -> tuple[list[Cut], Slices]:
    """How slices are cut whose elements stay where they are, and the slices of this process."""
    own, made = list(spans), []
    for cut in cuts(x):
        start, step, count = spans[cut.axis]
        ends = tuple([min(max(-(-(end - start) // step), 0), count) for end in cut.ends])
        ends = (0, *ends[1:-1], count)
        made.append(cut._replace(ends=ends))
        k = number(x, cut)
        first, n = start + step * ends[k] - cut.ends[k], ends[k + 1] - ends[k]
        own[cut.axis] = (first, step, n) if n else (0, 1, 0)
    return made, tuple(own)


def _turned(x: Shared, axis: int) -> Shared:
    """The elements along an axis that is cut, in reverse, where blocks of them are."""
    part = moved(Flip((axis,)), x.part)
    back = [slice(None, None, -1 if k == axis else 1) for k in range(x.type.rank)]
    target = usual(x.type)
    moves = redistribution(x.partition.view(back), target)
    return arriving(x.type, target, part, moves, x.ticket)


@rule.register
def _(op: Flip, xs: Sequence[Shared], type: PTensorType) -> Shared:
    spans = tuple([
        (n - 1, -1, n) if axis in op.axis else (0, 1, n) for axis, n in enumerate(type.shape)
    ])
    return ruled(ExtractSlice(spans), xs, type)


@rule.register
def _(op: InsertSlice, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, value = in_pieces(xs[0]), xs[1]
    turned = tuple([axis for axis, (_, step, _) in enumerate(op.slice) if step < 0])
    if turned:
        value = ruled(Flip(turned), [value], value.type)
    made, own = _within(x, forward(op.slice, turned))
    value = placed_at(value, of_cuts(value.type, x.partition.mesh, made))
    # Also where this process has nothing of it: what is sent for it is for others too.
    part = x.part
    if 0 not in value.part.type.shape:
        part = record(InsertSlice(own), part, value.part)
    return waits_for(Shared(type, part, x.partition, x.ticket), [value])


@rule.register
def _(op: Diff, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    axis = op.axis % x.type.rank
    if all(cut.axis != axis for cut in cuts(x)):
        return by_cuts(type, record(op, x.part), x.partition.mesh, cuts(x))
    rest = type.shape[axis]
    first, second = (
        slice_along(x, axis, min(start, x.type.shape[axis]), rest) for start in (0, 1))
    return ruled(FUNCTIONS["subtract"], [second, first], type)


def slice_along(x: Shared, axis: int, start: int, count: int) -> Shared:
    """Consecutive elements along an axis."""
    spans = tuple([
        (start, 1, count) if k == axis else (0, 1, n) for k, n in enumerate(x.type.shape)
    ])
    op = ExtractSlice(spans)
    return ruled(op, [x], op.infer(x.type))
