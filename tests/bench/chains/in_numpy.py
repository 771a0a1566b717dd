"""The chains in NumPy, optimized by hand: in place, without new memory.

Each function takes the arrays once and returns a callable, so that temporary memory is allocated in
advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.bench.case import Array
from tests.bench.chains.written import (
    CUBE,
    GRAVITY,
    RATE,
    ROOT,
    SOFTENING,
    STEPS,
    TIME_STEP,
    VOLATILITY,
)

Call = Callable[[], Any]


def _normal(z: Array, out: Array) -> None:
    """Compute twice the normal distribution function of `z` in place."""
    np.multiply(z, z, out=out)
    out *= CUBE
    out += 1.0
    out *= z
    out *= ROOT
    np.tanh(out, out=out)
    out += 1.0


def black_scholes(spot: Array, strike: Array, years: Array) -> Call:
    """Allocate five temporary arrays."""
    width, d1, d2, first, second = (np.empty_like(spot) for _ in range(5))

    def call() -> Array:
        np.sqrt(years, out=width)
        np.multiply(width, VOLATILITY, out=width)
        np.divide(spot, strike, out=d1)
        np.log(d1, out=d1)
        np.multiply(years, RATE + VOLATILITY**2 / 2, out=d2)
        np.add(d1, d2, out=d1)
        np.divide(d1, width, out=d1)
        np.subtract(d1, width, out=d2)
        _normal(d1, first)
        _normal(d2, second)
        np.multiply(first, spot, out=first)
        np.multiply(years, -RATE, out=width)
        np.exp(width, out=width)
        np.multiply(second, width, out=second)
        np.multiply(second, strike, out=second)
        np.subtract(first, second, out=first)
        return np.multiply(first, 0.5, out=first)

    return call


def gelu(x: Array) -> Call:
    """Compute in the memory of the result."""
    out = np.empty_like(x)

    def call() -> Array:
        _normal(x, out)
        np.multiply(out, x, out=out)
        return np.multiply(out, 0.5, out=out)

    return call


def standardise(x: Array) -> Call:
    """Compute the deviation from the centred values."""
    out = np.empty_like(x)

    def call() -> Array:
        np.subtract(x, x.mean(axis=0), out=out)
        variance: Array = np.einsum("ij,ij->j", out, out) / x.shape[0]
        np.divide(out, np.sqrt(variance), out=out)
        return out

    return call


def mandelbrot(z: Array, c: Array) -> Call:
    """Compute in the memory of the result."""
    out = np.empty_like(z)

    def call() -> Array:
        np.multiply(z, z, out=out)
        np.add(out, c, out=out)
        for _ in range(STEPS - 1):
            np.multiply(out, out, out=out)
            np.add(out, c, out=out)
        return out

    return call


def stencil(x: Array) -> Call:
    """Add slices in the memory of the result."""
    out = np.empty((x.shape[0] - 2, x.shape[1] - 2), x.dtype)

    def call() -> Array:
        np.add(x[:-2, 1:-1], x[2:, 1:-1], out=out)
        np.add(out, x[1:-1, :-2], out=out)
        np.add(out, x[1:-1, 2:], out=out)
        np.add(out, x[1:-1, 1:-1], out=out)
        return np.multiply(out, 0.2, out=out)

    return call


def _slope(x: Array, axis: int, out: Array) -> Array:
    """Compute a difference by slices, as `roll` copies."""
    turned, to = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    np.subtract(turned[2:], turned[:-2], out=to[1:-1])
    np.subtract(turned[1], turned[-1], out=to[0])
    np.subtract(turned[0], turned[-2], out=to[-1])
    return np.multiply(out, 0.5, out=out)


def shallow_water(height: Array, u: Array, v: Array) -> Call:
    """Allocate three results and one temporary array."""
    first, second, third, between = (np.empty_like(u) for _ in range(4))

    def call() -> tuple[Array, ...]:
        np.add(_slope(u, 0, first), _slope(v, 1, between), out=first)
        np.multiply(first, height, out=first)
        np.multiply(first, -TIME_STEP, out=first)
        np.add(first, height, out=first)
        for axis, speed, out in ((0, u, second), (1, v, third)):
            np.multiply(_slope(height, axis, out), -TIME_STEP * GRAVITY, out=out)
            np.add(out, speed, out=out)
        return first, second, third

    return call


def bodies(places: Array) -> Call:
    """Compute coordinate by coordinate, with sums as matrix products."""
    count, axes = places.shape
    apart = np.empty((axes, count, count), places.dtype)
    squares, out = np.empty((count, count), places.dtype), np.empty_like(places)

    def call() -> Array:
        for k in range(axes):
            np.subtract(places[:, None, k], places[None, :, k], out=apart[k])
        np.einsum("kij,kij->ij", apart, apart, out=squares)
        np.add(squares, SOFTENING, out=squares)
        np.power(squares, -1.5, out=squares)
        return np.einsum("kij,ij->ik", apart, squares, out=out)

    return call


def k_means(points: Array, centres: Array) -> Call:
    """Compute distances by a product, and sums by counting."""
    count = centres.shape[0]
    distances = np.empty((points.shape[0], count), points.dtype)
    out = np.empty_like(centres)

    def call() -> Array:
        np.matmul(points, -2.0 * centres.T, out=distances)
        np.add(distances, np.einsum("ij,ij->i", centres, centres), out=distances)
        nearest = distances.argmin(axis=1)
        for axis in range(centres.shape[1]):
            out[:, axis] = np.bincount(nearest, points[:, axis], count)
        return np.divide(out, np.bincount(nearest, minlength=count)[:, None], out=out)

    return call


IN_PLACE: Mapping[str, Callable[..., Call]] = {
    "black-scholes": black_scholes, "gelu": gelu, "standardise": standardise,
    "mandelbrot": mandelbrot, "stencil": stencil, "shallow-water": shallow_water,
    "bodies": bodies, "k-means": k_means,
}
