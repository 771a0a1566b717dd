"""Bounded cache that evicts values that were not used recently."""

from __future__ import annotations

from typing import Generic, TypeVar

from tecomp.fork_gate import leaf_lock

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")

class LRUCache(Generic[Key, Value]):
    """Cache that evicts values that were not used recently.

    The cache has two generations. A value that is stored or found moves to the first generation;
    when that is full, it becomes the second generation, and the old second generation is dropped. A
    lookup hashes the key only once, where an order by last use would hash it twice.

    A key that is a tuple with many entries, such as the key of a graph of thousands of operations,
    belongs to a value that takes more memory, and counts as several values.

    The cache is thread-safe.

    Attributes:
        most: Maximum number of values with small keys.

    >>> squares: LRUCache[int, int] = LRUCache(4)
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
        self._weight = 0  # weight of the first generation

    def get(self, key: Key, default: Other) -> Value | Other:
        """Return the value of a key, or the default if the key is not cached."""
        found = self._used.get(key, default)
        if found is not default:
            return found
        found = self._before.pop(key, default)
        return found if found is default else self.keep(key, found)  # type: ignore[arg-type]

    def keep(self, key: Key, value: Value) -> Value:
        """Store a value and return it."""
        weight = 1 + _entries(key) // _ENTRIES
        with self._moving:
            if self._used and self._weight + weight > self.most // 2:
                self._before, self._used = self._used, {}
                self._weight = 0
            self._used[key] = value
            self._weight += weight
        return value

    def clear(self) -> None:
        """Remove all values."""
        with self._moving:
            self._used.clear()
            self._before.clear()
            self._weight = 0

    def __len__(self) -> int:
        """Return the number of cached values."""
        return len(self._used) + len(self._before)


_ENTRIES = 64
"""Number of key entries that count as one value."""


def _entries(key: object) -> int:
    """Return the number of entries of nested tuples."""
    count, tuples = 0, [key]
    while tuples:
        found = tuples.pop()
        if isinstance(found, tuple):
            count += len(found)
            tuples += [each for each in found if isinstance(each, tuple)]
    return count
