"""Manipulation functions, `take` and `take_along_axis`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from tecomp.array.array_object import Array, from_node, node_of, part_of, permuted_view
from tecomp.array.graph.evaluate import check_recordable, data_of
from tecomp.array.graph.node import Node, distributed_hooks, materialized_node, record
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.aliasing import MovedView
from tecomp.array.indexing.data_dependent import repeat_positions
from tecomp.array.indexing.getitem import normalize_indices, take_at
from tecomp.array.validation import Extents, check_copy, integer, integers, shape_of
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    Combine,
    ExpandDims,
    ExtractSlice,
    Flip,
    PermuteDims,
    Repeat,
    Reshape,
    Roll,
    Squeeze,
    TakeAlongAxis,
    TileOp,
    check_integers,
)
from tecomp.ptensor.types import (
    INTEGERS,
    Shape,
    axes_of,
    axis_of,
    check_same_device_and_team,
    numpy_dtype,
)
from tecomp.ptensor.types import (
    broadcast_shapes as shared_shape,
)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Take elements along an axis by index.

    Args:
        x: Input array.
        indices: Integer array. Negative indices count from the end.
        axis: Axis along which to take. Default: the only axis; arrays of higher rank are flattened.

    Returns:
        Array of the shape of `x` with the shape of `indices` in place of the axis.

    Raises:
        ArrayIndexError: If `axis` or an index is out of bounds.
        ArrayTypeError: If the indices do not have an integer dtype.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> take(xp.asarray([5, 6, 7]), xp.asarray([2, 0]))
    Array([7, 5], dtype=int64)
    """
    where = "take"
    node, index = node_of(x, where), node_of(indices, where, "indices")
    check_same_device_and_team([node.type, index.type], where)
    check_integers(index.type, where)
    if axis is None:
        node = apply_view(Reshape((node.type.size,)), node)
    dim = axis_of(0 if axis is None else axis, node.type.rank, where)
    positions = normalize_indices(index, node.type.shape[dim], dim, where)
    return from_node(take_at(node, [positions], (dim,), dim))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Take elements along an axis with an index array of the same rank.

    Args:
        x: Input array.
        indices: Integer array of the rank of `x`, broadcast with `x` on all other axes. Negative
            indices count from the end.
        axis: Axis along which to take. Default: -1.

    Raises:
        ArrayIndexError: If `axis` or an index is out of bounds.
        ArrayTypeError: If the indices do not have an integer dtype.
        ArrayValueError: If the shapes do not match.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]))
    Array([[6],
           [7]], dtype=int64)
    """
    where = "take_along_axis"
    node, index = node_of(x, where), node_of(indices, where, "indices")
    check_same_device_and_team([node.type, index.type], where)
    check_integers(index.type, where)
    dim = axis_of(axis, node.type.rank, where)
    if index.type.rank != node.type.rank:
        raise ArrayValueError(
            "{where}: x has shape {shape}, but indices has shape {type_shape}; pass indices with "
            "the same number of axes as x",
            kind="array-shapes", where=where, shape=node.type.shape, type_shape=index.type.shape,
        )
    positions = normalize_indices(index, node.type.shape[dim], dim, where)
    return from_node(record(TakeAlongAxis(dim), node, positions))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Broadcast arrays to a common shape.

    Args:
        arrays: Arrays to broadcast.

    Raises:
        ArrayValueError: If the shapes are not broadcast-compatible.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> [x.shape for x in broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    where = "broadcast_arrays"
    nodes = [node_of(x, where) for x in arrays]
    if not nodes:
        return []
    check_same_device_and_team([node.type for node in nodes], where)
    shape = shared_shape([node.type.shape for node in nodes], where)
    return [from_node(apply_view(BroadcastOp(shape), node)) for node in nodes]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the given shapes broadcast.

    Args:
        shapes: Shapes to broadcast.

    Raises:
        ArrayTypeError: If an extent is not an integer.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    where = "broadcast_shapes"
    known = [shape_of(shape, where) for shape in shapes]
    return shared_shape(known, where) if known else ()


def broadcast_to(x: Array, /, shape: Extents) -> Array:
    """Broadcast an array to a shape without copying elements.

    Args:
        x: Input array.
        shape: Target shape.

    Raises:
        ArrayValueError: If `x` does not broadcast to the shape.

    >>> import tecomp.array as xp
    >>> broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int64)
    """
    node = node_of(x, "broadcast_to")
    return from_node(
        apply_view(BroadcastOp(shape_of(shape, "broadcast_to", node.type.dtype)), node))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis.

    Args:
        arrays: Arrays of equal shape except along the axis. Their dtypes are promoted.
        axis: Axis along which to join. None: flatten all arrays first. Default: 0.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no array, or the shapes do not match.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> concat([xp.asarray([1, 2]), xp.asarray([3])])
    Array([1, 2, 3], dtype=int64)
    """
    nodes = _nodes(arrays, "concat")
    if axis is None:
        nodes = [_row(node) for node in nodes]
    dim = axis_of(0 if axis is None else axis, nodes[0].type.rank, "concat")
    return from_node(record(Combine("concat", dim), *nodes))


