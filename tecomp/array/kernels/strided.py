"""Arrays with places between their elements, as programs read them: rows of memory, and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.node import Buffer


@dataclass(frozen=True, slots=True)
class Lies:
    """Where the elements of an array are.

    Attributes:
        span: how many places there are from the first to the last in memory.
        start: the place of the element whose indices are 0.
        strides: from one element to the next along each axis, in places.
    """

    span: int
    start: int
    strides: tuple[int, ...]

    def place(self, index: Sequence[Any]) -> Any:
        """The place of an element."""
        result: Any = self.start
        for i, stride in zip(index, self.strides, strict=True):
            if stride:
                result = result + i * stride
        return result


def lies(data: Buffer) -> Lies | None:
    """Where the elements of an array are; None if they follow each other in order.

    >>> import numpy as np
    >>> lies(np.arange(6)[::-2])
    Lies(span=5, start=4, strides=(-2,))
    """
    if data.flags.c_contiguous:
        return None
    strides = [
        0 if extent == 1 else stride // data.itemsize
        for extent, stride in zip(data.shape, data.strides, strict=True)
    ]
    ends = [(n - 1) * stride for n, stride in zip(data.shape, strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    span = below + sum(end for end in ends if end > 0) + 1
    return Lies(span, below, tuple(strides))


def row_of(data: Buffer, at: Lies) -> Buffer:
    """The memory from the first element to the last, as a row."""
    first = data[tuple([
        slice(n - 1, None) if stride < 0 else slice(0, 1)
        for n, stride in zip(data.shape, at.strides, strict=True)
    ])]
    return as_strided(first, (at.span,), (data.itemsize,), subok=False, writeable=False)
