"""Array API cases: fused chains, and the cost of a recorded operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np

from tests.bench.case import Array, Case, Goal
from tests.bench.chains.written import CHAINS

SIZES = {"1e2": 100, "1e4": 10_000, "4e6": 4_000_000}
LARGE = "4e6"
_CENTRES = (8, 4)


def _oracle(name: str, *arrays: Array) -> Array:
    found = CHAINS[name](np, *arrays)
    return np.stack(found) if isinstance(found, tuple) else np.asarray(found)


def _squares(count: int) -> tuple[int, int]:
    return isqrt(count), isqrt(count)


_SHAPES: Mapping[str, Callable[[int], tuple[tuple[int, ...], ...]]] = {
    "black-scholes": lambda n: ((n,),) * 3,
    "gelu": lambda n: ((n,),),
    "standardise": lambda n: ((n // 10, 10),),
    "mandelbrot": lambda n: ((n,),) * 2,
    "stencil": lambda n: (_squares(n),),
    "shallow-water": lambda n: (_squares(n),) * 3,
    "bodies": lambda n: ((isqrt(n), 3),),
    "k-means": lambda n: ((n // _CENTRES[1], _CENTRES[1]), _CENTRES),
}
"""Shapes of the inputs; for bodies, pairs are counted."""

_TYPES = {"gelu": "float32", "mandelbrot": "complex128"}


def _inputs(shapes: tuple[tuple[int, ...], ...], dtype: str) -> list[Array]:
    """Return numbers in [0.5, 1.5]; complex numbers are near 0, where the iteration is finite."""
    random = np.random.default_rng(20)
    if dtype != "complex128":
        return [(random.random(shape) + 0.5).astype(dtype) for shape in shapes]
    return [0.2 * (random.random(shape) + 1j * random.random(shape)) for shape in shapes]


def _chain(name: str, size: str, *, is_jitted: bool = False) -> Case:
    shapes = _SHAPES[name](SIZES[size])
    dtype = _TYPES.get(name, "float64")
    is_large = size == LARGE
    goal = Goal(of_best=0.7, of_peers=(("numpy", 2.0),)) if is_large else Goal()
    return Case(
        f"array/{name}-{size}" + ("-jit" if is_jitted else ""),
        f"{name}, {size}" + (", recorded once" if is_jitted else ""), "chain", shapes,
        partial(_oracle, name), terms=max(prod(shape) for shape in shapes), dtype=dtype,
        options={"chain": name, "is_jitted": is_jitted}, goal=goal,
        make_inputs=partial(_inputs, shapes, dtype),
    )


def _overhead(name: str, title: str, seconds: float, **options: Any) -> Case:
    shape = (100,)
    return Case(
        f"array/{name}", title, "one-operation", (shape, shape), np.add, options=options,
        goal=Goal(seconds=seconds), dtype="float64", make_inputs=partial(_inputs, (shape, shape), "float64"),
    )


def _first_use(chain: str, *, is_kept: bool) -> Case:
    shapes = _SHAPES[chain](1000)
    state = ", from the disk cache" if is_kept else ""
    return Case(
        f"array/{'kept' if is_kept else 'first'}-{chain}", f"first use of {chain}{state}",
        "first-use", shapes, partial(_oracle, chain),
        options={"chain": chain, "is_kept": is_kept}, goal=Goal(seconds=0.004 if is_kept else 0.040),
        is_fresh=True, make_inputs=partial(_inputs, shapes, "float64"),
    )


CASES = (
    *(_chain(name, size) for size in SIZES for name in CHAINS),
    *(_chain(name, "1e2", is_jitted=True) for name in CHAINS),
    _overhead("record", "one operation, recorded", 3e-6, is_forced=False),
    _overhead("kernel", "one operation on 100 elements, computed", 10e-6, is_forced=True),
    *(_first_use(name, is_kept=kept) for name in ("gelu", "black-scholes") for kept in (False, True)),
    Case("array/import", "import, with Python's start", "import", ((1,),), np.asarray,
         goal=Goal(seconds=0.3), is_fresh=True),
)
