"""Rolling buffers inside several tile loops: results and buffer sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import Allocate, walk
from tests.messages import Diagnostic, diagnostic
from tests.strategies.arrays import Array
from tests.strategies.draws import Draws
from tests.strategies.fenced import call_fenced


@dataclass(frozen=True)
class Tiles:
    """Chain of window sums, computed in tiles.

    Attributes:
        extents: Extents of the result.
        counts: Number of taps of the windows along each axis.
        strides: Distance between consecutive windows along each axis.
        tiles: Tile sizes of the result.
        order: Order of the loops over tiles.
        inner: Position in `order` of the tile loop at which the other stages are computed.
        stages: Number of sums before the result.
    """

    extents: tuple[int, ...]
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    tiles: tuple[int, ...]
    order: tuple[int, ...]
    inner: int
    stages: int

    def read(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents that windows with results of the given extents read."""
        each = zip(extents, self.counts, self.strides, strict=True)
        return tuple((n - 1) * stride + count for n, count, stride in each)

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the input, of all sums and of the result."""
        shapes = [self.extents]
        for _ in range(self.stages + 1):
            shapes.append(self.read(shapes[-1]))
        return shapes[::-1]

    def most(self) -> int:
        """Return the buffer elements if each sum is kept for a tile of the first overlap loop."""
        axis = next(k for k in self.order[: self.inner + 1] if self.overlaps(k))
        part = list(self.extents)
        part[axis] = self.tiles[axis]
        total, shape = 0, tuple(part)
        for _ in range(self.stages):
            shape = self.read(shape)
            total += prod(shape)
        return total

    def overlaps(self, axis: int) -> bool:
        """Return whether adjacent tiles along `axis` read common elements of a sum."""
        return self.tiles[axis] < self.extents[axis] and self.counts[axis] > self.strides[axis]

    def is_loop(self) -> bool:
        """Return whether the loop at which the sums are computed has several iterations."""
        axis = self.order[self.inner]
        return self.tiles[axis] < self.extents[axis]

    def taps(self) -> list[tuple[int, ...]]:
        """Return the taps of a window."""
        return [tuple(map(int, tap)) for tap in np.ndindex(*self.counts)]


def window(tiles: Tiles, read: Any, *at: Any) -> Any:
    places = [[x * stride + k for x, stride, k in zip(at, tiles.strides, tap, strict=True)]
              for tap in tiles.taps()]  # fmt: skip
    total = read[tuple(places[0])]
    for weight, place in enumerate(places[1:], 2):
        total = total + read[tuple(place)] * weight
    return total


def summed(tiles: Tiles, a: Array, shape: tuple[int, ...]) -> Array:
    total = np.zeros(shape, a.dtype)
    for weight, tap in enumerate(tiles.taps(), 1):
        part = tuple(slice(k, k + (n - 1) * stride + 1, stride)
                     for k, n, stride in zip(tap, shape, tiles.strides, strict=True))  # fmt: skip
        total += weight * a[part]
    return total


def program(tiles: Tiles) -> tuple[te.Schedule, list[te.Tensor]]:
    """Define sums of windows of sums, with rolling buffers that keep elements for the next tile."""
    first, *shapes = tiles.shapes()
    tensors = [te.placeholder(first, dtype="int32", name="A")]
    for k, shape in enumerate(shapes):
        tensors.append(te.compute(shape, partial(window, tiles, tensors[-1]), name=f"P{k}"))
    *sums, result = tensors[1:]
    s = te.create_schedule(result)
    parts = [s[result].split(axis, factor=size)
             for axis, size in zip(result.op.axis, tiles.tiles, strict=True)]  # fmt: skip
    outer = [parts[k][0] for k in tiles.order]
    s[result].reorder(*outer, *(inner for _, inner in parts))
    for stage in reversed(sums):
        s[stage].compute_at(s[result], outer[tiles.inner])
        s[stage].rolling_buffer()
    return s, [tensors[0], result]


@st.composite
def all_tiles(draw: Any) -> Tiles:
    d = Draws(draw)
    rank = d.number(2, 3)
    counts = [d.number(1, 3) for _ in range(rank)]
    counts[d.below(rank)] = d.number(2, 3)
    extents = tuple(d.number(2, 7 if rank == 2 else 4) for _ in counts)
    strides = tuple(d.number(1, min(2, count)) for count in counts)
    tiles = tuple(d.number(1, n + 1) for n in extents)
    order = tuple(d.shuffled(range(rank)))
    return Tiles(extents, tuple(counts), strides, tiles, order, d.below(rank), d.number(1, 2))


@pytest.mark.exhaustive
@given(all_tiles())
def test_numbers_and_memory(tiles: Tiles) -> None:
    s, args = program(tiles)
    if not any(map(tiles.overlaps, tiles.order[: tiles.inner + 1])):
        if tiles.is_loop():
            with pytest.raises(tecomp.LowerError) as error:
                tecomp.lower(s, args)
            names = error.value.parameters["names"]
            assert diagnostic(error.value) == (
                Diagnostic("loop-carried", stage="P0", names=names)
            )
        return
    func = tecomp.lower(s, args, stop_after="lower_storage")
    first, *shapes = tiles.shapes()
    a = np.random.default_rng(0).integers(-9, 9, first).astype("int32")
    expected = a
    for shape in shapes:
        expected = summed(tiles, expected, shape)
    kernel = tecomp.build(s, args)
    elements = sum(prod(int(str(n)) for n in node.buffer.shape)
               for node in walk(func.body) if isinstance(node, Allocate))  # fmt: skip
    assert elements <= tiles.most()
    compiled, interpreted = np.zeros((2, *expected.shape), "int32")
    call_fenced(kernel, a, compiled)
    np.testing.assert_array_equal(compiled, expected)
    tecomp.evaluate(func, [a, interpreted])
    np.testing.assert_array_equal(interpreted, expected)
