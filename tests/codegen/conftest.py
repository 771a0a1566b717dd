"""Fixtures that compare every array of compiled and interpreted runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp.codegen import Kernel, use_threads
from tecomp.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    DType,
    Expr,
    For,
    ForKind,
    PrimFunc,
    Ramp,
    Var,
    evaluate,
    integer_range,
    parse,
    seq,
)
from tecomp.operations import element_type

Array = NDArray[Any]
SAMPLES = 336  # a multiple of all tested lane counts


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]


def assert_close(actual: Array, expected: Array, roundings: int) -> None:
    """Check that arrays are equal; floats may differ by `roundings` ulps, and NaN equals NaN."""
    kind = actual.dtype
    if kind.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    if not DType(kind.name).is_float:
        np.testing.assert_array_equal(actual.astype(np.int64), expected.astype(np.int64))
        return
    row = element_type(kind.name)
    step, least = 2.0**-row.fraction_bits, 2.0 ** (1 - row.bias - row.fraction_bits)
    x, y = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= roundings * (step * np.maximum(np.abs(x), np.abs(y)) + least)
    agree = (x == y) | (np.isnan(x) & np.isnan(y)) | near
    assert agree.all(), f"{actual[~agree][:5]} where {expected[~agree][:5]} is right"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that sets the number of threads of parallel loops."""

    def choose(count: int) -> None:
        monkeypatch.setenv("TECOMP_NUM_THREADS", str(count))
        use_threads()

    return choose


@pytest.fixture
def both() -> Callable[..., Kernel]:
    """Return a function that runs a PrimFunc or its text compiled and interpreted, and compares."""

    def run(
        func: PrimFunc | str, *arguments: Any, roundings: int = 0, check_bounds: bool = False
    ) -> Kernel:
        result = parse(func) if isinstance(func, str) else func
        expected, actual = copies(arguments), copies(arguments)
        evaluate(result, expected)
        kernel = Kernel(result, check_bounds=check_bounds)
        kernel(*actual)
        for x, y in zip(actual, expected, strict=True):
            if isinstance(x, np.ndarray):
                assert_close(x, y, roundings)
        return kernel

    return run


@pytest.fixture
def elementwise(both: Callable[..., Kernel]) -> Callable[..., None]:
    """Return a function that compares vector functions of `x, y, ...` on arrays of samples."""

    def run(
        lanes: int,
        inputs: list[str],
        functions: list[Callable[..., Expr]],
        roundings: int = 0,
    ) -> None:
        sources = [Buffer(f"X{k}", (SAMPLES,), DType(name)) for k, name in enumerate(inputs)]
        i = Var("i")
        place = Ramp(i * lanes, Const(1), lanes) if lanes > 1 else i
        operands = [BufferLoad(buffer, (place,)) for buffer in sources]
        values = [function(*operands) for function in functions]
        results = [
            Buffer(f"O{k}", (SAMPLES,), value.dtype.scalar) for k, value in enumerate(values)
        ]
        stores = [
            BufferStore(result, value, (place,))
            for result, value in zip(results, values, strict=True)
        ]
        loop = For(i, Const(0), Const(SAMPLES // lanes), ForKind.SERIAL, seq(*stores))
        arrays = [samples(name, seed) for seed, name in enumerate(inputs)]
        arrays += [np.zeros(SAMPLES, result.dtype.numpy) for result in results]
        both(PrimFunc("f", (*sources, *results), loop), *arrays, roundings=roundings)

    return run


def samples(name: str, seed: int) -> Array:
    """Return random values of a dtype, with all special values."""
    dtype, random = DType(name), np.random.default_rng(seed)
    kind = dtype.numpy
    if dtype.is_bool:
        return random.integers(0, 2, SAMPLES).astype(bool)
    if dtype.is_integer:
        low, high = integer_range(dtype)
        stored = kind if kind.kind in "iu" else np.dtype(np.int8)
        whole = random.integers(low, high, SAMPLES, dtype=stored, endpoint=True)
        edges = [low, high, *(min(k, high) for k in (0, 1, 2, 3, 5, 7)), high - 1, low + 1, 0, 0]
        whole[:12] = np.array(edges, stored)
        if low < 0:
            whole[12:20] = [max(k, low) for k in (-1, -2, -3, -7, low, -1, 1, 0)]
        whole[30:120] = random.integers(0, min(9, high + 1), 90)
        return random.permutation(whole).astype(kind)
    real = random.standard_normal(SAMPLES) * 4
    odd = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e30, -1e30, 3e-40]
    real[:28] = odd + odd
    real[28:100] = np.round(real[28:100])
    with np.errstate(all="ignore"):
        return random.permutation(real).astype(kind)
