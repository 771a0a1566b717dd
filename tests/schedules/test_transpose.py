"""Transposed and packed copies are what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import transpose
from tests.strategies.fenced import call_fenced


def values(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)


def check(A: te.Tensor, a: np.ndarray, axes: tuple[int, ...] | None, target: tecomp.Target) -> None:
    B = transpose.define(A, axes)
    kernel = tecomp.build(transpose.schedule(B, target), [A, B])
    wanted = a.transpose(axes)
    result = np.full(wanted.shape, 111, a.dtype)
    call_fenced(kernel, a, result)

    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 127), (64, 64), (130, 1000), (1023, 65)])
def test_matrices(shape: tuple[int, int], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), None, target)


@pytest.mark.parametrize(
    "axes",
    [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (-1, 0, 1)],
)
@pytest.mark.parametrize("shape", [(5, 20, 33), (16, 3, 40)])
def test_axes(axes: tuple[int, ...], shape: tuple[int, ...], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


@pytest.mark.parametrize("axes", [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_four_axes(axes: tuple[int, ...], target: tecomp.Target) -> None:
    shape = (2, 17, 5, 24)
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "bool"])
def test_types(dtype: str, target: tecomp.Target) -> None:
    check(te.placeholder((70, 90), dtype, name="A"), values((70, 90), dtype), None, target)


def test_few_axes(target: tecomp.Target) -> None:
    check(te.placeholder((9,), name="A"), values((9,)), None, target)
    check(te.placeholder((), name="A"), values(()), None, target)


def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    for shape in ((1, 1), (40, 8), (33, 130)):
        check(A, values(shape), None, target)


def test_packed_channels(target: tecomp.Target) -> None:
    A = te.placeholder((2, 40, 7, 9), name="A")
    a = values((2, 40, 7, 9))
    copy, s = transpose.pack(A, lambda n, c, h, w: [n, c // 8, h, w, c % 8], target)
    kernel = tecomp.build(s, [A, copy])
    result = kernel.empty(copy)
    call_fenced(kernel, a, result)

    wanted = a.reshape(2, 5, 8, 7, 9).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(result, wanted)


def test_packed_rows(target: tecomp.Target) -> None:
    A = te.placeholder((30, 50), name="A")
    a = values((30, 50))
    copy, s = transpose.pack(A, lambda i, j: [i // 6, i % 6, j], target)
    kernel = tecomp.build(s, [A, copy])
    result = kernel.empty(copy)
    call_fenced(kernel, a, result)

    np.testing.assert_array_equal(result, a.reshape(5, 6, 50))


PACKED: dict[str, tuple[tuple[int, ...], str, Any]] = {
    "rows": ((37,), "float32", lambda i: [i]),
    "sticks": ((100, 200), "float16", lambda i, j: [j // 64, i, j % 64]),
    "tiles": ((100, 201), "float32", lambda i, j: [i // 32, j // 32, i % 32, j % 32]),
    "faces": (
        (131, 201), "uint16",
        lambda i, j: [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16],
    ),
    "threes": ((50, 40), "int8", lambda i, j: [j // 3, i, j % 3]),
    "channels": ((9, 11, 100), "float32", lambda h, w, k: [k // 16, h, w, k % 16]),
    "swizzle": ((16, 128), "float32", lambda i, j: [i, j // 8 ^ i % 8, j % 8]),
    "backwards": ((30, 40), "float32", lambda i, j: [29 - i, j]),
    "columns": ((70, 90), "float32", lambda i, j: [j, i]),
    "planes": ((2, 60, 7, 9), "float32", lambda n, c, h, w: [n, c // 16, h, w, c % 16]),
    "turned": ((3, 4, 18, 5), "float32", lambda a, b, c, d: [d, a, b, c]),
    "pairs": ((50, 37), "float32", lambda i, j: [i // 2, j, i % 2]),
    "a row of one": ((13, 17, 7), "float32", lambda i, j, k: [i, j, k, j % 1]),
    "one": ((1, 64), "float32", lambda i, j: [j // 64, i, j % 64]),
    "nothing": ((0, 64), "float32", lambda i, j: [j // 32, i, j % 32]),
}


@pytest.mark.parametrize("name", PACKED)
def test_any_places(name: str, target: tecomp.Target) -> None:
    shape, dtype, mapping = PACKED[name]
    A = te.placeholder(shape, dtype, name="A")
    a = values(shape, dtype)
    copy, s = transpose.pack(A, mapping, target)
    kernel = tecomp.build(s, [A, copy])
    extents = tecomp.IndexMap.from_func(mapping, ndim=len(shape)).map_shape(shape)
    result = np.full([int(str(n)) for n in extents], 111, dtype)
    call_fenced(kernel, a, result)

    places = tuple(np.broadcast_arrays(*mapping(*np.indices(shape, sparse=True))))
    np.testing.assert_array_equal(result[places], a)


def test_rows_of_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    copy, s = transpose.pack(A, lambda i, j: [i // 8, i % 8, j], target)
    kernel = tecomp.build(s, [A, copy])
    for rows, columns in ((1, 1), (16, 130), (37, 65)):
        a = values((rows, columns))
        result = np.full((-(-rows // 8), 8, columns), 111, "float32")
        call_fenced(kernel, a, result)

        np.testing.assert_array_equal(result.reshape(-1, columns)[:rows], a)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 1, 2)])
def test_wrong_axes_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="axes=") as error:
        transpose.define(te.placeholder((4, 5), name="A"), axes)

    assert str(error.value) == (
        f"transpose.define: axes={axes} of 2 axes; name each axis once"
    )
