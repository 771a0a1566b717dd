"""The arrays that Python functions get from programs: NumPy's, with the words of TVM's NDArray."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tecomp.ir.language.dtype import DType

Array = np.ndarray[Any, np.dtype[Any]]


class ArgumentArray(np.ndarray[Any, np.dtype[Any]]):
    """Memory of a program, during a call: a NumPy array that also answers to TVM's words."""

    def numpy(self) -> Array:
        """A copy, which stays when the call is over."""
        return np.array(self)

    asnumpy = numpy

    def copyto(self, target: Any) -> Any:
        """Write the elements to another array, which is returned."""
        np.copyto(target, self)
        return target

    def copyfrom(self, source: Any) -> ArgumentArray:
        """Take the elements of another array."""
        np.copyto(self, source)
        return self


def passed(array: Array, *, is_written: bool) -> ArgumentArray:
    """`array` as a function gets it, which writes to it only if it may."""
    found = array.view(ArgumentArray)
    found.flags.writeable = is_written
    return found


def array_at(
    address: int, dtype: DType, shape: Sequence[int], strides: Sequence[int], *, is_written: bool
) -> ArgumentArray:
    """The array in memory; strides are in elements.

    Args:
        address: of its first element.
        dtype: of its elements; a vector type gives an extra last axis.
        shape: its extents.
        strides: elements from one to the next along each axis.
        is_written: whether the function may write to it.
    """
    kind, lanes = dtype.numpy, dtype.lanes
    steps = [step * dtype.bytes for step in strides]
    full = tuple(shape)
    if lanes > 1:
        full, steps = (*full, lanes), [*steps, kind.itemsize]
    if 0 in full:
        return passed(np.empty(full, kind), is_written=is_written)
    reach = [(extent - 1) * step for extent, step in zip(full, steps, strict=True)]
    before, after = -sum(min(n, 0) for n in reach), sum(max(n, 0) for n in reach)
    memory: Any = (ctypes.c_uint8 * (before + after + kind.itemsize)).from_address(address - before)
    found = ArgumentArray(full, kind, memory, before, steps)
    if not is_written:
        found.flags.writeable = False
    return found
