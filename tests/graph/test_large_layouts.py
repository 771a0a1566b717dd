"""Layout assignment of large programs with eight candidates per value: exact and linear-time."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from tecomp import Target, te
from tecomp.graph import candidates, choose_layouts, graph_of

STICK = Target.load("stick128")
SHAPE = (2,) * 7
ELEMENTS, COUNT = 2**7, 300
Program = tuple[list[te.Tensor], te.Tensor]


def exp(x: te.Tensor) -> te.Tensor:
    result = te.compute(SHAPE, lambda *i: te.exp(x[i]), name="exp")
    assert isinstance(result, te.Tensor)
    return result


def flipped(x: te.Tensor) -> te.Tensor:
    """Return the tensor with its first and last axis exchanged."""
    result = te.compute(SHAPE, lambda *i: x[(i[6], *i[1:6], i[0])], name="flipped")
    assert isinstance(result, te.Tensor)
    return result


def add(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    result = te.compute(SHAPE, lambda *i: x[i] + y[i], name="add")
    assert isinstance(result, te.Tensor)
    return result


def given(name: str = "A") -> te.Tensor:
    return te.placeholder(SHAPE, "float16", name=name)


def chain() -> Program:
    A = x = given()
    for k in range(COUNT // 2):
        x = exp(flipped(x) if k % 2 else x)
    return [A], x


def tree() -> Program:
    """Return a tree of sums of flipped and unflipped leaves: one of each pair needs a relayout."""
    leaves = level = [given(f"A{k}") for k in range(COUNT // 2)]
    while len(level) > 1:
        pairs = range(0, len(level) - 1, 2)
        level = [add(flipped(level[k]), level[k + 1]) for k in pairs] + level[len(pairs) * 2 :]
    return leaves, level[0]


def residual() -> Program:
    """Return a residual chain with one relayout: the input goes to sticks of an unpermuted axis."""
    A = x = given()
    for _ in range(COUNT // 4):
        x = add(x, exp(flipped(exp(x))))
    return [A], x


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make", "cost"),
    [(chain, 0), (tree, COUNT // 4 * ELEMENTS), (residual, ELEMENTS)],
)
def test_programs_of_many_operations(make: Callable[[], Program], cost: int) -> None:
    inputs, output = make()
    began = process_time()
    found = choose_layouts(graph_of([output], inputs, []), STICK)

    assert len(candidates(STICK, SHAPE, output.dtype)) == 8
    assert found.certificate.cost == found.certificate.lower_bound == cost
    assert "exact" in found.certificate.method
    assert process_time() - began < 20
