"""The memory that the interpreter runs on: bytes, and the buffers that are views of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.errors import InternalError
from tecomp.ir.language.dtype import DType

Bytes: TypeAlias = "NDArray[np.uint8]"

# All ones is a NaN in every floating-point type; an integer gets a value that is no likely result.
_UNWRITTEN_FLOAT, _UNWRITTEN = 0xFF, 0xA5


@dataclass(frozen=True, slots=True)
class View:
    """A buffer while it exists.

    Attributes:
        name: what it is called in messages.
        array: its elements; a vector type has its lanes as an extra last axis.
        low: index of the first element along each axis, 0 but for a `BufferRealize`.
        high: one more than the last index along each axis.
    """

    name: str
    array: NDArray[Any]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def place(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Where the element at `indices` is in the array.

        Raises:
            InternalError: outside of the buffer; a negative index is, too.
        """
        moved = False
        for index, low, high in zip(indices, self.low, self.high, strict=True):
            if not low <= index < high:
                self.refuse(indices)
            moved |= low != 0
        if not moved:
            return tuple(indices)
        return tuple([index - low for index, low in zip(indices, self.low, strict=True)])

    def lanes(
        self, outer: Sequence[int], across: NDArray[Any], part: NDArray[Any] | None = None
    ) -> tuple[Any, ...]:
        """Where the elements at `outer` and each of `across`, of which there are some, are.

        Args:
            outer: the indices that all lanes share.
            across: the last index of each lane.
            part: which lane of the element each lane takes; None for whole elements.

        Raises:
            InternalError: one is outside of the buffer.
        """
        low, high = self.low[-1], self.high[-1]
        shared = self.place([*outer, int(across[0])])[:-1]
        outside = (across < low) | (across >= high)
        if outside.any():
            self.refuse([*outer, int(across[outside.argmax()])])
        at = (*shared, across - low)
        return at if part is None or self.array.ndim == len(at) else (*at, part)

    def refuse(self, indices: Sequence[int]) -> None:
        """Raise the error that says that there is no such element.

        Raises:
            InternalError: always.
        """
        at = ", ".join(map(str, indices))
        shape = tuple(high - low for low, high in zip(self.low, self.high, strict=True))
        start = f" starting at {self.low}" if any(self.low) else ""
        raise InternalError(f"{self.name}[{at}] is out of bounds: shape {shape}{start}")


def unwritten(dtype: DType, elements: int) -> Bytes:
    """Memory for so many elements, filled with something that shows when it is read."""
    fill = _UNWRITTEN_FLOAT if dtype.is_float else _UNWRITTEN
    return np.full(elements * dtype.bytes, fill, np.uint8)


def compact(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of the elements in row-major order."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie between the first and one past the last."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))


def view_of(
    name: str, memory: Bytes, dtype: DType, shape: tuple[int, ...], strides: Sequence[int]
) -> View:
    """The buffer of that type and shape that starts where `memory` does.

    Raises:
        InternalError: it does not fit into the memory.
    """
    if min(shape, default=0) < 0:
        raise InternalError(f"{name} has a negative extent: shape {shape}")
    needed = span(shape, strides) * dtype.bytes
    if needed > memory.size:
        raise InternalError(
            f"{name} of shape {shape} takes {needed} bytes, but its memory has {memory.size}"
        )
    kind = dtype.numpy
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    if needed == 0:
        array = np.empty(full, kind)
    else:
        steps = [step * dtype.bytes for step in strides]
        array = np.ndarray(
            full, kind, memory, 0, steps if dtype.lanes == 1 else [*steps, kind.itemsize]
        )
    return View(name, array, (0,) * len(shape), shape)


def bytes_of(array: NDArray[Any]) -> Bytes:
    """The memory that an array covers, from its first element on; strides must not be negative."""
    memory, first = memory_of(array)
    return memory[first:]


def memory_of(array: NDArray[Any]) -> tuple[Bytes, int]:
    """The memory between the elements of an array, and how many of its bytes lie before the first.

    Along axes with negative strides the first element is the last in memory.
    """
    if array.size == 0:
        return np.empty(0, np.uint8), 0
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    before, after = -sum(min(n, 0) for n in reach), sum(max(n, 0) for n in reach)
    ends = tuple(slice(-1, None) if n < 0 else slice(1) for n in reach)
    # An array without axes would give a copy of its element.
    lowest = (array[ends] if array.ndim else array).reshape(1).view(np.uint8)
    size = before + after + array.itemsize
    return np.lib.stride_tricks.as_strided(lowest, (size,), (1,)), before


def places_of(name: str, array: NDArray[Any], axes: int) -> View:
    """The memory between the elements of an array that lie first and last, as one axis.

    Its indices count from the element that all indices of the array are 0 for.

    Args:
        name: what it is called in messages.
        array: with its lanes as an extra last axis if there is one more than `axes`.
        axes: of the array, without lanes.
    """
    lanes = array.shape[axes:]
    memory, first = memory_of(array)
    places = memory.view(array.dtype).reshape(-1, *lanes)
    before = first // (array.itemsize * prod(lanes))
    return View(name, places, (-before,), (len(places) - before,))
