"""Random programs on arrays of a team agree with NumPy.

The programs combine slices, rolls, assignments, reductions and element-wise operations of arrays of
one shape, with shards of any size. Some intermediate results are read.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tests.numerics import assert_close

TEAM = dist.world()
N = TEAM.size


def placement(random: np.random.Generator, shape: tuple[int, int]) -> dist.Placement:
    """Draw blocks, shards of any sizes, a cyclic distribution or replication."""
    axis = int(random.integers(2))
    ends = np.sort(random.integers(0, shape[axis] + 1, N - 1))
    sizes = np.diff([0, *ends, shape[axis]]).tolist()
    kinds: list[dist.Placement] = [
        dist.Shard(axis), dist.Shard(axis), dist.Shard(axis, sizes=sizes),
        dist.Shard(axis, block=1), dist.Replicate(),
    ]
    return kinds[random.integers(len(kinds))]


def shifted(random: np.random.Generator, array: Any, x: Any) -> Any:
    """Sum shifted slices of one array, and combine the sum with the array."""
    n, m = x.shape
    width = int(random.integers(0, 3)), int(random.integers(0, 3))
    inner = tuple(slice(w, k - w) for w, k in zip(width, (n, m), strict=True))
    total = x[inner] * 0.5
    for _ in range(random.integers(1, 5)):
        by = [int(random.integers(-w, w + 1)) for w in width]
        total = total + 0.25 * x[tuple(
            slice(w + d, k - w + d) for w, d, k in zip(width, by, (n, m), strict=True))]
    if random.integers(2):
        result = x + 0
        result[inner] = total
        return result
    return array.concat([x[: width[0]], total, x[n - width[0] :]]) if not width[1] else x * total[0, 0]


def stepped(random: np.random.Generator, array: Any, x: Any, y: Any) -> Any:
    """Apply a random operation to two arrays of one shape."""
    kind = random.integers(10)
    if kind == 0:
        return x * 0.5 + y
    if kind == 1:
        shift = int(random.integers(-5, 6))
        return array.roll(x, shift, axis=int(random.integers(2))) - y
    if kind == 2:
        return shifted(random, array, x)
    if kind == 3:
        axis = int(random.integers(2))
        return x - array.mean(y, axis=axis, keepdims=True)
    if kind == 4:
        return x / (1 + array.sum(array.abs(y)))
    if kind == 5:
        return array.flip(x, axis=int(random.integers(2)))
    if kind == 6:
        result = x + 0
        rows = slice(int(random.integers(0, 3)), None, int(random.integers(1, 3)))
        result[rows] = y[rows]
        return result
    if kind == 7:
        # No operation may amplify the last digit of an element, because kernels round differently.
        return array.where(x * 0 == 0, x * 0.5, y) + 0.5 * array.max(y, axis=0)
    if kind == 9:
        axis = int(random.integers(2))
        none = x[drawn_key(random, x.shape, empty=axis)]
        return y * 0.5 + array.sum(none) + array.sum(none * 2, axis=axis).shape[0]
    return x - array.std(array.concat([x, y]), axis=0)


def drawn_key(
    random: np.random.Generator, shape: tuple[int, ...], empty: int | None = None
) -> tuple[slice, ...]:
    """Draw slices along all axes; the slice along axis `empty`, if given, selects no element."""
    key = []
    for axis, extent in enumerate(shape):
        start, stop = np.sort(random.integers(0, extent + 1, 2))
        key.append(slice(int(start), int(start) if axis == empty else int(stop),
                         int(random.integers(1, 3))))
    return tuple(key)


def check_slices(random: np.random.Generator, one: Any, other: Any) -> None:
    """Check slices of an array, some of them empty, globally and as local arrays."""
    for empty in (0, 1, None, None):
        key = drawn_key(random, other.shape, empty)
        part, expected = one[key], other[key]
        actual = np.asarray(part)
        assert part.shape == actual.shape == expected.shape, (part.shape, actual.shape, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
        assert part.to_local().shape == np.asarray(part.to_local()).shape
        assert np.asarray(part + 1).shape == np.asarray(part.T).shape[::-1] == expected.shape


def program(seed: int, array: Any, arrays: list[Any], read: Any) -> list[Any]:
    """Apply 12 random steps, each to two of the arrays."""
    random = np.random.default_rng(seed)
    for _ in range(12):
        x, y = (arrays[k] for k in random.integers(0, len(arrays), 2))
        result = stepped(random, array, x, y)
        if random.integers(6) == 0:
            read(result)
        arrays[int(random.integers(len(arrays)))] = result
    return arrays


def main(first: int, count: int) -> None:
    """Run programs with consecutive seeds."""
    for seed in range(first, first + count):
        random = np.random.default_rng(1000 + seed)
        shape = (int(random.integers(7, 16)), int(random.integers(7, 16)))
        data = [random.normal(size=shape) for _ in range(3)]
        placed = [placement(random, shape) for _ in data]
        inputs = [
            xp.asarray(array, team=TEAM, placements=[at])
            for array, at in zip(data, placed, strict=True)
        ]
        found = program(seed, xp, inputs, lambda x: x.to_local())
        expected = program(seed, NumPy, [array.copy() for array in data], lambda x: x)
        for one, other in zip(found, expected, strict=True):
            assert_close(
                np.asarray(one), other, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}, {placed}")
            check_slices(random, one, other)


class NumPy:
    """NumPy functions under their array-API names."""

    concat, abs, where = np.concatenate, np.abs, np.where
    roll, flip, mean, sum, max, std = np.roll, np.flip, np.mean, np.sum, np.max, np.std


main(*(int(word) for word in sys.argv[1:3]))
if TEAM.rank == 0:
    print("as drawn")
