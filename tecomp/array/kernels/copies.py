"""Copies of elements to other places: one kernel for all arrays that lie alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.kernels.kernel import for_any_sizes, known_of
from tecomp.array.kernels.loops import Operand, argument, memory, merged, operand_of, strides_of
from tecomp.array.kernels.turned import memory_order
from tecomp.array.recent import Recent
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import PTensorType, Shape

_copies: Recent[Any, _Copy] = Recent(1024)


@dataclass(frozen=True, slots=True)
class _Copy:
    """How elements are copied: with the axes of both in an order, along memory."""

    kernel: Any
    source: Operand
    target: Operand
    order: tuple[int, ...]


def copy(source: Buffer, target: Buffer) -> None:
    """Write elements to others' places, of an array of the same type and shape."""
    if not target.size:
        return
    key = source.dtype, source.shape, source.strides, target.strides
    found = _copies.get(key, None)
    if found is None:
        found = _copies.keep(key, _copy_of(source, target))
    counters.called += 1
    source, target = source.transpose(found.order), target.transpose(found.order)
    found.kernel(found.source.view(source), found.target.view(target))


def _copy_of(source: Buffer, target: Buffer) -> _Copy:
    order = order_of((source, target), source.shape)
    source, target = source.transpose(order), target.transpose(order)
    shape: Shape = source.shape
    nodes = _leaves((source, target))
    strides = strides_of(nodes, shape)
    assert strides is not None
    groups = merged(shape, strides, [None] * len(shape))
    loops = tuple([prod(shape[axis] for axis in group) for group in groups])
    read, written = [
        operand_of(node, groups, loops, own) for node, own in zip(nodes, strides, strict=True)
    ]
    dtype = source.dtype.name
    key = "copy", dtype, read.lies, written.lies, len(loops)
    build = partial(_built, dtype, read, written)
    return _Copy(for_any_sizes(key, build, known_of(loops, source.size)), read, written, order)


def order_of(arrays: Sequence[Buffer], shape: Shape) -> tuple[int, ...]:
    """The order of axes in which arrays of one rank lie in memory, if it is one.

    >>> import numpy as np
    >>> x, y = np.zeros((3, 4)), np.zeros((5, 4))
    >>> order_of([x.T, y.T], (4, 8)), order_of([x, y], (8, 4))
    ((1, 0), (0, 1))
    """
    return memory_order(strides_of(_leaves(arrays), shape) or [], shape)


def _leaves(arrays: Sequence[Buffer]) -> list[Node]:
    return [leaf(data, PTensorType(data.shape, data.dtype.name)) for data in arrays]


def _built(dtype: str, read: Operand, written: Operand, sizes: Sequence[Any]) -> Any:
    x = argument([sizes[k] for k in read.axes], dtype, "x")
    shape = [*sizes, 2] if dtype in PART else sizes
    part = [len(sizes)] if dtype in PART else []
    y = te.compute(shape, lambda *i: x(*[i[k] for k in (*read.axes, *part)]), name="y")
    binds = {t: memory(t, how) for t, how in ((x, read), (y, written)) if how.strided}
    return tecomp.build([y], [x, y], name="copy", binds=binds)
