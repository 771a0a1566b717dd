"""Derivatives of array functions agree with finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.operations import elementwise_in, reductions_in
from tests.array.numpy_kernels import numpy_kernels as numpy_kernels

pytestmark = pytest.mark.usefixtures("numpy_kernels")

Numbers: TypeAlias = np.ndarray[Any, Any]


def product(cotangents: Any, values: Any) -> float:
    """Return the real part of the sum of products: JAX's pairing of cotangents and values."""
    pairs = zip(cotangents, values, strict=True)
    return float(sum(np.sum(np.asarray(a) * np.asarray(b)).real for a, b in pairs))


def draw(random: np.random.Generator, like: Any) -> Numbers:
    like = np.asarray(like)
    found: Numbers = random.uniform(-1, 1, like.shape)
    if like.dtype.kind == "c":
        found = found + 1j * random.uniform(-1, 1, like.shape)
    return found


def as_list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, tuple | list) else [value]


def moved(arrays: list[Numbers], along: list[Numbers], step: float) -> list[xp.Array]:
    return [xp.asarray(x + step * v) for x, v in zip(arrays, along, strict=True)]


def central(function: Callable[..., Any], arrays: list[Numbers], along: list[Numbers]) -> list[Numbers]:
    """Return the derivatives of results along a direction, by central differences of order 4."""
    step = 1e-3
    values = [
        [np.asarray(y) for y in as_list(function(*moved(arrays, along, k * step)))]
        for k in (-2, -1, 1, 2)
    ]
    return [(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in zip(*values, strict=True)]


def check(
    function: Callable[..., Any], *arrays: Any, second: bool = True, seed: int = 0,
    tolerance: float = 1e-6,
) -> None:
    """Compare `vjp`, `jvp` and second derivatives of a function with differences."""
    random = np.random.default_rng(seed)
    numbers = [np.asarray(x) for x in arrays]
    inputs = [xp.asarray(x) for x in numbers]
    along = [draw(random, x) for x in numbers]
    value, pull = xp.vjp(function, *inputs)
    weights = [draw(random, y) for y in as_list(value)]
    expected = central(function, numbers, along)
    cotangent = [xp.asarray(w) for w in weights]
    as_result = tuple(cotangent) if isinstance(value, tuple | list) else cotangent[0]
    if hasattr(value, "_fields"):
        as_result = type(value)(*cotangent)
    gradients = pull(as_result)
    size = 1 + sum(np.sum(np.abs(e)) for e in expected)
    assert abs(product(gradients, along) - product(weights, expected)) <= tolerance * size
    _, tangents = xp.jvp(function, tuple(inputs), tuple(xp.asarray(v) for v in along))
    for actual, y in zip(as_list(tangents), expected, strict=True):
        assert np.max(np.abs(np.asarray(actual) - y), initial=0) <= tolerance * size
    if second:
        def gradient(*inner: Any) -> Any:
            return xp.vjp(function, *inner)[1](as_result)

        check(gradient, *arrays, second=False, seed=seed + 1, tolerance=50 * tolerance)


def uniform(*shape: int, low: float = 0.2, high: float = 0.9, seed: int = 0) -> Numbers:
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def complex_numbers(*shape: int) -> Numbers:
    return uniform(*shape) * np.exp(1j * uniform(*shape, low=0.3, high=1.2, seed=1))


DIFFERENTIABLE = {name: row for name, row in elementwise_in("array").items() if row.derivative}


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_elementwise(name: str) -> None:
    row = DIFFERENTIABLE[name]
    values = [uniform(5, seed=k) + (1.2 if name == "acosh" else 0.0) for k in range(row.arity)]
    check(getattr(xp, name), *values)
    if "complex128" in row.takes.dtypes:
        check(getattr(xp, name), *[complex_numbers(5) * (1 + 0.3 * k) for k in range(row.arity)])


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", [n for n, r in reductions_in("array").items() if r.gives in ("same", "part", "wide")])
def test_reductions(name: str) -> None:
    for options in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}):
        check(lambda x, o=options: getattr(xp, name)(x, **o), uniform(2, 3, 4))
    if "complex128" in reductions_in("array")[name].takes.dtypes:
        check(lambda x: getattr(xp, name)(x, axis=0), complex_numbers(3, 2))


