"""Memory for messages, used again: what is new has to be cleared by the system first."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.uint8]]

_MOST = 1 << 26
"""Bytes that are kept for later messages, all together."""


class Buffers:
    """Memory that messages have given back."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._kept = 0

    def take(self, nbytes: int) -> Array:
        """Bytes that nobody else has; they hold anything."""
        found = self._free.get(nbytes)
        if not found:
            return np.empty(nbytes, np.uint8)
        self._kept -= nbytes
        return found.pop()

    def give(self, buffer: Array) -> None:
        """Bytes that are not needed any more; the oldest sizes go first where they are many."""
        self._kept += buffer.nbytes
        self._free.setdefault(buffer.nbytes, []).append(buffer)
        while self._kept > _MOST:
            oldest = next(iter(self._free))
            self._kept -= oldest * len(self._free.pop(oldest))
