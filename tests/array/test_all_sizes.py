"""Array kernels are compiled for all sizes, so that new sizes compile nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.graph import computable
from tecomp.array.kernels import KernelRecipe, call_kernel, fixed_view, select_kernel
from tecomp.array.statistics import counters
from tests.numerics import assert_close

Data = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: str = "float64") -> Data:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def log_softmax(xp: Any, x: Any) -> Any:
    z = x - xp.max(x, axis=-1, keepdims=True)
    return z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))


def layer_norm(xp: Any, x: Any) -> Any:
    z = x - xp.mean(x, axis=-1, keepdims=True)
    return z / xp.sqrt(xp.mean(z * z, axis=-1, keepdims=True) + 1e-5) * x[0] + x[1]


def both_extremes(xp: Any, x: Any) -> Any:
    low, high = xp.min(x, axis=0), xp.max(x, axis=0)
    return (x - low) / (high - low + 1)


def held_base(xp: Any, x: Any) -> Any:
    base = x * 2 + 1
    part = base[1:, ::3] * base[:-1, ::3]
    base -= 1
    return xp.sum(part) + base


def at_indices(xp: Any, x: Any) -> Any:
    rows = xp.asarray(np.arange(7) % x.shape[0])
    return x[rows, rows % x.shape[1]] * 2 + xp.take(x, rows[:7], axis=0)[:, 0]


def nearest(xp: Any, x: Any) -> Any:
    return xp.take_along_axis(x, xp.argmin(x * x, axis=1, keepdims=True), axis=1) * 2 - x


PATTERNS: dict[str, Callable[[Any, Any], Any]] = {
    "less the mean": lambda xp, x: x - xp.mean(x, axis=1, keepdims=True),
    "standardised": lambda xp, x: (x - xp.mean(x, axis=0)) / (xp.std(x, axis=0) + 1),
    "all standardised": lambda xp, x: (x - xp.mean(x)) / (xp.std(x) + 1),
    "variance": lambda xp, x: xp.var(x * 2, axis=1) + 1,
    "softmax": softmax,
    "log softmax": log_softmax,
    "layer norm": layer_norm,
    "rows of length one": lambda xp, x: x / xp.sqrt(xp.sum(x * x, axis=1, keepdims=True) + 1),
    "extremes": both_extremes,
    "smaller first": lambda xp, x: xp.exp(x[0] / 9) * x + xp.sqrt(xp.abs(x[:, :1])),
    "product": lambda xp, x: xp.maximum(x @ x.T + 1, x @ x[0][:, None]),
    "product of vectors": lambda xp, x: xp.vecdot(x, x + 1) - xp.sum(x),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((0,), (0,))),
    "outer": lambda xp, x: x[:, 0][:, None] * x[0] + x,
    "where it is greatest": lambda xp, x: xp.argmax(x, axis=1) + xp.argmin(x * 2 - x, axis=1),
    "where of all": lambda xp, x: xp.argmax(x),
    "running": lambda xp, x: xp.cumulative_sum(x, axis=1) - xp.cumulative_prod(x / 9, axis=0),
    "running behind 0": lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True) / 2,
    "joined": lambda xp, x: xp.concat([x, x * 2, x[:, ::-1]], axis=0) - 1,
    "stacked": lambda xp, x: xp.stack([x, x + 1], axis=1),
    "rolled": lambda xp, x: xp.roll(x, 3, axis=1) + xp.roll(x, -1, axis=0),
    "flipped": lambda xp, x: xp.flip(x * 2, axis=0) + x,
    "tiled": lambda xp, x: xp.tile(x, (2, 3)) + 1,
    "repeated": lambda xp, x: xp.repeat(x, 2, axis=1),
    "masked": lambda xp, x: xp.sum(xp.where(x > 0, x, 0), axis=1) * xp.count_nonzero(x > 0, axis=1),
    "clipped": lambda xp, x: xp.sum(xp.clip(x, -3, 4), axis=0),
    "neighbours": lambda xp, x: xp.diff(x, axis=1) * 2,
    "steps": lambda xp, x: (x + 1)[:, :-2:2] - (x + 1)[:, 1:-1:2],
    "steps of what is held": held_base,
    "triangles": lambda xp, x: xp.tril(x) - xp.triu(x + 1, k=2),
    "elements at indices": at_indices,
    "along an axis": lambda xp, x: nearest(xp, x),
    "turned": lambda xp, x: xp.reshape((x + 1).T, (-1,)) * 2,
    "trace": lambda xp, x: xp.linalg.trace(x @ x.T) + xp.sum(x),
}


def sizes(count: int) -> Iterator[tuple[int, int]]:
    draw = random.Random(0)
    found: set[tuple[int, int]] = set()
    while len(found) < count:
        found.add((draw.randint(3, 40), draw.randint(4, 70)))
    return iter(sorted(found, key=lambda s: draw.random()))


@pytest.mark.exhaustive(keep=2, most=9)
@pytest.mark.parametrize("name", PATTERNS)
def test_twenty_sizes(name: str) -> None:
    pattern, compiled = PATTERNS[name], []
    for m, n in sizes(20):
        x = numbers(m, n)
        ours = pattern(xp, xp.asarray(x))
        assert_close(np.asarray(ours), pattern(np, x), rtol=1e-12, atol=1e-9)
        compiled.append(counters.compiled)
    # Kernels that take long to compile are specialized on the first size until a second size
    # occurs.
    assert compiled[1] == compiled[-1]


Contraction: TypeAlias = Callable[[Any, Any, Any], Any]

CONTRACTIONS: dict[str, Contraction] = {
    "product": lambda xp, x, y: x @ y,
    "product with a transposed matrix": lambda xp, x, y: x @ xp.matrix_transpose(y),
    "transposed product": lambda xp, x, y: x.T @ y,
    "matrix times vector": lambda xp, x, y: x @ y[0],
    "vector times matrix": lambda xp, x, y: x[0] @ y,
    "product in batches": lambda xp, x, y: xp.stack([x, y]) @ xp.stack([y, x]),
    "place of the greatest in rows": lambda xp, x, y: xp.argmax(x, axis=1),
    "place of the least in columns": lambda xp, x, y: xp.argmin(y, axis=0),
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", CONTRACTIONS)
def test_one_kernel_is_compiled_for_all_sizes(name: str) -> None:
    """The first size has no specialized kernel, and the second one compiles nothing."""
    contraction, compiled = CONTRACTIONS[name], []
    for n in (29, 23, 31, 18, 17, 25, 27, 19):
        x, y = numbers(n, n) * 0.37, numbers(n, n) - 0.25
        ours = contraction(xp, xp.asarray(x), xp.asarray(y))
        assert_close(np.asarray(ours), contraction(np, x, y), rtol=1e-12, atol=1e-9)
        compiled.append(counters.compiled)
    # None of the sizes has enough products to specialize short loops.
    assert compiled[0] == compiled[-1]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("shape", [(2, 4), (3, 7), (9, 5)])
@pytest.mark.parametrize("dtype", ["float32"])
def test_types(name: str, shape: tuple[int, int], dtype: str) -> None:
    x = numbers(*shape, dtype=dtype)
    ours = np.asarray(PATTERNS[name](xp, xp.asarray(x)))
    wanted = np.asarray(PATTERNS[name](np, x))
    assert ours.shape == wanted.shape
    assert_close(ours, wanted, rtol=1e-5, atol=1e-4)


ODD = [(6, 1), (7, 1), (1, 8), (1, 9), (1, 1), (3, 17), (33, 3), (20_000, 2), (9_000, 2)]


@pytest.mark.exhaustive(keep=1, most=6)
@pytest.mark.parametrize("name", [
    "standardised", "all standardised", "variance", "softmax", "product", "product of vectors",
    "tensordot", "where it is greatest", "where of all", "running", "running behind 0", "joined",
    "stacked", "rolled", "flipped", "tiled", "repeated", "masked", "turned",
])
def test_odd_sizes(name: str) -> None:
    for shape in ODD:
        if name == "product" and shape[0] > 5000:
            continue
        x = numbers(*shape)
        ours, wanted = np.asarray(PATTERNS[name](xp, xp.asarray(x))), PATTERNS[name](np, x)
        assert_close(ours, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (0, 5), (7, 0)])
def test_results_of_empty_arrays(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    a = xp.asarray(x)
    for axis in (0, 1):
        total = xp.sum(a * 2, axis=axis, keepdims=True)
        np.testing.assert_array_equal(np.asarray(total), (x * 2).sum(axis=axis, keepdims=True))
        np.testing.assert_array_equal(np.asarray(a / (total + 1)), x)
        everywhere = np.asarray(xp.all(a > 0, axis=axis))
        np.testing.assert_array_equal(everywhere, np.all(x > 0, axis=axis))
        ours = xp.cumulative_sum(a, axis=axis, include_initial=True)
        wanted = np.cumulative_sum(x, axis=axis, include_initial=True)
        np.testing.assert_array_equal(np.asarray(ours), wanted)
    np.testing.assert_array_equal(np.asarray(xp.matrix_transpose(a) @ a + 1), x.T @ x + 1)
    np.testing.assert_array_equal(np.asarray(xp.concat([a, a + 1, xp.asarray(np.ones((2, shape[1])))])),
                                  np.concat([x, x + 1, np.ones((2, shape[1]))]))


def test_operations_on_empty_views() -> None:
    means, weights = xp.asarray(np.empty((0,))), xp.asarray(np.empty((0, 1)))
    total = xp.sum(means * xp.reshape(weights, (-1,)), axis=0)
    spread = xp.sum(xp.square(means - total) + means, axis=0) + xp.sum(weights, axis=1)
    assert np.asarray(spread).shape == (0,)
    assert float(xp.sum(xp.square(means - total) + means) - total) == 0.0


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(9_000, 3), (5_001, 7), (20_000, 16), (70, 900)])
def test_products_with_short_axes(shape: tuple[int, int]) -> None:
    x, small = numbers(*shape), numbers(shape[1], 5)
    for part in (x, x[1:]):  # slow compilations are generalized for the second size
        a = xp.asarray(part)
        np.testing.assert_array_equal(np.asarray(xp.matrix_transpose(a) @ a), part.T @ part)
        np.testing.assert_array_equal(np.asarray(a @ xp.asarray(small)), part @ small)


_COPIES: dict[str, Callable[[Any, Any], Any]] = {
    "reshape of a transpose": lambda xp, x: xp.reshape(x.T, (-1,)),
    "repeat along rows": lambda xp, x: xp.repeat(x, 3, axis=1),
    "repeat rows": lambda xp, x: xp.repeat(x, 3, axis=0),
    "tile": lambda xp, x: xp.tile(x, (2, 2)),
    "tile with an axis more": lambda xp, x: xp.tile(x, (2, 1, 3)),
    "reshape of all columns but one": lambda xp, x: xp.reshape(x[:, 1:], (-1,)),
}


@pytest.mark.parametrize("name", _COPIES)
def test_repeated_copies_are_one_pass(name: str) -> None:
    data = numbers(150, 120)
    x = xp.asarray(data)
    for _ in range(40):
        before = counters.called
        found = _COPIES[name](xp, x)
        xp.eval(found)
        assert counters.called == before + 1
    np.testing.assert_array_equal(np.asarray(found), _COPIES[name](np, data))


def test_sizes_that_are_copied_often_are_built_in() -> None:
    data = numbers(16000, 22)
    x, wanted = xp.asarray(data), np.repeat(data, 3, axis=0)
    before = counters.compiled
    for _ in range(80):
        found = xp.repeat(x, 3, axis=0)
        xp.eval(found)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert 1 <= counters.compiled - before <= 2  # a specialized kernel, and one for all sizes


@pytest.mark.parametrize("name", [name for name in _COPIES if "reshape" not in name])  # a view
def test_copies_have_memory_of_their_own(name: str) -> None:
    data = numbers(15, 12)
    x = xp.asarray(data, copy=True)
    one, other = _COPIES[name](xp, x), _COPIES[name](xp, x)
    turned = xp.flip(one)
    xp.eval(one, other, turned)
    wanted = _COPIES[name](np, data)
    one[:1] = -1.0
    x[:1] = -2.0
    for found, own in ((other, wanted), (turned, np.flip(wanted))):
        np.testing.assert_array_equal(np.asarray(found), own)
    wanted[:1] = -1.0
    np.testing.assert_array_equal(np.asarray(one), wanted)


_DOWN_COLUMNS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "transposed matrix times vector": lambda xp, x, v: x.T @ v,
    "with a prologue and an epilogue": lambda xp, x, v: x.T @ (v - 1) + x[0],
    "of reversed rows": lambda xp, x, v: xp.flip(x, axis=0).T @ v,
    "vector times matrix": lambda xp, x, v: v @ x,
    "in batches": lambda xp, x, v: xp.matrix_transpose(xp.stack([x, x + 1])) @ v,
    "along two axes": lambda xp, x, v: xp.tensordot(
        xp.stack([x, x * 2]), xp.stack([v, v]), axes=((0, 1), (0, 1))),
}


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", _DOWN_COLUMNS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums_of_products_down_columns(name: str, dtype: str) -> None:
    """Loops follow the memory order for every shape."""
    for shape in ((7, 5), (1, 5), (5, 1), (300, 20), (20, 300), (1001, 33)):
        x, v = numbers(*shape, dtype=dtype), numbers(shape[0], dtype=dtype)
        ours = _DOWN_COLUMNS[name](xp, xp.asarray(x), xp.asarray(v))
        wanted = _DOWN_COLUMNS[name](np, x, v)
        np.testing.assert_array_equal(np.asarray(ours), wanted)


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("seed", range(3))
def test_products_of_drawn_axis_orders(seed: int, dtype: str) -> None:
    """Factors are passed in the order of their strides, which can be negative or with gaps."""
    rng = random.Random(seed)
    for _ in range(6):
        batch = rng.choice([(), (2,), (3, 2)])
        m, k, n = (rng.choice([1, 2, 3, 5, 8, 17, 33, 79, 300]) for _ in range(3))
        factors = []
        for shape in ((*batch, m, k), (*batch, k, n)):
            order = rng.sample(range(len(shape)), len(shape))
            memory = numbers(*[shape[axis] * 2 for axis in order], dtype=dtype)
            steps = [rng.choice([slice(0, shape[axis]), slice(None, None, 2), slice(None, None, -2)])
                     for axis in order]
            factors.append(memory[tuple(steps)].transpose(np.argsort(order)))
        x, y = factors
        assert x.shape == (*batch, m, k)
        np.testing.assert_array_equal(np.asarray(xp.asarray(x) @ xp.asarray(y)), x @ y)


def test_transposed_factors_are_passed_in_memory_order() -> None:
    """The kernel of `x.T @ y` reads adjacent rows of the transpose at constant offsets."""
    x, y = xp.asarray(numbers(4000, 67)), xp.asarray(numbers(4000, 3))
    recipe = select_kernel(computable([(x.T @ y)._node]))
    assert isinstance(recipe, KernelRecipe)
    assert [(spec.axes, spec.strided) for spec in recipe.operands] == [((1, 0), False), ((1, 2), False)]


@pytest.mark.parametrize("transposed", [False, True])
def test_products_are_one_call_of_a_kernel_without_views(transposed: bool) -> None:
    a, b = numbers(5, 6), numbers(6, 4)
    x, y = xp.asarray(a), xp.asarray(b)
    work = computable([((x.T.T if transposed else x) @ y)._node])
    recipe = select_kernel(work)
    assert isinstance(recipe, KernelRecipe)
    (found,) = call_kernel(recipe, [a, b])

    assert recipe.is_plain
    np.testing.assert_array_equal(found, a @ b)


def test_results_that_are_views_are_also_read_by_kernels() -> None:
    a = numbers(5, 6)
    x = xp.asarray(a)
    flat = xp.reshape(xp.permute_dims(xp.exp(x) * 0 + x, (1, 0)), (3, 10))
    total = xp.sum(xp.cumulative_sum(flat, axis=1), axis=0)
    xp.eval(flat, total)

    wanted = a.T.reshape(3, 10)
    np.testing.assert_array_equal(np.asarray(flat), wanted)
    np.testing.assert_array_equal(np.asarray(total), wanted.cumsum(1).sum(0))


_VIEWS: list[Callable[[Data], Data]] = [
    lambda x: x.transpose(np.roll(np.arange(x.ndim), 1)), lambda x: x[None], lambda x: x[..., None],
    lambda x: x[::-1], lambda x: x[..., 1:], lambda x: x[..., ::2],
    lambda x: np.broadcast_to(x, (3, *x.shape)), lambda x: x[0] if x.ndim > 1 else x,
    lambda x: x.reshape(-1, copy=False) if x.flags.c_contiguous else x,
]


@pytest.mark.parametrize("seed", range(5))
def test_fixed_views_equal_the_views_that_they_replace(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        steps = [rng.choice(_VIEWS) for _ in range(rng.randint(0, 5))]
        order = rng.sample(range(3), 3)
        first = numbers(*rng.choice([(3, 4, 5), (1, 4, 1), (2, 2, 2)]))
        other = first + 1

        def make(x: Data, steps: list[Callable[[Data], Data]] = steps) -> Data:
            for step in steps:
                x = step(x)
            return x

        view = fixed_view(first.transpose(order), make)
        data = other.transpose(order)
        assert view.matches(data)
        actual, wanted = data if view.apply is None else view.apply(data), make(data)
        assert (actual.ctypes.data, actual.shape) == (wanted.ctypes.data, wanted.shape)
        np.testing.assert_array_equal(actual, wanted)
