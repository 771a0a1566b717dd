"""Serial loops of a schedule are vectorized; other loops cost no additional compile time."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, compile_function, emit_assembly, has_plain_loops
from tecomp.ir import PrimFunc, parse

HEAD = """\
def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), I: Buffer("int64", (64,)),
      J: Buffer("int64", (64,)), n: "int64"):
"""


def function(body: str) -> PrimFunc:
    return parse(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))


PLAIN = {
    "elementwise": "for i in range(64):\n    B[i] = A[i] + float32(1.0)",
    "unknown": "for i in range(n):\n    B[i] = A[i]",
    "rows": "for i in range(8):\n    for j in range(8):\n        B[i * 8 + j] = A[j * 8 + i]",
    "condition": "for i in range(64):\n    if A[i] < float32(0.0):\n        B[i] = float32(0.0)",
    "two": "for i in range(32):\n    B[i] = A[i]\n    B[i + 32] = A[i]",
    "gather": "for i in range(64):\n    B[i] = A[I[i]]",
    "constant-divisor": "for i in range(64):\n    B[i] = A[i // 8]",
    "integers": "for k in range(64):\n    I[0] = I[0] + J[k]",
    "maximum": "for k in range(64):\n    B[0] = max(B[0], A[k])",
}
NOT_PLAIN = {
    "vectors": "for i in range(8):\n    B[ramp(8 * i, 1, 8)] = A[ramp(8 * i, 1, 8)]",
    "short": "for i in range(7):\n    B[i] = A[i]",
    "stride": "for i in range(32):\n    B[2 * i] = A[i]",
    "backwards": "for i in range(64):\n    B[63 - i] = A[i]",
    "scatter": "for i in range(64):\n    B[I[i]] = A[i]",
    "one-scatters": "for i in range(32):\n    B[i] = A[i]\n    I[2 * i] = I[i]",
    "sum": "for k in range(64):\n    B[0] = B[0] + A[k]",
    "other-element": "for k in range(64):\n    B[0] = max(A[0], A[k])",
    "division": "for i in range(64):\n    I[i] = I[i] // n",
    "outer": "for i in range(64):\n    B[i] = A[i]\n    for j in range(4):\n        I[j] = i",
    "checked": 'for i in range(64):\n    B[i] = A.load(I[i], where=check_index(I[i], 64, 0))',
}


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_loops_that_are_plain(body: str) -> None:
    func = function(body)

    assert has_plain_loops(func.body)
    assert compile_function(func).source.plain_loops == ("f.body",)


@pytest.mark.parametrize("body", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_loops_that_are_not(body: str) -> None:
    func = function(body)

    assert not has_plain_loops(func.body)


def test_sums_of_floats_only_where_their_order_may_change() -> None:
    func = function(NOT_PLAIN["sum"])

    assert has_plain_loops(func.body, fast_math=True)
    assert compile_function(func, fast_math=True).source.plain_loops == ("f.body",)
    assert compile_function(func).source.plain_loops == ()


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("elementwise", "vaddps"), ("condition", "vmaskmovps"), ("integers", "vpaddq"),
     ("maximum", "vmaxps")],
)
def test_vectors_of_the_machine(name: str, instruction: str) -> None:
    text = emit_assembly(
        function(PLAIN[name]), triple="x86_64-unknown-linux-gnu", cpu="haswell"
    )

    assert re.search(rf"{instruction}\s.*%ymm", text)


def test_parallel_loops_and_their_bodies_stay_out_of_line() -> None:
    func = function(
        "for i in parallel(64):\n    B[i] = A[i]\n"
        "for i in parallel(4):\n    for k in range(8):\n        I[i] = I[i] + I[k]"
    )
    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu="haswell")

    assert has_plain_loops(func.body, is_outlined=True)
    assert not has_plain_loops(func.body)
    assert {"f.parallel.1.body", "f.parallel.2.body"} <= set(re.findall(r"^([\w.]+):", text, re.M))


@pytest.mark.parametrize("rounds", [8, 9, 31, 64])
def test_values_at_every_length(rounds: int) -> None:
    func = function(
        f"for i in range({rounds}):\n"
        "    B[i] = if_then_else(A[i] < float32(0.0), A[i] * float32(0.5), sqrt(A[i]))"
    )
    rng = np.random.default_rng(rounds)
    a, b = rng.standard_normal(64).astype("float32"), np.full(64, 7, "float32")
    Kernel(compile_function(func), func.params)(a, b, *np.zeros((2, 64), "int64"), 0)

    expected = np.where(a < 0, a * np.float32(0.5), np.sqrt(np.abs(a)))
    np.testing.assert_array_equal(b, np.where(np.arange(64) < rounds, expected, np.float32(7)))


def test_nan_goes_through_a_maximum_and_sums_keep_their_order() -> None:
    A = te.placeholder((4, 100), name="A")
    k, q = te.reduce_axis((0, 100), name="k"), te.reduce_axis((0, 100), name="q")
    most = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="most")
    total = te.compute((4,), lambda i: te.sum(A[i, q], axis=q), name="total")
    kernel = tecomp.build(te.create_schedule([most.op, total.op]), [A, most, total])
    a = np.random.default_rng(0).standard_normal((4, 100)).astype("float32") * 1e6
    a[2, 37] = np.nan
    m, t = np.empty(4, "float32"), np.empty(4, "float32")
    kernel(a, m, t)

    np.testing.assert_array_equal(m, a.max(axis=1))
    np.testing.assert_array_equal(t, np.cumsum(a, axis=1, dtype="float32")[:, -1])
