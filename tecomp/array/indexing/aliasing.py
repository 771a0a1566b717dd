"""Track views that share a buffer and propagate writes between them.

An array knows the arrays that it was taken of, and these know it, as long as somebody holds them.
The outermost of them has the elements; the others are taken of it anew after each change. While
one is written, something stands for all of them that says no elements: threads that ask for them
wait, and nobody gets memory that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from weakref import ref

from tecomp.array.graph.locking import Written, wait, wake, writers
from tecomp.array.graph.node import Node, looking
from tecomp.array.graph.views import moved
from tecomp.array.indexing.getitem import part_at
from tecomp.array.indexing.setitem import NodeHolder, assign
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.manipulation import PermuteDims, Reshape

_MANY = 16


class View(Protocol):
    """How an array is taken of another."""

    def of(self, node: Node) -> Node:
        """The elements of the part; nothing is computed for that."""

    def put(self, holder: Any, part: Node) -> None:
        """Write other elements in place of the part, to what has the whole as its `_node`."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The elements at an index of whole numbers and slices."""

    key: Any

    def of(self, node: Node) -> Node:
        """The elements there."""
        return part_at(node, self.key)

    def put(self, holder: Any, part: Node) -> None:
        """Write others there."""
        assign(holder, self.key, part)


@dataclass(frozen=True, slots=True)
class ReshapedView:
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
        return ReshapedView(op, PermuteDims(tuple(order)))
    return ReshapedView(op, Reshape(whole.type.shape))


Path = tuple[View, ...]
Relations = list[tuple[Callable[[], Any], Path]]
"""Arrays, by what gives them, and the views from the outer one to the inner one."""

Family = list[tuple[Any, Path]]
"""The same for arrays themselves."""


class _Kept:
    """A reference that keeps an array: arrays that were taken of it share what it has."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __call__(self) -> Any:
        return self.array


def relate(part: Any, whole: Any, view: View, node: Node) -> None:
    """Let two arrays know that one was taken of the other.

    Args:
        part: taken of the node; taken again if the whole has another one by now.
        whole: of which it was taken.
        view: how.
        node: that of the whole.
    """
    while not _related(part, whole, view, node):
        node = whole._node
        part._node = view.of(node)


def _related(part: Any, whole: Any, view: View, node: Node) -> bool:
    with looking:
        if whole._node is not node:
            return False
        line: Family = [(whole, (view,))]
        if whole._above is not None:
            line[:0] = [(array, (*path, view)) for array, path in _alive(whole._above)]
        mine = ref(part)
        above: Relations = []
        part._above = above
        for array, path in line:
            above.append((_link(array, line), path))
            array._below.append((mine, path))
        return True


def _link(outer: Any, line: Family) -> Callable[[], Any]:
    """How an array knows one that it was taken of.

    If another one was taken of that too, which is none of those between them, they share elements
    also when nobody else has the outer one any more. So the later of the two keeps it.
    """
    below: Relations | None = outer._below
    if below is None:
        outer._below = []
        return ref(outer)
    while below and below[-1][0]() is None:
        below.pop()
    if not below:
        return ref(outer)
    if len(below) >= _MANY and not len(below) & (len(below) - 1):
        below[:] = [(inner, path) for inner, path in below if inner() is not None]
    for inner, _ in reversed(below):
        other = inner()
        if other is not None and not any([other is each for each, _ in line]):
            return _Kept(outer)
    return ref(outer)


def write(array: Any, change: Callable[[Any], None], seen: Node | None = None) -> bool:
    """Change the elements of an array, and those of all that it shares them with.

    Args:
        array: the array.
        change: changes the `_node` of what it is given.
        seen: the node that the array has to have; None for any.

    Returns:
        Whether it has that node. Nothing is changed otherwise.
    """
    if array._node.type.team is not None:
        _write_together(array, change)
        return True
    everyone: Family = []
    try:
        with looking:
            whole, path, parts = _family(array)
            if seen is not None and array._node is not seen:
                return False
            holder = NodeHolder(whole._node)
            part = holder if whole is array else NodeHolder(array._node)
            everyone = [(whole, ()), *parts]
            # So that nobody gets the elements now, and what only the family has is its own.
            for each, _ in everyone:
                each._node = Written(each._node.type)
        change(part)
        if part is not holder:
            _put(holder, path, part._node)
    finally:
        with looking:
            for each, way in everyone:
                _say(each, _along(way, holder._node))
            wake()
    return True


def replaced(array: Any, seen: Node, node: Node) -> bool:
    """Whether an array has a node, which becomes another one then, for all that share it."""
    with looking:
        if array._above is None and array._below is None and not isinstance(seen, Written):
            if array._node is not seen:
                return False
            array._node = node
            return True
    return write(array, partial(_replace, node), seen)


def _replace(node: Node, holder: Any) -> None:
    holder._node = node


def _say(array: Any, node: Node) -> None:
    stand_in = array._node
    if isinstance(stand_in, Written):
        array._node = node
        stand_in.done(node)


def _along(path: Path, node: Node) -> Node:
    for view in path:
        node = view.of(node)
    return node


def _write_together(array: Any, change: Callable[[Any], None]) -> None:
    """The same for arrays of teams, which one thread of each process writes."""
    whole, path, parts = _family(array)
    if whole is array:
        change(array)
    else:
        part = NodeHolder(array._node)
        change(part)
        _put(whole, path, part._node)
    for each, way in parts:
        each._node = _along(way, whole._node)


def _family(array: Any) -> tuple[Any, Path, Family]:
    """The outermost array, the way from there, and all that were taken of it, not being written."""
    with looking:
        while True:
            whole, path = _outermost(array)
            parts = [*_alive(whole._below)]
            written = writers([whole._node, *[part._node for part, _ in parts]])
            if not written:
                return whole, path, parts
            wait(written)


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


def _put(holder: Any, path: Path, part: Node) -> None:
    view, *rest = path
    if rest:
        inner = NodeHolder(view.of(holder._node))
        _put(inner, tuple(rest), part)
        part = inner._node
    view.put(holder, part)
