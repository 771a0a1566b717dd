"""Random numbers by a counter-based generator: equal on any number of processes and devices.

The element at flat index `i` of a result depends on the key and on `i` only. It is computed from
the block of 128 bits that Philox 4x32-10 returns for the counter `i`, so each process computes its
shard alone. A key is used once; `split` derives new keys from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, pi, prod, sqrt
from typing import Any, TypeAlias

import numpy as np

import tecomp.array.functions.table_functions as ew
from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.functions.creation import arange, zeros
from tecomp.array.functions.data_types import asarray, astype
from tecomp.array.functions.manipulation import broadcast_to, reshape, stack, take
from tecomp.array.functions.searching import searchsorted, where
from tecomp.array.functions.sorting_and_sets import argsort
from tecomp.array.functions.table_functions import cumulative_sum
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import materialized_node, tracing
from tecomp.array.jit import jit
from tecomp.array.validation import Extents, check_choice, dtype_name, integer, shape_of
from tecomp.errors import ArrayValueError

__all__ = [
    "binomial", "bits", "choice", "exponential", "fold_in", "gamma", "integers", "key", "normal",
    "permutation", "poisson", "split", "uniform",
]


def __dir__() -> list[str]:
    """Return the public names of the module."""
    return sorted(__all__)


MASK = 2**32 - 1
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10

Block: TypeAlias = "tuple[Any, Any, Any, Any]"
"""Four words of 32 bits, each as an element of an array of uint64, or as an int."""


def philox(counter: Block, round_keys: Sequence[tuple[Any, Any]]) -> Block:
    """Return the block of random bits for a counter.

    Args:
        counter: Words of the counter, least significant first.
        round_keys: Two words for each round, as `round_keys_of` returns them.

    Source:
        Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.

    >>> [f"{word:08x}" for word in philox((0, 0, 0, 0), round_keys_of(0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    for k0, k1 in round_keys:
        first, second = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & MASK, (first >> 32) ^ c3 ^ k1, (
            first & MASK)
    return c0, c1, c2, c3


def round_keys_of(first: int, second: int) -> list[tuple[int, int]]:
    """Return the words of a key for each round.

    >>> round_keys_of(0, 0)[1] == (0x9E3779B9, 0xBB67AE85)
    True
    """
    return [
        ((first + k * WEYL[0]) & MASK, (second + k * WEYL[1]) & MASK) for k in range(ROUNDS)]


def _schedule(key: Array) -> list[Array]:
    """Return the words of a key for each round as arrays without axes: first all first words."""
    node = node_of(key, "random", "key")
    if key.shape != (2,) or node.type.dtype != "uint32":
        raise ArrayValueError(
            "random: key must have shape (2,) and dtype uint32, got shape {shape} and dtype "
            "{dtype}; create it with xp.random.key(seed)",
            kind="array-shapes", shape=key.shape, dtype=node.type.dtype,
        )
    if tracing.depth:
        words = astype(key, np.uint64)
        return [words[n] + k * WEYL[n] & MASK for n in (0, 1) for k in range(ROUNDS)]
    rounds = round_keys_of(*data_of(node).tolist())
    ptype = node.type.like((), "uint64")
    return [
        from_node(materialized_node(np.array(pair[n], np.uint64), ptype))
        for n in (0, 1) for pair in rounds
    ]


def _block(index: Array, attempt: Any, schedule: Sequence[Array]) -> Block:
    """Return random words for indices; `attempt` selects one of 2**32 blocks of each index."""
    rounds = list(zip(schedule[:ROUNDS], schedule[ROUNDS:], strict=True))
    return philox((index & MASK, index >> 32, attempt, 0), rounds)


def _fraction(high: Array, low: Array) -> Array:
    """Return a multiple of 2**-53 in [0, 1) from two words."""
    numerator = astype(((high >> 5) << 26) | (low >> 6), np.int64)
    fraction: Array = astype(numerator, np.float64) * 2.0**-53
    return fraction


@jit
def _uniform64(index: Array, attempt: Array, *schedule: Array) -> Array:
    words = _block(index, attempt, schedule)
    return _fraction(words[0], words[1])


@jit
def _uniform32(index: Array, attempt: Array, *schedule: Array) -> Array:
    words = _block(index, attempt, schedule)
    return astype(astype(words[0] >> 8, np.int64), np.float32) * 2.0**-24


@jit
def _normal64(index: Array, attempt: Array, *schedule: Array) -> Array:
    """Transform two fractions to a normal number (Box and Muller)."""
    words = _block(index, attempt, schedule)
    radius = ew.sqrt(-2.0 * ew.log1p(-_fraction(words[0], words[1])))
    return radius * ew.cos(2.0 * pi * _fraction(words[2], words[3]))


@jit
def _exponential64(index: Array, attempt: Array, *schedule: Array) -> Array:
    words = _block(index, attempt, schedule)
    return -ew.log1p(-_fraction(words[0], words[1]))


@jit
def _bits64(index: Array, attempt: Array, *schedule: Array) -> Any:
    words = _block(index, attempt, schedule)
    return (words[0] << 32) | words[1]


@jit
def _below(index: Array, attempt: Array, count: Array, *schedule: Array) -> Any:
    """Return integers below a count: the high half of a block times the count."""
    words = _block(index, attempt, schedule)
    return _high_product(words[::-1], (count & MASK, count >> 32))


def _high_product(words: Sequence[Any], factors: Sequence[Any]) -> Any:
    """Return bits 128 to 191 of a product of numbers of four and two words of 32 bits."""
    carry: Any = 0
    columns = []
    for k in range(6):
        total = carry
        for shift, factor in enumerate(factors):
            if 0 <= k - shift < len(words):
                total = total + (words[k - shift] * factor & MASK)
            if 0 <= k - shift - 1 < len(words):
                total = total + (words[k - shift - 1] * factor >> 32)
        columns.append(total & MASK)
        carry = total >> 32
    return (columns[5] << 32) | columns[4]


def key(seed: int, *, device: Any = None) -> Array:
    """Return a key for a seed.

    Args:
        seed: Integer; its lowest 64 bits are used.
        device: Device of the key. Default: the default device.

    >>> key(7)
    Array([7, 0], dtype=uint32)
    """
    number = integer(seed, "random.key", "seed")
    return asarray(np.array([number & MASK, number >> 32 & MASK], np.uint32), device=device)


def split(key: Array, num: int = 2) -> Array:
    """Derive independent keys from a key, which is not used afterwards.

    Args:
        key: Key.
        num: Number of keys.

    Returns:
        Array of keys, one in each row.

    >>> first, second = split(key(0))
    >>> first.shape, first.dtype
    ((2,), dtype('uint32'))
    """
    index = arange(integer(num, "random.split", "num"), dtype=np.uint64, device=key.device)
    return _split(index, *_schedule(key))


def fold_in(key: Array, data: int) -> Array:
    """Derive a key from a key and a number.

    Args:
        key: Key.
        data: Nonnegative integer, such as the number of a step.

    >>> fold_in(key(0), 3).shape
    (2,)
    """
    index = asarray(np.array([integer(data, "random.fold_in", "data")], np.uint64),
                    device=key.device)
    return _fold(index, *_schedule(key))[0]


def derivation(purpose: int) -> Callable[..., Array]:
    """Return a function that derives keys for a purpose; those of two purposes never agree."""
    def derive(index: Array, *schedule: Array) -> Array:
        rounds = list(zip(schedule[:ROUNDS], schedule[ROUNDS:], strict=True))
        # The last word of the counter differs from that of random bits.
        words = philox((index & MASK, index >> 32, purpose, 1), rounds)
        return astype(stack([words[0], words[1]], axis=-1), np.uint32)

    return jit(derive)


_split, _fold = derivation(0), derivation(1)
GENERATOR = 2
"""Purpose of the keys of a generator of `tecomp.numpy.random`; see `derivation`."""


def _sample(
    function: Callable[..., Array], key: Array, shape: Extents, where_: str, *parameters: Array,
    team: Any = None, placements: Any = None, attempt: int = 0,
) -> Array:
    """Return the elements of a distribution for all indices of a shape."""
    extents = shape_of(shape, where_)
    index = arange(prod(extents), dtype=np.uint64, device=key.device, team=team,
                   placements=placements)
    number = asarray(np.uint64(attempt), device=key.device)
    inputs = [number, *parameters, *_schedule(key)]
    if team is not None:
        inputs = [_on_team(x, team) for x in inputs]
    found = function(index, *inputs)
    return found if len(extents) == 1 else reshape(found, extents)


def _on_team(x: Array, team: Any) -> Array:
    return x if x.team is not None else asarray(x, team=team)


def bits(key: Array, shape: Extents = (), *, team: Any = None, placements: Any = None) -> Array:
    """Return random integers of dtype uint64, of which each bit is random.

    Args:
        key: Key.
        shape: Shape of the array.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the flat array before it gets its shape.

    >>> bits(key(0), 2).dtype
    dtype('uint64')
    """
    return _sample(_bits64, key, shape, "bits", team=team, placements=placements)


def uniform(
    key: Array, shape: Extents = (), *, low: float | Array = 0.0, high: float | Array = 1.0,
    dtype: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """Return numbers that are uniformly distributed in [low, high).

    Args:
        key: Key.
        shape: Shape of the array.
        low: Lower bound.
        high: Upper bound, excluded.
        dtype: float64 or float32. Default: float64.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the flat array before it gets its shape.

    Raises:
        ArrayValueError: If the key is not a key, or the dtype is not one of these.

    >>> uniform(key(0), 2)
    Array([0.39904647, 0.9722412 ], dtype=float64)
    """
    name = "float64" if dtype is None else dtype_name(dtype, "uniform")
    check_choice(name, ("float32", "float64"), "uniform", "dtype")
    function = _uniform64 if name == "float64" else _uniform32
    found = _sample(function, key, shape, "uniform", team=team, placements=placements)
    is_unit = isinstance(low, int | float) and isinstance(high, int | float) and (
        low, high) == (0, 1)
    return found if is_unit else found * (high - low) + low


def normal(
    key: Array, shape: Extents = (), *, loc: float | Array = 0.0, scale: float | Array = 1.0,
    dtype: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """Return normally distributed numbers.

    Args:
        key: Key.
        shape: Shape of the array.
        loc: Mean.
        scale: Standard deviation.
        dtype: Floating-point dtype. Default: float64.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the flat array before it gets its shape.

    Raises:
        ArrayValueError: If the key is not a key.

    >>> normal(key(0), (2, 3)).shape
    (2, 3)
    """
    found = _sample(_normal64, key, shape, "normal", team=team, placements=placements)
    scaled = found if isinstance(scale, int | float) and scale == 1 else found * scale
    moved = scaled if isinstance(loc, int | float) and loc == 0 else scaled + loc
    return moved if dtype is None else astype(moved, dtype, copy=False)


def exponential(
    key: Array, shape: Extents = (), *, scale: float | Array = 1.0, team: Any = None,
    placements: Any = None,
) -> Array:
    """Return exponentially distributed numbers.

    Args:
        key: Key.
        shape: Shape of the array.
        scale: Mean.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the flat array before it gets its shape.

    >>> exponential(key(0), 3).shape
    (3,)
    """
    return _sample(
        _exponential64, key, shape, "exponential", team=team, placements=placements) * scale


def integers(
    key: Array, shape: Extents = (), *, low: int = 0, high: int, dtype: Any = None,
    team: Any = None, placements: Any = None,
) -> Array:
    """Return integers that are uniformly distributed in [low, high).

    Args:
        key: Key.
        shape: Shape of the array.
        low: Lowest integer.
        high: Upper bound, excluded.
        dtype: Integer dtype. Default: int64.
        team: Team over which the array is distributed. Default: an array of this process alone.
        placements: Placements of the flat array before it gets its shape.

    Raises:
        ArrayValueError: If there is no integer in the interval.

    >>> integers(key(0), 4, low=1, high=7)
    Array([3, 6, 1, 5], dtype=int64)
    """
    first, last = integer(low, "integers", "low"), integer(high, "integers", "high")
    name = "int64" if dtype is None else dtype_name(dtype, "integers")
    limits = np.iinfo(name)
    if not limits.min <= first < last <= limits.max + 1:
        raise ArrayValueError(
            "integers: the interval from {low} to {high}, excluded, has no element of dtype "
            "{dtype}, or elements that are out of range",
            low=first, high=last, dtype=name,
        )
    if last - first == 2**64:
        return astype(bits(key, shape, team=team, placements=placements), name)
    count = asarray(np.uint64(last - first), device=key.device)
    found = _sample(_below, key, shape, "integers", count, team=team, placements=placements)
    return astype(found + (first % 2**64), name)  # modulo 2**64


def permutation(key: Array, x: int | Array, /, *, axis: int = 0) -> Array:
    """Return an array with its elements along an axis in random order.

    Args:
        key: Key.
        x: Array, or a number of integers from 0 that are permuted.
        axis: Axis that is permuted.

    >>> xs = permutation(key(0), 5)
    >>> sorted(xs.tolist())
    [0, 1, 2, 3, 4]
    """
    count = x.shape[axis] if isinstance(x, Array) else integer(x, "permutation", "x")
    order = argsort(bits(key, count))
    return take(x, order, axis=axis) if isinstance(x, Array) else order


def choice(
    key: Array, x: int | Array, /, shape: Extents = (), *, replace: bool = True,
    p: Array | None = None, axis: int = 0,
) -> Array:
    """Return random elements along an axis.

    Args:
        key: Key.
        x: Array, or a number of integers from 0 from which elements are taken.
        shape: Shape that takes the place of the axis.
        replace: Whether an element can be taken several times.
        p: Probability of each element. Default: all elements are equally probable.
        axis: Axis along which elements are taken.

    Raises:
        ArrayValueError: If more elements are taken than there are, or than have a probability above
            0, without replacement; or if `p` is not one nonnegative number for each element.

    >>> choice(key(0), 3, 5).shape
    (5,)
    """
    extents = shape_of(shape, "choice")
    count = x.shape[axis] if isinstance(x, Array) else integer(x, "choice", "x")
    if not replace and prod(extents) > count:
        raise ArrayValueError(
            "choice: cannot take {size} of {count} elements without replacement; pass "
            "replace=True",
            size=prod(extents), count=count,
        )
    if p is not None:
        numbers, least = np.asarray(p), 1 if replace else prod(extents)
        if numbers.shape != (count,) or not (numbers >= 0).all() or (numbers > 0).sum() < least:
            raise ArrayValueError(
                "choice: p must have shape ({count},), no negative number and at least {least} "
                "positive ones, got shape {shape} with {positive} positive ones", count=count,
                least=least, shape=numbers.shape, positive=int((numbers > 0).sum()),
            )
    if p is not None and replace:
        bounds = cumulative_sum(p)
        index = searchsorted(bounds / bounds[-1], uniform(key, extents), side="right")
    elif p is not None:
        # The greatest of p**(1 / u), in the order of exponential arrival times (Efraimidis).
        index = reshape(argsort(exponential(key, count) / p)[: prod(extents)], extents)
    elif replace:
        index = integers(key, extents, high=count)
    else:
        index = reshape(permutation(key, count)[: prod(extents)], extents)
    return take(x, index, axis=axis) if isinstance(x, Array) else index


@jit
def _gamma_proposal(index: Array, attempt: Array, shape: Array, *schedule: Array) -> Any:
    """Return a proposal for each index, and whether it is accepted (Marsaglia and Tsang)."""
    d = shape - 1 / 3
    words = _block(index, attempt * 2, schedule)
    radius = ew.sqrt(-2.0 * ew.log1p(-_fraction(words[0], words[1])))
    x = radius * ew.cos(2.0 * pi * _fraction(words[2], words[3]))
    root = 1.0 + x / ew.sqrt(9.0 * d)
    v = root * root * root
    return d * v, (root > 0) & (
        ew.log1p(-_uniform64(index, attempt * 2 + 1, *schedule))
        < 0.5 * x * x + d * (1.0 - v + ew.log(where(root > 0, v, 1.0))))


def gamma(
    key: Array, shape: Extents = (), *, a: float | Array, scale: float | Array = 1.0
) -> Array:
    """Return numbers with a gamma distribution.

    Args:
        key: Key.
        shape: Shape of the array.
        a: Shape parameter of the distribution, nonnegative.
        scale: Scale parameter.

    Raises:
        ArrayValueError: If a shape parameter is negative or not a number.

    >>> gamma(key(0), 3, a=2.0).shape
    (3,)
    """
    extents = shape_of(shape, "gamma")
    first, second = split(key)
    given = asarray(a, dtype=np.float64, device=key.device)
    if not (np.asarray(given) >= 0).all():
        raise ArrayValueError("gamma: a must not be negative, got {a}", a=np.min(np.asarray(given)))
    parameter = reshape(broadcast_to(given, extents), (-1,))
    lifted = where(parameter < 1, parameter + 1, parameter)
    schedule = _schedule(first)
    index = arange(prod(extents), dtype=np.uint64, device=key.device)
    found = zeros(prod(extents), device=key.device)
    pending, attempt = index, 0
    while pending.size:
        number = asarray(np.uint64(attempt), device=key.device)
        values, accepted = _gamma_proposal(pending, number, take(lifted, astype(pending, np.int64)),
                                           *schedule)
        places = astype(pending, np.int64)
        found[places[accepted]] = values[accepted]
        pending, attempt = pending[~accepted], attempt + 1
    boost = ew.exp(ew.log1p(-uniform(second, prod(extents))) / parameter)
    return reshape(where(parameter < 1, found * boost, found), extents) * scale


def poisson(key: Array, shape: Extents = (), *, lam: float | Array) -> Array:
    """Return integers with a Poisson distribution, by inversion of its distribution function.

    Args:
        key: Key.
        shape: Shape of the array.
        lam: Mean, nonnegative; an array takes time for each distinct value.

    Raises:
        ArrayValueError: If the mean is negative or exceeds 10**10.

    >>> poisson(key(0), 3, lam=4.0).dtype
    dtype('int64')
    """
    def table(mean: float) -> tuple[int, Any]:
        if not 0 <= mean <= 1e10:
            raise ArrayValueError(
                "poisson: lam must be from 0 to 1e10, got {mean}", mean=mean)
        low, high = _window(mean, sqrt(mean))
        return low, log(max(mean, 1e-300)) - np.log(np.arange(low + 1.0, high + 1))

    return _invert(key, shape, "poisson", table, lam)


def binomial(key: Array, shape: Extents = (), *, n: int | Array, p: float | Array) -> Array:
    """Return integers with a binomial distribution, by inversion of its distribution function.

    Args:
        key: Key.
        shape: Shape of the array.
        n: Number of trials, nonnegative; arrays take time for each distinct pair.
        p: Probability of a success.

    Raises:
        ArrayValueError: If a parameter is out of range.

    >>> binomial(key(0), 3, n=10, p=0.5).dtype
    dtype('int64')
    """
    def table(trials: float, chance: float) -> tuple[int, Any]:
        if not (0 <= chance <= 1 and trials >= 0 and trials <= 1e15):
            raise ArrayValueError(
                "binomial: n must be nonnegative and p from 0 to 1, got n={n} and p={p}",
                n=trials, p=chance,
            )
        mean = trials * chance
        low, high = _window(mean, sqrt(mean * (1 - chance)))
        k = np.arange(low, min(high, trials), dtype=np.float64)
        with np.errstate(divide="ignore"):
            odds = np.log(np.float64(chance)) - np.log1p(-np.float64(chance))
        return low, np.log((trials - k) / (k + 1)) + np.clip(odds, -1e6, 1e6)

    return _invert(key, shape, "binomial", table, n, p)


def _window(mean: float, deviation: float) -> tuple[int, int]:
    """Return the lowest and the highest integer whose probability is not negligible."""
    return max(int(mean - 12 * deviation - 60), 0), int(mean + 12 * deviation + 60)


def _invert(
    key: Array, shape: Extents, where_: str, table: Callable[..., tuple[int, Any]], *parameters: Any
) -> Array:
    """Sample integers by their distribution function.

    Args:
        key: Key.
        shape: Shape of the result.
        where_: Function name for error messages.
        table: Function that returns, for parameters, the lowest integer and the logarithms of the
            quotients of adjacent probabilities.
        parameters: Numbers, or arrays that broadcast to the shape.
    """
    extents = shape_of(shape, where_)
    values = uniform(key, extents)
    columns = [np.asarray(parameter, np.float64) for parameter in parameters]
    if all(column.ndim == 0 for column in columns):
        return _quantiles(values, *table(*[float(column) for column in columns]))
    rows = np.stack([np.broadcast_to(column, extents).ravel() for column in columns], axis=1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    groups = asarray(inverse.reshape(extents), device=key.device)
    found = zeros(extents, dtype=np.int64, device=key.device)
    for k, row in enumerate(distinct.tolist()):
        found = where(groups == k, _quantiles(values, *table(*row)), found)
    return found


def _quantiles(values: Array, low: int, logarithms: Any) -> Array:
    """Return the quantiles of a distribution of integers at fractions."""
    total = np.concatenate([[0.0], np.cumsum(logarithms)])
    weights = np.exp(total - total.max())
    bounds = np.cumsum(weights)
    function = asarray(bounds / bounds[-1], device=values.device)
    return astype(searchsorted(function, values, side="right"), np.int64) + low
