"""Kernels accept views with steps, permuted, reversed, repeated and empty axes.

NumPy is the reference for the kernel, and for the interpreter after every pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te, tir
from tecomp.ir import Buffer
from tests.strategies.dtypes import NUMPY_SCALARS

Array = NDArray[Any]


@dataclass(frozen=True)
class View:
    """View of an array, and the array, whose other elements must not change."""

    array: Array
    base: Array


def view(dice: Random, shape: Sequence[int], dtype: str, *, repeats: bool) -> View:
    """Draw a view of this shape of a larger array."""
    order = dice.sample(range(len(shape)), len(shape))
    if dice.random() < 0.4:
        order = sorted(order)
    extents, cuts = [], []
    for axis in order:
        step = dice.choice([1, 1, 1, 2, 3, -1, -2])
        repeated = repeats and dice.random() < 0.2
        count = 1 if repeated else shape[axis]
        before, after = dice.randrange(3), dice.randrange(3)
        if dice.random() < 0.5:
            step, before, after = 1, 0, 0
        extents.append(before + max(count - 1, 0) * abs(step) + min(count, 1) + after)
        low, high = before, before + (count - 1) * abs(step)
        places = slice(low, high + 1, step) if step > 0 else slice(
            high, low - 1 if low else None, step)
        cuts.append(places if count else slice(0, 0))
    base = np.array([dice.randrange(8) for _ in range(int(np.prod(extents)))])
    base = base.astype(dtype).reshape(extents)
    part = base[tuple(cuts)]
    found = part.transpose([order.index(axis) for axis in range(len(shape))])
    return View(np.broadcast_to(found, tuple(shape)) if repeats else found, base)


class Names:
    """Variables for extents and strides; some are constants, and equal extents share one."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.sizes: dict[int, te.Var] = {}
        self.count = 0

    def extent(self, n: int) -> Any:
        """Return `n`, or a variable with this value."""
        if self.dice.random() < 0.4:
            return n
        return self.sizes.setdefault(n, te.var(f"n{n}"))

    def strides(self, array: Array) -> list[Any]:
        """Return constants for some strides, mostly for 1, and variables for the others."""
        found: list[Any] = []
        for step in (n // array.itemsize for n in array.strides):
            is_number = self.dice.random() < (0.7 if step == 1 else 0.2)
            self.count += 1
            found.append(step if is_number else te.var(f"s{self.count}"))
        return found


def formula(dice: Random, dtype: str, x: te.Expr, y: te.Expr) -> te.Expr:
    """Define a function of two elements that is exact for all dtypes."""
    if dtype == "bool":
        return te.all(x, y)
    return x * te.const(3, dtype) + y


def oracle(dtype: str, x: Array, y: Array) -> Array:
    return x & y if dtype == "bool" else x * np.array(3, dtype) + y


def schedule(dice: Random, output: te.Tensor) -> te.Schedule:
    s = te.create_schedule(output)
    axes = list(output.op.axis)
    if axes and dice.random() < 0.7:
        along = dice.choice(axes)
        outer, inner = s[output].split(along, factor=dice.choice([2, 4, 8, 16]))
        order = [outer if axis is along else axis for axis in axes]
        s[output].reorder(*order, inner)
        s[output].vectorize(inner)
        if dice.random() < 0.3:
            s[output].parallel(order[0])
    return s


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(120))
def test_formulas_of_views(seed: int) -> None:
    dice = Random(seed)
    rank, dtype = dice.randint(1, 4), dice.choice(NUMPY_SCALARS)
    shape = [dice.choice([0, 1, 2, 3, 5, 9] if k else [1, 2, 4, 17, 19]) for k in range(rank)]
    dice.shuffle(shape)
    a, b = (view(dice, shape, dtype, repeats=True) for _ in range(2))
    c = view(dice, shape, dtype, repeats=False)
    names = Names(dice)
    extents = [names.extent(n) for n in shape]
    A, B = te.placeholder(extents, dtype, "A"), te.placeholder(extents, dtype, "B")
    C = te.compute(extents, lambda *i: formula(dice, dtype, A(*i), B(*i)), name="C")
    binds = {
        x: tir.decl_buffer(x.shape, x.dtype, strides=names.strides(v.array))
        for x, v in ((A, a), (B, b), (C, c))
    }
    s = schedule(dice, C)
    expected = c.base.copy()
    at = np.lib.stride_tricks.as_strided(
        expected.reshape(-1)[first_place(c) :], c.array.shape, c.array.strides)
    at[...] = oracle(dtype, a.array, b.array)
    start = c.base.copy()

    lowered = tecomp.lower_all(s, [A, B, C], binds=binds)
    kernels = [
        tecomp.build(s, [A, B, C], binds=binds),
        tecomp.build(s, [A, B, C], binds=binds, check_bounds=True),
        tecomp.build(C, [A, B, C], binds=binds),
    ]

    before = None
    for func in lowered.functions.values():
        if func is before:
            continue
        before = func
        assert tecomp.parse(str(func)) == func
        if any(isinstance(p, Buffer) and len(p.shape) != rank for p in func.params):
            continue  # memory without gaps is flat, so extents are not determined
        c.base[...] = start
        tecomp.evaluate(func, [a.array, b.array, c.array])
        np.testing.assert_array_equal(c.base, expected)
    for kernel in kernels:
        c.base[...] = start
        kernel(a.array, b.array, c.array)
        np.testing.assert_array_equal(c.base, expected)


