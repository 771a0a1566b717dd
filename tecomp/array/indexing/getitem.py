"""Indexing: basic and advanced reads, and boolean masks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tecomp.array.graph.evaluate import check_recordable, data_of
from tecomp.array.graph.node import (
    Buffer,
    Node,
    distributed_hooks,
    materialized_node,
    record,
    tracing,
)
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.data_dependent import (
    ascontiguous,
    normalize_index_array,
    places_of,
    take_rows,
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
    out_of_bounds,
)
from tecomp.ptensor.devices import default_dtype, is_apart
from tecomp.ptensor.operations.elementwise import (
    CastOp,
    ElementwiseBinaryOp,
    ElementwiseBinaryTest,
    WhereOp,
)
from tecomp.ptensor.operations.manipulation import (
    ExpandDims,
    ExtractSlice,
    Reshape,
    Slices,
    Squeeze,
    Take,
)
from tecomp.ptensor.types import check_same_device_and_team, numpy_dtype


def truth_of(node: Node) -> Node:
    """Convert an array to booleans: True for nonzero elements."""
    ptype = node.type
    if ptype.dtype == "bool":
        return node
    zero = materialized_node(np.zeros((), numpy_dtype(ptype.dtype)), ptype.like(()))
    return record(ElementwiseBinaryTest("not_equal"), node, zero)


def row_of_places(mask: Node) -> Node:
    """Return the flat row-major indices where a mask is true, as a one-dimensional array."""
    check_recordable("a mask, or `nonzero`,")
    if mask.type.team is not None:
        return distributed_hooks().flat_nonzero(mask)
    indices = places_of(ascontiguous(data_of(mask)).reshape(-1))
    dtype = default_dtype("int64", mask.type.device)
    data = indices.astype(numpy_dtype(dtype), copy=False)
    return materialized_node(data, mask.type.like((indices.size,), dtype))


def places_in(mask: Node) -> list[Node]:
    """Return the indices where a mask is true, one array per axis."""
    flat = row_of_places(mask)
    shape, dtype = mask.type.shape, numpy_dtype(flat.type.dtype)
    result = []
    for axis, extent in enumerate(shape):
        index = flat
        if axis < len(shape) - 1:
            count = max(prod(shape[axis + 1 :]), 1)
            divisor = materialized_node(np.array(count, dtype), flat.type.like(()))
            index = record(ElementwiseBinaryOp("floor_divide"), flat, divisor)
        if axis:
            modulus = materialized_node(np.array(max(extent, 1), dtype), flat.type.like(()))
            index = record(ElementwiseBinaryOp("remainder"), index, modulus)
        result.append(index)
    return result


WHERE = "x[...]"

_PLAIN = frozenset((int, slice, type(None), type(...), np.int64))


def is_plain(key: Any) -> bool:
    """Return whether an index selects a view: integers, slices, new axes and `...` only."""
    if type(key) is tuple:
        return all([type(part) in _PLAIN for part in key])
    return type(key) in _PLAIN


def has_ellipsis(key: Any) -> bool:
    """Return whether an index contains `...`; the result is then an array even without axes."""
    return key is Ellipsis or (type(key) is tuple and any([part is Ellipsis for part in key]))


def select_at(node: Node, key: Any) -> Node:
    """Return the elements at an index.

    Args:
        node: Array.
        key: Index of the subscript, with nodes in place of arrays.

    Raises:
        ArrayIndexError: If an index is out of bounds or has an unsupported type.
        DeviceMismatchError: If an array in the index is on another device.
    """
    view = _view(node, key)
    if view is not None:
        return view
    entries = entries_of(key, node.type, WHERE)
    if not is_basic(entries):
        return take_at(*resolve_take_arguments(node, entries, WHERE))
    is_alone = node.type.team is None and not tracing.depth
    if is_alone and any(isinstance(entry, IntegerKey) for entry in entries):
        # Evaluate the whole array: reads of further elements are then views, without compilation.
        data_of(node)
    return _part(node, entries)


def slice_view(node: Node, key: Any) -> Node:
    """Return the elements at an index of integers and slices; no operations."""
    return _view(node, key) or _part(node, entries_of(key, node.type, WHERE))


def _view(node: Node, key: Any) -> Node | None:
    data = None if tracing.depth else node.data
    view = None if data is None else view_at(data, key)
    return None if view is None else materialized_node(view, node.type.like(view.shape))


def view_at(data: Buffer, key: Any) -> Buffer | None:
    """Return a view of memory at a valid index of integers and slices; None for other indices."""
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        if type(part) not in _PLAIN:
            return None
    try:
        view = data[parts]
        # Integers for all axes give a NumPy scalar; with `...` appended, they give a view.
        return view if isinstance(view, np.ndarray) else data[(*parts, ...)]
    except (IndexError, TypeError, ValueError):
        return None


def spans_of(entries: Sequence[Entry], shape: Sequence[int]) -> Slices:
    """Return the slice of each axis; axes that are indexed by arrays have full slices."""
    result: list[tuple[int, int, int]] = []
    for entry in entries:
        if isinstance(entry, SliceKey):
            result.append((entry.start, entry.step, entry.count))
        elif isinstance(entry, IntegerKey):
            result.append((entry.index, 1, 1))
        else:
            axis = len(result)
            result += [(0, 1, extent) for extent in shape[axis : axis + axes_of(entry)]]
    return tuple(result)


def _slice(node: Node, entries: Sequence[Entry]) -> Node:
    spans = spans_of(entries, node.type.shape)
    if spans == tuple([(0, 1, extent) for extent in node.type.shape]):
        return node
    return apply_view(ExtractSlice(spans), node)


def _part(node: Node, entries: Sequence[Entry]) -> Node:
    """Return the elements at an index without arrays."""
    result = _slice(node, entries)
    on_axes = [entry for entry in entries if not isinstance(entry, NewAxisKey)]
    dropped = tuple([axis for axis, entry in enumerate(on_axes) if isinstance(entry, IntegerKey)])
    if dropped:
        result = apply_view(Squeeze(dropped), result)
    in_result = [entry for entry in entries if not isinstance(entry, IntegerKey)]
    new = tuple([axis for axis, entry in enumerate(in_result) if isinstance(entry, NewAxisKey)])
    return apply_view(ExpandDims(new), result) if new else result


def resolve_take_arguments(
    node: Node, entries: Sequence[Entry], where: str
) -> tuple[Node, list[Node], tuple[int, ...], int]:
    """Return the arguments of `take_at` for an index with arrays, after its slices are applied.

    Args:
        node: Array.
        entries: Entries of the index.
        where: Operation name for error messages.

    Raises:
        ArrayIndexError: If an index is out of bounds.
        DeviceMismatchError: If the arrays are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    index_types = [entry.node.type for entry in entries
        if isinstance(entry, IntegerArrayKey | BooleanMaskKey)]
    check_same_device_and_team([node.type, *index_types], where)
    part = _slice(node, entries)
    extents = _extents(entries, part.type.shape)
    shape = tuple([extent for extent in extents if extent is not None])
    if shape != part.type.shape:
        part = apply_view(Reshape(shape), part)
    indices: list[Node] = []
    axes: list[int] = []
    axis, array_axis = 0, 0  # axis of the sliced array, and of the array itself
    for entry, extent in zip(entries, extents, strict=True):
        if isinstance(entry, IntegerArrayKey | BooleanMaskKey):
            axes.append(axis)
            indices.append(_selected_indices(entry, node.type.shape, array_axis, where))
        axis += extent is not None
        array_axis += axes_of(entry)
    return part, indices, tuple(axes), _place(entries)


