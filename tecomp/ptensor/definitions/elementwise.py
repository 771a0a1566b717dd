"""Elementwise operations: an element of the result is made of those at its place."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.elements import element
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Element, Value, broadcast_at, value_of


@define.register(Elementwise)
@define.register(Cast)
@define.register(Where)
def _(
    op: Operation, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    dtypes = [t.dtype for t in types]

    def at(*index: te.Expr) -> Element:
        return element(op, [broadcast_at(v, index) for v in operands], dtypes)

    return value_of(result.shape, at, op.where)
