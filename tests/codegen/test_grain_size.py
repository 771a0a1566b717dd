"""Parallel loops with little work run in the thread of the caller."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from tecomp.codegen import compile_function, min_iterations_per_task
from tecomp.ir import For, PrimFunc, parse
from tests.strategies.native import Inside, as_kernel

HEAD = 'def f(A: Buffer("float32", (4096,)), B: Buffer("float32", (4096,)), *, n: "int64"):\n    '


def function(body: str) -> PrimFunc:
    return parse(HEAD + body.strip().replace("\n", "\n    ") + "\n")


def least(body: str) -> int:
    loop = function(f"for i in parallel(8):\n    {body}").body
    assert isinstance(loop, For)
    return min_iterations_per_task(loop.body)


LEAST = {
    # A load, a product and a store are three operations, for vectors and for scalars.
    "an element": ("B[i] = A[i] * float32(2.0)", 512),
    "a vector": ("B[ramp(16 * i, 1, 16)] = A[ramp(16 * i, 1, 16)] * broadcast(float32(2.0), 16)", 512),
    "two registers": (
        "B[ramp(32 * i, 1, 32)] = A[ramp(32 * i, 1, 32)] * broadcast(float32(2.0), 32)", 256),
    "elements that are apart": (
        "B[ramp(16 * i, 1, 16)] = A[ramp(i, 8, 16)] * broadcast(float32(2.0), 16)", 86),
    "a function": ("B[i] = exp(A[i])", 128),
    "what is always in a register": ("B[0] = A[0] * float32(2.0)", 1536),
    "a loop": ("for j in range(100):\n        B[i * 100 + j] = A[i * 100 + j] * float32(2.0)", 4),
    "a loop that ends early": (
        "for j in range(min(n, 100)):\n        B[i * 100 + j] = A[i * 100 + j] * float32(2.0)", 4),
    "long loops": ("for j in range(1000):\n        B[i * 100 + j] = A[i * 100 + j] * float32(2.0)", 1),
    "a loop of unknown length": ("for j in range(n):\n        B[j] = A[j] * float32(2.0)", 1),
}


@pytest.mark.parametrize("name", LEAST)
def test_least_iterations(name: str) -> None:
    body, expected = LEAST[name]

    assert least(body) == expected


def test_code_contains_the_grain_size() -> None:
    text = compile_function(function("for i in parallel(8):\n    B[i] = A[i] * float32(2.0)")).llvm_ir

    assert re.search(r"call void %\S+\(ptr %thread, ptr @\S+, ptr %\S+, i64 0, i64 8, i64 512\)", text)


@pytest.mark.parametrize(("extent", "least", "count"), [(8, 9, 1), (15, 8, 1), (16, 8, 2), (90, 10, 4)])
def test_no_thread_has_fewer(
    threads: Callable[[int], None], extent: int, least: int, count: int
) -> None:
    threads(4)
    meeting = threading.Barrier(count, timeout=60)
    names: set[int] = set()
    seen: list[int] = []

    def body(_: Inside, start: int, stop: int) -> None:
        is_first = threading.get_ident() not in names
        names.add(threading.get_ident())
        seen.extend(range(start, stop))
        if is_first:
            meeting.wait()

    as_kernel(lambda inside: inside.parallel(0, extent, body, least))

    assert len(names) == count
    assert sorted(seen) == list(range(extent))
