"""Numexpr: expressions in cache-sized blocks, with NumPy for unsupported operations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numexpr
import numpy as np

from tests.bench.case import Array, Case, NoFormError
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
from tests.bench.worker import Bind, Call, serve


def _compute(text: str, out: Array, **arrays: Any) -> Array:
    numexpr.evaluate(text, arrays, {}, out=out)
    return out


def _normal(z: str) -> str:
    return f"(1.0 + tanh({ROOT} * ({z} + {CUBE} * {z} * {z} * {z})))"


def black_scholes(spot: Array, strike: Array, years: Array) -> Call:
    """Compute a shared subexpression first, and the price in a second expression."""
    d1, d2, out = (np.empty_like(spot) for _ in range(3))
    first = f"(log(s / k) + {RATE + VOLATILITY**2 / 2} * t) / ({VOLATILITY} * sqrt(t))"
    price = f"0.5 * (s * {_normal('d1')} - k * exp({-RATE} * t) * {_normal('d2')})"

    def call() -> Array:
        _compute(first, d1, s=spot, k=strike, t=years)
        _compute(f"d1 - {VOLATILITY} * sqrt(t)", d2, d1=d1, t=years)
        return _compute(price, out, s=spot, k=strike, t=years, d1=d1, d2=d2)

    return call


def gelu(x: Array) -> Call:
    """Compute one float32 expression."""
    out = np.empty_like(x)
    numbers = {
        name: np.float32(value)
        for name, value in (("half", 0.5), ("one", 1.0), ("root", ROOT), ("cube", CUBE))
    }
    text = "half * x * (one + tanh(root * (x + cube * x * x * x)))"
    return lambda: _compute(text, out, x=x, **numbers)


def standardise(x: Array) -> Call:
    """Compute sums by NumPy."""
    out = np.empty_like(x)

    def call() -> Array:
        mean = x.mean(axis=0)
        _compute("x - m", out, x=x, m=mean)
        variance = np.einsum("ij,ij->j", out, out) / x.shape[0]
        return _compute("x / d", out, x=out, d=np.sqrt(variance))

    return call


def mandelbrot(z: Array, c: Array) -> Call:
    """Compute step by step: one expression would recompute each step for all of its readers."""
    out = np.empty_like(z)

    def call() -> Array:
        _compute("z * z + c", out, z=z, c=c)
        for _ in range(STEPS - 1):
            _compute("z * z + c", out, z=out, c=c)
        return out

    return call


def stencil(x: Array) -> Call:
    """Compute one expression of slices."""
    out = np.empty((x.shape[0] - 2, x.shape[1] - 2), x.dtype)
    neighbors = {"a": x[:-2, 1:-1], "b": x[2:, 1:-1], "c": x[1:-1, :-2], "d": x[1:-1, 2:]}
    return lambda: _compute("0.2 * (x + (a + b + c + d))", out, x=x[1:-1, 1:-1], **neighbors)


def shallow_water(height: Array, u: Array, v: Array) -> Call:
    """Compute three expressions of rolled copies."""
    first, second, third = (np.empty_like(u) for _ in range(3))
    pull = 0.5 * TIME_STEP * GRAVITY

    def call() -> tuple[Array, ...]:
        ends = {
            "a": np.roll(u, -1, 0), "b": np.roll(u, 1, 0),
            "c": np.roll(v, -1, 1), "d": np.roll(v, 1, 1),
        }
        _compute(f"h - {0.5 * TIME_STEP} * h * (a - b + c - d)", first, h=height, **ends)
        for axis, speed, out in ((0, u, second), (1, v, third)):
            both = {"a": np.roll(height, -1, axis), "b": np.roll(height, 1, axis)}
            _compute(f"x - {pull} * (a - b)", out, x=speed, **both)
        return first, second, third

    return call


def bodies(places: Array) -> Call:
    """Compute strengths in one expression, and sums as products by NumPy."""
    x, y, z = (np.ascontiguousarray(places[:, k]) for k in range(3))
    strength = np.empty((len(x), len(x)), places.dtype)
    text = f"((a - d)**2 + (b - e)**2 + (c - f)**2 + {SOFTENING})**-1.5"

    def call() -> Array:
        columns = {"a": x[:, None], "b": y[:, None], "c": z[:, None]}
        _compute(text, strength, **columns, d=x, e=y, f=z)
        weights = strength.sum(axis=1)[:, None]
        forces: Array = places * weights - strength @ places
        return forces

    return call


FUNCTIONS: Mapping[str, Callable[..., Call]] = {
    "black-scholes": black_scholes, "gelu": gelu, "standardise": standardise,
    "mandelbrot": mandelbrot, "stencil": stencil, "shallow-water": shallow_water, "bodies": bodies,
}


def chain(case: Case) -> Bind:
    """Return expressions with preallocated results."""
    name: Any = case.options["chain"]
    if name not in FUNCTIONS:
        raise NoFormError("it has no reductions of parts")
    return FUNCTIONS[name]


if __name__ == "__main__":
    numexpr.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    serve({"chain": chain}, "numexpr")