def _selected_indices(
    entry: IntegerArrayKey | BooleanMaskKey, shape: Sequence[int], axis: int, where: str
) -> Node:
    """Return the indices that an array in an index selects."""
    if isinstance(entry, IntegerArrayKey):
        return normalize_indices(entry.node, shape[axis], axis, where)
    return row_of_places(entry.node)


def _extents(entries: Sequence[Entry], shape: Sequence[int]) -> list[int | None]:
    """Return the extent that each entry covers; axes of a mask are merged; None for an integer."""
    result: list[int | None] = []
    axis = 0
    for entry in entries:
        extent = prod(shape[axis : axis + axes_of(entry)])
        result.append(None if isinstance(entry, IntegerKey) else extent)
        axis += axes_of(entry)
    return result


def _place(entries: Sequence[Entry]) -> int:
    """Return the position of the index axes: in place if entries are adjacent, otherwise first."""
    indexed = [k for k, entry in enumerate(entries)
        if isinstance(entry, IntegerKey | IntegerArrayKey | BooleanMaskKey)]
    if indexed[-1] - indexed[0] >= len(indexed):
        return 0
    return indexed[0]


def normalize_indices(indices: Node, extent: int, axis: int, where: str) -> Node:
    """Convert negative indices to indices from the start of an axis.

    Args:
        indices: Integer array. Negative indices count from the end.
        extent: Extent of the axis.
        axis: Number of the axis, for error messages.
        where: Operation name for error messages.

    Raises:
        ArrayIndexError: If an index is out of bounds.
    """
    name = default_dtype("int64", indices.type.device)
    ptype = indices.type.like(indices.type.shape, name)
    if tracing.depth:  # bounds are checked at replay
        indices = record(CastOp(name), indices)
        zero, extent_node = (
            materialized_node(np.array(n, numpy_dtype(name)), ptype.like(())) for n in (0, extent)
        )
        is_negative = record(ElementwiseBinaryTest("less"), indices, zero)
        wrapped = record(ElementwiseBinaryOp("add"), indices, extent_node)
        return record(WhereOp(), is_negative, wrapped, indices)
    if ptype.team is not None:
        found, outside = distributed_hooks().from_start(indices, extent)
        if outside is not None:
            raise out_of_bounds(outside, axis, extent, where)
        return found
    data = ascontiguous(data_of(indices)).reshape(-1)
    values, invalid = normalize_index_array(data, extent)
    if invalid is not None:
        raise out_of_bounds(int(data[invalid]), axis, extent, where)
    values = values.reshape(ptype.shape).astype(numpy_dtype(name), copy=False)
    return materialized_node(values, ptype)


def take_at(node: Node, indices: Sequence[Node], axes: tuple[int, ...], position: int) -> Node:
    """Return the elements at valid indices.

    Args:
        node: Array.
        indices: Nonnegative index arrays, broadcast against each other.
        axes: Indexed axis of each index array.
        position: Position of the index axes in the result.
    """
    is_recorded = (
        node.type.team is not None or tracing.depth or is_apart(node.type.device)
    )
    if is_recorded or len(indices) > 1 or position != axes[0]:
        return record(Take(axes, position), node, *indices)
    (index,), (axis,) = indices, axes
    data = ascontiguous(data_of(node))
    rows = take_rows(data, axis, data_of(index).reshape(-1))
    shape = (*data.shape[:axis], *index.type.shape, *data.shape[axis + 1 :])
    return materialized_node(rows.reshape(shape), node.type.like(shape))
