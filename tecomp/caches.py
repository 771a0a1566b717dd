"""Bounded in-memory caches, and the table of their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from tecomp.fork_gate import leaf_lock

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CacheLimit:
    """Limit of a bounded cache.

    Attributes:
        limit: Maximum number of entries.
        content: Description of an entry, with the work that a hit saves.
    """

    limit: int
    content: str


CACHE_LIMITS: Mapping[str, CacheLimit] = MappingProxyType({
    "array.copies": CacheLimit(1024, "kernel of a copy between strided arrays"),
    "array.device_layouts": CacheLimit(4096, "default layout of an array type on a device"),
    "array.device_programs": CacheLimit(512, "program of pending operations for a device"),
    "array.dtype_names": CacheLimit(256, "name of a NumPy dtype, which NumPy formats anew"),
    "array.evaluation_points": CacheLimit(
        10_000, "location in user code where a long graph was evaluated; keeps its code object"),
    "array.first_extents": CacheLimit(1024, "extents of the first call of a dynamic kernel"),
    "array.host_layouts": CacheLimit(4096, "layout of a device array on the host"),
    "array.host_programs": CacheLimit(512, "program of pending operations for the host"),
    "array.jit": CacheLimit(256, "recording of a `jit` function, by the types of its arguments"),
    "array.kernels": CacheLimit(1024, "kernel of fused operations, by their graph"),
    "array.numpy_parameters": CacheLimit(256, "parameters of a NumPy function that is dispatched"),
    "array.pointwise_kernels": CacheLimit(512, "kernel of one operation on arrays of any size"),
    "array.recipes": CacheLimit(2048, "fusion and kernels of a pending graph, by its structure"),
    "array.reductions": CacheLimit(1024, "reduction operation; equal ones are one object"),
    "array.relayouts": CacheLimit(512, "program that copies an array to another device layout"),
    "array.result_types": CacheLimit(20_000, "result type of an operation on given operand types"),
    "array.scalars": CacheLimit(20_000, "type and range of a Python scalar beside an array"),
    "codegen.linked_code": CacheLimit(512, "machine code of a kernel, linked into the process"),
    "codegen.names": CacheLimit(1024, "LLVM identifier of a name"),
    "constraints.addresses": CacheLimit(4096, "address expressions of a layout as text"),
    "copies.decoders": CacheLimit(64, "kernel that decodes a storage format"),
    "copies.encoders": CacheLimit(64, "kernel that encodes a storage format"),
    "copies.host_layouts": CacheLimit(256, "layout of a NumPy array, analysed for copies"),
    "copies.kernels": CacheLimit(256, "kernel that copies boxes between two index maps"),
    "copies.relayouts": CacheLimit(256, "kernel that copies from one layout to another"),
    "dist.aligned_operands": CacheLimit(4096, "common partition of elementwise operands"),
    "dist.axis_blocks": CacheLimit(4096, "cuts of each axis of a partition"),
    "dist.halos": CacheLimit(1024, "messages of a halo exchange"),
    "dist.matmul_strategies": CacheLimit(1024, "sharding of a product that sends the fewest bytes"),
    "dist.overlap_decisions": CacheLimit(1024, "measured times of a halo exchange with overlap"),
    "dist.overlap_plans": CacheLimit(1024, "core and borders of operations on windows"),
    "dist.partitions": CacheLimit(4096, "canonical partition of an array"),
    "dist.redistributions": CacheLimit(1024, "messages between two partitions"),
    "dist.window_fits": CacheLimit(4096, "whether a halo exchange suits a window"),
    "dist.window_indices": CacheLimit(4096, "slices of the windows of a rank"),
    "dist.window_interiors": CacheLimit(4096, "boxes of the windows without a halo"),
    "dist.window_sets": CacheLimit(4096, "windows of a partition with their common halo"),
    "dist.window_widths": CacheLimit(4096, "halo widths of a window per axis"),
    "driver.kernels": CacheLimit(512, "code and signature of a built kernel"),
    "layout.equal_tags": CacheLimit(1024, "whether two layout tags describe the same layout"),
    "machine.entry_points": CacheLimit(8, "targets of the installed distributions, by `sys.path`"),
    "machine.targets": CacheLimit(32, "target of a description, by its text"),
    "poly.boxes": CacheLimit(1024, "isl set of a box"),
    "poly.lane_accesses": CacheLimit(200_000, "answer to a question on the addresses of lanes"),
    "poly.set_answers": CacheLimit(2000, "answer of isl to a question on sets, per question"),
})  # fmt: skip
"""Limit of each bounded cache by name, `package.content`.

