"""Axes in another order, and elements at other places: copies that keep memory busy both ways.

Where neighbours of the source are no neighbours of the result, a block reads whole cache lines of a
row of each, and inside it squares of vectors are turned in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tecomp import IndexMap, Target, te
from tecomp.schedules.elementwise import inline_chain, reads_of_chain, run_length, stream
from tecomp.schedules.tiles import lanes_of, stream_large, width_of

_LINE_BYTES = 64
_LINES = 4
"""Cache lines of a row of the result that a block fills; of a row of the source it reads one."""

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
    column = describe(output)
    if column is not None:
        _walk(s, output, list(s[output].op.axis), column, target)
    elif output.shape:
        stream(s, output, target, run_length(output))
        stream_large(s, output, target)
    return s


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
    if moving == len(places) - 1:
        lane = places[-1]
        _, lane = s[copy].split(lane, factor=lanes_of(copy, lane, target))
        s[copy].vectorize(lane)
        s[copy].parallel(s[copy].fuse(*places[:-1]))
    else:
        _walk(s, copy, places, moving, target)
    return copy, s


def _follows(mapping: Mapping, rank: int) -> int:
    """The place in memory that moves on when the last index does."""
    index_map = IndexMap.from_func(mapping, ndim=rank)
    here = index_map.map_indices([0] * rank)
    there = index_map.map_indices([0] * (rank - 1) + [1])
    return max(k for k, (a, b) in enumerate(zip(here, there, strict=True)) if str(a) != str(b))


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
