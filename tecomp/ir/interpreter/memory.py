"""Interpreter memory, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.errors import CallError, InternalError
from tecomp.ir.interpreter.arithmetic import Data
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BufferLoad
from tecomp.ir.nodes.stmt import BufferStore, TensorOp

Bytes: TypeAlias = "NDArray[np.uint8]"

# All ones is NaN in every floating-point dtype; the integer pattern is an unlikely result.
_UNWRITTEN_FLOAT, _UNWRITTEN = 0xFF, 0xA5


@dataclass(frozen=True, slots=True)
class BufferView:
    """Buffer bound to interpreter memory.

    Attributes:
        name: Name in messages.
        array: Elements; a vector dtype has its lanes as an extra last axis.
        low: First index along each axis; 0 except for a `BufferRealize` or a flat buffer.
        high: Last index plus one along each axis.
    """

    name: str
    array: NDArray[Any]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def flat_index(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return the index into `array` of the element at `indices`.

        Raises:
            CallError: If an index is out of bounds; negative indices do not count from the end.
        """
        is_shifted = False
        for index, low, high in zip(indices, self.low, self.high, strict=True):
            if not low <= index < high:
                self.refuse(indices)
            is_shifted |= low != 0
        if not is_shifted:
            return tuple(indices)
        return tuple([index - low for index, low in zip(indices, self.low, strict=True)])

    def lanes(
        self, outer: Sequence[int], inner: NDArray[Any], part: NDArray[Any] | None = None
    ) -> tuple[Any, ...]:
        """Return the index into `array` of the elements at `outer` and each last index in `inner`.

        Args:
            outer: Indices of all axes but the last, common to all lanes.
            inner: Last index of each lane; not empty.
            part: Lane within the vector element that each lane accesses; None for whole elements.

        Raises:
            CallError: If an index is out of bounds.
        """
        low, high = self.low[-1], self.high[-1]
        shared = self.flat_index([*outer, int(inner[0])])[:-1]
        outside = (inner < low) | (inner >= high)
        if outside.any():
            self.refuse([*outer, int(inner[outside.argmax()])])
        index = (*shared, inner - low)
        return index if part is None or self.array.ndim == len(index) else (*index, part)

    def refuse(self, indices: Sequence[int]) -> None:
        """Raise the out-of-bounds error.

        Raises:
            CallError: Always.
        """
        text = ", ".join(map(str, indices))
        shape = tuple(high - low for low, high in zip(self.low, self.high, strict=True))
        start = f" starting at {self.low}" if any(self.low) else ""
        raise CallError(
            "{name}[{index}] is out of bounds: shape {shape}{start}; correct the index in the "
            "function, or pass a larger array",
            kind="out-of-bounds", name=self.name, index=text, shape=shape, start=start,
        )


def unwritten(dtype: DType, elements: int) -> Bytes:
    """Allocate memory for elements, filled with a pattern that exposes uninitialized reads."""
    fill = _UNWRITTEN_FLOAT if dtype.is_float else _UNWRITTEN
    return np.full(elements * dtype.bytes, fill, np.uint8)


