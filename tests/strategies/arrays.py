"""Arrays with guard bytes, and exact comparison of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
GUARD = 64  # bytes before and after every array that must not be written
PATTERN = 0x5A


class Guarded:
    """Copy of an array between guard bytes that must not change."""

    def __init__(self, array: Array) -> None:
        self.memory = np.full(array.nbytes + 2 * GUARD, PATTERN, np.uint8)
        inside = self.memory[GUARD : GUARD + array.nbytes]
        self.array = inside.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def check(self) -> None:
        """Check that nothing was written before or after the array."""
        assert (self.memory[:GUARD] == PATTERN).all(), "written in front of an array"
        end = len(self.memory) - GUARD
        assert (self.memory[end:] == PATTERN).all(), "written behind an array"


def garbage(shape: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array of arbitrary values, which stands for uninitialized memory."""
    if dtype.kind in "iu":
        return np.full(shape, PATTERN, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.nan, dtype)


def assert_equal(actual: Array, expected: Array, name: str) -> None:
    """Check that two arrays have the same dtype, shape and values."""
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype}, not {expected.dtype}"
    if actual.dtype.kind not in "biu":
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(actual, expected, err_msg=name, strict=True)
