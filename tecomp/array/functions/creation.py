"""Creation functions."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, on_teams
from tecomp.array.graph.node import Node, materialized_node, record
from tecomp.array.graph.views import apply_view
from tecomp.array.interop.exports import empty_in, inherited_layout, on_device
from tecomp.array.kernels.generators import create_array
from tecomp.array.validation import (
    Extents,
    check_bool,
    check_choice,
    check_of_one_process,
    diagonal_of,
    dtype_at,
    dtype_name,
    float64_of,
    integer,
    need_team,
    shape_of,
)
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.devices import (
    CPU,
    check_dtype,
    default_dtype,
    device_name,
)
from tecomp.ptensor.operations.creation import (
    Arange,
    Create,
    Creation,
    ExtractTriangle,
    Eye,
    Linspace,
    MeshGrid,
)
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.operations.manipulation import BroadcastOp, Reshape
from tecomp.ptensor.types import (
    COMPLEX,
    INTEGERS,
    PTensorType,
    check_same_device_and_team,
    numpy_dtype,
)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *,
    dtype: Any = None, device: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """Return evenly spaced values in the half-open interval [start, stop).

    Args:
        start: First value. If `stop` is None, `start` is the end of the interval, which begins at
            0.
        stop: End of the interval, excluded.
        step: Distance between adjacent values, nonzero. Default: 1.
        dtype: dtype of the array. Default: int64 if all arguments are integers, otherwise float64.
        device: Device of the array. Default: the default device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If an argument is not a real number.
        ArrayValueError: If `step` is 0, or there are too many values.

    >>> arange(1, 10, 4)
    Array([1, 5, 9], dtype=int64)
    """
    where = "arange"
    first, last = (0, start) if stop is None else (start, stop)
    begin, end, stride = [_real(value, where) for value in (first, last, step)]
    is_integral = all(isinstance(number, int) for number in (begin, end, stride))
    target_device = device_name(device, where)
    name = dtype_at(dtype, "int64" if is_integral else "float64", target_device, where)
    op = Arange(begin, end, stride, name, target_device)
    assert op.count is not None
    shape_of(op.count, where, name)
    if op.count and name in INTEGERS:
        for number in (begin, begin + (op.count - 1) * stride):
            _check_range(number, name, where)
    return _create_generated(op, team, placements, where)


def _real(value: Any, where: str) -> int | float:
    """Convert a value to a Python int or float."""
    if isinstance(value, np.generic | Array):
        value = value.item() if isinstance(value, np.generic) else float(value)
    if isinstance(value, bool | int):
        float64_of(value, where, "a number")
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise ArrayTypeError(
        "{where}: expected a real number, got {value!r} ({type})",
        where=where, value=value, type=type(value).__name__,
    )


def linspace(
    start: complex, stop: complex, /, num: int, *,
    dtype: Any = None, device: Any = None, endpoint: bool = True,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return a given number of evenly spaced values over an interval.

    Args:
        start: First value.
        stop: Last value, or the excluded end of the interval if `endpoint` is False.
        num: Number of values.
        dtype: dtype of the array. Default: float64, or complex128 if a bound is complex.
        device: Device of the array. Default: the default device.
        endpoint: If True, `stop` is the last value. Default: True.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If the dtype cannot represent the values.
        ArrayValueError: If `num` is negative.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    where = "linspace"
    first, last = [
        value if isinstance(value, complex) else float(_real(value, where))
        for value in (start, stop)
    ]
    is_real = not isinstance(first, complex) and not isinstance(last, complex)
    target_device = device_name(device, where)
    name = dtype_at(dtype, "float64" if is_real else "complex128", target_device, where)
    (count,) = shape_of(integer(num, where, "num"), where, name)
    op = Linspace(first, last, count, name, check_bool(endpoint, where, "endpoint"), target_device)
    return _create_generated(op, team, placements, where)


def empty(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return an uninitialized array.

    Args:
        shape: Shape of the array.
        dtype: dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
            device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If an extent is negative, or the device is unknown or does not support
            the layout.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    if layout is None:
        return _fill(shape, 0, dtype, device, team, placements, "empty")
    if team is not None:
        check_of_one_process(layout, "empty")
    target_device = device_name(device, "empty")
    name = dtype_at(dtype, "float64", target_device, "empty")
    type = PTensorType(shape_of(shape, "empty", name), name, target_device)
    return from_node(empty_in(type, layout, "empty"))


def zeros(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return an array filled with zeros.

    Args:
        shape: Shape of the array.
        dtype: dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
            device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If an extent is negative, or the device is unknown or does not support
            the layout.

    >>> zeros(2)
    Array([0., 0.], dtype=float64)
    """
    return _fill(shape, 0, dtype, device, team, placements, "zeros", layout)


