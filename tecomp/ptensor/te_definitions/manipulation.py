"""Manipulation and indexing in `te`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tecomp import te, topi
from tecomp.ptensor.formulas.tables import convert_element
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    Squeeze,
    Take,
    TakeAlongAxis,
    TileOp,
)
from tecomp.ptensor.te_definitions.creation import define
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import (
    Complex,
    ComplexTensor,
    Element,
    Value,
    element_at,
    map_parts,
    select_value,
    value_of,
)

Types = Sequence[PTensorType]


@define.register
def _(op: ExtractSlice, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    def at(*index: te.Expr) -> Element:
        point = [start + i * step for i, (start, step, _) in zip(index, op.slice, strict=True)]
        return element_at(operands[0], point)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: InsertSlice, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    full, part = operands

    def at(*index: te.Expr) -> Element:
        checks, point = _place_in(index, op, result.shape)
        new = convert_element(element_at(part, point), types[1].dtype, result.dtype)
        # Elements outside the slice have no position in the part, which must not be read there.
        return select_value(te.all(*checks), new, element_at(full, index)) if checks else new

    return value_of(result.shape, at, op.name)


def _place_in(
    index: Sequence[te.Expr], op: InsertSlice, shape: Sequence[int]
) -> tuple[list[te.Expr], list[Any]]:
    """Return whether an index is in a slice, and its position in the slice."""
    checks: list[te.Expr] = []
    point: list[Any] = []
    for i, extent, (start, step, count) in zip(index, shape, op.slice, strict=True):
        if step < 0:  # the same elements in ascending order
            low, stride = start + (count - 1) * step, -step
        else:
            low, stride = start, step
        distance = i - low
        if low > 0:
            checks.append(distance >= 0)
        if low + (count - 1) * stride < extent - 1:
            checks.append(distance <= (count - 1) * stride)
        if stride > 1:
            checks.append(distance % stride == 0)
        offset = distance // stride if stride > 1 else distance
        point.append(count - 1 - offset if step < 0 else offset)
    return checks, point


@define.register
def _(op: Take, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    x, *indices = operands
    shapes = [ptype.shape for ptype in types[1:]]
    count = max(map(len, shapes))

    def at(*index: te.Expr) -> Element:
        inner = index[op.place : op.place + count]
        others = [*index[: op.place], *index[op.place + count :]]
        picked = [_index_value(i, shape, inner) for i, shape in zip(indices, shapes, strict=True)]
        point = [
            picked[op.axis.index(axis)] if axis in op.axis else others.pop(0)
            for axis in range(types[0].rank)
        ]
        return element_at(x, point)

    return value_of(result.shape, at, op.name)


def _index_value(indices: Value, shape: Sequence[int], index: Sequence[te.Expr]) -> te.Expr:
    suffix = index[len(index) - len(shape) :]
    point: list[Any] = [0 if extent == 1 else i for extent, i in zip(shape, suffix, strict=True)]
    value = element_at(indices, point)
    assert not isinstance(value, Complex)
    return value


@define.register
def _(op: TakeAlongAxis, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    x, indices = operands
    axis = op.axis

    def at(*index: te.Expr) -> Element:
        picked = _index_value(indices, types[1].shape, index)
        point: list[Any] = [
            0 if extent == 1 else i for extent, i in zip(types[0].shape, index, strict=True)
        ]
        point[axis] = picked
        return element_at(x, point)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: BroadcastOp, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    shape = types[0].shape

    def at(*index: te.Expr) -> Element:
        element = index[len(index) - len(shape) :]
        point: list[Any] = [0 if n == 1 else i for n, i in zip(shape, element, strict=True)]
        return element_at(operands[0], point)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Combine, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    converted = [
        _cast(value, ptype, result.dtype)
        for value, ptype in zip(operands, types, strict=True)
    ]
    join = topi.concatenate if op.kind == "concat" else topi.stack
    parts = [value for value in converted if isinstance(value, ComplexTensor)]
    if parts:
        real, imaginary = [value.re for value in parts], [value.im for value in parts]
        return ComplexTensor(join(real, op.axis), join(imaginary, op.axis))
    full = [value for value in converted if not isinstance(value, ComplexTensor)]
    joined: te.Tensor = join(full, op.axis)
    return joined


def _cast(value: Value, ptype: PTensorType, dtype: str) -> Value:
    if ptype.dtype == dtype:
        return value
    return value_of(
        ptype.shape, lambda *i: convert_element(element_at(value, i), ptype.dtype, dtype), "cast"
    )


@define.register
def _(op: ExpandDims, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: reduce(topi.expand_dims, op.axis, x))


@define.register
def _(op: Flip, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.flip(x, op.axis))


@define.register
def _(op: PermuteDims, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.transpose(x, op.axis))


@define.register
def _(op: Reshape, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.reshape(x, op.shape))


@define.register
def _(op: Roll, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    shifts = [0] * result.rank
    for shift, axis in zip(op.shift, op.axis, strict=True):
        shifts[axis] += shift
    # Below these indices are the elements that wrap around.
    ends = [amount % max(extent, 1) for amount, extent in zip(shifts, result.shape, strict=True)]

    def at(*index: te.Expr) -> Element:
        *rows, last = [
            (i, extent - end, end) for i, extent, end in zip(index, result.shape, ends, strict=True)
        ]
        point = [(i + split) % (split + end) if end else i for i, split, end in rows]
        i, split, end = last
        element = element_at(operands[0], [*point, i - end if end else i])
        # Avoid the remainder along the last axis, so that loads are contiguous.
        if not end:
            return element
        return select_value(i < end, element_at(operands[0], [*point, i + split]), element)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Squeeze, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.squeeze(x, op.axis))


@define.register
def _(op: Repeat, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.repeat(x, op.repeats, op.axis))


@define.register
def _(op: TileOp, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.tile(x, op.repetitions))
