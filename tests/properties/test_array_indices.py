"""Reads and writes of arrays at random indices agree with NumPy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayIndexError, ArrayValueError

Buffer = np.ndarray[Any, Any]


class Drawn:
    """Random array and a random index of it; index arrays are NumPy arrays."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.shape = tuple(self.draw.choices([0, 1, 2, 3, 4], [1, 3, 5, 8, 8])[0]
                           for _ in range(self.draw.randint(0, 4)))
        size = int(np.prod(self.shape))
        data = np.arange(size).reshape(self.shape)
        order = self.draw.sample(range(len(self.shape)), len(self.shape))
        ways = [data, data.transpose(order), np.flip(data), data * 1j]
        self.data: Buffer = np.array(self.draw.choice(ways), order="K")
        self.shared = self.draw.choice([(), (1,), (2,), (3, 2)])
        self.key = self.keys()

    def keys(self) -> Any:
        parts: list[Any] = []
        axis, shape = 0, self.data.shape
        while axis < len(shape) and self.draw.random() < 0.85:
            part = self.part(axis)
            parts.append(part)
            axis += part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1
        for k in range(len(parts) + 1):
            if self.draw.random() < 0.12:
                parts.insert(k, None)
        if self.draw.random() < 0.3:
            parts.append(...)
        return tuple(parts) if len(parts) != 1 or self.draw.random() < 0.5 else parts[0]

    def part(self, axis: int) -> Any:
        extent = self.data.shape[axis]
        kind = self.draw.random()
        if kind < 0.4 or not extent:
            ends = [None, *range(-extent - 2, extent + 3)]
            return slice(self.draw.choice(ends), self.draw.choice(ends),
                         self.draw.choice([None, 1, 2, 3, -1, -2]))
        if kind < 0.6:
            return self.draw.randrange(-extent, extent)
        if kind < 0.85:
            count = int(np.prod(self.shared))
            numbers = [self.draw.randrange(-extent, extent) for _ in range(count)]
            return np.array(numbers, self.draw.choice(["int64", "int8"])).reshape(self.shared)
        rank = self.draw.randint(1, min(2, len(self.data.shape) - axis))
        # Mask and index arrays broadcast with each other, so a mask selects as many elements as the
        # index arrays have.
        mask = np.zeros(self.data.shape[axis : axis + rank], bool)
        count = self.shared[0] if self.shared else self.draw.randint(0, 3)
        mask.reshape(-1)[self.draw.sample(range(mask.size), min(count, mask.size))] = True
        return mask


def as_ours(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(as_ours, key))
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


def check(seed: int) -> None:
    drawn = Drawn(seed)
    data, key = drawn.data, drawn.key
    x = xp.asarray(data)
    try:
        expected = np.asarray(data[key])
    except IndexError:  # index arrays do not broadcast
        with pytest.raises((ArrayIndexError, ArrayValueError)):
            x[as_ours(key)]
        return
    found = x[as_ours(key)]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(found), expected)
    if _is_told_twice(data, key):
        return
    target = data.copy()
    value = drawn.draw.choice([np.asarray(-1), np.arange(expected.size).reshape(expected.shape) + 7])
    x[as_ours(key)] = xp.asarray(value)
    target[key] = value
    np.testing.assert_array_equal(np.asarray(x), target)


def _is_told_twice(data: Buffer, key: Any) -> bool:
    """Return whether an index selects an element twice, so that a write is undefined."""
    places = np.arange(data.size).reshape(data.shape)[key]
    return len(np.unique(places)) < np.size(places)


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("seed", range(0, 160, 8))
def test_indices(seed: int) -> None:
    for k in range(8):
        check(seed + k)
