"""Random numbers with the names of `numpy.random`; the numbers differ from NumPy's.

The generator is the counter-based one of `tecomp.array.random`. A `Generator` draws a key for each
call, so a script that is run again with the same seed gets the same numbers, on any number of
processes and on every device.
"""

from __future__ import annotations

from os import urandom
from typing import Any

import numpy as _numpy

import tecomp.array as _xp
import tecomp.array.random as _random
from tecomp.array import Array
from tecomp.errors import ArrayTypeError as _ArrayTypeError
from tecomp.numpy.arrays import store as _store
from tecomp.numpy.arrays import to_array as _to_array


class Generator:
    """Stream of random numbers.

    Args:
        seed: Integer, or None for a seed from the operating system.

    >>> generator = Generator(3)
    >>> generator.random(2).shape, generator.integers(6, size=3).dtype
    ((2,), dtype('int64'))
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Begin the stream of a seed."""
        if seed is not None and not isinstance(seed, int | _numpy.integer):
            raise _ArrayTypeError(
                "random: the seed must be an integer or None, got {seed!r}", seed=seed)
        number = int.from_bytes(urandom(8), "little") if seed is None else int(seed)
        self._words = number & _random.MASK, number >> 32 & _random.MASK
        self._drawn = 0

    def _key(self) -> Array:
        """Return the key for one call."""
        count = self._drawn
        self._drawn += 1
        counter = count & _random.MASK, count >> 32, _random.GENERATOR, 1
        words = _random.philox(counter, _random.round_keys_of(*self._words))
        return _xp.asarray(_numpy.array(words[:2], _numpy.uint32))

    def _draw(self, sample: Any, size: Any, *parameters: Any, **named: Any) -> Any:
        """Return an array of a size; by default, of the shape of the parameters, or a number."""
        arrays = {
            name: value if isinstance(value, int | float) else _to_array(value)
            for name, value in named.items() if value is not None
        }
        if size is None:
            shapes = [x.shape for x in arrays.values() if isinstance(x, Array)]
            shape: Any = _numpy.broadcast_shapes(*shapes)
        else:
            shape = size
        found = sample(self._key(), *parameters, shape, **arrays)
        return found.item() if size is None and not shape else found

    def random(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Return numbers in [0, 1)."""
        found = self._draw(lambda key, shape: _random.uniform(key, shape, dtype=dtype),
                           size if out is None else out.shape)
        return _store(found, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return numbers in [low, high)."""
        return self._draw(_random.uniform, size, low=low, high=high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return normally distributed numbers."""
        return self._draw(_random.normal, size, loc=loc, scale=scale)

    def standard_normal(self, size: Any = None) -> Any:
        """Return numbers with the standard normal distribution."""
        return self._draw(_random.normal, size)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Return numbers whose logarithms are normally distributed."""
        found = self.normal(mean, sigma, size)
        return _xp.exp(found) if isinstance(found, Array) else float(_numpy.exp(found))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Return exponentially distributed numbers."""
        return self._draw(_random.exponential, size, scale=scale)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Return numbers with a gamma distribution."""
        return self._draw(_random.gamma, size, a=shape, scale=scale)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Return integers with a Poisson distribution."""
        return self._draw(_random.poisson, size, lam=lam)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Return integers with a binomial distribution."""
        return self._draw(_random.binomial, size, n=n, p=p)

    def integers(
        self, low: int, high: int | None = None, size: Any = None, dtype: Any = int,
        endpoint: bool = False,
    ) -> Any:
        """Return integers in [low, high), or below `low` if there is no `high`."""
        first, last = (0, low) if high is None else (low, high)

        def sample(key: Array, shape: Any) -> Array:
            return _random.integers(
                key, shape, low=int(first), high=int(last) + bool(endpoint), dtype=dtype)

        return self._draw(sample, size)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> Any:
        """Return random elements along an axis."""
        values = int(a) if isinstance(a, int | _numpy.integer) else _to_array(a)
        found = _random.choice(
            self._key(), values, () if size is None else size, replace=replace,
            p=None if p is None else _to_array(p), axis=axis)
        return found.item() if size is None and not found.shape else found

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return a copy in random order, or integers from 0 in random order."""
        values = int(x) if isinstance(x, int | _numpy.integer) else _to_array(x)
        return _random.permutation(self._key(), values, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Bring the elements of an array or a list into random order, in place."""
        if isinstance(x, list):
            x[:] = [x[k] for k in self.permutation(len(x)).tolist()]
        else:
            x[...] = self.permutation(x, axis)

    def rand(self, *shape: int) -> Any:
        """Return numbers in [0, 1), of a shape that is given by several arguments."""
        return self.random(shape or None)

    def randn(self, *shape: int) -> Any:
        """Return normally distributed numbers, of a shape that is given by several arguments."""
        return self.standard_normal(shape or None)

    random_sample = random
    randint = integers
    """Older names."""


RandomState = Generator


def default_rng(seed: Any = None) -> Generator:
    """Return a generator for a seed; a generator is returned itself.

    >>> default_rng(0).random(2)
    Array([0.3330726 , 0.26186389], dtype=float64)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


_global = Generator()

binomial = _global.binomial
choice = _global.choice
exponential = _global.exponential
gamma = _global.gamma
lognormal = _global.lognormal
normal = _global.normal
permutation = _global.permutation
poisson = _global.poisson
rand = _global.rand
randint = _global.randint
randn = _global.randn
random = _global.random
random_sample = _global.random_sample
seed = _global.seed
shuffle = _global.shuffle
standard_normal = _global.standard_normal
uniform = _global.uniform