Caches with equal names share the limit, which holds for each of them.
"""


class LRUCache(Generic[Key, Value]):
    """Cache that evicts values that were not used recently.

    The cache has two generations. A value that is stored or found moves to the first generation;
    when that is full, it becomes the second generation, and the old second generation is dropped. A
    lookup hashes the key only once, where an order by last use would hash it twice. At least half
    of `limit` values are kept.

    A key that is a tuple with many entries, such as the key of a graph of thousands of operations,
    belongs to a value that takes more memory, and counts as several values.

    The cache is thread-safe.

    Attributes:
        name: Name in `CACHE_LIMITS`.
        limit: Maximum number of values with small keys.
        recent: First generation. Frequent callers may look a key up here before they call `get`.

    >>> squares: LRUCache[int, int] = LRUCache("squares", 4)
    >>> for k in range(5):
    ...     _ = squares.keep(k, k * k), squares.get(0, None)
    >>> [squares.get(k, None) for k in range(5)]
    [0, None, None, 9, 16]
    """

    __slots__ = ("__weakref__", "_before", "_moving", "_weight", "limit", "name", "recent")

    def __init__(self, name: str, limit: int | None = None) -> None:
        """Create an empty cache.

        Args:
            name: Name in `CACHE_LIMITS`; other names need `limit`.
            limit: Maximum number of values with small keys. Default: the limit of the table.
        """
        self.name = name
        self.limit = CACHE_LIMITS[name].limit if limit is None else limit
        self.recent: dict[Key, Value] = {}
        self._before: dict[Key, Value] = {}
        self._moving = leaf_lock()
        self._weight = 0  # weight of the first generation
        _caches.add(self)

    def get(self, key: Key, default: Other) -> Value | Other:
        """Return the value of a key, or the default if the key is not cached."""
        found = self.recent.get(key, default)
        if found is not default:
            return found
        found = self._before.pop(key, default)
        return found if found is default else self.keep(key, found)  # type: ignore[arg-type]

    def keep(self, key: Key, value: Value) -> Value:
        """Store a value and return it."""
        weight = 1 + _entries(key) // _ENTRIES
        dropped = None  # values are destroyed after the lock is released
        with self._moving:
            if self.recent and self._weight + weight > self.limit // 2:
                dropped, self._before, self.recent = self._before, self.recent, {}
                self._weight = 0
            self.recent[key] = value
            self._weight += weight
        del dropped
        return value

    def remove(self, key: Key) -> None:
        """Remove the value of a key, if it exists."""
        with self._moving:
            self.recent.pop(key, None)
            self._before.pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        with self._moving:
            self.recent.clear()
            self._before.clear()
            self._weight = 0

    def __len__(self) -> int:
        """Return the number of cached values."""
        return len(self.recent) + len(self._before)


_caches: WeakSet[LRUCache[Any, Any]] = WeakSet()
_functions: list[tuple[str, _lru_cache_wrapper[Any]]] = []

_ENTRIES = 64
"""Number of key entries that count as one value."""


def _entries(key: object) -> int:
    """Return the number of entries of nested tuples."""
    count, tuples = 0, [key]
    while tuples:
        found = tuples.pop()
        if isinstance(found, tuple):
            count += len(found)
            tuples += [item for item in found if isinstance(item, tuple)]
    return count


def memoize(
    name: str, *, typed: bool = False
) -> Callable[[Callable[..., Result]], _lru_cache_wrapper[Result]]:
    """Return a decorator that caches the results of a function by its hashable arguments.

    The results that were not used for the longest time are evicted.

    Args:
        name: Name in `CACHE_LIMITS`.
        typed: If True, distinguish equal arguments of different types, such as 1 and 1.0.

    >>> @memoize("codegen.names")
    ... def upper(name: str) -> str:
    ...     return name.upper()
    >>> upper("a"), upper("a"), upper.cache_info().hits
    ('A', 'A', 1)
    """

    def decorate(function: Callable[..., Result]) -> _lru_cache_wrapper[Result]:
        found = lru_cache(CACHE_LIMITS[name].limit, typed)(function)
        _functions.append((name, found))
        return found

    return decorate


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """Use of the caches of one name in this process.

    Attributes:
        name: Name in `CACHE_LIMITS`.
        entries: Number of entries of all caches of the name.
        limit: Maximum number of entries of one cache.
        content: Description of an entry.
    """

    name: str
    entries: int
    limit: int
    content: str


def cache_usage() -> list[CacheUsage]:
    """Return the use of each cache of `CACHE_LIMITS` in this process, sorted by name.

    >>> {row.name: row.limit for row in cache_usage()}["array.kernels"]
    1024
    """
    entries = dict.fromkeys(sorted(CACHE_LIMITS), 0)
    for cache in list(_caches):
        if cache.name in entries:
            entries[cache.name] += len(cache)
    for name, function in _functions:
        entries[name] += function.cache_info().currsize
    return [
        CacheUsage(name, count, CACHE_LIMITS[name].limit, CACHE_LIMITS[name].content)
        for name, count in entries.items()
    ]