INDICES = xp.asarray([[2, 0, 0], [1, -1, 2]])
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def case(function: Callable[..., Any], *shapes: Any) -> None:
    CASES[f"{len(CASES)}"] = function, shapes


for shapes in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
               ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (4, 3, 2)), ((4, 2, 3), (3,))]:
    case(lambda x, y: x @ y, *shapes)
case(lambda x, y: xp.vecdot(x, y), (2, 3), (3,))
case(lambda x, y: xp.vecdot(x, y, axis=-2), (3, 2), (3, 1))
case(lambda x, y: xp.tensordot(x, y, axes=2), (2, 3, 4), (3, 4, 5))
case(lambda x, y: xp.tensordot(x, y, axes=((0,), (1,))), (2, 3), (4, 2))
case(xp.linalg.outer, (2,), (3,))
case(xp.linalg.cross, (2, 3), (3,))
case(lambda x, y: xp.linalg.cross(x, y, axis=0), (3, 2), (3, 1))
case(lambda x: xp.linalg.trace(x, offset=1), (2, 3, 4))
for k in (-3, -1, 0, 2, 4):
    case(lambda x, k=k: xp.linalg.diagonal(x, offset=k), (2, 3, 4))
case(lambda x: xp.tril(x, k=1), (3, 4))
case(lambda x: xp.triu(x), (2, 3, 4))
case(lambda x: x[1:, ::-2], (3, 5))
case(lambda x: x[1, None, ..., 2], (3, 2, 5))
case(lambda x: x[INDICES], (3, 2))
case(lambda x: x[:, INDICES], (2, 3, 2))
case(lambda x: x[INDICES, INDICES], (3, 3, 2))
case(lambda x: x[INDICES, :, INDICES], (3, 2, 3))
case(lambda x: xp.take(x, INDICES[0], axis=1), (2, 3))
case(lambda x: xp.take_along_axis(x, INDICES, axis=1), (2, 3))
case(lambda x: xp.take_along_axis(x, INDICES, axis=-1), (1, 3))
case(lambda x: xp.sort(x, axis=0), (4, 2))
case(lambda x: xp.sort(x, descending=True), (2, 4))
case(lambda x: xp.cumulative_sum(x, axis=1), (2, 4))
case(lambda x: xp.cumulative_sum(x, axis=0, include_initial=True), (4, 2))
case(lambda x: xp.cumulative_prod(x, axis=1), (2, 5))
case(lambda x: xp.cumulative_prod(x, axis=0, include_initial=True), (3, 2))
case(lambda x: xp.diff(x, n=2), (2, 5))
case(lambda x: xp.repeat(x, 3, axis=1), (2, 2))
case(lambda x: xp.tile(x, (2, 1, 3)), (2, 2))
case(lambda x: xp.roll(x, (1, -2), axis=(0, 1)), (3, 4))
case(lambda x: xp.flip(x, axis=1), (2, 3))
case(lambda x, y: xp.concat([x, y], axis=1), (2, 3), (2, 1))
case(lambda x, y: xp.stack([x, y], axis=-1), (2, 3), (2, 3))
case(lambda x: xp.permute_dims(x, (2, 0, 1)), (2, 3, 4))
case(lambda x: xp.moveaxis(x, 0, 2), (2, 3, 4))
case(xp.matrix_transpose, (2, 3, 4))
case(lambda x: xp.reshape(x, (6, 2)), (3, 4))
case(lambda x: xp.squeeze(xp.expand_dims(x, axis=1), axis=1), (3, 4))
case(lambda x: xp.broadcast_to(x, (2, 3, 4)), (3, 1))
case(lambda x, y: xp.where(x > 0.5, x, y), (3, 1), (4,))
case(lambda x: xp.clip(x, 0.4, 0.7), (9,))
case(lambda x: xp.meshgrid(x, x)[0], (3,))
case(lambda x: x ** 0.5 + x ** 1.5 + x ** -0.5 + x ** -1.5 + x ** 3 + x ** -1, (4,))
case(lambda x: xp.sum(xp.prod(x, axis=0) + xp.sum(x, axis=0), axis=0), (0, 2))
case(lambda x: xp.linalg.matrix_norm(x, ord=1) + xp.linalg.matrix_norm(x) + xp.linalg.matrix_norm(x, ord="nuc"), (3, 2))
case(lambda x: xp.linalg.vector_norm(x, ord=3) + xp.linalg.vector_norm(x, ord=float("inf")), (4,))
case(lambda x: xp.linalg.matrix_power(x, 3), (3, 3))


