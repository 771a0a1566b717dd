"""Pointwise kernels serve all sizes and strides and merge contiguous axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.array.statistics import counters
from tecomp.ptensor import numpy_dtype
from tests.array.arrays import array

Data = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: str = "float64") -> Data:
    random = np.random.default_rng(len(shape))
    return random.integers(-50, 50, shape).astype(dtype)


VIEWS: dict[str, Callable[[Data], Data]] = {
    "all": lambda x: x,
    "steps": lambda x: x[:, ::2, :][:, :3],
    "reversed": lambda x: x[:, ::-1, ::-1],
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 1, 0)).transpose(2, 1, 0),
    "part": lambda x: np.pad(x, ((0, 0), (1, 1), (1, 2)))[:, 1:-1, 1:-2],
    "row": lambda x: x[0, 0],
    "column": lambda x: x[:, :, :1],
    "one": lambda x: x[0, 0, :1].reshape(()),
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("one", VIEWS)
@pytest.mark.parametrize("other", ["all", "steps", "transposed", "row", "repeated"])
def test_pointwise_operations_on_any_strides(one: str, other: str) -> None:
    x, y = numbers(4, 6, 5), numbers(4, 6, 5) + 1
    a, b = VIEWS[one](x), VIEWS[other](y)
    if 3 in (a.shape[1:2] + b.shape[1:2]):
        a, b = (v[:, :3] if v.ndim == 3 else v for v in (a, b))
    np.testing.assert_array_equal(np.asarray(array(a) * array(b) - array(a)), a * b - a)


def test_one_kernel_serves_all_sizes() -> None:
    def run(x: Data, y: Data) -> None:
        np.testing.assert_array_equal(np.asarray(array(x) + array(y) * array(x)), x + y * x)

    run(numbers(3, 4), numbers(3, 4))
    before = counters.compiled
    for shape in [(7,), (1,), (2, 3, 4), (1, 5), (64, 65), (3, 0, 2), ()]:
        run(numbers(*shape), numbers(*shape))
    assert counters.compiled <= before + 1  # arrays without axes use a separate kernel
    run(numbers(4, 6), numbers(6))
    between = counters.compiled
    run(numbers(2, 5, 9), numbers(9))
    run(numbers(8, 6)[:, :], numbers(6))
    assert counters.compiled == between


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "bfloat16"])
def test_types(dtype: str) -> None:
    x = numbers(5, 7).astype(numpy_dtype(dtype))
    a = array(x)
    result = np.asarray(a == a if dtype == "bool" else a + a)
    expected = x == x if dtype == "bool" else x + x
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_several_results_of_one_kernel() -> None:
    x = array(numbers(6, 4))
    y = x * x
    z = y + x
    before = counters.called
    np.testing.assert_array_equal(np.asarray(z), numbers(6, 4) ** 2 + numbers(6, 4))
    np.testing.assert_array_equal(np.asarray(y), numbers(6, 4) ** 2)
    assert counters.called == before + 1


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("view", ["all", "steps", "reversed", "transposed", "row", "one", "repeated"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(view: str, dtype: str) -> None:
    x = (numbers(4, 6, 5) + 1j * numbers(4, 6, 5)[::-1]).astype(dtype)
    a = VIEWS[view](x)
    b = a.real.astype("float32")
    before = counters.compiled
    result = np.asarray(array(a) * array(a) - array(b))
    assert result.dtype == (a * b).dtype
    np.testing.assert_array_equal(result, a * a - b)
    np.testing.assert_array_equal(np.asarray(array(a) == array(a)), a == a)
    assert counters.compiled <= before + 2
