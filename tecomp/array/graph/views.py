"""Operations that only move elements: views where these are in memory, recorded where not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer, Node, leaf, record, tracing, type_of
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.linear_algebra import Diagonal, MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    Broadcast,
    ExpandDims,
    ExtractSlice,
    Flip,
    PermuteDims,
    Reshape,
    Squeeze,
)
from tecomp.ptensor.types import PTensorType

Chain = tuple[Operation, ...]
"""Operations that move elements, the first of them first."""


def moved(op: Operation, node: Node) -> Node:
    """The result of an operation on one array: a view of its memory if there can be one.

    Raises:
        ArrayValueError: shapes do not fit.
    """
    data = node.data
    if data is None or tracing.depth:  # a recorded function reads memory when it runs
        return record(op, node)
    type = type_of(op, node.type)
    view = view_of(op, data)
    return leaf(view, type) if view is not None else record(op, node)


def is_view(op: Operation) -> bool:
    """Whether an operation only says where elements are."""
    return view_of.dispatch(type(op)) is not view_of.dispatch(object)


def along(chain: Iterable[Operation], data: Buffer | None) -> Buffer | None:
    """The elements of what a chain of operations gives; None if they do not lie there."""
    for op in chain:
        if data is None:
            return None
        data = view_of(op, data)
    return data


def type_along(chain: Iterable[Operation], type: PTensorType) -> PTensorType:
    """The type of what a chain of operations gives."""
    for op in chain:
        type = type_of(op, type)
    return type


@singledispatch
def view_of(op: Operation, data: Buffer) -> Buffer | None:
    """The elements of an operation's result, where they lie; None if they have to be moved."""
    return None


@view_of.register
def _(op: Broadcast, data: Buffer) -> Buffer | None:
    return np.broadcast_to(data, op.shape)


@view_of.register
def _(op: Diagonal, data: Buffer) -> Buffer | None:
    return data.diagonal(op.offset, -2, -1)


@view_of.register
def _(op: ExpandDims, data: Buffer) -> Buffer | None:
    return np.expand_dims(data, op.axis)


@view_of.register
def _(op: ExtractSlice, data: Buffer) -> Buffer | None:
    # The end of a slice that runs down to the first element is none.
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
