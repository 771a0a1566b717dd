"""Elements by their index: indices count on along an axis, or other operands say them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.elements import converted
from tecomp.ptensor.operations.indexing import ExtractSlice, InsertSlice, Take, TakeAlongAxis
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Complex, Element, Value, either, element_at, value_of

Types = Sequence[PTensorType]


@define.register
def _(op: ExtractSlice, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    def at(*index: te.Expr) -> Element:
        place = [start + i * step for i, (start, step, _) in zip(index, op.slice, strict=True)]
        return element_at(operands[0], place)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: InsertSlice, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    whole, part = operands

    def at(*index: te.Expr) -> Element:
        inside, place = _place_in(index, op, result.shape)
        new = converted(element_at(part, place), types[1].dtype, result.dtype)
        # Elements outside have no place in the part, so that it must not be read there.
        return either(te.all(*inside), new, element_at(whole, index)) if inside else new

    return value_of(result.shape, at, op.name)


def _place_in(
    index: Sequence[te.Expr], op: InsertSlice, shape: Sequence[int]
) -> tuple[list[te.Expr], list[Any]]:
    """Whether an index is in a slice, and at which place of it."""
    inside: list[te.Expr] = []
    place: list[Any] = []
    for i, extent, (start, step, count) in zip(index, shape, op.slice, strict=True):
        if step < 0:  # the same elements from the other end
            low, far = start + (count - 1) * step, -step
        else:
            low, far = start, step
        distance = i - low
        if low > 0:
            inside.append(distance >= 0)
        if low + (count - 1) * far < extent - 1:
            inside.append(distance <= (count - 1) * far)
        if far > 1:
            inside.append(distance % far == 0)
        at = distance // far if far > 1 else distance
        place.append(count - 1 - at if step < 0 else at)
    return inside, place


@define.register
def _(op: Take, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    x, *indices = operands
    shapes = [type.shape for type in types[1:]]
    count = max(map(len, shapes))

    def at(*index: te.Expr) -> Element:
        middle = index[op.place : op.place + count]
        rest = [*index[: op.place], *index[op.place + count :]]
        said = [_said(i, shape, middle) for i, shape in zip(indices, shapes, strict=True)]
        place = [
            said[op.axis.index(axis)] if axis in op.axis else rest.pop(0)
            for axis in range(types[0].rank)
        ]
        return element_at(x, place)

    return value_of(result.shape, at, op.name)


def _said(indices: Value, shape: Sequence[int], index: Sequence[te.Expr]) -> te.Expr:
    own = index[len(index) - len(shape) :]
    at: list[Any] = [0 if extent == 1 else i for extent, i in zip(shape, own, strict=True)]
    said = element_at(indices, at)
    assert not isinstance(said, Complex)
    return said


@define.register
def _(op: TakeAlongAxis, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    x, indices = operands
    axis = op.axis

    def at(*index: te.Expr) -> Element:
        said = _said(indices, types[1].shape, index)
        place: list[Any] = [
            0 if extent == 1 else i for extent, i in zip(types[0].shape, index, strict=True)
        ]
        place[axis] = said
        return element_at(x, place)

    return value_of(result.shape, at, op.name)
