"""Calls of libraries that take the arrays of any namespace of the standard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import tecomp.array as xp
from tests.numerics import assert_close

Make: TypeAlias = Callable[..., Any]
"""Makes an array of one namespace of an array of NumPy's."""

Call: TypeAlias = Callable[[Make], Any]
"""Calls a function of a library with such arrays; the result is a number, an array or several."""


@dataclass(frozen=True)
class Case:
    """A call that comes to the same with our arrays as with NumPy's.

    Attributes:
        name: of the function.
        call: the call.
        rtol: how far results may be from each other.
        ours: whether the results are our arrays; some functions give numbers or NumPy's.
    """

    name: str
    call: Call
    rtol: float = 1e-9
    ours: bool = True


def fault_of(case: Case) -> str:
    """What is wrong with a call; nothing if all is well."""
    try:
        got = case.call(xp.asarray)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's own, of the same numbers
            wanted = case.call(np.asarray)
        _compare(case, got, wanted)
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {error}"
    return ""


def _compare(case: Case, got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted), "another number of results"
        for one, other in zip(got, wanted, strict=True):
            _compare(case, one, other)
        return
    if case.ours:
        assert isinstance(got, xp.Array), f"the result is {type(got)}"
    one, other = np.asarray(got), np.asarray(wanted)
    assert (one.dtype, one.shape) == (other.dtype, other.shape), (
        f"{one.dtype} of shape {one.shape}, not {other.dtype} of shape {other.shape}")
    assert_close(one, other, rtol=case.rtol, atol=case.rtol)
