"""Which elements of its operands an element of a result needs, as far as each axis says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import NamedTuple, TypeAlias

from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.indexing import ExtractSlice, InsertSlice
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    Broadcast,
    Combine,
    ExpandDims,
    Flip,
    PermuteDims,
    Reshape,
    Roll,
    Squeeze,
)
from tecomp.ptensor.operations.reduction import Cumulative, Diff
from tecomp.ptensor.types import PTensorType, Shape

Span: TypeAlias = tuple[int, int]
"""First index and end."""

Box: TypeAlias = tuple[Span, ...]
"""A span of indices along each axis."""


class Along(NamedTuple):
    """The index along an axis of an operand that belongs to index `i` along one of the result.

    Attributes:
        axis: of the result.
        step: the index is `first + step * i`.
        first: that.
    """

    axis: int
    step: int = 1
    first: int = 0


class Reads(NamedTuple):
    """What an operation reads.

    Attributes:
        operands: for each axis of each operand how it goes along one of the result; None if all
            of its indices are needed for any element.
        whole: axes of the result along which all elements are computed, or none.
    """

    operands: tuple[tuple[Along | None, ...], ...]
    whole: tuple[int, ...] = ()


def reads(op: Operation, operands: Sequence[PTensorType], result: PTensorType) -> Reads:
    """What an operation on operands of these types reads; of most operations it is not known."""
    if is_elementwise(op):
        return Reads(tuple([_repeated(x.shape, result.shape) for x in operands]))
    return _reads(op, operands, result)


def _repeated(shape: Shape, result: Shape) -> tuple[Along | None, ...]:
    more = len(result) - len(shape)
    return tuple([
        Along(axis + more) if n == result[axis + more] else None for axis, n in enumerate(shape)
    ])


def _beside(op: Operation, xs: Sequence[PTensorType], axes: Sequence[int]) -> Reads:
    """Along some axes all elements are needed for any, along others those at the same place."""
    at = {axis % xs[0].rank for axis in axes}
    own = tuple([None if k in at else Along(k) for k in range(xs[0].rank)])
    return Reads((own,) * len(xs), tuple(at))


def _moved(shape: Shape, axes: Mapping[int, int]) -> Reads:
    """Axes of an operand that have other numbers in the result, and those that it has not."""
    return Reads((tuple([
        Along(axes[axis]) if axis in axes else None for axis in range(len(shape))
    ]),))


@singledispatch
def _reads(op: Operation, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return Reads(tuple([(None,) * x.rank for x in xs]), tuple(range(result.rank)))


@_reads.register
def _(op: ExtractSlice, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return Reads((tuple([Along(k, step, first) for k, (first, step, _) in enumerate(op.slice)]),))


@_reads.register
def _(op: InsertSlice, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    steps = [step for _, step, _ in op.slice]
    part = tuple([
        Along(k, 1, -first) if step == 1 else None for k, (first, step, _) in enumerate(op.slice)
    ])
    own = tuple([Along(k) for k in range(result.rank)])
    return Reads((own, part), tuple([k for k, step in enumerate(steps) if step != 1]))


@_reads.register
def _(op: Broadcast, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return Reads((_repeated(xs[0].shape, result.shape),))


@_reads.register
def _(op: ExpandDims, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    kept = [axis for axis in range(result.rank) if axis not in op.axis]
    return _moved(xs[0].shape, dict(enumerate(kept)))


@_reads.register
def _(op: Squeeze, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    kept = [axis for axis in range(xs[0].rank) if axis not in op.axis]
    return _moved(xs[0].shape, {axis: k for k, axis in enumerate(kept)})


@_reads.register
def _(op: PermuteDims, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return _moved(xs[0].shape, {axis: k for k, axis in enumerate(op.axis)})


@_reads.register
def _(op: MatrixTranspose, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    outer = range(result.rank - 2)
    return _moved(xs[0].shape, {
        **{k: k for k in outer}, result.rank - 2: result.rank - 1, result.rank - 1: result.rank - 2
    })


@_reads.register
def _(op: Flip, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return Reads((tuple([
        Along(k, -1, n - 1) if k in op.axis else Along(k) for k, n in enumerate(result.shape)
    ]),))


@_reads.register
def _(op: Reshape, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    if op.shape == xs[0].shape:
        return _beside(op, xs, ())
    return Reads(((None,) * xs[0].rank,), tuple(range(result.rank)))


@_reads.register
def _(op: Roll, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return _beside(op, xs, op.axis)


@_reads.register
def _(op: Cumulative, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return _beside(op, xs, (op.axis,))


@_reads.register
def _(op: Diff, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    return _beside(op, xs, (op.axis,))


@_reads.register
def _(op: Combine, xs: Sequence[PTensorType], result: PTensorType) -> Reads:
    if op.kind == "concat":
        return _beside(op, xs, (op.axis,))
    axis = op.axis % result.rank
    own = tuple([Along(k + (k >= axis)) for k in range(xs[0].rank)])
    return Reads((own,) * len(xs), (axis,))


@singledispatch
def within(op: Operation, box: Box, given: Sequence[Box]) -> Operation:
    """The operation that computes a box of the result of boxes of the operands.

    Args:
        op: the operation.
        box: of its result.
        given: of its operands: what elements in the box need.
    """
    return op


@within.register
def _(op: ExtractSlice, box: Box, given: Sequence[Box]) -> Operation:
    return ExtractSlice(tuple([
        (first + step * low - start, step, end - low)
        for (first, step, _), (low, end), (start, _) in zip(op.slice, box, given[0], strict=True)
    ]))


@within.register
def _(op: InsertSlice, box: Box, given: Sequence[Box]) -> Operation:
    return InsertSlice(tuple([
        (max(first - low, 0) if step == 1 else first, step, end - start)
        for (first, step, _), (low, _), (start, end) in zip(op.slice, box, given[1], strict=True)
    ]))


@within.register
def _(op: Broadcast, box: Box, given: Sequence[Box]) -> Operation:
    return Broadcast(tuple([end - low for low, end in box]))


@within.register
def _(op: Reshape, box: Box, given: Sequence[Box]) -> Operation:
    return replace(op, shape=tuple([end - low for low, end in box])) if given[0] == box else op
