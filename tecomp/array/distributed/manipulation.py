"""Reshape, permute, concatenate, slice and repeat sharded arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from tecomp.array.distributed.elementwise import Aligned, aligned, lowered, placed_at
from tecomp.array.distributed.gather_scatter import asked_for, first_of
from tecomp.array.distributed.message_queue import arriving, queue_of, settle, told
from tecomp.array.distributed.partitions import (
    Cut,
    Window,
    blocks,
    everywhere,
    of_cuts,
    row_of,
    usual,
)
from tecomp.array.distributed.sharding_rules import (
    as_shared,
    brought,
    by_cuts,
    cuts,
    in_one_piece,
    in_pieces,
    in_rows,
    mesh_of,
    number,
    rank_of,
    rule,
    ruled,
    seen,
    team_number,
    uncut,
    waits_for,
    without_elements,
)
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, Shared, leaf, local_type, record
from tecomp.array.graph.views import moved
from tecomp.array.indexing.data_dependent import in_order, repeated_places, rows_at
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operations.creation import Create, ExtractTriangle
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    Broadcast,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    Slices,
    Squeeze,
    Take,
    TakeAlongAxis,
    Tile,
)
from tecomp.ptensor.operations.reduction import Diff
from tecomp.ptensor.types import PTensorType


def repeated(node: Node, counts: Node, axis: int) -> tuple[Node, tuple[int, int] | None]:
    """Repeat elements along an axis; also return a negative count and its position, if any.

    Args:
        node: Array.
        counts: One-dimensional integer array with a count per index of the axis.
        axis: Axis.
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
    """Return the first invalid count and its position, on all ranks; None if all are valid."""
    at = slice(0) if wrong is None else slice(wrong, wrong + 1)
    count = first_of(own, often[at])
    if count is None:
        return None
    place = first_of(own, np.arange(first, first + len(often))[at])
    assert place is not None
    return count, place


def _ends(x: Shared, cut: Cut, count: int) -> tuple[int, ...]:
    """Return the cut of an axis whose local pieces have new sizes."""
    mesh = x.partition.mesh
    counts = told(team_number(x), np.array([count])).reshape(mesh.shape)
    sizes = np.moveaxis(counts, cut.mesh_axis, 0).reshape(mesh.shape[cut.mesh_axis], -1)[:, 0]
    return (0, *accumulate(sizes.tolist()))


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
    """Reverse slices along some axes."""
    return tuple([
        (start + (count - 1) * step, -step, count) if axis in axes and count else
        (0, 1, 0) if axis in axes else (start, step, count)
        for axis, (start, step, count) in enumerate(spans)
    ])


def _within(x: Shared, spans: Slices) -> tuple[list[Cut], Slices]:
    """Return the cuts of slices computed without communication, and the local slices."""
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
    """Reverse the elements along a cut axis, and redistribute them in blocks."""
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
    # Read `value.part` on all ranks: its messages are collective, even where the shard is empty.
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
    """Return consecutive elements along an axis."""
    spans = tuple([
        (start, 1, count) if k == axis else (0, 1, n) for k, n in enumerate(x.type.shape)
    ])
    op = ExtractSlice(spans)
    return ruled(op, [x], op.infer(x.type))


@rule.register
def _(op: Create, xs: Sequence[Shared], type: PTensorType) -> Shared:
    (value,) = xs
    part = record(Create(op.shape, op.dtype, type.device), value.part)
    return by_cuts(type, part, value.partition.mesh, ())


@rule.register
def _(op: Broadcast, xs: Sequence[Shared], type: PTensorType) -> Shared:
    (x,), mesh, made = aligned(xs, type)
    target = of_cuts(type, mesh, made)
    part = moved(Broadcast(target.local_shape(rank_of(x))), x.part)
    return Shared(type, part, target, x.ticket)


def _renamed(x: Shared, axes: Mapping[int, int]) -> list[Cut]:
    """Return the cuts of an array whose axes are renumbered in the result."""
    return [cut._replace(axis=axes[cut.axis]) for cut in cuts(x)]


