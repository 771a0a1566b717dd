"""Typical NumPy programs, timed with tecomp arrays and NumPy.

Run `python -m tests.bench.typical [PART OF A NAME ...]`. Each program is a function of a namespace,
called with `tecomp.array` and with `numpy` in turns, on one core if the process has one: `taskset
-c 3`. The table shows the minimum time of each.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tecomp.array as xp
from tests.bench.record import duration
from tests.numerics import assert_close

MANY, SIDE = 4_000_000, 2000
WARM = 20
"""Warm-up calls: frequent sizes are specialized."""
SECONDS = 0.3

Program = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """Program of the table.

    Attributes:
        name: Name in the table.
        program: Function of a namespace and arrays.
        shapes: Shapes of the arrays, which are normally distributed.
        dtype: Dtype of the arrays.
    """

    name: str
    program: Program
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float64"

    def arrays(self, most: int = MANY) -> list[np.ndarray[Any, Any]]:
        """Return reproducible arrays, with sizes clipped to `most` along each axis."""
        random = np.random.default_rng(0)
        results = [random.standard_normal([min(n, most) for n in shape]) for shape in self.shapes]
        if self.dtype.startswith("complex"):
            results = [x + 1j * random.standard_normal(x.shape) for x in results]
        return [x.astype(self.dtype) for x in results]


def softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def moments(np: Any, x: Any) -> Any:
    d = x - np.mean(x)
    s = np.sqrt(np.mean(d * d))
    return np.mean(d**3) / s**3 + np.mean(d**4) / s**4


def sobel(np: Any, x: Any) -> Any:
    across = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    down = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    return np.sqrt(across * across + down * down)


def logistic(np: Any, x: Any, y: Any, w: Any) -> Any:
    p = 1 / (1 + np.exp(-(x @ w)))
    return w - 0.1 * (x.T @ (p - y)) / x.shape[0]


def covariance(np: Any, x: Any) -> Any:
    d = x - np.mean(x, axis=0)
    return d.T @ d / (x.shape[0] - 1)


def running_mean(np: Any, x: Any) -> Any:
    c = np.cumulative_sum(x)
    return (c[16:] - c[:-16]) / 16


def distances(np: Any, a: Any, b: Any) -> Any:
    d = a[:, None, :] - b[None, :, :]
    return np.sqrt(np.sum(d * d, axis=-1))


def pull(np: Any, x: Any, y: Any, m: Any) -> Any:
    across, down = x[None, :] - x[:, None], y[None, :] - y[:, None]
    return np.sum(across * (across**2 + down**2 + 0.01) ** -1.5 * m[None, :], axis=1)


def pendulum(np: Any, x: Any, p: Any) -> Any:
    h = 0.01
    a, b = p, -np.sin(x)
    c, d = p + h / 2 * b, -np.sin(x + h / 2 * a)
    e, f = p + h / 2 * d, -np.sin(x + h / 2 * c)
    g, k = p + h * f, -np.sin(x + h * e)
    return x + h / 6 * (a + 2 * c + 2 * e + g) + p + h / 6 * (b + 2 * d + 2 * f + k)


LONG, SQUARE, TALL = (MANY,), (SIDE, SIDE), (40_000, 100)
CASES = (
    Case("softmax of rows", softmax, (SQUARE,), "float32"),
    Case("softmax of rows of 10", softmax, ((400_000, 10),)),
    Case("skewness and kurtosis", moments, (LONG,)),
    Case("edges of an image", sobel, (SQUARE,)),
    Case("a step of logistic regression", logistic, (TALL, (40_000,), (100,))),
    Case("covariance", covariance, (TALL,)),
    Case("running mean", running_mean, (LONG,)),
    Case("distances of points", distances, ((1000, 3), (1000, 3))),
    Case("pull of bodies", pull, ((SIDE,), (SIDE,), (SIDE,))),
    Case("a step of Runge and Kutta", pendulum, (LONG, LONG)),
    Case("rows of norm 1",
         lambda np, x: x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)), (SQUARE,)),
    Case("columns of norm 1",
         lambda np, x: x / np.sqrt(np.sum(x * x, axis=0, keepdims=True)), (SQUARE,)),
    Case("powers of arrays", lambda np, x, y: abs(x) ** y, (LONG, LONG)),
    Case("powers of arrays, float32", lambda np, x, y: abs(x) ** y, (LONG, LONG), "float32"),
    Case("x.T @ v", lambda np, x, v: x.T @ v, (TALL, (40_000,))),
    Case("x.T @ x", lambda np, x: x.T @ x, (TALL,)),
    Case("x.T @ x, 10 columns", lambda np, x: x.T @ x, ((400_000, 10),)),
    Case("A @ v", lambda np, a, v: a @ v, (SQUARE, (SIDE,))),
    Case("A @ v, float32", lambda np, a, v: a @ v, (SQUARE, (SIDE,)), "float32"),
    Case("sum", lambda np, x: np.sum(x), (LONG,)),
    Case("sum over axis 0 of x.T", lambda np, x: np.sum(x.T, axis=0), (SQUARE,)),
    Case("sum over axis 1 of x.T", lambda np, x: np.sum(x.T, axis=1), (SQUARE,)),
    Case("sum over a last axis of 3", lambda np, x: np.sum(x, axis=1), ((1_300_000, 3),)),
    Case("permute_dims(x, (2, 0, 1)) + 1",
         lambda np, x: np.permute_dims(x, (2, 0, 1)) + 1, ((200, 200, 100),)),
    Case("x + y.T", lambda np, x, y: x + y.T, (SQUARE, SQUARE)),
    Case("count_nonzero of bool", lambda np, x: np.count_nonzero(x), (LONG,), "bool"),
    Case("cumulative_sum", lambda np, x: np.cumulative_sum(x), (LONG,)),
    Case("cumulative_sum, int32", lambda np, x: np.cumulative_sum(x), (LONG,), "int32"),
    Case("cumulative_sum, complex128",
         lambda np, z: np.cumulative_sum(z), ((MANY // 2,),), "complex128"),
)


def measured(case: Case) -> tuple[float, float]:
    """Return the minimum seconds of a call by tecomp and by NumPy, called in turns."""
    inputs = case.arrays()
    actual = [xp.asarray(x, copy=True) for x in inputs]
    ways: Sequence[Callable[[], Any]] = (
        lambda: xp.eval(case.program(xp, *actual)), lambda: case.program(np, *inputs))
    assert_close(
        np.asarray(case.program(xp, *actual)), case.program(np, *inputs), rtol=1e-3, atol=1e-3)
    for _ in range(WARM):
        ways[0]()
    best = [float("inf"), float("inf")]
    for _ in range(3):
        for k, way in enumerate(ways):
            best[k] = min(best[k], *_times(way))
    return best[0], best[1]


def _times(way: Callable[[], Any]) -> Iterator[float]:
    end = time.perf_counter() + SECONDS / 3
    while True:
        start = time.perf_counter()
        way()
        now = time.perf_counter()
        yield now - start
        if now > end:
            return


def main(words: Sequence[str]) -> None:
    """Print the table."""
    print("| program | tecomp | numpy |\n| --- | ---: | ---: |")
    for case in CASES:
        if not words or any(word in case.name for word in words):
            seconds, numpy = measured(case)
            print(f"| {case.name} | {duration(seconds)} | {numpy / seconds:.2f}x |", flush=True)
            gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
