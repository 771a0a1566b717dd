"""Copies of memory and writes to it by a library; calls are counted by its name for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, no_memory
from tecomp.errors import ArrayValueError


def copied(data: Buffer) -> Buffer:
    """The same elements in memory of their own, in order."""
    counters.libraries["numpy.copy"] += 1
    try:
        return np.array(data, order="C")
    except MemoryError:
        raise no_memory(data.shape, data.dtype) from None


def in_order(data: Buffer) -> Buffer:
    """The same elements in order: themselves, or a copy if there are places between them."""
    return data if data.flags.c_contiguous else copied(data)


def copy_to(target: Buffer, source: Buffer) -> None:
    """Write elements that broadcast to a view of memory."""
    counters.libraries["numpy.copyto"] += 1
    np.copyto(target, source)


def put(target: Buffer, key: Any, source: Buffer, where: str) -> None:
    """Write elements to places that arrays of indices say, or masks.

    Raises:
        ArrayValueError: the shapes do not fit.
    """
    counters.libraries["numpy.ndarray.__setitem__"] += 1
    try:
        target[key] = source
    except (ValueError, IndexError):
        raise ArrayValueError(
            f"{where}: the value has shape {source.shape}, and the index says elements of shape "
            f"{target[key].shape}; give a value that broadcasts to it",
            kind="array-shapes",
        ) from None
