"""Math functions: what they should give, how far compiled ones may be from it, arguments to try."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tecomp.codegen import Kernel
from tecomp.ir.parser import parse

Array: TypeAlias = NDArray[Any]

_NUMPY = "exp exp2 expm1 log log2 log10 log1p tanh sin cos tan sinh cosh hypot"
_INVERSE = "sin cos tan sinh cosh tanh"
# The function itself, in float64.
EXACT: MappingProxyType[str, Callable[..., Array]] = MappingProxyType({
    **{name: getattr(np, name) for name in _NUMPY.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _INVERSE.split()},
    "atan2": np.arctan2,
    "pow": np.power,
    "erf": special.erf,
    "sigmoid": special.expit,
})
DYADIC = frozenset({"atan2", "hypot", "pow"})
# The greatest error of float32 in units in the last place, with fused operations or without.
BOUNDS = MappingProxyType({
    "exp": 1.2, "exp2": 1.3, "expm1": 1.6, "sigmoid": 2.5, "tanh": 2.4, "sinh": 1.7, "cosh": 1.7,
    "erf": 2.0, "log": 1.0, "log2": 2.1, "log10": 2.2, "log1p": 1.1, "sin": 1.6, "cos": 1.6,
    "tan": 2.6, "asin": 2.5, "acos": 1.2, "atan": 1.6, "atan2": 1.6, "pow": 0.51, "hypot": 0.51,
    "asinh": 0.51, "acosh": 0.51, "atanh": 0.51,
})  # fmt: skip
_ODD = """0 -0.0 inf -inf nan 1 -1 2 -2 3 -3 0.5 -0.5 2.5 -2.5 1e-40 -1e-40 1e30 -1e30 3e38 -3e38
1.1754944e-38 1e-45 -1e-45 16777216 16777215 12800 12801"""
ODD = np.array(_ODD.split(), np.float32)


def arguments(name: str, count: int, seed: int) -> list[Array]:
    """Float32 arguments: bit patterns of every size and sign, ordinary numbers, and odd ones."""
    random = np.random.default_rng(seed)
    number = 2 if name in DYADIC else 1
    made: list[Array] = []
    for _ in range(number):
        step = 2**32 // count
        pattern = np.arange(count, dtype=np.int64) * step + random.integers(0, step, count)
        values = pattern.astype(np.uint32).view(np.float32)
        ordinary = random.standard_normal(count) * random.choice([1, 4, 20, 1000], count)
        values = np.where(random.random(count) < 0.5, values, ordinary.astype(np.float32))
        made.append(random.permutation(values) if number == 2 else values)
    grid = np.array(np.meshgrid(*[ODD] * number), np.float32).reshape(number, -1)
    for values, odd in zip(made, grid, strict=True):
        values[: odd.size] = odd[:count]
    if name == "pow":
        with np.errstate(invalid="ignore"):
            made[1][-count // 4 :] = np.round(made[1][-count // 4 :])
    return made


def exact(name: str, operands: list[Array]) -> Array:
    """What `name` gives, in float64."""
    with np.errstate(all="ignore"):
        return EXACT[name](*(operand.astype(np.float64) for operand in operands))


def ulps(got: Array, wanted: Array) -> tuple[Array, Array]:
    """How far float32 results are from float64 ones in units in the last place, and which are odd.

    A result is odd if it is NaN, infinite or zero of a sign where the other rounded to float32 is
    not, or the other way round. One unit is the distance of two float32 at the right result.
    """
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        finite = np.isfinite(rounded) & np.isfinite(got)
        error = np.where(finite, np.abs(got.astype(np.float64) - wanted) / unit, 0.0)
    zero = (rounded == 0) & (got == 0)
    same = np.where(zero, np.signbit(rounded) == np.signbit(got), rounded == got)
    odd = ~np.where(finite & ~zero, True, same | (np.isnan(rounded) & np.isnan(got)))
    return error, odd


def compiled(name: str, count: int, lanes: int, **options: Any) -> Kernel:
    """A kernel that computes `name` of arrays of `count` numbers, `lanes` at a time.

    Args:
        name: the function.
        count: of numbers.
        lanes: of a vector.
        options: `dtype`, which is float32 without, and what `Kernel` takes.
    """
    dtype = options.pop("dtype", "float32")
    place = f"ramp({lanes} * i, 1, {lanes})" if lanes > 1 else "i"
    inputs = ["X", "Y"] if name in DYADIC else ["X"]
    params = ", ".join(f'{buffer}: Buffer("{dtype}", ({count},))' for buffer in [*inputs, "O"])
    value = f"{name}({', '.join(f'{buffer}[{place}]' for buffer in inputs)})"
    text = f"def f({params}):\n    for i in range({count // lanes}):\n        O[{place}] = {value}\n"
    return Kernel(parse(text), **options)
