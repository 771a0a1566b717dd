"""Arrays that functions make: of one value, of numbers in order, of others by their shape."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

import numpy as np

from tecomp.array.array_object import Array, made, node_of, on_teams
from tecomp.array.graph.node import Node, leaf, record
from tecomp.array.graph.views import moved
from tecomp.array.interop.device_transfer import empty_in, kept_layout, on_device
from tecomp.array.kernels.generators import created
from tecomp.array.validation import (
    Extents,
    check_of_one_process,
    diagonal_of,
    dtype_at,
    dtype_name,
    flag,
    integer,
    need_team,
    shape_of,
    word,
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
from tecomp.ptensor.operations.elementwise import Cast
from tecomp.ptensor.operations.manipulation import Broadcast, Reshape
from tecomp.ptensor.types import COMPLEX, INTEGERS, PTensorType, check_together, numpy_dtype


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *,
    dtype: Any = None, device: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """The numbers from `start` to below `stop` in steps.

    Args:
        start: the first; 0 if `stop` is None, and `start` the end.
        stop: behind the last.
        step: from one to the next, not 0.
        dtype: the element type; int64 if all are integers, else float64.
        device: where the array lives.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: they are no real numbers.
        ArrayValueError: the step is 0, or there are too many numbers.

    >>> arange(1, 10, 4)
    Array([1, 5, 9], dtype=int64)
    """
    where = "arange"
    first, last = (0, start) if stop is None else (start, stop)
    begin, end, stride = [_real(value, where) for value in (first, last, step)]
    whole = all(isinstance(number, int) for number in (begin, end, stride))
    place = device_name(device, where)
    name = dtype_at(dtype, "int64" if whole else "float64", place, where)
    op = Arange(begin, end, stride, name, place)
    assert op.count is not None
    shape_of(op.count, where, name)
    if op.count and name in INTEGERS:
        for number in (begin, begin + (op.count - 1) * stride):
            _check_range(number, name, where)
    return _numbered(op, team, placements, where)


def _real(value: Any, where: str) -> int | float:
    """A real number of Python."""
    if isinstance(value, np.generic | Array):
        value = value.item() if isinstance(value, np.generic) else float(value)
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise ArrayTypeError(f"{where}: {value!r} is {type(value).__name__}; give a real number")


def linspace(
    start: complex, stop: complex, /, num: int, *,
    dtype: Any = None, device: Any = None, endpoint: bool = True,
    team: Any = None, placements: Any = None,
) -> Array:
    """Numbers at equal distances.

    Args:
        start: the first.
        stop: the last, or behind it.
        num: how many.
        dtype: the element type; float64 if None, complex128 if a number is complex.
        device: where the array lives.
        endpoint: whether `stop` is the last.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: the elements cannot hold such numbers.
        ArrayValueError: `num` is below 0.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    where = "linspace"
    first, last = [
        value if isinstance(value, complex) else float(_real(value, where))
        for value in (start, stop)
    ]
    real = not isinstance(first, complex) and not isinstance(last, complex)
    place = device_name(device, where)
    name = dtype_at(dtype, "float64" if real else "complex128", place, where)
    (count,) = shape_of(integer(num, where, "num"), where, name)
    op = Linspace(first, last, count, name, flag(endpoint, where, "endpoint"), place)
    return _numbered(op, team, placements, where)


