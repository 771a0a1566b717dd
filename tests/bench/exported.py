"""Time of exported kernels against calls from Python, on arrays aligned to pages.

    python tests/bench/exported.py

The times are processor times of one thread, so other processes affect them little. The calls
alternate, and the ratio is the median of the ratios of adjacent measurements.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["TECOMP_NUM_THREADS"] = "1"

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel

ROUNDS = 120
SECONDS = 0.01
PAGE = 4096
Array = np.ndarray[Any, np.dtype[Any]]


def aligned(shape: Sequence[int]) -> Array:
    """Return random float32 values in memory that begins with a page."""
    size = 4 * int(np.prod(shape))
    memory = np.empty(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    array = memory[start : start + size].view(np.float32).reshape(shape)
    array[...] = np.random.default_rng(0).random(shape)
    return array


def kernels() -> Iterator[ScheduledKernel]:
    """Yield matrix products, element-wise functions, reductions and a convolution."""
    for n in (128, 512):
        A, B = (te.placeholder((n, n), name=name) for name in "AB")
        k = te.reduce_axis((0, n), name="k")
        C = te.compute(
            (n, n), lambda i, j, A=A, B=B, k=k: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        yield tecomp.build(C, [A, B, C], name=f"product_{n}")
    X = te.placeholder((1000, 1000), name="X")
    Y = te.compute(X.shape, lambda i, j: te.tanh(X[i, j]), name="Y")
    yield tecomp.build(Y, [X, Y], name="hyperbolic_tangent")
    r = te.reduce_axis((0, 1000), name="r")
    S = te.compute((1000,), lambda i: te.sum(te.exp(X[i, r]), axis=r), name="S")
    yield tecomp.build(S, [X, S], name="sum_of_powers")
    image = te.placeholder((1, 56, 56, 64), name="image")
    filters = te.placeholder((3, 3, 64, 64), name="filters")
    dh, dw, c = (te.reduce_axis((0, n)) for n in (3, 3, 64))
    result = te.compute(
        (1, 54, 54, 64),
        lambda n, h, w, o: te.sum(image[n, h + dh, w + dw, c] * filters[dh, dw, c, o], axis=[dh, dw, c]),
        name="result")
    yield tecomp.build(result, [image, filters, result], name="convolution")


def measure(call: Callable[[], object], count: int) -> float:
    start = thread_time()
    for _ in range(count):
        call()
    return thread_time() - start


def compare(kernel: ScheduledKernel, folder: str) -> str:
    """Return the times of a kernel as text."""
    arrays = [aligned(kernel.shapes[parameter.name]) for parameter in kernel.signature]
    path = f"{folder}/{kernel.name}.so"
    kernel.export(path)
    function = getattr(ctypes.CDLL(path), kernel.name)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    calls = (lambda: kernel(*arrays), lambda: function(*pointers))
    for call in calls:
        measure(call, 10)
    count = max(int(SECONDS / max(measure(calls[0], 5) / 5, 1e-7)), 1)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        for position in (0, 1) if number % 2 else (1, 0):
            times[position].append(measure(calls[position], count) / count)
    ratio = median(b / a for a, b in zip(*times, strict=True))
    least = [min(found) * 1e6 for found in times]
    return (
        f"{kernel.name:<20} Python {least[0]:9.1f} µs, exported {least[1]:9.1f} µs; ratio of minima "
        f"{least[1] / least[0]:.3f}, median {ratio:.3f}"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        for item in kernels():
            print(compare(item, directory), flush=True)
