"""Parse the index of `x[...]` into entries: one for each axis, and new axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Node, materialized_node, record, tracing
from tecomp.errors import ArrayIndexError
from tecomp.ptensor.devices import default_dtype, is_apart
from tecomp.ptensor.operations.manipulation import BroadcastOp
from tecomp.ptensor.types import BOOLEAN, INTEGERS, PTensorType, Shape, numpy_dtype

FORMS = "use integers, slices, `...`, None, or integer or boolean arrays of this namespace"


@dataclass(frozen=True, slots=True)
class SliceKey:
    """Range of indices of an axis.

    Attributes:
        start: First index.
        step: Distance between adjacent indices.
        count: Number of indices.
    """

    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class IntegerKey:
    """Single index of an axis, nonnegative."""

    index: int


@dataclass(frozen=True, slots=True)
class NewAxisKey:
    """New axis of size 1."""


@dataclass(frozen=True, slots=True)
class IntegerArrayKey:
    """Axis indexed by an integer array."""

    node: Node


@dataclass(frozen=True, slots=True)
class BooleanMaskKey:
    """Axes indexed by a boolean mask; a mask of rank 0 covers no axis."""

    node: Node


Entry: TypeAlias = SliceKey | IntegerKey | NewAxisKey | IntegerArrayKey | BooleanMaskKey


_NUMBERS = (int, type(None))


def freeze_key(key: Any, array_type: type[Any], ptype: PTensorType) -> Any:
    """Return an index with nodes in place of arrays and Python integers in place of index objects.

    A view stores its index, so the index must not change when an object in it is modified.

    Args:
        key: Index of `x[...]`.
        array_type: Class of arrays, with their node as the attribute `_node`.
        ptype: Type of the indexed array. Lists and NumPy arrays become arrays on its device.
    """
    kind = key.__class__
    if kind is slice:
        bounds = (key.start, key.stop, key.step)
        if all([part.__class__ in _NUMBERS for part in bounds]):
            return key
        return slice(*[None if part is None else _integer(part) for part in bounds])
    if kind is int or key is None or key is Ellipsis:
        return key
    if isinstance(key, array_type):
        return key._node
    if isinstance(key, tuple):
        return tuple([freeze_key(part, array_type, ptype) for part in key])
    if isinstance(key, list) or (isinstance(key, np.ndarray) and key.ndim):
        return _index_of(key, ptype)
    return key if isinstance(key, bool | np.bool) else _integer(key)


def _index_of(values: Any, ptype: PTensorType) -> Any:
    """Return a list or a NumPy array as the node of an index array, if it has a dtype of one."""
    if ptype.team is not None:
        return values
    try:
        data = np.array(values, order="C")
    except (TypeError, ValueError):  # not a rectangle, or not of numbers
        return values
    if not data.size and isinstance(values, list):
        data = data.astype("int64")
    if data.dtype.name not in (*INTEGERS, *BOOLEAN):
        return values
    if data.dtype.kind in "iu" and is_apart(ptype.device):
        data = data.astype(numpy_dtype(default_dtype("int64", ptype.device)))
    return materialized_node(data, ptype.like(data.shape, data.dtype.name))


def _integer(value: Any) -> Any:
    """Return the integer value of an object with `__index__`; otherwise, the object itself."""
    try:
        return index(value)
    except TypeError:
        return value


def entries_of(key: Any, ptype: PTensorType, where: str) -> list[Entry]:
    """Return the entries of an index for all axes of an array.

    Args:
        key: Index of the subscript, with nodes in place of arrays.
        ptype: Type of the array.
        where: Operation name for error messages.

    Raises:
        ArrayIndexError: If there are too many indices, an index is out of bounds or has an
            unsupported type, or a mask does not match the shape.
    """
    shape = ptype.shape
    items = key if isinstance(key, tuple) else (key,)
    parts = [_as_mask(part, ptype) if isinstance(part, bool | np.bool) else part for part in items]
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise ArrayIndexError(
            "{where}: the index contains {dot_count} ellipses (`...`); use at most one",
            where=where, dot_count=len(dots),
        )
    num_indexed = sum(_axes_taken(part) for part in parts)
    if num_indexed > len(shape):
        raise ArrayIndexError(
            "{where}: {index_count} axes are indexed, but shape {shape} has {rank} axes; use at "
            "most one index per axis",
            where=where, index_count=num_indexed, shape=shape, rank=len(shape),
        )
    rest = [slice(None)] * (len(shape) - num_indexed)
    position = dots[0] if dots else len(parts)
    parts[position : position + 1] = rest
    result: list[Entry] = []
    axis = 0
    for part in parts:
        result.append(_entry(part, axis, shape, where))
        axis += _axes_taken(part)
    return result


def _as_mask(value: bool | np.bool, ptype: PTensorType) -> BooleanMaskKey:
    return BooleanMaskKey(materialized_node(np.array(value), ptype.like((), "bool")))


def _axes_taken(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, BooleanMaskKey):
        return 0
    if isinstance(part, Node) and part.type.dtype == "bool":
        return part.type.rank
    return 1


def _entry(part: Any, axis: int, shape: Shape, where: str) -> Entry:
    if part is None:
        return NewAxisKey()
    if isinstance(part, slice):
        extent = shape[axis]
        try:
            start, stop, step = part.indices(extent)
        except (TypeError, ValueError) as error:
            raise ArrayIndexError(
                "{where}: {part!r} is not a valid slice: {reason}; use integers and a nonzero step",
                where=where, part=part, reason=error,
            ) from None
        count = len(range(start, stop, step))
        return SliceKey(start, step, count) if count else SliceKey(0, 1, 0)
    if isinstance(part, BooleanMaskKey):
        return part
    if isinstance(part, Node):
        return _array(part, axis, shape, where)
    try:
        number = index(part)
    except TypeError:
        raise ArrayIndexError(
            "{where}: {part!r} ({type}) is not a valid index; {forms}",
            where=where, part=part, type=type(part).__name__, forms=FORMS,
        ) from None
    return IntegerKey(check_bounds(number, axis, shape[axis], where))


def check_bounds(number: int, axis: int, extent: int, where: str) -> int:
    """Return an index as an index from the start of the axis.

    Raises:
        ArrayIndexError: If the index is out of bounds.
    """
    if not -extent <= number < extent:
        raise out_of_bounds(number, axis, extent, where)
    return number + extent if number < 0 else number


def out_of_bounds(number: int, axis: int, extent: int, where: str) -> ArrayIndexError:
    """Return the error for an index that is out of bounds."""
    inside = f"use an index from {-extent} to {extent - 1}" if extent else "the axis is empty"
    return ArrayIndexError(
        "{where}: index {number} is out of bounds for axis {axis} with size {extent}; {inside}",
        where=where, number=number, axis=axis, extent=extent, inside=inside,
    )


def _array(node: Node, axis: int, shape: Shape, where: str) -> Entry:
    ptype = node.type
    if ptype.dtype in INTEGERS:
        if ptype.shape or tracing.depth:
            return IntegerArrayKey(node)
        return IntegerKey(check_bounds(int(data_of(node)[()]), axis, shape[axis], where))
    if ptype.dtype != "bool":
        raise ArrayIndexError(
            "{where}: cannot index with an array of dtype {dtype}; {forms}",
            where=where, dtype=ptype.dtype, forms=FORMS,
        )
    sizes = shape[axis : axis + ptype.rank]
    if sizes == ptype.shape:
        return BooleanMaskKey(node)
    if all([extent in (0, size) for extent, size in zip(ptype.shape, sizes, strict=True)]):
        # A mask extent of 0 matches any axis and selects no element, like an all-False mask.
        return BooleanMaskKey(
            record(BroadcastOp(sizes), materialized_node(np.array(False), ptype.like(()))))
    raise ArrayIndexError(
        "{where}: a mask of shape {shape} does not match the indexed axes of shape {axes_shape}; "
        "use a mask of that shape",
        where=where, shape=ptype.shape, axes_shape=sizes,
    )


def is_basic(entries: Sequence[Entry]) -> bool:
    """Return whether an index is basic: it does not depend on array values."""
    return all(isinstance(entry, SliceKey | IntegerKey | NewAxisKey) for entry in entries)


def axes_of(entry: Entry) -> int:
    """Return the number of array axes that an entry covers."""
    if isinstance(entry, BooleanMaskKey):
        return entry.node.type.rank
    return 0 if isinstance(entry, NewAxisKey) else 1
