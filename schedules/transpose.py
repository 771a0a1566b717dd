"""Axes in another order, and elements at other places: copies that keep memory busy both ways.

Where neighbours of the source are no neighbours of the result, a block reads whole cache lines of a
row of each, and inside it squares of vectors are transposed in registers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeAlias

from tecomp import IndexMap, LayoutError, Target, te
from tecomp.schedules.structure.chains import Moved, inline_chain, reads_of_chain, run_length
from tecomp.schedules.structure.sizes import ceil_div
from tecomp.schedules.tiling.streams import stream, stream_large
from tecomp.schedules.tiling.tiles import core_of, lanes_of, width_of

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
_Loop: TypeAlias = "tuple[te.IterVar, frozenset[int]]"
"""A loop, and the axes of the tensor along which it moves."""


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


def describe(output: te.Tensor, apart: Container[te.Tensor] = ()) -> int | None:
    """The axis of the result along which a tensor that it reads is contiguous, if not the last.

    Args:
        output: the result of `define`, or of any other formula of elements.
        apart: formulas on the way that are not computed where they are used.

    Returns:
        The number of the axis; None where neighbours of all sources are neighbours of the result.

    >>> A = te.placeholder((2, 3, 4), name="A")
    >>> describe(define(A, (2, 0, 1))), describe(define(A, (1, 0, 2)))
    (1, None)
    """
    last = len(output.shape) - 1
    transposed = (read.dims[-1] for read in reads_of_chain(output, apart) if last in read.used)
    return next((axis for axis in transposed if axis is not None and axis != last), None)


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`, or for another formula of such elements."""
    s = te.create_schedule(output)
    inline_chain(s, output)
    formula_at_root(s, output, target)
    return s


def formula_at_root(
    s: te.Schedule, output: te.Tensor, target: Target, apart: Container[te.Tensor] = ()
) -> None:
    """Schedule a formula of elements in the order of memory, of its result or of both sides.

    Formulas that it reads are computed where they are used, but for those `apart`.
    """
    column = describe(output, apart)
    if column is not None:
        axes = list(s[output].op.axis)
        loops = [(axis, frozenset({k})) for k, axis in enumerate(axes)]
        joined = _neighbours(output, apart)
        _walk(s, output, *_taken_together(s[output], loops, joined, column), target)
    elif output.shape:
        stream(s, output, target, run_length(output, apart), apart)
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
    loops = list(zip(places, _dims(mapping, len(A.shape)), strict=True))
    steps = _steps(mapping, A.shape)
    if steps is not None:
        # An axis of one place is no row.
        order = sorted(range(len(steps)), key=[step.extent > 1 for step in steps].__getitem__)
        loops, steps, moving = (
            [loops[k] for k in order], [steps[k] for k in order], order.index(moving)
        )
    if moving == len(places) - 1:
        _move_rows(s, copy, loops, steps, target)
        stream_large(s, copy, target)
    else:
        joined = [] if steps is None else [a.continues(b) for a, b in pairwise(steps)]
        _walk(s, copy, *_taken_together(s[copy], loops, joined, moving), target)
    return copy, s


def _neighbours(output: te.Tensor, apart: Container[te.Tensor]) -> list[bool]:
    """For each axis but the last whether it and the next are one axis of all that is read."""
    return [
        all(_are_one(read, k, int(extent)) for read in reads_of_chain(output, apart))
        if isinstance(extent, int) else False
        for k, extent in enumerate(output.shape[1:])
    ]


def _are_one(read: Moved, axis: int, extent: int) -> bool:
    """Whether axis number `axis` and the next, of such an extent, are neighbours in a tensor."""
    pairs = zip(pairwise(read.dims), read.tensor.shape[1:], strict=True)
    return any(dims == (axis, axis + 1) and size == extent for dims, size in pairs)


def _taken_together(
    stage: te.Stage, loops: Sequence[_Loop], joined: Sequence[bool], column: int
) -> tuple[list[_Loop], int]:
    """The loops, those fused that are one on both sides, and the new number of one of them.

    Args:
        stage: that has the loops.
        loops: in the order of memory.
        joined: for each whether the next is one with it; none is if it is empty.
        column: the number of a loop.
    """
    found = [loops[0]]
    now = 0
    for k, (axis, dims) in enumerate(loops[1:], 1):
        before, along = found[-1]
        # Digits of one index are no box where it ends inside a block.
        if joined and joined[k - 1] and k - 1 != column and not dims & along:
            found[-1] = (stage.fuse(before, axis), dims | along)
        else:
            found.append((axis, dims))
        now = len(found) - 1 if k == column else now
    return found, now


def _follows(mapping: Mapping, rank: int) -> int:
    """The place in memory that moves on when the last index does; the last if none does."""
    index_map = IndexMap.from_func(mapping, ndim=rank)
    here, there = (
        index_map.map_indices([int(n == last) for n in range(rank)]) for last in (rank, rank - 1)
    )
    moved = (k for k, (a, b) in enumerate(zip(here, there, strict=True)) if str(a) != str(b))
    return max(moved, default=len(here) - 1)


