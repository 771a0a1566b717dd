"""Indexed assignment, in place or copy-on-write; buffer ownership."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import (
    Buffer,
    Node,
    leaf,
    leaf_like,
    no_memory,
    record,
    record_call,
    teams,
    tracing,
    type_of,
)
from tecomp.array.graph.views import moved
from tecomp.array.indexing.data_dependent import copied, copy_to, put
from tecomp.array.indexing.getitem import counted, located, spans_of, view_at
from tecomp.array.indexing.keys import At, By, Entry, Mask, New, Span, axes_of, entries_of, is_basic
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.elementwise import Cast, Where
from tecomp.ptensor.operations.manipulation import Broadcast, InsertSlice, Reshape, Take
from tecomp.ptensor.types import BOOLEAN, COMPLEX, INTEGERS, PTensorType, Shape, check_together


class Borrowed:
    """What keeps memory of others alive, at the bottom of all views of it.

    Attributes:
        source: the array that has it.
        read_only: whether its owner refuses writes, so that assignment is refused too.
    """

    __slots__ = ("__array_interface__", "read_only", "source")

    def __init__(self, source: Buffer) -> None:
        place = source.__array_interface__
        self.source = source
        self.read_only = not source.flags.writeable
        self.__array_interface__ = {**place, "data": (place["data"][0], True)}


def borrow(source: Buffer) -> Buffer:
    """A view of memory of others.

    >>> borrow(np.ones(3)).flags.writeable
    False
    """
    stored: np.dtype[Any] = source.dtype
    if stored.kind == "V":  # no letter of NumPy's stands for bfloat16
        return np.asarray(Borrowed(source.view(f"u{stored.itemsize}"))).view(stored)
    return np.asarray(Borrowed(source))


def is_constant(data: Buffer) -> bool:
    """Return whether memory cannot be written through any known reference.

    All arrays from a view to the owner of its memory must be read-only, and so must the object
    that provides the memory of the owner: `bytes`, or a file that is mapped for reading.

    >>> x = np.ones(3)
    >>> view = np.broadcast_to(x, (2, 3))
    >>> view.flags.writeable, is_constant(view), is_constant(np.frombuffer(b"abc", "uint8"))
    (False, False, True)
    """
    owner: Any = data
    while True:
        if isinstance(owner, np.ndarray):
            if owner.flags.writeable:
                return False
            if owner.base is None:
                return True
            owner = owner.base
        elif isinstance(owner, Borrowed):
            owner = owner.source
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            return _is_constant_object(owner)


def _is_constant_object(owner: object) -> bool:
    try:
        with memoryview(owner) as view:  # type: ignore[arg-type]
            return view.readonly
    except TypeError:
        return False


def copy_as_stored(data: Buffer) -> Buffer:
    """Copy elements in the order in which they are stored.

    Elements that share addresses, as those of a broadcast array do, are copied once; the copy is
    read-only then.
    """
    try:
        if data.flags.forc:
            return np.array(data, order="K")
        low, high = byte_bounds(data)
        if high - low >= data.nbytes:
            return np.array(data, order="K")
        step, count = data.itemsize, (high - low) // data.itemsize
        first = data[tuple([slice(None, None, -1 if n < 0 else 1) for n in data.strides])]
        stored = as_strided(first, (count,), (step,)).copy()
    except MemoryError:
        raise no_memory(data.shape, data.dtype) from None
    start = (data.__array_interface__["data"][0] - low) // step
    return as_strided(stored[start:], data.shape, data.strides, writeable=False)


def owner_of(data: Buffer) -> Buffer:
    """The array that has the memory of a view, or that borrows it."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def is_borrowed(data: Buffer) -> bool:
    """Whether these elements are in memory of others."""
    return isinstance(owner_of(data).base, Borrowed)


def is_read_only(data: Buffer) -> bool:
    """Whether these elements are in memory whose owner refuses writes."""
    base = owner_of(data).base
    return isinstance(base, Borrowed) and base.read_only


