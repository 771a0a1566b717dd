"""Arrays whose elements are not in order, as programs read them: in the order in which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.node import Buffer
from tecomp.ptensor.types import Shape


@dataclass(frozen=True, slots=True)
class Turned:
    """An array without places between its elements, whose axes are in another order in memory.

    Attributes:
        order: its axes, that of the largest steps first.
    """

    order: tuple[int, ...]

    def extents(self, shape: Shape) -> Shape:
        """The extents of the memory."""
        return tuple([shape[axis] for axis in self.order])

    def place(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """Where in the memory an element is."""
        return tuple([index[axis] for axis in self.order])

    def memory(self, data: Buffer) -> Buffer:
        """The memory, in its order."""
        return data.transpose(self.order)


@dataclass(frozen=True, slots=True)
class Lies:
    """An array with places between its elements: a row of memory, and a sum.

    Attributes:
        span: how many places there are from the first to the last in memory.
        start: the place of the element whose indices are 0.
        strides: from one element to the next along each axis, in places.
    """

    span: int
    start: int
    strides: tuple[int, ...]

    def extents(self, shape: Shape) -> Shape:
        """The extents of the memory."""
        return (self.span,)

    def place(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """Where in the memory an element is."""
        result: Any = self.start
        for i, stride in zip(index, self.strides, strict=True):
            if stride:
                result = result + i * stride
        return (result,)

    def memory(self, data: Buffer) -> Buffer:
        """The memory from the first element to the last, as a row."""
        first = data[tuple([
            slice(n - 1, None) if stride < 0 else slice(0, 1)
            for n, stride in zip(data.shape, self.strides, strict=True)
        ])]
        return as_strided(first, (self.span,), (data.itemsize,), subok=False, writeable=False)


def lies(data: Buffer) -> Lies | Turned | None:
    """Where the elements of an array are; None if they follow each other in order.

    >>> import numpy as np
    >>> lies(np.arange(6)[::-2])
    Lies(span=5, start=4, strides=(-2,))
    >>> lies(np.zeros((2, 3, 4)).transpose(1, 2, 0))
    Turned(order=(2, 0, 1))
    """
    if data.flags.c_contiguous:
        return None
    order = tuple(sorted(range(data.ndim), key=lambda axis: -data.strides[axis]))
    if data.transpose(order).flags.c_contiguous:
        return Turned(order)
    strides = [
        0 if extent == 1 else stride // data.itemsize
        for extent, stride in zip(data.shape, data.strides, strict=True)
    ]
    ends = [(n - 1) * stride for n, stride in zip(data.shape, strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    span = below + sum(end for end in ends if end > 0) + 1
    return Lies(span, below, tuple(strides))
