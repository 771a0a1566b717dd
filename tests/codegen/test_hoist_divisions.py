"""Loop-invariant quotients of indices are computed once, before the loop."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.codegen import Kernel, LlvmSource, hoist_divisions
from tecomp.ir import PrimFunc, evaluate, parse, verify

HEAD = '(A: Buffer("int64", (m * n,)), B: Buffer("int64", (m * n,)), m: "int64", n: "int64"):'


def program(*lines: str) -> PrimFunc:
    return parse("\n".join([f"def main{HEAD}", *(f"    {line}" for line in lines)]))


ROWS = program(
    "for f in parallel(m):",
    "    for j in range(n):",
    "        B[f // n * n + f % n] = A[f // n] + f % n",
    "    B[f] = A[f // n]",
)


def test_quotients_are_named_once_in_their_loop() -> None:
    assert str(hoist_divisions(ROWS)) == str(program(
        "for f in parallel(m):",
        "    quotient = f // n",
        "    rest = f % n",
        "    for j in range(n):",
        "        B[quotient * n + rest] = A[quotient] + rest",
        "    B[f] = A[quotient]",
    ))


def test_quotients_of_quotients() -> None:
    func = program(
        "for f in range(m):",
        "    for j in range(f // m):",
        "        B[f // m // n + (f // m % n + j) // n] = A[(f + 1) // 8 % n]",
    )
    named = hoist_divisions(func)

    assert str(named) == str(program(
        "for f in range(m):",
        "    quotient = f // m",
        "    rest = (f + 1) // 8 % n",
        "    quotient_1 = quotient // n",
        "    rest_1 = quotient % n",
        "    for j in range(quotient):",
        "        quotient_2 = (rest_1 + j) // n",
        "        B[quotient_1 + quotient_2] = A[rest]",
    ))
    assert hoist_divisions(named) == named


def test_constant_divisors_are_named_too() -> None:
    func = program(
        "for f in range(m):", "    for j in range(3):", "        B[f // 3 * 3 + f % 4] = A[f // 3]"
    )
    assert str(hoist_divisions(func)) == str(program(
        "for f in range(m):",
        "    quotient = f // 3",
        "    for j in range(3):",
        "        B[quotient * 3 + f % 4] = A[quotient]",
    ))


@pytest.mark.parametrize(("first", "kind"), [(0, "udiv"), (-7, "sdiv")])
@pytest.mark.parametrize("loop", ["range", "parallel"])
def test_indices_that_are_not_negative_are_divided_unsigned(
    first: int, kind: str, loop: str
) -> None:
    """Truncation equals floor division for them, so that a quotient needs no correction."""
    x = "f" if first == 0 else f"(f - {-first})"
    func = program(
        f"for f in {loop}(m):", f"    B[f] = (2 * {x} + 1) // 3 * 100 + min({x}, 9) % 7"
    )
    kernel, count = Kernel(func), 20
    assert {"sdiv", "udiv"} & {*kernel.source("llvm").split()} == {kind}
    values = np.zeros(count, np.int64)
    kernel(np.zeros_like(values), values, count, 1)
    f = np.arange(count) + first
    np.testing.assert_array_equal(values, (2 * f + 1) // 3 * 100 + np.minimum(f, 9) % 7)


def test_unsupported_divisions_are_unchanged() -> None:
    for lines in (
        ("for f in range(m):", "    B[f // 8 + f % 4] = A[f]"),
        ("B[m // n] = A[0]",),
        ("for f in range(m):", "    B[f] = A[A[f] // n]"),
    ):
        func = program(*lines)
        assert hoist_divisions(func) is func or hoist_divisions(func) == func


@pytest.mark.parametrize("shape", [(6, 4), (4, 1), (3, 0)])
def test_results_are_the_same_also_where_a_divisor_is_0(shape: tuple[int, int]) -> None:
    func = program(
        "for f in range(m):",
        "    for j in range(n):",
        "        if f % n == j:",
        "            B[f % n * m // n] = A[f // n] + f",
    )
    m, n = shape
    results = []
    verify(hoist_divisions(func), flat=True)
    for item in (func, hoist_divisions(func), None):
        a, b = np.arange(m * n), np.zeros(m * n, np.int64)
        if item is None:
            Kernel(func)(a, b, m, n)
        else:
            evaluate(item, [a, b, m, n])
        results.append(list(b))

    assert results[0] == results[1] == results[2]


def test_llvm_has_nothing_to_move_out_of_loops() -> None:
    source: LlvmSource = Kernel(parse('''def main(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), \
k: "int64", *, n: "int64"):
    for f in range(n // 64):
        for j in range(4):
            B[ramp(f // k * 64 + f % k + j * 16, 1, 16)] = A[ramp(f * 64 + j * 16, 1, 16)]
''')).compiled.source

    assert not source.plain_loops
    assert not source.loop_work