def assigned(x: Any, y: Any) -> Any:
    z = x * 2
    z[1] = y
    z[0, ::2] += y[:2]
    z[INDICES] = z[INDICES] * 3
    z[z > 1.2] = 1.2
    return z * z


case(assigned, (3, 3), (3,))


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    function, shapes = CASES[name]
    check(function, *[uniform(*s, seed=k) for k, s in enumerate(shapes)])


def well(*shape: int) -> Numbers:
    """Return well-conditioned matrices."""
    return uniform(*shape) + 2 * np.eye(shape[-2], shape[-1])


def symmetric(x: Any) -> Any:
    return x + xp.conj(x.mT)


LINALG = {
    "inv": (xp.linalg.inv, (3, 3)), "det": (xp.linalg.det, (2, 3, 3)),
    "slogdet": (lambda x: xp.linalg.slogdet(x).logabsdet, (3, 3)),
    "cholesky": (lambda x: xp.linalg.cholesky(symmetric(x)), (2, 3, 3)),
    "cholesky lower": (xp.linalg.cholesky, (3, 3)),
    "upper": (lambda x: xp.linalg.cholesky(x, upper=True), (3, 3)),
    "eigh": (lambda x: (lambda r: (r[0], r[1] * r[1]))(xp.linalg.eigh(x)), (2, 3, 3)),
    "eigvalsh": (xp.linalg.eigvalsh, (3, 3)),
    "eigvals": (lambda x: xp.linalg.eigvals(symmetric(x) + xp.triu(x)), (3, 3)),
    "eig": (lambda x: (lambda r: r[1] * xp.conj(r[1]))(xp.linalg.eig(symmetric(x) + 0.1 * xp.triu(x))), (3, 3)),
    "qr": (xp.linalg.qr, (4, 3)), "wide qr": (xp.linalg.qr, (2, 4)),
    "complete": (lambda x: xp.linalg.qr(x, mode="complete"), (3, 3)),
    "svd": (lambda x: xp.linalg.svd(x, full_matrices=False), (4, 3)),
    "wide svd": (lambda x: xp.linalg.svd(x, full_matrices=False), (2, 2, 4)),
    "square svd": (lambda x: xp.linalg.svd(x), (3, 3)),
    "svdvals": (xp.linalg.svdvals, (2, 3)), "pinv": (xp.linalg.pinv, (4, 3)), "wide pinv": (xp.linalg.pinv, (2, 3)),
}


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("name", LINALG)
def test_linalg(name: str) -> None:
    function, shape = LINALG[name]
    check(function, well(*shape))


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", [n for n in LINALG if n not in ("svd", "wide svd", "square svd", "eigh", "qr")])
def test_complex_linalg(name: str) -> None:
    function, shape = LINALG[name]
    x = well(*shape) + 0.2j * uniform(*shape, seed=3)
    check(function, x)


