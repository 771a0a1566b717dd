"""Complex element-wise functions agree with a wider dtype within a few units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.ptensor import FUNCTIONS
from tests.array.test_elementwise import ROWS
from tests.strategies.elements import PARTS, Data, distances

DTYPES = ("complex64", "complex128")
WIDER = {"complex64": "complex128", "complex128": "clongdouble"}
KINDS = sorted(kind for kind, op in FUNCTIONS.items() if "complex64" in op.functions[kind])
EXACT = ("conj", "equal", "imag", "isfinite", "isinf", "isnan", "negative", "not_equal", "positive",
         "real", "round")
# Functions whose parts may cancel, so that errors are relative to the magnitude of the result.
OF_THE_WHOLE = ("add", "divide", "expm1", "log1p", "multiply", "pow", "reciprocal", "square",
                "subtract")
BOUND = 6.0


def ordinary(dtype: str, seed: int, decades: int = 4) -> Data:
    """Draw complex numbers with parts of several magnitudes, including 0 and 1."""
    rng = np.random.default_rng([seed, decades, *dtype.encode()])
    part = PARTS[dtype]
    powers = 10.0 ** rng.integers(-decades, decades + 1, (500, 2))
    values = (rng.standard_normal((500, 2)) * powers).astype(part)
    values[rng.random((500, 2)) < 0.1] = 0
    values[rng.random((500, 2)) < 0.1] = 1
    return values.view(dtype)[:, 0]


def expm1(z: Data) -> Any:
    half = np.sin(z.imag / 2)
    return np.expm1(z.real) * np.cos(z.imag) - 2 * half * half + 1j * np.exp(z).imag


def log1p(z: Data) -> Any:
    square = z.real * (2 + z.real) + z.imag * z.imag
    size = np.where(abs(z) < 0.5, np.log1p(np.maximum(square, -0.9)) / 2, np.log(abs(1 + z)))
    return size + 1j * np.arctan2(z.imag, 1 + z.real)


# References for small numbers, for which NumPy loses digits.
FOR_SMALL = {"expm1": expm1, "log1p": log1p}


def wanted_of(kind: str, *data: Data) -> Data:
    function = FOR_SMALL.get(kind) or getattr(np, ROWS[kind].numpy_name or "")
    with np.errstate(all="ignore"):
        return np.asarray(function(*[x.astype(WIDER[x.dtype.name]) for x in data]))


def result_of(kind: str, *data: Data) -> Data:
    return np.asarray(getattr(xp, kind)(*map(xp.asarray, data)))


def apart(result: Data, expected: Data, *, whole: bool) -> Data:
    """Return the errors in ulps of each part, or of the whole if `whole`."""
    with np.errstate(all="ignore"):
        near = expected.astype(result.dtype)
    if result.dtype.kind != "c":
        return distances(result, near)
    if not whole:
        return np.maximum(distances(result.real, near.real), distances(result.imag, near.imag))
    kind = np.finfo(result.dtype)
    unit = np.maximum(kind.eps * abs(expected), kind.smallest_subnormal)
    difference = abs(result.astype(expected.dtype) - expected)
    return np.where(result == near, 0.0, difference / unit)


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_elements_match_a_wider_dtype(kind: str, dtype: str) -> None:
    data = [ordinary(dtype, seed) for seed in range(FUNCTIONS[kind].arity)]
    if kind == "pow":
        data = [x[(abs(data[0]) > 0) & (abs(data[1]) < 20)] for x in data]
    result, expected = result_of(kind, *data), wanted_of(kind, *data)
    if kind in EXACT:
        np.testing.assert_array_equal(result, expected.astype(result.dtype))
        return
    plain = np.isfinite(expected) & (abs(expected) < np.finfo(dtype).max)
    bound = np.full(plain.sum(), BOUND)
    if kind == "pow":
        # The angle of the result is a product, whose error grows with the number of turns.
        bound += abs(data[1] * np.log(data[0]))[plain]
    off = apart(result[plain], expected[plain], whole=kind in OF_THE_WHOLE)
    worst = int(np.argmax(off - bound))
    assert off[worst] <= bound[worst], [x[plain][worst] for x in data]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "log", "log10", "sign", "sqrt",
    "divide", "reciprocal",
])
def test_complex_functions_avoid_intermediate_overflow(kind: str, dtype: str) -> None:
    data = [
        ordinary(dtype, seed, 18 if dtype == "complex64" else 150)
        for seed in range(FUNCTIONS[kind].arity)
    ]
    result, expected = result_of(kind, *data), wanted_of(kind, *data)
    part = np.finfo(dtype)
    within = np.isfinite(expected) & (abs(expected) < part.max) & (abs(expected) > part.tiny)
    off = apart(result[within], expected[within], whole=kind in OF_THE_WHOLE)
    worst = int(np.argmax(off))
    assert off[worst] <= BOUND, [x[within][worst] for x in data]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_the_range(dtype: str) -> None:
    part = np.finfo(dtype)
    z = np.array([complex(x * part.max, y * part.max) for x in (-0.9, 0.5) for y in (-0.4, 0.7)],
                 dtype)
    for kind in ("acos", "acosh", "asin", "asinh", "atan", "log", "sign", "sqrt"):
        off = apart(result_of(kind, z), wanted_of(kind, z), whole=False)
        assert off.max() <= BOUND, kind
    tiny = np.array([complex(part.smallest_subnormal, -part.smallest_subnormal)], dtype)
    for kind in ("asinh", "atanh", "sign", "sinh", "sqrt", "tanh", "log1p", "expm1"):
        off = apart(result_of(kind, tiny), wanted_of(kind, tiny), whole=kind in OF_THE_WHOLE)
        assert off.max() <= BOUND, kind


def test_complex_exp_of_large_numbers_with_small_sines_is_finite() -> None:
    x, y = np.array([705.0, 1000.0, 1300.0, 1450.0, -1450.0]), np.array([1e-3, 1e-130, 1e-260,
                                                                        5e-324, 5e-324])
    z = x + 1j * y
    for kind in ("exp", "sinh", "cosh", "expm1"):
        expected = wanted_of(kind, z).imag.astype(float)
        assert distances(result_of(kind, z).imag, expected).max() <= BOUND, kind


def test_complex_log_near_the_unit_circle() -> None:
    angle = np.linspace(0.01, 3, 400)
    z = np.cos(angle) + 1j * np.sin(angle)
    # The squares of 53-bit parts are exact in Python integers.
    sizes = []
    for w in z:
        re, im = (int(part * 2.0**70) for part in (w.real, w.imag))
        sizes.append((re * re + im * im - (1 << 140)) / (1 << 140))
    expected = 0.5 * np.log1p(np.array(sizes))
    assert distances(result_of("log", z).real, expected).max() <= BOUND
    assert distances(result_of("log1p", z - 1).imag, np.angle(1 + (z - 1))).max() <= BOUND
