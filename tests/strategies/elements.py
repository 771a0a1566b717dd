"""Random array elements of each dtype with special values, and distances in ulps."""

from __future__ import annotations

from typing import Any

import numpy as np

Data = np.ndarray[Any, Any]

PARTS = {"complex64": "float32", "complex128": "float64"}


def elements(dtype: str, count: int = 600, seed: int = 0) -> Data:
    """Return random elements of all magnitudes; a large part of them are special values."""
    rng = np.random.default_rng([seed, count, *dtype.encode()])
    if dtype in PARTS:
        pairs = elements(PARTS[dtype], 2 * count, seed + 1)
        return pairs.view(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return _integers(rng, kind, count)
    return _floats(rng, kind, count)


def _integers(rng: np.random.Generator, kind: np.dtype[Any], count: int) -> Data:
    info = np.iinfo(kind)
    near = rng.integers(0 if kind.kind == "u" else -9, 9, count).astype(kind)
    far = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    ends = rng.choice(np.array([info.min, info.max, info.max - 1, 0, 1], kind), count)
    return np.choose(rng.integers(0, 3, count), [near, far, ends])


def special_floats(dtype: str) -> Data:
    """Return zeros, infinities, NaN, range limits and points where functions change behaviour."""
    info = np.finfo(dtype)
    positive: list[float] = [
        0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, np.pi / 2, 100.0, np.inf,
        *map(float, (info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg)),
    ]
    return np.array([*positive, *(-x for x in positive), np.nan], dtype)


def _floats(rng: np.random.Generator, kind: np.dtype[Any], count: int) -> Data:
    powers = rng.integers(-4, 5, count)
    plain = (rng.standard_normal(count) * 10.0**powers).astype(kind)
    return np.where(rng.random(count) < 0.5, rng.choice(special_floats(kind.name), count), plain)


def distances(result: Data, expected: Data, least: Data | float = 0.0) -> Data:
    """Return the distance of real numbers in units in the last place; NaN equals NaN only.

    Args:
        result: Computed numbers.
        expected: Expected numbers.
        least: Magnitude whose unit in the last place also applies to smaller expected numbers.
            Default: the smallest normal number.
    """
    with np.errstate(all="ignore"):
        smallest = np.asarray(np.maximum(np.finfo(expected.dtype).tiny, least))
        size = np.maximum(abs(expected), smallest.astype(expected.dtype))
        unit = np.spacing(size).astype("float64")
        apart = abs(result.astype("float64") - expected.astype("float64")) / unit
    is_same = (result == expected) | (np.isnan(result) & np.isnan(expected))
    return np.where(is_same, 0.0, np.where(np.isnan(apart), np.inf, apart))
