"""Indexed assignment, in place or copy-on-write, and ownership of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import (
    Buffer,
    Node,
    distributed_hooks,
    leaf_like,
    materialized_node,
    no_memory,
    record,
    record_call,
    tracing,
    type_of,
)
from tecomp.array.graph.pending import COUNTS_ARE_EXACT
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.data_dependent import copy_row_major, copy_to, write_at
from tecomp.array.indexing.getitem import (
    normalize_indices,
    resolve_take_arguments,
    spans_of,
    view_at,
)
from tecomp.array.indexing.keys import (
    BooleanMaskKey,
    Entry,
    IntegerArrayKey,
    IntegerKey,
    NewAxisKey,
    SliceKey,
    axes_of,
    entries_of,
    is_basic,
)
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.elementwise import CastOp, WhereOp
from tecomp.ptensor.operations.manipulation import BroadcastOp, InsertSlice, Reshape, Take
from tecomp.ptensor.types import (
    BOOLEAN,
    COMPLEX,
    INTEGERS,
    PTensorType,
    Shape,
    check_same_device_and_team,
)


class ForeignBuffer:
    """Base object of borrowed memory, which keeps the owner alive for all views.

    Attributes:
        source: NumPy array that has the memory.
        read_only: Whether the owner forbids writes; assignments to the array are then rejected too.
    """

    __slots__ = ("__array_interface__", "read_only", "source")

    def __init__(self, source: Buffer) -> None:
        interface = source.__array_interface__
        self.source = source
        self.read_only = not source.flags.writeable
        self.__array_interface__ = {**interface, "data": (interface["data"][0], True)}


def borrow(source: Buffer) -> Buffer:
    """Return a read-only view of memory of another owner.

    >>> borrow(np.ones(3)).flags.writeable
    False
    """
    stored: np.dtype[Any] = source.dtype
    if stored.kind == "V":  # NumPy has no type code for bfloat16
        return np.asarray(ForeignBuffer(source.view(f"u{stored.itemsize}"))).view(stored)
    return np.asarray(ForeignBuffer(source))


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
        elif isinstance(owner, ForeignBuffer):
            owner = owner.source
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            try:
                with memoryview(owner) as view:
                    return view.readonly
            except TypeError:
                return False


def copy_as_stored(data: Buffer) -> Buffer:
    """Copy elements in the order in which they are stored.

    Elements that share addresses, such as the elements of a broadcast array, are copied once; the
    copy is then read-only.
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
    """Return the array at the base of all views, which owns or borrows the memory."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def is_borrowed(data: Buffer) -> bool:
    """Return whether elements are in borrowed memory."""
    return isinstance(owner_of(data).base, ForeignBuffer)


def is_read_only(data: Buffer) -> bool:
    """Return whether elements are in memory whose owner forbids writes."""
    base = owner_of(data).base
    return isinstance(base, ForeignBuffer) and base.read_only


class NodeHolder:
    """Minimal object with a `_node`."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node


class PartHolder(NodeHolder):
    """Node of a view that is written in the memory of the whole array if possible.

    Attributes:
        base_holder: Holder of the node of the whole array.
        path: Views from the whole array to this view, outermost first.
        type: Type of the view.
        memory: Memory of the view, once it is writable.
    """

    __slots__ = ("base_holder", "memory", "path", "type")

    def __init__(self, base: NodeHolder, path: Sequence[Any], node: Node) -> None:
        super().__init__(node)
        self.base_holder = base
        self.path = path
        self.type = node.type
        self.memory: Buffer | None = None

    def within(self, data: Buffer) -> Buffer | None:
        """Return the view of the whole memory; None if strides cannot address the elements."""
        found: Buffer | None = data
        for view in self.path:
            if found is not None:
                found = view.within(found)
        return found

    def of(self, node: Node) -> Node:
        """Return the view of a node of the whole array."""
        for view in self.path:
            node = view.of(node)
        return node

    def view_memory(self) -> Buffer | None:
        """Return the memory of the view in the whole memory; None if it is not addressable."""
        if self.memory is None and self.base_holder._node.data is not None:
            # A node with a view of this memory would count as a reference to the whole array.
            is_unaddressable = self.within(self.base_holder._node.data) is None
            node = self._node if is_unaddressable else None
            del self._node
            self.memory = self.within(private_memory(self.base_holder))
            if self.memory is None:
                self._node = node or self.of(self.base_holder._node)
            else:
                self._node = materialized_node(self.memory, self.type)
        return self.memory


def is_uniquely_referenced(holder: Any) -> bool:
    """Return whether the computed elements of an array are referenced by this array only.

    Other references are arrays of the same node, operations recorded on the node, views of its
    memory, and NumPy arrays that were exported.

    Args:
        holder: Object with the node as its `_node`.
    """
    is_view = holder._node.data.base is not None
    return _references(holder) == (_VIEW_COUNTS if is_view else _OWNER_COUNTS)


