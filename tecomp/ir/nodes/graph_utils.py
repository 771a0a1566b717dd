"""Generic graph traversal orders and picklable frozen mappings."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Parts: TypeAlias = "Callable[[Any], Sequence[Any]]"
"""What is directly inside a node, in the order of the text."""


_PARTS_ARE_DONE: Any = object()
"""Stands after a node whose parts come before it on the stack."""


def walk(*roots: Any, parts: Parts, key: Callable[[Any], Hashable] = id) -> Iterator[Any]:
    """Every node in `roots` once, outer before inner, in the order of the text.

    A part that is used twice comes where it is used first. `key` is what tells nodes apart.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> list(walk("a", parts=inside.get))
    ['a', 'b', 'c']
    """
    # The nodes are kept so that their ids are not given to others.
    seen: dict[Hashable, Any] = {}
    todo: list[Any] = list(roots[::-1])
    while todo:
        node = todo.pop()
        name = key(node)
        if name not in seen:
            seen[name] = node
            yield node
            if inner := parts(node):
                todo += inner[::-1]


def post_order(*roots: Any, parts: Parts, key: Callable[[Any], Hashable] = id) -> Iterator[Any]:
    """Every node in `roots` once, inner before outer, in the order of the text.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> list(post_order("a", parts=inside.get))
    ['c', 'b', 'a']
    """
    done: dict[Hashable, Any] = {}
    todo: list[Any] = list(roots[::-1])
    while todo:
        node = todo.pop()
        if node is _PARTS_ARE_DONE:
            node = todo.pop()
            done[key(node)] = node
            yield node
        elif (name := key(node)) not in done:
            if inner := parts(node):
                todo += (node, _PARTS_ARE_DONE, *inner[::-1])
            else:
                done[name] = node
                yield node


def fold(root: Any, combine: Callable[[Any, list[T]], T], parts: Parts) -> T:
    """What `combine(node, results of its parts)` gives for `root`; asked once for each node.

    >>> inside = {"a": ["b", "c"], "b": ["c"], "c": []}
    >>> fold("a", lambda node, depths: 1 + max(depths, default=0), inside.get)
    3
    """
    done: dict[int, T] = {}
    for node in post_order(root, parts=parts):
        done[id(node)] = combine(node, [done[id(part)] for part in parts(node)])
    return done[id(root)]


def frozen(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """A read-only mapping: what a pickle names, as the type itself has no name in a module."""
    return MappingProxyType(items)


def register() -> None:
    """Let `pickle` and `copy` take read-only mappings: states, targets and operations hold some."""
    copyreg.pickle(MappingProxyType, lambda mapping: (frozen, (dict(mapping),)))
