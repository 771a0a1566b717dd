"""Where the greatest and the least elements are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tecomp import te
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.operations.searching import FindIndex
from tecomp.ptensor.types import PTensorType, Shape
from tecomp.ptensor.values import Value
from tecomp.schedules import argreduce
from tecomp.topi import reshape

_NARROW = 2
"""Bytes of an element up to which finding a value again takes less than carrying its index along:
an index has four bytes, and a vector as many fewer lanes."""


@define.register
def _(
    op: FindIndex, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (given,) = operands, types
    assert isinstance(x, te.Tensor)
    kind: Literal["argmax", "argmin"] = "argmax" if op.kind == "argmax" else "argmin"
    axis, shape = 0, given.shape
    if op.axis is not None:
        axis = axis_of(op.axis, given.rank, op.kind)
    elif given.rank != 1:
        shape = (given.size,)
        x = reshape(x, shape)
    if x.dtype.bytes <= _NARROW:
        found: te.Tensor = argreduce.define(x, axis, kind, out_dtype=result.dtype, name=kind)
    else:
        found = _carried(x, shape, axis, kind)
    return te.compute(
        result.shape, lambda *i: te.cast(found(*_own(i, op.keepdims, axis, found)), result.dtype),
        name=kind,
    )


def _carried(
    x: te.Tensor, shape: Shape, axis: int, kind: Literal["argmax", "argmin"]
) -> te.Tensor:
    """Values and their indices, reduced together; narrow indices, where they are enough."""
    k = te.reduce_axis((0, shape[axis]), name="k")
    extent = shape[axis]
    is_narrow = isinstance(extent, int) and extent < 2**31 and x.dtype.bytes <= 4
    index = te.cast(k, "int32" if is_narrow else "int64")
    place, _ = te.compute(
        (*shape[:axis], *shape[axis + 1 :]),
        lambda *i: argreduce.first_of(x.dtype, kind)(
            (index, x(*i[:axis], k, *i[axis:])), axis=k),
        name=f"{kind}_found",
    )
    found: te.Tensor = place
    return found


def _own(
    index: Sequence[te.Expr], keepdims: bool, axis: int, found: te.Tensor
) -> Sequence[te.Expr]:
    """The axes of the result that are no axes of extent 1 in the place of others."""
    if not keepdims:
        return index
    return [*index[:axis], *index[axis + 1 :]] if found.shape else []
