"""References, error bounds and test arguments of math functions."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tecomp.codegen import Kernel
from tecomp.codegen.math import has_formula
from tecomp.ir import DType, parse
from tecomp.operations import ELEMENTWISE, Op

Array: TypeAlias = NDArray[Any]

_WIDER: dict[str, Any] = {"float32": np.float64, "float64": np.longdouble}
# Error of the reference in ulps. Where long double has no more precision than float64 (not on Linux
# on x86), the float64 reference itself may be off by one ulp.
SLACK = {"float32": 0.0, "float64": 0.0 if np.finfo(np.longdouble).nmant >= 63 else 1.0}


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def _erf(x: Array) -> Array:
    """Compute erf(x) as 2/sqrt(pi) exp(-x**2) times the sum of 2**k x**(2k+1) / (2k+1)!!.

    All terms have one sign, so there is no cancellation.

    Source:
        Digital Library of Mathematical Functions, 7.6.2.
    """
    if x.dtype == np.float64:
        known: Array = special.erf(x)
        return known
    size = np.minimum(np.abs(x), 6)
    term, total = size, size
    for k in range(1, 250):
        term = term * (2 * size * size / (2 * k + 1))
        total = total + term
    scale = 2 / np.sqrt(4 * np.arctan(x.dtype.type(1)))
    result: Array = np.copysign(scale * np.exp(-size * size) * total, x)
    return np.where(np.abs(x) < 1e-300, scale * x, result)


def _erfinv(x: Array) -> Array:
    """Compute SciPy's function, which has no long double and returns 0.0 for -0.0."""
    result: Array = np.copysign(special.erfinv(x.astype(np.float64)), x).astype(x.dtype)
    return result


def _in_mpmath(function: str, x: Array) -> Array:
    """Compute the real part of a function of mpmath in 200 bits; NaN at poles and infinities."""
    import mpmath

    compute = getattr(mpmath, function)

    def one(number: float) -> Any:
        try:
            value = mpmath.re(compute(mpmath.mpf(number)))
        except ValueError:
            return np.longdouble("nan")
        high = float(value)
        return np.longdouble(high) + (float(value - high) if np.isfinite(high) else 0)

    with mpmath.workprec(200):
        found = [one(number) if np.isfinite(number) else np.nan for number in x.astype(np.float64).ravel().tolist()]
    result: Array = np.array(found, np.longdouble).reshape(x.shape).astype(x.dtype)
    return result


def _lgamma(x: Array) -> Array:
    """Compute the function of mpmath; infinity at poles and infinities, as in C."""
    known = _in_mpmath("loggamma", x)
    return np.where(np.isnan(known) & ~np.isnan(x), np.inf, known)


def _digamma(x: Array) -> Array:
    """Compute the function of mpmath; infinite at zeros, NaN at other poles."""
    known = _in_mpmath("digamma", x)
    at_ends = np.where(x == 0, -np.copysign(np.inf, x), np.where(x == np.inf, x, known))
    return at_ends.astype(x.dtype)


REFLECTED: dict[str, Callable[[Array], Array]] = {
    "digamma": special.digamma, "lgamma": special.gammaln,
}
_OWN: dict[str, Callable[..., Array]] = {
    "digamma": _digamma, "erf": _erf, "erfinv": _erfinv, "lgamma": _lgamma, "sigmoid": _sigmoid,
}
ROWS = MappingProxyType({
    row.call: row for row in ELEMENTWISE if row.call and has_formula(row.call, DType("float32"))
})
"""Rows of the functions that compiled code computes by formulas, by intrinsic."""

# Reference functions, which are called with operands of a wider dtype.
EXACT: MappingProxyType[str, Callable[..., Array]] = MappingProxyType({
    name: _OWN.get(name) or getattr(np, row.numpy_name or "") for name, row in ROWS.items()
})
DYADIC = frozenset(row.call or row.name for row in ELEMENTWISE if row.arity == 2)
# Maximum errors in units in the last place, with and without fused multiply-add.
BOUNDS = MappingProxyType({
    dtype: MappingProxyType({name: row.ulps[k] for name, row in ROWS.items()})
    for k, dtype in enumerate(("float32", "float64"))
})
_ODD = "0 -0.0 inf -inf nan 1 -1 2 -2 3 -3 0.5 -0.5 2.5 -2.5 1e30 -1e30 16777216 16777215"
ODD = MappingProxyType({
    "float32": f"{_ODD} 1e-40 -1e-40 3e38 -3e38 1.1754944e-38 1e-45 -1e-45 12800 12801".split(),
    "float64": (
        f"{_ODD} 1e-310 -1e-310 1e308 -1e308 2.2250738585072014e-308 5e-324 -5e-324 1e6 1000001 "
        "9007199254740992 9007199254740991"
    ).split(),
})


