"""Set functions agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp.array as xp
from tests.array.drawn import ALL, array, check, draw


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4)])
def test_different_elements(dtype: str, shape: tuple[int, ...]) -> None:
    x = draw(shape, dtype)
    expected = np.unique_all(x)
    found = xp.unique_all(array(x))
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    for actual, part in zip(found, expected, strict=True):
        check(actual, part)
    counts = xp.unique_counts(array(x))
    check(counts.values, expected.values)
    check(counts.counts, expected.counts)
    inverse = xp.unique_inverse(array(x))
    check(inverse.values, expected.values)
    check(inverse.inverse_indices, expected.inverse_indices)
    check(xp.unique_values(array(x)), expected.values)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_each_nan_is_different_and_zeros_are_one(dtype: str) -> None:
    x = np.array([np.nan, 0.0, np.nan, -0.0, 1], dtype)
    found = xp.unique_all(array(x))
    assert np.asarray(found.counts).tolist() == [2, 1, 1, 1]
    assert np.asarray(found.inverse_indices).tolist() in ([2, 0, 3, 0, 1], [3, 0, 2, 0, 1])
    assert xp.unique_values(array(x)).shape == (4,)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("invert", [False, True])
def test_isin_of_arrays(dtype: str, invert: bool) -> None:
    x, among = draw((3, 4), dtype), draw((2, 2), dtype, 1)
    actual = xp.isin(array(x), array(among), invert=invert)
    check(actual, np.isin(x, among, invert=invert))


def test_isin_of_scalars() -> None:
    x = array(np.array([1.0, np.nan, 2.0], "float32"))
    check(xp.isin(x, 2), np.array([False, False, True]))
    check(xp.isin(1, x), np.array(True))
    check(xp.isin(x, x), np.array([True, False, True]))