def _references(holder: Any) -> tuple[int, int, int]:
    """Return the reference counts of a node, its NumPy array, and the owner of the memory."""
    node: Node = holder._node
    data = node.data
    assert data is not None
    return getrefcount(node), getrefcount(data), getrefcount(owner_of(data))


def _references_of_one(size: int, step: int) -> tuple[int, int, int]:
    """Return the reference counts of an array without other owners; no counts equal zeros."""
    if not COUNTS_ARE_EXACT:
        return 0, 0, 0
    # A local variable would count as an owner.
    return _references(NodeHolder(
        materialized_node(np.empty(size)[::step], PTensorType((2,), "float64"))
        if step > 1 else materialized_node(np.empty(size), PTensorType((2,), "float64"))
    ))


_OWNER_COUNTS, _VIEW_COUNTS = _references_of_one(2, 1), _references_of_one(4, 2)
"""Reference counts of an array with memory of its own, and of a view, without other owners."""


WHERE = "x[...] = value"


class MutableNodeHolder(Protocol):
    """Object with a node that a write replaces."""

    _node: Node


def assign(holder: MutableNodeHolder, key: Any, value: Node) -> None:
    """Replace the elements at an index.

    All checks run before anything is written.

    Args:
        holder: Array that is written. No other array sees the change.
        key: Index of the subscript, with nodes in place of arrays.
        value: Value, broadcast to the indexed elements.

    Raises:
        ArrayIndexError: If an index is out of bounds or has an unsupported type.
        ArrayTypeError: If the dtype of the array cannot represent the value.
        ArrayValueError: If the shapes do not match, or the memory is read-only.
        DeviceMismatchError: If the arrays are on different devices.
    """
    # Do not bind the node to a local variable: that would count as another reference.
    _check_operands(holder._node, value)
    if value.type.dtype != holder._node.type.dtype:
        value = record(CastOp(holder._node.type.dtype), value)
    is_local = holder._node.type.team is None and not tracing.depth
    if is_local and _is_view(data_of(holder._node), key, value.type.shape):
        data = data_of(value)
        copy_to(_target_view(private_memory(holder), key), data)
        return
    entries = entries_of(key, holder._node.type, WHERE)
    if is_basic(entries):
        holder._node = _record_slice_assignment(holder._node, entries, value)
    elif _is_single_mask(entries, holder._node.type.shape) and value.type.size == 1:
        holder._node = _record_masked_assignment(holder._node, entries, value)
    elif tracing.depth:
        holder._node = _record_indexed_assignment(holder._node, key, value)
    elif holder._node.type.team is not None:
        holder._node = _scatter_to_owners(holder._node, entries, value)
    else:
        _check_indices(holder._node, entries)
        where = tuple([_numpy_entry(entry) for entry in entries])
        data = data_of(value)
        write_at(private_memory(holder), where, data, WHERE)


def _record_indexed_assignment(node: Node, key: Any, value: Node) -> Node:
    """Record an assignment to array indices; the indices are checked at replay."""
    parts = key if isinstance(key, tuple) else (key,)
    positions = tuple([k for k, part in enumerate(parts) if isinstance(part, Node)])
    indices = [parts[k] for k in positions]
    assignment = IndexedAssignment(
        tuple([None if k in positions else part for k, part in enumerate(parts)]), positions)
    (result,) = record_call(assignment.run, assignment, [node.type], node, value, *indices)
    return result