def ones(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return an array filled with ones.

    Args:
        shape: Shape of the array.
        dtype: dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
            device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If an extent is negative, or the device is unknown or does not support
            the layout.

    >>> ones(2, dtype=np.int8)
    Array([1, 1], dtype=int8)
    """
    return _fill(shape, 1, dtype, device, team, placements, "ones", layout)


def full(
    shape: Extents, fill_value: complex | Array, *, dtype: Any = None, device: Any = None,
    layout: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """Return an array filled with one value.

    Args:
        shape: Shape of the array.
        fill_value: Python scalar, or an array that broadcasts to the shape.
        dtype: dtype of the array. Default: the dtype of `fill_value`.
        device: Device of the array. Default: the device of `fill_value` if it is an array,
            otherwise the default device.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
            device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If the dtype cannot represent the value.
        ArrayValueError: If an extent is negative, the device or layout is unknown, or
            `fill_value` does not broadcast to the shape.
        DeviceMismatchError: If `fill_value` is an array on another device.

    >>> full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64)
    """
    if device is None and isinstance(fill_value, Array):
        device = fill_value.device
    if dtype is None and isinstance(fill_value, Array):
        dtype = fill_value.dtype
    elif dtype is None:
        value_dtype = dtype_name(np.asarray(_as_python_scalar(fill_value, "full")).dtype, "full")
        dtype = default_dtype(value_dtype, device_name(device, "full"))
    if team is None and isinstance(fill_value, Array):
        team = node_of(fill_value, "full").type.team
    return _fill(shape, fill_value, dtype, device, team, placements, "full", layout)


def _fill(
    shape: Extents, value: Any, dtype: Any, device: Any, team: Any, placements: Any, where: str,
    layout: Any = None,
) -> Array:
    target_device = device_name(device, where)
    name = dtype_at(dtype, "float64", target_device, where)
    if team is None:
        need_team(placements, where)
    number = None if team is None else on_teams().number_of(team)
    ptype = PTensorType(shape_of(shape, where, name), name, target_device, number)
    return _create(ptype, value, placements, where, layout)


def _create(
    ptype: PTensorType, value: Any, placements: Any, where: str, layout: Any = None
) -> Array:
    if layout is None:
        return _filled_array(ptype, value, placements, where)
    if ptype.team is not None:
        check_of_one_process(layout, where)
    filled = node_of(_filled_array(ptype, value, placements, where), where)
    return from_node(on_device(filled, ptype.device or CPU, layout, where))


def _filled_array(ptype: PTensorType, value: Any, placements: Any, where: str) -> Array:
    node = node_of(value, where) if isinstance(value, Array) else _number(value, ptype, where)
    check_same_device_and_team([ptype, node.type], where)
    if ptype.team is not None:
        return from_node(on_teams().create_filled(node, ptype, placements, where))
    shape, dtype = ptype.shape, ptype.dtype
    if dtype == node.type.dtype and node.data is not None:
        # Broadcasting stores a single element, which kernels read with stride 0.
        return from_node(apply_view(BroadcastOp(shape), node))
    if node.type.shape:
        return from_node(apply_view(BroadcastOp(shape), record(CastOp(dtype), node)))
    return from_node(record(Create(shape, dtype, ptype.device), node))


def _create_generated(op: Creation, team: Any, placements: Any, where: str) -> Array:
    if team is None:
        need_team(placements, where)
        return from_node(create_array(op))
    return from_node(on_teams().create_generated(op, team, placements, where))


def _as_python_scalar(value: Any, where: str) -> bool | int | float | complex:
    """Convert a value to a Python scalar.

    Raises:
        ArrayTypeError: If the value is not a number.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float | complex):
        return value
    raise ArrayTypeError(
        "{where}: the value must be a scalar or an array of this namespace, got {class_}",
        kind="not-an-array", where=where, class_=value.__class__.__name__,
    )


