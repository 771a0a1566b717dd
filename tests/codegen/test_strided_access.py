"""Lanes with strides known only at the call are read and written element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.ir import evaluate, parse
from tests.strategies.fenced import call_fenced


def copy(lanes: int, dtype: str) -> Any:
    """Copy lanes of A with stride `s` to lanes of B with stride `t`."""
    return parse(f'''def main(A: Buffer("{dtype}", (m,)), B: Buffer("{dtype}", (n,)), a: "int64", \
s: "int64", b: "int64", t: "int64", *, m: "int64", n: "int64"):
    B[ramp(b, t, {lanes})] = A[ramp(a, s, {lanes})]
''')


@pytest.mark.exhaustive(keep=39)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "int64"])
@pytest.mark.parametrize("lanes", [2, 5, 8, 31])
@pytest.mark.parametrize(("a", "s", "b", "t"), [
    (0, 1, 0, 1), (0, 2, 0, 3), (2, 0, 1, 1), (-1, -1, 0, 2), (-1, -2, -1, -1), (0, 3, 4, 0),
])  # fmt: skip
def test_results_match_numpy(
    lanes: int, dtype: str, a: int, s: int, b: int, t: int
) -> None:
    """The first and the last lane are at the ends of the buffers."""
    func = copy(lanes, dtype)
    source = (np.arange((lanes - 1) * abs(s) + 1 + max(a, 0)) * 7 % 5).astype(dtype)
    target = np.zeros((lanes - 1) * abs(t) + 1 + max(b, 0), dtype)
    a, b = a % len(source), b % len(target)
    expected = target.copy()
    for lane in range(lanes):
        expected[b + lane * t] = source[a + lane * s]
    found = target.copy()

    evaluate(func, [source, found, a, s, b, t])
    np.testing.assert_array_equal(found, expected)
    call_fenced(Kernel(func), source, target, a, s, b, t)
    np.testing.assert_array_equal(target, expected)


def test_strided_accesses_use_no_gather() -> None:
    text = Kernel(copy(8, "float32")).source("llvm")

    assert "gather" not in text
    assert "scatter" not in text
