"""LLVM loop passes run only if a loop contains something that they can hoist or promote."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tecomp.codegen import (
    Kernel,
    compile_function,
    emit_assembly,
    has_loop_work,
    has_products_in_branches,
)
from tecomp.ir import PrimFunc, parse

HEAD = 'def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), I: Buffer("int64", (64,))):'
TILE = """
with Allocate(Buffer("float32", (2,), scope="local")) as T:
    T[0] = float32(0.0)
    for k in range(64):
        T[0] = T[0] + A[k]
    B[0] = T[0]
"""


def function(body: str) -> PrimFunc:
    return parse(f"{HEAD}{body.rstrip()}\n".replace("\n", "\n    "))


@pytest.mark.parametrize(
    "body",
    [
        "\nfor i in range(64):\n    B[i] = A[i] + float32(1.0)",
        "\nfor i in range(4):\n    B[ramp(16 * i, 1, 16)] = A[ramp(16 * i, 1, 16)]",
        "\nfor i in range(8):\n    for j in range(8):\n        B[i * 8 + j] = A[j * 8 + i]",
        # A scalar next to vectors is a memory operand.
        "\nfor i in range(4):\n    B[ramp(16 * i, 1, 16)] = A[ramp(16 * i, 1, 16)] * "
        "broadcast(A[0], 16)",
        # Values that only an outer loop could hoist stay in place.
        "\nfor i in range(8):\n    B[i] = A[i]\n    for j in range(8):\n        B[j] = A[j]",
        TILE,
        "\nB[0] = A[I[0]] + A[1]",
        "\nfor i in range(8):\n    for j in range(8):\n        if i < 3:\n            B[j] = A[j]",
        "\nfor i in range(8):\n    for j in range(8):\n        B[i // 3 * 8 + j] = A[j]",
    ],
    ids=["elementwise", "vectors", "number", "transpose", "outer", "tile", "straight", "condition",
         "quotient"],
)
def test_functions_without_applicable_passes(body: str) -> None:
    func = function(body)

    assert not has_loop_work(func.body)
    assert compile_function(func).source.loop_work == ()


@pytest.mark.parametrize(
    "body",
    [
        "\nfor k in range(64):\n    B[0] = B[0] + A[k]",
        "\nfor i in range(8):\n    for k in range(8):\n        B[i] = B[i] + A[k]",
        "\nfor i in range(8):\n    for j in range(8):\n        B[j] = B[j] + A[i]",
        # The accumulator is in memory, and scalars are loaded again for each of its vectors.
        "\nfor i in range(4):\n    for k in range(8):\n        B[ramp(16 * i, 1, 16)] = "
        "B[ramp(16 * i, 1, 16)] + broadcast(A[k], 16)",
        "\nfor k in range(8):\n    for i in range(4):\n        B[ramp(16 * i, 1, 16)] = "
        "B[ramp(16 * i, 1, 16)] + broadcast(A[k], 16)",
        "\nfor i in range(64):\n    B[i] = A[i // 8]",
        "\nfor i in range(8):\n    with Let(A[i]) as x:\n        for j in range(8):\n"
        "            B[j] = exp(x)",
        # A buffer with a non-constant index is not promoted to registers.
        TILE.replace("T[0] + A[k]", "T[0] + T[I[k]]"),
    ],
    ids=["sum", "row-sum", "load", "vector-sum", "vectors-of-sums", "division", "call", "array"],
)
def test_pass_selection_of_functions_with_applicable_passes(body: str) -> None:
    func = function(body)

    assert has_loop_work(func.body)
    # Loops that LLVM can vectorize get these passes along with others.
    source = compile_function(func).source
    assert (*source.loop_work, *source.plain_loops) == ("f.body",)


def test_loop_invariant_conditions_are_unswitched() -> None:
    func = function(
        "\nfor i in range(8):\n    for j in range(8):\n"
        "        B[i * 8 + j] = if_then_else(i < 3 and j < 5 and not (i == 1), A[j], float32(2.0))"
    )
    text = compile_function(func).llvm_ir
    outer, inner = text.split("loop:")[1].split("loop.1:")
    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    Kernel(compile_function(func), func.params)(a, b, np.zeros(64, "int64"))

    assert re.findall(r"icmp \w+ i64 %i, \d", outer) == ["icmp slt i64 %i, 3", "icmp eq i64 %i, 1"]
    assert "i64 %i," not in re.sub("(mul|add)[^\n]*", "", inner.split("after.1:")[0])
    rows = np.arange(8)
    selected = ((rows < 3) & (rows != 1))[:, None] & (rows < 5)[None]
    np.testing.assert_array_equal(b.reshape(8, 8), np.where(selected, a[:8], 2.0))


def test_each_parallel_loop_decides_for_itself() -> None:
    func = function(
        "\nfor i in parallel(8):\n    for k in range(8):\n        B[i] = B[i] + A[k]"
        "\nfor i in parallel(8):\n    B[i] = A[i]"
    )
    source = compile_function(func).source

    assert not has_loop_work(func.body)
    assert has_loop_work(func.body, is_outlined=True)
    assert source.loop_work == ("f.parallel.1.body",)


def test_a_sum_in_memory_is_promoted_to_a_register() -> None:
    func = function("\nfor k in range(64):\n    B[0] = B[0] + A[k]")
    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu="znver5")
    (loop,) = re.findall(r"(\.LBB\d+_\d+):[^:]*?\n(.*?)\n\tj\w+\t\1", text, re.DOTALL)

    assert "vaddss" in loop[1]
    assert not re.search(r"vmovss\s+%xmm\d+, .*\(", loop[1])


def test_functions_that_are_called_in_vectors_are_part_of_the_loop() -> None:
    func = function(
        "\nfor i in range(4):\n    B[ramp(16 * i, 1, 16)] = exp(A[ramp(16 * i, 1, 16)])"
    )
    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu="znver5")

    assert re.findall(r"callq\s+(\S+)", text) == ["f.body"]


SIZES = """def f(A: Buffer("float32", (n,)), C: Buffer("float32", (m,)), B: Buffer("float32", (72,)), \
*, n: "int64", m: "int64"):
    for i in range(4):
        for j in range(n):
            if j < 3:
                B[ramp({index}, 1, 4)] = broadcast(A[j], 4)
"""


@pytest.mark.parametrize(("index", "first", "is_work"), [
    ("i * (n * m) + j", lambda i, j: 15 * i + j, True), ("i * n + j", lambda i, j: 5 * i + j, True),
    ("j * m + i", lambda i, j: 3 * j + i, False), ("i * 8 + j", lambda i, j: 8 * i + j, False),
])
def test_products_of_sizes_in_branches_are_hoisted(
    index: str, first: Callable[[int, int], int], is_work: bool,
) -> None:
    """Kernels of fixed sizes have no such products, and need no more passes."""
    func = parse(SIZES.format(index=index))
    assert has_products_in_branches(func.body) == is_work
    assert bool(compile_function(func).source.loop_work) == is_work

    n, m = 5, 3
    a, b, wanted = np.arange(n, dtype=np.float32), *np.zeros((2, 72), np.float32)
    Kernel(func)(a, np.zeros(m, np.float32), b)
    for i in range(4):
        for j in range(3):
            wanted[first(i, j) : first(i, j) + 4] = a[j]
    np.testing.assert_array_equal(b, wanted)