def arguments(name: str, count: int, seed: int, dtype: str = "float32") -> list[Array]:
    """Return arguments: bit patterns of all magnitudes, ordinary numbers and special values."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    number = 2 if name in DYADIC else 1
    results: list[Array] = []
    for _ in range(number):
        step = 2 ** (8 * kind.itemsize) // count
        pattern = np.arange(count, dtype=np.uint64) * np.uint64(step)
        pattern += random.integers(0, step, count, dtype=np.uint64)
        values = pattern.astype(f"u{kind.itemsize}").view(kind)
        ordinary = random.standard_normal(count) * random.choice([1, 4, 20, 1000], count)
        values = np.where(random.random(count) < 0.5, values, ordinary.astype(kind))
        results.append(random.permutation(values) if number == 2 else values)
    grid = np.array(np.meshgrid(*[np.array(ODD[dtype], kind)] * number)).reshape(number, -1)
    for values, odd in zip(results, grid, strict=True):
        values[: odd.size] = odd[:count]
    if name == "pow":
        with np.errstate(invalid="ignore"):
            results[1][-count // 4 :] = np.round(results[1][-count // 4 :])
    return results


def exact(name: str, operands: list[Array]) -> Array:
    """Return the reference result of `name` in a wider dtype."""
    wider = _WIDER[operands[0].dtype.name]
    with np.errstate(all="ignore"):
        function = EXACT.get(name) or getattr(np, name)
        return np.asarray(function(*(operand.astype(wider) for operand in operands)))


def reference(row: Op, *operands: Array) -> Array:
    """Return the reference result of a row in the dtype of the operands.

    Functions that NumPy does not have are computed in float64 and rounded.
    """
    if row.numpy_name:
        return np.asarray(getattr(np, row.numpy_name)(*operands))
    widened = EXACT[row.call](*[operand.astype(np.float64) for operand in operands])
    return widened.astype(operands[0].dtype)


def terms(name: str, operands: list[Array]) -> Array | float:
    """Return the magnitude of the terms that cancel near zeros of a function in float64.

    Functions of gamma reflect negative arguments. Their zeros have no relative bound in float64.
    `logaddexp` is 0 where the larger operand and the logarithm, both less than 1, cancel.
    """
    if name == "logaddexp":
        return 1.0
    function = REFLECTED.get(name)
    if function is None or operands[0].dtype != np.float64:
        return 0.0
    with np.errstate(all="ignore"):
        size: Array = np.abs(function(1 - operands[0]))
    return np.where((operands[0] < 0) & np.isfinite(size), size, 0.0)


def ulps(
    actual: Array, expected: Array, terms: Array | float = 0.0
) -> tuple[Array, Array]:
    """Return the errors of results in units in the last place, and which results mismatch.

    A result mismatches if it and the rounded reference differ in being NaN, infinite or a zero of
    a given sign. One unit is the spacing of the dtype at the rounded reference, or at larger terms.
    """
    with np.errstate(all="ignore"):
        rounded = expected.astype(actual.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), terms).astype(actual.dtype)).astype(expected.dtype)
        finite = np.isfinite(rounded) & np.isfinite(actual)
        error = np.where(finite, np.abs(actual.astype(expected.dtype) - expected) / unit, 0.0)
    zero = (rounded == 0) & (actual == 0)
    same = np.where(zero, np.signbit(rounded) == np.signbit(actual), rounded == actual)
    odd = ~np.where(finite & ~zero, True, same | (np.isnan(rounded) & np.isnan(actual)))
    return error.astype(np.float64), odd


def compiled(name: str, count: int, lanes: int, **options: Any) -> Kernel:
    """Compile a kernel that computes `name` of arrays of `count` numbers, `lanes` at a time.

    Args:
        name: Name of the function.
        count: Number of elements.
        lanes: Lanes of a vector.
        options: `dtype` (default: "float32") and options of `Kernel`.
    """
    dtype = options.pop("dtype", "float32")
    place = f"ramp({lanes} * i, 1, {lanes})" if lanes > 1 else "i"
    inputs = ["X", "Y"] if name in DYADIC else ["X"]
    params = ", ".join(f'{buffer}: Buffer("{dtype}", ({count},))' for buffer in [*inputs, "O"])
    value = f"{name}({', '.join(f'{buffer}[{place}]' for buffer in inputs)})"
    text = f"def f({params}):\n    for i in range({count // lanes}):\n        O[{place}] = {value}\n"
    return Kernel(parse(text), **options)
