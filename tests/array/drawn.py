"""Random elements of every dtype, and arrays of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node
from tecomp.array.graph import materialized_node
from tecomp.operations import INTEGERS
from tecomp.ptensor import PTensorType
from tests.numerics import assert_close
from tests.strategies.dtypes import NUMPY_FLOATS, standard

FLOATS = NUMPY_FLOATS
COMPLEX = standard("complex floating")
NUMBERS = [*INTEGERS, *FLOATS, *COMPLEX]
ALL = ["bool", *NUMBERS]

Data = np.ndarray[Any, Any]


def array(data: Any, device: str = "cpu", team: int | None = None) -> Array:
    data = np.asarray(data)
    return from_node(materialized_node(data, PTensorType(data.shape, data.dtype.name, device, team)))


def draw(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Data:
    """Return small numbers, some of them 0, that depend on the seed only."""
    rng, kind = np.random.default_rng([seed, *shape]), np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) > 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -4, 5, shape).astype(dtype)
    data = rng.integers(-8, 9, shape) / 4 + rng.standard_normal(shape) / 8
    if kind == "c":
        data = data + 1j * rng.integers(-4, 5, shape)
    return np.where(rng.random(shape) < 0.2, 0, data).astype(dtype)


def check(actual: Array, expected: Any) -> None:
    """Check elements, shape and dtype, with the tolerance of a sum for floating point."""
    expected = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(np.asarray(actual), expected)
        return
    near = 32 * np.finfo(expected.dtype).eps
    assert_close(np.asarray(actual), expected, rtol=near, atol=near)
