"""Random numbers: test vectors, distributions, keys, and the names of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tecomp.array as xp
import tecomp.numpy as tnp
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.messages import Diagnostic, diagnostic

pytestmark = pytest.mark.numbers_alone
random = xp.random

# Random123, tests/kat_vectors: philox4x32, 10 rounds.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter: str, key: str, expected: str) -> None:
    rounds = random.round_keys_of(*words(key))
    c0, c1, c2, c3 = words(counter)
    assert list(random.philox((c0, c1, c2, c3), rounds)) == words(expected)


def test_elements_are_blocks_of_their_index() -> None:
    rounds = random.round_keys_of(5, 2)
    blocks = [random.philox((i, 0, 0, 0), rounds) for i in range(7)]
    key = random.key(5 + (2 << 32))
    assert random.bits(key, 7).tolist() == [(a << 32) | b for a, b, _, _ in blocks]
    fractions = [((a >> 5 << 26) | (b >> 6)) / 2**53 for a, b, _, _ in blocks]
    assert random.uniform(key, (7, 1)).tolist() == [[u] for u in fractions]


@pytest.mark.exhaustive
def test_other_dtypes_are_blocks_of_their_index() -> None:
    key, rounds = random.key(6), random.round_keys_of(6, 0)
    blocks = [random.philox((i, 0, 0, 0), rounds) for i in range(7)]
    assert random.uniform(key, 7, dtype="float32").tolist() == [(a >> 8) / 2**24 for a, *_ in blocks]
    for count in (6, 2**32 + 5, 3 * 2**62, 2**64):
        high = [((a << 96) | (b << 64) | (c << 32) | d) * count >> 128 for a, b, c, d in blocks]
        found = random.integers(key, 7, low=0, high=count, dtype="uint64")
        assert found.tolist() == (high if count < 2**64 else [(a << 32) | b for a, b, _, _ in blocks])


@pytest.mark.exhaustive
def test_keys_split_into_different_keys() -> None:
    key = random.key(1)
    keys = [key, *random.split(key, 3), *random.split(random.split(key)[0]), random.fold_in(key, 9)]
    values = [tuple(random.uniform(k, 2).tolist()) for k in keys]
    assert len({*values}) == len(values)
    np.testing.assert_array_equal(np.asarray(random.split(key, 3)[:2]), np.asarray(random.split(key)))


@pytest.mark.exhaustive
def test_recorded_functions_read_the_key() -> None:
    fast = xp.jit(lambda key: random.uniform(key, 5) + 1)
    for seed in (1, 2):
        key = random.key(seed)
        np.testing.assert_array_equal(np.asarray(fast(key)), np.asarray(random.uniform(key, 5) + 1))


@pytest.mark.exhaustive
def test_signed_integers_cover_their_interval() -> None:
    found = np.asarray(random.integers(random.key(3), 300, low=-3, high=3))
    assert {*found.tolist()} == {*range(-3, 3)}
    small = random.integers(random.key(3), 300, low=-128, high=128, dtype="int8")
    assert small.dtype == np.int8
    assert np.asarray(small).min() < -100


@pytest.mark.exhaustive
def test_permutations_and_choices() -> None:
    key = random.key(4)
    order = np.asarray(random.permutation(key, 50))
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50))
    x = xp.reshape(xp.arange(10), (5, 2))
    rows = np.asarray(random.permutation(key, x))
    assert sorted(rows.tolist()) == np.arange(10).reshape(5, 2).tolist()
    assert random.choice(key, x, (3, 4), axis=1).shape == (5, 3, 4)
    without = random.choice(key, 20, 20, replace=False)
    assert sorted(without.tolist()) == list(range(20))
    p = xp.asarray([0.0, 0.5, 0.0, 0.5])
    assert {*random.choice(key, 4, 100, p=p).tolist()} == {1, 3}
    assert sorted(random.choice(key, 4, 2, p=p, replace=False).tolist()) == [1, 3]


REFUSED: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
    (lambda: random.uniform(xp.ones(2), 3), ArrayValueError,
     Diagnostic("array-shapes", shape=(2,), dtype="float64")),
    (lambda: random.integers(random.key(0), 3, low=5, high=5), ArrayValueError,
     Diagnostic("array-value", low=5, high=5, dtype="int64")),
    (lambda: random.choice(random.key(0), 3, 4, replace=False), ArrayValueError,
     Diagnostic("array-value", size=4, count=3)),
    (lambda: random.poisson(random.key(0), 3, lam=-1.0), ArrayValueError,
     Diagnostic("array-value", mean=-1.0)),
    (lambda: random.binomial(random.key(0), 3, n=3, p=1.5), ArrayValueError,
     Diagnostic("array-value", n=3.0, p=1.5)),
    (lambda: tnp.random.default_rng("x"), ArrayTypeError, Diagnostic("array-type", seed="x")),
]


@pytest.mark.parametrize(("call", "error", "expected"), REFUSED)
def test_bad_arguments(
    call: Callable[[], Any], error: type[Exception], expected: Diagnostic
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert diagnostic(caught.value) == expected


CONTINUOUS: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    "uniform": (lambda key, n: random.uniform(key, n, low=-1.0, high=3.0), stats.uniform(-1, 4)),
    "uniform32": (lambda key, n: random.uniform(key, n, dtype="float32"), stats.uniform()),
    "normal": (lambda key, n: random.normal(key, n, loc=2.0, scale=0.5), stats.norm(2, 0.5)),
    "exponential": (lambda key, n: random.exponential(key, n, scale=3.0), stats.expon(0, 3)),
    "gamma": (lambda key, n: random.gamma(key, n, a=2.5, scale=2.0), stats.gamma(2.5, 0, 2)),
    "gamma below 1": (lambda key, n: random.gamma(key, n, a=0.3), stats.gamma(0.3)),
}
DISCRETE: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    "integers": (lambda key, n: random.integers(key, n, low=-2, high=9), stats.randint(-2, 9)),
    "poisson": (lambda key, n: random.poisson(key, n, lam=4.2), stats.poisson(4.2)),
    "poisson of arrays": (
        lambda key, n: random.poisson(key, n, lam=xp.full(n, 0.7)), stats.poisson(0.7)),
    "binomial": (lambda key, n: random.binomial(key, n, n=12, p=0.3), stats.binom(12, 0.3)),
    "choice": (
        lambda key, n: random.choice(key, 3, n, p=xp.asarray([0.2, 0.5, 0.3])),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
}


@pytest.mark.exhaustive(keep=1, most=len(CONTINUOUS))
@pytest.mark.parametrize("name", CONTINUOUS)
def test_means_and_deviations(name: str) -> None:
    sample, law = CONTINUOUS[name]
    found = np.asarray(sample(random.key(11), 4000), np.float64)
    assert abs(found.mean() - law.mean()) < 4 * law.std() / sqrt(found.size)
    assert found.std() == pytest.approx(law.std(), rel=0.2)


@pytest.mark.exhaustive(most=len(CONTINUOUS))
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    """Kolmogorov and Smirnov: no sample of 100,000 is less probable than 1e-4."""
    sample, law = CONTINUOUS[name]
    for seed in range(3):
        found = np.asarray(sample(random.key(seed), 100_000), np.float64)
        assert stats.kstest(found, law.cdf).pvalue > 1e-4


@pytest.mark.exhaustive(most=len(DISCRETE))
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    """Chi-square: no sample is less probable than 1e-4."""
    sample, law = DISCRETE[name]
    for seed in range(3):
        found = np.asarray(sample(random.key(seed), 20_000))
        low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
        counts = [int(np.count_nonzero(found == k)) for k in range(low, high + 1)]
        expected = [law.pmf(k) * found.size for k in range(low, high + 1)]
        counts.append(found.size - sum(counts))
        expected.append(found.size - sum(expected))
        kept = np.array(expected) > 1
        scale = np.array(counts)[kept].sum() / np.array(expected)[kept].sum()
        assert stats.chisquare(np.array(counts)[kept], np.array(expected)[kept] * scale).pvalue > 1e-4


@pytest.mark.exhaustive
def test_bits_are_balanced_and_independent() -> None:
    found = np.asarray(random.bits(random.key(8), 50_000))
    table = np.unpackbits(found.view(np.uint8)).reshape(-1, 64).astype(float)
    assert abs(table.mean(axis=0) - 0.5).max() < 5 * 0.5 / sqrt(len(table))
    correlation = np.corrcoef(table.T) - np.eye(64)
    assert abs(correlation).max() < 6 / sqrt(len(table))
    assert abs(np.corrcoef(table[:-1].ravel(), table[1:].ravel())[0, 1]) < 6 / sqrt(table.size)


@pytest.mark.exhaustive
def test_names_of_numpy() -> None:
    generator, same = tnp.random.default_rng(5), tnp.random.default_rng(5)
    draws: list[Callable[[Any], Any]] = [
        lambda g: g.random(), lambda g: g.random((2, 3)), lambda g: g.normal(0, 1, size=4),
        lambda g: g.integers(3), lambda g: g.integers(0, 9, size=(2, 2)), lambda g: g.uniform(1, 2),
        lambda g: g.choice([4, 5, 6], 2), lambda g: g.permutation([1, 2, 3]), lambda g: g.randn(2),
        lambda g: g.uniform(tnp.zeros(3), 2.0), lambda g: g.poisson(3), lambda g: g.choice(4),
    ]
    shapes = [(), (2, 3), (4,), (), (2, 2), (), (2,), (3,), (2,), (3,), (), ()]
    for draw, shape in zip(draws, shapes, strict=True):
        found, again = draw(generator), draw(same)
        assert np.shape(found) == shape
        np.testing.assert_array_equal(np.asarray(found), np.asarray(again))
        assert isinstance(found, int | float if shape == () else xp.Array)
    tnp.random.seed(3)
    first = tnp.random.rand(3).tolist()
    tnp.random.seed(3)
    assert tnp.random.rand(3).tolist() == first != tnp.random.rand(3).tolist()
    x, values = tnp.arange(20), list(range(20))
    generator.shuffle(x)
    generator.shuffle(values)
    assert sorted(x.tolist()) == sorted(values) == list(range(20))
    assert x.tolist() != values


@pytest.mark.parametrize("a", [-1.0, float("nan"), [2.0, -0.5]])
def test_gamma_needs_shapes_that_are_not_negative(a: Any) -> None:
    with pytest.raises(ArrayValueError) as error:
        xp.random.gamma(xp.random.key(0), (2,), a=a if isinstance(a, float) else xp.asarray(a))
    assert [*diagnostic(error.value).parameters] == ["a"]


@pytest.mark.parametrize(("p", "options"), [
    ([0.1, 0.4, 0.5], {}), ([0.5, -0.5], {}), ([0.0, 0.0], {}), ([1.0, 0.0], {"replace": False}),
])
def test_probabilities_are_checked(p: list[float], options: dict[str, bool]) -> None:
    with pytest.raises(ArrayValueError) as error:
        xp.random.choice(xp.random.key(0), 2, (2,), p=xp.asarray(p), **options)
    assert diagnostic(error.value).parameters["positive"] == sum(x > 0 for x in p)


def test_keys_for_different_purposes_differ() -> None:
    key = xp.random.key(5)
    derived = [*np.asarray(xp.random.split(key, 3)), *(
        np.asarray(xp.random.fold_in(key, k)) for k in range(3))]
    assert len({tuple(words) for words in derived}) == 6
