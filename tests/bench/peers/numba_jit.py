"""Numba: loops over rows, parallel with several threads, with `fastmath` as in its guide."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import prange

from tests.bench.case import Array, Case, NoFormError
from tests.bench.cases.functions import EPSILON
from tests.bench.worker import Bind, Call, serve

Function = Callable[..., Any]
Options = dict[str, Any]

_E = np.float32(EPSILON)
_HALF, _ONE, _ROOT = np.float32(0.5), np.float32(1.0), np.float32(1 / math.sqrt(2))
_NINTH, _LOWEST = np.float32(1 / 9), np.float32(-np.inf)


def softmax(x: Array, out: Array) -> None:
    """Compute three passes over each row."""
    for i in prange(x.shape[0]):
        largest = _LOWEST
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - largest)
            total += out[i, j]
        share = _ONE / total
        for j in range(x.shape[1]):
            out[i, j] *= share


def layer_norm(x: Array, scale: Array, shift: Array, out: Array) -> None:
    """Compute three passes over each row."""
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / np.float32(x.shape[1])
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = _ONE / np.sqrt(squares / np.float32(x.shape[1]) + _E)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * factor * scale[j] + shift[j]


def rms_norm(x: Array, scale: Array, out: Array) -> None:
    """Compute two passes over each row."""
    for i in prange(x.shape[0]):
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = _ONE / np.sqrt(squares / np.float32(x.shape[1]) + _E)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor * scale[j]


def gelu(x: Array, out: Array) -> None:
    """Compute GELU by the erf of the C library."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = _HALF * x[i, j] * (_ONE + math.erf(x[i, j] * _ROOT))


def sum_0(x: Array, out: Array) -> None:
    """Reduce columns, one row at a time."""
    out[:] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]


def sum_1(x: Array, out: Array) -> None:
    """Reduce each row."""
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


def max_0(x: Array, out: Array) -> None:
    """Reduce columns, one row at a time."""
    out[:] = _LOWEST
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] = max(out[j], x[i, j])


def max_1(x: Array, out: Array) -> None:
    """Reduce each row."""
    for i in prange(x.shape[0]):
        largest = _LOWEST
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        out[i] = largest


def argmax_1(x: Array, out: Array) -> None:
    """Reduce each row."""
    for i in prange(x.shape[0]):
        place = 0
        for j in range(x.shape[1]):
            if x[i, j] > x[i, place]:
                place = j
        out[i] = place


def cumsum_0(x: Array, out: Array) -> None:
    """Scan columns, one row at a time."""
    out[0] = x[0]
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = out[i - 1, j] + x[i, j]


def cumsum_1(x: Array, out: Array) -> None:
    """Scan each row."""
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            out[i, j] = total


def blur(x: Array, out: Array) -> None:
    """Add all nine pixels in one pass."""
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            total = np.float32(0)
            for r in range(3):
                total += x[i + r, j] + x[i + r, j + 1] + x[i + r, j + 2]
            out[i, j] = total * _NINTH


def add(a: Array, b: Array, out: Array) -> None:
    """Add vectors."""
    for i in range(out.shape[0]):
        out[i] = a[i] + b[i]


FUNCTIONS: dict[str, Function] = {
    "softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "gelu": gelu,
    "sum-0": sum_0, "sum-1": sum_1, "max-0": max_0, "max-1": max_1, "argmax-1": argmax_1,
    "cumsum-0": cumsum_0, "cumsum-1": cumsum_1, "blur": blur, "add": add,
}


def function_of(case: Case) -> tuple[Function, Options]:
    """Return the function to compile for a case, with its options."""
    key = f"{case.options['op']}-{case.options['axis']}" if case.kind == "reduce" else case.kind
    if key not in FUNCTIONS:
        raise NoFormError("it has no simple loop that Numba makes fast")
    # Cumulative sums must not be reordered, and a call without work must not start threads.
    is_parallel = int(os.environ["NUMBA_NUM_THREADS"]) > 1 and key != "add"
    return FUNCTIONS[key], {"parallel": is_parallel, "fastmath": {"contract", "reassoc", "nsz"}}


def jitted(case: Case) -> Bind:
    """Return calls with a preallocated result."""
    function, options = function_of(case)
    compiled = numba.njit(**options)(function)

    def bind(*inputs: Array) -> tuple[Call, Array]:
        out = np.empty_like(case.expected(list(inputs)), case.result_dtype)
        return partial(compiled, *inputs, out), out

    return bind


def building(case: Case) -> Bind:
    """Measure the first call of a compiled function, after a warm-up compilation."""
    part: Case = case.options["part"]
    function, options = function_of(part)
    numba.njit(sum_1)(np.ones((2, 2), np.float32), np.ones(2, np.float32))

    def bind(*inputs: Array) -> Call:
        out = np.empty_like(inputs[0])
        signature = tuple(numba.typeof(array) for array in (*inputs, out))
        dispatcher = numba.njit(**options, cache=case.options["is_kept"])(function)
        return lambda: dispatcher.compile(signature)

    return bind


KINDS = ("softmax", "layer_norm", "rms_norm", "gelu", "reduce", "blur", "add")

if __name__ == "__main__":
    serve({**dict.fromkeys(KINDS, jitted), "build": building}, "numba")
