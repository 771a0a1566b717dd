"""Naive reference copies for loop nests and runs of elements."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp import DmaNest

Array: TypeAlias = NDArray[Any]


def pairs(nests: Sequence[DmaNest]) -> list[tuple[int, int]]:
    """Return the device and host offset of every iteration of the loops, in execution order."""
    return [
        (
            nest.device_offset + sum(n * s for n, s in zip(step, nest.device_strides, strict=True)),
            nest.host_offset + sum(n * s for n, s in zip(step, nest.host_strides, strict=True)),
        )
        for nest in nests
        for step in itertools.product(*map(range, nest.ranges))
    ]


def host_offsets(
    shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0
) -> Array:
    """Return the host offset of each element."""
    if strides is None:
        return np.arange(int(np.prod(shape))).reshape(shape) + offset
    grid = np.indices(shape)
    total = np.full(shape, offset)
    for axis, stride in zip(grid, strides, strict=True):
        total = total + stride * axis
    return total


def wanted(device: Array, host: Array, box: Sequence[slice]) -> list[tuple[int, int]]:
    """Return the sorted pairs of device and host offsets of a box of elements."""
    return sorted(zip(
        device[tuple(box)].ravel().tolist(), host[tuple(box)].ravel().tolist(), strict=True
    ))


def assert_copies(
    nests: Sequence[DmaNest], device: Array, host: Array, box: Sequence[slice] = ()
) -> None:
    """Check that each element is copied once and that loops and nests ascend in device memory."""
    assert sorted(pairs(nests)) == wanted(device, host, box)
    for nest in nests:
        assert list(nest.device_strides) == sorted(nest.device_strides, reverse=True)
        assert min(nest.device_strides, default=0) >= 0
    offsets = [nest.device_offset for nest in nests]
    assert offsets == sorted(offsets)


def run_lengths(first: Array, second: Array) -> dict[int, int]:
    """Return the number of maximal contiguous runs by length, from the addresses of all elements."""
    order = sorted(zip(first.ravel().tolist(), second.ravel().tolist(), strict=True))
    lengths: Counter[int] = Counter()
    length = 1
    for before, after in itertools.pairwise(order):
        if after == (before[0] + 1, before[1] + 1):
            length += 1
            continue
        lengths[length] += 1
        length = 1
    if order:
        lengths[length] += 1
    return dict(lengths)