class NodeHolder:
    """What has a node and no more."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node


class PartHolder(NodeHolder):
    """The node of a view, which is written in the memory of the whole if that is possible.

    Attributes:
        whole: holder of the node of the whole.
        path: the views from the whole to this one, outermost first.
        type: type of the view.
        memory: the memory of the view, once it can be written.
    """

    __slots__ = ("memory", "path", "type", "whole")

    def __init__(self, whole: NodeHolder, path: Sequence[Any], node: Node) -> None:
        super().__init__(node)
        self.whole = whole
        self.path = path
        self.type = node.type
        self.memory: Buffer | None = None

    def within(self, data: Buffer) -> Buffer | None:
        """Return the view of memory of the whole; None if strides cannot address the elements."""
        found: Buffer | None = data
        for view in self.path:
            if found is not None:
                found = view.within(found)
        return found

    def of(self, node: Node) -> Node:
        """Return the view of a node of the whole."""
        for view in self.path:
            node = view.of(node)
        return node

    def own(self) -> Buffer | None:
        """Return the memory of the view in that of the whole; None if there is none."""
        if self.memory is None and self.whole._node.data is not None:
            # Only a node that is stored elsewhere is not a reference to the memory of the whole.
            is_apart = self.within(self.whole._node.data) is None
            node = self._node if is_apart else None
            del self._node
            self.memory = self.within(own_memory(self.whole))
            if self.memory is None:
                self._node = node or self.of(self.whole._node)
            else:
                self._node = leaf(self.memory, self.type)
        return self.memory


def is_alone(holder: Any) -> bool:
    """Whether nobody but an array sees its elements, which are there.

    Others are arrays of the same node, operations that were recorded on it, views of its memory,
    and what others keep of it.

    Args:
        holder: what has the node as its `_node`.
    """
    return _references(holder) == (_OF_VIEW if holder._node.data.base is not None else _OF_OWNER)


def _references(holder: Any) -> tuple[int, int, int]:
    """How many references there are to a node, to its array, and to the array with the memory."""
    node: Node = holder._node
    data = node.data
    assert data is not None
    return getrefcount(node), getrefcount(data), getrefcount(owner_of(data))


_OF_OWNER = _references(NodeHolder(leaf(np.empty(2), PTensorType((2,), "float64"))))

_OF_VIEW = _references(NodeHolder(leaf(np.empty(4)[::2], PTensorType((2,), "float64"))))
"""The references that the question itself takes."""


WHERE = "x[...] = value"


class MutableNodeHolder(Protocol):
    """What has a node, and another one after it is written."""

    _node: Node


def assign(holder: MutableNodeHolder, key: Any, value: Node) -> None:
    """Put other elements in place of those at an index.

    Nothing is written before everything is known to fit.

    Args:
        holder: the array; the only one that sees what is written.
        key: what stands in the brackets; arrays are nodes.
        value: broadcasts to what the index says.

    Raises:
        ArrayIndexError: there is no such element, or this is no index.
        ArrayTypeError: the array cannot hold such a value.
        ArrayValueError: shapes do not fit, or the memory is read-only.
        DeviceMismatchError: If the arrays are on different devices.
    """
    # No name of this frame stands for the node: who else has it is counted.
    _check(holder._node, value)
    if value.type.dtype != holder._node.type.dtype:
        value = record(Cast(holder._node.type.dtype), value)
    is_alone = holder._node.type.team is None and not tracing.depth
    if is_alone and _is_view(data_of(holder._node), key, value.type.shape):
        given = data_of(value)
        copy_to(_place(own_memory(holder), key), given)
        return
    entries = entries_of(key, holder._node.type, WHERE)
    if is_basic(entries):
        holder._node = _inserted(holder._node, entries, value)
    elif _is_mask_alone(entries, holder._node.type.shape) and value.type.size == 1:
        holder._node = _masked(holder._node, entries, value)
    elif tracing.depth:
        holder._node = _assigned_later(holder._node, key, value)
    elif holder._node.type.team is not None:
        holder._node = _put_together(holder._node, entries, value)
    else:
        _check_indices(holder._node, entries)
        where = tuple([_given(entry) for entry in entries])
        given = data_of(value)
        put(own_memory(holder), where, given, WHERE)


def _assigned_later(node: Node, key: Any, value: Node) -> Node:
    """Record an assignment to places that arrays in an index say; it checks them when it runs."""
    parts = key if isinstance(key, tuple) else (key,)
    places = [k for k, part in enumerate(parts) if isinstance(part, Node)]

    def run(whole: Node, given: Node, *indices: Node) -> tuple[Node, ...]:
        own = dict(zip(places, indices, strict=True))
        holder = NodeHolder(whole)
        assign(holder, tuple([own.get(k, part) for k, part in enumerate(parts)]), given)
        return (holder._node,)

    (result,) = record_call(run, [node.type], node, value, *[parts[k] for k in places])
    return result


def _put_together(node: Node, entries: list[Entry], value: Node) -> Node:
    """An array of a team: elements are sent to where they belong."""
    part, indices, axes, place = located(node, entries, WHERE)
    op = Take(axes, place)
    shape = type_of(op, part.type, *[index.type for index in indices]).shape
    _check_shape(value.type.shape, shape)
    made = teams().put(op, part, moved(Broadcast(shape), value), *indices)
    spans = spans_of(entries, node.type.shape)
    counts = tuple([count for _, _, count in spans])
    return record(InsertSlice(spans), node, moved(Reshape(counts), made))


def own_memory(holder: MutableNodeHolder) -> Buffer:
    """Return memory that no other array reads: that of the array, or a copy that replaces it."""
    if isinstance(holder, PartHolder) and (memory := holder.own()) is not None:
        return memory
    data_of(holder._node)
    is_own = holder._node.data is not None and holder._node.data.flags.writeable
    if not (is_own and is_alone(holder)):
        holder._node = leaf_like(holder._node, copied(data_of(holder._node)))
    result = holder._node.data
    assert result is not None
    return result


def _check(node: Node, value: Node) -> None:
    check_together([node.type, value.type], WHERE)
    if node.data is not None and is_read_only(node.data):
        raise ArrayValueError(
            f"{WHERE}: x is made of memory that its owner made read-only; copy it first, "
            "x = xp.asarray(x, copy=True)"
        )
    if _width(value.type) > _width(node.type):
        raise ArrayTypeError(
            f"{WHERE}: the value is {value.type}, which no {node.type.dtype} of x can hold; "
            f"convert it, xp.astype(value, x.dtype), or make x of {value.type.dtype}"
        )


def _width(type: PTensorType) -> int:
    """Which numbers there are: truth, integers, real and complex ones."""
    kinds = (BOOLEAN, INTEGERS, (), COMPLEX)
    return next((k for k, names in enumerate(kinds) if type.dtype in names), 2)


def _is_view(data: Buffer, key: Any, shape: Shape) -> bool:
    """Whether an index says a view, and a value of that shape is right for it."""
    view = view_at(data, key)
    if view is None:
        return False
    _check_shape(shape, view.shape)
    return True


def _check_shape(shape: Shape, target: Shape) -> None:
    fits = len(shape) <= len(target) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))
    if not fits:
        raise ArrayValueError(
            f"{WHERE}: the value has shape {shape}, and the index says elements of shape "
            f"{target}; give a value that broadcasts to it",
            kind="array-shapes",
        )


def _place(data: Buffer, key: Any) -> Buffer:
    view = view_at(data, key)
    assert view is not None
    return view


def _inserted(node: Node, entries: list[Entry], value: Node) -> Node:
    """Recorded, where there are no elements yet to be written."""
    spans = spans_of(entries, node.type.shape)
    counts = tuple([count for _, _, count in spans])
    target = tuple([
        1 if isinstance(entry, New) else entry.count
        for entry in entries if isinstance(entry, New | Span)
    ])
    _check_shape(value.type.shape, target)
    part = moved(Reshape(counts), moved(Broadcast(target), value))
    return record(InsertSlice(spans), node, part)


def _is_mask_alone(entries: list[Entry], shape: Shape) -> bool:
    """Whether an index is a mask, and all of the axes that it has not."""
    masks = [entry for entry in entries if isinstance(entry, Mask)]
    return (
        len(masks) == 1
        and all(isinstance(entry, Mask | Span) for entry in entries)
        and spans_of(entries, shape) == tuple([(0, 1, extent) for extent in shape])
    )


def _masked(node: Node, entries: list[Entry], value: Node) -> Node:
    (at,) = [k for k, entry in enumerate(entries) if isinstance(entry, Mask)]
    mask = entries[at]
    assert isinstance(mask, Mask)
    behind = len(entries) - at - 1
    whole = moved(Reshape((*mask.node.type.shape, *(1,) * behind)), mask.node)
    check_together([node.type, whole.type], WHERE)
    return record(Where(), whole, moved(Reshape(()), value), node)


def _check_indices(node: Node, entries: list[Entry]) -> None:
    """Refuse indices that are out of bounds, and arrays that live elsewhere."""
    axis = 0
    for entry in entries:
        if isinstance(entry, By | Mask):
            check_together([node.type, entry.node.type], WHERE)
        if isinstance(entry, By):
            counted(entry.node, node.type.shape[axis], axis, WHERE)
        axis += axes_of(entry)


def _given(entry: Entry) -> Any:
    """An entry as NumPy takes it."""
    if isinstance(entry, By | Mask):
        return data_of(entry.node)
    if isinstance(entry, At):
        return entry.index
    if isinstance(entry, New):
        return None
    end = entry.start + entry.count * entry.step
    return slice(entry.start, end if end >= 0 else None, entry.step)
