"""Running sums along any axis of what is read in any order, in programs that nobody scheduled."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto


def running(x: te.Tensor, along: int) -> te.Tensor:
    """Sums up to each element along an axis, which is the first of the result."""
    rest = (*x.shape[:along], *x.shape[along + 1 :])
    state = te.placeholder((x.shape[along], *rest), x.dtype, name="state")

    def at(t: te.Expr, i: tuple[te.Expr, ...]) -> te.Expr:
        element: te.Expr = x(*i[:along], t, *i[along:])
        return element

    start = te.compute((1, *rest), lambda t, *i: at(t, i), name="start")
    step = te.compute(state.shape, lambda t, *i: state(t - 1, *i) + at(t, i), name="step")
    made = te.scan(start, step, state, name="sums")
    assert isinstance(made, te.Tensor)
    return made


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


def test_steps_along_memory_read_squares() -> None:
    A = te.placeholder((100, 600), name="A")
    view = te.compute((600, 100), lambda i, j: A[j, i], name="view")

    direct, of_a_view = (str(auto(running(x, k), "cpu").trace) for x, k in ((A, 1), (view, 1)))

    assert "unroll(t_inner)" in direct
    assert "s[view].compute_inline()" in of_a_view
    assert "unroll(t_inner)" not in of_a_view


def test_the_steps_of_one_row_are_written_out() -> None:
    assert "unroll(t_inner)" in str(auto(running(te.placeholder((999,), name="A"), 0), "cpu").trace)
