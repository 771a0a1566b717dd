"""Kernels whose sizes come at the call are not many times as long as those for one size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import argreduce, auto, cumsum, elementwise, matmul, reduce, softmax

MOST = 3
"""Times as many lines: a form for whole tiles, one for the rest, and loops through both."""

Operator = Callable[[te.Tensor], te.Tensor]

OPERATORS: dict[str, Operator] = {
    "elementwise": lambda A: elementwise.define(lambda x: x * 3.0 + 1.0, A),
    "sums of rows": lambda A: reduce.define(A, 1),
    "sums of columns": lambda A: reduce.define(A, 0),
    "softmax": softmax.define,
    "product": lambda A: matmul.define(A, A, transpose_b=True),
    "places of extremes": lambda A: argreduce.define(A, axis=1),
    "running sums": lambda A: cumsum.define(A, axis=1),
    "running sums down": lambda A: cumsum.define(A, axis=0),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_function_is_not_many_times_as_long(name: str) -> None:
    fixed, of_any = _lines(name, 300, 400), _lines(name, te.size_var("m"), te.size_var("n"))

    assert of_any <= MOST * fixed, (of_any, fixed)


def _lines(name: str, rows: te.Expr | int, columns: te.Expr | int) -> int:
    A = te.placeholder((rows, columns), name="A")
    B = OPERATORS[name](A)
    return len(str(tecomp.lower(auto(B, "cpu"), [A, B])).splitlines())


def test_no_lane_divides_for_the_numbers_of_its_axes() -> None:
    def upper(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(te.cast(i, "int64") < te.cast(j, "int64"), A[i, j], 0.0)

    A = te.placeholder((te.size_var("m"), te.size_var("n")), name="A")
    B = te.compute(A.shape, upper, name="B")
    C = te.compute(A.shape, lambda i, j: B[i, j] + 1.0, name="C")
    s = auto(C, "cpu")
    text = str(tecomp.lower(s, [A, C]))

    assert "% broadcast" not in text
    assert "// broadcast" not in text
    x, found = np.random.default_rng(0).random((37, 41), "float32"), np.empty((37, 41), "float32")
    tecomp.build(s, [A, C])(x, found)
    np.testing.assert_array_equal(found, np.triu(x, 1) + np.float32(1))