def _number(value: Any, ptype: PTensorType, where: str) -> Node:
    """Return a node of rank 0 that holds a number in the dtype of an array type."""
    dtype = ptype.dtype
    value = _as_python_scalar(value, where)
    if isinstance(value, complex) and dtype not in COMPLEX:
        raise ArrayTypeError(
            "{where}: cannot store complex value {value} in dtype {dtype}; pass a complex dtype",
            where=where, value=value, dtype=dtype,
        )
    if dtype in INTEGERS:
        _check_range(value, dtype, where)
    elif isinstance(value, int):
        float64_of(value, where, "the value")
    with np.errstate(over="ignore"):  # a float32 of 1e300 is inf
        data = np.array(value, numpy_dtype(dtype))
    return materialized_node(data, PTensorType((), dtype, ptype.device, ptype.team))


def _check_range(value: Any, dtype: str, where: str) -> None:
    info = np.iinfo(dtype)
    if not (isfinite(value) and info.min <= value <= info.max):
        raise ArrayTypeError(
            "{where}: {value} is out of range for {dtype} ({min} to {max}); pass a wider dtype",
            where=where, value=value, dtype=dtype, min=info.min, max=info.max,
        )


def empty_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Return an uninitialized array with the shape and dtype of `x`.

    Args:
        x: Input array.
        dtype: dtype of the array. Default: the dtype of `x`.
        device: Device of the array. Default: the device of `x`.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the layout of `x` if dtype and
            device are unchanged, otherwise the default layout of the device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> empty_like(ones((2, 3))).shape
    (2, 3)
    """
    return _create_like(x, 0, dtype, device, layout, "empty_like")


def zeros_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Return an array filled with zeros, with the shape and dtype of `x`.

    Args:
        x: Input array.
        dtype: dtype of the array. Default: the dtype of `x`.
        device: Device of the array. Default: the device of `x`.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the layout of `x` if dtype and
            device are unchanged, otherwise the default layout of the device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> zeros_like(ones(2))
    Array([0., 0.], dtype=float64)
    """
    return _create_like(x, 0, dtype, device, layout, "zeros_like")


