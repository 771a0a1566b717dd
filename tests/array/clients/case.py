"""Calls of libraries that accept arrays of any array-API namespace."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import tecomp.array as xp
from tests.numerics import assert_close

Make: TypeAlias = Callable[..., Any]
"""Function that converts a NumPy array to an array of one namespace."""

Call: TypeAlias = Callable[[Make], Any]
"""Call of a library function on such arrays; the result is a number, an array or several."""


@dataclass(frozen=True)
class Case:
    """Call that has the same result for our arrays as for NumPy arrays.

    Attributes:
        name: Name of the function.
        call: Call of the function.
        rtol: Relative tolerance of the results.
        returns_arrays: Whether the results are our arrays; some functions return numbers or NumPy arrays.
    """

    name: str
    call: Call
    rtol: float = 1e-9
    returns_arrays: bool = True


def fault_of(case: Case) -> str:
    """Return the fault of a call, or an empty string."""
    try:
        actual = case.call(xp.asarray)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns about the same values
            expected = case.call(np.asarray)
        _compare(case, actual, expected)
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {error}"
    return ""


def _compare(case: Case, actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected), "another number of results"
        for one, other in zip(actual, expected, strict=True):
            _compare(case, one, other)
        return
    if case.returns_arrays:
        assert isinstance(actual, xp.Array), f"the result is {type(actual)}"
    one, other = np.asarray(actual), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape), (
        f"{one.dtype} of shape {one.shape}, not {other.dtype} of shape {other.shape}")
    assert_close(one, other, rtol=case.rtol, atol=case.rtol)
