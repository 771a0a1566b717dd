"""One random call of each function; `python -m tests.array.conformance --count 200` makes more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tests.array.conformance.calls import MAKERS
from tests.array.conformance.draws import Draw
from tests.array.conformance.methods import USES
from tests.array.conformance.tries import fault_of
from tests.array.test_signatures import FUNCTIONS

# Functions whose results are unspecified or not unique, or that have their own tests.
ELSEWHERE = {
    "__array_namespace_info__", "asarray", "empty", "empty_like", "finfo", "from_dlpack", "iinfo",
    "isdtype", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.qr", "linalg.svd",
    "linalg.matmul", "linalg.matrix_transpose", "linalg.tensordot", "linalg.vecdot",
}


@pytest.mark.exhaustive(keep=19)
@pytest.mark.parametrize("name", MAKERS)
def test_a_call_matches_numpy(name: str) -> None:
    assert fault_of(name, (0, 0)) == ""


class Recorded:
    """Namespace whose functions are recorded with `jit` and called twice."""

    def __init__(self, place: Any) -> None:
        self.place = place

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.place, name)
        return twice(found) if callable(found) else Recorded(found)


def twice(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        recorded = xp.jit(function)
        recorded(*args, **options)
        return recorded(*args, **options)
    return call


@pytest.mark.exhaustive(keep=11)
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in USES])
def test_a_recorded_call_matches_numpy(name: str) -> None:
    assert fault_of(name, (0, 1), namespace=Recorded(xp)) == ""


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", USES)
def test_recorded_indices_and_assignments(name: str, seed: int) -> None:
    """A captured index is read by each call of a recorded function."""
    draw = Draw((seed, 3))
    call = MAKERS[name](draw, name)
    data, *more = call.args
    use: Any = USES[name]
    inputs = [ours(item) for item in more]
    recorded = xp.jit(lambda x: use(x, *inputs))
    expected = use(data.copy(), *more)
    for _ in range(2):
        actual = recorded(xp.asarray(data, copy=True))
        pairs = zip(actual, expected, strict=True) if isinstance(actual, tuple) else [(actual, expected)]
        for one, other in pairs:
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-6)


def ours(value: Any) -> Any:
    """Convert NumPy arrays to our arrays, also inside tuples."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    return tuple([ours(item) for item in value]) if isinstance(value, tuple) else value


def test_no_function_is_left_out() -> None:
    assert {*FUNCTIONS} - {*MAKERS} - ELSEWHERE == set()