@rule.register
def _(op: PermuteDims, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    axes = {axis: k for k, axis in enumerate(op.axis)}
    return by_cuts(type, moved(op, x.part), x.partition.mesh, _renamed(x, axes))


@rule.register
def _(op: MatrixTranspose, xs: Sequence[Shared], type: PTensorType) -> Shared:
    rank = type.rank
    return ruled(PermuteDims((*range(rank - 2), rank - 1, rank - 2)), xs, type)


@rule.register
def _(op: ExpandDims, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    kept = [axis for axis in range(type.rank) if axis not in op.axis]
    made = _renamed(x, dict(enumerate(kept)))
    return by_cuts(type, moved(op, x.part), x.partition.mesh, made)


@rule.register
def _(op: Squeeze, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = uncut(in_pieces(xs[0]), op.axis)
    kept = [axis for axis in range(x.type.rank) if axis not in op.axis]
    made = _renamed(x, {axis: k for k, axis in enumerate(kept)})
    return by_cuts(type, moved(op, x.part), x.partition.mesh, made)


@rule.register
def _(op: Repeat, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    made = [
        cut._replace(ends=tuple([end * op.repeats for end in cut.ends]))
        if cut.axis == op.axis else cut for cut in cuts(x)
    ]
    return by_cuts(type, record(op, x.part), x.partition.mesh, made)


@rule.register
def _(op: ExtractTriangle, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    k = op.k
    for cut in cuts(x):
        first = cut.ends[number(x, cut)]
        k += {x.type.rank - 2: first, x.type.rank - 1: -first}.get(cut.axis, 0)
    part = record(ExtractTriangle(op.kind, k), x.part)
    return by_cuts(type, part, x.partition.mesh, cuts(x))


@rule.register
def _(op: Take, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, *indices = [in_pieces(x) for x in xs]
    found = [cut for cut in cuts(x) if cut.axis in op.axis]
    if found and x.partition.mesh.ndim > 1:
        return ruled(op, [in_rows(x), *indices], type)
    if found:
        return asked_for(op, x, indices, type, found[0])
    indices = [brought(index, everywhere(index.type, x.partition.mesh)) for index in indices]
    kept = [axis for axis in range(x.type.rank) if axis not in op.axis]
    middle = type.rank - len(kept)
    axes = {axis: k if k < op.place else k + middle for k, axis in enumerate(kept)}
    part = record(op, x.part, *[index.part for index in indices])
    return by_cuts(type, part, x.partition.mesh, _renamed(x, axes))


def _cut_beside(type: PTensorType, mesh: Mesh, axes: Sequence[int]) -> tuple[Cut, ...]:
    """Return blocks of the longest other axis; no cut if that axis has size 1."""
    others = [axis for axis in range(type.rank) if axis not in axes]
    axis = max(others, key=lambda k: type.shape[k], default=None)
    if axis is None or type.shape[axis] < 2:
        return ()
    return (Cut(axis, 0, blocks(type.shape[axis], mesh.size)),)


@rule.register
def _(op: TakeAlongAxis, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x, indices = in_pieces(xs[0]), in_pieces(xs[1])
    axis = op.axis % x.type.rank
    if x.type.rank == 1:
        return ruled(Take((0,), 0), [x, indices], type)
    mesh = x.partition.mesh
    made = tuple([
        cut for cut in cuts(x)
        if cut.axis != axis and x.type.shape[cut.axis] == type.shape[cut.axis]
    ])
    if not made:
        mesh = row_of(team_number(x))
        made = _cut_beside(type, mesh, (axis,))
    if not made:
        return _along_a_row(op, x, indices, type)
    x, indices = (lowered(each, type.shape, Aligned(mesh, made)) for each in (x, indices))
    return waits_for(by_cuts(type, record(op, x.part, indices.part), mesh, made), [x, indices])


def _along_a_row(op: TakeAlongAxis, x: Shared, indices: Shared, type: PTensorType) -> Shared:
    """Compute `take_along_axis` if all other axes have size 1."""
    if not type.size:
        return without_elements(type, mesh_of([x, indices]))
    row, places = (ruled(_as_row(each.type), [each], _row_of(each.type)) for each in (x, indices))
    found = ruled(Take((0,), 0), [row, places], _row_of(type))
    return ruled(Reshape(type.shape), [found], type)


def _row_of(type: PTensorType) -> PTensorType:
    return type.like((type.size,))


def _as_row(type: PTensorType) -> Reshape:
    return Reshape((type.size,))


@rule.register
def _(op: Tile, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    more = type.rank - x.type.rank
    counts = (1,) * (type.rank - len(op.repetitions)) + op.repetitions
    along = [(cut._replace(axis=cut.axis + more), counts[cut.axis + more]) for cut in cuts(x)]
    if not type.size:
        return without_elements(type, x.partition.mesh)
    # With this many repetitions, each rank needs all elements.
    if any(n >= x.partition.mesh.size for _, n in along):
        x = brought(x, everywhere(x.type, x.partition.mesh))
        tiled = Shared(type, record(op, x.part), everywhere(type, x.partition.mesh))
        return brought(waits_for(tiled, [x]), usual(type))
    mesh, placed = x.partition.mesh, [cut for cut, _ in along]
    whole = {cut.axis for cut in placed}
    inside = Tile(tuple([1 if k in whole else n for k, n in enumerate(counts)]))
    x = waits_for(by_cuts(inside.infer(x.type), record(inside, x.part), mesh, placed), [x])
    for k, (cut, n) in enumerate(along):
        extent = x.type.shape[cut.axis] * n
        shape = (*x.type.shape[: cut.axis], extent, *x.type.shape[cut.axis + 1 :])
        placed[k] = cut._replace(ends=blocks(extent, mesh.shape[cut.mesh_axis]))
        if n > 1:
            x = joined(Combine("concat", cut.axis), [x] * n, type.like(shape), mesh, placed)
    return x


@rule.register
def _(op: Combine, xs: Sequence[Shared], type: PTensorType) -> Shared:
    pieces = [in_pieces(x) for x in xs]
    largest = max(pieces, key=lambda x: (bool(cuts(x)), x.type.size))
    mesh = largest.partition.mesh
    if op.kind == "concat":
        made = tuple([
            cut._replace(ends=blocks(type.shape[op.axis], mesh.shape[cut.mesh_axis]))
            if cut.axis == op.axis else cut for cut in cuts(largest)
        ])
        return joined(op, pieces, type, mesh, made)
    parts = [brought(x, of_cuts(x.type, mesh, cuts(largest))) for x in pieces]
    made = tuple([cut._replace(axis=cut.axis + (cut.axis >= op.axis)) for cut in cuts(largest)])
    return waits_for(by_cuts(type, record(op, *[x.part for x in parts]), mesh, made), parts)


def joined(
    op: Combine, xs: Sequence[Shared], type: PTensorType, mesh: Mesh, made: Sequence[Cut]
) -> Shared:
    """Concatenate arrays in a given sharding: each array is sent to its final position."""
    parts: list[Shared] = []
    offset = 0
    for x in xs:
        extent = x.type.shape[op.axis]
        own = [
            cut._replace(ends=tuple([min(max(end - offset, 0), extent) for end in cut.ends]))
            if cut.axis == op.axis else cut for cut in made
        ]
        parts.append(brought(x, of_cuts(x.type, mesh, own)))
        offset += extent
    return waits_for(by_cuts(type, record(op, *[x.part for x in parts]), mesh, made), parts)


@rule.register
def _(op: Roll, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    cut_axes = {cut.axis for cut in cuts(x)}
    local = [(s, axis) for s, axis in zip(op.shift, op.axis, strict=True) if axis not in cut_axes]
    if local:
        inside = Roll(tuple([s for s, _ in local]), tuple([axis for _, axis in local]))
        rolled = by_cuts(x.type, record(inside, x.part), x.partition.mesh, cuts(x))
        x = waits_for(rolled, [x])
    shifts = [0] * type.rank
    for s, axis in zip(op.shift, op.axis, strict=True):
        if axis in cut_axes and type.shape[axis]:
            shifts[axis] += s
    whole = [_least(s, n) for s, n in zip(shifts, type.shape, strict=True)]
    if not any(whole):
        return x
    starts = tuple([-s for s in whole])
    window = Window(starts, tuple([bool(s) for s in whole]), x.partition)
    beside = seen(x, type, window)
    return _rolled(op, x, type, cut_axes) if beside is None else beside


def _least(shift: int, extent: int) -> int:
    """Return the equivalent cyclic shift of least magnitude."""
    shift %= max(extent, 1)
    return shift - extent if 2 * shift > extent else shift


def _rolled(op: Roll, x: Shared, type: PTensorType, cut_axes: set[int]) -> Shared:
    """Roll an array as concatenations of both ends of each axis."""
    for s, axis in zip(op.shift, op.axis, strict=True):
        extent = type.shape[axis]
        if axis not in cut_axes or not extent or not s % extent:
            continue
        back = extent - s % extent
        ends = [slice_along(x, axis, back, extent - back), slice_along(x, axis, 0, back)]
        x = joined(Combine("concat", axis), ends, type, x.partition.mesh, cuts(x))
    return x


@rule.register
def _(op: Reshape, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    found = cuts(x)
    if not found:
        return by_cuts(type, moved(op, x.part), x.partition.mesh, ())
    if not type.size:
        return without_elements(type, x.partition.mesh)
    if not type.shape:
        return ruled(op, [brought(x, everywhere(x.type, x.partition.mesh))], type)
    made = {axis: cut for cut in found if (axis := _kept(x, type, cut)) is not None}
    if len(made) == len(found):
        kept = [cut._replace(axis=axis) for axis, cut in made.items()]
        return _reshaped(op, x, type, kept)
    if len(found) > 1:
        return ruled(op, [in_rows(x)], type)
    first = _first_of_several(x.type.shape)
    if found[0].axis != first:
        count = x.partition.mesh.shape[found[0].mesh_axis]
        cut = Cut(first, found[0].mesh_axis, blocks(x.type.shape[first], count))
        x = brought(x, of_cuts(x.type, x.partition.mesh, [cut]))
    return _by_rows(op, x, type)


def _kept(x: Shared, type: PTensorType, cut: Cut) -> int | None:
    """Return the axis of a reshaped array that equals a cut axis; None if there is none."""
    before, extent = prod(x.type.shape[: cut.axis]), x.type.shape[cut.axis]
    for axis, n in enumerate(type.shape):
        if n == extent and prod(type.shape[:axis]) == before:
            return axis
    return None


def _first_of_several(shape: Sequence[int]) -> int:
    """Return the first axis of size 2 or more, whose cuts follow the row-major order."""
    return next((axis for axis, n in enumerate(shape) if n != 1), 0)


def _reshaped(op: Reshape, x: Shared, type: PTensorType, made: Sequence[Cut]) -> Shared:
    target = of_cuts(type, x.partition.mesh, made)
    part = moved(Reshape(target.local_shape(rank_of(x)), op.copy), x.part)
    return Shared(type, part, target, x.ticket)


def _by_rows(op: Reshape, x: Shared, type: PTensorType) -> Shared:
    """Reshape through a flat array, resharded so that each rank has whole rows of the result."""
    (cut,) = cuts(x)
    inner = prod(x.type.shape[cut.axis + 1 :])
    line = _reshaped(
        Reshape((type.size,)), x, type.like((type.size,)),
        [Cut(0, cut.mesh_axis, tuple([end * inner for end in cut.ends]))],
    )
    (cut,) = cuts(line)
    axis = _first_of_several(type.shape)
    behind = prod(type.shape[axis + 1 :])
    if any(end % behind for end in cut.ends):
        ends = blocks(type.shape[axis], len(cut.ends) - 1)
        cut = cut._replace(ends=tuple([end * behind for end in ends]))
        line = brought(line, of_cuts(line.type, line.partition.mesh, [cut]))
    ends = tuple([end // behind for end in cut.ends])
    return _reshaped(op, line, type, [Cut(axis, cut.mesh_axis, ends)])
