"""Chains of array operations in plain style, for any array API namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

RATE, VOLATILITY = 0.02, 0.3
ROOT, CUBE = 0.7978845608, 0.044715
TIME_STEP, GRAVITY = 0.01, 9.81
SOFTENING = 0.01
STEPS = 5
"""Steps of the Mandelbrot iteration."""


def _normal(xp: Any, z: Any) -> Any:
    return 0.5 * (1.0 + xp.tanh(ROOT * (z + CUBE * z * z * z)))


def black_scholes(xp: Any, spot: Any, strike: Any, years: Any) -> Any:
    """Compute prices of call options."""
    width = VOLATILITY * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (RATE + VOLATILITY**2 / 2) * years) / width
    return spot * _normal(xp, d1) - strike * xp.exp(-RATE * years) * _normal(xp, d1 - width)


def gelu(xp: Any, x: Any) -> Any:
    """Compute GELU by the hyperbolic tangent."""
    return 0.5 * x * (1.0 + xp.tanh(ROOT * (x + CUBE * x * x * x)))


def standardise(xp: Any, x: Any) -> Any:
    """Normalize columns to mean 0 and standard deviation 1."""
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def mandelbrot(_: Any, z: Any, c: Any) -> Any:
    """Compute some steps of the Mandelbrot iteration."""
    for _step in range(STEPS):
        z = z * z + c
    return z


def stencil(_: Any, x: Any) -> Any:
    """Compute the mean of five points."""
    neighbors = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return 0.2 * (x[1:-1, 1:-1] + neighbors)


def shallow_water(xp: Any, height: Any, u: Any, v: Any) -> Any:
    """Compute a step of the linear shallow-water equations on a torus."""

    def slope(x: Any, axis: int) -> Any:
        return 0.5 * (xp.roll(x, -1, axis=axis) - xp.roll(x, 1, axis=axis))

    return (
        height - TIME_STEP * height * (slope(u, 0) + slope(v, 1)),
        u - TIME_STEP * GRAVITY * slope(height, 0),
        v - TIME_STEP * GRAVITY * slope(height, 1),
    )


def bodies(xp: Any, places: Any) -> Any:
    """Compute the gravitational forces between bodies."""
    apart = places[:, None, :] - places[None, :, :]
    squares = xp.sum(apart * apart, axis=-1) + SOFTENING
    return xp.sum(apart * (squares**-1.5)[..., None], axis=1)


def k_means(xp: Any, points: Any, centres: Any) -> Any:
    """Compute the mean of the points nearest to each centre."""
    apart = points[:, None, :] - centres[None, :, :]
    nearest = xp.argmin(xp.sum(apart * apart, axis=-1), axis=1)
    belongs = xp.astype(nearest[:, None] == xp.arange(centres.shape[0])[None, :], points.dtype)
    return (belongs.T @ points) / xp.sum(belongs, axis=0)[:, None]


CHAINS: Mapping[str, Callable[..., Any]] = {
    "black-scholes": black_scholes, "gelu": gelu, "standardise": standardise,
    "mandelbrot": mandelbrot, "stencil": stencil, "shallow-water": shallow_water,
    "bodies": bodies, "k-means": k_means,
}
