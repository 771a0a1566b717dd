"""Threads record, write through views, evaluate and release arrays that they share.

Each thread has its own rows of the shared arrays and is the only writer of these rows, through
arbitrary views. A thread therefore knows the values of its rows, whatever other threads do. Arrays
without a writer keep their values for all threads.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array

THREADS = 8
ROWS = 2
SECONDS = 60
"""Time limit in seconds, after which a test counts as deadlocked."""


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Make the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Thread:
    """Work of one thread, with NumPy counterparts of its arrays."""

    def __init__(self, number: int, seed: int, shared: list[Array], constant: Array) -> None:
        self.draw = random.Random(seed * 100 + number)
        self.shared = shared
        self.constant = constant
        self.rows = slice(number * ROWS, (number + 1) * ROWS)
        self.own = [np.asarray(x)[self.rows].copy() for x in shared]
        self.kept: list[tuple[Array, Any]] = []

    def pick(self) -> tuple[Array, Any]:
        k = self.draw.randrange(len(self.shared))
        return self.shared[k], self.own[k]

    def views(self, x: Array) -> Array:
        """Return the rows of this thread through one of several views."""
        way = self.draw.randrange(4)
        if way == 0:
            return x[self.rows]
        if way == 1:
            return x.T[:, self.rows].T
        if way == 2:
            return x[self.rows.start :, ...][:ROWS]
        return xp.reshape(x, (THREADS, ROWS, -1))[self.rows.start // ROWS]

    def write(self) -> None:
        x, numpys = self.pick()
        number = float(self.draw.randrange(100))
        way = self.draw.randrange(4)
        if way == 0:
            x[self.rows] = number
            numpys[...] = number
        elif way == 1:
            self.views(x)[0, 1:] = number
            numpys[0, 1:] = number
        elif way == 2:
            part = self.views(x)
            part += number
            numpys += number
        else:
            new = self.views(x) * 2 - number
            self.views(x)[...] = new
            numpys[...] = numpys * 2 - number

    def read(self) -> None:
        x, numpys = self.pick()
        way = self.draw.randrange(3)
        if way == 0:
            np.testing.assert_array_equal(np.asarray(x)[self.rows], numpys)
        elif way == 1:
            assert float(self.views(x)[1, 2]) == numpys[1, 2]
        else:
            np.testing.assert_array_equal(np.asarray(xp.sum(self.views(x), axis=1)), numpys.sum(1))

    def record(self) -> None:
        x, numpys = self.pick()
        self.kept.append((self.views(x) + 1, numpys + 1))
        self.kept.append((xp.sum(self.constant * 2), np.sum(np.asarray(self.constant)) * 2))

    def let_go(self) -> None:
        if self.kept:
            x, expected = self.kept.pop(self.draw.randrange(len(self.kept)))
            if self.draw.random() < 0.5:
                np.testing.assert_array_equal(np.asarray(x), expected)

    def run(self, start: Barrier) -> None:
        start.wait()
        for _ in range(40):
            self.draw.choice([self.write, self.write, self.read, self.record, self.let_go])()
        for x, expected in self.kept:
            np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(4))
def test_threads_see_their_writes(seed: int) -> None:
    shape = (THREADS * ROWS, 5)
    shared = [xp.reshape(xp.arange(80.0), shape) * k for k in range(3)]
    constant = xp.reshape(xp.arange(80.0), shape) - 7
    threads = [Thread(number, seed, shared, constant) for number in range(THREADS)]
    start = Barrier(THREADS)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(thread.run, start) for thread in threads]
        for future in futures:
            future.result(SECONDS)

    for k, x in enumerate(shared):
        np.testing.assert_array_equal(np.asarray(x), np.concat([item.own[k] for item in threads]))
