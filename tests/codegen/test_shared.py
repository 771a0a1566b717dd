"""Values computed or loaded in a block are reused by later statements until they change."""

from __future__ import annotations

import numpy as np

from tecomp.codegen import Kernel, compile_function
from tecomp.ir import parse

HEAD = """def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), C: Buffer("float32", (64,))):
    for i in range(8):
"""


def body_of(statements: list[str]) -> tuple[str, Kernel]:
    """Return the text of the loop, and the kernel."""
    func = parse(HEAD + "".join(f"        {line}\n" for line in statements))
    compiled = compile_function(func)
    loop = compiled.llvm_ir.split("loop:")[1].split("br ")[0]
    return loop, Kernel(compiled, func.params)


def test_addresses_and_loads_are_shared() -> None:
    text, kernel = body_of([
        "B[i * 8 + 1] = A[i * 8] * A[i * 8 + 1]",
        "C[i * 8 + 1] = A[i * 8] + A[i * 8 + 1]",
    ])
    a, b, c = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    kernel(a, b, c)

    assert text.count("= mul i64") == 1
    assert text.count("= load float") == 2
    np.testing.assert_array_equal(b[1::8], a[::8] * a[1::8])
    np.testing.assert_array_equal(c[1::8], a[::8] + a[1::8])


def test_stored_values_are_reloaded() -> None:
    text, kernel = body_of([
        "B[i] = A[i] + B[i + 1]",
        "B[i + 1] = A[i] * float32(2.0)",
        "C[i] = A[i] + B[i + 1]",
    ])
    a, b, c = np.arange(64, dtype="float32"), np.full(64, 7, "float32"), np.zeros(64, "float32")
    expected = b.copy()
    for i in range(8):
        expected[i] = a[i] + expected[i + 1]
        expected[i + 1] = a[i] * 2
    kernel(a, b, c)

    assert text.count("= load float") == 3
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(c[:8], 3 * a[:8])


def test_values_are_not_shared_across_branches() -> None:
    func = parse(
        HEAD + "        if i < 3:\n            B[i] = A[i * 5]\n"
        "        else:\n            B[i] = A[i * 5] + float32(1.0)\n        C[i] = A[i * 5]\n"
    )
    a, b, c = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    Kernel(compile_function(func), func.params)(a, b, c)

    np.testing.assert_array_equal(b[:8], 5 * np.arange(8) + (np.arange(8) >= 3))
    np.testing.assert_array_equal(c[:8], 5 * np.arange(8))
