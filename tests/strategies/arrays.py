"""Arrays that show who touches what, and how they are compared."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
GUARD = 64  # bytes around every array that nobody may touch
PATTERN = 0x5A


class Guarded:
    """A copy of an array, with bytes around it that must stay as they are."""

    def __init__(self, array: Array) -> None:
        self.memory = np.full(array.nbytes + 2 * GUARD, PATTERN, np.uint8)
        inside = self.memory[GUARD : GUARD + array.nbytes]
        self.array = inside.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def check(self) -> None:
        """Nothing was written in front of the array or behind it."""
        assert (self.memory[:GUARD] == PATTERN).all(), "written in front of an array"
        end = len(self.memory) - GUARD
        assert (self.memory[end:] == PATTERN).all(), "written behind an array"


def garbage(shape: Any, dtype: np.dtype[Any]) -> Array:
    """What memory may contain that nobody has written to."""
    if dtype.kind in "iu":
        return np.full(shape, PATTERN, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.nan, dtype)


def assert_equal(got: Array, wanted: Array, name: str) -> None:
    """Same type, shape and numbers."""
    assert got.dtype == wanted.dtype, f"{name}: {got.dtype}, not {wanted.dtype}"
    if got.dtype.kind not in "biu":
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(got, wanted, err_msg=name, strict=True)
