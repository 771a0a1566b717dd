"""Derivatives of random programs of arrays agree with differences and with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.operations import elementwise_in, reductions_in
from tests.array.numpy_kernels import numpy_kernels as numpy_kernels

Numbers: TypeAlias = np.ndarray[Any, Any]
Draw: TypeAlias = np.random.Generator

pytestmark = pytest.mark.usefixtures("numpy_kernels")

ROWS = {
    name: row for name, row in elementwise_in("array").items()
    if row.derivative is not None and name not in ("floor_divide", "remainder", "lgamma", "erfinv")
}
"""Functions with derivatives: quotients jump, and the others grow without bound."""
REDUCTIONS = [name for name, row in reductions_in("array").items()
              if row.op == "reduce" and name not in ("prod", "std")]


def domain(name: str, x: Any) -> Any:
    """Map numbers of [-1, 1] into the domain of a function."""
    return {
        "acosh": lambda: x + 2.5, "acos": lambda: 0.8 * x, "asin": lambda: 0.8 * x,
        "atanh": lambda: 0.8 * x,
    }.get(name, lambda: x if name in ("sin", "cos", "tanh", "negative") else 0.4 * x + 1.5)()


def program(random: Draw) -> tuple[Callable[..., Any], list[Numbers]]:
    """Return a random function of arrays and its arguments."""
    seed = int(random.integers(1 << 60))
    shapes = [tuple(map(int, random.integers(1, 4, random.integers(0, 4)))) for _ in range(2)]
    steps = int(random.integers(2, 9))

    def run(*given: Any) -> Any:
        draw = np.random.default_rng(seed)
        pool = [*given]
        for _ in range(steps):
            x = pool[draw.integers(len(pool))]
            y = pool[draw.integers(len(pool))]
            made = OPERATIONS[draw.integers(len(OPERATIONS))](draw, x, y)
            if 0 < made.size <= 200:
                pool.append(xp.tanh(made))
        return sum((xp.sum(x * (k + 1.0)) for k, x in enumerate(pool)), xp.zeros(()))

    return run, [random.uniform(-1, 1, shape) for shape in shapes]


def elementwise(draw: Draw, x: Any, y: Any) -> Any:
    name = [*ROWS][draw.integers(len(ROWS))]
    function = getattr(xp, name)
    if ROWS[name].arity == 1:
        return function(domain(name, x))
    try:
        xp.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        y = xp.sum(y)
    return function(domain(name, x), domain(name, y))


def reduction(draw: Draw, x: Any, y: Any) -> Any:
    name = REDUCTIONS[draw.integers(len(REDUCTIONS))]
    axes = tuple([k for k in range(x.ndim) if draw.integers(2)])
    return getattr(xp, name)(x, axis=axes or None, keepdims=bool(draw.integers(2)))


def product(draw: Draw, x: Any, y: Any) -> Any:
    kind = draw.integers(3)
    if kind == 0 or not x.ndim or not y.ndim:
        return xp.tensordot(x, y, axes=0)
    if kind == 1:
        return xp.linalg.outer(xp.reshape(x, (-1,)), xp.reshape(y, (-1,)))
    return x[..., :1] @ y[..., :1, :] if y.ndim > 1 and x.ndim == 1 else x @ xp.sum(
        x * 1.5, axis=tuple(range(x.ndim - 1)))


def view(draw: Draw, x: Any, y: Any) -> Any:
    if not x.ndim:
        return x[None, None]
    axis = int(draw.integers(x.ndim))
    views: list[Callable[[], Any]] = [
        lambda: x[..., ::-1], lambda: xp.permute_dims(x, tuple(map(int, draw.permutation(x.ndim)))),
        lambda: xp.reshape(x, (-1,)), lambda: xp.expand_dims(x, axis=axis),
        lambda: x[0], lambda: xp.flip(x, axis=axis), lambda: xp.moveaxis(x, axis, 0),
        lambda: xp.broadcast_to(x, (2, *x.shape)),
    ]
    return views[draw.integers(len(views))]()


def along(draw: Draw, x: Any, y: Any) -> Any:
    if not x.ndim:
        return xp.where(x > 0.1, x, -x * x)
    axis = int(draw.integers(x.ndim))
    extent = x.shape[axis]
    if not extent:
        return x
    index = xp.asarray(draw.integers(-extent, extent, 3))
    other = xp.sum(y)
    functions: list[Callable[[], Any]] = [
        lambda: xp.cumulative_sum(x, axis=axis), lambda: xp.cumulative_prod(x, axis=axis),
        lambda: xp.prod(x, axis=axis), lambda: xp.sort(x, axis=axis), lambda: xp.diff(x, axis=axis),
        lambda: xp.concat([x, 2.0 * x], axis=axis), lambda: xp.stack([x, x * other], axis=axis),
        lambda: xp.take(x, index, axis=axis), lambda: xp.repeat(x, 2, axis=axis),
        lambda: xp.tile(x, (2,)), lambda: xp.roll(x, 1, axis=axis),
        lambda: xp.where(x > other, x, other), lambda: xp.clip(x, -0.5, 0.5),
        lambda: assigned(x, index, axis, other), lambda: xp.take_along_axis(x, xp.argsort(x, axis=axis), axis=axis),
    ]
    return functions[draw.integers(len(functions))]()


def assigned(x: Any, index: Any, axis: int, value: Any) -> Any:
    z = x * 1.0
    z[..., 0] = value
    z[(*[slice(None)] * axis, index)] = value * 0.5
    z += x
    return z


def of_matrices(draw: Draw, x: Any, y: Any) -> Any:
    square = xp.reshape(x, (-1,))[:2][:, None] * xp.reshape(y, (-1,))[:1] + xp.zeros((2, 2))
    square = 0.3 * square + xp.asarray([[2.0, 0.3], [-0.4, 1.5]])
    functions: list[Callable[[], Any]] = [
        lambda: xp.linalg.inv(square), lambda: xp.linalg.det(square), lambda: xp.tril(square),
        lambda: xp.linalg.solve(square, square.T[0]), lambda: xp.linalg.trace(square),
        lambda: xp.linalg.cholesky(square @ square.T), lambda: xp.linalg.svdvals(square),
        lambda: abs(xp.fft.fft(square)), lambda: xp.linalg.qr(square).R,
        lambda: xp.vmap(lambda row: row * xp.sum(y) + row @ row)(square),
    ]
    return functions[draw.integers(len(functions))]()


OPERATIONS = [elementwise, elementwise, elementwise, reduction, product, view, along, along, of_matrices]


def check(seed: int) -> bool:
    """Compare derivatives of a random program; return whether differences resolve them."""
    random = np.random.default_rng(seed)
    function, numbers = program(random)
    arrays = [xp.asarray(x) for x in numbers]
    direction = [random.uniform(-1, 1, x.shape) for x in numbers]
    tangents = [xp.asarray(v) for v in direction]
    positions = tuple(range(len(arrays)))
    gradient = xp.grad(function, positions)

    def at(step: float, of: Callable[..., Any]) -> Any:
        return of(*[xp.asarray(x + step * v) for x, v in zip(numbers, direction, strict=True)])

    def difference(of: Callable[..., Any], step: float) -> float:
        a, b, c, d = (float(at(k * step, of)) for k in (-2, -1, 1, 2))
        return (a - 8 * b + 8 * c - d) / (12 * step)

    def slope(*inputs: Any) -> Any:
        return xp.jvp(function, inputs, tangents)[1]

    reverse = sum(float(xp.sum(g * v)) for g, v in zip(gradient(*arrays), tangents, strict=True))
    forward = float(slope(*arrays))
    assert abs(forward - reverse) <= 1e-10 * (1 + abs(reverse)), seed
    over_forward = xp.grad(slope, positions)(*arrays)
    over_reverse = xp.jvp(gradient, tuple(arrays), tuple(tangents))[1]
    for a, b in zip(over_forward, over_reverse, strict=True):
        size = 1 + float(xp.max(abs(b)))
        assert float(xp.max(abs(a - b))) <= 1e-8 * size, seed
    second = sum(float(xp.sum(g * v)) for g, v in zip(over_forward, tangents, strict=True))
    # A kink close to the point shows as a difference of differences.
    is_resolved = True
    for of, exact in ((xp.jit(function), forward), (xp.jit(slope), second)):
        fine, coarse = difference(of, 2e-4), difference(of, 4e-4)
        if abs(fine - coarse) > 1e-6 * (1 + abs(fine)):
            is_resolved = False
            continue
        assert abs(fine - exact) <= 1e-5 * (1 + abs(exact)), (seed, fine, exact)
    return is_resolved


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int) -> None:
    assert sum(check(20 * seed + k) for k in range(3)) >= 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_more_random_programs(seed: int) -> None:
    assert sum(check(1000 + 20 * seed + k) for k in range(20)) >= 15
