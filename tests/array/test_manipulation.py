"""Reshaping, permuting and joining arrays agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.array_object import from_node
from tecomp.array.graph import record
from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TecompError,
)
from tecomp.ptensor import ALL, CastOp, numpy_dtype
from tests.messages import Diagnostic, diagnostic

SHAPES: list[tuple[int, ...]] = [(), (4,), (0,), (2, 3), (3, 0, 2), (1, 3, 1)]


def data_of(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def same(x: Array, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(x), expected)


def both(call: Callable[..., Any], *data: np.ndarray[Any, Any], **more: Any) -> None:
    """Compare a call of both namespaces, for arrays in memory and for pending arrays."""
    expected = call(np, data if len(data) > 1 else data[0], **more)
    arrays = [xp.asarray(one) for one in data]
    same(call(xp, arrays if len(data) > 1 else arrays[0], **more), expected)
    pending = [from_node(record(CastOp(one.dtype.name), xp.asarray(one)._node)) for one in data]
    same(call(xp, pending if len(data) > 1 else pending[0], **more), expected)


@pytest.mark.exhaustive(keep=5)
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


@pytest.mark.exhaustive(keep=3)
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
    copied = xp.reshape(x, (24,), copy=True)
    copied[0] = 5
    same(x, data)


def test_rolls() -> None:
    data = data_of((3, 4))
    for shift, axis in [(7, None), (-5, None), ((1, 2), (0, 1)), (1, (0, 1)), ((1, 2), 1),
                        ((1, 1), (0, 0)), (0, 0), (4, 1)]:
        both(lambda np, x, shift, axis: np.roll(x, shift, axis=axis), data, shift=shift, axis=axis)


X = xp.asarray(data_of((2, 3)))
THERE = xp.asarray(data_of((2, 3)), dtype=xp.int32, device="stick128")
APART = (
    "operand 0 is ptensor<2x3xint64, device='cpu'>, but operand 1 is ptensor<2x3xint32, "
    "device='stick128'>; all operands must be on the same device: transfer one of them, "
    "x.to_device('cpu')"
)

REFUSED: list[tuple[type[TecompError], Callable[[], object], Diagnostic]] = [
    (ArrayValueError, lambda: xp.broadcast_to(X, (2, 4)), Diagnostic(
        "array-shapes", where="broadcast_to", texts="(2, 3) and (2, 4)", axis=-1,
        extents="3 and 4",
    )),
    (ArrayValueError, lambda: xp.broadcast_to(X, (3,)), Diagnostic(
        "array-shapes", shape=(2, 3), subject_shape=(3,),
    )),
    (ArrayValueError, lambda: xp.concat([X, X[:, :2]]), Diagnostic(
        "array-shapes", where="concat", shape=(2, 3), k=1, other_shape=(2, 2),
        but=" except along axis 0",
    )),
    (ArrayValueError, lambda: xp.concat([X, X[:, 0]], axis=1), Diagnostic(
        "array-shapes", where="concat", shape=(2, 3), k=1, other_shape=(2,),
        but=" except along axis 1",
    )),
    (ArrayValueError, lambda: xp.stack([X, X[0]]), Diagnostic(
        "array-shapes", where="stack", shape=(2, 3), k=1, other_shape=(3,), but="",
    )),
    (ArrayValueError, lambda: xp.concat([]), Diagnostic("missing-input", where="concat")),
    (ArrayTypeError, lambda: xp.concat(X),  # type: ignore[arg-type]
     Diagnostic("array-type", where="concat", type="Array")),
    (ArrayTypeError, lambda: xp.stack([X, 1]), Diagnostic(  # type: ignore[list-item]
        "not-an-array", where="stack", subject="array 1", type="int",
    )),
    (ArrayIndexError, lambda: xp.concat([X], axis=2), Diagnostic(
        "array-index", where="concat", subject="axis", value=2, rank=2, numbers="from -2 to 1",
    )),
    (ArrayIndexError, lambda: xp.stack([X], axis=3), Diagnostic(
        "array-index", where="stack", subject="axis", value=3, rank=3, numbers="from -3 to 2",
    )),
    (DeviceMismatchError, lambda: xp.concat([X, THERE]), Diagnostic(
        "device-mismatch", where="concat", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (DeviceMismatchError, lambda: xp.stack([X, THERE]), Diagnostic(
        "device-mismatch", where="stack", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (DeviceMismatchError, lambda: xp.broadcast_arrays(X, THERE), Diagnostic(
        "device-mismatch", where="broadcast_arrays", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (DeviceMismatchError, lambda: xp.take_along_axis(X, THERE), Diagnostic(
        "device-mismatch", where="take_along_axis", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (DeviceMismatchError, lambda: xp.take(X, THERE, axis=0), Diagnostic(
        "device-mismatch", where="take", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (DeviceMismatchError, lambda: xp.repeat(X, THERE, axis=0), Diagnostic(
        "device-mismatch", where="repeat", first="ptensor<2x3xint64, device='cpu'>", k=1,
        other="ptensor<2x3xint32, device='stick128'>", device="cpu",
    )),
    (ArrayIndexError, lambda: xp.expand_dims(X, axis=3), Diagnostic(
        "array-index", where="expand_dims", subject="axis", value=3, rank=3, numbers="from -3 to 2",
    )),
    (ArrayValueError, lambda: xp.flip(X, axis=(0, -2)), Diagnostic(
        "array-value", where="flip", axes=(0, -2), rank=2,
    )),
    (ArrayValueError, lambda: xp.permute_dims(X, (0, 0)), Diagnostic(
        "array-shapes", axis=(0, 0), shape=(2, 3), rank=2,
    )),
    (ArrayValueError, lambda: xp.moveaxis(X, (0, 1), 0), Diagnostic(
        "array-value", where="moveaxis", old=(0, 1), new=(0,),
    )),
    (ArrayValueError, lambda: xp.moveaxis(X, (0, 0), (0, 1)), Diagnostic(
        "array-value", subject="source", axes=(0, 0),
    )),
    (ArrayValueError, lambda: xp.repeat(X, -1), Diagnostic("array-value", repeats=-1)),
    (ArrayTypeError, lambda: xp.repeat(X, 1.5), Diagnostic(  # type: ignore[arg-type]
        "array-type", where="repeat", subject="repeats", value=1.5, type="float",
    )),
    (ArrayTypeError, lambda: xp.repeat(X, xp.asarray([1.0])), Diagnostic(
        "array-type", where="repeat", type="ptensor<1xfloat64, device='cpu'>",
    )),
    (ArrayValueError, lambda: xp.repeat(X, xp.asarray([1, 2])), Diagnostic(
        "array-shapes", where="repeat", shape=(2,), extent=6, axis=0,
    )),
    (ArrayValueError, lambda: xp.repeat(X, xp.asarray([1, -2]), axis=0), Diagnostic(
        "array-value", count="-2", index=1,
    )),
    (ArrayValueError, lambda: xp.reshape(X, (4,)), Diagnostic(
        "array-shapes", shape=(2, 3), size=6, subject_shape=(4,), count=4,
    )),
    (ArrayValueError, lambda: xp.reshape(X, (4, -1)), Diagnostic(
        "array-shapes", x_shape=(2, 3), size=6, shape=(4, -1),
    )),
    (ArrayValueError, lambda: xp.reshape(X, (-2,)), Diagnostic(
        "array-value", where="reshape", extents=(-2,),
    )),
    (ArrayValueError, lambda: xp.roll(X, (1, 2)), Diagnostic(
        "array-value", where="roll", shifts=(1, 2),
    )),
    (ArrayValueError, lambda: xp.roll(X, ()), Diagnostic("array-value", where="roll", shifts=())),
    (ArrayValueError, lambda: xp.roll(X, (1, 2, 3), axis=(0, 1)), Diagnostic(
        "array-value", where="roll", shifts=(1, 2, 3), axes=(0, 1),
    )),
    (ArrayValueError, lambda: xp.squeeze(X, axis=0), Diagnostic(
        "array-shapes", shape=(2, 3), extent=2, axis=0,
    )),
    (ArrayValueError, lambda: xp.tile(X, (2, -1)), Diagnostic("array-value", repetitions=(2, -1))),
    (ArrayValueError, lambda: xp.tile(xp.ones(3), (2**50,)), Diagnostic(
        "limit-exceeded", where="tile", extents=(3377699720527872,), size=27021597764222976,
        most_bytes=140737488355328,
    )),
    (ArrayValueError, lambda: xp.repeat(xp.ones(3), 2**50), Diagnostic(
        "limit-exceeded", where="repeat", extents=(3377699720527872,), size=27021597764222976,
        most_bytes=140737488355328,
    )),
    (ArrayIndexError, lambda: xp.unstack(xp.asarray(1)), Diagnostic(
        "array-index", where="unstack", subject="axis", value=0, rank=0,
        numbers="none (the array has no axes)",
    )),
    (ArrayValueError, lambda: X[0].mT, Diagnostic("array-shapes", shape=(3,))),
]


@pytest.mark.parametrize(("error", "call", "expected"), REFUSED)
def test_bad_arguments(
    error: type[TecompError], call: Callable[[], object], expected: Diagnostic
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert diagnostic(caught.value) == expected
