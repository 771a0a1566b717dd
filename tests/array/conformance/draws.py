"""Random shapes, dtypes, elements and arguments, and arrays with various memory layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.array import Array
from tests.strategies.dtypes import standard

Data = np.ndarray[Any, Any]

SIGNED = standard("signed integer")
UNSIGNED = standard("unsigned integer")
INTEGERS = SIGNED + UNSIGNED
FLOATS = standard("real floating")
COMPLEX = standard("complex floating")
FLOATING = FLOATS + COMPLEX
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
ALL = ("bool", *NUMERIC)

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


class Draw:
    """Random choices of one call, reproducible from the seed."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, part: float = 0.5) -> bool:
        return bool(self.rng.random() < part)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def number(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        extents = (0, 1, 2, 3, 4, 5) if self.chance(0.15) else (1, 2, 3, 5)
        return tuple([self.pick(extents) for _ in range(self.number(least, most))])

    def full(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """Draw a shape without empty axes."""
        return tuple([self.number(1, 5) for _ in range(self.number(least, most))])

    def part(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Draw a shape that broadcasts to another one."""
        suffix = shape[self.number(0, len(shape)):] if self.chance(0.4) else shape
        return tuple([1 if self.chance(0.25) else extent for extent in suffix])

    def data(
        self, shape: tuple[int, ...], dtypes: Sequence[str] = NUMERIC, special: bool = False
    ) -> Data:
        dtype = np.dtype(self.pick(dtypes))
        if dtype.kind == "b":
            return np.asarray(self.rng.random(shape) > 0.5)
        if dtype.kind in "iu":
            return np.asarray(self.rng.integers(0 if dtype.kind == "u" else -5, 6, shape, dtype))
        found = self._real(shape, special)
        if dtype.kind == "c":
            return np.asarray(found + 1j * self._real(shape, False)).astype(dtype)
        return np.asarray(found).astype(dtype)

    def _real(self, shape: tuple[int, ...], special: bool) -> Data:
        found = np.asarray(self.rng.standard_normal(shape) * 2)
        if special and self.chance():
            found = np.where(self.rng.random(shape) < 0.2, self.rng.choice(SPECIAL, shape), found)
        return found

    def axis(self, rank: int) -> int:
        return self.number(-rank, rank - 1)

    def axes(self, rank: int) -> Any:
        """Draw no axis, one axis or several axes."""
        kind = self.number(0, 2)
        if kind == 0 or rank == 0:
            return None
        if kind == 1:
            return self.axis(rank)
        some = self.rng.permutation(rank)[: self.number(1, rank)]
        return tuple([int(k) - (rank if self.chance(0.3) else 0) for k in some])

    def index(self, shape: tuple[int, ...]) -> Any:
        """Draw an index of integers, slices, new axes and an ellipsis."""
        key: list[Any] = []
        for extent in shape[: self.number(0, len(shape))]:
            if self.chance(0.15):
                key.append(None)
            if extent and self.chance(0.4):
                key.append(self.number(-extent, extent - 1))
            else:
                key.append(self.slice(extent))
        if self.chance(0.5) or len(key) < len(shape):
            key.append(Ellipsis)
        return tuple(key)

    def slice(self, extent: int) -> slice:
        ends: list[Any] = [None, *range(-extent - 1, extent + 2)]
        return slice(self.pick(ends), self.pick(ends), self.pick([None, 1, 2, 3, -1, -2]))

    def called(self, name: str, function: Callable[[], Any]) -> Any:
        """Call a function with drawn arguments; subclasses observe the call here."""
        return function()

    def array(self, data: Data) -> Array:
        """Create an array with these elements: pending or evaluated, strided, owned or borrowed."""
        kind = self.number(0, 6)
        if kind == 0:
            return xp.asarray(data)
        if kind == 1:
            return xp.asarray(data, copy=True)
        if kind == 2 and data.ndim:
            return xp.asarray(np.repeat(data, 2, axis=-1))[..., ::2]
        if kind == 3 and data.ndim:
            return xp.flip(xp.asarray(np.flip(data, 0), copy=True), axis=0)
        if kind == 4 and data.ndim > 1:
            return xp.matrix_transpose(xp.asarray(np.swapaxes(data, -1, -2), copy=True))
        if kind == 5 and data.dtype.kind != "b":
            # a pending result, not evaluated yet
            return xp.where(xp.asarray(True), xp.asarray(data), xp.asarray(data))
        if kind == 6 and data.ndim:
            whole = xp.asarray(np.concatenate([data, data], 0), copy=True)
            return whole[data.shape[0]:]
        return xp.asarray(data)
