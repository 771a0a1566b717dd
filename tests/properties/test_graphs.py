"""Random expression DAGs in one element, with shared subexpressions, agree with NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import evaluate, parse

N = 37
Array = Any


@dataclass(frozen=True)
class Node:
    """Subexpression of an element with its values at all indices.

    `needs_before` is True if the subexpression reads the element before `i` and must not be
    computed for `i == 0`.
    """

    expr: Any
    values: Array
    needs_before: bool = False


INTEGERS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a ^ b,
    lambda a, b: a & b, lambda a, b: a | b,
]
# No operation of this list rounds, so fused multiply-add does not change the results.
FLOATS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: (a + b) * 0.5, lambda a, b: (a - b) * 0.25, lambda a, b: a * -1.0 + b * 0.0,
]


class Graph:
    """Generator of nodes; reads of the element before `i` are guarded by `i > 0`."""

    def __init__(self, draw: random.Random, dtype: str) -> None:
        self.draw, self.dtype = draw, dtype
        numbers = np.random.default_rng(draw.randrange(1000))
        self.arrays = [numbers.integers(-50, 50, N).astype(dtype) for _ in range(2)]
        self.tensors = [te.placeholder((N,), dtype, name=name) for name in "XY"]

    def made(self, i: Any, count: int) -> Node:
        place = np.arange(N)
        safe = [Node(t[i], a) for t, a in zip(self.tensors, self.arrays, strict=True)]
        bold = [Node(t[i - 1], np.roll(a, 1), needs_before=True)
                for t, a in zip(self.tensors, self.arrays, strict=True)]
        result = safe[0]
        for _ in range(count):
            kind = self.draw.randrange(10)
            recent = safe[-self.draw.choice((2, 5, 1000)):]
            a, b = self.draw.choice(recent), self.draw.choice(safe)
            if kind < 5:
                result = self.operation(a, b)
            elif kind == 5:
                result = self.operation(self.draw.choice(bold[-3:]), self.draw.choice((a, *bold)))
            elif kind == 6:
                inner = self.draw.choice(bold)
                result = Node(te.if_then_else(i > 0, inner.expr, a.expr),
                            np.where(place > 0, inner.values, a.values))
            else:
                result = self.choice(i, place, a, b, kind)
            (bold if result.needs_before else safe).append(result)
        return safe[-1]

    def operation(self, a: Node, b: Node) -> Node:
        two = self.draw.choice(FLOATS if self.dtype == "float64" else INTEGERS)
        pairs: list[Any] = [(two, two), (te.min, np.minimum), (te.max, np.maximum)]
        build, compute = self.draw.choice(pairs)
        return Node(build(a.expr, b.expr), compute(a.values, b.values),
                    a.needs_before or b.needs_before)

    def choice(self, i: Any, place: Array, a: Node, b: Node, kind: int) -> Node:
        at = self.draw.randrange(N)
        build = te.if_then_else if kind < 9 else te.select
        if kind == 7:
            return Node(build(i < at, a.expr, b.expr), np.where(place < at, a.values, b.values))
        return Node(build(a.expr > b.expr, b.expr, a.expr),
                    np.where(a.values > b.values, b.values, a.values))


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("is_vector", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
@pytest.mark.parametrize("count", [1, 3, 10, 30, 100, 400, 2000])
def test_random_graphs(count: int, dtype: str, is_vector: bool) -> None:
    graph = Graph(random.Random(f"{count} {dtype} {is_vector}"), dtype)
    expected: list[Array] = []

    def element(i: Any) -> Any:
        node = graph.made(i, count)
        expected.append(node.values)
        return node.expr

    C = te.compute((N,), element, name="C")
    s = te.create_schedule(C)
    if is_vector:
        s[C].vectorize(s[C].split(C.op.axis[0], factor=8)[1])
    read = C.op.input_tensors
    args, arrays = [*read, C], [graph.arrays[graph.tensors.index(tensor)] for tensor in read]

    with np.errstate(over="ignore"):
        found = np.zeros(N, dtype)
        tecomp.build(s, args)(*arrays, found)
        np.testing.assert_array_equal(found, expected[0])
        func = tecomp.lower(s, args)
        slow = np.zeros(N, dtype)
        evaluate(func, [*arrays, slow])
        np.testing.assert_array_equal(slow, expected[0])
    if count <= 30:
        assert parse(str(func)) == func
    assert len(str(func)) < 3000 + 900 * count
