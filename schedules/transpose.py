"""Axes in another order, and elements at other places: copies that keep memory busy both ways.

Where neighbours of the source are no neighbours of the result, a block reads whole cache lines of a
row of each, and inside it squares of vectors are turned in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tecomp import IndexMap, LayoutError, Target, te
from tecomp.schedules.elementwise import Moved, inline_chain, reads_of_chain, run_length, stream
from tecomp.schedules.tiles import ceil_div, core_of, lanes_of, stream_large, width_of

_LINE_BYTES = 64
_LINES = 4
"""Cache lines of a row of the result that a block fills; of a row of the source it reads one."""
_STRETCH_BYTES = 1024
"""Of either memory in a block of rows: enough for its pages to be opened once."""
_ROW_VECTORS = 4
"""Vectors of a row that are moved by one statement."""
_SHARES = 8
"""Iterations of shared loops for each core, so that none waits long for the last."""

Mapping = Callable[..., Sequence[te.Expr]]


def define(
    A: te.Tensor, axes: Sequence[int] | None = None, *, name: str = "transpose"
) -> te.Tensor:
    """`A` with its axes in another order, as `numpy.transpose`.

    Args:
        A: the tensor.
        axes: for each axis of the result the axis of A; reversed if None.
        name: of the result.

    Raises:
        ValueError: an axis is missing or named twice.

    >>> define(te.placeholder((2, 3, 4), name="A"), (0, 2, 1)).shape
    (2, 4, 3)
    """
    rank = len(A.shape)
    order = list(reversed(range(rank))) if axes is None else [k % rank for k in axes]
    if sorted(order) != list(range(rank)):
        raise ValueError(
            f"transpose.define: axes={tuple(axes or ())} of {rank} axes; name each axis once"
        )
    own = [order.index(k) for k in range(rank)]
    return te.compute(
        tuple(A.shape[k] for k in order), lambda *i: A(*(i[k] for k in own)),
        name=name,
    )


def describe(output: te.Tensor) -> int | None:
    """The axis of the result along which a tensor that it reads is contiguous, if not the last.

    Args:
        output: the result of `define`, or of any other formula of elements.

    Returns:
        The number of the axis; None where neighbours of all sources are neighbours of the result.

    >>> A = te.placeholder((2, 3, 4), name="A")
    >>> describe(define(A, (2, 0, 1))), describe(define(A, (1, 0, 2)))
    (1, None)
    """
    last = len(output.shape) - 1
    turned = (read.dims[-1] for read in reads_of_chain(output) if last in read.used)
    return next((axis for axis in turned if axis is not None and axis != last), None)


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`, or for another formula of such elements."""
    s = te.create_schedule(output)
    inline_chain(s, output)
    formula_at_root(s, output, target)
    return s


def formula_at_root(s: te.Schedule, output: te.Tensor, target: Target) -> None:
    """Schedule a formula of elements in the order of memory, of its result or of both sides."""
    column = describe(output)
    if column is not None:
        axes = list(s[output].op.axis)
        _walk(s, output, *_taken_together(s[output], axes, _neighbours(output), column), target)
    elif output.shape:
        stream(s, output, target, run_length(output))
        if output.op in s.outputs:
            stream_large(s, output, target)


def pack(A: te.Tensor, mapping: Mapping, target: Target, *, name: str = "packed") -> tuple[
    te.Tensor, te.Schedule
]:
    """A copy of `A` whose elements lie where `mapping` says, and its schedule.

    Args:
        A: the tensor.
        mapping: its indices to those in memory, as `transform_layout` takes it.
        target: for its vectors.
        name: of the copy.

    >>> A = te.placeholder((1, 32, 7, 7), name="A")
    >>> copy, _ = pack(A, lambda n, c, h, w: [n, c // 16, h, w, c % 16], Target.load("cpu"))
    >>> copy.shape
    (1, 32, 7, 7)
    """
    copy = te.compute(A.shape, lambda *i: A(*i), name=name)
    s = te.create_schedule(copy)
    places = list(s[copy].transform_layout(mapping))
    moving = _follows(mapping, len(A.shape))
    walked = _walked(mapping, A.shape)
    if moving == len(places) - 1:
        _move_rows(s, copy, places, walked, target)
        stream_large(s, copy, target)
    else:
        joined = [] if walked is None else [a.continues(b) for a, b in pairwise(walked)]
        _walk(s, copy, *_taken_together(s[copy], places, joined, moving), target)
    return copy, s


def _neighbours(output: te.Tensor) -> list[bool]:
    """For each axis but the last whether it and the next are one axis of all that is read."""
    return [
        all(_are_one(read, k, int(extent)) for read in reads_of_chain(output))
        if isinstance(extent, int) else False
        for k, extent in enumerate(output.shape[1:])
    ]


def _are_one(read: Moved, axis: int, extent: int) -> bool:
    """Whether axis number `axis` and the next, of such an extent, are neighbours in a tensor."""
    pairs = zip(pairwise(read.dims), read.tensor.shape[1:], strict=True)
    return any(dims == (axis, axis + 1) and size == extent for dims, size in pairs)