def _nodes(arrays: Sequence[Array], where: str) -> list[Node]:
    if isinstance(arrays, Array) or not isinstance(arrays, Iterable):
        raise ArrayTypeError(
            "{where}: arrays must be a tuple or list of arrays, got {type}",
            where=where, type=type(arrays).__name__,
        )
    nodes = [node_of(x, where, f"array {k}") for k, x in enumerate(arrays)]
    if not nodes:
        raise ArrayValueError(
            "{where}: expected at least one array, got an empty sequence",
            kind="missing-input", where=where,
        )
    return nodes


def _row(node: Node) -> Node:
    return apply_view(Reshape((node.type.size,)), node)


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Insert one or several axes of size 1.

    Args:
        x: Input array.
        axis: Position or positions of the new axes in the result. Default: 0.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> expand_dims(xp.ones(3), axis=1).shape
    (3, 1)
    """
    node = node_of(x, "expand_dims")
    count = len(axis) if isinstance(axis, list | tuple) else 1
    axes = axes_of(axis, node.type.rank + count, "expand_dims")
    return permuted_view(x, ExpandDims(axes))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order of elements along the given axes.

    Args:
        x: Input array.
        axis: Axis or axes to reverse. Default: all axes.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> flip(xp.asarray([1, 2, 3]))
    Array([3, 2, 1], dtype=int64)
    """
    node = node_of(x, "flip")
    return from_node(apply_view(Flip(axes_of(axis, node.type.rank, "flip")), node))


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """Move axes to new positions; all other axes keep their order.

    Args:
        x: Input array.
        source: Axis or axes to move.
        destination: Position of each moved axis in the result.

    Raises:
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If an axis occurs twice, or `source` and `destination` differ in length.

    >>> import tecomp.array as xp
    >>> moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    where = "moveaxis"
    node = node_of(x, where)
    old = _places(source, node.type.rank, "source")
    new = _places(destination, node.type.rank, "destination")
    if len(old) != len(new):
        raise ArrayValueError(
            "{where}: source {old} and destination {new} differ in length; pass one destination "
            "per source axis",
            where=where, old=old, new=new,
        )
    order = [axis for axis in range(node.type.rank) if axis not in old]
    for position, axis in sorted(zip(new, old, strict=True)):
        order.insert(position, axis)
    return permuted_view(x, PermuteDims(tuple(order)))


def _places(axis: int | tuple[int, ...], rank: int, arg_name: str) -> tuple[int, ...]:
    axes = [axis_of(k, rank, "moveaxis", arg_name) for k in integers(axis, "moveaxis", arg_name)]
    if len(set(axes)) < len(axes):
        raise ArrayValueError(
            "moveaxis: {subject} {axes} contains duplicate axes; pass each axis once",
            subject=arg_name, axes=tuple(axes),
        )
    return tuple(axes)


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Permute all axes.

    Args:
        x: Input array.
        axes: Axis of `x` for each axis of the result.

    Raises:
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If `axes` is not a permutation of the axes.

    >>> import tecomp.array as xp
    >>> permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    where = "permute_dims"
    node = node_of(x, where)
    order = [axis_of(k, node.type.rank, where, "axes") for k in integers(axes, where, "axes")]
    return permuted_view(x, PermuteDims(tuple(order)))


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Repeat each element along an axis.

    Args:
        x: Input array.
        repeats: Number of repetitions, or an integer array with a number for each element along the
            axis.
        axis: Axis along which to repeat. Default: repeat the flattened array.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayTypeError: If `repeats` is not of integer dtype.
        ArrayValueError: If a number is negative, or `repeats` does not broadcast to the axis.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> repeat(xp.asarray([1, 2]), 2), repeat(xp.asarray([1, 2]), xp.asarray([0, 3]))
    (Array([1, 1, 2, 2], dtype=int64), Array([2, 2, 2], dtype=int64))
    """
    where = "repeat"
    node = node_of(x, where)
    if axis is None:
        node = _row(node)
    dim = axis_of(0 if axis is None else axis, node.type.rank, where)
    if not isinstance(repeats, Array):
        result = record(Repeat(integer(repeats, where, "repeats"), dim), node)
        shape_of(result.type.shape, where, result.type.dtype)
        return from_node(result)
    check_recordable("`repeat` by an array")
    counts = _counts(node_of(repeats, where), node, dim)
    if node.type.team is not None:
        found, fault = distributed_hooks().repeated(node, counts, dim)
        if fault is not None:
            raise _below_zero(*fault)
        return from_node(found)
    data = data_of(counts)
    positions, invalid = repeat_positions(data)
    if invalid is not None:
        raise _below_zero(data[invalid], invalid)
    name = default_dtype("int64", node.type.device)
    converted = positions.astype(numpy_dtype(name), copy=False)
    index = materialized_node(converted, node.type.like((positions.size,), name))
    return from_node(take_at(node, [index], (dim,), dim))


