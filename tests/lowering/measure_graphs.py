"""Measure the time to define, lower and compile elements of many operations.

    python tests/lowering/measure_graphs.py [operations ...]

Times are CPU seconds of one process; "compile" covers the code generator, LLVM and the linker.
"""

from __future__ import annotations

import os
import sys
from time import process_time
from typing import Any

os.environ.setdefault("TECOMP_CACHE", "off")

import tecomp
from tecomp import te
from tecomp.codegen import compile_function

N = 64
X = te.placeholder((N,), name="X")
K = te.placeholder((N,), "int32", name="K")


def chain(i: Any, count: int) -> Any:
    x = X[i]
    for _ in range(count // 2):
        x = x * 0.5 + 1.0
    return x


def squares(i: Any, count: int) -> Any:
    x = X[i]
    for _ in range(count // 2):
        x = x * x + 1.0
    return x


def xorshift(i: Any, count: int) -> Any:
    x = K[i]
    for _ in range(count // 6):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        x = x ^ (x << 5)
    return x


def long_sum(i: Any, count: int) -> Any:
    total = X[i]
    for k in range(count // 2):
        total = total + X[i] * float(k)
    return total


def selects(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count // 4):
        x = te.select(x > float(k), x * 0.5, x + 1.0)
    return x


def choices(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count // 4):
        x = te.if_then_else(X[i] > float(k), x * 0.5, x + 1.0)
    return x


def extrema(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count // 4):
        x = te.max(te.min(x, X[i] + float(k)), -x)
    return x


def index(i: Any, count: int) -> Any:
    at = i
    for _ in range(count // 3):
        at = (at * at + 3) % N
    return X[at]


CASES = (chain, squares, xorshift, long_sum, selects, choices, extrema, index)


def measure(element: Any, count: int) -> tuple[float, ...]:
    """Return the seconds to define, to lower and to compile an element of `count` operations."""
    start = process_time()
    C = te.compute((N,), lambda i: element(i, count), name="C")
    s = te.create_schedule(C)
    result = process_time()
    func = tecomp.lower(s, [*C.op.input_tensors, C])
    lowered = process_time()
    compile_function(func)
    return result - start, lowered - result, process_time() - lowered


def main() -> None:
    """Print one line for each kind of element and number of operations."""
    measure(chain, 10)
    print(f"{'element':10} {'operations':>10} {'define':>8} {'lower':>8} {'compile':>8}")
    for element in CASES:
        for count in map(int, sys.argv[1:] or ("100", "1000", "10000")):
            seconds = " ".join(f"{part:8.3f}" for part in measure(element, count))
            print(f"{element.__name__:10} {count:10} {seconds}", flush=True)


if __name__ == "__main__":
    main()
