"""Where the greatest and the least elements are."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.operations.searching import FindIndex
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Value
from tecomp.schedules import argreduce
from tecomp.topi import reshape


@define.register
def _(
    op: FindIndex, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (given,) = operands, types
    assert isinstance(x, te.Tensor)
    axis = 0
    if op.axis is not None:
        axis = axis_of(op.axis, given.rank, op.kind)
    elif given.rank != 1:
        x = reshape(x, (given.size,))
    found: te.Tensor = argreduce.define(x, axis, op.kind, out_dtype=result.dtype, name=op.kind)
    if found.shape == result.shape:
        return found
    return reshape(found, result.shape)
