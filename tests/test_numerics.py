"""`assert_close` accepts rounding relative to the magnitude of the summands, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics import assert_close


def test_cancelling_sums_are_compared_with_their_terms() -> None:
    terms = np.random.default_rng(0).standard_normal(10_000).astype("float32")
    terms = np.concatenate([terms, -terms[::-1]])
    exact, rounded = terms.astype("float64").sum(), terms.cumsum(dtype="float32")[-1]

    with pytest.raises(AssertionError):
        assert_close(rounded, exact, rtol=1e-5)
    assert_close(rounded, exact, rtol=1e-5, magnitude=np.abs(terms).sum())
    with pytest.raises(AssertionError, match="times the bound"):
        assert_close(rounded + 1, exact, rtol=1e-5, magnitude=np.abs(terms).sum())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.1, -1.0])
def test_one_wrong_element_is_found(wrong: float) -> None:
    expected = np.ones((3, 4))
    found = expected.copy()
    found[1, 2] = wrong

    with pytest.raises(AssertionError, match=r"\(1, 2\)"):
        assert_close(found, expected, rtol=1e-3, magnitude=expected)


def test_elements_that_are_not_finite_are_equal() -> None:
    expected = np.array([np.nan, np.inf, -np.inf, 2.0])

    assert_close(expected.copy(), expected, magnitude=1.0)
    for k in range(3):
        found = expected.copy()
        found[k] = 2.0
        with pytest.raises(AssertionError):
            assert_close(found, expected, magnitude=1.0)


def test_shapes_are_compared() -> None:
    with pytest.raises(AssertionError, match="shape"):
        assert_close(np.ones(3), np.ones((3, 1)), magnitude=1.0)
