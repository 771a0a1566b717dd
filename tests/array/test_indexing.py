"""Indexed reads and writes agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.statistics import counters
from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TecompError,
)
from tecomp.ptensor import ALL, numpy_dtype
from tests.messages import Diagnostic, diagnostic

DATA = np.arange(3 * 4 * 5).reshape(3, 4, 5)

BASIC = [
    (), ..., 0, -1, (1, 2), (1, 2, 3), (-3, -4, -5), (..., 0), (0, ...), (..., slice(None, None, 2)),
    slice(1, None), slice(None, None, -1), slice(-1, 0, -2), (slice(5, 1), 0), slice(-10, 10, 3),
    (slice(None), slice(3, 0, -1), slice(1, 4)), None, (None, 0, None), (0, None, ..., None),
    (slice(-10, None, -1),), (slice(0, 0),), (np.int64(1), slice(None, 2)), (slice(None), 1, None),
]

ROW = np.array([2, 0, -1])
GRID = np.array([[0, 1], [2, -3]])
MASK = DATA % 3 == 0
ADVANCED = [
    ROW, (ROW, ROW), (slice(None), ROW), (..., ROW), (ROW, ..., ROW), (ROW, slice(None), ROW),
    GRID, (GRID, ROW[:2]), (slice(None), GRID, ROW[:2]), (0, ROW), (ROW, 0), (0, slice(None), ROW),
    (slice(None), 0, ROW), (None, ROW), (ROW, None, ROW), (0, None, ROW), (slice(None, None, -1), ROW),
    MASK, MASK[:, 0, 0], (MASK[:, 0, 0],), (slice(None), MASK[0, :, 0]), (0, MASK[0]),
    (slice(None), MASK[0]), (..., MASK[0, 0]), (MASK[:, :, 0], 1), (MASK[:, 0, 0], ..., ROW[:1]),
    np.zeros((3, 4, 5), bool), np.ones((3,), bool), np.zeros((0,), int), np.zeros((2, 0), "int8"),
    (ROW.astype("int8"), slice(1, 3)), np.array([2, 0], "uint64"), np.array(1), (np.array(1), ROW),
    True, False, (True, 0), (slice(0, 2), ROW, slice(None, None, 2)), (MASK[:, 0, 0], slice(2, 2)),
]


def ours(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(ours, key))
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


def same(x: Array, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(x), expected)


def refused(error: type[TecompError], call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(error) as caught:
        call()
    return diagnostic(caught.value)


def placed(expected: Diagnostic, where: str) -> Diagnostic:
    return Diagnostic(expected.kind, where=where, **expected.parameters)


def put(x: Array, key: Any, value: Any) -> None:
    x[key] = value


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_indices(key: Any) -> None:
    same(xp.asarray(DATA)[key], DATA[key])
    same((xp.asarray(DATA) + 1)[key], (DATA + 1)[key])
    same((xp.asarray(DATA) * 1j)[key], (DATA * 1j)[key])


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_indices_with_arrays(key: Any) -> None:
    same(xp.asarray(DATA)[ours(key)], DATA[key])
    same(xp.asarray(DATA[::-1, :, ::-1])[ours(key)], DATA[::-1, :, ::-1][key])


@pytest.mark.exhaustive(keep=51)
@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=str)
def test_assignment(key: Any) -> None:
    part = DATA[key]
    values: list[Any] = [7, np.arange(part.size).reshape(part.shape) - 50]
    if part.ndim:
        values.append(np.arange(part.shape[-1]) + 100)
    for value in values:
        x, expected = xp.asarray(DATA), DATA.copy()
        data = xp.asarray(value) if isinstance(value, np.ndarray) else value
        put(x, ours(key), data)
        expected[key] = value
        same(x, expected)
    pending, expected = xp.asarray(DATA) + 1, DATA + 1
    put(pending, ours(key), -1)
    expected[key] = -1
    same(pending, expected)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("dtype", [numpy_dtype(name) for name in ALL], ids=str)
def test_each_type(dtype: np.dtype[Any]) -> None:
    data = np.arange(6).reshape(2, 3).astype(dtype)
    rows, mask = np.array([1, 0, 1]), np.array([[True, False, True], [False, True, True]])
    x = xp.asarray(data)
    same(x[:, ::-1], data[:, ::-1])
    same(x[xp.asarray(rows)], data[rows])
    same(x[:, xp.asarray(rows)], data[:, rows])
    same(x[xp.asarray(mask)], data[mask])
    same(xp.take_along_axis(x, xp.asarray(rows[None, :]), axis=0),
         np.take_along_axis(data, rows[None, :], 0))
    data, one, zero = data.copy(), *((True, False) if dtype == np.bool else (1, 0))
    x[0, 1:], data[0, 1:] = one, one
    x[xp.asarray(mask)], data[mask] = zero, zero
    x[xp.asarray([1]), 0], data[[1], 0] = one, one
    same(x, data)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("extents", [(0,), (0, 3), (2, 0), (0, 0), (2, 3, 0), (0, 3, 4)])
def test_masks_with_an_extent_of_0_select_no_element(extents: tuple[int, ...]) -> None:
    data, mask = np.arange(24.0).reshape(2, 3, 4), np.zeros(extents, "bool")
    for device in ("cpu", "stick128"):
        x = xp.asarray(data, dtype=xp.float32, device=device)
        source = xp.asarray(mask, device=device)
        same(x[source], data.astype("float32")[mask])
        same((x + 1)[source], data.astype("float32")[mask])
        for value in (7.0, xp.zeros(data[mask].shape, dtype=xp.float32, device=device)):
            x[source] = value
        np.testing.assert_array_equal(np.asarray(x), data)
    with pytest.raises(ArrayIndexError) as refused:
        xp.asarray(data)[xp.zeros((0, 5), dtype=xp.bool)]
    assert diagnostic(refused.value) == (
        Diagnostic("array-index", where="x[...]", shape=(0, 5), axes_shape=(2, 3))
    )


def test_views_and_element_reads_compile_nothing() -> None:
    x = xp.asarray(np.arange(24.0).reshape(2, 3, 4))
    before = str(counters)
    for view in (x[0], x[..., 1], x[:, ::-1, ::2], x[None, 1:], x.mT, xp.flip(x), x[1, 2, 3],
                 xp.permute_dims(x, (2, 0, 1)), xp.expand_dims(x, axis=1), xp.reshape(x, (6, 4)),
                 xp.broadcast_to(x, (5, 2, 3, 4)), xp.squeeze(x[:1], axis=0), xp.unstack(x)[1]):
        assert view._node.data is not None
        assert np.shares_memory(view._node.data, x._node.data)
    assert float(x[1, 2, 3]) == 23.0
    assert [float(element) for element in x[0, 0]] == [0.0, 1.0, 2.0, 3.0]
    assert str(counters) == before


def test_element_writes_compile_nothing_and_go_in_place() -> None:
    x = xp.asarray(np.zeros((3, 4)), copy=True)
    memory = x._node.data
    address = memory.ctypes.data  # type: ignore[union-attr]
    del memory
    before = counters.compiled, counters.called
    for k in range(3):
        x[k, k] = k + 1.5
    x[1:, 0] = 7
    assert (counters.compiled, counters.called) == before
    assert x._node.data.ctypes.data == address  # type: ignore[union-attr]
    expected = np.zeros((3, 4))
    expected[range(3), range(3)] = [1.5, 2.5, 3.5]
    expected[1:, 0] = 7
    same(x, expected)


def test_copies_are_counted() -> None:
    x = xp.asarray(np.zeros((3, 4)), copy=False)
    before = counters.libraries["numpy.copy"]
    x[0] = 1  # the memory is borrowed, so the first write copies
    x[1] = 2
    assert counters.libraries["numpy.copy"] == before + 1
    same(x.T[xp.asarray([0, 2])], np.array([[1.0, 2, 0], [1, 2, 0]]))
    assert counters.libraries["numpy.copy"] == before + 2


def test_assignments_are_visible_in_views_only() -> None:
    data = np.arange(6.0).reshape(2, 3)
    x = xp.asarray(data)
    before, row, later, exported = xp.asarray(x, copy=True), x[0], x + 1, np.asarray(x)
    x[0, 0] = 100
    row[1] = 200
    same(before, np.arange(6.0).reshape(2, 3))
    same(later, np.arange(6.0).reshape(2, 3) + 1)
    same(x, np.array([[100.0, 200, 2], [3, 4, 5]]))
    same(row, np.array([100.0, 200, 2]))
    np.testing.assert_array_equal(exported, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(data, np.arange(6.0).reshape(2, 3))


def test_parts_of_parts_and_other_shapes_share_too() -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    x = xp.asarray(data, copy=True)
    inner = x[1][::-1]
    flat = xp.reshape(x, (-1,))
    transposed = xp.permute_dims(x, (2, 0, 1))
    inner[0, 1] = -1
    flat[0] = -2
    transposed[3] += 100
    data[1][::-1][0, 1] = -1
    data.reshape(-1)[0] = -2
    data.transpose(2, 0, 1)[3] += 100
    for actual, expected in ((x, data), (inner, data[1][::-1]), (flat, data.reshape(-1)),
                         (transposed, data.transpose(2, 0, 1))):
        same(actual, expected)


def test_unshared_arrays_are_assigned_in_place() -> None:
    x = xp.asarray(np.arange(6.0).reshape(2, 3), copy=True)
    place = np.asarray(x).ctypes.data
    for k in range(2):
        row = x[k]
        row += 1
        row[0] = 7
    assert np.asarray(x).ctypes.data == place
    same(x, np.array([[7.0, 2, 3], [7, 5, 6]]))


def test_values_that_alias_the_destination() -> None:
    x, data = xp.asarray(np.arange(6.0), copy=True), np.arange(6.0)
    x[1:], data[1:] = x[:-1], data[:-1].copy()
    same(x, data)
    x[::-1], data[::-1] = x * 2, data * 2
    same(x, data)
    x[xp.asarray([0, 1])] = x[2:4]
    data[[0, 1]] = data[2:4]
    same(x, data)


def test_read_only_memory_is_never_written() -> None:
    data = np.arange(3.0)
    data.flags.writeable = False
    x = xp.asarray(data)
    read_only = Diagnostic("array-value", where="x[...] = value")
    assert refused(ArrayValueError, lambda: put(x, 0, 1)) == read_only
    assert refused(ArrayValueError, lambda: put(x[1:], 0, 1)) == read_only
    y = xp.asarray(x, copy=True)
    y[0] = 5
    same(y, np.array([5.0, 1, 2]))
    np.testing.assert_array_equal(data, np.arange(3.0))


def test_broadcast_arrays_are_written_as_values() -> None:
    x = xp.broadcast_to(xp.asarray([1.0, 2.0]), (3, 2))
    x[0, 0] = 9
    same(x, np.array([[9.0, 2], [1, 2], [1, 2]]))


def test_take() -> None:
    x, data = xp.asarray(DATA), DATA
    for axis in (0, 1, 2, -1):
        same(xp.take(x, xp.asarray(ROW), axis=axis), np.take(data, ROW, axis))
        same(xp.take(x, xp.asarray(GRID), axis=axis), np.take(data, GRID, axis))
    same(xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])), np.array([7, 5]))
    same(xp.take(xp.asarray([5, 6, 7]), xp.asarray(1)), np.array(6))


def test_take_along_axis() -> None:
    order = np.argsort(-DATA, axis=1)
    same(xp.take_along_axis(xp.asarray(DATA), xp.asarray(order), axis=1),
         np.take_along_axis(DATA, order, 1))
    few = order[:1, :, :2][..., :1]
    same(xp.take_along_axis(xp.asarray(DATA), xp.asarray(few), axis=1),
         np.take_along_axis(DATA, few, 1))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (0, 3), (1,)])
def test_nonzero(shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape)).reshape(shape) % 3
    for array in (data, data == 1, data * 1j, data[::-1].astype("float32")):
        for one, other in zip(xp.nonzero(xp.asarray(array)), np.nonzero(array), strict=True):
            same(one, other)


FORMS = "use integers, slices, `...`, None, or integer or boolean arrays of this namespace"
X = xp.asarray(np.zeros((3, 4)))

REFUSED: list[tuple[type[TecompError], Any, Diagnostic]] = [
    (ArrayIndexError, 3, Diagnostic(
        "array-index", number=3, axis=0, extent=3, inside="use an index from -3 to 2",
    )),
    (ArrayIndexError, (0, -5), Diagnostic(
        "array-index", number=-5, axis=1, extent=4, inside="use an index from -4 to 3",
    )),
    (ArrayIndexError, (slice(None), xp.asarray([0, 4])), Diagnostic(
        "array-index", number=4, axis=1, extent=4, inside="use an index from -4 to 3",
    )),
    (ArrayIndexError, xp.asarray(2**63, dtype=np.uint64), Diagnostic(
        "array-index", number=2**63, axis=0, extent=3, inside="use an index from -3 to 2",
    )),
    (ArrayIndexError, xp.asarray([2**63], dtype=np.uint64), Diagnostic(
        "array-index", number=2**63, axis=0, extent=3, inside="use an index from -3 to 2",
    )),
    (ArrayIndexError, (0, 0, 0), Diagnostic("array-index", index_count=3, shape=(3, 4), rank=2)),
    (ArrayIndexError, (..., 0, ...), Diagnostic("array-index", dot_count=2)),
    (ArrayIndexError, 1.5, Diagnostic("array-index", part=1.5, type="float", forms=FORMS)),
    (ArrayIndexError, "a", Diagnostic("array-index", part="a", type="str", forms=FORMS)),
    (ArrayIndexError, [0.5], Diagnostic("array-index", part=[0.5], type="list", forms=FORMS)),
    (ArrayIndexError, [0, [1]], Diagnostic("array-index", part=[0, [1]], type="list", forms=FORMS)),
    (ArrayIndexError, slice(None, None, 0), Diagnostic(
        "array-index", part="slice(None, None, 0)", reason="slice step cannot be zero",
    )),
    (ArrayIndexError, slice(1.5), Diagnostic(
        "array-index", part="slice(None, 1.5, None)",
        reason="slice indices must be integers or None or have an __index__ method",
    )),
    (ArrayIndexError, xp.asarray([0.5]), Diagnostic("array-index", dtype="float64", forms=FORMS)),
    (ArrayIndexError, xp.asarray([True, False]), Diagnostic("array-index", shape=(2,), axes_shape=(3,))),
    (ArrayIndexError, (0, xp.asarray([[True]])), Diagnostic(
        "array-index", index_count=3, shape=(3, 4), rank=2,
    )),
    (DeviceMismatchError, xp.asarray([0], device="stick128"), Diagnostic(
        "device-mismatch", first="ptensor<3x4xfloat64, device='cpu'>", k=1,
        other="ptensor<1xint32, device='stick128'>", device="cpu",
    )),
]


@pytest.mark.parametrize(("error", "key", "expected"), REFUSED)
def test_bad_indices(error: type[TecompError], key: Any, expected: Diagnostic) -> None:
    assert refused(error, lambda: X[key]) == placed(expected, "x[...]")
    assert refused(error, lambda: put(X, key, 1)) == placed(expected, "x[...] = value")


VALUES: list[tuple[type[TecompError], Any, Any, Diagnostic]] = [
    (ArrayTypeError, 0, 1j, Diagnostic(
        "array-type", type="ptensor<complex128, device='cpu'>", dtype="float64",
        type_dtype="complex128",
    )),
    (ArrayTypeError, 0, "a", Diagnostic("not-an-array", subject="value", class_="str")),
    (ArrayTypeError, 0, {1, 2}, Diagnostic("not-an-array", subject="value", class_="set")),
    (ArrayValueError, 0, xp.zeros(3), Diagnostic("array-shapes", shape=(3,), target=(4,))),
    (ArrayValueError, (0, 0), xp.zeros(1), Diagnostic("array-shapes", shape=(1,), target=())),
    (ArrayValueError, xp.asarray([0, 1]), xp.zeros(3), Diagnostic(
        "array-shapes", shape=(3,), target_shape=(2, 4),
    )),
    (ArrayValueError, xp.asarray([True, False, True]), xp.zeros(3), Diagnostic(
        "array-shapes", shape=(3,), target_shape=(2, 4),
    )),
    (DeviceMismatchError, 0, xp.ones(4, device="stick128"), Diagnostic(
        "device-mismatch", first="ptensor<3x4xfloat64, device='cpu'>", k=1,
        other="ptensor<4xfloat32, device='stick128'>", device="cpu",
    )),
]


@pytest.mark.parametrize(("error", "key", "value", "expected"), VALUES)
def test_bad_values(error: type[TecompError], key: Any, value: Any, expected: Diagnostic) -> None:
    assert refused(error, lambda: put(X, key, value)) == placed(expected, "x[...] = value")
    same(X, np.zeros((3, 4)))


def test_integers_take_no_floats() -> None:
    x = xp.asarray([1, 2])
    assert refused(ArrayTypeError, lambda: put(x, 0, 2.5)) == (
        Diagnostic(
            "array-type", where="x[...] = value", type="ptensor<float64, device='cpu'>",
            dtype="int64", type_dtype="float64",
        )
    )


def test_bad_takes() -> None:
    x = xp.asarray(DATA)
    assert refused(ArrayIndexError, lambda: xp.take(x, xp.asarray([7]), axis=1)) == (
        Diagnostic(
            "array-index", where="take", number=7, axis=1, extent=4,
            inside="use an index from -4 to 3",
        )
    )
    assert refused(ArrayTypeError, lambda: xp.take(x, xp.asarray([0.5]), axis=1)) == (
        Diagnostic("array-type", where="take", dtype="float64")
    )
    assert refused(ArrayValueError, lambda: xp.take_along_axis(x, xp.asarray([0]))) == (
        Diagnostic("array-shapes", where="take_along_axis", shape=(3, 4, 5), type_shape=(1,))
    )
    assert refused(ArrayIndexError, lambda: xp.take_along_axis(x, xp.asarray([[[5]]]))) == (
        Diagnostic(
            "array-index", where="take_along_axis", number=5, axis=2, extent=5,
            inside="use an index from -5 to 4",
        )
    )
    assert refused(ArrayValueError, lambda: xp.nonzero(xp.asarray(1))) == (
        Diagnostic("array-shapes")
    )
