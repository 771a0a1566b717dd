"""Arrays in other shapes, and joined, beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.array_object import made
from tecomp.array.graph.node import record
from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TecompError,
)
from tecomp.ptensor.operations.elementwise import Cast
from tecomp.ptensor.types import ALL, numpy_dtype

SHAPES: list[tuple[int, ...]] = [(), (4,), (0,), (2, 3), (3, 0, 2), (1, 3, 1)]


def data_of(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def same(x: Array, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(x), expected)


def both(call: Callable[..., Any], *data: np.ndarray[Any, Any], **more: Any) -> None:
    """The same call of both namespaces, on arrays in memory and on those that are recorded."""
    expected = call(np, data if len(data) > 1 else data[0], **more)
    arrays = [xp.asarray(one) for one in data]
    same(call(xp, arrays if len(data) > 1 else arrays[0], **more), expected)
    pending = [made(record(Cast(one.dtype.name), xp.asarray(one)._node)) for one in data]
    same(call(xp, pending if len(data) > 1 else pending[0], **more), expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    data, rank = data_of(shape), len(shape)
    both(lambda np, x: np.broadcast_to(x, (2, *shape)), data)
    both(lambda np, x: np.expand_dims(x, axis=rank), data)
    both(lambda np, x: np.expand_dims(x, axis=(0, -1)), data)
    both(lambda np, x: np.flip(x), data)
    both(lambda np, x: np.reshape(x, (-1,)) if data.size else np.reshape(x, (0,)), data)
    both(lambda np, x: np.tile(x, (2, 1)), data)
    both(lambda np, x: np.repeat(x, 2), data)
    both(lambda np, x: np.roll(x, 2), data)
    both(lambda np, x: np.permute_dims(x, tuple(range(rank))[::-1]), data)
    for axis in range(-rank, rank):
        both(lambda np, x, axis: np.flip(x, axis=axis), data, axis=axis)
        both(lambda np, x, axis: np.roll(x, -1, axis=axis), data, axis=axis)
        both(lambda np, x, axis: np.repeat(x, 3, axis=axis), data, axis=axis)
        both(lambda np, x, axis: np.moveaxis(x, axis, 0), data, axis=axis)


@pytest.mark.parametrize("dtype", [numpy_dtype(name) for name in ALL], ids=str)
def test_each_type(dtype: np.dtype[Any]) -> None:
    data = data_of((2, 3)).astype(dtype)
    other = data[::-1, :2]
    both(lambda np, x: np.concat(x, axis=1), data, other)
    both(lambda np, x: np.stack(x, axis=1), data, data)
    both(lambda np, x: np.roll(np.flip(np.permute_dims(x, (1, 0)), axis=0), (1, 2), axis=(0, 1)), data)


def test_joined_arrays() -> None:
    a, b, c = data_of((2, 3)), data_of((2, 1)) * 0.5, data_of((2, 0)) * 1j
    both(lambda np, x: np.concat(x, axis=-1), a, b)
    both(lambda np, x: np.concat(x, axis=1), a, b, c)
    both(lambda np, x: np.concat(x, axis=None), a, b)
    both(lambda np, x: np.concat(x), a.astype("int8"), a.astype("uint8"))
    for axis in (0, 1, 2, -1):
        both(lambda np, x, axis: np.stack(x, axis=axis), a, a * 2, a * 1j, axis=axis)
    many = [data_of((k % 3, 2)) + k for k in range(9)]
    both(lambda np, x: np.concat(x), *many)
    both(lambda np, x: np.stack(x), np.array(1), np.array(2.5))


def test_broadcasting() -> None:
    a, b = xp.asarray(data_of((2, 1))), xp.asarray(data_of((3,)))
    first, second = xp.broadcast_arrays(a, b)
    same(first, np.broadcast_to(data_of((2, 1)), (2, 3)))
    same(second, np.broadcast_to(data_of((3,)), (2, 3)))
    assert xp.broadcast_arrays() == []
    same(xp.broadcast_to(b[:1], 4), np.zeros(4, int))
    same(xp.broadcast_to(b[1], (2, 3)) - 1, np.zeros((2, 3), int))
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert xp.broadcast_shapes() == ()


def test_moved_axes() -> None:
    data = data_of((2, 3, 4))
    both(lambda np, x: np.moveaxis(x, 0, -1), data)
    both(lambda np, x: np.moveaxis(x, (0, 1), (2, 0)), data)
    both(lambda np, x: np.moveaxis(x, (2, 0), (0, 1)), data)
    both(lambda np, x: np.permute_dims(x, (-1, 0, 1)), data)
    both(lambda np, x: np.squeeze(np.expand_dims(x, axis=1), axis=1), data)
    both(lambda np, x: np.squeeze(x[:1, :, :1], axis=(0, 2)), data)
    same(xp.asarray(data)[0].T, data[0].T)
    same(xp.asarray(data).mT, data.mT)


def test_parts() -> None:
    data = data_of((2, 3, 4))
    for axis in (0, 1, -1):
        for one, other in zip(
            xp.unstack(xp.asarray(data), axis=axis), np.unstack(data, axis=axis), strict=True
        ):
            same(one, other)


def test_repeats_from_arrays() -> None:
    data = data_of((2, 3))
    for counts in ([1, 0, 2], [0, 0, 0], [3]):
        same(xp.repeat(xp.asarray(data), xp.asarray(counts), axis=1), np.repeat(data, counts, axis=1))
    same(xp.repeat(xp.asarray(data), xp.asarray(range(6))), np.repeat(data, range(6)))
    same(xp.repeat(xp.asarray(data * 1j), xp.asarray(2, dtype=np.uint8)), np.repeat(data * 1j, 2))
    same(xp.repeat(xp.asarray([]), xp.asarray([], dtype=np.int64)), np.array([]))


def test_reshape() -> None:
    data = data_of((4, 6))
    for shape in [(24,), [2, -1], (-1, 3, 2), 24, (8, 3)]:
        both(lambda np, x, shape: np.reshape(x, shape), data, shape=shape)
        both(lambda np, x, shape: np.reshape(x.T, shape), data, shape=shape)
    x = xp.asarray(data)
    same(xp.reshape(x, (24,), copy=False), data.reshape(24))
    own = xp.reshape(x, (24,), copy=True)
    own[0] = 5
    same(x, data)


def test_rolls() -> None:
    data = data_of((3, 4))
    for shift, axis in [(7, None), (-5, None), ((1, 2), (0, 1)), (1, (0, 1)), ((1, 2), 1),
                        ((1, 1), (0, 0)), (0, 0), (4, 1)]:
        both(lambda np, x, shift, axis: np.roll(x, shift, axis=axis), data, shift=shift, axis=axis)


X = xp.asarray(data_of((2, 3)))
THERE = xp.asarray(data_of((2, 3)), dtype=xp.int32, device="stick128")
APART = (
    "operand 0 is ptensor<2x3xint64, device='cpu'> and operand 1 is ptensor<2x3xint32, "
    "device='stick128'>; an operation runs where its operands live: bring one to the other's "
    "device, x.to_device('cpu')"
)

REFUSED: list[tuple[type[TecompError], Callable[[], object], str]] = [
    (ArrayValueError, lambda: xp.broadcast_to(X, (2, 4)), "broadcast_to: shapes (2, 3) and (2, 4) "
     "do not broadcast: axis -1 has extents 3 and 4; make them equal, or one of them 1"),
    (ArrayValueError, lambda: xp.broadcast_to(X, (3,)), "broadcast_to: x has shape (2, 3), which "
     "does not broadcast to (3,): only axes of extent 1 are repeated, and new ones go before all "
     "others"),
    (ArrayValueError, lambda: xp.concat([X, X[:, :2]]), "concat: array 0 has shape (2, 3) and array "
     "1 (2, 2); give arrays of one shape except along axis 0"),
    (ArrayValueError, lambda: xp.concat([X, X[:, 0]], axis=1), "concat: array 0 has shape (2, 3) and "
     "array 1 (2,); give arrays of one shape except along axis 1"),
    (ArrayValueError, lambda: xp.stack([X, X[0]]), "stack: array 0 has shape (2, 3) and array 1 "
     "(3,); give arrays of one shape"),
    (ArrayValueError, lambda: xp.concat([]), "concat: there is no array; give one at least"),
    (ArrayTypeError, lambda: xp.concat(X), "concat: arrays is Array; give a tuple or a list of "  # type: ignore[arg-type]
     "arrays"),
    (ArrayTypeError, lambda: xp.stack([X, 1]), "stack: array 1 is int; give an array of this "  # type: ignore[list-item]
     "namespace: xp.asarray(...)"),
    (ArrayIndexError, lambda: xp.concat([X], axis=2), "concat: axis is 2 of 2 axes; there are from "
     "-2 to 1"),
    (ArrayIndexError, lambda: xp.stack([X], axis=3), "stack: axis is 3 of 3 axes; there are from -3 "
     "to 2"),
    (DeviceMismatchError, lambda: xp.concat([X, THERE]), f"concat: {APART}"),
    (DeviceMismatchError, lambda: xp.stack([X, THERE]), f"stack: {APART}"),
    (DeviceMismatchError, lambda: xp.broadcast_arrays(X, THERE), f"broadcast_arrays: {APART}"),
    (DeviceMismatchError, lambda: xp.take_along_axis(X, THERE), f"take_along_axis: {APART}"),
    (DeviceMismatchError, lambda: xp.take(X, THERE, axis=0), f"take: {APART}"),
    (DeviceMismatchError, lambda: xp.repeat(X, THERE, axis=0), f"repeat: {APART}"),
    (ArrayIndexError, lambda: xp.expand_dims(X, axis=3), "expand_dims: axis is 3 of 3 axes; there "
     "are from -3 to 2"),
    (ArrayValueError, lambda: xp.flip(X, axis=(0, -2)), "flip: axis is (0, -2) of 2 axes, which has "
     "one twice; give each once"),
    (ArrayValueError, lambda: xp.permute_dims(X, (0, 0)), "permute_dims: axes is (0, 0), and x has "
     "shape (2, 3); name each of its 2 axes once"),
    (ArrayValueError, lambda: xp.moveaxis(X, (0, 1), 0), "moveaxis: source is (0, 1) and "
     "destination (0,); give a place for each axis"),
    (ArrayValueError, lambda: xp.moveaxis(X, (0, 0), (0, 1)), "moveaxis: source is (0, 0); name "
     "each axis once"),
    (ArrayValueError, lambda: xp.repeat(X, -1), "repeat: repeats is -1; give how often, 0 or more"),
    (ArrayTypeError, lambda: xp.repeat(X, 1.5), "repeat: repeats is 1.5, float; give an integer"),  # type: ignore[arg-type]
    (ArrayTypeError, lambda: xp.repeat(X, xp.asarray([1.0])), "repeat: repeats is ptensor<1xfloat64"
     ", device='cpu'>; give integers"),
    (ArrayValueError, lambda: xp.repeat(X, xp.asarray([1, 2])), "repeat: repeats has shape (2,), "
     "and x has 6 elements along axis 0; give a number for each, or one"),
    (ArrayValueError, lambda: xp.repeat(X, xp.asarray([1, -2]), axis=0), "repeat: repeats has -2 at "
     "1; give how often for each element, 0 or more"),
    (ArrayValueError, lambda: xp.reshape(X, (4,)), "reshape: x has shape (2, 3), 6 elements, and "
     "(4,) has 4; give a shape of as many, where -1 stands for what is left"),
    (ArrayValueError, lambda: xp.reshape(X, (4, -1)), "reshape: x has shape (2, 3), 6 elements, "
     "which leave open what -1 is in (4, -1); write the extents"),
    (ArrayValueError, lambda: xp.reshape(X, (-2,)), "reshape: the shape is (-2,); give extents of 0 "
     "or more"),
    (ArrayValueError, lambda: xp.roll(X, (1, 2)), "roll: shift is (1, 2), and there is no axis for "
     "each; give one number, or name the axes"),
    (ArrayValueError, lambda: xp.roll(X, ()), "roll: shift is (), and there is no axis for each; "
     "give one number, or name the axes"),
    (ArrayValueError, lambda: xp.roll(X, (1, 2, 3), axis=(0, 1)), "roll: shift is (1, 2, 3) and "
     "axis (0, 1); give a shift for each axis"),
    (ArrayValueError, lambda: xp.squeeze(X, axis=0), "squeeze: x has shape (2, 3), extent 2 along "
     "axis 0; name axes of extent 1"),
    (ArrayValueError, lambda: xp.tile(X, (2, -1)), "tile: repetitions is (2, -1); give how often "
     "for each axis, 0 or more"),
    (ArrayValueError, lambda: xp.tile(xp.ones(3), (2**50,)), "tile: the shape (3377699720527872,) "
     "takes 27021597764222976 bytes; 140737488355328 is the most"),
    (ArrayValueError, lambda: xp.repeat(xp.ones(3), 2**50), "repeat: the shape "
     "(3377699720527872,) takes 27021597764222976 bytes; 140737488355328 is the most"),
    (ArrayIndexError, lambda: xp.unstack(xp.asarray(1)), "unstack: axis is 0 of 0 axes; there are "
     "none: the array has no axes"),
    (ArrayValueError, lambda: X[0].T, "x.T: x has shape (3,); it exchanges the axes of a matrix: "
     "x.mT for several matrices, permute_dims for other axes"),
    (ArrayValueError, lambda: X[0].mT, "x.mT: x has shape (3,); give matrices, two axes or more"),
]


@pytest.mark.parametrize(("error", "call", "text"), REFUSED, ids=[case[2] for case in REFUSED])
def test_bad_arguments(error: type[TecompError], call: Callable[[], object], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.message == text
