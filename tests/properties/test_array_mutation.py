"""Random programs of views, assignments and arithmetic agree with NumPy.

Each array has a NumPy counterpart, and two arrays share elements exactly if their counterparts
share memory. Recording, evaluation, borrowing and writes in place leave equal elements in both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array

Buffer = np.ndarray[Any, Any]


class Pair:
    """Array and its NumPy counterpart."""

    def __init__(self, actual: Array, numpys: Buffer) -> None:
        self.ours, self.numpys = actual, np.asarray(numpys)


class Program:
    """Random program with all arrays that it created."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.pairs: list[Pair] = []
        self.held: list[Pair] = []  # pairs with an external reference; other pairs may be freed
        self.exported: list[tuple[Buffer, Buffer]] = []
        self.sources: list[tuple[Buffer, Buffer]] = []
        self.create()

    def pick(self) -> Pair:
        return self.draw.choice(self.pairs)

    def like(self, pair: Pair) -> Pair:
        """Return a pair with the shape of `pair`."""
        return self.draw.choice([p for p in self.pairs if p.ours.shape == pair.ours.shape])

    def keep(self, actual: Array, numpys: Buffer) -> None:
        if len(self.pairs) > 8:
            pair = self.pairs.pop(self.draw.randrange(len(self.pairs)))
            if self.draw.random() < 0.5:
                self.held.append(pair)
        self.pairs.append(Pair(actual, numpys))

    def create(self) -> None:
        shape = self.draw.choice([(3, 4), (4, 3), (4,)])
        data = np.arange(np.prod(shape), dtype=float).reshape(shape) + self.draw.randrange(100)
        way = self.draw.randrange(4)
        if way == 0:
            self.sources.append((data, data.copy()))
            self.keep(xp.asarray(data), data.copy())
        elif way == 1:
            self.keep(xp.asarray(data, copy=True), data.copy())
        elif way == 2:
            self.keep(xp.zeros(shape), np.zeros(shape))
        else:
            repeated = np.broadcast_to(data[:1], shape)
            self.keep(xp.broadcast_to(xp.asarray(data[:1]), shape), repeated.copy())

    def view(self) -> None:
        pair = self.pick()
        ways: list[Callable[[Any, Any], Any]] = [
            lambda np, x: np.expand_dims(x, axis=0), lambda np, x: x[...] if x.ndim else x,
            lambda np, x: np.permute_dims(x, tuple(range(x.ndim))[::-1]),
            lambda np, x: np.squeeze(np.expand_dims(x, axis=-1), axis=-1),
        ]
        actual = pair.ours
        way = self.draw.choice(ways)
        if self.draw.random() < 0.2:
            self.keep(xp.flip(actual), np.flip(pair.numpys).copy())
        elif self.draw.random() < 0.3 and actual.size:
            self.flatten(pair)
        else:
            self.keep(way(xp, actual), way(np, pair.numpys))

    def flatten(self, pair: Pair) -> None:
        """Flatten an array; the result is a copy exactly where NumPy has to copy."""
        flat = np.reshape(pair.numpys, (-1,))
        flattened = xp.reshape(pair.ours, (-1,), copy=not np.shares_memory(flat, pair.numpys))
        self.keep(flattened, flat)

    def part(self) -> None:
        pair = self.pick()
        key = self.basic(pair)
        if self.draw.random() < 0.3:
            key = (*key, ...)
        part = pair.numpys[key]
        # An integer index of every axis gives a scalar in NumPy and a new array here; neither is a
        # view.
        self.keep(pair.ours[key], np.asarray(part))

    def basic(self, pair: Pair) -> Any:
        """Draw an index of integers and slices."""
        keys: list[Any] = []
        for extent in pair.ours.shape[: self.draw.randint(0, pair.ours.ndim)]:
            if extent and self.draw.random() < 0.3:
                keys.append(self.draw.randrange(-extent, extent))
            else:
                keys.append(self.draw.choice([
                    slice(None), slice(1, None), slice(None, -1), slice(None, None, 2),
                    slice(None, None, -1),
                ]))
        return tuple(keys)

    def assign(self) -> None:
        pair = self.pick()
        key = self.basic(pair)
        target = pair.numpys[key].shape
        fits = [p for p in self.pairs if p.ours.shape == target]
        if fits and self.draw.random() < 0.6:
            value = self.draw.choice(fits)
            new = value.numpys.copy()
            pair.ours[key] = value.ours
            pair.numpys[key] = new
        else:
            number = float(self.draw.randrange(1000))
            pair.ours[key] = number
            pair.numpys[key] = number

    def assign_elements(self) -> None:
        pair = self.pick()
        if not pair.ours.ndim or not pair.ours.shape[0]:
            return
        if self.draw.random() < 0.5:
            pair.ours[pair.ours > 50.0] = -1.0
            pair.numpys[pair.numpys > 50.0] = -1.0
        else:
            places = [self.draw.randrange(pair.ours.shape[0]) for _ in range(2)]
            pair.ours[xp.asarray(places)] = 5.0
            pair.numpys[places] = 5.0

    def compute(self) -> None:
        one = self.pick()
        other = self.like(one)
        if self.draw.random() < 0.5:
            self.keep(one.ours + 2 * other.ours, one.numpys + 2 * other.numpys)
        elif self.draw.random() < 0.5:
            new = one.numpys + other.numpys
            one.ours += other.ours
            one.numpys[...] = new
        else:
            one.ours -= 1
            one.numpys -= 1

    def share(self) -> None:
        """Share a value: copy it, add another reference, or export it to NumPy."""
        pair = self.pick()
        way = self.draw.randrange(3)
        if way == 0:
            self.keep(xp.asarray(pair.ours, copy=True), pair.numpys.copy())
        elif way == 1:
            self.pairs.append(pair)
        else:
            self.exported.append((np.asarray(pair.ours), pair.numpys.copy()))

    def ask(self) -> None:
        pair = self.pick()
        if pair.ours.size:
            place = tuple([self.draw.randrange(extent) for extent in pair.ours.shape])
            assert float(pair.ours[place]) == pair.numpys[place]

    def run(self, steps: int) -> None:
        kinds = [
            self.create, self.view, self.part, self.assign, self.assign, self.assign_elements,
            self.compute, self.compute, self.share, self.ask,
        ]
        for _ in range(steps):
            self.draw.choice(kinds)()

    def check(self) -> None:
        for pair in (*self.pairs, *self.held):
            np.testing.assert_array_equal(np.asarray(pair.ours), pair.numpys)
        for there, expected in (*self.exported, *self.sources):
            np.testing.assert_array_equal(there, expected)


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("seed", range(60))
def test_arrays_share_memory_like_numpy(seed: int) -> None:
    program = Program(seed)
    program.run(25)
    program.check()
