"""View operations: NumPy views of computed elements, recorded operations on pending elements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer, Node, materialized_node, record, tracing, type_of
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.linear_algebra import Diagonal, MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    ExpandDims,
    ExtractSlice,
    Flip,
    PermuteDims,
    Reshape,
    Squeeze,
)
from tecomp.ptensor.types import PTensorType

Chain = tuple[PTensorOp, ...]
"""View operations, in the order of application."""


def apply_view(op: PTensorOp, node: Node) -> Node:
    """Apply a view operation: return a view of the memory if possible, otherwise record it.

    Raises:
        ArrayValueError: If the shapes do not match.
    """
    data = node.data
    if data is None or tracing.depth:  # a recorded function reads its memory at replay
        return record(op, node)
    ptype = type_of(op, node.type)
    view = view_of(op, data)
    return materialized_node(view, ptype) if view is not None else record(op, node)


def is_view(op: PTensorOp) -> bool:
    """Return whether an operation is a view operation."""
    return view_of.dispatch(type(op)) is not view_of.dispatch(object)


def apply_view_chain(chain: Iterable[PTensorOp], data: Buffer | None) -> Buffer | None:
    """Apply a chain of view operations; return None if the result is not a view of the memory."""
    for op in chain:
        if data is None:
            return None
        data = view_of(op, data)
    return data


def type_along(chain: Iterable[PTensorOp], ptype: PTensorType) -> PTensorType:
    """Return the result type of a chain of view operations."""
    for op in chain:
        ptype = type_of(op, ptype)
    return ptype


@singledispatch
def view_of(op: PTensorOp, data: Buffer) -> Buffer | None:
    """Return the result of an operation as a view of memory; None if elements must be copied."""
    return None


@view_of.register
def _(op: BroadcastOp, data: Buffer) -> Buffer | None:
    return np.broadcast_to(data, op.shape)


@view_of.register
def _(op: Diagonal, data: Buffer) -> Buffer | None:
    return data.diagonal(op.offset, -2, -1)


@view_of.register
def _(op: ExpandDims, data: Buffer) -> Buffer | None:
    return np.expand_dims(data, op.axis)


@view_of.register
def _(op: ExtractSlice, data: Buffer) -> Buffer | None:
    # A descending slice that includes element 0 has None as its end.
    key = tuple([
        slice(start, None if start + count * step < 0 else start + count * step, step)
        for start, step, count in op.slice
    ])
    return data[(*key, ...)]


@view_of.register
def _(op: Flip, data: Buffer) -> Buffer | None:
    key: list[Any] = [slice(None, None, -1 if k in op.axis else 1) for k in range(data.ndim)]
    return data[(*key, ...)]


@view_of.register
def _(op: MatrixTranspose, data: Buffer) -> Buffer | None:
    return data.swapaxes(-1, -2)


@view_of.register
def _(op: PermuteDims, data: Buffer) -> Buffer | None:
    return data.transpose(op.axis)


@view_of.register
def _(op: Reshape, data: Buffer) -> Buffer | None:
    if op.copy:
        return None
    try:
        return np.reshape(data, op.shape, copy=False)
    except ValueError:
        return None


@view_of.register
def _(op: Squeeze, data: Buffer) -> Buffer | None:
    return data.squeeze(op.axis)
