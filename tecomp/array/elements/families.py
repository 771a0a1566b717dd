"""Arrays that are parts of others: what is written to one is seen in all.

An array knows the arrays that it was taken of, and these know it, as long as somebody holds them.
The outermost of them has the elements; the others are taken of it anew after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import ref

import numpy as np

from tecomp.array.elements.assignment import assign
from tecomp.array.elements.indexing import selected
from tecomp.array.elements.ownership import Holder
from tecomp.array.graph.evaluate import computing
from tecomp.array.graph.node import Node, leaf
from tecomp.array.graph.views import moved
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.manipulation import PermuteDims, Reshape
from tecomp.ptensor.types import PTensorType

_NOTHING = leaf(np.empty(0), PTensorType((0,), "float64"))
_MANY = 16


class View(Protocol):
    """How an array is taken of another."""

    def of(self, node: Node) -> Node:
        """The elements of the part."""

    def put(self, holder: Any, part: Node) -> None:
        """Write other elements in place of the part, to what has the whole as its `_node`."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The elements at an index of whole numbers and slices."""

    key: Any

    def of(self, node: Node) -> Node:
        """The elements there."""
        return selected(node, self.key)

    def put(self, holder: Any, part: Node) -> None:
        """Write others there."""
        assign(holder, self.key, part)


@dataclass(frozen=True, slots=True)
class Turned:
    """All elements, in another shape or order of axes.

    Attributes:
        op: what is done.
        back: what undoes it.
    """

    op: Operation
    back: Operation

    def of(self, node: Node) -> Node:
        """The elements so."""
        return moved(self.op, node)

    def put(self, holder: Any, part: Node) -> None:
        """Write others."""
        holder._node = moved(self.back, part)


def turned(op: Operation, whole: Node) -> View:
    """An operation that loses no element of an array, and what undoes it."""
    if isinstance(op, PermuteDims):
        order = sorted(range(len(op.axis)), key=lambda k: op.axis[k])
        return Turned(op, PermuteDims(tuple(order)))
    return Turned(op, Reshape(whole.type.shape))


Path = tuple[View, ...]
Relations = list[tuple[Any, Path]]
"""Arrays, by weak references, and the views from the outer one to the inner one."""


def relate(part: Any, whole: Any, view: View) -> None:
    """Let two arrays know that one was taken of the other."""
    mine = ref(part)
    part._above = above = []
    for outer, path in whole._above or ():
        array = outer()
        if array is not None:
            _add(array, mine, (*path, view))
            above.append((outer, (*path, view)))
    _add(whole, mine, (view,))
    above.append((ref(whole), (view,)))


def _add(outer: Any, inner: Any, path: Path) -> None:
    if outer._below is None:
        outer._below = []
    below = outer._below
    if len(below) >= _MANY and not len(below) & (len(below) - 1):
        below[:] = [(array, way) for array, way in below if array() is not None]
    below.append((inner, path))


def write(array: Any, change: Callable[[Any], None]) -> None:
    """Change the elements of an array, and those of all that it shares them with.

    Args:
        array: the array.
        change: changes the `_node` of what it is given.
    """
    with computing:
        _write(array, change)


def _write(array: Any, change: Callable[[Any], None]) -> None:
    whole, path = _outermost(array)
    parts = [*_alive(whole._below)]
    if not parts:
        change(array)
        return
    if whole is array:
        _renew(whole, parts, change)
        return
    own = Holder(array._node)
    change(own)
    _renew(whole, parts, lambda holder: _put(holder, path, own._node))


def _outermost(array: Any) -> tuple[Any, Path]:
    for outer, path in array._above or ():
        found = outer()
        if found is not None:
            return found, path
    return array, ()


def _alive(relations: Relations | None) -> Iterator[tuple[Any, Path]]:
    for inner, path in relations or ():
        array = inner()
        if array is not None:
            yield array, path


def _renew(whole: Any, parts: list[tuple[Any, Path]], change: Callable[[Any], None]) -> None:
    for part, _ in parts:
        part._node = _NOTHING  # so that elements that only these share are written in place
    try:
        change(whole)
    finally:
        for part, path in parts:
            node = whole._node
            for view in path:
                node = view.of(node)
            part._node = node


def _put(holder: Any, path: Path, part: Node) -> None:
    view, *rest = path
    if rest:
        inner = Holder(view.of(holder._node))
        _put(inner, tuple(rest), part)
        part = inner._node
    view.put(holder, part)
