"""What an operation computes, as tensors of `te`: one function for each kind of operation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Value


@singledispatch
def define(
    op: Operation, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    """The result of an operation as tensors of `te`.

    Args:
        op: the operation.
        operands: its operands.
        types: their types.
        result: the type of the result.
    """
    raise NotImplementedError(f"{op.name} has no definition in te")