def first_place(part: View) -> int:
    """Return the number of elements of the array before the first element of the view."""
    if not part.array.size:
        return 0
    start = part.array.__array_interface__["data"][0] - part.base.__array_interface__["data"][0]
    return int(start) // part.base.itemsize


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(40))
def test_reductions_and_windows_of_views(seed: int) -> None:
    dice = Random(seed)
    dtype = dice.choice(["int32", "int64", "float32", "float64"])
    shape = [dice.choice([1, 2, 3, 8, 17]) for _ in range(3)]
    a, w = view(dice, shape, dtype, repeats=True), view(dice, shape[1:], dtype, repeats=True)
    names = Names(dice)
    m, k, n = (names.extent(item) for item in shape)
    A, W = te.placeholder((m, k, n), dtype, "A"), te.placeholder((k, n), dtype, "W")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r, j] * W[r, j], axis=r), name="C")
    c = view(dice, (shape[0], shape[2]), dtype, repeats=False)
    binds = {
        x: tir.decl_buffer(x.shape, x.dtype, strides=names.strides(v.array))
        for x, v in ((A, a), (W, w), (C, c))
    }
    expected = (a.array * w.array).sum(1, dtype=dtype)

    nest = tecomp.lower(te.create_schedule(C), [A, W, C], stop_after="nest", binds=binds)
    tecomp.evaluate(nest, [a.array, w.array, c.array])
    np.testing.assert_array_equal(c.array, expected)
    for argument in (te.create_schedule(C), C):
        kernel = tecomp.build(argument, [A, W, C], binds=binds)
        c.base[...] = 0
        kernel(a.array, w.array, c.array)
        np.testing.assert_array_equal(c.array, expected)


class Arena:
    """One-dimensional array in which tensors are at drawn offsets, one after the other."""

    def __init__(self, dice: Random, dtype: str) -> None:
        self.dice, self.dtype, self.length = dice, dtype, 0
        self.numbers: dict[te.Var, int] = {}

    def place(self, shape: Sequence[int]) -> tuple[Any, list[int] | None, int]:
        """Reserve elements; return the `elem_offset`, the strides and the offset as a number."""
        dice = self.dice
        order = dice.sample(range(len(shape)), len(shape))
        gap, strides = dice.choice([1, 1, 2]), [0] * len(shape)
        for axis in reversed(order):
            strides[axis] = gap * dice.choice([1, 1, -1])
            gap *= max(shape[axis], 1) + dice.choice([0, 0, 1])
        if dice.random() < 0.4:
            strides = [int(np.prod(shape[axis + 1:])) for axis in range(len(shape))]
        reach = [max(n - 1, 0) * step for n, step in zip(shape, strides, strict=True)]
        start = self.length + dice.randrange(4) - sum(min(n, 0) for n in reach)
        self.length = start + sum(max(n, 0) for n in reach) + 1 + dice.randrange(3)
        return self.offset(start), strides, start

    def offset(self, start: int) -> Any:
        """Return a positive number, a variable, or a sum that has this value."""
        kind = self.dice.random() if start else 0.5
        if kind < 0.4:
            return start
        var = te.var(f"o{len(self.numbers)}")
        addend = 0 if kind < 0.7 else self.dice.randrange(5)
        self.numbers[var] = start - addend
        return var + addend if addend else var


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(80))
def test_tensors_inside_of_arrays(seed: int) -> None:
    dice = Random(seed)
    dtype, rank = dice.choice(NUMPY_SCALARS), dice.randint(0, 3)
    shape = [dice.choice([0, 1, 2, 5, 9, 17]) for _ in range(rank)]
    arena, names = Arena(dice, dtype), Names(dice)
    extents = [names.extent(n) for n in shape]
    A, B = te.placeholder(extents, dtype, "A"), te.placeholder(extents, dtype, "B")
    C = te.compute(extents, lambda *i: formula(dice, dtype, A(*i), B(*i)), name="C")
    binds, parts = {}, []
    for x in (A, B, C):
        offset, strides, start = arena.place(shape)
        binds[x] = tir.decl_buffer(x.shape, x.dtype, strides=strides, elem_offset=offset)
        parts.append((start, strides))
    memory = np.array([dice.randrange(8) for _ in range(arena.length)]).astype(dtype)
    scalars = [*names.sizes.values(), *arena.numbers]
    numbers = [*names.sizes, *arena.numbers.values()]
    views = [
        np.lib.stride_tricks.as_strided(
            memory[start:], shape, [step * memory.itemsize for step in strides or ()])
        for start, strides in parts
    ]
    expected = memory.copy()
    start, strides = parts[2]
    np.lib.stride_tricks.as_strided(
        expected[start:], shape, [step * memory.itemsize for step in strides or ()]
    )[...] = oracle(dtype, views[0], views[1])
    args, s = [A, B, C, *scalars], schedule(dice, C)
    before = None
    for func in tecomp.lower_all(s, args, binds=binds).functions.values():
        if func is before:
            continue
        before = func
        assert tecomp.parse(str(func)) == func
        found = memory.copy()
        tecomp.evaluate(func, [found, found, found, *numbers])
        np.testing.assert_array_equal(found, expected)
    for kernel in (
        tecomp.build(s, args, binds=binds),
        tecomp.build(s, args, binds=binds, check_bounds=True),
        tecomp.build(C, args, binds=binds),
    ):
        found = memory.copy()
        kernel(found, found, found, *numbers)
        np.testing.assert_array_equal(found, expected)
