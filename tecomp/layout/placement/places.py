"""Places in memory of many elements at a time, and elements of many places."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tecomp.layout.placement.stored import StoredTensor
from tecomp.poly.maps import enumerate as elements


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """How far one step along each axis goes in an array in the order of NumPy.

    >>> row_major((2, 3, 5))
    (15, 5, 1)
    """
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def offset_of(place: Sequence[Any], shape: Sequence[int]) -> Any:
    """How many places lie before `place` in row-major order.

    Args:
        place: an index on each axis: numbers, arrays that broadcast, or expressions.
        shape: of the memory.

    >>> offset_of((1, 2, 3), (2, 3, 5))
    28
    """
    total = place[0] if place else 0
    for index, extent in zip(place[1:], shape[1:], strict=True):
        total = total * extent + index
    return total


def offsets_at(layout: StoredTensor, index: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offsets of the elements at broadcast indices."""
    at = dict(zip(layout.index_map.initial_indices, map(np.asarray, index), strict=False))
    place = [elements.values(expr, at) for expr in layout.index_map.final_indices]
    shape = np.broadcast_shapes(*(np.shape(n) for n in index))
    return np.asarray(np.zeros(shape, np.int64) + offset_of(place, layout.physical_shape))


def all_offsets(layout: StoredTensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offset of every element, in the shape of the tensor."""
    axes = np.indices(layout.shape, np.int64, sparse=True)
    return np.broadcast_to(offsets_at(layout, axes), layout.shape)


def elements_at(
    layout: StoredTensor, offsets: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each offset the index of its element, or -1 throughout where there is none."""
    places = np.unravel_index(offsets, layout.physical_shape)
    inverse = layout.inverse
    at = dict(zip(inverse.initial_indices, places, strict=True))
    index = [
        np.broadcast_to(elements.values(expr, at), offsets.shape)
        for expr in inverse.final_indices
    ]
    if not index:
        return np.zeros((len(offsets), 0), np.int64)
    inside = np.ones(offsets.shape, bool)
    for n, extent in zip(index, layout.shape, strict=True):
        inside &= (n >= 0) & (n < extent)
    clipped = [np.where(inside, n, 0) for n in index]
    inside &= offsets_at(layout, clipped) == offsets
    return np.where(inside[:, None], np.stack(clipped, axis=1), -1)