def _below_zero(count: int, position: int) -> ArrayValueError:
    return ArrayValueError(
        "repeat: repeats must be nonnegative, got {count} at index {index}",
        count=count, index=position,
    )


def _counts(repeats: Node, node: Node, axis: int) -> Node:
    """Return the number of repetitions of each element along an axis, broadcast to the axis."""
    where = "repeat"
    check_same_device_and_team([node.type, repeats.type], where)
    extent = node.type.shape[axis]
    if repeats.type.dtype not in INTEGERS:
        raise ArrayTypeError(
            "{where}: repeats must have an integer dtype, got {type}",
            where=where, type=repeats.type,
        )
    if repeats.type.rank > 1 or repeats.type.size not in (1, extent):
        raise ArrayValueError(
            "{where}: repeats has shape {shape}, but x has {extent} elements along axis {axis}; "
            "pass one count per element, or a single count",
            kind="array-shapes", where=where, shape=repeats.type.shape, extent=extent, axis=axis,
        )
    return apply_view(BroadcastOp((extent,)), repeats)


def reshape(x: Array, /, shape: Extents, *, copy: bool | None = None) -> Array:
    """Give the array a new shape; elements stay in row-major order.

    The result is a view: writes to either array are visible in the other, regardless of the order
    of the elements in memory.

    Args:
        x: Input array.
        shape: New shape. One extent may be -1 and is inferred from the others.
        copy: True for an array that shares no memory; False or None for a view.

    Raises:
        ArrayTypeError: If an extent is not an integer.
        ArrayValueError: If `shape` has another number of elements.

    >>> import tecomp.array as xp
    >>> reshape(xp.asarray([1, 2, 3, 4]), (2, -1))
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    where = "reshape"
    copy = check_copy(copy, where)
    node = node_of(x, where)
    op = Reshape(_complete(integers(shape, where, "shape"), node.type.shape))
    result = apply_view(op, node)
    return from_node(result) if copy else part_of(x, node, MovedView(op, node.type), result)


def _complete(shape: Shape, source_shape: Shape) -> Shape:
    """Return the shape with -1 replaced by the inferred extent."""
    if -1 not in shape:
        return shape_of(shape, "reshape")
    known = prod(extent for extent in shape if extent != -1)
    if shape.count(-1) > 1 or not known or prod(source_shape) % known:
        raise ArrayValueError(
            "reshape: cannot infer -1 in shape {shape} for x of shape {x_shape} with {size} "
            "elements; specify all sizes",
            kind="array-shapes", x_shape=source_shape, size=prod(source_shape), shape=shape,
        )
    return shape_of([prod(source_shape) // known if n == -1 else n for n in shape], "reshape")


def roll(
    x: Array, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None
) -> Array:
    """Shift elements along an axis, wrapping around at the ends.

    Args:
        x: Input array.
        shift: Number of elements to shift, for each axis or for all given axes.
        axis: Axis or axes along which to shift. Default: shift the flattened array.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayTypeError: If a shift is not an integer.
        ArrayValueError: If the numbers of shifts and axes differ.

    >>> import tecomp.array as xp
    >>> roll(xp.asarray([1, 2, 3]), 1)
    Array([3, 1, 2], dtype=int64)
    """
    where = "roll"
    node = node_of(x, where)
    shifts = integers(shift, where, "shift")
    if axis is None:
        if len(shifts) != 1:
            raise ArrayValueError(
                "{where}: shift must be an integer if axis is None, got {shifts!r}; pass one "
                "shift, or specify axis",
                where=where, shifts=shifts,
            )
        rolled = record(Roll(shifts, (0,)), _row(node))
        return from_node(apply_view(Reshape(node.type.shape), rolled))
    axes = [axis_of(k, node.type.rank, where) for k in integers(axis, where, "axis")]
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ArrayValueError(
            "{where}: shift {shifts} and axis {axes} differ in length; pass one shift per axis",
            where=where, shifts=shifts, axes=tuple(axes),
        )
    return from_node(record(Roll(shifts, tuple(axes)), node))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Remove axes of size 1.

    Args:
        x: Input array.
        axis: Axis or axes to remove.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis does not have size 1, or `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> squeeze(xp.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    node = node_of(x, "squeeze")
    return permuted_view(x, Squeeze(axes_of(axis, node.type.rank, "squeeze")))


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Join arrays along a new axis.

    Args:
        arrays: Arrays of equal shape. Their dtypes are promoted.
        axis: Position of the new axis in the result. Default: 0.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no array, or the shapes differ.
        DeviceMismatchError: If the arrays are on different devices.

    >>> import tecomp.array as xp
    >>> stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    nodes = _nodes(arrays, "stack")
    dim = axis_of(axis, nodes[0].type.rank + 1, "stack")
    return from_node(record(Combine("stack", dim), *nodes))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Repeat the whole array along each axis.

    Args:
        x: Input array.
        repetitions: Number of repetitions for each of the last axes. More numbers than axes insert
            new leading axes.

    Raises:
        ArrayTypeError: If a number is not an integer.
        ArrayValueError: If a number is negative.

    >>> import tecomp.array as xp
    >>> tile(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int64)
    """
    node = node_of(x, "tile")
    result = record(TileOp(integers(repetitions, "tile", "repetitions")), node)
    shape_of(result.type.shape, "tile", result.type.dtype)
    return from_node(result)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis into a tuple of arrays without that axis.

    Args:
        x: Input array.
        axis: Axis along which to split. Default: 0.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.

    >>> import tecomp.array as xp
    >>> unstack(xp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int64), Array([3, 4], dtype=int64))
    """
    node = node_of(x, "unstack")
    dim = axis_of(axis, node.type.rank, "unstack")
    full_slices = [(0, 1, extent) for extent in node.type.shape]
    parts = [
        apply_view(ExtractSlice((*full_slices[:dim], (k, 1, 1), *full_slices[dim + 1 :])), node)
        for k in range(node.type.shape[dim])
    ]
    return tuple([from_node(apply_view(Squeeze((dim,)), part)) for part in parts])
