"""A bounded least-recently-used cache."""

from __future__ import annotations

from typing import Generic, TypeVar

from tecomp.fork_gate import leaf_lock

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")

class Recent(Generic[Key, Value]):
    """Values by key, of which those that nobody used for long are let go.

    There are two halves. What is used is in the first, or comes there; when that is full, it
    becomes the second, and what was in the second is gone. So a key is hashed once where it is
    found, which an order by last use would do twice.

    A key that is a tuple with many entries, as that of a graph of thousands of operations, stands
    for a value that takes more memory, and counts as several.

    Several threads may use it.

    Attributes:
        most: values that are kept, if their keys are small.

    >>> squares: Recent[int, int] = Recent(4)
    >>> for k in range(5):
    ...     _ = squares.keep(k, k * k), squares.get(0, None)
    >>> [squares.get(k, None) for k in range(5)]
    [0, None, None, 9, 16]
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._used: dict[Key, Value] = {}
        self._before: dict[Key, Value] = {}
        self._moving = leaf_lock()
        self._weight = 0  # of the values in use

    def get(self, key: Key, default: Other) -> Value | Other:
        """The value of a key; the default if it is not here."""
        found = self._used.get(key, default)
        if found is not default:
            return found
        found = self._before.pop(key, default)
        return found if found is default else self.keep(key, found)  # type: ignore[arg-type]

    def keep(self, key: Key, value: Value) -> Value:
        """Keep a value, and return it."""
        weight = 1 + _entries(key) // _ENTRIES
        with self._moving:
            if self._used and self._weight + weight > self.most // 2:
                self._before, self._used = self._used, {}
                self._weight = 0
            self._used[key] = value
            self._weight += weight
        return value

    def clear(self) -> None:
        """Let go of all."""
        with self._moving:
            self._used.clear()
            self._before.clear()
            self._weight = 0

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._used) + len(self._before)


_ENTRIES = 64
"""Entries of a key that count as one value."""


def _entries(key: object) -> int:
    """Return how many entries nested tuples have."""
    count, tuples = 0, [key]
    while tuples:
        found = tuples.pop()
        if isinstance(found, tuple):
            count += len(found)
            tuples += [each for each in found if isinstance(each, tuple)]
    return count
