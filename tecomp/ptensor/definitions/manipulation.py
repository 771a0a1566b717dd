"""The same elements at other places: views and copies of `topi`, of both parts of complex ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tecomp import te, topi
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.elements import converted
from tecomp.ptensor.operations.manipulation import (
    Broadcast,
    Combine,
    ExpandDims,
    Flip,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    Squeeze,
    Tile,
)
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import (
    ComplexTensor,
    Element,
    Value,
    either,
    element_at,
    mapped,
    value_of,
)

Types = Sequence[PTensorType]


@define.register
def _(op: Broadcast, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    shape = types[0].shape

    def at(*index: te.Expr) -> Element:
        own = index[len(index) - len(shape) :]
        place: list[Any] = [0 if n == 1 else i for n, i in zip(shape, own, strict=True)]
        return element_at(operands[0], place)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Combine, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    same = [
        _cast(value, type, result.dtype)
        for value, type in zip(operands, types, strict=True)
    ]
    join = topi.concatenate if op.kind == "concat" else topi.stack
    parts = [value for value in same if isinstance(value, ComplexTensor)]
    if parts:
        real, imaginary = [value.re for value in parts], [value.im for value in parts]
        return ComplexTensor(join(real, op.axis), join(imaginary, op.axis))
    whole = [value for value in same if not isinstance(value, ComplexTensor)]
    joined: te.Tensor = join(whole, op.axis)
    return joined


def _cast(value: Value, type: PTensorType, dtype: str) -> Value:
    if type.dtype == dtype:
        return value
    return value_of(
        type.shape, lambda *i: converted(element_at(value, i), type.dtype, dtype), "cast"
    )


@define.register
def _(op: ExpandDims, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: reduce(topi.expand_dims, op.axis, x))


@define.register
def _(op: Flip, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.flip(x, op.axis))


@define.register
def _(op: PermuteDims, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.transpose(x, op.axis))


@define.register
def _(op: Reshape, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.reshape(x, op.shape))


@define.register
def _(op: Roll, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    shifts = [0] * result.rank
    for shift, axis in zip(op.shift, op.axis, strict=True):
        shifts[axis] += shift
    # Below these come the elements of the other end.
    ends = [by % max(extent, 1) for by, extent in zip(shifts, result.shape, strict=True)]

    def at(*index: te.Expr) -> Element:
        *rows, last = [
            (i, extent - end, end) for i, extent, end in zip(index, result.shape, ends, strict=True)
        ]
        place = [(i + ahead) % (ahead + end) if end else i for i, ahead, end in rows]
        i, ahead, end = last
        own = element_at(operands[0], [*place, i - end if end else i])
        # Along rows without remainders, so that elements are read side by side.
        return either(i < end, element_at(operands[0], [*place, i + ahead]), own) if end else own

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Squeeze, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.squeeze(x, op.axis))


@define.register
def _(op: Repeat, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.repeat(x, op.repeats, op.axis))


@define.register
def _(op: Tile, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.tile(x, op.repetitions))
