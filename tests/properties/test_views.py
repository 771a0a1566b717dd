"""Nested views read the correct elements, with composed indices."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.schedules.analysis import reads_of_chain

Array = NDArray[np.float32]


def transposed(dice: Random, x: te.Tensor, a: Array) -> tuple[te.Tensor, Array]:
    order = dice.sample(range(a.ndim), a.ndim)
    shape = tuple(a.shape[k] for k in order)
    result = te.compute(shape, lambda *i: x(*(i[order.index(k)] for k in range(a.ndim))), name="T")
    return result, a.transpose(order)


def reshaped(dice: Random, x: te.Tensor, a: Array) -> tuple[te.Tensor, Array]:
    whole = list(a.shape)
    at = dice.randrange(len(whole))
    if len(whole) > 1 and dice.random() < 0.6:
        at = min(at, len(whole) - 2)
        shape = [*whole[:at], whole[at] * whole[at + 1], *whole[at + 2 :]]
    else:
        first = dice.choice([n for n in range(1, whole[at] + 1) if whole[at] % n == 0])
        shape = [*whole[:at], first, whole[at] // first, *whole[at + 1 :]]

    def value(*i: te.Expr) -> te.Expr:
        flat: te.Expr = i[0]
        for axis, extent in zip(i[1:], shape[1:], strict=True):
            flat = flat * extent + axis
        index: list[te.Expr] = []
        for extent in reversed(whole[1:]):
            index.insert(0, flat % extent)
            flat = flat // extent
        element: te.Expr = x(flat, *index)
        return element

    return te.compute(tuple(shape), value, name="R"), a.reshape(shape)


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("seed", range(24))
def test_views_of_views(seed: int) -> None:
    dice = Random(seed)
    shape = [dice.choice([1, 2, 3, 4, 6, 16, 20]) for _ in range(dice.randint(1, 3))]
    A = te.placeholder(shape, name="A")
    x, a = A, np.arange(prod(shape), dtype=np.float32).reshape(shape)
    argument = a
    for _ in range(dice.randint(2, 4)):
        x, a = dice.choice([transposed, reshaped])(dice, x, a)
    result = np.empty(a.shape, np.float32)

    tecomp.build(x, [A, x])(argument, result)

    np.testing.assert_array_equal(result, a)
    (read,) = reads_of_chain(x, roots=[])
    assert read.tensor == A
    for place in product(*map(range, a.shape)):
        source = np.unravel_index(int(a[place]), shape)
        assert all(dim is None or source[k] == place[dim] for k, dim in enumerate(read.dims))


def test_a_transposition_by_way_of_one_axis_is_one() -> None:
    A = te.placeholder((40, 30), name="A")
    flat = te.compute((1200,), lambda i: A[i % 40, i // 40], name="flat")
    B = te.compute((30, 40), lambda i, j: flat[i * 40 + j], name="B")

    (read,) = reads_of_chain(B, roots=[])

    assert read.dims == (1, 0)
