"""Scans along any axis of data in any layout agree with NumPy without a schedule."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tests.numerics import assert_close


def running(x: te.Tensor, along: int) -> te.Tensor:
    """Define cumulative sums along an axis, which becomes the first axis of the result."""
    rest = (*x.shape[:along], *x.shape[along + 1 :])
    state = te.placeholder((x.shape[along], *rest), x.dtype, name="state")

    def at(t: te.Expr, i: tuple[te.Expr, ...]) -> te.Expr:
        element: te.Expr = x(*i[:along], t, *i[along:])
        return element

    start = te.compute((1, *rest), lambda t, *i: at(t, i), name="start")
    step = te.compute(state.shape, lambda t, *i: state(t - 1, *i) + at(t, i), name="step")
    result = te.scan(start, step, state, name="sums")
    assert isinstance(result, te.Tensor)
    return result


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("seed", range(24))
def test_running_sums(seed: int) -> None:
    dice = Random(seed)
    shape = [dice.choice([1, 3, 16, 17, 33, 40]) for _ in range(dice.choice([1, 1, 2, 2, 3]))]
    along, dtype = dice.randrange(len(shape)), dice.choice(["float32", "int32", "float64"])
    is_open = dice.random() < 0.3
    sizes: list[Any] = [te.var("n"), *shape[1:]] if is_open else [*shape]
    A = te.placeholder(sizes, dtype, "A")
    is_view = len(shape) == 2 and dice.random() < 0.5
    x = te.compute(sizes[::-1], lambda i, j: A[j, i], name="view") if is_view else A
    along = 1 - along if is_view else along
    S = running(x, along)
    B = te.compute(S.shape, lambda *i: S(*i) * 2, name="B") if dice.random() < 0.4 else S
    a = np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)
    expected = np.moveaxis(np.cumsum(a.T if is_view else a, along, dtype=dtype), along, 0)
    b = np.empty_like(expected, order="C")

    tecomp.build(B, [A, B])(a, b)

    np.testing.assert_array_equal(b, expected if B is S else expected * 2)


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("size", [1, 7, 100, 900])
@pytest.mark.parametrize("way", ["build", "compile"])
def test_rows_that_follow_from_all_of_the_one_before(way: str, size: int) -> None:
    """Each step of a scan multiplies the previous row by a matrix, as a recurrent network does."""
    steps = 5
    X, W = te.placeholder((steps, size), name="X"), te.placeholder((size, size), name="W")
    state, k = te.placeholder((steps, size), name="state"), te.reduce_axis((0, size), name="k")
    start = te.compute((1, size), lambda t, i: X[t, i], name="start")
    dot = te.compute(
        (steps, size), lambda t, i: te.sum(state[t - 1, k] * W[k, i], axis=k), name="dot")
    step = te.compute((steps, size), lambda t, i: dot[t, i] + X[t, i], name="step")
    S = te.scan(start, step, state, [X, W], name="S")
    numbers = np.random.default_rng(0)
    x = numbers.uniform(-1, 1, (steps, size)).astype("float32")
    w = (numbers.uniform(-1, 1, (size, size)) / size).astype("float32")
    expected = x.copy()
    for t in range(1, steps):
        expected[t] += expected[t - 1] @ w

    assert_close(_computed(way, S, [X, W], [x, w]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("size", [1, 7, 100, 9000])
@pytest.mark.parametrize("way", ["build", "compile"])
def test_elements_that_follow_from_neighbours(way: str, size: int, rows: int) -> None:
    """Each step of a scan reads neighbours and the mirrored element, as in a heat equation."""
    X = te.placeholder((1, rows, size), name="X")
    state = te.placeholder((6, rows, size), name="state")
    start = te.compute((1, rows, size), lambda t, j, i: X[t, j, i], name="start")
    last = size - 1

    def formula(t: te.Expr, j: te.Expr, i: te.Expr) -> te.Expr:
        left, right = te.max(i - 1, 0), te.min(i + 1, last)
        near = state[t - 1, j, left] + state[t - 1, j, right]
        return near * 0.25 + state[t - 1, rows - 1 - j, last - i] * 0.5

    step = te.compute(state.shape, formula, name="step")
    S = te.scan(start, step, state, [X], name="S")
    twice = te.compute((rows, size, 6), lambda j, i, t: S[t, j, i] * 2.0, name="twice")
    x = np.random.default_rng(0).uniform(-1, 1, (1, rows, size)).astype("float32")
    expected = np.repeat(x, 6, 0)
    for t in range(1, 6):
        before = np.pad(expected[t - 1], [(0, 0), (1, 1)], "edge")
        expected[t] = (before[:, :-2] + before[:, 2:]) / 4 + expected[t - 1][::-1, ::-1] / 2

    assert_close(_computed(way, S, [X], [x]), expected, atol=1e-5)
    assert_close(
        _computed(way, twice, [X], [x]), 2 * expected.transpose(1, 2, 0), atol=1e-5)


def _computed(way: str, output: Any, inputs: list[te.Tensor], arrays: list[Any]) -> Any:
    if way == "compile":
        return tecomp.compile(output, inputs)(*arrays)
    result = np.full(output.shape, np.nan, output.dtype)
    tecomp.build(output, [*inputs, output])(*arrays, result)
    return result


def test_steps_along_memory_read_squares() -> None:
    A = te.placeholder((100, 600), name="A")
    view = te.compute((600, 100), lambda i, j: A[j, i], name="view")

    direct, of_a_view = (str(auto(running(x, k), "cpu").trace) for x, k in ((A, 1), (view, 1)))

    assert "unroll(t_inner)" in direct
    assert "s[view].compute_inline()" in of_a_view
    assert "unroll(t_inner)" not in of_a_view


def test_the_steps_of_one_row_are_written_out() -> None:
    assert "unroll(t_inner)" in str(auto(running(te.placeholder((999,), name="A"), 0), "cpu").trace)