def _taken_together(
    stage: te.Stage, axes: Sequence[te.IterVar], joined: Sequence[bool], column: int
) -> tuple[list[te.IterVar], int]:
    """Axes, those fused that are one on both sides, and the new number of one of them.

    Args:
        stage: that has the axes.
        axes: in the order of memory.
        joined: for each whether the next is one with it.
        column: the number of an axis.
    """
    found = [axes[0]]
    now = 0
    for k, axis in enumerate(axes[1:], 1):
        if joined and joined[k - 1]:
            found[-1] = stage.fuse(found[-1], axis)
        else:
            found.append(axis)
        now = len(found) - 1 if k == column else now
    return found, now


def _follows(mapping: Mapping, rank: int) -> int:
    """The place in memory that moves on when the last index does."""
    index_map = IndexMap.from_func(mapping, ndim=rank)
    here = index_map.map_indices([0] * rank)
    there = index_map.map_indices([0] * (rank - 1) + [1])
    return max(k for k, (a, b) in enumerate(zip(here, there, strict=True)) if str(a) != str(b))


@dataclass(frozen=True)
class _Place:
    """One axis of memory, for sizes that are known.

    Attributes:
        extent: how many places it has.
        source: how far one step goes in the source, in elements.
        result: the same in the result.
        dims: the axes of the tensor along which it moves.
    """

    extent: int
    source: int
    result: int
    dims: frozenset[int]

    def continues(self, other: _Place) -> bool:
        """Whether this axis goes on where the next one ends, on both sides."""
        is_box = not self.dims & other.dims
        return is_box and self.source == other.extent * other.source > 0


def _walked(mapping: Mapping, shape: Sequence[te.Expr | int]) -> list[_Place] | None:
    """The axes of memory; None where sizes are not known or the way back is no expression."""
    sizes = [extent for extent in shape if isinstance(extent, int)]
    if len(sizes) < len(shape):
        return None
    index_map = IndexMap.from_func(mapping, ndim=len(sizes))
    try:
        inverse, _ = index_map.non_surjective_inverse(sizes)
    except LayoutError:
        return None
    extents = [int(str(extent)) for extent in index_map.map_shape(sizes)]

    def element(*place: int) -> list[int]:
        return [int(str(index)) for index in inverse.map_indices(place)]

    first = element(*(0 for _ in extents))
    found = []
    for k, extent in enumerate(extents):
        index = element(*(int(axis == k) for axis in range(len(extents))))
        moved = [b - a for a, b in zip(first, index, strict=True)]
        source = sum(step * prod(sizes[dim + 1 :]) for dim, step in enumerate(moved))
        dims = frozenset(dim for dim, step in enumerate(moved) if step)
        found.append(_Place(extent, abs(source), prod(extents[k + 1 :]), dims))
    return found


def _move_rows(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], places: list[_Place] | None,
    target: Target,
) -> None:
    """Rows that are contiguous on both sides, in blocks of long stretches of both memories."""
    stage, (*rest, row) = s[x], axes
    lanes = lanes_of(x, row, target)
    while lanes < _ROW_VECTORS * core_of(target).vector_bytes // width_of(x) and (
        not isinstance(row.extent, int) or lanes < row.extent
    ):
        lanes *= 2
    chunk, lane = stage.split(row, factor=lanes)
    stage.vectorize(lane)
    if places is None:
        stage.parallel((*rest, chunk)[0])
        return
    outer: list[tuple[te.IterVar, _Place]] = []
    inner: list[tuple[te.IterVar, _Place]] = []
    for axis, place in zip(rest, places, strict=False):
        count = max(
            ceil_div(_STRETCH_BYTES, max(step, 1) * width_of(x))
            for step in (place.source, place.result)
        )
        if count >= place.extent > 1:
            inner.append((axis, place))
        elif count == 1 or place.extent <= 1:
            outer.append((axis, place))
        else:
            block, axis = stage.split(axis, factor=count)
            outer.append((block, replace(place, extent=ceil_div(place.extent, count))))
            inner.append((axis, place))
    loops = [*outer, *inner]
    stage.reorder(*(axis for axis, _ in loops), chunk, lane)
    _share(stage, loops or [(chunk, places[-1])], target)


def _share(
    stage: te.Stage, loops: Sequence[tuple[te.IterVar, _Place]], target: Target
) -> None:
    """Share the outermost loops among cores: as many as give all of them work.

    Loops that count the digits of one index stay apart: where it ends inside a block, their
    iterations are no box.
    """
    count, used = 1, set[int]()
    shared: list[te.IterVar] = []
    for axis, place in loops:
        if shared and (count >= _SHARES * core_of(target).count or used & place.dims):
            break
        shared.append(axis)
        used |= place.dims
        count *= place.extent
    stage.parallel(stage.fuse(*shared) if len(shared) > 1 else shared[0])


def _walk(
    s: te.Schedule, x: te.Tensor, axes: list[te.IterVar], column: int, target: Target
) -> None:
    """Blocks of the last axis and of that along which the source is contiguous, in squares."""
    stage, row = s[x], axes[-1]
    lanes = lanes_of(x, row, target)
    line = max(_LINE_BYTES // width_of(x), lanes)
    rows, row = stage.split(row, factor=_LINES * line)
    across, row = stage.split(row, factor=lanes)
    columns, number = stage.split(axes[column], factor=line)
    down, number = stage.split(number, factor=lanes)
    outer = [axis for k, axis in enumerate(axes[:-1]) if k != column]
    stage.reorder(*outer, rows, columns, across, down, number, row)
    stage.unroll(number)
    stage.vectorize(row)
    stage.parallel(stage.fuse(*outer, rows))
