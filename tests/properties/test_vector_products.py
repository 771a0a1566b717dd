"""Products in dtypes without a matrix unit: vectors compute them from factors in any layout.

The reference is NumPy. The padding of the factors contains NaN or a large number, which no rule
replaces, so a product that reads padding is wrong.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.layout import Layout
from tests.numerics import assert_close

MEMORY = {"stick128": "ddr", "tensix_wh": "dram"}


def laid_out(x: te.Tensor, axis: int, machine: str) -> Layout:
    """Return a layout in sticks or tiles with an axis along the lanes."""
    def place(*index: te.Expr) -> list[te.Expr]:
        across, along = index[1 - axis], index[axis]
        if machine == "stick128":
            return [along // 32, across, along % 32]
        return [across // 32, along // 32, across % 32, along % 32]

    shape = [int(str(extent)) for extent in x.shape]
    return Layout.of(shape, str(x.dtype), place, memory=MEMORY[machine])


def packed(layout: Layout, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in a layout, with NaN or a large number in its padding."""
    garbage = np.nan if values.dtype.kind == "f" else 2**28
    stored = np.full(layout.num_places, garbage, values.dtype)
    stored[layout.offsets().ravel()] = values.ravel()
    return stored.reshape(layout.physical_shape)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", MEMORY)
@pytest.mark.parametrize("seed", range(10))
def test_factors_have_any_lanes_and_any_padding(machine: str, seed: int) -> None:
    dice = random.Random(seed)
    dtype = dice.choice(("float32", "int32"))
    m, n, depth = (dice.choice((1, 5, 32, 33, 70)) for _ in range(3))
    turned = [dice.random() < 0.5 for _ in "AB"]
    shapes = [(depth, m) if turned[0] else (m, depth), (n, depth) if turned[1] else (depth, n)]
    A, B = (te.placeholder(s, dtype, name=x) for s, x in zip(shapes, "AB", strict=True))
    k = te.reduce_axis((0, depth), name="k")
    Y = te.compute((m, n), lambda i, j: te.sum(
        (A[k, i] if turned[0] else A[i, k]) * (B[j, k] if turned[1] else B[k, j]), axis=k), name="Y")
    columns = 0 if turned[1] else 1
    layouts = {A: laid_out(A, dice.randrange(2), machine), B: laid_out(B, columns, machine)}

    program = tecomp.compile(Y, [A, B], machine, layouts=layouts, packed=[A, B])

    assert program.layouts is not None
    assert not program.layouts.relayouts
    numbers = np.random.default_rng(seed)
    a, b = (numbers.integers(-4, 5, x.shape).astype(dtype) for x in (A, B))
    y = program(packed(layouts[A], a), packed(layouts[B], b))
    assert_close(np.asarray(y), (a.T if turned[0] else a) @ (b.T if turned[1] else b))


def turned_product(dtype: str, *, both: bool = False) -> tuple[te.Tensor, list[te.Tensor]]:
    """Return the product of a transposed first factor, or of two transposed factors."""
    A, B = (te.placeholder((128, 128), dtype, name=x) for x in "AB")
    k = te.reduce_axis((0, 128), name="k")

    def value(i: te.Expr, j: te.Expr) -> te.Expr:
        a, b = A[k, i], B[j, k] if both else B[k, j]
        return te.sum(te.cast(a, "float32") * te.cast(b, "float32"), axis=k)

    return te.compute((128, 128), value, name="Y"), [A, B]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("machine", "relayouts"), [("stick128", 1), ("tensix_wh", 0)])
def test_factors_of_matrix_units_follow_the_rules_of_the_unit(machine: str, relayouts: int) -> None:
    """On `stick128`, the matrix unit reads the reduced axis of `a` along its sticks."""
    copies = {}
    for dtype in ("float16", "float32"):
        Y, inputs = turned_product(dtype)
        hints = [tecomp.hint(inputs[0], stick=1, hard=True)]
        program = tecomp.compile(Y, inputs, machine, hints=hints)
        assert program.layouts is not None
        copies[dtype] = len(program.layouts.relayouts)

    assert copies == {"float16": relayouts, "float32": 0}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", MEMORY)
def test_factors_are_not_exchanged_without_need(machine: str) -> None:
    """With exchanged factors, the result would be relaid instead of `B`: as many elements."""
    Y, inputs = turned_product("float32", both=True)
    program = tecomp.compile(Y, inputs, machine)

    assert program.layouts is not None
    assert [copy.tensor.name for copy in program.layouts.relayouts] == ["B"]
    assert not program.layouts.for_host
