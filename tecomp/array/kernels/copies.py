"""Copies of elements to other places: one kernel for all arrays that lie alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.waiting import compiling
from tecomp.array.kernels.kernel import MANY, for_any_sizes, known_of
from tecomp.array.kernels.loops import Operand, argument, memory, merged, operand_of, strides_of
from tecomp.array.kernels.often import calls_that_pay
from tecomp.array.kernels.turned import memory_order
from tecomp.array.recent import Recent
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import PTensorType, Shape

_copies: Recent[Any, _Copy] = Recent(1024)


@dataclass(slots=True)
class _Copy:
    """How elements are copied: with the axes of both in an order, along memory.

    Attributes:
        kernel: that copies them.
        source: how they are passed.
        target: how their new places are.
        order: of the axes.
        extents: of the kernel's loops.
        build: makes a kernel for some extents.
        most_calls: after which they are built in; 0 if they never are.
        calls: how often it was called.
    """

    kernel: Any
    source: Operand
    target: Operand
    order: tuple[int, ...]
    extents: Shape
    build: Callable[[Sequence[Any]], Any]
    most_calls: int
    calls: int = 0

    def count(self) -> None:
        """Note a call, and build the sizes in when so many were made that it pays."""
        self.calls += 1
        if self.calls == self.most_calls:
            with compiling:
                self.kernel = self.build(self.extents)
                counters.compiled += 1


def copy(source: Buffer, target: Buffer) -> None:
    """Write elements to others' places, of an array of the same type and shape."""
    if not target.size:
        return
    key = source.dtype, source.shape, source.strides, target.strides
    found = _copies.get(key, None)
    if found is None:
        found = _copies.keep(key, _copy_of(source, target))
    counters.called += 1
    found.count()
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
    kernel = for_any_sizes(key, build, known_of(loops, source.size))
    is_worth_it = len(loops) > 1 and source.size >= MANY
    most_calls = calls_that_pay(1, source.size) if is_worth_it else 0
    return _Copy(kernel, read, written, order, loops, build, most_calls)


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