def empty(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """An array whose elements nobody has said.

    Args:
        shape: the extents.
        dtype: the element type; float64 if None.
        device: where the array lives.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; the device's
            own for such an array if None.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: an extent is below 0, there is no such device, or no such layout there.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    if layout is None:
        return _filled(shape, 0, dtype, device, team, placements, "empty")
    if team is not None:
        check_of_one_process(layout, "empty")
    place = device_name(device, "empty")
    name = dtype_at(dtype, "float64", place, "empty")
    type = PTensorType(shape_of(shape, "empty", name), name, place)
    return made(empty_in(type, layout, "empty"))


def zeros(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """An array of zeros.

    Args:
        shape: the extents.
        dtype: the element type; float64 if None.
        device: where the array lives.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; the device's
            own for such an array if None.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: an extent is below 0, there is no such device, or no such layout there.

    >>> zeros(2)
    Array([0., 0.], dtype=float64)
    """
    return _filled(shape, 0, dtype, device, team, placements, "zeros", layout)


def ones(
    shape: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """An array of ones.

    Args:
        shape: the extents.
        dtype: the element type; float64 if None.
        device: where the array lives.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; the device's
            own for such an array if None.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: an extent is below 0, there is no such device, or no such layout there.

    >>> ones(2, dtype=np.int8)
    Array([1, 1], dtype=int8)
    """
    return _filled(shape, 1, dtype, device, team, placements, "ones", layout)


def full(
    shape: Extents, fill_value: complex | Array, *, dtype: Any = None, device: Any = None,
    layout: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """An array of one value.

    Args:
        shape: the extents.
        fill_value: a number, or an array that broadcasts to the shape.
        dtype: the element type; that of the value if None.
        device: where the array lives; where the value lives if that is an array.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; the device's
            own for such an array if None.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: the elements cannot hold the value.
        ArrayValueError: an extent is below 0, there is no such device or layout, or shapes do not
            fit.
        DeviceMismatchError: the value lives on another device.

    >>> full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64)
    """
    if device is None and isinstance(fill_value, Array):
        device = fill_value.device
    if dtype is None and isinstance(fill_value, Array):
        dtype = fill_value.dtype
    elif dtype is None:
        own = dtype_name(np.asarray(_checked(fill_value, "full")).dtype, "full")
        dtype = default_dtype(own, device_name(device, "full"))
    if team is None and isinstance(fill_value, Array):
        team = node_of(fill_value, "full").type.team
    return _filled(shape, fill_value, dtype, device, team, placements, "full", layout)


def _filled(
    shape: Extents, value: Any, dtype: Any, device: Any, team: Any, placements: Any, where: str,
    layout: Any = None,
) -> Array:
    place = device_name(device, where)
    name = dtype_at(dtype, "float64", place, where)
    if team is None:
        need_team(placements, where)
    number = None if team is None else on_teams().number_of(team)
    type = PTensorType(shape_of(shape, where, name), name, place, number)
    return _created(type, value, placements, where, layout)


def _created(
    type: PTensorType, value: Any, placements: Any, where: str, layout: Any = None
) -> Array:
    if layout is None:
        return _filled_array(type, value, placements, where)
    if type.team is not None:
        check_of_one_process(layout, where)
    filled = node_of(_filled_array(type, value, placements, where), where)
    return made(on_device(filled, type.device or CPU, layout, where))


def _filled_array(type: PTensorType, value: Any, placements: Any, where: str) -> Array:
    node = node_of(value, where) if isinstance(value, Array) else _number(value, type, where)
    check_together([type, node.type], where)
    if type.team is not None:
        return made(on_teams().filled(node, type, placements, where))
    shape, dtype = type.shape, type.dtype
    if dtype == node.type.dtype and node.data is not None:
        # One element in memory, which kernels read again and again.
        return made(moved(Broadcast(shape), node))
    if node.type.shape:
        return made(moved(Broadcast(shape), record(Cast(dtype), node)))
    return made(record(Create(shape, dtype, type.device), node))


def _numbered(op: Creation, team: Any, placements: Any, where: str) -> Array:
    if team is None:
        need_team(placements, where)
        return made(created(op))
    return made(on_teams().numbered(op, team, placements, where))


def _checked(value: Any, where: str) -> bool | int | float | complex:
    """A number of Python.

    Raises:
        ArrayTypeError: it is none.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float | complex):
        return value
    raise ArrayTypeError(
        f"{where}: the value is {value.__class__.__name__}; give a number or an array of this "
        "namespace",
        kind="no-array",
    )


def _number(value: Any, type: PTensorType, where: str) -> Node:
    """A number in the element type of an array."""
    dtype = type.dtype
    value = _checked(value, where)
    if isinstance(value, complex) and dtype not in COMPLEX:
        raise ArrayTypeError(
            f"{where}: {value} is complex, which no {dtype} can hold; give a complex dtype"
        )
    if dtype in INTEGERS:
        _check_range(value, dtype, where)
    with np.errstate(over="ignore"):  # a float32 of 1e300 is inf
        data = np.array(value, numpy_dtype(dtype))
    return leaf(data, PTensorType((), dtype, type.device, type.team))


def _check_range(value: Any, dtype: str, where: str) -> None:
    info = np.iinfo(dtype)
    if not (isfinite(value) and info.min <= value <= info.max):
        raise ArrayTypeError(
            f"{where}: {value} is no {dtype}, which goes from {info.min} to {info.max}; give "
            "another dtype"
        )


def empty_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """An array of another's shape, whose elements nobody has said.

    Args:
        x: Input array.
        dtype: the element type; that of `x` if None.
        device: where the array lives; where `x` does if None.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; as those of
            `x` if None and the array has its dtype and device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> empty_like(ones((2, 3))).shape
    (2, 3)
    """
    return _alike(x, 0, dtype, device, layout, "empty_like")


def zeros_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Zeros in another array's shape.

    Args:
        x: Input array.
        dtype: the element type; that of `x` if None.
        device: where the array lives; where `x` does if None.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; as those of
            `x` if None and the array has its dtype and device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> zeros_like(ones(2))
    Array([0., 0.], dtype=float64)
    """
    return _alike(x, 0, dtype, device, layout, "zeros_like")


def ones_like(
    x: Array, /, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Ones in another array's shape.

    Args:
        x: Input array.
        dtype: the element type; that of `x` if None.
        device: where the array lives; where `x` does if None.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; as those of
            `x` if None and the array has its dtype and device.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If the device is unknown or does not support the layout.

    >>> ones_like(zeros(2))
    Array([1., 1.], dtype=float64)
    """
    return _alike(x, 1, dtype, device, layout, "ones_like")


