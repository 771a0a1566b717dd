"""Elementwise operations: an element of the result is made of those at its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.elements import element
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Element, Value, element_at, shape_of, value_of


@define.register(Elementwise)
@define.register(Cast)
@define.register(Where)
def _(
    op: Operation, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    dtypes = [t.dtype for t in types]

    def at(*index: te.Expr) -> Element:
        return element(op, [_broadcast(v, index) for v in operands], dtypes)

    return value_of(result.shape, at, op.where)


def _broadcast(value: Value, index: Sequence[te.Expr]) -> Element:
    shape = shape_of(value)
    own = index[len(index) - len(shape) :]
    at: list[Any] = [0 if extent == 1 else i for extent, i in zip(shape, own, strict=True)]
    return element_at(value, at)
