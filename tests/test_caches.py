"""Bounded caches: their limits, their rows, and that there are no others."""

from __future__ import annotations

import ast
import gc
from collections import Counter
from collections.abc import Iterator

from tecomp import caches
from tecomp.caches import CACHE_LIMITS, CacheLimit, LRUCache, cache_usage, memoize
from tests.test_names import trees_with

# Functions and methods of other modules that bound a cache.
OTHERS = {"lru_cache", "OrderedDict", "popitem"}
# The dictionary of exceptions on their way to a caller: entries are removed when they arrive.
NO_CACHES = {"tecomp.ir.extern.binding"}


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a module with the last name of the function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2], node


def test_each_cache_has_a_limit_and_each_limit_a_cache() -> None:
    names = [
        ast.literal_eval(call.args[0])
        for module, tree in trees_with("LRUCache", "memoize") if module != "tecomp.caches"
        for name, call in calls(tree) if name in ("LRUCache", "memoize")
    ]

    assert {name: count for name, count in Counter(names).items() if count > 1} == {}
    assert sorted(names) == sorted(CACHE_LIMITS)


def test_no_other_module_bounds_a_cache() -> None:
    found = {
        module
        for module, tree in trees_with(*OTHERS) if module != "tecomp.caches"
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name | ast.alias | ast.Attribute) and OTHERS & {
            getattr(node, "id", None), getattr(node, "name", None), getattr(node, "attr", None)})
    }

    assert found == NO_CACHES


def test_usage_counts_entries_of_caches() -> None:
    first, second = (LRUCache[int, int]("array.jit") for _ in "ab")
    before = {row.name: row.entries for row in cache_usage()}
    first.keep(1, 1)
    second.keep(1, 1)
    second.keep(2, 2)
    rows = {row.name: row for row in cache_usage()}

    assert rows["array.jit"].entries == before["array.jit"] + 3
    assert rows["array.jit"].limit == first.limit == CACHE_LIMITS["array.jit"].limit
    assert list(rows) == sorted(CACHE_LIMITS)
    del first, second
    gc.collect()
    assert {row.name: row.entries for row in cache_usage()} == before


def test_memoized_functions_forget_results() -> None:
    computed: list[int] = []

    @memoize("machine.entry_points")
    def double(x: int) -> int:
        computed.append(x)
        return 2 * x

    limit = CACHE_LIMITS["machine.entry_points"].limit
    assert [double(x) for x in (*range(limit), 0)] == [*range(0, 2 * limit, 2), 0]
    assert computed == list(range(limit))
    assert double(limit) == 2 * limit  # evicts 1, which was used before 0
    assert [double(0), double(1)] == [0, 2]
    assert computed == [*range(limit), limit, 1]
    rows = {row.name: row.entries for row in cache_usage()}
    assert rows["machine.entry_points"] >= limit
    caches._functions.pop()


def test_removal_and_lookup_cover_both_generations() -> None:
    cache: LRUCache[str, int] = LRUCache("test", 4)
    for k, key in enumerate("abc"):
        cache.keep(key, k)

    assert (cache.recent, len(cache)) == ({"c": 2}, 3)
    cache.remove("a")
    cache.remove("c")
    cache.remove("z")
    assert [cache.get(key, None) for key in "abc"] == [None, 1, None]
    assert (cache.recent, len(cache)) == ({"b": 1}, 1)


def test_values_are_destroyed_without_the_lock() -> None:
    class Releases:
        def __del__(self) -> None:
            free.append(cache._moving._is_owned())

    free: list[bool] = []
    cache: LRUCache[int, Releases] = LRUCache("test", 2)
    for k in range(3):
        cache.keep(k, Releases())
    gc.collect()
    assert free == [False]


def test_limits_have_a_description() -> None:
    for name, limit in CACHE_LIMITS.items():
        assert isinstance(limit, CacheLimit), name
        assert limit.limit > 1
        assert limit.content
