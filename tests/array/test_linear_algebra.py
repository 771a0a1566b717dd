"""Matrix, vector and tensor products agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, zip_longest
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.functions import linear_algebra
from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TeamMismatchError,
)
from tests.array.drawn import NUMBERS, array, check, draw
from tests.messages import Diagnostic, diagnostic

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)),
    ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((0,), (0,)), ((0, 2, 3), (3, 2)),
]


@pytest.mark.exhaustive(keep=1, most=6)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_products_of_all_types(dtype: str) -> None:
    x, y = draw((5, 3), dtype), draw((3, 4), dtype)
    check(linear_algebra.matmul(array(x), array(y)), x @ y)
    check(array(x[0]) @ array(y), x[0] @ y)
    check(linear_algebra.vecdot(array(x), array(x[0])), np.vecdot(x, x[0]))
    actual = linear_algebra.tensordot(array(x), array(y), axes=((1,), (-2,)))
    check(actual, np.tensordot(x, y, axes=((1,), (0,))))


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_products_of_all_shapes(dtype: str, first: Any, second: Any) -> None:
    x, y = draw(first, dtype), draw(second, dtype, 1)
    check(linear_algebra.matmul(array(x), array(y)), x @ y)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    ("first", "second"),
    [("int8", "uint8"), ("int32", "float32"), ("float32", "complex128"), ("complex64", "int8")])
def test_types_meet(first: str, second: str) -> None:
    x, y = draw((4, 3), first), draw((3,), second)
    check(linear_algebra.matmul(array(x), array(y)), x @ y)
    check(linear_algebra.vecdot(array(x), array(y)), np.vecdot(x, y))
    check(linear_algebra.tensordot(array(x), array(y), axes=1), np.tensordot(x, y, axes=1))


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [((3,), (3,), -1), ((4, 3), (4, 1), -2), ((2, 1, 3), (5, 3), -1), ((2, 0), (2, 0), -1),
     ((0, 3), (3,), -1)])
def test_products_of_vectors(dtype: str, first: Any, second: Any, axis: int) -> None:
    x, y = draw(first, dtype), draw(second, dtype, 1)
    expected = np.vecdot(np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1))
    check(linear_algebra.vecdot(array(x), array(y), axis=axis), expected)


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [((3, 4), (3, 4), 2), ((3, 4), (5,), 0), ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))), ((), (), 0),
     ((2, 0), (0, 3), 1), ((2, 3, 4), (4, 3), ((-1,), (0,)))])
def test_products_of_tensors(dtype: str, first: Any, second: Any, axes: Any) -> None:
    x, y = draw(first, dtype), draw(second, dtype, 1)
    check(linear_algebra.tensordot(array(x), array(y), axes=axes), np.tensordot(x, y, axes=axes))


def test_products_along_two_axes_of_ever_other_sizes() -> None:
    """Kernels are compiled for all sizes from the second size on."""
    for k in range(1, 6):
        x, y = draw((k + 1, k + 2, k + 3), "float64"), draw((k + 3, k + 2, k), "float64", 1)
        axes = (1, 2), (1, 0)
        check(linear_algebra.tensordot(array(x), array(y), axes=axes), np.tensordot(x, y, axes=axes))


def _orders(x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the same elements with each memory order of the axes, with gaps, and reversed."""
    orders = []
    for order in permutations(range(x.ndim)):
        back = np.argsort(order)
        orders.append(np.ascontiguousarray(x.transpose(order)).transpose(back))
    orders.append(np.stack([x, x], axis=-1)[..., 0])
    orders.append(np.flip(np.flip(x, -1).copy(), -1))
    return orders


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int32"])
@pytest.mark.parametrize(("first", "second"), [
    ((3, 4), (4, 20)), ((20, 37), (37, 5)), ((6, 9), (9,)), ((9,), (9, 6)), ((2, 3, 4), (2, 4, 3))])
def test_products_of_operands_in_any_order(dtype: str, first: Any, second: Any) -> None:
    x, y = draw(first, dtype), draw(second, dtype, 1)
    expected = x @ y
    for a, b in zip_longest(_orders(x), _orders(y)):
        source = x if a is None else a, y if b is None else b
        check(xp.asarray(source[0], copy=False) @ xp.asarray(source[1], copy=False), expected)


