"""Read and write at data-dependent positions: nonzero, masks, counts."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer, memory, no_memory
from tecomp.array.statistics import counters
from tecomp.errors import ArrayValueError


def copy_row_major(data: Buffer) -> Buffer:
    """Return a row-major copy of elements."""
    counters.libraries["numpy.copy"] += 1
    try:
        return np.array(data, order="C")
    except MemoryError:
        raise no_memory(data.shape, data.dtype) from None


def ascontiguous(data: Buffer) -> Buffer:
    """Return row-major elements: the array itself if it is contiguous, otherwise a copy."""
    return data if data.flags.c_contiguous else copy_row_major(data)


def copy_to(target: Buffer, source: Buffer) -> None:
    """Write elements, broadcast, to a view of memory."""
    counters.libraries["numpy.copyto"] += 1
    np.copyto(target, source)


def write_at(target: Buffer, key: Any, source: Buffer, where: str) -> None:
    """Write elements at index arrays or masks.

    Raises:
        ArrayValueError: If the shapes do not match.
    """
    counters.libraries["numpy.ndarray.__setitem__"] += 1
    try:
        target[key] = source
    except (ValueError, IndexError):
        raise ArrayValueError(
            "{where}: a value of shape {shape} does not broadcast to the indexed shape "
            "{target_shape}",
            kind="array-shapes", where=where, shape=source.shape, target_shape=target[key].shape,
        ) from None


_INDEX = np.dtype(np.int64)


def places_of(mask: Buffer) -> Buffer:
    """Return the indices where a one-dimensional mask is true.

    >>> places_of(np.array([True, False, True]))
    array([0, 2])
    """
    indices = memory((mask.size,), _INDEX)
    count = np.empty(1, np.int64)
    if not mask.size:
        return indices
    counters.called += 1
    from tecomp.array.indexing.data_dependent_kernels import places_kernel

    places_kernel()(mask, indices, count)
    return indices[: int(count[0])].copy()


def normalize_index_array(indices: Buffer, extent: int) -> tuple[Buffer, int | None]:
    """Convert negative indices, and return the position of the first index that is out of bounds.

    >>> normalize_index_array(np.array([0, -1, 1]), 3)
    (array([0, 2, 1]), None)
    """
    result, invalid = memory((indices.size,), _INDEX), np.empty(1, np.int64)
    if not indices.size:
        return result, None
    counters.called += 1
    from tecomp.array.indexing.data_dependent_kernels import index_kernel

    index_kernel(indices.dtype.name)(indices, np.array([extent]), result, invalid)
    position = int(invalid[0])
    return result, None if position < 0 else position


def take_rows(data: Buffer, axis: int, indices: Buffer) -> Buffer:
    """Return the elements at indices along an axis.

    Args:
        data: Contiguous array.
        axis: Indexed axis.
        indices: One-dimensional array of valid, nonnegative indices.

    >>> take_rows(np.array([[1, 2, 3], [4, 5, 6]]), 1, np.array([2, 0]))
    array([[3, 1],
           [6, 4]])
    """
    shape = (*data.shape[:axis], indices.size, *data.shape[axis + 1 :])
    result = memory(shape, data.dtype)
    if not result.size:
        return result
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    source, target = data.reshape(outer, -1, inner), result.reshape(outer, -1, inner)
    if data.dtype.kind == "c":
        source, target = source.view(data.real.dtype), target.view(data.real.dtype)
    counters.called += 1
    from tecomp.array.indexing.data_dependent_kernels import elements_kernel, rows_kernel

    if source.shape[2] == 1:
        elements_kernel(source.dtype.name)(source[..., 0], indices, target[..., 0])
    else:
        rows_kernel(source.dtype.name)(source, indices, target)
    return result


def repeat_positions(counts: Buffer) -> tuple[Buffer, int | None]:
    """Return each position repeated by its count, and the position of the first negative count.

    >>> repeat_positions(np.array([1, 0, 2]))
    (array([0, 2, 2]), None)
    """
    ends, invalid = memory((counts.size,), _INDEX), np.empty(1, np.int64)
    if not counts.size:
        return ends, None
    counters.called += 1
    from tecomp.array.indexing.data_dependent_kernels import ends_kernel, repeat_kernel

    ends_kernel(counts.dtype.name)(ascontiguous(counts), ends, invalid)
    if invalid[0] >= 0:
        return ends[:0], int(invalid[0])
    positions = memory((int(ends[-1]),), _INDEX)
    if positions.size:
        counters.called += 1
        repeat_kernel()(ends, positions)
    return positions, None