def full_like(
    x: Array, /, fill_value: complex | Array, *, dtype: Any = None, device: Any = None,
    layout: Any = None,
) -> Array:
    """One value in another array's shape.

    Args:
        x: Input array.
        fill_value: a number, or an array that broadcasts to the shape.
        dtype: the element type; that of `x` if None.
        device: where the array lives; where `x` does if None.
        layout: where the elements are in the memory of the device, a `tecomp.Layout`; as those of
            `x` if None and the array has its dtype and device.

    Raises:
        ArrayTypeError: the elements cannot hold the value.
        ArrayValueError: there is no such device or layout, or shapes do not fit.
        DeviceMismatchError: the value lives on another device.

    >>> full_like(zeros(2), 7)
    Array([7., 7.], dtype=float64)
    """
    return _alike(x, fill_value, dtype, device, layout, "full_like")


def _alike(x: Array, value: Any, dtype: Any, device: Any, layout: Any, where: str) -> Array:
    node = node_of(x, where)
    type = node.type
    name = type.dtype if dtype is None else dtype_name(dtype, where)
    place = x.device if device is None else device_name(device, where)
    check_dtype(name, place, where)
    like = PTensorType(type.shape, name, place, type.team)
    placements = None if type.team is None else on_teams().alike(node)
    if layout is None and like == type and type.team is None:
        layout = kept_layout(node)
    return _created(like, value, placements, where, layout)


def eye(
    n_rows: int, n_cols: int | None = None, /, *,
    k: int = 0, dtype: Any = None, device: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    Args:
        n_rows: the number of rows.
        n_cols: the number of columns; as many as rows if None.
        k: the diagonal, so many columns to the right of the main one.
        dtype: the element type; float64 if None.
        device: where the array lives.
        team: the processes among which it is divided; this one alone if None.
        placements: what each process keeps, such as `[dist.Shard(1)]`, or a `dist.Partition`; the
            first axis is cut into blocks if None.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: a number is below 0, or there is no such device.

    >>> eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float64)
    """
    where = "eye"
    place = device_name(device, where)
    name = dtype_at(dtype, "float64", place, where)
    rows, columns = shape_of((n_rows, n_rows if n_cols is None else n_cols), where, name)
    op = Eye(rows, columns, integer(k, where, "k"), name, place)
    return _numbered(op, team, placements, where)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """The lower triangle of matrices, and zeros elsewhere.

    Args:
        x: shape (..., m, n).
        k: the last diagonal that is kept, so many columns to the right of the main one.

    Raises:
        ArrayValueError: there are less than two axes.

    >>> tril(ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float64)
    """
    return _triangle("lower", x, k, "tril")


def triu(x: Array, /, *, k: int = 0) -> Array:
    """The upper triangle of matrices, and zeros elsewhere.

    Args:
        x: shape (..., m, n).
        k: the first diagonal that is kept, so many columns to the right of the main one.

    Raises:
        ArrayValueError: there are less than two axes.

    >>> triu(ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    return _triangle("upper", x, k, "triu")


def _triangle(part: Literal["lower", "upper"], x: Array, k: int, where: str) -> Array:
    node = node_of(x, where)
    return made(record(ExtractTriangle(part, diagonal_of(k, node.type.shape, where, "k")), node))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Arrays of coordinates: each of the arrays along an axis of its own, repeated along others.

    Args:
        arrays: of one axis, or of none, and one element type.
        indexing: `ij` for the axes in order, `xy` for the first two exchanged.

    Returns:
        One array for each.

    Raises:
        ArrayValueError: an array has more axes, or there is no such indexing.
        DeviceMismatchError: If the arrays are on different devices.

    >>> [x.shape for x in meshgrid(arange(2), arange(3))]
    [(3, 2), (3, 2)]
    """
    where = "meshgrid"
    op = MeshGrid(word(indexing, ("xy", "ij"), "meshgrid", "indexing"))
    nodes = [node_of(x, where) for x in arrays]
    if not nodes:
        return []
    shape = op.results(*[node.type for node in nodes])[0].shape
    order = op.order(len(nodes))
    places = [_along(node, order.index(k), len(nodes)) for k, node in enumerate(nodes)]
    return [made(moved(Broadcast(shape), node)) for node in places]


def _along(node: Node, axis: int, rank: int) -> Node:
    return moved(Reshape((*(1,) * axis, node.type.size, *(1,) * (rank - axis - 1))), node)