def _dims(mapping: Mapping, rank: int) -> list[frozenset[int]]:
    """The axes of the tensor along which each axis of memory moves."""
    named = [te.var(f"i{k}") for k in range(rank)]
    places = IndexMap.from_func(mapping, ndim=rank).map_indices(named)
    return [frozenset(int(name) for name in re.findall(r"\bi(\d+)\b", str(p))) for p in places]


@dataclass(frozen=True)
class _Step:
    """How far one step along an axis of memory goes, in elements.

    Attributes:
        extent: how many places the axis has.
        source: how far it goes in the source.
        result: the same in the result.
    """

    extent: int
    source: int
    result: int

    def continues(self, other: _Step) -> bool:
        """Whether this axis goes on where the next one ends, on both sides."""
        return self.source == other.extent * other.source > 0


def _steps(mapping: Mapping, shape: Sequence[te.Expr | int]) -> list[_Step] | None:
    """Those of all axes; None where sizes are not known or the way back is no expression."""
    sizes = [extent for extent in shape if isinstance(extent, int)]
    if len(sizes) < len(shape):
        return None
    index_map = IndexMap.from_func(mapping, ndim=len(sizes))
    try:
        inverse, _ = index_map.non_surjective_inverse(sizes)
    except LayoutError:
        return None
    extents = [int(str(extent)) for extent in index_map.map_shape(sizes)]

    def offset(*place: int) -> int:
        index = [int(str(number)) for number in inverse.map_indices(place)]
        return sum(n * prod(sizes[dim + 1 :]) for dim, n in enumerate(index))

    first = offset(*(0 for _ in extents))
    return [
        _Step(extent, abs(offset(*(int(axis == k) for axis in range(len(extents)))) - first),
              prod(extents[k + 1 :]))
        for k, extent in enumerate(extents)
    ]


def _move_rows(
    s: te.Schedule, x: te.Tensor, loops: list[_Loop], steps: list[_Step] | None, target: Target
) -> None:
    """Rows that are contiguous on both sides, in blocks of long stretches of both memories."""
    stage, (*rest, (row, dims)) = s[x], loops
    lanes = lanes_of(x, row, target)
    while lanes < _ROW_VECTORS * core_of(target).vector_bytes // width_of(x) and (
        not isinstance(row.extent, int) or lanes < row.extent
    ):
        lanes *= 2
    chunk, lane = stage.split(row, factor=lanes)
    stage.vectorize(lane)
    if steps is not None:
        rest = _blocks(stage, rest, steps, width_of(x))
    stage.reorder(*(axis for axis, _ in rest), chunk, lane)
    _share(stage, [*rest, (chunk, dims)], target)


def _blocks(
    stage: te.Stage, loops: Sequence[_Loop], steps: Sequence[_Step], width: int
) -> list[_Loop]:
    """The loops over blocks, and then those inside of a block."""
    outer: list[_Loop] = []
    inner: list[_Loop] = []
    for (axis, dims), step in zip(loops, steps, strict=False):
        size = max(
            ceil_div(_STRETCH_BYTES, max(each, 1) * width) for each in (step.source, step.result)
        )
        if size >= step.extent > 1:
            inner.append((axis, dims))
        elif size == 1 or step.extent <= 1:
            outer.append((axis, dims))
        else:
            block, axis = stage.split(axis, factor=size)
            outer.append((block, dims))
            inner.append((axis, dims))
    return [*outer, *inner]


def _share(stage: te.Stage, loops: Sequence[_Loop], target: Target) -> None:
    """Share the outermost loops among cores: as many as give all of them work.

    Loops that count the digits of one index stay apart: where it ends inside a block, their
    iterations are no box.
    """
    (first, used), *rest = loops
    shared = [first]
    for axis, dims in rest:
        known = [each.extent for each in shared if isinstance(each.extent, int)]
        is_enough = prod(known) >= _SHARES * core_of(target).count
        if used & dims or (is_enough and len(known) == len(shared)):
            break
        shared.append(axis)
        used |= dims
    stage.parallel(stage.fuse(*shared) if len(shared) > 1 else first)


def _walk(
    s: te.Schedule, x: te.Tensor, loops: Sequence[_Loop], column: int, target: Target
) -> None:
    """Blocks of the last axis and of that along which the source is contiguous, in squares.

    Args:
        s: the schedule.
        x: what is copied.
        loops: over its memory, in order.
        column: the number of the loop along which the source is contiguous.
        target: for its vectors.
    """
    stage, (*rest, (row, dims)) = s[x], loops
    lanes = lanes_of(x, row, target)
    line = max(_LINE_BYTES // width_of(x), lanes)
    rows, row = stage.split(row, factor=_LINES * line)
    across, row = stage.split(row, factor=lanes)
    columns, number = stage.split(rest.pop(column)[0], factor=line)
    down, number = stage.split(number, factor=lanes)
    stage.reorder(*(axis for axis, _ in rest), rows, columns, across, down, number, row)
    stage.unroll(number)
    stage.vectorize(row)
    _share(stage, [*rest, (rows, dims)], target)
