"""Basic and advanced indexing (reads), boolean masks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tecomp.array.graph.evaluate import check_recordable, data_of
from tecomp.array.graph.node import Buffer, Node, leaf, record, teams, tracing
from tecomp.array.graph.views import moved
from tecomp.array.indexing.data_dependent import counted_from_start, in_order, places_of, rows_at
from tecomp.array.indexing.keys import (
    At,
    By,
    Entry,
    Mask,
    New,
    Span,
    axes_of,
    entries_of,
    is_basic,
    out_of_bounds,
)
from tecomp.ptensor.devices import default_dtype, is_apart
from tecomp.ptensor.operations.elementwise import (
    Cast,
    ElementwiseBinaryOp,
    ElementwiseBinaryTest,
    Where,
)
from tecomp.ptensor.operations.manipulation import (
    ExpandDims,
    ExtractSlice,
    Reshape,
    Slices,
    Squeeze,
    Take,
)
from tecomp.ptensor.types import check_together, numpy_dtype


def truth_of(node: Node) -> Node:
    """Whether each element is not 0."""
    type = node.type
    if type.dtype == "bool":
        return node
    zero = leaf(np.zeros((), numpy_dtype(type.dtype)), type.like(()))
    return record(ElementwiseBinaryTest("not_equal"), node, zero)


def row_of_places(mask: Node) -> Node:
    """The places where a mask is true, as a row of numbers in the order of its elements."""
    check_recordable("a mask, or `nonzero`,")
    if mask.type.team is not None:
        return teams().places(mask)
    places = places_of(in_order(data_of(mask)).reshape(-1))
    dtype = default_dtype("int64", mask.type.device)
    data = places.astype(numpy_dtype(dtype), copy=False)
    return leaf(data, mask.type.like((places.size,), dtype))


def places_in(mask: Node) -> list[Node]:
    """The indices along each axis where a mask is true."""
    places = row_of_places(mask)
    shape, dtype = mask.type.shape, numpy_dtype(places.type.dtype)
    result = []
    for axis, extent in enumerate(shape):
        index = places
        if axis < len(shape) - 1:
            count = max(prod(shape[axis + 1 :]), 1)
            behind = leaf(np.array(count, dtype), places.type.like(()))
            index = record(ElementwiseBinaryOp("floor_divide"), places, behind)
        if axis:
            own = leaf(np.array(max(extent, 1), dtype), places.type.like(()))
            index = record(ElementwiseBinaryOp("remainder"), index, own)
        result.append(index)
    return result


WHERE = "x[...]"

_PLAIN = frozenset((int, slice, type(None), type(...), np.int64))


def is_plain(key: Any) -> bool:
    """Whether an index is of whole numbers, slices, new axes and dots, which say a view."""
    if type(key) is tuple:
        return all([type(part) in _PLAIN for part in key])
    return type(key) in _PLAIN


def selected(node: Node, key: Any) -> Node:
    """The elements at an index.

    Args:
        node: an array.
        key: what stands in the brackets; arrays are nodes.

    Raises:
        ArrayIndexError: there is no such element, or this is no index.
        DeviceMismatchError: an array in the index lives on another device.
    """
    view = _view(node, key)
    if view is not None:
        return view
    entries = entries_of(key, node.type, WHERE)
    if not is_basic(entries):
        return _elements(node, entries)
    is_alone = node.type.team is None and not tracing.depth
    if is_alone and any(isinstance(entry, At) for entry in entries):
        # Other elements are asked for next: as views, for which nothing is compiled.
        data_of(node)
    return _part(node, entries)


def part_at(node: Node, key: Any) -> Node:
    """The same at an index of whole numbers and slices; nothing is computed for it."""
    return _view(node, key) or _part(node, entries_of(key, node.type, WHERE))


def _view(node: Node, key: Any) -> Node | None:
    data = None if tracing.depth else node.data
    view = None if data is None else view_at(data, key)
    return None if view is None else leaf(view, node.type.like(view.shape))


def view_at(data: Buffer, key: Any) -> Buffer | None:
    """A view of memory at an index of integers and slices that is right; None for others."""
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        if type(part) not in _PLAIN:
            return None
    try:
        view = data[parts]
        # All axes indexed by integers give a number, but a view with dots at the end.
        return view if isinstance(view, np.ndarray) else data[(*parts, ...)]
    except (IndexError, TypeError, ValueError):
        return None


def spans_of(entries: Sequence[Entry], shape: Sequence[int]) -> Slices:
    """For each axis which indices are taken; all where other arrays say."""
    result: list[tuple[int, int, int]] = []
    for entry in entries:
        if isinstance(entry, Span):
            result.append((entry.start, entry.step, entry.count))
        elif isinstance(entry, At):
            result.append((entry.index, 1, 1))
        else:
            axis = len(result)
            result += [(0, 1, extent) for extent in shape[axis : axis + axes_of(entry)]]
    return tuple(result)


def _sliced(node: Node, entries: Sequence[Entry]) -> Node:
    spans = spans_of(entries, node.type.shape)
    if spans == tuple([(0, 1, extent) for extent in node.type.shape]):
        return node
    return moved(ExtractSlice(spans), node)


def _part(node: Node, entries: Sequence[Entry]) -> Node:
    """What an index says that looks at no values."""
    result = _sliced(node, entries)
    own = [entry for entry in entries if not isinstance(entry, New)]
    dropped = tuple([axis for axis, entry in enumerate(own) if isinstance(entry, At)])
    if dropped:
        result = moved(Squeeze(dropped), result)
    kept = [entry for entry in entries if not isinstance(entry, At)]
    new = tuple([axis for axis, entry in enumerate(kept) if isinstance(entry, New)])
    return moved(ExpandDims(new), result) if new else result


def _elements(node: Node, entries: Sequence[Entry]) -> Node:
    """The elements that arrays in an index say."""
    return taken(*located(node, entries, WHERE))


def located(
    node: Node, entries: Sequence[Entry], where: str
) -> tuple[Node, list[Node], tuple[int, ...], int]:
    """What `taken` takes for an index with arrays, of the elements that the rest of it says.

    Args:
        node: an array.
        entries: of the index.
        where: the operation, for messages.

    Raises:
        ArrayIndexError: there is no such element.
        DeviceMismatchError: If the arrays are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    given = [entry.node.type for entry in entries if isinstance(entry, By | Mask)]
    check_together([node.type, *given], where)
    part = _sliced(node, entries)
    extents = _extents(entries, part.type.shape)
    shape = tuple([extent for extent in extents if extent is not None])
    if shape != part.type.shape:
        part = moved(Reshape(shape), part)
    indices: list[Node] = []
    axes: list[int] = []
    axis, own = 0, 0  # of the result of what looks at no values, and of the array
    for entry, extent in zip(entries, extents, strict=True):
        if isinstance(entry, By | Mask):
            axes.append(axis)
            indices.append(_said(entry, node.type.shape, own, where))
        axis += extent is not None
        own += axes_of(entry)
    return part, indices, tuple(axes), _place(entries)