class IndexedAssignment(NamedTuple):
    """Assignment to index arrays, without its operands: target, value and index arrays.

    Attributes:
        parts: Key of the subscript.
        positions: Positions of the index arrays in the key.
    """

    parts: tuple[Any, ...]
    positions: tuple[int, ...]

    @property
    def where(self) -> str:
        """Name for error messages."""
        return WHERE

    def key(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """Return the key with index arrays at their positions."""
        by_position = dict(zip(self.positions, indices, strict=True))
        return tuple([by_position.get(k, part) for k, part in enumerate(self.parts)])

    def run(self, target: Node, value: Node, *indices: Node) -> tuple[Node, ...]:
        """Return the target with the elements at the indices replaced."""
        holder = NodeHolder(target)
        assign(holder, self.key(indices), value)
        return (holder._node,)


def _scatter_to_owners(node: Node, entries: list[Entry], value: Node) -> Node:
    """Assign to a distributed array by sending the elements to their owners."""
    part, indices, axes, position = resolve_take_arguments(node, entries, WHERE)
    op = Take(axes, position)
    shape = type_of(op, part.type, *[index.type for index in indices]).shape
    _check_shape(value.type.shape, shape)
    updated = distributed_hooks().put(op, part, apply_view(BroadcastOp(shape), value), *indices)
    spans = spans_of(entries, node.type.shape)
    counts = tuple([count for _, _, count in spans])
    return record(InsertSlice(spans), node, apply_view(Reshape(counts), updated))


def private_memory(holder: MutableNodeHolder) -> Buffer:
    """Return memory that no other array reads: the memory of the array, or a copy in its place."""
    if isinstance(holder, PartHolder) and (memory := holder.view_memory()) is not None:
        return memory
    data_of(holder._node)
    is_writable = holder._node.data is not None and holder._node.data.flags.writeable
    if not (is_writable and is_uniquely_referenced(holder)):
        holder._node = leaf_like(holder._node, copy_row_major(data_of(holder._node)))
    result = holder._node.data
    assert result is not None
    return result


def _check_operands(node: Node, value: Node) -> None:
    check_same_device_and_team([node.type, value.type], WHERE)
    if node.data is not None and is_read_only(node.data):
        raise ArrayValueError(
            "{where}: x is backed by read-only memory; copy it first, x = xp.asarray(x, copy=True)",
            where=WHERE,
        )
    if _kind_rank(value.type) > _kind_rank(node.type):
        raise ArrayTypeError(
            "{where}: cannot store a value of type {type} in x of dtype {dtype}; convert the "
            "value, xp.astype(value, x.dtype), or create x with dtype {type_dtype}",
            where=WHERE, type=value.type, dtype=node.type.dtype, type_dtype=value.type.dtype,
        )


def _kind_rank(ptype: PTensorType) -> int:
    """Return the rank of the dtype kind: boolean, integer, real, complex."""
    kinds = (BOOLEAN, INTEGERS, (), COMPLEX)
    return next((k for k, names in enumerate(kinds) if ptype.dtype in names), 2)


def _is_view(data: Buffer, key: Any, shape: Shape) -> bool:
    """Return whether an index selects a view to which a value of the shape can be assigned."""
    view = view_at(data, key)
    if view is None:
        return False
    _check_shape(shape, view.shape)
    return True


def _check_shape(shape: Shape, target: Shape) -> None:
    broadcasts = len(shape) <= len(target) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))
    if not broadcasts:
        raise ArrayValueError(
            "{where}: a value of shape {shape} does not broadcast to the indexed shape {target}",
            kind="array-shapes", where=WHERE, shape=shape, target=target,
        )


def _target_view(data: Buffer, key: Any) -> Buffer:
    view = view_at(data, key)
    assert view is not None
    return view


def _record_slice_assignment(node: Node, entries: list[Entry], value: Node) -> Node:
    """Record an assignment to slices, for arrays without elements to write."""
    spans = spans_of(entries, node.type.shape)
    counts = tuple([count for _, _, count in spans])
    target = tuple([
        1 if isinstance(entry, NewAxisKey) else entry.count
        for entry in entries if isinstance(entry, NewAxisKey | SliceKey)
    ])
    _check_shape(value.type.shape, target)
    part = apply_view(Reshape(counts), apply_view(BroadcastOp(target), value))
    return record(InsertSlice(spans), node, part)


def _is_single_mask(entries: list[Entry], shape: Shape) -> bool:
    """Return whether an index is one mask with full slices of all other axes."""
    masks = [entry for entry in entries if isinstance(entry, BooleanMaskKey)]
    return (
        len(masks) == 1
        and all(isinstance(entry, BooleanMaskKey | SliceKey) for entry in entries)
        and spans_of(entries, shape) == tuple([(0, 1, extent) for extent in shape])
    )


def _record_masked_assignment(node: Node, entries: list[Entry], value: Node) -> Node:
    (position,) = [k for k, entry in enumerate(entries) if isinstance(entry, BooleanMaskKey)]
    mask = entries[position]
    assert isinstance(mask, BooleanMaskKey)
    trailing = len(entries) - position - 1
    full_mask = apply_view(Reshape((*mask.node.type.shape, *(1,) * trailing)), mask.node)
    check_same_device_and_team([node.type, full_mask.type], WHERE)
    return record(WhereOp(), full_mask, apply_view(Reshape(()), value), node)


def _check_indices(node: Node, entries: list[Entry]) -> None:
    """Reject indices that are out of bounds and arrays on other devices."""
    axis = 0
    for entry in entries:
        if isinstance(entry, IntegerArrayKey | BooleanMaskKey):
            check_same_device_and_team([node.type, entry.node.type], WHERE)
        if isinstance(entry, IntegerArrayKey):
            normalize_indices(entry.node, node.type.shape[axis], axis, WHERE)
        axis += axes_of(entry)


def _numpy_entry(entry: Entry) -> Any:
    """Return an entry in the form that NumPy indexing accepts."""
    if isinstance(entry, IntegerArrayKey | BooleanMaskKey):
        return data_of(entry.node)
    if isinstance(entry, IntegerKey):
        return entry.index
    if isinstance(entry, NewAxisKey):
        return None
    end = entry.start + entry.count * entry.step
    return slice(entry.start, end if end >= 0 else None, entry.step)
