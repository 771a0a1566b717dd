"""Generic graph traversal orders and picklable frozen mappings."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Parts: TypeAlias = "Callable[[Any], Sequence[Any]]"
"""Function that returns the direct children of a node, in the order of the printed text."""


_PARTS_ARE_DONE: Any = object()
"""Stack marker above a node whose children have already been visited."""


def preorder(*roots: Any, parts: Parts, key: Callable[[Any], Hashable] = id) -> Iterator[Any]:
    """Yield every node reachable from `roots` once, in preorder.

    A node with several parents is yielded at its first use.

    Args:
        roots: Nodes at which to start.
        parts: Function that returns the children of a node, in the order of the printed text.
        key: Function that returns the identity of a node. Default: `id`.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> list(preorder("a", parts=inside.get))
    ['a', 'b', 'c']
    """
    # Hold references to the nodes, so that their ids are not reused.
    visited: dict[Hashable, Any] = {}
    worklist: list[Any] = list(roots[::-1])
    while worklist:
        node = worklist.pop()
        name = key(node)
        if name not in visited:
            visited[name] = node
            yield node
            if inner := parts(node):
                worklist += inner[::-1]


def post_order(*roots: Any, parts: Parts, key: Callable[[Any], Hashable] = id) -> Iterator[Any]:
    """Yield every node reachable from `roots` once, in postorder.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> list(post_order("a", parts=inside.get))
    ['c', 'b', 'a']
    """
    done: dict[Hashable, Any] = {}
    worklist: list[Any] = list(roots[::-1])
    while worklist:
        node = worklist.pop()
        if node is _PARTS_ARE_DONE:
            node = worklist.pop()
            done[key(node)] = node
            yield node
        elif (name := key(node)) not in done:
            if inner := parts(node):
                worklist += (node, _PARTS_ARE_DONE, *inner[::-1])
            else:
                done[name] = node
                yield node


def fold(root: Any, combine: Callable[[Any, list[T]], T], parts: Parts) -> T:
    """Return `combine(node, results of its children)` for `root`; each node is combined once.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> fold("a", lambda node, depths: 1 + max(depths, default=0), inside.get)
    3
    """
    done: dict[int, T] = {}
    for node in post_order(root, parts=parts):
        done[id(node)] = combine(node, [done[id(part)] for part in parts(node)])
    return done[id(root)]


def frozen_mapping(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a read-only mapping; pickles name this function, as the type is not importable."""
    return MappingProxyType(items)


def register() -> None:
    """Register read-only mappings with `pickle` and `copy`, as states and targets contain some."""
    copyreg.pickle(MappingProxyType, lambda mapping: (frozen_mapping, (dict(mapping),)))