@pytest.mark.exhaustive
def test_complex_vectors() -> None:
    def f(x: Any) -> Any:
        u, s, v = xp.linalg.svd(x, full_matrices=False)
        return u * s[..., None, :] @ v + u @ v, u * xp.conj(u)
    x = well(3, 3) + 0.2j * uniform(3, 3, seed=3)
    check(f, x)
    check(f, x[:2])
    def g(x: Any) -> Any:
        w, v = xp.linalg.eigh(x)
        return w, v * xp.conj(v)
    check(g, x)
    check(xp.linalg.qr, x)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier(norm: Any) -> None:
    x, z = uniform(3, 4), complex_numbers(3, 4)
    for n in (None, 3, 6):
        for name in ("fft", "ifft", "hfft", "irfft"):
            check(lambda v, name=name, n=n: getattr(xp.fft, name)(v, n=n, norm=norm), z, second=False)
        for name in ("rfft", "ihfft", "fft"):
            check(lambda v, name=name, n=n: getattr(xp.fft, name)(v, n=n, norm=norm, axis=0), x, second=False)
    for sizes in (None, (2, 5), (4, 6)):
        how = {"s": sizes, "axes": None if sizes is None else (0, 1), "norm": norm}
        for name in ("fftn", "ifftn", "irfftn"):
            check(partial(getattr(xp.fft, name), **how), z, second=False)
        check(partial(xp.fft.rfftn, **how), x, second=False)


MAPPED: dict[str, tuple[Callable[..., Any], list[Numbers]]] = {
    name: (function, [uniform(*s, seed=k) for k, s in enumerate(shapes)])
    for name, (function, shapes) in CASES.items()
} | {name: (LINALG[name][0], [well(3, 3)]) for name in ("inv", "qr", "svdvals")} | {
    "solve": (xp.linalg.solve, [well(3, 3), uniform(3)]),
    "rfft": (lambda x: xp.fft.rfft(x, axis=0), [uniform(3, 2)]),
    "orders": (lambda x: xp.argmax(x) + xp.argmin(x, axis=1) + xp.argsort(x, axis=0), [uniform(3, 3)]),
    "tests": (lambda x: (xp.argmax(x, keepdims=True), xp.any(x > 0.5, axis=0), xp.count_nonzero(x > 0.5)),
              [uniform(3, 3)]),
    "slices": (lambda x, y: xp.searchsorted(xp.sort(x), y), [uniform(4), uniform(3)]),
    "indices": (lambda x, i: (x[xp.astype(i, xp.int64)], x[:, xp.astype(i, xp.int64)]),
                [uniform(4, 3, 5), uniform(2, 3, low=0, high=3)]),
}


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("name", MAPPED)
def test_batches(name: str) -> None:
    check_vmap(*MAPPED[name])


def check_vmap(function: Callable[..., Any], arrays: list[Numbers]) -> None:
    """Compare batches of calls, and of gradients, with one call after another."""
    stacks = [np.stack([x, 0.5 * x + 0.3, x * x + 0.2 * (x < 0.5)]) for x in arrays]
    for mapped in range(1, 1 << len(arrays)):
        axes = [-1 if mapped >> k & 1 else None for k in range(len(arrays))]
        given = [
            np.moveaxis(stack, 0, -1) if axis is not None else x
            for stack, x, axis in zip(stacks, arrays, axes, strict=True)
        ]

        def gradients(*xs: Any) -> Any:
            value, pull = xp.vjp(function, *xs)
            return value, pull(value)

        is_float = all(y.dtype.kind in "fc" for y in as_list(function(*map(xp.asarray, arrays))))
        for transformed in (function, *([gradients] if is_float else [])):
            found = xp.vmap(transformed, in_axes=tuple(axes))(*map(xp.asarray, given))
            for k in range(3):
                rows = [stack[k] if axis is not None else x
                        for stack, x, axis in zip(stacks, arrays, axes, strict=True)]
                expected = transformed(*map(xp.asarray, rows))
                for a, b in zip(flat(found), flat(expected), strict=True):
                    np.testing.assert_allclose(np.asarray(a[k]), np.asarray(b), rtol=1e-9, atol=1e-12)


def flat(tree: Any) -> list[Any]:
    return [x for item in tree for x in flat(item)] if isinstance(tree, tuple | list) else [tree]


def test_solve() -> None:
    check(xp.linalg.solve, well(3, 3), uniform(3))
    check(xp.linalg.solve, well(2, 3, 3), uniform(3, 2))
    check(xp.linalg.solve, well(3, 3), uniform(2, 3, 2))
    check(xp.linalg.solve, well(3, 3) + 0.3j * uniform(3, 3), complex_numbers(3, 2))
