"""Scans whose states have the same rank and different extents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import ScheduleError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

STEPS = 6


class Pair:
    """Two states, of which the first accumulates the sum of the second."""

    def __init__(self, m: Any, n: Any, steps: Any = STEPS) -> None:
        self.X, self.Y = (te.placeholder((steps, w), name=x) for w, x in ((m, "X"), (n, "Y")))
        s1, s2 = (te.placeholder((steps, w), name=x) for w, x in ((m, "s1"), (n, "s2")))
        k = te.reduce_axis((0, n), name="k")
        total = te.compute((steps,), lambda t: te.sum(s2[t - 1, k], axis=k), name="total")
        self.steps = (
            te.compute((1, m), lambda t, i: self.X[t, i], name="i1"),
            te.compute((1, n), lambda t, i: self.Y[t, i], name="i2"),
            te.compute((steps, m), lambda t, i: s1[t - 1, i] + self.X[t, i] + total[t], name="u1"),
            te.compute((steps, n), lambda t, i: s2[t - 1, i] * 0.5 + self.Y[t - 1, i], name="u2"),
        )
        i1, i2, u1, u2 = self.steps
        self.first, self.second = te.scan([i1, i2], [u1, u2], [s1, s2], name="S")

    @property
    def args(self) -> list[te.Tensor]:
        return [self.X, self.Y, self.first, self.second]


def arrays(m: int, n: int) -> list[Any]:
    """Return random inputs and the states computed with NumPy."""
    rng = np.random.default_rng(m * 10 + n)
    x, y = (rng.integers(-3, 4, (STEPS, w)).astype("float32") for w in (m, n))
    a, b = x.copy(), y.copy()
    for t in range(1, STEPS):
        a[t] = a[t - 1] + x[t] + b[t - 1].sum()
        b[t] = b[t - 1] * np.float32(0.5) + y[t - 1]
    return [x, y, a, b]


def inlined(s: te.Schedule, pair: Pair) -> None:
    for step in pair.steps:
        s[step].compute_inline()


def vectors(s: te.Schedule, pair: Pair) -> None:
    s[pair.first].vectorize(s[pair.first].split(pair.first.op.axis[1], factor=4)[1])
    for step in pair.steps:
        s[step].vectorize(step.op.axis[1])


def copied(s: te.Schedule, pair: Pair) -> None:
    local = s.cache_read(pair.steps[2], "local", pair.first)
    s[local].compute_at(s[pair.first], pair.first.op.axis[0])
    s[pair.steps[3]].compute_at(s[pair.first], pair.first.op.axis[0])


SHAPES = [(5, 7), (7, 3), (4, 4), (1, 6), (2, 0)]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("decide", [lambda s, pair: None, inlined, vectors, copied])
def test_numbers(agrees: Any, shape: tuple[int, int], decide: Callable[..., None]) -> None:
    pair = Pair(*shape)
    s = te.create_schedule(pair.first.op)
    decide(s, pair)

    assert [t.shape for t in pair.args[2:]] == [(STEPS, w) for w in shape]
    agrees(s, pair.args, dict(zip(pair.args, arrays(*shape), strict=True)), rtol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_as_parts_of_programs(agrees: Any, shape: tuple[int, int]) -> None:
    pair = Pair(*shape)
    last = te.compute(
        (STEPS, shape[0]), lambda t, i: pair.first[t, i] + pair.second[t, 0], name="last")
    x, y, a, b = arrays(*shape)
    inputs = [pair.X, pair.Y]

    agrees(te.create_schedule(last), [*inputs, last],
           {pair.X: x, pair.Y: y, last: a + b[:, :1]}, rtol=1e-5)
    assert_close(tecomp.compile([last], inputs)(x, y), a + b[:, :1], rtol=1e-5)
    for actual, expected in zip(
        tecomp.compile([pair.first, pair.second], inputs)(x, y), (a, b), strict=True
    ):
        assert_close(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(5, 7), (7, 3), (0, 2)])
def test_extents_that_are_open(shape: tuple[int, int]) -> None:
    pair = Pair(te.var("m"), te.var("n"), te.var("steps"))
    x, y, *expected = arrays(*shape)
    actual = [np.zeros_like(item) for item in expected]

    tecomp.build(te.create_schedule(pair.first.op), pair.args, check_bounds=True)(x, y, *actual)

    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other, rtol=1e-5)


def test_printed_form_of_scans() -> None:
    pair = Pair(5, 7)
    op: Any = pair.first.op

    assert op.shape == (STEPS, 7)
    assert str(op).splitlines()[0] == (
        "S_v0[t, i] = if_then_else(i < int32(5), i1[t, i], float32(0.0)) if t < 1 else "
        "if_then_else(i < int32(5), u1[t, i], float32(0.0)) with s1 = S_v0"
    )
    s = te.create_schedule(op)
    with pytest.raises(ScheduleError) as error:
        s[pair.first].transform_layout(lambda t, i: [i, t])
    assert diagnostic(error.value) == (
        Diagnostic(
            "pattern-mismatch", where="s[S].transform_layout", stage="S",
            shapes="S_v0 (6, 5), S_v1 (6, 7)",
        )
    )
