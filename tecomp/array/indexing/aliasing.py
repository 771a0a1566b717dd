"""Track views that share elements and propagate writes between them.

Arrays that share elements form a tree: a view is a child of the array from which it was taken. The
outermost array that is alive has the elements. A write to any array of the tree changes these
elements, and the nodes of all other arrays are derived again. References go up the tree: an array
keeps its `Place` and the places above it alive. It keeps the array above it alive only if that
array has another view, because the two views then share elements.

During a write, the nodes of all arrays of the tree are replaced by placeholders. Other threads wait
for the placeholders, so no thread reads memory that is being written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeGuard
from weakref import ref

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, looking, materialized_node, traces, tracing
from tecomp.array.graph.pending import WriteInProgress, wait, wake, writers
from tecomp.array.graph.views import apply_view, view_of
from tecomp.array.indexing.data_dependent import copy_to
from tecomp.array.indexing.getitem import WHERE, slice_view, spans_of
from tecomp.array.indexing.keys import NewAxisKey, SliceKey, entries_of
from tecomp.array.indexing.setitem import NodeHolder, PartHolder, assign, private_memory
from tecomp.errors import ArrayTypeError
from tecomp.fork_gate import no_fork
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    ExpandDims,
    PermuteDims,
    Reshape,
    Slices,
    Squeeze,
)
from tecomp.ptensor.types import PTensorType

_MIN_VIEWS_TO_PRUNE = 16


class ViewRelation(Protocol):
    """Mapping from the elements of an array to the elements of a view."""

    def of(self, node: Node) -> Node:
        """Return the elements of the view; no operations."""

    def within(self, data: Buffer) -> Buffer | None:
        """Return the view of memory; None if the elements cannot be addressed by strides."""

    def put(self, holder: Any, part: Node) -> None:
        """Replace the elements of the view in the node of a holder."""

    def strided(self) -> StridedView | None:
        """Return the view as slices and an axis order; None for a reshaping view."""


@dataclass(frozen=True, slots=True)
class StridedView:
    """Slice of each axis, and axis order.

    Attributes:
        spans: First index, step and count of each axis of the whole array.
        axes: Axis of the whole array for each axis of the view, or None for a new axis of size 1.
            Missing axes have a single index.
    """

    spans: Slices
    axes: tuple[int | None, ...]

    def of(self, node: Node) -> Node:
        """Return the elements of the view."""
        if node.data is not None and not tracing.depth:
            view = self.within(node.data)
            return materialized_node(view, node.type.like(view.shape))
        result = slice_view(node, (*self._slices(), ...))
        if dropped := tuple([k for k in range(len(self.spans)) if k not in self.axes]):
            result = apply_view(Squeeze(dropped), result)
        if (order := self._order()) != (*range(len(order)),):
            result = apply_view(PermuteDims(order), result)
        new = self._new()
        return apply_view(ExpandDims(new), result) if new else result

    def within(self, data: Buffer) -> Buffer:
        """Return the view of memory."""
        key = [
            part if axis in self.axes else part.start for axis, part in enumerate(self._slices())
        ]
        view = data[(*key, ...)].transpose(self._order())
        result: Buffer = view[tuple([None if k is None else slice(None) for k in self.axes]) or ...]
        return result

    def put(self, holder: Any, part: Node) -> None:
        """Assign to the slices."""
        new, order = self._new(), self._order()
        if new:
            part = apply_view(Squeeze(new), part)
        if order:
            part = apply_view(
                PermuteDims(tuple(sorted(range(len(order)), key=order.__getitem__))), part
            )
        if dropped := tuple([k for k in range(len(self.spans)) if k not in self.axes]):
            part = apply_view(ExpandDims(dropped), part)
        assign(holder, (*self._slices(), ...), part)

    def strided(self) -> StridedView:
        """Return this view."""
        return self

    def then(self, inner: StridedView) -> StridedView | None:
        """Return the composition with a view of this view; None if a new axis becomes empty."""
        spans = list(self.spans)
        for axis, (first, step, count) in zip(self.axes, inner.spans, strict=True):
            if axis is not None:
                start, stride, _ = spans[axis]
                spans[axis] = (start + first * stride, stride * step, count) if count else (0, 1, 0)
            elif not count:
                return None
        return StridedView(
            tuple(spans), tuple([None if k is None else self.axes[k] for k in inner.axes])
        )

    def _slices(self) -> tuple[slice, ...]:
        # A descending slice that includes element 0 has None as its end.
        ends = [start + step * count for start, step, count in self.spans]
        return tuple([
            slice(start, end if end >= 0 else None, step)
            for (start, step, _), end in zip(self.spans, ends, strict=True)
        ])

    def _order(self) -> tuple[int, ...]:
        """Return the axes of the view as positions among the kept axes of the whole array."""
        retained = sorted([k for k in self.axes if k is not None])
        return tuple([retained.index(k) for k in self.axes if k is not None])

    def _new(self) -> tuple[int, ...]:
        return tuple([index for index, k in enumerate(self.axes) if k is None])


@dataclass(frozen=True, slots=True)
class IndexedView:
    """Elements at an index of integers and slices.

    Attributes:
        key: Index.
        type: Type of the whole array.
    """

    key: Any
    type: PTensorType

    def of(self, node: Node) -> Node:
        """Return the elements of the view."""
        return slice_view(node, self.key)

    def within(self, data: Buffer) -> Buffer:
        """Return the view of memory."""
        found: Buffer = data[self.key]
        return found

    def put(self, holder: Any, part: Node) -> None:
        """Assign to the index."""
        assign(holder, self.key, part)

    def strided(self) -> StridedView:
        """Return the slices that the index selects."""
        entries = entries_of(self.key, self.type, WHERE)
        axes: list[int | None] = []
        axis = 0
        for entry in entries:
            if isinstance(entry, NewAxisKey):
                axes.append(None)
                continue
            if isinstance(entry, SliceKey):
                axes.append(axis)
            axis += 1
        return StridedView(spans_of(entries, self.type.shape), tuple(axes))


@dataclass(frozen=True, slots=True)
class MovedView:
    """All elements with another shape or axis order.

    Attributes:
        op: View operation.
        type: Type of the whole array.
    """

    op: PTensorOp
    type: PTensorType

    def of(self, node: Node) -> Node:
        """Return the elements of the view."""
        return apply_view(self.op, node)

    def within(self, data: Buffer) -> Buffer | None:
        """Return the view of memory."""
        return view_of(self.op, data)

    def put(self, holder: Any, part: Node) -> None:
        """Replace all elements."""
        inverse: PTensorOp = Reshape(self.type.shape)
        if isinstance(self.op, PermuteDims):
            order = self.op.axis
            inverse = PermuteDims(tuple(sorted(range(len(order)), key=order.__getitem__)))
        elif isinstance(self.op, MatrixTranspose):
            inverse = self.op
        holder._node = apply_view(inverse, part)

    def strided(self) -> StridedView | None:
        """Return the axis order; None for a reshape."""
        axes: list[int | None] = [*range(self.type.rank)]
        if isinstance(self.op, PermuteDims):
            axes = [*self.op.axis]
        elif isinstance(self.op, MatrixTranspose):
            axes[-2:] = [axes[-1], axes[-2]]
        elif isinstance(self.op, ExpandDims):
            for axis in self.op.axis:
                axes.insert(axis, None)
        elif isinstance(self.op, Squeeze):
            axes = [axis for axis in axes if axis not in self.op.axis]
        else:
            return None
        return StridedView(tuple([(0, 1, extent) for extent in self.type.shape]), tuple(axes))


def _is_reshape(view: ViewRelation) -> TypeGuard[MovedView]:
    return isinstance(view, MovedView) and isinstance(view.op, Reshape)


def compose_views(outer: ViewRelation, inner: ViewRelation) -> ViewRelation | None:
    """Return two nested views as one; None if slices follow a reshape, or a reshape follows slices.

    >>> x = PTensorType((10,), "int8")
    >>> compose_views(IndexedView(slice(2, 9, 3), x), IndexedView(slice(1, 3), x.like((3,))))
    StridedView(spans=((5, 3, 2),), axes=(0,))
    """
    if _is_reshape(outer) and _is_reshape(inner):
        return MovedView(inner.op, outer.type)
    first, second = outer.strided(), inner.strided()
    return None if first is None or second is None else first.then(second)


class Place:
    """Position of an array in the tree of arrays that share its elements.

    Attributes:
        array: Weak reference to the array; returns None once the array is released.
        outer: Place of the array from which the view was taken; None for the root of the tree.
        view: View of the array at `outer`; None for the root.
        live_array: Array at `outer`, if another view of it requires that it stays alive.
        inner: Weak references to the places of its views.
    """

    __slots__ = ("__weakref__", "array", "inner", "live_array", "outer", "view")

    def __init__(self, array: Any, outer: Place | None, view: ViewRelation | None) -> None:
        self.array: Callable[[], Any] = ref(array)
        self.outer = outer
        self.view = view
        self.live_array: Any = None
        self.inner: list[Callable[[], Place | None]] = []


def register_view(part: Any, base: Any, view: ViewRelation, node: Node) -> None:
    """Register a view, so that writes to either array reach the other.

    Args:
        part: View; derived again if the node of the whole array has changed.
        base: Array from which the view was taken.
        view: Mapping of the view.
        node: Node of the whole array when the view was taken.
    """
    while not _have_common_base(part, base, view, node):
        node = base._node
        part._node = view.of(node)


def _have_common_base(part: Any, base: Any, view: ViewRelation, node: Node) -> bool:
    with looking:
        if base._node is not node:
            return False
        outer: Place | None = base._place
        if outer is None:
            outer = base._place = Place(base, None, None)
        elif outer.outer is not None:
            _shorten(outer)
        part_place = part._place = Place(part, outer, view)
        if _has_views(outer):
            part_place.live_array = base
        outer.inner.append(ref(part_place))
        return True


def _has_views(region: Place) -> bool:
    """Return whether an array has views, and remove released views from the list."""
    inner = region.inner
    while inner and inner[-1]() is None:
        inner.pop()
    if len(inner) >= _MIN_VIEWS_TO_PRUNE and not len(inner) & (len(inner) - 1):
        inner[:] = [found for found in inner if found() is not None]
    return bool(inner)


def _shorten(place: Place) -> None:
    """Remove places of released arrays above a place.

    A released array has at most one view, because a second view would have kept it alive.
    """
    released = []
    outer = place.outer
    while outer is not None and outer.array() is None:
        released.append(outer)
        outer = outer.outer
    for upper, lower in zip(reversed(released), [*reversed(released[:-1]), place], strict=False):
        if upper.outer is None:
            lower.outer = lower.view = None
            continue
        assert upper.view is not None
        assert lower.view is not None
        view = compose_views(upper.view, lower.view)
        if view is not None:
            lower.outer, lower.view, lower.live_array = upper.outer, view, upper.live_array
            upper.outer.inner.append(ref(lower))


class _Sharing(NamedTuple):
    """Arrays that share elements.

    Attributes:
        base_array: Outermost array.
        path: Views from the outermost array to the written array, outermost first.
        parts: All views in topological order: the number of the parent, counted from 1, or 0 for
            the outermost array; the array, or None if it is released; and the mapping.
    """

    base_array: Any
    path: list[ViewRelation]
    parts: list[tuple[int, Any, ViewRelation]]


def write_through(array: Any, change: Callable[[Any], None], expected: NodeHolder
        | None = None) -> bool:
    """Change the elements of an array and of all arrays that share them.

    Args:
        array: Array to write.
        change: Function that changes the `_node` of its argument.
        expected: Expected node of the array, released before the write; None for any node.

    Returns:
        Whether the array has the expected node. Otherwise, nothing is changed.

    Raises:
        ArrayTypeError: If a function that is transformed, such as differentiated, did not create
            the array.
    """
    if traces:
        _check_created(outermost(array))
    if array._node.type.team is not None:
        _write_together(array, change)
        return True
    with no_fork:
        return _write_alone(array, change, expected)


def _write_alone(array: Any, change: Callable[[Any], None], expected: NodeHolder | None) -> bool:
    found: _Sharing | None = None
    try:
        with looking:
            found = _sharing_arrays(array)
            if expected is not None:
                if array._node is not expected._node:
                    found = None
                    return False
                del expected._node
            holder = NodeHolder(found.base_array._node)
            part = (
                holder if found.base_array is array else PartHolder(holder, found.path, array._node)
            )
            # Placeholders make other threads wait and leave the holder as the only reference.
            for target in (found.base_array, *[inner for _, inner, _ in found.parts]):
                if target is not None:
                    target._node = WriteInProgress(target._node.type)
        if isinstance(part, PartHolder):
            _change_part(part, change)
        else:
            change(part)
    finally:
        if found is not None:
            with looking:
                _share(found, holder._node)
                wake()
    return True


def _change_part(part: PartHolder, change: Callable[[Any], None]) -> None:
    """Change some elements of the outermost array, in its memory if possible."""
    if tracing.depth:
        change(part)
        _write_to_parents(part.base_holder, part.path, part._node)
        return
    data_of(part.base_holder._node)
    if part.base_holder._node.data is not None:
        del part._node  # drops a possible operation on the whole array
        part._node = part.of(part.base_holder._node)
    change(part)
    if part.memory is not None and part._node.data is part.memory:
        return
    values = data_of(part._node)
    del part._node
    memory = part.within(private_memory(part.base_holder))
    if memory is not None:
        copy_to(memory, values)
    else:
        _write_to_parents(part.base_holder, part.path, materialized_node(values, part.type))


def replace_node(array: Any, expected: NodeHolder, node: Node) -> bool:
    """Replace the expected node of an array and of all arrays that share its elements.

    Args:
        array: Array to write.
        expected: Holder of the expected node; the reference is released.
        node: New node.

    Returns:
        Whether the array had the expected node. Otherwise, nothing is changed.
    """
    if traces:
        _check_created(outermost(array))
    with looking:
        if array._place is None and not isinstance(expected._node, WriteInProgress):
            if array._node is not expected._node:
                return False
            array._node = node
            return True
    return write_through(array, partial(_replace, node), expected)


def _check_created(array: Any) -> None:
    """Reject a write to an array that the transformed function did not create.

    Raises:
        ArrayTypeError: If there is such a function.
    """
    trace = traces.current()
    if trace is not None and id(array) not in trace.arrays:
        raise ArrayTypeError(
            "{where}: the function changes an array of shape {shape} in place that it did not "
            "create; write x = x + y instead of x += y, or change a copy, "
            "xp.asarray(x, copy=True)",
            kind="recording", where=trace.where, shape=array._node.type.shape,
        )


def _replace(node: Node, holder: Any) -> None:
    holder._node = node


def _share(found: _Sharing, node: Node) -> None:
    """Set the nodes of all arrays that share elements."""
    nodes = [node]
    _say(found.base_array, node)
    for outer, array, view in found.parts:
        parent = nodes[outer]
        data = None if tracing.depth or array is None else parent.data
        if data is not None:
            data = view.within(data)
        nodes.append(view.of(parent) if data is None else materialized_node(data, array._node.type))
        if array is not None:
            _say(array, nodes[-1])


def _say(array: Any, node: Node) -> None:
    stand_in = array._node
    if isinstance(stand_in, WriteInProgress):
        array._node = node
        stand_in.finish(node)


def _write_together(array: Any, change: Callable[[Any], None]) -> None:
    """Change a distributed array; one thread of each rank makes this call."""
    base, path, parts = _sharing_arrays(array)
    if base is array:
        change(array)
    else:
        part = NodeHolder(array._node)
        change(part)
        _write_to_parents(base, path, part._node)
    nodes = [base._node]
    for outer, inner, view in parts:
        nodes.append(view.of(nodes[outer]))
        if inner is not None:
            inner._node = nodes[-1]


def _sharing_arrays(array: Any) -> _Sharing:
    """Return the arrays that share elements with an array, once no thread writes them."""
    with looking:
        while True:
            found = _tree(array)
            arrays = [found.base_array, *[part for _, part, _ in found.parts if part is not None]]
            writer_ids = writers([member._node for member in arrays])
            if not writer_ids:
                return found
            del found, arrays
            wait(writer_ids)


def _tree(array: Any) -> _Sharing:
    place: Place | None = array._place
    if place is None:
        return _Sharing(array, [], [])
    _shorten(place)
    base, top, path = array, place, list[ViewRelation]()
    line: list[ViewRelation] = []
    while place.outer is not None:
        assert place.view is not None
        line.append(place.view)
        place = place.outer
        found = place.array()
        if found is not None:
            base, top, path = found, place, [*reversed(line)]
    return _Sharing(base, path, _parts(top))


def _parts(top: Place) -> list[tuple[int, Any, ViewRelation]]:
    """Return the views below a place, as `_Sharing` has them."""
    result: list[tuple[int, Any, ViewRelation]] = []
    places = [top]
    for number, place in enumerate(places):
        for found in place.inner:
            inner = found()
            if inner is not None and inner.outer is place and inner.view is not None:
                result.append((number, inner.array(), inner.view))
                places.append(inner)
    return result


def outermost(array: Any) -> Any:
    """Return the outermost array of the view tree of an array."""
    with looking:
        return _tree(array).base_array


def _write_to_parents(holder: Any, path: Sequence[ViewRelation], part: Node) -> None:
    """Write the elements of a view to its parent view, up to the outermost array."""
    holders = [holder]
    for view in path[:-1]:
        holders.append(NodeHolder(view.of(holders[-1]._node)))
    for outer, view in zip(reversed(holders), reversed(path), strict=True):
        view.put(outer, part)
        part = outer._node