def ones_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Return an array filled with ones, with the shape and dtype of `x`.

    Args:
        x: Input array.
        dtype: dtype of the array. Default: the dtype of `x`.
        device: Device of the array. Default: the device of `x`.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the layout of `x` if dtype and
            device are unchanged, otherwise the default layout of the device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> ones_like(zeros(2))
    Array([1., 1.], dtype=float64)
    """
    return _create_like(x, 1, dtype, device, layout, "ones_like")


def full_like(
    x: Array, /, fill_value: complex | Array, *, dtype: Any = None, device: Any = None,
    layout: Any = None,
) -> Array:
    """Return an array filled with one value, with the shape and dtype of `x`.

    Args:
        x: Input array.
        fill_value: Python scalar, or an array that broadcasts to the shape.
        dtype: dtype of the array. Default: the dtype of `x`.
        device: Device of the array. Default: the device of `x`.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the layout of `x` if dtype and
            device are unchanged, otherwise the default layout of the device.

    Raises:
        ArrayTypeError: If the dtype cannot represent the value.
        ArrayValueError: If the device or layout is unknown, or `fill_value` does not broadcast to
            the shape.
        DeviceMismatchError: If `fill_value` is an array on another device.

    >>> full_like(zeros(2), 7)
    Array([7., 7.], dtype=float64)
    """
    return _create_like(x, fill_value, dtype, device, layout, "full_like")


def _create_like(x: Array, value: Any, dtype: Any, device: Any, layout: Any, where: str) -> Array:
    node = node_of(x, where)
    ptype = node.type
    name = ptype.dtype if dtype is None else dtype_name(dtype, where)
    target_device = x.device if device is None else device_name(device, where)
    check_dtype(name, target_device, where)
    result_type = PTensorType(ptype.shape, name, target_device, ptype.team)
    placements = None if ptype.team is None else on_teams().partition_of_node(node)
    if layout is None and result_type == ptype and ptype.team is None:
        layout = inherited_layout(node)
    return _create(result_type, value, placements, where, layout)


def eye(
    n_rows: int, n_cols: int | None = None, /, *,
    k: int = 0, dtype: Any = None, device: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: Number of rows.
        n_cols: Number of columns. Default: `n_rows`.
        k: Diagonal, counted in columns to the right of the main diagonal. Default: 0.
        dtype: dtype of the array. Default: float64.
        device: Device of the array. Default: the default device.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If a number of rows or columns is negative, or the device is unknown.

    >>> eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float64)
    """
    where = "eye"
    target_device = device_name(device, where)
    name = dtype_at(dtype, "float64", target_device, where)
    rows, columns = shape_of((n_rows, n_rows if n_cols is None else n_cols), where, name)
    op = Eye(rows, columns, integer(k, where, "k"), name, target_device)
    return _create_generated(op, team, placements, where)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return the lower triangle of each matrix; other elements are zero.

    Args:
        x: Input array of shape (..., m, n).
        k: Last diagonal to keep, counted in columns to the right of the main diagonal.

    Raises:
        ArrayValueError: If `x` has fewer than two axes.

    >>> tril(ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float64)
    """
    return _triangle("lower", x, k, "tril")


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return the upper triangle of each matrix; other elements are zero.

    Args:
        x: Input array of shape (..., m, n).
        k: First diagonal to keep, counted in columns to the right of the main diagonal.

    Raises:
        ArrayValueError: If `x` has fewer than two axes.

    >>> triu(ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    return _triangle("upper", x, k, "triu")


def _triangle(part: Literal["lower", "upper"], x: Array, k: int, where: str) -> Array:
    node = node_of(x, where)
    return from_node(
        record(ExtractTriangle(part, diagonal_of(k, node.type.shape, where, "k")), node))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return coordinate arrays for coordinate vectors.

    Args:
        arrays: Arrays of at most one axis and of one dtype.
        indexing: `ij` for axes in the order of the arrays, `xy` to exchange the first two axes.
            Default: `xy`.

    Returns:
        List of arrays, one per argument, each varying along its own axis and repeated along the
        others.

    Raises:
        ArrayValueError: If an array has more than one axis, or `indexing` is unknown.
        DeviceMismatchError: If the arrays are on different devices.

    >>> [x.shape for x in meshgrid(arange(2), arange(3))]
    [(3, 2), (3, 2)]
    """
    where = "meshgrid"
    op = MeshGrid(check_choice(indexing, ("xy", "ij"), "meshgrid", "indexing"))
    nodes = [node_of(x, where) for x in arrays]
    if not nodes:
        return []
    shape = op.results(*[node.type for node in nodes])[0].shape
    order = op.order(len(nodes))
    coordinates = [_create_along(node, order.index(k), len(nodes)) for k, node in enumerate(nodes)]
    return [from_node(apply_view(BroadcastOp(shape), node)) for node in coordinates]


def _create_along(node: Node, axis: int, rank: int) -> Node:
    return apply_view(Reshape((*(1,) * axis, node.type.size, *(1,) * (rank - axis - 1))), node)