@pytest.mark.exhaustive(keep=1, most=8)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int16"])
@pytest.mark.parametrize("shape", [(30, 4), (4, 30), (17, 17), (1, 5)])
def test_product_of_a_matrix_and_its_transpose(dtype: str, shape: Any) -> None:
    x = draw(shape, dtype)
    a = array(x)
    check(a.T @ a, x.T @ x)
    check(a @ a.T, x @ x.T)
    d = a + a
    check(d.T @ d, (x + x).T @ (x + x))


def test_complex_elements_are_read_without_copies() -> None:
    z = draw((1000,), "complex128")
    explained = xp.explain(xp.vecdot(array(z), array(z)))
    assert "vectorize" in explained.schedules[0]
    assert not any(", (1000,)" in loops for loops in explained.loops)  # no operand is copied
    check(xp.vecdot(array(z), array(z)), np.vecdot(z, z))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (0, 3)])
def test_transposes(dtype: str, shape: Any) -> None:
    x = draw(shape, dtype)
    check(linear_algebra.matrix_transpose(array(x)), np.matrix_transpose(x))


def test_operators() -> None:
    x, y = draw((4, 3), "float32"), draw((3, 3), "float32")
    a = same = array(x)
    a @= array(y)
    check(a, x @ y)
    assert a is same
    with pytest.raises(ArrayTypeError) as refused:
        a @= array(y[:, 0].copy())
    assert diagnostic(refused.value) == (
        Diagnostic(
            "array-type", where="matmul", new="ptensor<4xfloat32, device='cpu'>",
            old="ptensor<4x3xfloat32, device='cpu'>",
        )
    )


def test_refusals() -> None:
    x, y = array(np.zeros((2, 3), "float32")), array(np.zeros((4, 5), "float32"))
    refused_calls: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
        (lambda: x @ y, ArrayValueError,
         Diagnostic(
             "array-shapes", where="matmul", shape=(2, 3), second_shape=(4, 5), extent=3,
             other_extent=4,
         )),
        (lambda: linear_algebra.matmul(x, array(2.0)), ArrayValueError,
         Diagnostic("array-shapes", shape=(2, 3), y_shape=())),
        (lambda: 2 @ x, ArrayValueError,
         Diagnostic("array-shapes", shape=(), y_shape=(2, 3))),
        (lambda: linear_algebra.vecdot(x, x, axis=1), ArrayValueError,
         Diagnostic("array-value", where="vecdot", axis=1, shape=(2, 3), y_shape=(2, 3), first=-2)),
        (lambda: linear_algebra.tensordot(x, y, axes=3), ArrayValueError,
         Diagnostic("array-value", where="tensordot", count=3, first=2, second=2, max_count=2)),
        (lambda: linear_algebra.tensordot(x, y, axes=((0, 1), (0,))), ArrayValueError,
         Diagnostic("array-value", axes="((0, 1), (0,))")),
        (lambda: linear_algebra.tensordot(x, y, axes=((2,), (0,))), ArrayIndexError,
         Diagnostic(
             "array-index", where="tensordot", subject="an axis of x1", value=2, rank=2,
             numbers="from -2 to 1",
         )),
        (lambda: linear_algebra.tensordot(x, x, axes=((0, -2), (0, 1))), ArrayValueError,
         Diagnostic("array-value", axes="((0, -2), (0, 1))")),
        (lambda: linear_algebra.matrix_transpose(array(np.zeros(3))), ArrayValueError,
         Diagnostic("array-shapes", where="matrix_transpose", shape=(3,))),
    ]
    for call, kind, expected in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert diagnostic(refused.value) == expected


@pytest.mark.parametrize("function", [
    linear_algebra.matmul, linear_algebra.vecdot,
    lambda x, y: linear_algebra.tensordot(x, y, axes=1),
])
def test_operands_must_be_on_one_device(function: Any) -> None:
    x = np.zeros(3, "float32")
    with pytest.raises(DeviceMismatchError):
        function(array(x), array(x, device="stick128"))
    with pytest.raises(TeamMismatchError):
        function(array(x, team=1), array(x, team=2))