def _said(entry: By | Mask, shape: Sequence[int], axis: int, where: str) -> Node:
    """The places that an array in an index says."""
    if isinstance(entry, By):
        return counted(entry.node, shape[axis], axis, where)
    return row_of_places(entry.node)


def _extents(entries: Sequence[Entry], shape: Sequence[int]) -> list[int | None]:
    """The extent of the axis that each entry is of, where a mask's axes are one; None for none."""
    result: list[int | None] = []
    axis = 0
    for entry in entries:
        extent = prod(shape[axis : axis + axes_of(entry)])
        result.append(None if isinstance(entry, At) else extent)
        axis += axes_of(entry)
    return result


def _place(entries: Sequence[Entry]) -> int:
    """Where the axes of the indices go: in their place if they are neighbours, else first."""
    said = [k for k, entry in enumerate(entries) if isinstance(entry, At | By | Mask)]
    if said[-1] - said[0] >= len(said):
        return 0
    return said[0]


def counted(indices: Node, extent: int, axis: int, where: str) -> Node:
    """Indices counted from the first element of an axis.

    Args:
        indices: integers; those below 0 count from the end.
        extent: of the axis.
        axis: which it is, for messages.
        where: the operation, for messages.

    Raises:
        ArrayIndexError: one is out of bounds.
    """
    name = default_dtype("int64", indices.type.device)
    type = indices.type.like(indices.type.shape, name)
    if tracing.depth:  # what is out of bounds is seen when it runs
        indices = record(Cast(name), indices)
        zero, more = (
            leaf(np.array(n, numpy_dtype(name)), type.like(())) for n in (0, extent)
        )
        below = record(ElementwiseBinaryTest("less"), indices, zero)
        wrapped = record(ElementwiseBinaryOp("add"), indices, more)
        return record(Where(), below, wrapped, indices)
    if type.team is not None:
        found, outside = teams().from_start(indices, extent)
        if outside is not None:
            raise out_of_bounds(outside, axis, extent, where)
        return found
    data = in_order(data_of(indices)).reshape(-1)
    places, wrong = counted_from_start(data, extent)
    if wrong is not None:
        raise out_of_bounds(int(data[wrong]), axis, extent, where)
    return leaf(places.reshape(type.shape).astype(numpy_dtype(name), copy=False), type)


def taken(node: Node, indices: Sequence[Node], axes: tuple[int, ...], place: int) -> Node:
    """The elements at indices that are there.

    Args:
        node: an array.
        indices: counted from the first element; they broadcast.
        axes: the axis that each is for.
        place: where the axes of the indices are in the result.
    """
    is_recorded = (
        node.type.team is not None or tracing.depth or is_apart(node.type.device)
    )
    if is_recorded or len(indices) > 1 or place != axes[0]:
        return record(Take(axes, place), node, *indices)
    (index,), (axis,) = indices, axes
    data = in_order(data_of(node))
    rows = rows_at(data, axis, data_of(index).reshape(-1))
    shape = (*data.shape[:axis], *index.type.shape, *data.shape[axis + 1 :])
    return leaf(rows.reshape(shape), node.type.like(shape))