def compact(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the distance in elements from the first element to one past the last."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))


def view_of(
    name: str, memory: Bytes, dtype: DType, shape: tuple[int, ...], strides: Sequence[int],
    offset: int = 0,
) -> BufferView:
    """Return a view of a buffer that begins `offset` elements after the start of `memory`.

    Raises:
        CallError: If an extent or the offset is negative, or the buffer does not fit into the
            memory.
    """
    if min(shape, default=0) < 0:
        raise CallError(
            "{name} has a negative extent: shape {shape}; pass larger sizes",
            kind="out-of-bounds", name=name, shape=shape,
        )
    if offset < 0:
        raise CallError(
            "{name} begins {offset} elements before its memory; pass an offset of 0 or more",
            kind="out-of-bounds", name=name, offset=-offset,
        )
    needed = span(shape, strides) * dtype.bytes
    memory = memory[offset * dtype.bytes:]
    if needed > memory.size:
        raise CallError(
            "{name} of shape {shape} takes {needed} bytes, but its memory has {size}; declare a "
            "smaller view",
            kind="out-of-bounds", name=name, shape=shape, needed=needed, size=memory.size,
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
    return BufferView(name, array, (0,) * len(shape), shape)


def part_of(
    name: str, array: NDArray[Any], shape: tuple[int, ...], strides: Sequence[int], offset: int
) -> NDArray[Any]:
    """Return the part of a one-dimensional array that begins at element `offset`.

    Raises:
        CallError: If an extent is negative, or an element of the part is outside of the array.
    """
    spans = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low, high = sum(min(n, 0) for n in spans), sum(max(n, 0) for n in spans)
    is_inside = 0 in shape or (offset + low >= 0 and offset + high < len(array))
    if min(shape, default=0) < 0 or not is_inside:
        raise CallError(
            "{name} of shape {shape} at element {offset} exceeds its array of {array_count} "
            "elements; pass a longer array",
            kind="out-of-bounds", name=name, shape=shape, offset=offset, array_count=len(array),
        )
    if 0 in shape:
        return np.empty(shape, array.dtype)
    steps = [step * array.itemsize for step in strides]
    return np.ndarray(shape, array.dtype, array, offset * array.itemsize, steps)


def view_of_rows(
    name: str, memory: Bytes, dtype: DType, shape: tuple[int, ...], cut: int, row_bytes: int
) -> BufferView:
    """Return a view of a buffer whose rows start at the rows of `memory`.

    Args:
        name: Name in messages.
        memory: Consecutive rows.
        dtype: Dtype of the elements.
        shape: Shape of the buffer.
        cut: Number of leading axes that index rows.
        row_bytes: Size of a row of the memory in bytes.

    Raises:
        CallError: If an extent is negative, a row of the buffer is longer than a row of the memory,
            or the buffer has more rows than the memory.
    """
    if min(shape, default=0) < 0 or 0 in shape:
        return view_of(name, memory, dtype, shape, compact(shape))
    row = view_of(name, memory[:row_bytes], dtype, shape[cut:], compact(shape[cut:]))
    rows = prod(shape[:cut])
    if rows * row_bytes > memory.size:
        raise CallError(
            "{name} of shape {shape} has {rows} rows of {row_bytes} bytes, but its memory has "
            "{size} bytes; declare a smaller view",
            kind="out-of-bounds", name=name, shape=shape, rows=rows, row_bytes=row_bytes,
            size=memory.size,
        )
    full = (*shape[:cut], *row.array.shape)
    steps = [*(step * row_bytes for step in compact(shape[:cut])), *row.array.strides]
    return BufferView(
        name, np.ndarray(full, dtype.numpy, memory, 0, steps), (0,) * len(shape), shape
    )


def bytes_of(array: NDArray[Any]) -> Bytes:
    """Return the memory of an array from its first element; strides must not be negative."""
    memory, first = memory_of(array)
    return memory[first:]


def memory_of(array: NDArray[Any]) -> tuple[Bytes, int]:
    """Return the memory that an array spans, and the byte offset of its first element.

    Along axes with negative strides, the first element has the highest address. An empty array
    gives empty memory.
    """
    if array.size == 0:
        return np.empty(0, np.uint8), 0
    spans = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    before, after = -sum(min(n, 0) for n in spans), sum(max(n, 0) for n in spans)
    ends = tuple(slice(-1, None) if n < 0 else slice(1) for n in spans)
    # Indexing a zero-dimensional array would copy its element.
    lowest = (array[ends] if array.ndim else array).reshape(1).view(np.uint8)
    size = before + after + array.itemsize
    return np.lib.stride_tricks.as_strided(lowest, (size,), (1,)), before


def places_of(name: str, array: NDArray[Any], axes: int) -> BufferView:
    """Return a view of the memory that an array spans as one axis.

    Index 0 is the element at which all indices of the array are 0.

    Args:
        name: Name in messages.
        array: Array, with lanes as an extra last axis if it has one more axis than `axes`.
        axes: Number of axes without lanes.
    """
    lanes = array.shape[axes:]
    memory, first = memory_of(array)
    elements = memory.view(array.dtype).reshape(-1, *lanes)
    before = first // (array.itemsize * prod(lanes))
    return BufferView(name, elements, (-before,), (len(elements) - before,))


Closure: TypeAlias = "Callable[[list[Any]], Data]"
Seen: TypeAlias = "Callable[[tuple[int, ...]], None]"


class MemoryObserver(Protocol):
    """Observer of the memory accesses of an interpreted function without vectors.

    `reader`, `writer` and `operation` are called once for each node, at compilation.
    """

    def reader(self, node: BufferLoad) -> Seen:
        """Return the callback that receives the position of each element that a load reads."""

    def writer(self, node: BufferStore) -> Seen:
        """Return the callback that receives the position of each element that a store writes."""

    def operation(self, node: TensorOp) -> Callable[[], None] | None:
        """Return the callback for each execution of a tensor operation, or None.

        With a callback, the accesses of the operands are reported; with None, those of the body.
        """

    def core(self, thread: str, value: int | None) -> None:
        """Report the coordinate of the core that runs next; None at the end of the core loop."""


def load_function(
    node: BufferLoad,
    slot: int,
    indices: Sequence[Closure],
    predicate: Closure | None,
    record: Seen | None = None,
) -> Closure:
    """Return the closure of a load from the buffer in `slot`.

    `record` is called with the position of every element that is read.
    """
    _check_rank(node)
    if node.indices and node.indices[-1].dtype.lanes > 1:
        return _gather(node.dtype, slot, indices, predicate)
    read = _reader(node.buffer.dtype)
    none = read(np.zeros(node.dtype.lanes if node.dtype.lanes > 1 else (), node.dtype.numpy), ())

    def load(env: list[Any]) -> Data:
        view: BufferView = env[slot]
        position = view.flat_index([index(env) for index in indices])
        if record is not None:
            record(position)
        return read(view.array, position)

    if predicate is None:
        return load

    def masked(env: list[Any]) -> Data:
        mask = predicate(env)
        if isinstance(mask, np.ndarray):
            return np.where(mask, load(env), none) if mask.any() else none
        return load(env) if mask else none

    return masked


def _check_rank(node: BufferLoad | BufferStore) -> None:
    if len(node.indices) != node.buffer.index_count:
        raise InternalError(
            "`{node}` has {index_count} indices for {buffer}",
            node=node, index_count=len(node.indices), buffer=node.buffer,
        )


def _reader(dtype: DType) -> Callable[[Any, tuple[int, ...]], Data]:
    """Return the conversion of an element to an int, a bool, a NumPy float or a vector copy."""
    if dtype.lanes > 1:
        return lambda array, position: array[position].copy()
    if dtype.is_float:
        return lambda array, position: array[position]
    if dtype.is_bool:
        return lambda array, position: bool(array[position])
    return lambda array, position: int(array[position])


def _gather(
    result: DType,
    slot: int,
    indices: Sequence[Closure],
    predicate: Closure | None,
) -> Closure:
    *outer, last = indices
    lanes, kind = result.lanes, result.numpy

    def gather(env: list[Any]) -> Data:
        view: BufferView = env[slot]
        prefix, inner = [index(env) for index in outer], last(env)
        if predicate is None:
            return view.array[view.lanes(prefix, inner)].reshape(lanes)
        values = np.zeros(lanes, kind).reshape(len(inner), -1)
        lane, part = np.nonzero(_live(predicate(env), *values.shape))
        if lane.size:
            values[lane, part] = view.array[view.lanes(prefix, inner[lane], part)]
        return values.reshape(lanes)

    return gather


def _live(mask: Data, lanes: int, width: int) -> Any:
    """Return a mask with a row for each index lane and a column for each lane of the element."""
    bits = np.asarray(mask)
    full = bits if bits.size == lanes * width else np.repeat(bits, lanes * width // bits.size)
    return full.reshape(lanes, width)


def store_function(
    node: BufferStore,
    slot: int,
    value: Closure,
    indices: Sequence[Closure],
    predicate: Closure | None,
    record: Seen | None = None,
) -> Closure:
    """Return the closure of a store to the buffer in `slot`.

    `record` is called with the position of every element that is written.
    """
    _check_rank(node)
    if node.indices and node.indices[-1].dtype.lanes > 1:
        return _scatter(node.buffer.dtype.lanes, slot, value, indices, predicate)

    def store(env: list[Any]) -> None:
        view: BufferView = env[slot]
        position = view.flat_index([index(env) for index in indices])
        view.array[position] = value(env)
        if record is not None:
            record(position)

    if predicate is None:
        return store

    def masked(env: list[Any]) -> None:
        view: BufferView = env[slot]
        idx, mask, new = [index(env) for index in indices], predicate(env), value(env)
        if not np.any(mask):
            return
        position = view.flat_index(idx)
        if isinstance(mask, np.ndarray):
            new = np.where(mask, new, view.array[position])
        view.array[position] = new
        if record is not None:
            record(position)

    return masked


def _scatter(
    width: int,
    slot: int,
    value: Closure,
    indices: Sequence[Closure],
    predicate: Closure | None,
) -> Closure:
    *outer, last = indices

    def scatter(env: list[Any]) -> None:
        view: BufferView = env[slot]
        prefix, inner = [index(env) for index in outer], last(env)
        mask = True if predicate is None else predicate(env)
        values = np.asarray(value(env)).reshape(len(inner), width)
        lane, part = np.nonzero(_live(mask, *values.shape))
        if lane.size:
            # If several lanes write the same element, the last lane wins.
            view.array[view.lanes(prefix, inner[lane], part)] = values[lane, part]

    return scatter
