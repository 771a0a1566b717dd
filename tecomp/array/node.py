"""A node of the graph that arrays record: an operation on nodes, or the elements it came to."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType

Buffer = np.ndarray[Any, Any]

MOST = 128
"""Operations that are recorded before they are computed."""

_types: dict[Any, PTensorType] = {}


class Node:
    """A value: an operation on other values until somebody asks, elements from then on.

    Attributes:
        type: its shape, element type and place.
        op: what computes it; None once it is computed.
        operands: what that is computed from.
        data: the elements, in memory; None until they are computed.
        pending: how many operations are to be computed for it, at most.
    """

    __slots__ = ("data", "op", "operands", "pending", "type")

    def __init__(
        self,
        type: PTensorType,
        op: Operation | None,
        operands: tuple[Node, ...],
        data: Buffer | None,
        pending: int,
    ) -> None:
        self.type = type
        self.op = op
        self.operands = operands
        self.data = data
        self.pending = pending

    def computed(self, data: Buffer) -> None:
        """Keep the elements, and let go of what they were computed from."""
        self.data = data
        self.op = None
        self.operands = ()
        self.pending = 0


def leaf(data: Buffer, type: PTensorType) -> Node:
    """A value whose elements are there."""
    return Node(type, None, (), data, 0)


def record(op: Operation, *operands: Node) -> Node:
    """The result of an operation, not computed yet.

    Raises:
        ArrayTypeError: the operation does not take such elements.
        ArrayValueError: shapes do not fit.
        DeviceMismatchError: operands live on different devices.
        TeamMismatchError: operands belong to different teams.
    """
    key = (op, *[operand.type for operand in operands])
    type = _types.get(key)
    if type is None:
        type = _inferred(key)
    pending = 1
    for operand in operands:
        pending += operand.pending
    return Node(type, op, operands, None, pending)


def _inferred(key: tuple[Any, ...]) -> PTensorType:
    op, *types = key
    if len(_types) > 20_000:
        _types.clear()
    found: PTensorType = op.infer(*types)
    _types[key] = found
    return found
